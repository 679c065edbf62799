#include "cli/train/child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/stops.h"
#include "run/run.h"

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { SIGNALS = sizeof signals / sizeof *signals };

// A handler has no other way to say so than a variable of the program.
static volatile sig_atomic_t signal_count;

static void on_signal(int number) {
    if (signal_count == 2)
        _exit(128 + number);
    signal_count = signal_count + 1;
    run_request_stop(number);
}

static void set_signals(void (*handler)(int), void (*pipe_handler)(int)) {
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < SIGNALS; i++)
        sigaddset(&action.sa_mask, signals[i]);
    for (int i = 0; i < SIGNALS; i++)
        sigaction(signals[i], &action, NULL);
    // Whoever read our output may go: that ends no training.
    action.sa_handler = pipe_handler;
    sigaction(SIGPIPE, &action, NULL);
}

void child_catch_signals(void) {
    set_signals(on_signal, SIG_IGN);
}

int child_signals(void) {
    return signal_count;
}

// Whether it stands still or has ended; whoever waits for its end still learns of that.
static bool stands_still(pid_t process) {
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)process, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid == process;
}

void child_send(const pid_t *processes, int count, int number) {
    for (int i = 0; i < count; i++)
        kill(processes[i], number);
}

// One that has only just been started, or is only just going on, may lose a signal: it is sent
// again.
void child_heed_stop(const pid_t *processes, int count) {
    enum { MOST_TURNS = 200 };
    const struct timespec turn = {.tv_nsec = 10 * 1000 * 1000};
    if (!stops_are_wanted())
        return;
    int turns = 0;
    for (int i = 0; i < count; i++)
        for (; turns < MOST_TURNS && !stands_still(processes[i]); turns++) {
            child_send(processes + i, count - i, SIGTSTP);
            nanosleep(&turn, NULL);
        }
    stops_let(); // here we stop; once more, if that is asked for before they go on
    stops_hold();
    child_send(processes, count, SIGCONT);
}

bool child_start(char *const *arguments, pid_t *process, Error *error) {
    fflush(NULL);
    sigset_t ours, before;
    sigemptyset(&ours);
    for (int i = 0; i < SIGNALS; i++)
        sigaddset(&ours, signals[i]);
    // A signal waits until the child is among those it is passed on to, and never meets our handler
    // in the child: there it would be lost.
    sigprocmask(SIG_BLOCK, &ours, &before);
    pid_t parent = getpid(), child = fork();
    if (child > 0)
        *process = child;
    int code = errno;
    if (child == 0)
        set_signals(SIG_DFL, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (child < 0)
        return error_fail(error, ERROR_FAILED, "a run cannot be started: %s%s", error_cause(code),
                          error_remedy(code));
    if (child == 0) {
        setpgid(0, 0);
        // Also where we ended before it asked. When we die while it stands still the kernel sends
        // its group, of which nobody is left, SIGHUP and SIGCONT: the same signal twice arrives
        // once, and asks for the end once.
        if (prctl(PR_SET_PDEATHSIG, SIGHUP) != 0 || getppid() != parent)
            _exit(127);
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "r", stdin))
            _exit(127);
        execv("/proc/self/exe", arguments);
        _exit(127);
    }
    return true;
}
