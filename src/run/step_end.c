#include "run/step_end.h"

#include <stddef.h>

static bool leader_ends(StepEnd *end) {
    const void *last = end->since_leader;
    bool is_twice = last && last == end->last_before;
    end->since_leader = NULL;
    end->last_before = last;
    end->has_led = true;
    if (end->leader_ends)
        return true;
    if (!end->closing && is_twice && !end->is_settled)
        end->closing = last;
    else if (end->is_open) { // not in every iteration after all
        end->closing = NULL;
        end->is_settled = true;
    }
    end->is_open = end->closing != NULL;
    return !end->is_open;
}

// The leader was never updated: it may come later in the iteration, or be out of use.
static bool stand_in(StepEnd *end, const void *updated) {
    if (!end->stand_in) {
        end->stand_in = updated;
        return true;
    }
    if (end->stand_in != updated)
        return false;
    end->stand_in = NULL;
    end->leader = updated;
    return leader_ends(end);
}

bool step_end_updated(StepEnd *end, const void *updated, bool is_leader) {
    if (end->leader)
        is_leader = updated == end->leader;
    if (is_leader && end->stand_in && end->stand_in != updated) { // it is in use after all,
        end->stand_in = NULL;
        end->has_led = end->is_settled = true;
        return false; // and the step has ended already
    }
    if (is_leader) {
        end->stand_in = NULL;
        return leader_ends(end);
    }
    if (!end->has_led && !end->leader_ends)
        return stand_in(end, updated);
    if (!end->has_led) // it comes before the leader, which ends the iteration already
        end->is_settled = true;
    end->since_leader = updated;
    bool ends = end->is_open && updated == end->closing;
    if (ends)
        end->is_open = false;
    return ends;
}

void step_end_forget(StepEnd *end, const void *gone) {
    if (end->closing == gone) {
        end->closing = NULL;
        end->is_open = false;
    }
    if (end->leader == gone)
        end->leader = NULL;
    if (end->stand_in == gone)
        end->stand_in = NULL;
    if (end->since_leader == gone)
        end->since_leader = NULL;
    if (end->last_before == gone)
        end->last_before = NULL;
}
