#include "base/stops.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"

// A signal handler has no other way to reach those who hold something.
static atomic_int held; // by threads
static _Thread_local int held_here;
static atomic_bool is_wanted, is_taken; // a stop; by a thread, which carries it out
static atomic_int stops;                // of the process, up to now
static _Atomic double stood_still;      // for so many seconds, before the one
static _Atomic double stands_since;     // that it is in since then; 0: it is in none
_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_BOOL_LOCK_FREE == 2 &&
                   ATOMIC_LLONG_LOCK_FREE == 2,
               "a handler uses them");

// The stop stays wanted until the process goes on: no other thread begins to hold something while
// this one is on its way. raise ends with the whole process stopped, kill would let us run on. Who
// comes here late, after it went on, would stop it once more.
static void stop_now(void) {
    if (atomic_exchange(&is_taken, true))
        return;
    if (atomic_load(&is_wanted)) {
        const double since = clock_seconds();
        atomic_store(&stands_since, since);
        raise(SIGSTOP);
        atomic_store(&stood_still, atomic_load(&stood_still) + clock_seconds() - since);
        atomic_store(&stands_since, 0);
        atomic_fetch_add(&stops, 1);
    }
    atomic_store(&is_wanted, false);
    atomic_store(&is_taken, false);
}

static void on_stop(int number) {
    (void)number;
    const int before = errno;
    atomic_store(&is_wanted, true);
    if (atomic_load(&held) == 0)
        stop_now();
    errno = before;
}

static void on_continue(int number) {
    (void)number;
    stops_forget();
}

void stops_put_off(void) {
    struct sigaction action = {.sa_handler = on_stop, .sa_flags = SA_RESTART}, before;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGTSTP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGTSTP, &action, NULL);
    action.sa_handler = on_continue;
    sigaction(SIGCONT, &action, NULL);
}

void stops_hold(void) {
    if (held_here++ > 0)
        return;
    atomic_fetch_add(&held, 1);
    while (atomic_load(&is_wanted)) {
        if (atomic_fetch_sub(&held, 1) == 1)
            stop_now();
        else // who holds something still stops us when that ends
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        atomic_fetch_add(&held, 1);
    }
}

void stops_let(void) {
    if (--held_here > 0)
        return;
    if (atomic_fetch_sub(&held, 1) == 1 && atomic_load(&is_wanted))
        stop_now();
}

bool stops_are_wanted(void) {
    return atomic_load(&is_wanted);
}

void stops_forget(void) {
    atomic_store(&is_wanted, false);
}

double stops_clock(void) {
    const double since = atomic_load(&stands_since);
    return (since > 0 ? since : clock_seconds()) - atomic_load(&stood_still);
}

int stops_count(void) {
    return atomic_load(&stops);
}
