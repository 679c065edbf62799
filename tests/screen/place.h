// tests/screen/place.h: what test programs of the screen share: a folder that goes away at the end,
// the path of a history in it, and one screen. Included once a program; what keys do shows within
// the patience of `expect`, or the test has failed.
#pragma once

#include <unistd.h>

#include "tests/screen/shown.h"
#include "tests/test.h"

static char folder[64], history_path[96], database[128]; // MPBENCH_DB=history_path
static Shown shown;

static inline bool make_place(void) {
    const char *parent = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.40s/mpbench-XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(folder))
        return false;
    snprintf(history_path, sizeof history_path, "%s/history.db", folder);
    snprintf(database, sizeof database, "MPBENCH_DB=%s", history_path);
    setenv("MPBENCH", "build/mpbench", 0);
    return true;
}

static inline int end_tests(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) != 0 || test_end();
}

static inline void expect(const char *text) {
    CHECK_MESSAGE(shown_wait(&shown, text, true, 20) >= 0, "\"%s\" did not appear:\n%s", text,
                  shown_text(&shown));
}

static inline void expect_gone(const char *text) {
    CHECK_MESSAGE(shown_wait(&shown, text, false, 20) >= 0, "\"%s\" is still there:\n%s", text,
                  shown_text(&shown));
}

// Keys, and what they show.
static inline void press(const char *keys, const char *text) {
    shown_type(&shown, keys);
    expect(text);
}

// From a screen on which nothing is open.
static inline void quit(void) {
    shown_type(&shown, "q");
    CHECK(shown_wait_end(&shown, 10));
    shown_free(&shown);
}

// Out of whatever is open.
static inline void leave(void) {
    shown_type(&shown, "\x1b\x1b\x1b");
    shown_pump(&shown, 0.1); // more keys would belong to the escape
    quit();
}
