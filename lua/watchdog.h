// lua/watchdog.h: a thread that sees when a script no longer answers.
//
// Lua's own instructions are interrupted by a hook; a C function of the library (a pattern that
// backtracks for ever) is not, and nothing inside the process can stop it. The watchdog counts the
// time that a Pulse shows a call in progress, no engine work, and either an interrupt pending or no
// beat; past the limit it calls on_stuck once. Time in which the whole process was stopped does not
// count. The Pulse is written by the script's thread (the interrupt by anyone) and outlives the
// watchdog.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/error.h"

typedef struct Pulse {
    _Atomic(const char *) interrupt; // why the script should end; NULL: nobody asked
    atomic_int calls;                // calls into Lua in progress
    atomic_int engine;               // engine calls in progress: legitimate work
    atomic_uint beats;               // grows whenever the script shows that it is alive
} Pulse;

typedef struct WatchdogLimits {
    double answer_seconds; // with an interrupt pending; negative: no limit
    double stuck_seconds;  // without a beat; negative: no limit
} WatchdogLimits;

typedef struct Watchdog Watchdog;

Watchdog *watchdog_new(const Pulse *pulse, WatchdogLimits limits,
                       void (*on_stuck)(void *context, const char *why), void *context,
                       Error *error);
void watchdog_free(Watchdog *watchdog); // ends the thread; NULL is allowed
