// run/run_private.h: what the files of run/ share and nobody else sees.
#pragma once

#include "run/run.h"

enum { RUN_MAX_PENDING = 256, RUN_SKIPS_AT_FLOOR = 20 };

typedef struct PendingPoint { // logged, not read yet
    int series;
    int64_t step; // steps that had ended when it was logged
    Tensor *value;
} PendingPoint;

typedef struct WatchedOptimizer { // what its counters said at the last boundary
    const Optimizer *optimizer;
    uint64_t applied, skipped;
} WatchedOptimizer;

typedef struct SkippedStep { // told of a step later, when its loss is known too
    int64_t step;            // 0: none waits
    int in_a_row;
    double scale, scale_after;
    bool has_scale;
    char culprit[RUN_NAME_SIZE];
} SkippedStep;

typedef struct RunState { // a Run is the first member of one
    Run run;
    PendingPoint pending[RUN_MAX_PENDING];
    int pending_count;
    WatchedOptimizer watched[RUN_MAX_OPTIMIZERS];
    const Scaler *watched_scaler;
    SkippedStep waiting;
    int64_t loss_step, bad_loss_step; // last points of the loss: any, and one that was not finite
    double clock_from;                // when the clock last began to run
    bool clock_runs;
    double first_step_seconds; // on the clock: it made primitives and filled caches
    bool reached_limit;
} RunState;

static inline RunState *run_state(Run *run) {
    return (RunState *)run;
}

void run_copy_text(char *out, size_t size, const char *text);
// The clock of the steps, up to now.
double run_clock(const Run *run);
// Reads pending points logged before `step`.
void run_read_pending(RunState *state, int64_t step);
void run_drop_pending(RunState *state);
// Tells the observer of the skipped step that waits.
void run_tell_skip(RunState *state);

// What can be seen at a boundary, told once (precision.md §7).
void run_check_setup(RunState *state);     // after the first step
void run_check_underflow(RunState *state); // of gradients that nothing scales
void run_check_loss(RunState *state, const char *series, double value, int64_t step);
void run_check_steps(RunState *state); // at the end: was anything trained that no step counted?
