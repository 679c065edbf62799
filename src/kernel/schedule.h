// kernel/schedule.h: the learning rate as a function of applied steps, computed where the count is
// (on the device). Inline and portable: every backend compiles the same function.
#pragma once

#include <math.h>
#include <stdint.h>

#include "base/kernel_inline.h"

typedef enum ScheduleKind {
    SCHEDULE_CONSTANT,
    SCHEDULE_LINEAR_WARMUP, // up from `start` over `warmup` steps, then linearly to 0 at `total`
    SCHEDULE_COSINE,        // up likewise, then a half cosine to `floor` at `total`
    SCHEDULE_STEP           // times `factor` every `every` steps
} ScheduleKind;

enum { SCHEDULE_KINDS = SCHEDULE_STEP + 1 };

typedef struct Schedule {
    ScheduleKind kind;
    double rate;  // the base: what constant gives
    double start; // of the warm-up: the share of the rate that the first update takes
    double warmup, total;
    double floor; // a rate, whatever the base
    double every, factor;
} Schedule;

// cos(pi * x). A card's own needs no reduction of large angles, nor memory for one.
KERNEL_INLINE double schedule_cosine_(double x) {
#ifdef __CUDA_ARCH__
    return cospi(x);
#else
    return cos(x * 3.14159265358979323846);
#endif
}

// The rate of the update that follows `applied` updates, by a schedule whose base is `rate`, not
// its own: the optimizer's, or a group's share of it.
KERNEL_INLINE double schedule_rate(const Schedule *schedule, double rate, uint64_t applied) {
    double t = (double)applied;
    switch (schedule->kind) {
    case SCHEDULE_CONSTANT: return rate;
    case SCHEDULE_STEP: return rate * pow(schedule->factor, floor(t / schedule->every));
    case SCHEDULE_LINEAR_WARMUP:
    case SCHEDULE_COSINE: break;
    }
    if (t < schedule->warmup)
        return rate * (schedule->start + (1 - schedule->start) * t / schedule->warmup);
    double span = schedule->total - schedule->warmup;
    double done = span > 0 ? (t - schedule->warmup) / span : 1;
    done = done > 1 ? 1 : done;
    if (schedule->kind == SCHEDULE_LINEAR_WARMUP)
        return rate * (1 - done);
    return schedule->floor + (rate - schedule->floor) * 0.5 * (1 + schedule_cosine_(done));
}
