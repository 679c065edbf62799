#include "lua/watchdog.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static const double tick_seconds = 0.1, unheeded_limit = 0.5, least_grace = 1, most_grace = 60,
                    poke_after = 0.3;

struct Watchdog {
    Pulse *pulse;
    WatchdogLimits limits;
    WatchdogCalls calls;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool ending; // under lock
};

// No run to mark and nobody to tell: say it and end, as nothing else can end that call.
static void end_process(void *context, const char *why) {
    (void)context;
    char line[256];
    int length = snprintf(line, sizeof line, "mpbench: %s\n", why);
    if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0)
        _exit(1);
    _exit(1);
}

// Seconds for which the script has been silent, in its two kinds.
typedef struct Silence {
    double unanswered, without_beat;
    unsigned beats;
    double wanted;   // a stop is
    double unheeded; // the same, with no engine work since
    double in_call;  // one engine call, with an interrupt pending
    unsigned engine_calls;
} Silence;

static void observe(Silence *silence, Pulse *pulse, double seconds) {
    unsigned beats = atomic_load(&pulse->beats);
    bool running = atomic_load(&pulse->calls) > 0;
    bool at_work = atomic_load(&pulse->engine) > 0 || atomic_load(&pulse->patience) > 0;
    if (!running || beats != silence->beats || at_work)
        silence->without_beat = 0;
    else
        silence->without_beat += seconds;
    silence->beats = beats;
    if (!running || !atomic_load(&pulse->interrupt))
        silence->unanswered = 0;
    else if (!at_work)
        silence->unanswered += seconds;
    if (silence->without_beat >= poke_after || silence->unanswered > 0)
        pthread_kill(pulse->thread, WATCHDOG_SIGNAL);
}

// How long a script that trains may take to come to the end of a step.
static double grace(const WatchdogCalls *calls) {
    double two_steps = calls->step_seconds ? 2 * calls->step_seconds(calls->context) : 0;
    return two_steps < least_grace ? least_grace : two_steps > most_grace ? most_grace : two_steps;
}

// Interrupts a script that does not come to the end of a step by itself.
static void heed_stop(Silence *silence, Watchdog *watchdog, double seconds) {
    Pulse *pulse = watchdog->pulse;
    const WatchdogCalls *calls = &watchdog->calls;
    unsigned engine_calls = atomic_load(&pulse->engine_calls);
    bool idle = engine_calls == silence->engine_calls && atomic_load(&pulse->engine) == 0;
    bool wanted = atomic_load(&pulse->calls) > 0 && atomic_load(&pulse->patience) == 0 &&
                  calls->stop_wanted && calls->stop_wanted(calls->context);
    silence->wanted = wanted ? silence->wanted + seconds : 0;
    silence->unheeded = wanted && idle ? silence->unheeded + seconds : 0;
    bool same_call = atomic_load(&pulse->interrupt) && atomic_load(&pulse->engine) > 0 &&
                     engine_calls == silence->engine_calls;
    silence->in_call = same_call ? silence->in_call + seconds : 0;
    silence->engine_calls = engine_calls;
    const char *none = NULL;
    if (silence->unheeded >= unheeded_limit || (wanted && silence->wanted >= grace(calls)))
        atomic_compare_exchange_strong(&pulse->interrupt, &none, "the run was asked to stop");
}

// From here on the engine call in progress does not come back. False: it just has.
static bool leave_call(const Silence *silence, Pulse *pulse) {
    atomic_store(&pulse->left, true);
    // Whoever ends a call counts it, then looks: one of the two sees the other.
    if (atomic_load(&pulse->engine) > 0 &&
        atomic_load(&pulse->engine_calls) == silence->engine_calls)
        return true;
    atomic_store(&pulse->left, false);
    return false;
}

// Fills `why` and is true when a limit has passed.
static bool is_stuck(const Silence *silence, const Watchdog *watchdog, char *why, size_t size) {
    const WatchdogLimits *limits = &watchdog->limits;
    const char *reason = atomic_load(&watchdog->pulse->interrupt);
    if (limits->answer_seconds >= 0 && silence->unanswered >= limits->answer_seconds && reason) {
        snprintf(why, size,
                 "the script has not ended within %g s (%s): a library call in it does "
                 "not return, so the process ends",
                 limits->answer_seconds, reason);
        return true;
    }
    if (limits->stuck_seconds >= 0 && silence->without_beat >= limits->stuck_seconds) {
        snprintf(why, size,
                 "a library call in the script has not returned for %g s (a pattern that "
                 "backtracks?), so the process ends",
                 limits->stuck_seconds);
        return true;
    }
    return false;
}

static void *watch(void *argument) {
    Watchdog *watchdog = argument;
    Silence silence = {0};
    bool told = false;
    double last = clock_seconds();
    pthread_mutex_lock(&watchdog->lock);
    while (!watchdog->ending) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += (long)(tick_seconds * 1e9);
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&watchdog->wake, &watchdog->lock, &until);
        double now = clock_seconds(), passed = now - last;
        last = now;
        // A process that was stopped or starved for long has not been silent for so long.
        passed = passed > 2 * tick_seconds ? 2 * tick_seconds : passed;
        observe(&silence, watchdog->pulse, passed);
        heed_stop(&silence, watchdog, passed);
        if (!told && silence.in_call >= unheeded_limit && watchdog->calls.on_left &&
            leave_call(&silence, watchdog->pulse)) {
            told = true;
            watchdog->calls.on_left(watchdog->calls.context);
        }
        char why[256];
        if (!told && !watchdog->ending && is_stuck(&silence, watchdog, why, sizeof why)) {
            told = true;
            watchdog->calls.on_stuck(watchdog->calls.context, why);
        }
    }
    pthread_mutex_unlock(&watchdog->lock);
    return NULL;
}

// Signals belong to the program's own threads, not to this one.
static int start_thread(Watchdog *watchdog) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&watchdog->thread, NULL, watch, watchdog);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

Watchdog *watchdog_new(Pulse *pulse, WatchdogLimits limits, const WatchdogCalls *calls,
                       Error *error) {
    Watchdog *watchdog = malloc(sizeof *watchdog);
    if (!watchdog) {
        error_fail(error, ERROR_MEMORY, "no memory for the script's watchdog");
        return NULL;
    }
    *watchdog = (Watchdog){.pulse = pulse, .limits = limits, .calls = *calls};
    if (!watchdog->calls.on_stuck)
        watchdog->calls.on_stuck = end_process;
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&watchdog->wake, &steady);
    pthread_condattr_destroy(&steady);
    pthread_mutex_init(&watchdog->lock, NULL);
    int failed = start_thread(watchdog);
    if (failed) {
        error_fail(error, ERROR_FAILED, "cannot start the script's watchdog thread: %s%s",
                   error_cause(failed), error_remedy(failed));
        pthread_cond_destroy(&watchdog->wake);
        pthread_mutex_destroy(&watchdog->lock);
        free(watchdog);
        return NULL;
    }
    return watchdog;
}

void watchdog_free(Watchdog *watchdog) {
    if (!watchdog)
        return;
    pthread_mutex_lock(&watchdog->lock);
    watchdog->ending = true;
    pthread_cond_signal(&watchdog->wake);
    pthread_mutex_unlock(&watchdog->lock);
    pthread_join(watchdog->thread, NULL);
    pthread_cond_destroy(&watchdog->wake);
    pthread_mutex_destroy(&watchdog->lock);
    free(watchdog);
}
