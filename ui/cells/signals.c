#define _XOPEN_SOURCE 700 // SIGWINCH, stacks of handlers

#include "ui/cells/signals.h"

#include <errno.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

enum { STACK_SIZE = 64 * 1024 };

static struct {
    volatile sig_atomic_t taken; // the terminal is ours now
    struct termios before;
    const char *restore; // bytes that leave the screen
    size_t restore_length;
    volatile sig_atomic_t end_signal;
    volatile sig_atomic_t stop_asked; // by ^Z
    volatile sig_atomic_t resized;
} kept;

static const int fatal_signals[] = {SIGSEGV, SIGBUS,  SIGFPE, SIGILL,  SIGABRT,
                                    SIGQUIT, SIGTRAP, SIGSYS, SIGXCPU, SIGXFSZ};
static const int end_signals[] = {SIGINT, SIGTERM, SIGHUP};
enum {
    FATAL_SIGNALS = sizeof fatal_signals / sizeof *fatal_signals,
    END_SIGNALS = sizeof end_signals / sizeof *end_signals,
};

// Async-signal-safe.
static void give_back(void) {
    if (!kept.taken)
        return;
    kept.taken = 0;
    for (size_t done = 0; done < kept.restore_length;) {
        ssize_t written = write(STDOUT_FILENO, kept.restore + done, kept.restore_length - done);
        if (written < 0 && errno != EINTR)
            break;
        done += written > 0 ? (size_t)written : 0;
    }
    tcsetattr(STDIN_FILENO, TCSANOW, &kept.before);
}

static void on_fatal(int number) {
    give_back();
    signal(number, SIG_DFL);
    raise(number);
}

static void on_end(int number) {
    if (kept.end_signal) // nobody listened the first time
        on_fatal(number);
    kept.end_signal = number;
}

static void on_stop(int number) {
    (void)number;
    kept.stop_asked = 1;
}

static void on_resize(int number) {
    (void)number;
    kept.resized = 1;
}

bool signals_keep(const char *bytes, size_t length) {
    kept.restore = bytes;
    kept.restore_length = length;
    return tcgetattr(STDIN_FILENO, &kept.before) == 0;
}

// Where nobody can bring a program back, shells have the stop ignored, and so it stays. ncurses
// drops what comes while it draws; its own handlers are not set where there are others.
void signals_catch_stops(void) {
    struct sigaction action = {.sa_handler = on_stop}, before;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGTSTP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGTSTP, &action, NULL);
    action.sa_handler = on_resize;
    sigaction(SIGWINCH, &action, NULL);
}

void signals_catch_ends(void) {
    static char stack[STACK_SIZE];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    kept.taken = 1;
    kept.end_signal = 0;
    sigaltstack(&alternate, NULL);
    struct sigaction action = {.sa_handler = on_fatal, .sa_flags = SA_ONSTACK | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < FATAL_SIGNALS; i++)
        sigaction(fatal_signals[i], &action, NULL);
    action = (struct sigaction){.sa_handler = on_end, .sa_flags = SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < END_SIGNALS; i++)
        sigaction(end_signals[i], &action, NULL);
}

void signals_release(void) {
    give_back(); // what a lost terminal left half done
    for (int i = 0; i < FATAL_SIGNALS; i++)
        signal(fatal_signals[i], SIG_DFL);
    for (int i = 0; i < END_SIGNALS; i++)
        signal(end_signals[i], SIG_DFL);
    if (signal(SIGTSTP, SIG_DFL) == SIG_IGN)
        signal(SIGTSTP, SIG_IGN);
    signal(SIGWINCH, SIG_DFL);
}

static bool take(volatile sig_atomic_t *note) {
    bool is_noted = *note;
    *note = 0;
    return is_noted;
}

bool signals_take_stop(void) {
    return take(&kept.stop_asked);
}

bool signals_take_size(void) {
    return take(&kept.resized);
}

int signals_end(void) {
    return kept.end_signal;
}
