// lua/watchdog.h: a thread that sees when a script no longer answers.
//
// It also looks, ten times a second, whether the run is to stop: a script that trains ends at its
// next step. One that makes none is interrupted, after a moment without engine work, or once two
// steps and no less than a second would have gone by. An engine call that goes on all the same is
// left where it is: it never comes back, and on_left ends the run.
//
// Lua's own instructions are interrupted by a hook; a C function of the library (a pattern that
// backtracks for ever) is not, and nothing inside the process can stop it. The watchdog counts the
// time that a Pulse shows a call in progress, no engine work, and either an interrupt pending or no
// beat; past the limit it calls on_stuck once. A script whose instructions are few and long (a gsub
// of 10 MB each) beats at every one: once it has been silent for a moment the watchdog pokes it,
// which has the next instruction looked at. Time in which the whole process was stopped does not
// count. The Pulse is written by the script's thread (the interrupt by anyone) and outlives the
// watchdog.
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct Pulse {
    _Atomic(const char *) interrupt; // why the script should end; NULL: nobody asked
    atomic_int calls;                // calls into Lua in progress
    atomic_int engine;               // engine calls in progress: legitimate work
    atomic_int patience;             // what must not be cut short either: a pause, a checkpoint
    atomic_bool left;                // the engine call in progress is not to come back
    atomic_uint engine_calls;        // engine calls that have ended
    atomic_uint beats;               // grows whenever the script shows that it is alive
    pthread_t thread;                // the script's, while calls are in progress
} Pulse;

// The signal that pokes a script's thread. Its usual effect is none.
#define WATCHDOG_SIGNAL SIGURG

typedef struct WatchdogLimits {
    double answer_seconds; // with an interrupt pending; negative: no limit
    double stuck_seconds;  // without a beat; negative: no limit
} WatchdogLimits;

// What the watchdog asks and tells. Both are called on its thread; NULL for the defaults.
typedef struct WatchdogCalls {
    void (*on_stuck)(void *context, const char *why); // a line on standard error, and the end
    bool (*stop_wanted)(void *context);               // never
    double (*step_seconds)(void *context);            // how long a step takes: unknown
    void (*on_left)(void *context);                   // engine calls are waited for
    void *context;
} WatchdogCalls;

typedef struct Watchdog Watchdog;

Watchdog *watchdog_new(Pulse *pulse, WatchdogLimits limits, const WatchdogCalls *calls,
                       Error *error);
void watchdog_free(Watchdog *watchdog); // ends the thread; NULL is allowed
