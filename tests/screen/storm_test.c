// Sizes, keys and clicks at random: the screen never ends by itself, never leaves a stray cell, and
// afterwards it looks as if nothing had happened. Longer with MPBENCH_SOAK=1; STORM_SEED repeats
// one.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/screen/place.h"

static char experiments[128], program[128];
static const char *const environment[] = {"MPBENCH_SCREEN_CLOCK=" SCREEN_CLOCK, experiments, NULL};
static const char *const demo[] = {"--demo", NULL};
static uint64_t state;

static uint64_t next_random(void) { // splitmix64
    uint64_t mixed = state += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

static int below(int bound) {
    return (int)(next_random() % (uint64_t)bound);
}

static void start(int columns, int rows) {
    const char *seed = getenv("STORM_SEED");
    char command[600];
    state = seed ? strtoull(seed, NULL, 10) : 1;
    snprintf(command, sizeof command, "cp '%s' '%s'", getenv("MPBENCH_REAL"), program);
    CHECK(system(command) == 0);
    shown_start(&shown, columns, rows, environment, demo);
    CHECK_MESSAGE(shown_wait(&shown, "fashion-cnn-8", true, 20) >= 0, "the demo did not open");
    shown_settle(&shown);
    unlink(program); // what the keys start ends at once
}

static void end(void) {
    char why[200];
    CHECK_MESSAGE(!shown.ended, "it ended by itself: status %x\n%s", (unsigned)shown.status,
                  shown_text(&shown));
    kill(shown.program, SIGTERM);
    CHECK(shown_wait_end(&shown, 20));
    CHECK_MESSAGE(WIFEXITED(shown.status) && WEXITSTATUS(shown.status) == 128 + SIGTERM,
                  "status %x", (unsigned)shown.status);
    bool is_back = shown_is_given_back(&shown, why, sizeof why);
    CHECK_MESSAGE(is_back, "%s", why);
    shown_free(&shown);
}

static void pick_size(int *columns, int *rows) {
    static const int odd[][2] = {{1, 1},   {500, 500}, {59, 16}, {60, 15}, {60, 16},
                                 {500, 1}, {1, 500},   {61, 17}, {80, 24}};
    int which = below(24);
    *columns = which < 9 ? odd[which][0] : 1 + below(which < 20 ? 220 : 500);
    *rows = which < 9 ? odd[which][1] : 1 + below(which < 20 ? 70 : 200);
}

static void storms_of_sizes_leave_no_stray_cell(void) {
    const int count = getenv("MPBENCH_SOAK") ? 10000 : 200;
    static const char *const screens[] = {"1", "2", "4", "\t", "??", "\x1b", "O"};
    start(120, 36);
    shown_type(&shown, "\x1b"); // from the replay to the newest step, as escapes will at the end
    CHECK(shown_wait(&shown, "finished", true, 10) >= 0);
    shown_settle(&shown);
    char *before = strdup(shown_text(&shown)), *inks = strdup(shown_inks(&shown));
    for (int i = 0; i < count && !shown.ended; i++) {
        int columns, rows;
        pick_size(&columns, &rows);
        shown_resize(&shown, columns, rows);
        shown_pump(&shown, below(4) == 0 ? 0.02 : 0.001);
        if (below(10) == 0)
            shown_type(&shown, screens[below(sizeof screens / sizeof *screens)]);
    }
    shown_resize(&shown, 120, 36);
    shown_pump(&shown, 0.3);
    for (int i = 0; i < 3; i++) { // out of whatever is open, back to where it began
        shown_type(&shown, "\x1b");
        shown_pump(&shown, 0.2);
    }
    shown_type(&shown, "1");
    CHECK(shown_wait(&shown, "experiments", true, 10) >= 0);
    shown_type(&shown, "2");
    CHECK(shown_wait(&shown, "true values", true, 10) >= 0);
    shown_settle(&shown);
    for (int tabs = 0; tabs < 8 && strcmp(shown_inks(&shown), inks) != 0; tabs++) {
        shown_type(&shown, "\t"); // the focus stays where it was
        shown_settle(&shown);
    }
    CHECK_TEXT(shown_text(&shown), before);
    CHECK_TEXT(shown_inks(&shown), inks);
    free(before);
    free(inks);
    end();
}

// q, ^C, ^Z and ^\ would end or stop it; the rest of what a keyboard and a mouse can send.
static size_t pick_input(char *out, size_t size) {
    static const char *const keys[] = {KEY_UP,    KEY_DOWN,   KEY_LEFT, KEY_RIGHT, "\x1b[5~",
                                       "\x1b[6~", "\x1bOH",   "\x1bOF", "\x1b[3~", "\x1b[Z",
                                       "\t",      "\r",       "\x1b",   "\x7f",    "\x0c",
                                       "\x1bOP",  "\xc3\xa9", "\xff"};
    int kind = below(10);
    if (kind < 4) {
        out[0] = (char)(' ' + below(95));
        return out[0] == 'q' ? 0 : 1;
    }
    if (kind < 7)
        return (size_t)snprintf(out, size, "%s", keys[below(sizeof keys / sizeof *keys)]);
    if (kind < 9)
        return (size_t)snprintf(out, size, "\x1b[<%d;%d;%d%c", (int[]){0, 64, 65, 2}[below(4)],
                                1 + below(shown.columns + 2), 1 + below(shown.rows + 2),
                                below(2) ? 'M' : 'm');
    out[0] = (char)(1 + below(31));
    return strchr("\x03\x1a\x1c\x11\x13", out[0]) ? 0 : 1;
}

static void keys_and_clicks_at_random_end_nothing(void) {
    const int count = getenv("MPBENCH_SOAK") ? 100000 : 3000;
    start(100, 30);
    for (int i = 0; i < count && !shown.ended; i++) {
        char input[64];
        shown_type_bytes(&shown, input, pick_input(input, sizeof input));
        if (i % 16 == 0)
            shown_pump(&shown, 0.005);
        if (i % 200 == 0) {
            int columns, rows;
            pick_size(&columns, &rows);
            shown_resize(&shown, columns, rows);
        }
        if (i % 500 == 0)
            shown_wait_end(&shown, 0);
    }
    shown_resize(&shown, 100, 30);
    shown_pump(&shown, 0.5);
    end();
}

// A copy of the program that has the recording, no experiments, and nothing to start.
static bool make_copy(void) {
    char command[600];
    snprintf(program, sizeof program, "%s/mpbench", folder);
    snprintf(experiments, sizeof experiments, "MPBENCH_EXPERIMENTS=%s", folder);
    snprintf(command, sizeof command, "cp experiments/demo.history.gz '%s'", folder);
    setenv("MPBENCH_REAL", getenv("MPBENCH"), 1);
    setenv("MPBENCH", program, 1);
    return system(command) == 0;
}

int main(void) {
    if (!make_place() || !make_copy())
        return 1;
    RUN_TEST(storms_of_sizes_leave_no_stray_cell);
    RUN_TEST(keys_and_clicks_at_random_end_nothing);
    return end_tests();
}
