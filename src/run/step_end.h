// run/step_end.h: when a step of the run ends: with the update of the first scaler, the leader;
// where others are updated after it in every iteration, as in a GAN that has one a loss, with the
// last of these, so that no iteration is cut in two. Which that is two iterations tell. Without
// scalers the same holds of optimizers and their steps.
//
// It is told of updates alone, and looks at no scaler: they are borrowed, and told apart by their
// addresses. The run's thread. A zeroed StepEnd has seen nothing.
#pragma once

#include <stdbool.h>

typedef struct StepEnd {
    bool leader_ends;         // always that of the leader: a run that began so goes on so
    bool has_led;             // the leader was updated once
    bool is_settled;          // it is the leader's for good
    bool is_open;             // the leader was updated, and `closing` is waited for
    const void *closing;      // NULL: the leader
    const void *leader;       // in place of the first one, which is out of use; NULL: it leads
    const void *stand_in;     // the step ended with, while the leader had not been used yet
    const void *since_leader; // the last other one since the leader's update,
    const void *last_before;  // and between the two before
} StepEnd;

// A scaler was updated, or an optimizer stepped; the first of the run is the leader. Whether that
// ends a step of the run.
bool step_end_updated(StepEnd *end, const void *updated, bool is_leader);
// One is no more.
void step_end_forget(StepEnd *end, const void *gone);
