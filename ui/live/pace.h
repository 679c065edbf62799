// ui/live/pace.h: a run that was recorded, played again from step to step: which step is shown
// after how many seconds, and at which pace. The pace is a multiple of the run's own speed. Pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct Replay {
    bool is_on;     // it plays, or is paused
    bool is_paused; // at its step
    bool has_pace;  // else it is chosen when the replay begins
    int pace;       // of the table of paces
    double at;      // the step, with the part of the next one that has passed
} Replay;

typedef struct ReplayRun { // what is played
    int64_t first, last;   // steps
    double rate;           // steps a second, of its own
} ReplayRun;

// From this step on. A pace that was not chosen is such that all of the run takes a minute at most.
void replay_begin(Replay *replay, const ReplayRun *run, int64_t step);
// The step that is shown `seconds` later; the last one ends the replay.
int64_t replay_advance(Replay *replay, const ReplayRun *run, double seconds);
// The next pace, faster or slower; false: there is none.
bool replay_change_pace(Replay *replay, int by);
// Times the run's own speed.
double replay_pace(const Replay *replay);
