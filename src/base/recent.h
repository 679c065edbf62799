// base/recent.h: how fast something goes on now, of looks at how far it has come.
//
// A mean over all of it tells neither of a change nor of how long the rest takes. A Recent is the
// caller's, zeroed at first; it remembers half a minute, or some twenty steps of what is slower
// than that. Nothing here allocates or fails. One thread.
#pragma once

#include <stdint.h>

enum { RECENT_MARKS = 20 };

typedef struct Recent {
    struct {
        int64_t step;
        double seconds;
    } marks[RECENT_MARKS]; // the oldest first
    int count;
} Recent;

// It has come to this step, on a clock that goes on while it does. Returns steps a second of late;
// 0: not known yet, or it stands still.
double recent_rate(Recent *recent, int64_t step, double seconds);
