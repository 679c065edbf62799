// lua/watchdog.h: a thread that sees when a script no longer answers.
//
// It also looks, ten times a second, whether the run is to stop: a script that trains ends at its
// next step, one that does not is interrupted after a moment without engine work.
//
// Lua's own instructions are interrupted by a hook; a C function of the library (a pattern that
// backtracks for ever) is not, and nothing inside the process can stop it. The watchdog counts the
// time that a Pulse shows a call in progress, no engine work, and either an interrupt pending or no
// beat; past the limit it calls on_stuck once. Time in which the whole process was stopped does not
// count. The Pulse is written by the script's thread (the interrupt by anyone) and outlives the
// watchdog.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct Pulse {
    _Atomic(const char *) interrupt; // why the script should end; NULL: nobody asked
    atomic_int calls;                // calls into Lua in progress
    atomic_int engine;               // engine calls in progress: legitimate work
    atomic_uint engine_calls;        // engine calls that have ended
    atomic_uint beats;               // grows whenever the script shows that it is alive
} Pulse;

typedef struct WatchdogLimits {
    double answer_seconds; // with an interrupt pending; negative: no limit
    double stuck_seconds;  // without a beat; negative: no limit
} WatchdogLimits;

// What the watchdog asks and tells. Both are called on its thread; NULL for the defaults.
typedef struct WatchdogCalls {
    void (*on_stuck)(void *context, const char *why); // a line on standard error, and the end
    bool (*stop_wanted)(void *context);               // never
    void *context;
} WatchdogCalls;

typedef struct Watchdog Watchdog;

Watchdog *watchdog_new(Pulse *pulse, WatchdogLimits limits, const WatchdogCalls *calls,
                       Error *error);
void watchdog_free(Watchdog *watchdog); // ends the thread; NULL is allowed
