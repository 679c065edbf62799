// tests/screen/place.h: what test programs of the screen share: a folder that goes away at the end
// and is the place for temporary files and settings meanwhile, the path of a history in it, and one
// screen.
// Included once a program; what keys do shows within the patience of `expect`, or the test fails.
#pragma once

#include <unistd.h>

#include "tests/folder.h"
#include "tests/screen/shown.h"
#include "tests/test.h"

static char folder[TEST_FOLDER_SIZE], history_path[96], database[128]; // MPBENCH_DB=history_path
static Shown shown;

// A path in the folder; good until the fourth call after.
static inline const char *path_of(const char *name) {
    static char paths[4][512];
    static int next;
    char *text = paths[next++ % 4];
    snprintf(text, sizeof paths[0], "%s/%s", folder, name);
    return text;
}

static inline bool make_place(void) {
    if (!test_folder_make(folder, sizeof folder))
        return false;
    snprintf(history_path, sizeof history_path, "%s/history.db", folder);
    snprintf(database, sizeof database, "MPBENCH_DB=%s", history_path);
    setenv("MPBENCH", "build/mpbench", 0);
    setenv("TMPDIR", folder, 1);
    setenv("XDG_CONFIG_HOME", path_of("config"), 1);
    return true;
}

static inline void write_text(const char *file_path, const char *text) {
    FILE *file = fopen(file_path, "w");
    CHECK_MESSAGE(file && fputs(text, file) >= 0, "%s", file_path);
    if (file)
        fclose(file);
}

static inline int end_tests(void) {
    test_folder_remove(folder);
    return test_end();
}

static inline void expect(const char *text) {
    CHECK_MESSAGE(shown_wait(&shown, text, true, 20) >= 0, "\"%s\" did not appear:\n%s", text,
                  shown_text(&shown));
}

static inline void expect_gone(const char *text) {
    CHECK_MESSAGE(shown_wait(&shown, text, false, 20) >= 0, "\"%s\" is still there:\n%s", text,
                  shown_text(&shown));
}

// Of the list on the home screen, one below the one that is chosen there.
static inline void choose_experiment(const char *name) {
    enum { MOST = 100 };
    char mark[80];
    snprintf(mark, sizeof mark, "▸%s", name);
    for (int i = 0; i < MOST && !strstr(shown_text(&shown), mark); i++) {
        shown_type(&shown, KEY_DOWN);
        shown_settle(&shown);
    }
    expect(mark);
}

// Keys, and what they show.
static inline void press(const char *keys, const char *text) {
    shown_type(&shown, keys);
    expect(text);
}

// A click in that column, of the row in which the mark stands.
static inline void click_row_of(const char *mark, int column, const char *part) {
    const char *text = shown_text(&shown), *found = strstr(text, mark);
    char keys[64];
    int row = 1;
    CHECK_MESSAGE(found != NULL, "%s is not there:\n%s", mark, text);
    for (const char *at = text; found && at < found; at++)
        row += *at == '\n';
    snprintf(keys, sizeof keys, "\x1b[<0;%d;%dM\x1b[<0;%d;%dm", column, row, column, row);
    press(keys, part);
}

static inline void open_demo(void) {
    static const char *const environment[] = {"MPBENCH_SCREEN_CLOCK=" SCREEN_CLOCK, NULL};
    static const char *const arguments[] = {"--demo", NULL};
    shown_start(&shown, 100, 30, environment, arguments);
    expect("fashion-cnn-8");
    shown_settle(&shown);
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
