// base/rounds.h: how many times as fast one thing is as another, of times that were taken in rounds
// through all that is compared, and whether that can be told.
//
// A round has one time of each, taken close together, so that what else the machine is busy with
// hits them alike; each round says by itself how many times as fast, and what rounds scatter by is
// what a single time may be off by. Pure functions on the caller's numbers. Any thread.
#pragma once

#include <stdbool.h>

enum { ROUNDS_LEAST = 6, ROUNDS_MOST = 11 }; // fewer tell nothing; more are not taken

typedef struct RoundsGain {
    double faster;      // so many times as fast: the median of rounds; NaN: there are none
    double least, most; // between which that lies in 95 of 100 cases; NaN: nobody knows
} RoundsGain;

double rounds_median(double *values, int count); // of one at least; they are sorted by it
// Of `is` over `was`, each a time a round.
RoundsGain rounds_gain(const double *was, const double *is, int count);

typedef enum Tempo {
    TEMPO_UNKNOWN, // not timed
    TEMPO_OPEN,    // times scatter too much to tell, or are too few
    TEMPO_SLOWER,
    TEMPO_ALIKE,
    TEMPO_FASTER,
} Tempo;
Tempo rounds_tempo(const RoundsGain *gain);
const char *rounds_tempo_name(Tempo tempo); // "faster", "cannot be told"; NULL: unknown
// Whether the one is ahead of the other, both over the same, however the rounds scattered. Nothing
// is ahead of what is ahead of it, so of several there is one at least that none is ahead of.
bool rounds_ahead(const RoundsGain *gain, const RoundsGain *other);
extern const RoundsGain rounds_same; // what all is held against, over itself
