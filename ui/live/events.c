// What happened to the run, read from the history: the last events up to the step cursor.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/live/live.h"

// The id of the last event up to the step; ids rise nearly without gaps, and steps with them. 0:
// none.
// Searching begins at `low`, which is known to be before it.
static bool find_event(Ui *ui, int64_t run, int64_t step, int64_t low, int64_t *id, Error *error) {
    int64_t stride = 1;
    bool grows = true;
    *id = low;
    for (;;) {
        Event *events = NULL;
        int count = 0;
        int64_t probe = low + stride - 1;
        if (!store_read_events(ui->store, run, probe, 0, 1, &events, &count, error))
            return false;
        bool is_before = count > 0 && events[0].step <= step;
        int64_t found = is_before ? events[0].id : 0;
        free(events);
        if (is_before) {
            *id = low = found;
            stride = grows ? stride * 2 : stride;
        } else {
            grows = false;
            if (stride == 1)
                return true;
            stride /= 2;
        }
    }
}

static void show_wanted(Live *live) {
    const LiveData *data = &live->data;
    for (int at = 0; at < data->row_count && live->view.event_wanted > 0; at++) {
        const LiveRow *row = &data->rows[at];
        for (int i = row->first; i <= row->last; i++)
            if (data->events[i].id == live->view.event_wanted && live_row_has(live, row, i)) {
                live->view.event_top = at;
                live->view.event_wanted = 0;
                return;
            }
    }
    live->view.event_wanted = 0;
    if (live->view.event_top >= data->row_count)
        live->view.event_top = data->row_count > 0 ? data->row_count - 1 : 0;
}

// Such events are few, wherever the cursor is.
static bool read_changes(Ui *ui, Live *live, Error *error) {
    LiveData *data = &live->data;
    Event *events = NULL;
    int count = 0;
    data->formats_since = 0;
    if (live->view.cursor == LIVE_FOLLOWS)
        return true;
    if (!store_read_events(ui->store, live->view.run, 0, 1U << EVENT_LIFE, 0, &events, &count,
                           error))
        return false;
    for (int i = 0; i < count; i++)
        if (strncmp(events[i].text, EVENT_FORMATS_CHANGED, strlen(EVENT_FORMATS_CHANGED)) == 0 &&
            events[i].step > data->formats_since)
            data->formats_since = events[i].step;
    free(events);
    return true;
}

bool live_read_events(Ui *ui, Live *live, Error *error) {
    LiveData *data = &live->data;
    bool follows = live->view.cursor == LIVE_FOLLOWS;
    int64_t newest = live->view.frozen ? data->last : INT64_MAX;
    int64_t step = follows ? newest : data->step, last;
    if (!read_changes(ui, live, error) ||
        !find_event(ui, live->view.run, step, follows ? data->event_last : 0, &last, error))
        return false;
    if (follows && last == data->event_last && data->events && !live->moved)
        return true;
    int64_t after = last > LIVE_MOST_EVENTS ? last - LIVE_MOST_EVENTS : 0;
    Event *events = NULL;
    int count = 0;
    if (last > 0 && !store_read_events(ui->store, live->view.run, after, 0, LIVE_MOST_EVENTS,
                                       &events, &count, error))
        return false;
    while (count > 0 && events[count - 1].step > step)
        count--;
    free(data->events);
    data->events = events;
    data->event_count = count;
    data->event_last = last;
    data->events_are_all = after == 0;
    if (!live_fold_events(data))
        return error_fail(error, ERROR_MEMORY, "no memory for %d events", count);
    show_wanted(live);
    return true;
}

bool live_look_at_events(Ui *ui, Live *live, bool *changed, Error *error) {
    Event *events = NULL;
    int count = 0;
    if (live->view.cursor != LIVE_FOLLOWS)
        return true;
    if (!store_read_events(ui->store, live->view.run, live->data.event_last, 0, 1, &events, &count,
                           error))
        return false;
    free(events);
    *changed = *changed || count > 0;
    return true;
}

const Event *live_event(const Live *live, int from_newest) {
    int at = live->data.event_count - 1 - from_newest;
    return from_newest >= 0 && at >= 0 ? &live->data.events[at] : NULL;
}

// ---- what they tell of the scale ----------------------------------------------------------------

double live_skipped_at(const Event *event) {
    static const char cause[] = "not finite";
    double scale;
    const char *text = strstr(event->text, cause);
    if (!text)
        return NAN;
    text += sizeof cause - 1;
    bool is_told =
        sscanf(text, ", scale %lf", &scale) == 1 || sscanf(text, " at scale %lf", &scale) == 1;
    return is_told ? scale : NAN;
}

// From the newest on: what a scale did before counts no more once a higher one was held.
LiveLimit live_seen_limit(const Live *live) {
    LiveLimit limit = {.scale = INFINITY};
    double held = live->data.scale;
    int64_t until = live->data.step;
    const Event *event;
    for (int i = 0; (event = live_event(live, i)); i++) {
        bool is_skip = event->kind == EVENT_SKIP;
        double scale = is_skip ? live_skipped_at(event) : NAN;
        if (until > event->step + 1 && event->value > held &&
            (is_skip || event->kind == EVENT_SCALE))
            held = event->value;
        if (scale > held && scale < limit.scale)
            limit = (LiveLimit){scale, event->step};
        if (is_skip || event->kind == EVENT_SCALE)
            until = event->step;
    }
    return limit;
}
