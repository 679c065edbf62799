// What can be tried on the demo: it plays, keeps settings, filters its runs, trains nothing, and
// leaves nothing behind.
#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/screen/place.h"

static const char *const demo[] = {"--demo", NULL};

// ---- settings -----------------------------------------------------------------------------------

static void settings_are_turned_and_kept(void) {
    char config[600];
    snprintf(config, sizeof config, "XDG_CONFIG_HOME=%s", path_of("turned"));
    const char *environment[] = {"MPBENCH_SCREEN_CLOCK=" SCREEN_CLOCK, config, NULL};
    shown_start(&shown, 100, 30, environment, demo);
    expect("─");
    shown_type(&shown, "O" KEY_LEFT); // characters: from auto back to ascii
    expect_gone("─");
    press("\x1b", "kept in");
    quit();
    shown_start(&shown, 100, 30, environment, demo); // ASCII from the start
    expect("fashion-cnn-8");
    CHECK(!strstr(shown_text(&shown), "─"));
    quit();
    write_text(path_of("turned/mpbench/config.lua"), "frames = fast\n");
    shown_start(&shown, 100, 30, environment, demo);
    CHECK(shown_wait_end(&shown, 10));
    CHECK_INT(WEXITSTATUS(shown.status), 2);
    CHECK_CONTAINS(shown_text(&shown), "config.lua:1");
    shown_free(&shown);
}

// That of another user, say. A link to itself nobody can read, root neither.
static void settings_that_cannot_be_read_are_as_none(void) {
    char config[600];
    snprintf(config, sizeof config, "XDG_CONFIG_HOME=%s", path_of("closed"));
    const char *environment[] = {"MPBENCH_SCREEN_CLOCK=" SCREEN_CLOCK, config, NULL};
    CHECK(mkdir(path_of("closed"), 0700) == 0 && mkdir(path_of("closed/mpbench"), 0700) == 0);
    CHECK(symlink("config.lua", path_of("closed/mpbench/config.lua")) == 0);
    shown_start(&shown, 120, 30, environment, demo);
    expect("your settings are left out");
    quit();
}

// ---- playing, filtering -------------------------------------------------------------------------

// The step of "NNN/938" in the header; -1: there is none.
static int step_shown(void) {
    char header[512] = "";
    sscanf(shown_text(&shown), "%511[^\n]", header);
    char *slash = strstr(header, "/938");
    while (slash && slash > header && slash[-1] >= '0' && slash[-1] <= '9')
        slash--;
    return slash ? atoi(slash) : -1;
}

static void the_demo_plays_pauses_and_stops_by_keys(void) {
    const char *environment[] = {NULL};
    shown_start(&shown, 120, 36, environment, demo);
    CHECK_MESSAGE(shown_wait(&shown, "replay 0.5×, r pauses", true, 20) >= 0, "%s",
                  shown_text(&shown));
    int begun = step_shown();
    shown_pump(&shown, 1);
    int later = step_shown(); // 28 steps a second
    CHECK_MESSAGE(begun >= 0 && later - begun >= 8 && later - begun <= 40, "from %d to %d", begun,
                  later);
    press(")", "replay 1×");
    press("r", "replay 1× paused, r goes on");
    shown_settle(&shown);
    int paused = step_shown();
    size_t written = shown.written;
    shown_pump(&shown, 0.5);
    CHECK_INT(step_shown(), paused);
    CHECK_INT(shown.written, written); // nothing is drawn
    press("r", "r pauses");
    press("[", "scrubbed, G shows the end");
    quit();
}

static void filters_that_find_nothing_say_what_is_right(void) {
    open_demo();
    press("1", "experiments");
    press("/precision:fp17\r", "no such precision; did you mean fp16");
    shown_type(&shown, "\x15"
                       "fp16\r"); // a bare word; the line stayed open
    expect("/ fp16 ");
    expect_gone("fashion-cnn ba"); // the baseline, in fp32
    expect_gone("did you mean");
    CHECK_CONTAINS(shown_text(&shown), "fashion-cnn mi"); // the mixed one
    quit();
}

// ---- what is left, what is refused --------------------------------------------------------------

static void the_demo_leaves_nothing_behind(void) {
    char place[600];
    mkdir(path_of("tmp"), 0700);
    snprintf(place, sizeof place, "TMPDIR=%s", path_of("tmp"));
    const char *environment[] = {place, NULL};
    shown_start(&shown, 100, 30, environment, demo);
    expect("fashion-cnn-8");
    press("1" KEY_DOWN KEY_DOWN "tbrief\r", "fashion-mlp br…");
    quit();
    CHECK_MESSAGE(rmdir(path_of("tmp")) == 0, "files are left in it");
}

static int count_folders(const char *path) {
    int count = 0;
    DIR *list = opendir(path);
    CHECK(list != NULL);
    for (const struct dirent *entry; list && (entry = readdir(list));)
        count += strncmp(entry->d_name, "mpbench-demo-", 13) == 0;
    if (list)
        closedir(list);
    return count;
}

static void what_a_killed_demo_leaves_the_next_one_clears_away(void) {
    char place[600], *tmp = strdup(path_of("tmp"));
    Shown killed, other, next;
    mkdir(tmp, 0700);
    snprintf(place, sizeof place, "TMPDIR=%s", tmp);
    const char *environment[] = {place, NULL};
    shown_start(&killed, 100, 30, environment, demo);
    CHECK(shown_wait(&killed, "fashion-cnn-8", true, 20) >= 0);
    kill(killed.program, SIGKILL);
    CHECK(shown_wait_end(&killed, 10));
    shown_free(&killed);
    CHECK_INT(count_folders(tmp), 1);
    shown_start(&other, 100, 30, environment, demo);
    CHECK(shown_wait(&other, "fashion-cnn-8", true, 20) >= 0);
    CHECK_INT(count_folders(tmp), 1); // its own
    shown_start(&next, 100, 30, environment, demo);
    CHECK(shown_wait(&next, "fashion-cnn-8", true, 20) >= 0);
    CHECK_INT(count_folders(tmp), 2); // one that is in use stays
    Shown *both[] = {&other, &next};
    for (int i = 0; i < 2; i++) {
        shown_type(both[i], "q");
        CHECK(shown_wait_end(both[i], 10));
        shown_free(both[i]);
    }
    CHECK_MESSAGE(rmdir(tmp) == 0, "files are left in it");
    free(tmp);
}

// Whatever would start a run or order one about is refused, with the way to begin for real.
static void the_demo_trains_nothing(void) {
    static const struct {
        const char *where, *keys;
    } ways[] = {{"1", "f"}, {"1", "m"}, {"1\t", "\r"}, {"2", "S"}, {"2", ":stop\r"}};
    open_demo();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        shown_type(&shown, ways[i].where);
        expect_gone("nothing trains here");
        shown_settle(&shown);
        CHECK(!strstr(shown_text(&shown), "enter train") && !strstr(shown_text(&shown), "matrix"));
        CHECK(!strstr(shown_text(&shown), "f start") && !strstr(shown_text(&shown), "S stop"));
        shown_type(&shown, ways[i].keys);
        CHECK_MESSAGE(shown_wait(&shown, "nothing trains here: q, then mpbench", true, 5) >= 0,
                      "%s is not refused:\n%s", ways[i].keys, shown_text(&shown));
    }
    quit();
}

int main(void) {
    if (!make_place())
        return 1;
    RUN_TEST(settings_are_turned_and_kept);
    RUN_TEST(settings_that_cannot_be_read_are_as_none);
    RUN_TEST(the_demo_plays_pauses_and_stops_by_keys);
    RUN_TEST(filters_that_find_nothing_say_what_is_right);
    RUN_TEST(the_demo_leaves_nothing_behind);
    RUN_TEST(what_a_killed_demo_leaves_the_next_one_clears_away);
    RUN_TEST(the_demo_trains_nothing);
    return end_tests();
}
