// Which of the runs are looked at: the group under the cursor, those that are hidden, and the
// baseline that was picked.
#include <string.h>

#include "ui/compare/compare.h"

static int64_t id_of(const Comparison *comparison, int run) {
    return comparison->runs[run].id;
}

static int place_of(const CompareView *view, int64_t id) {
    for (int i = 0; i < view->hidden_count; i++)
        if (view->hidden[i] == id)
            return i;
    return -1;
}

bool compare_is_hidden(const CompareView *view, int run) {
    return place_of(view, id_of(view->comparison, run)) >= 0;
}

bool compare_is_group_hidden(const CompareView *view, int group) {
    return compare_is_hidden(view, view->comparison->groups[group].members[0]);
}

bool compare_is_of_baseline(const Comparison *comparison, const CompareSide *side) {
    return strcmp(comparison->runs[side->members[0]].experiment, comparison->runs[0].experiment) ==
           0;
}

// Other runs than those before: nothing of what was chosen holds for them.
void compare_take_runs(CompareView *view, const int64_t *runs, int count) {
    bool are_same =
        count == view->taken_count && memcmp(runs, view->taken, (size_t)count * sizeof *runs) == 0;
    if (are_same)
        return;
    memcpy(view->taken, runs, (size_t)count * sizeof *runs);
    view->taken_count = count;
    view->removed = 0;
    view->series[0] = 0;
    view->hidden_count = view->cursor = view->scroll = view->first_difference = 0;
    view->baseline = 0;
    view->target.name[0] = 0;
    view->from = 0;
    view->span = 1;
}

// The one that was picked stands first.
void compare_order_runs(const CompareView *view, int64_t runs[COMPARE_MOST_CURVES]) {
    int at = 0;
    memcpy(runs, view->taken, sizeof view->taken);
    while (at < view->taken_count && runs[at] != view->baseline)
        at++;
    if (at == view->taken_count)
        return;
    memmove(runs + 1, runs, (size_t)at * sizeof *runs);
    runs[0] = view->baseline;
}

void compare_turn_hidden(CompareView *view) {
    const CompareSide *group = &view->comparison->groups[view->cursor];
    const bool hides = !compare_is_group_hidden(view, view->cursor);
    for (int i = 0; i < group->member_count; i++) {
        const int64_t id = id_of(view->comparison, group->members[i]);
        const int at = place_of(view, id);
        if (hides && at < 0)
            view->hidden[view->hidden_count++] = id;
        else if (!hides && at >= 0)
            view->hidden[at] = view->hidden[--view->hidden_count];
    }
    compare_make_curves(view);
}

void compare_pick_baseline(CompareView *view) {
    const CompareSide *group = &view->comparison->groups[view->cursor];
    view->baseline = id_of(view->comparison, group->members[0]);
    view->cursor = view->scroll = 0; // where it stands from now on
    view->wants_reading = true;
}

// Past the last group the sentences below them move.
void compare_move_cursor(CompareView *view, int by) {
    const int last = view->comparison ? view->comparison->group_count - 1 : 0;
    const bool scrolls = by > 0 ? view->cursor >= last : view->scroll > 0;
    if (scrolls)
        view->scroll += by;
    else if (view->cursor + by >= 0)
        view->cursor += by;
}
