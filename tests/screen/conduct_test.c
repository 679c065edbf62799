// How the screen behaves towards the terminal: it gives it back however it ends, refuses what it
// cannot use, stands aside for ^Z, and ends when the terminal is gone.
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
    const char *environment[] = {"XDG_CONFIG_HOME=/nonexistent", NULL};
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

// ---- refusals -----------------------------------------------------------------------------------

static void check_refused(const char *setting, const char *why) {
    const char *environment[] = {"XDG_CONFIG_HOME=/nonexistent", setting, NULL};
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
    shown_start(&shown, 80, 24, environment, demo);
    expect("fashion-cnn-8");
    shown_settle(&shown);
    for (const char *text = shown_text(&shown); *text; text++)
        CHECK_MESSAGE((unsigned char)*text < 0x80, "byte %#x", (unsigned char)*text);
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
    RUN_TEST(terminals_that_cannot_are_refused);
    RUN_TEST(old_terminals_are_served);
    return end_tests();
}
