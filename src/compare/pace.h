// compare/pace.h: how long a step of a run takes, and how sure that is, from the times of its own
// steps. Pure functions on the caller's numbers. Any thread.
//
// Steps that follow each other are alike: a slow moment of the machine slows many of them, and as
// many values as there are steps would promise far too much. So the steps are cut into blocks, as
// many as the means of neighbouring blocks tell little of each other; the interval is that of the
// mean of the blocks.
#pragma once

#include "store/series.h"

typedef struct Pace {
    double seconds;  // a step, on average, without the first; NaN: unknown
    double interval; // seconds ± interval holds the true mean in 95 of 100 cases; NaN: unknown
    int blocks;
} Pace;

// From the series step_seconds, in order.
Pace pace_of(const SeriesPoint *points, int count);
// Of several runs of one kind: the mean of theirs, as sure as they agree and as each is.
Pace pace_of_all(const Pace *paces, int count);

typedef struct PaceRatio { // how many times as fast b is as a
    double low, high;      // NaN: unknown
} PaceRatio;

// As far apart as the two intervals can be: it holds 1 where they meet.
PaceRatio pace_ratio(const Pace *a, const Pace *b);
