// How the screen behaves towards the terminal: it gives it back however it ends, refuses what it
// cannot use, stands aside for ^Z, and ends when the terminal is gone.
#define _GNU_SOURCE // memmem

#include <signal.h>
#include <sys/wait.h>

#include "tests/screen/place.h"

static const char *const demo[] = {"--demo", NULL};

static void start_demo(void) {
    open_demo();
    CHECK(shown.is_alternate);
    CHECK(!shown.shows_cursor);
    CHECK(shown.has_mouse);
}

static void check_given_back(void) {
    char why[200];
    bool is_back = shown_is_given_back(&shown, why, sizeof why);
    CHECK_MESSAGE(is_back, "%s", why);
}

// ---- ends ---------------------------------------------------------------------------------------

static void quitting_gives_the_terminal_back(void) {
    start_demo();
    shown_type(&shown, "q");
    CHECK(shown_wait_end(&shown, 10));
    CHECK(WIFEXITED(shown.status) && WEXITSTATUS(shown.status) == 0);
    check_given_back();
    shown_free(&shown);
}

static void check_fatal(int number) {
    start_demo();
    kill(shown.program, number);
    CHECK_MESSAGE(shown_wait_end(&shown, 10), "signal %d did not end it", number);
    // A sanitizer's own report ends some of them otherwise.
    CHECK_MESSAGE(WIFSIGNALED(shown.status) ? WTERMSIG(shown.status) == number
                                            : WEXITSTATUS(shown.status) != 0,
                  "signal %d: status %x", number, (unsigned)shown.status);
    check_given_back();
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
        start_demo();
        kill(shown.program, signals[i]);
        CHECK_MESSAGE(shown_wait_end(&shown, 10), "signal %d did not end it", signals[i]);
        CHECK_MESSAGE(WIFEXITED(shown.status) && WEXITSTATUS(shown.status) == 128 + signals[i],
                      "signal %d: status %x", signals[i], (unsigned)shown.status);
        check_given_back();
        shown_free(&shown);
    }
}

static void the_interrupt_key_ends_it(void) {
    start_demo();
    shown_type(&shown, "\x03");
    CHECK(shown_wait_end(&shown, 10));
    CHECK_INT(WEXITSTATUS(shown.status), 128 + SIGINT);
    check_given_back();
    shown_free(&shown);
}

static void stop_and_continue_come_back_right(void) {
    start_demo();
    char *before = strdup(shown_text(&shown));
    for (int round = 0; round < 3; round++) {
        shown_type(&shown, "\x1a");
        CHECK(shown_wait_stop(&shown, 10));
        check_given_back();
        shown_continue(&shown);
        expect("fashion-cnn-8");
        shown_settle(&shown);
        CHECK_TEXT(shown_text(&shown), before);
        CHECK(shown.is_alternate && shown.has_mouse);
    }
    shown_type(&shown, "1"); // and it listens
    expect("experiments");
    free(before);
    shown_type(&shown, "q");
    CHECK(shown_wait_end(&shown, 10));
    check_given_back();
    shown_free(&shown);
}

// In the middle of reading and drawing, which a replay does all the time.
static void it_can_be_stopped_at_any_moment(void) {
    const int rounds = getenv("MPBENCH_SOAK") ? 500 : 25;
    const char *environment[] = {NULL};
    shown_start(&shown, 120, 36, environment, demo);
    expect("r pauses");
    for (int i = 0; i < rounds && !test_why[0]; i++) {
        shown_pump(&shown, 0.01 * (i % 7)); // pictures come every 0.1 s
        shown_type(&shown, "\x1a");
        CHECK_MESSAGE(shown_wait_stop(&shown, 5), "it did not stop, in round %d", i);
        check_given_back();
        shown_continue(&shown);
        expect("fashion-cnn-8");
        if (i % 5 == 4)
            shown_type(&shown, "Gr"); // from its start again
    }
    shown_free(&shown);
}

static void a_terminal_that_goes_away_ends_it(void) {
    start_demo();
    close(shown.other_side);
    close(shown.terminal);
    shown.terminal = shown.other_side = -1;
    CHECK(shown_wait_end(&shown, 10));
    shown_free(&shown);
}

// ---- what the terminal says ---------------------------------------------------------------------

static const char *const white = "BACKGROUND=ffff/ffff/ffff";

static void start_with(const char *first, const char *second, const char *third) {
    static char config[96];
    snprintf(config, sizeof config, "XDG_CONFIG_HOME=%s", folder); // where what is turned is kept
    const char *environment[] = {
        "MPBENCH_SCREEN_CLOCK=" SCREEN_CLOCK, config, first, second, third, NULL};
    unlink(path_of("mpbench/config.lua"));
    shown_start(&shown, 100, 30, environment, demo);
    expect("fashion-cnn-8");
    shown_settle(&shown);
}

// Every cell has an ink of the theme that suits the background; a cell of the other would be '?'.
static void check_inks(void) {
    const char *inks = shown_inks(&shown);
    CHECK_MESSAGE(strchr(inks, 'S') && strchr(inks, 'd') && !strchr(inks, '?'), "inks:\n%s", inks);
}

static void a_light_background_gets_the_light_theme(void) {
    start_with(white, NULL, NULL);
    check_inks();
    quit();
    start_with(white, "COLORTERM=truecolor", NULL);
    check_inks();
    quit();
    start_with("BACKGROUND=1212/1515/1c1c", "COLORFGBG=0;15", NULL); // the answer counts
    check_inks();
    quit();
}

static bool wrote(const char *bytes) {
    return memmem(shown.raw, shown.raw_size, bytes, strlen(bytes)) != NULL;
}

static void colorfgbg_counts_where_nobody_answers(void) {
    start_with("COLORFGBG=0;15", NULL, NULL);
    CHECK(wrote("38;5;94m")); // fp16 on white
    CHECK(!wrote("38;5;178m"));
    quit();
}

static void colours_are_true_where_the_terminal_says_so(void) {
    start_with("COLORTERM=truecolor", NULL, NULL);
    CHECK(wrote("38;2;230;159;0m"));
    check_inks();
    quit();
    start_with("COLORTERM=24bit", "TERM=xterm", NULL); // whose description knows eight
    CHECK(wrote("38;2;230;159;0m"));
    quit();
    start_with("COLORTERM=truecolor", "TERM=screen-256color", NULL); // handed on from around it
    CHECK(!wrote("38;2;"));
    quit();
    start_with("COLORTERM=truecolor", "NO_COLOR=1", NULL);
    CHECK(!wrote("38;2;") && !wrote("38;5;"));
    quit();
    start_with("COLORTERM=", NULL, NULL);
    CHECK(!wrote("38;2;") && wrote("38;5;178m"));
    quit();
}

static void the_page_of_settings_turns_background_and_colours(void) {
    start_with(white, NULL, NULL);
    press("O", "how many the screen uses");
    shown_type(&shown, KEY_DOWN KEY_RIGHT); // 16 million
    expect("16 million");
    shown_settle(&shown);
    CHECK(wrote("38;2;138;80;0m"));
    shown_type(&shown, KEY_DOWN KEY_RIGHT); // dark
    shown_settle(&shown);
    CHECK(wrote("38;2;230;159;0m"));
    leave();
}

// The answer comes late and in pieces: none of it is a key, what is typed around it is not lost,
// and the colours are chosen then.
static void a_late_answer_is_no_key_and_eats_none(void) {
    start_with("BACKGROUND=", NULL, NULL);
    shown_type(&shown, "1\x1b]11;rgb:ff");
    expect("experiments");
    shown_settle(&shown);
    char *before = strdup(shown_text(&shown));
    CHECK(!wrote("38;5;94m"));
    shown_pump(&shown, 0.3);
    shown_type(&shown, "ff/ffff/ffff\x1b\\\x1b[?64c");
    shown_settle(&shown);
    CHECK(wrote("38;5;94m"));
    CHECK_TEXT(shown_text(&shown), before);
    free(before);
    press("4", "flushed");
    quit();
}

// At each of its bytes: m, 1 and 4 would start trainings and go to other screens.
static void a_report_cut_in_two_presses_no_key(void) {
    static const char report[] = "\x1b[<0;14;11m";
    start_with(NULL, NULL, NULL);
    shown_type(&shown, "1");
    expect("experiments");
    shown_settle(&shown);
    char *before = strdup(shown_text(&shown));
    for (size_t cut = 2; cut < sizeof report - 1; cut++) {
        shown_type_bytes(&shown, report, cut);
        shown_pump(&shown, 0.2);
        shown_type_bytes(&shown, report + cut, sizeof report - 1 - cut);
        shown_pump(&shown, 0.1);
        CHECK_TEXT(shown_text(&shown), before);
    }
    free(before);
    quit();
}

// The first byte of text that came outside of what is held and shown at once; NULL: there is none.
static const char *find_torn(const char *bytes, const char *end) {
    bool is_held = false;
    while (bytes < end) {
        if (*bytes != '\x1b') {
            if (!is_held && (unsigned char)*bytes >= ' ')
                return bytes;
            bytes++;
            continue;
        }
        const char *start = bytes++;
        if (bytes < end && strchr("()", *bytes)) // of a set of characters
            bytes++;
        else if (bytes < end && *bytes == '[')
            bytes += strspn(bytes + 1, "?;0123456789") + 1;
        else if (bytes < end && *bytes == ']')
            while (bytes < end && *bytes != '\\')
                bytes++;
        bytes++;
        if (bytes - start == 8 && memcmp(start, "\x1b[?2026", 7) == 0)
            is_held = start[7] == 'h';
    }
    return NULL;
}

static void pictures_come_whole(void) {
    start_with(NULL, NULL, NULL);
    press("4", "flushed");
    press("?", "esc closes");
    press("\x1b", "flushed");
    shown_resize(&shown, 90, 28);
    press("\x1bOP", "experiments"); // F1
    shown_settle(&shown);
    const char *torn = find_torn(shown.raw, shown.raw + shown.raw_size);
    CHECK_MESSAGE(!torn, "text outside of a picture: %.60s", torn ? torn : "");
    CHECK(wrote("\x1b[?2026h") && wrote("\x1b[?2026l"));
    quit();
}

// ---- refusals -----------------------------------------------------------------------------------

static void check_refused(const char *setting, const char *why) {
    const char *environment[] = {setting, NULL};
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
                                 NULL};
    shown_start(&shown, 80, 24, environment, demo);
    expect("fashion-cnn-8");
    shown_settle(&shown);
    for (const char *text = shown_text(&shown); *text; text++)
        CHECK_MESSAGE((unsigned char)*text < 0x80, "byte %#x", (unsigned char)*text);
    CHECK(!wrote("\x1b[?2026"));
    shown_type(&shown, "q");
    CHECK(shown_wait_end(&shown, 10));
    CHECK_CONTAINS(shown_text(&shown), "q quit\n\n"); // where a shell's prompt has its own row
    CHECK(!wrote("$<"));                              // the sign of a delay
    shown_free(&shown);
}

// Grey is the eighth after black, and as such would be black.
static void eight_colours_leave_nothing_black(void) {
    start_with("TERM=xterm", "COLORTERM=", NULL);
    CHECK(wrote("\x1b[36m") && wrote("\x1b[0;2m"));
    CHECK(!wrote("\x1b[30m") && !wrote(";30m"));
    quit();
}

int main(void) {
    if (!make_place())
        return 1;
    RUN_TEST(quitting_gives_the_terminal_back);
    RUN_TEST(each_fatal_signal_gives_the_terminal_back);
    RUN_TEST(signals_that_end_say_so_in_the_status);
    RUN_TEST(the_interrupt_key_ends_it);
    RUN_TEST(stop_and_continue_come_back_right);
    RUN_TEST(it_can_be_stopped_at_any_moment);
    RUN_TEST(a_terminal_that_goes_away_ends_it);
    RUN_TEST(a_light_background_gets_the_light_theme);
    RUN_TEST(colorfgbg_counts_where_nobody_answers);
    RUN_TEST(colours_are_true_where_the_terminal_says_so);
    RUN_TEST(the_page_of_settings_turns_background_and_colours);
    RUN_TEST(a_late_answer_is_no_key_and_eats_none);
    RUN_TEST(a_report_cut_in_two_presses_no_key);
    RUN_TEST(pictures_come_whole);
    RUN_TEST(terminals_that_cannot_are_refused);
    RUN_TEST(eight_colours_leave_nothing_black);
    RUN_TEST(old_terminals_are_served);
    return end_tests();
}
