// ui/live/profile.h: where the time of steps goes, as `mpbench profile` found it. Seen by the files
// of the live screen.
//
// A run that was profiled has its own; of another one the newest profile of a run that was trained
// as it was is shown; where there is none, the times of its layers at the step cursor. It is read
// when the page opens, and again when what measures one has ended. Main thread.
#pragma once

#include "compare/step_lines.h"

typedef struct LiveProfile {
    int64_t run; // that it was looked for; 0: it was not
    int64_t of;  // the run whose profile it is; 0: there is none
    StepProfile kept;
    double casts, cast_seconds; // a step
    StepLine *lines;            // the longest first
    int line_count;
    double step_seconds; // of which lines are shares
    StepBy by;
    int top;          // lines scrolled away
    int64_t process;  // that measures one; 0: none
    bool may_measure; // here
} LiveProfile;
