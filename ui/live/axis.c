// The histogram's axis: held while a run or its replay goes on.
#include "ui/live/live.h"

static LiveExponents both(LiveExponents a, LiveExponents b) {
    return (LiveExponents){a.first < b.first ? a.first : b.first,
                           a.last > b.last ? a.last : b.last};
}

static bool is_of_what_is_shown(const LiveAxis *axis, const Live *live) {
    const LiveView *view = &live->view;
    return axis->is_known && axis->layer == view->layer && axis->hypothesis == view->hypothesis &&
           axis->format == live_layer_format(live, view->layer);
}

// What was wanted in the last two spells is held, so that no spell begins with a jump.
void live_hold_axis(Live *live, double seconds) {
    const double spell = 6;
    LiveAxis *axis = &live->axis;
    const LiveView *view = &live->view;
    LiveExponents wanted;
    if (!live_wanted_exponents(live, &wanted))
        return;
    if (!is_of_what_is_shown(axis, live)) {
        *axis = (LiveAxis){.is_known = true,
                           .layer = view->layer,
                           .hypothesis = view->hypothesis,
                           .format = live_layer_format(live, view->layer),
                           .now = wanted,
                           .before = wanted};
        return;
    }
    if (view->frozen || (live->replay.is_on && live->replay.is_paused))
        return;
    axis->seconds += seconds;
    if (axis->seconds > spell) {
        axis->before = axis->now;
        axis->now = wanted;
        axis->seconds = 0;
    }
    axis->now = both(axis->now, wanted);
}

LiveExponents live_held_exponents(const Live *live, LiveExponents wanted) {
    const LiveAxis *axis = &live->axis;
    return is_of_what_is_shown(axis, live) ? both(both(axis->before, axis->now), wanted) : wanted;
}
