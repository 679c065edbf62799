// store/worker.h: which process trains a run, and whether it lives.
//
// A worker is known by a random token, the machine's boot id, its pid namespace, its pid and the
// moment that pid was started; it beats once a second, on a clock that neither stops in suspend nor
// jumps. Its run is running while beats come, stale while the process is there but silent, dead
// when the process is provably gone (another boot, no such pid, a pid started at another moment)
// or, where that cannot be told (another machine, another pid namespace), when no beat came for
// 5 s. A run that nobody took within 5 s of its making, or that was
// given back while it was still running, reads as dead too. Stale and dead are what readers see:
// nothing is written, so both are undone by the next beat.
#pragma once

#include <sys/types.h>

#include "store/store.h"

typedef struct WorkerId {
    char token[33], boot[40], host[65];
    int64_t pid_space;    // inode of its pid namespace; 0: unknown
    int64_t pid, started; // clock ticks after boot
} WorkerId;

bool worker_identify(WorkerId *worker, Error *error) MUST_CHECK; // of this process

// Takes the run: refused (ERROR_TAKEN) while another worker lives, taken over from one that is
// dead, whose unanswered orders are refused.
bool store_own_run(Store *store, int64_t run, const WorkerId *worker, Error *error) MUST_CHECK;
// Fails with ERROR_STOPPED when somebody else owns the run now.
bool store_beat(Store *store, int64_t run, const WorkerId *worker, Error *error) MUST_CHECK;
bool store_release_run(Store *store, int64_t run, const WorkerId *worker, Error *error) MUST_CHECK;

typedef enum WorkerLife { WORKER_NONE, WORKER_LIVE, WORKER_STALE, WORKER_DEAD } WorkerLife;

// `pid` gets that of a process that is provably the worker, else 0: nobody may signal another.
bool store_worker_life(Store *store, int64_t run, WorkerLife *life, pid_t *pid,
                       Error *error) MUST_CHECK;
// Whether a worker is there that may go on: live or stale. What needs the run for itself asks this,
// in the transaction in which it then acts.
bool store_is_trained(Store *store, int64_t run, bool *is_trained, Error *error) MUST_CHECK;
// ERROR_TAKEN, with the way out, where one is there.
bool store_refuse_living(Store *store, int64_t run, Error *error) MUST_CHECK;
