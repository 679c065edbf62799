// How the screen behaves towards the terminal: it gives it back however it ends, refuses what it
// cannot use, stands aside for ^Z, ends when the terminal is gone, and lets no text from outside
// through.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/screen/history.h"
#include "tests/screen/shown.h"
#include "tests/test.h"

static char folder[64], temporary[80]; // what killed screens leave is left there
static const char *const usual[] = {"MPBENCH_SCREEN_CLOCK=" SCREEN_CLOCK,
                                    "XDG_CONFIG_HOME=/nonexistent", temporary, NULL};
static const char *const demo[] = {"--demo", NULL};

static const char *path_of(const char *name) {
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void start_demo(Shown *shown) {
    shown_start(shown, 100, 30, usual, demo);
    CHECK_MESSAGE(shown_wait(shown, "fashion-cnn-8", true, 20) >= 0, "the demo did not open:\n%s",
                  shown_text(shown));
    shown_settle(shown);
    CHECK(shown->is_alternate);
    CHECK(!shown->shows_cursor);
    CHECK(shown->has_mouse);
}

static void check_given_back(Shown *shown) {
    char why[200];
    bool is_back = shown_is_given_back(shown, why, sizeof why);
    CHECK_MESSAGE(is_back, "%s", why);
}

// ---- ends ---------------------------------------------------------------------------------------

static void quitting_gives_the_terminal_back(void) {
    Shown shown;
    start_demo(&shown);
    shown_type(&shown, "q");
    CHECK(shown_wait_end(&shown, 10));
    CHECK(WIFEXITED(shown.status) && WEXITSTATUS(shown.status) == 0);
    check_given_back(&shown);
    shown_free(&shown);
}

static void check_fatal(int number) {
    Shown shown;
    start_demo(&shown);
    kill(shown.program, number);
    CHECK_MESSAGE(shown_wait_end(&shown, 10), "signal %d did not end it", number);
    // A sanitizer's own report ends some of them otherwise.
    CHECK_MESSAGE(WIFSIGNALED(shown.status) ? WTERMSIG(shown.status) == number
                                            : WEXITSTATUS(shown.status) != 0,
                  "signal %d: status %x", number, (unsigned)shown.status);
    check_given_back(&shown);
    shown_free(&shown);
}

static void each_fatal_signal_gives_the_terminal_back(void) {
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGQUIT, SIGTRAP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        check_fatal(signals[i]);
}

static void signals_that_end_say_so_in_the_status(void) {
    static const int signals[] = {SIGTERM, SIGHUP, SIGINT};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        Shown shown;
        start_demo(&shown);
        kill(shown.program, signals[i]);
        CHECK_MESSAGE(shown_wait_end(&shown, 10), "signal %d did not end it", signals[i]);
        CHECK_MESSAGE(WIFEXITED(shown.status) && WEXITSTATUS(shown.status) == 128 + signals[i],
                      "signal %d: status %x", signals[i], (unsigned)shown.status);
        check_given_back(&shown);
        shown_free(&shown);
    }
}

static void the_interrupt_key_ends_it(void) {
    Shown shown;
    start_demo(&shown);
    shown_type(&shown, "\x03");
    CHECK(shown_wait_end(&shown, 10));
    CHECK_INT(WEXITSTATUS(shown.status), 128 + SIGINT);
    check_given_back(&shown);
    shown_free(&shown);
}

static void stop_and_continue_come_back_right(void) {
    Shown shown;
    start_demo(&shown);
    char *before = strdup(shown_text(&shown));
    for (int round = 0; round < 3; round++) {
        shown_type(&shown, "\x1a");
        CHECK(shown_wait_stop(&shown, 10));
        check_given_back(&shown);
        shown_continue(&shown);
        CHECK(shown_wait(&shown, "fashion-cnn-8", true, 10) >= 0);
        shown_settle(&shown);
        CHECK_TEXT(shown_text(&shown), before);
        CHECK(shown.is_alternate && shown.has_mouse);
    }
    shown_type(&shown, "1"); // and it listens
    CHECK(shown_wait(&shown, "experiments", true, 10) >= 0);
    free(before);
    shown_type(&shown, "q");
    CHECK(shown_wait_end(&shown, 10));
    check_given_back(&shown);
    shown_free(&shown);
}

// In the middle of reading and drawing, which a replay does all the time.
static void it_can_be_stopped_at_any_moment(void) {
    const int rounds = getenv("MPBENCH_SOAK") ? 500 : 25;
    const char *environment[] = {"XDG_CONFIG_HOME=/nonexistent", temporary, NULL};
    Shown shown;
    shown_start(&shown, 120, 36, environment, demo);
    CHECK(shown_wait(&shown, "r pauses", true, 20) >= 0);
    for (int i = 0; i < rounds && !test_why[0]; i++) {
        shown_pump(&shown, 0.01 * (i % 7)); // pictures come every 0.1 s
        shown_type(&shown, "\x1a");
        CHECK_MESSAGE(shown_wait_stop(&shown, 5), "it did not stop, in round %d", i);
        check_given_back(&shown);
        shown_continue(&shown);
        CHECK(shown_wait(&shown, "fashion-cnn-8", true, 10) >= 0);
        if (i % 5 == 4)
            shown_type(&shown, "Gr"); // from its start again
    }
    shown_free(&shown);
}

static void a_terminal_that_goes_away_ends_it(void) {
    Shown shown;
    start_demo(&shown);
    close(shown.other_side);
    close(shown.terminal);
    shown.terminal = shown.other_side = -1;
    double start = shown_clock();
    CHECK(shown_wait_end(&shown, 10));
    CHECK_MESSAGE(shown_clock() - start < 0.5 * test_patience(), "it took %.1f s",
                  shown_clock() - start);
    shown_free(&shown);
}

// ---- refusals -----------------------------------------------------------------------------------

static void check_refused(const char *setting, const char *why) {
    const char *environment[] = {"XDG_CONFIG_HOME=/nonexistent", setting, NULL};
    Shown shown;
    shown_start(&shown, 100, 30, environment, demo);
    CHECK_MESSAGE(shown_wait_end(&shown, 10), "%s: it goes on", setting);
    CHECK_INT(WEXITSTATUS(shown.status), 3);
    CHECK_CONTAINS(shown_text(&shown), why);
    CHECK_MESSAGE(!memchr(shown.raw, '\x1b', shown.raw_size), "%s: escapes were written", setting);
    shown_free(&shown);
}

static void terminals_that_cannot_are_refused(void) {
    check_refused("TERM", "TERM is not set");
    check_refused("TERM=", "TERM is not set");
    check_refused("TERM=dumb", "TERM is dumb");
    check_refused("TERM=nosuch-terminal", "nosuch-terminal");
}

static void old_terminals_are_served(void) {
    const char *environment[] = {"MPBENCH_SCREEN_CLOCK=" SCREEN_CLOCK, "TERM=vt100", "LC_ALL=POSIX",
                                 "XDG_CONFIG_HOME=/nonexistent", NULL};
    Shown shown;
    shown_start(&shown, 80, 24, environment, demo);
    CHECK(shown_wait(&shown, "fashion-cnn-8", true, 20) >= 0);
    shown_settle(&shown);
    for (const char *text = shown_text(&shown); *text; text++)
        CHECK_MESSAGE((unsigned char)*text < 0x80, "byte %#x", (unsigned char)*text);
    shown_type(&shown, "q");
    CHECK(shown_wait_end(&shown, 10));
    shown_free(&shown);
}

// ---- text from outside --------------------------------------------------------------------------

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    CHECK_MESSAGE(file && fputs(text, file) >= 0, "%s", path);
    if (file)
        fclose(file);
}

static bool contains(const Shown *shown, const char *attack) {
    size_t length = strlen(attack);
    for (size_t i = 0; i + length <= shown->raw_size; i++)
        if (memcmp(shown->raw + i, attack, length) == 0)
            return true;
    return false;
}

static void make_hostile_place(void) {
    Error error;
    const char *evil = path_of("evil\x1b[5mfolder");
    mkdir(evil, 0700);
    CHECK_MESSAGE(history_make_hostile(path_of("hostile.db"), &error), "%s", error.text);
    char script[600];
    snprintf(script, sizeof script, "%s/evil\x1b[5mname.lua", evil);
    write_text(script, "return mp.experiment{name='evil\27[5m', about='evil\27]0;T\7about',"
                       " params={['evil\27[5m']='evil\27[6n'}, train=function() end}\n");
    snprintf(script, sizeof script, "%s/evil\x1b]0;T\x07.lua", evil);
    write_text(script, "error('evil\27[5m\x1b[6n')\n");
}

static void no_text_from_outside_reaches_the_terminal(void) {
    static const char *const walks[] = {"?",
                                        "?",
                                        "\x1b",
                                        "e",
                                        "\x1b",
                                        " ",
                                        KEY_DOWN,
                                        " ",
                                        "t",
                                        "\x1b",
                                        "n",
                                        "\x1b",
                                        "d",
                                        "n",
                                        "/",
                                        "evil\x1b",
                                        "Y",
                                        "c",
                                        "?",
                                        "\x1b",
                                        "x",
                                        "b",
                                        "b",
                                        "\t",
                                        "z",
                                        "z",
                                        "\t",
                                        "z",
                                        "z",
                                        "Y",
                                        "1",
                                        "\r",
                                        "?",
                                        "\x1b",
                                        "v",
                                        "v",
                                        "v",
                                        "x",
                                        KEY_LEFT,
                                        "x",
                                        "\t",
                                        "z",
                                        "z",
                                        "\t",
                                        "z",
                                        KEY_DOWN,
                                        "z",
                                        "\t",
                                        "z",
                                        "z",
                                        "\t",
                                        "z",
                                        "z",
                                        "\t",
                                        "z",
                                        "z",
                                        "\t",
                                        "z",
                                        "z",
                                        " ",
                                        "s",
                                        "\x1b",
                                        "p",
                                        "S",
                                        "n",
                                        "e",
                                        "\x1b",
                                        "[",
                                        "[",
                                        "{",
                                        "Y",
                                        ":",
                                        "set layer.\t\t",
                                        "\x1b",
                                        ":",
                                        "open evil\r",
                                        "O",
                                        "\x1b",
                                        "1",
                                        "\t",
                                        KEY_DOWN,
                                        KEY_DOWN,
                                        "e",
                                        "\x1b",
                                        "\r",
                                        "\r",
                                        "\t",
                                        "\t",
                                        "e",
                                        "\x1b",
                                        "\x0c"};
    char folders[600], config[600], database[600];
    make_hostile_place();
    snprintf(folders, sizeof folders, "MPBENCH_EXPERIMENTS=%s", path_of("evil\x1b[5mfolder"));
    snprintf(config, sizeof config, "XDG_CONFIG_HOME=%s", path_of("evil\x1b[5mfolder"));
    snprintf(database, sizeof database, "MPBENCH_DB=%s", path_of("hostile.db"));
    const char *environment[] = {"MPBENCH_SCREEN_CLOCK=" SCREEN_CLOCK, folders, config, database,
                                 NULL};
    const char *const nothing[] = {NULL};
    const char *real = getenv("MPBENCH");
    char program[128], copy[600];
    snprintf(program, sizeof program, "%s/mpbench", folder);
    snprintf(copy, sizeof copy, "cp '%s' '%s'", real, program);
    for (int size = 0; size < 2; size++) {
        Shown shown;
        CHECK(system(copy) == 0);
        setenv("MPBENCH", program, 1);
        shown_start(&shown, size ? 160 : 80, size ? 50 : 24, environment, nothing);
        CHECK_MESSAGE(shown_wait(&shown, "evil", true, 20) >= 0, "%s", shown_text(&shown));
        unlink(program); // what the keys start ends at once
        setenv("MPBENCH", real, 1);
        for (size_t i = 0; i < sizeof walks / sizeof *walks; i++) {
            shown_type(&shown, walks[i]);
            shown_pump(&shown, 0.07);
        }
        CHECK_MESSAGE(!shown.ended, "it ended: %x\n%s", (unsigned)shown.status, shown_text(&shown));
        for (int i = 0; history_attacks[i]; i++)
            CHECK_MESSAGE(!contains(&shown, history_attacks[i]), "attack %d got through", i);
        CHECK(shown.raw_size < SHOWN_RAW_SIZE); // all of it was looked at
        shown_type(&shown, "\x1b");
        shown_pump(&shown, 0.2);
        shown_type(&shown, "\x1b\x1bq");
        shown_wait_end(&shown, 5);
        shown_free(&shown);
    }
}

// ---- settings -----------------------------------------------------------------------------------

static void settings_are_turned_and_kept(void) {
    char config[600];
    snprintf(config, sizeof config, "XDG_CONFIG_HOME=%s", path_of("config"));
    const char *environment[] = {"MPBENCH_SCREEN_CLOCK=" SCREEN_CLOCK, config, NULL};
    Shown shown;
    shown_start(&shown, 100, 30, environment, demo);
    CHECK(shown_wait(&shown, "─", true, 20) >= 0);
    shown_type(&shown, "O" KEY_LEFT); // characters: from auto back to ascii
    CHECK(shown_wait(&shown, "─", false, 5) >= 0);
    shown_type(&shown, "\x1b");
    CHECK(shown_wait(&shown, "kept in", true, 5) >= 0);
    shown_type(&shown, "q");
    CHECK(shown_wait_end(&shown, 10));
    shown_free(&shown);
    shown_start(&shown, 100, 30, environment, demo); // ASCII from the start
    CHECK(shown_wait(&shown, "fashion-cnn-8", true, 20) >= 0);
    CHECK(!strstr(shown_text(&shown), "─"));
    shown_type(&shown, "q");
    CHECK(shown_wait_end(&shown, 10));
    shown_free(&shown);
    write_text(path_of("config/mpbench/config.lua"), "frames = fast\n");
    shown_start(&shown, 100, 30, environment, demo);
    CHECK(shown_wait_end(&shown, 10));
    CHECK_INT(WEXITSTATUS(shown.status), 2);
    CHECK_CONTAINS(shown_text(&shown), "config.lua:1");
    shown_free(&shown);
}

// The step of "NNN/938" in the header; -1: there is none.
static int step_shown(const Shown *shown) {
    char header[512] = "";
    sscanf(shown_text(shown), "%511[^\n]", header);
    char *slash = strstr(header, "/938");
    while (slash && slash > header && slash[-1] >= '0' && slash[-1] <= '9')
        slash--;
    return slash ? atoi(slash) : -1;
}

static void the_demo_plays_pauses_and_stops_by_keys(void) {
    const char *environment[] = {"XDG_CONFIG_HOME=/nonexistent", temporary, NULL};
    Shown shown;
    shown_start(&shown, 120, 36, environment, demo);
    CHECK_MESSAGE(shown_wait(&shown, "replay 2×, r pauses", true, 20) >= 0, "%s",
                  shown_text(&shown));
    int begun = step_shown(&shown);
    shown_pump(&shown, 1);
    int later = step_shown(&shown); // 24 steps a second
    CHECK_MESSAGE(begun >= 0 && later - begun >= 8 && later - begun <= 40, "from %d to %d", begun,
                  later);
    shown_type(&shown, ")");
    CHECK(shown_wait(&shown, "replay 5×", true, 5) >= 0);
    shown_type(&shown, "r");
    CHECK(shown_wait(&shown, "replay 5× paused, r goes on", true, 5) >= 0);
    shown_settle(&shown);
    int paused = step_shown(&shown);
    size_t written = shown.written;
    shown_pump(&shown, 0.5);
    CHECK_INT(step_shown(&shown), paused);
    CHECK_INT(shown.written, written); // nothing is drawn
    shown_type(&shown, "r");
    CHECK(shown_wait(&shown, "r pauses", true, 5) >= 0);
    shown_type(&shown, "[");
    CHECK(shown_wait(&shown, "scrubbed, G shows the end", true, 5) >= 0);
    shown_type(&shown, "q");
    CHECK(shown_wait_end(&shown, 10));
    shown_free(&shown);
}

static void filters_that_find_nothing_say_what_is_right(void) {
    Shown shown;
    start_demo(&shown);
    shown_type(&shown, "1");
    CHECK(shown_wait(&shown, "experiments", true, 10) >= 0);
    shown_type(&shown, "/precision:fp17\r");
    CHECK(shown_wait(&shown, "no such precision; did you mean fp16", true, 5) >= 0);
    shown_type(&shown, "\x15"
                       "fp16\r"); // a bare word; the line stayed open
    CHECK(shown_wait(&shown, "/ fp16", true, 5) >= 0);
    CHECK(shown_wait(&shown, "baseline", false, 5) >= 0); // that one is in fp32
    CHECK_CONTAINS(shown_text(&shown), "mixed");
    shown_type(&shown, "q");
    CHECK(shown_wait_end(&shown, 10));
    shown_free(&shown);
}

static void the_demo_leaves_nothing_behind(void) {
    char place[600];
    mkdir(path_of("tmp"), 0700);
    snprintf(place, sizeof place, "TMPDIR=%s", path_of("tmp"));
    const char *environment[] = {"XDG_CONFIG_HOME=/nonexistent", place, NULL};
    Shown shown;
    shown_start(&shown, 100, 30, environment, demo);
    CHECK(shown_wait(&shown, "fashion-cnn-8", true, 20) >= 0);
    shown_type(&shown, "1" KEY_DOWN KEY_DOWN "tbrief\r");
    CHECK(shown_wait(&shown, "fashion-mlp bri", true, 5) >= 0);
    shown_type(&shown, "q");
    CHECK(shown_wait_end(&shown, 10));
    shown_free(&shown);
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
    const char *environment[] = {"XDG_CONFIG_HOME=/nonexistent", place, NULL};
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
    Shown shown;
    start_demo(&shown);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        shown_type(&shown, ways[i].where);
        CHECK(shown_wait(&shown, "nothing trains here", false, 10) >= 0);
        shown_settle(&shown);
        shown_type(&shown, ways[i].keys);
        CHECK_MESSAGE(shown_wait(&shown, "nothing trains here: q, then mpbench", true, 5) >= 0,
                      "%s is not refused:\n%s", ways[i].keys, shown_text(&shown));
    }
    shown_type(&shown, "q");
    CHECK(shown_wait_end(&shown, 10));
    shown_free(&shown);
}

static void remove_folder(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0)
        perror(folder);
}

int main(void) {
    const char *parent = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.40s/mpbench-XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(folder))
        return 1;
    snprintf(temporary, sizeof temporary, "TMPDIR=%s", folder);
    setenv("MPBENCH", "build/mpbench", 0);
    RUN_TEST(quitting_gives_the_terminal_back);
    RUN_TEST(each_fatal_signal_gives_the_terminal_back);
    RUN_TEST(signals_that_end_say_so_in_the_status);
    RUN_TEST(the_interrupt_key_ends_it);
    RUN_TEST(stop_and_continue_come_back_right);
    RUN_TEST(it_can_be_stopped_at_any_moment);
    RUN_TEST(a_terminal_that_goes_away_ends_it);
    RUN_TEST(terminals_that_cannot_are_refused);
    RUN_TEST(old_terminals_are_served);
    RUN_TEST(no_text_from_outside_reaches_the_terminal);
    RUN_TEST(settings_are_turned_and_kept);
    RUN_TEST(the_demo_plays_pauses_and_stops_by_keys);
    RUN_TEST(filters_that_find_nothing_say_what_is_right);
    RUN_TEST(the_demo_leaves_nothing_behind);
    RUN_TEST(what_a_killed_demo_leaves_the_next_one_clears_away);
    RUN_TEST(the_demo_trains_nothing);
    remove_folder();
    return test_end();
}
