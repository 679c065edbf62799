// cli/train/training.h: a training in the foreground, as run, resume and fork have it: signals,
// progress, the history, the result.
#pragma once

#include "cli/cli.h"
#include "run/run_checkpoint.h"

enum { STATUS_OF_SIGNALS = 128 };

// The first of SIGINT, SIGTERM and SIGHUP asks for the end, a second one is the end.
void training_catch_signals(void);

// Whether this precision is trained in on the device of this name (NULL, "auto": the best here),
// before anything is trained to find that out.
bool training_check_precision(const char *precision, const char *device, Error *error) MUST_CHECK;

// What --weights names; the caller's to safe_close.
SafeFile *training_open_weights(const char *path, Error *error) MUST_CHECK;

// Of LuaRunOptions, for who has nothing to keep: the end of a process whose other thread hangs in
// the script, so that nothing can be freed any more, or was left there by a signal.
void training_end_stuck(void *context, const Error *error);
void training_end_left(void *context);

// Who trains only to look, and prints something else than a run's result.
typedef struct TrainingWatch {
    void *context;
    void (*step)(void *context, Run *run);
    // It has ended, as it was meant to.
    bool (*report)(void *context, const Run *run, Error *error);
} TrainingWatch;

typedef struct TrainingPlan {
    const char *path;   // of the experiment
    Checkpoint *resume; // borrowed; NULL: from the start
    int64_t until;      // > 0: only to get there, unrecorded and untold, with a checkpoint kept
    const char *folder; // in this folder
    const TrainingWatch *watch; // NULL: none
    bool is_twin;               // what it has to say, the run beside it says
} TrainingPlan;

// Trains by cli->run. False with an error where it failed; cli->status where a signal ended it.
bool training_run(Cli *cli, const TrainingPlan *plan, Error *error) MUST_CHECK;
