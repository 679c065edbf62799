// kernel/schedule.h: the learning rate as a function of applied steps, computed where the count is
// (on the device). Inline and portable: every backend compiles the same function.
#pragma once

#include <math.h>
#include <stdint.h>

typedef enum ScheduleKind {
    SCHEDULE_CONSTANT,
    SCHEDULE_LINEAR_WARMUP, // up over `warmup` steps, then linearly to 0 at `total`
    SCHEDULE_COSINE,        // up over `warmup` steps, then a half cosine to `floor` at `total`
    SCHEDULE_STEP           // times `factor` every `every` steps
} ScheduleKind;

enum { SCHEDULE_KINDS = SCHEDULE_STEP + 1 };

typedef struct Schedule {
    ScheduleKind kind;
    double rate; // the base: what constant gives
    double warmup, total, floor;
    double every, factor;
} Schedule;

// The rate of the update that follows `applied` updates.
static inline double schedule_rate(const Schedule *schedule, uint64_t applied) {
    double t = (double)applied, rate = schedule->rate;
    switch (schedule->kind) {
    case SCHEDULE_CONSTANT: return rate;
    case SCHEDULE_STEP: return rate * pow(schedule->factor, floor(t / schedule->every));
    case SCHEDULE_LINEAR_WARMUP:
    case SCHEDULE_COSINE: break;
    }
    if (t < schedule->warmup)
        return rate * (t + 1) / schedule->warmup;
    double span = schedule->total - schedule->warmup;
    double done = span > 0 ? (t - schedule->warmup) / span : 1;
    done = done > 1 ? 1 : done;
    if (schedule->kind == SCHEDULE_LINEAR_WARMUP)
        return rate * (1 - done);
    return schedule->floor +
           (rate - schedule->floor) * 0.5 * (1 + cos(done * 3.14159265358979323846));
}
