// The snapshot that the live screen draws: what the view needs, read from the history.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/compare.h"
#include "store/runs.h"
#include "ui/live/live.h"

static void line_clear(LiveLine *line) {
    free(line->raw);
    free(line->smooth);
    *line = (LiveLine){0};
}

void live_data_clear(LiveData *data) {
    record_clear(&data->record);
    record_clear(&data->now);
    free(data->series);
    line_clear(&data->line);
    line_clear(&data->ghost_line);
    line_clear(&data->scale_line);
    free(data->layers);
    free(data->factors);
    free(data->own);
    free(data->heat);
    free(data->events);
    free(data->rows);
    *data = (LiveData){.scale = NAN};
}

// A lock of somebody else's is no news: the next look reads it.
static void complain(Ui *ui, Live *live, const Error *error) {
    if (error->code == ERROR_BUSY || strcmp(live->complaint, error->text) == 0)
        return;
    memcpy(live->complaint, error->text, sizeof live->complaint);
    ui_fail(ui, error);
}

// ---- lines --------------------------------------------------------------------------------------

static PlotPoint plain_point(const SeriesPoint *point) {
    bool bad = point->nans + point->infs + point->minus_infs > 0;
    return (PlotPoint){(double)point->step, point->min, point->mean, point->max, bad};
}

// A bucket of held values goes to its least value and back, so that a short fall is seen.
static int held_points(const SeriesPoint *point, PlotPoint *out) {
    bool bad = point->nans + point->infs + point->minus_infs > 0;
    const double values[] = {point->first, point->min, point->last};
    int count = point->min < point->max ? 3 : 1;
    for (int i = 0; i < count; i++) {
        double x = (double)point->step + (double)point->width * i / count;
        out[i] = (PlotPoint){x, values[i], values[i], values[i], bad};
    }
    return count;
}

static bool line_make(LiveLine *line, const SeriesPoint *points, int count, bool held,
                      double smoothing) {
    size_t room = (size_t)count * (held ? 3 : 1) + 1;
    line_clear(line);
    line->raw = malloc(room * sizeof *line->raw);
    line->smooth = malloc(room * sizeof *line->smooth);
    if (!line->raw || !line->smooth) {
        line_clear(line);
        return false;
    }
    for (int i = 0; i < count; i++) {
        if (held)
            line->count += held_points(&points[i], line->raw + line->count);
        else
            line->raw[line->count++] = plain_point(&points[i]);
    }
    memcpy(line->smooth, line->raw, (size_t)line->count * sizeof *line->raw);
    if (!held)
        plot_smooth(line->smooth, line->count, smoothing);
    return true;
}

typedef struct LineWanted {
    int64_t run;
    const char *name;
    int64_t from, to;
    int most;
    bool held;
    double smoothing;
    int64_t read; // the step of which the value is wanted
} LineWanted;

// The value at the step, where one was logged.
static bool value_read(Ui *ui, LiveLine *line, const LineWanted *wanted, Error *error) {
    SeriesPoint *points = NULL;
    int count = 0;
    if (!store_read_series(ui->store, wanted->run, wanted->name, wanted->read, wanted->read, 0,
                           &points, &count, error))
        return false;
    line->has_value = count > 0;
    if (count > 0) {
        const SeriesPoint *point = &points[count - 1];
        line->value = point->width == 1 ? series_point_value(point)
                      : wanted->held    ? point->last
                                        : point->mean;
    }
    free(points);
    return true;
}

static bool line_read(Ui *ui, LiveLine *line, const LineWanted *wanted, Error *error) {
    SeriesPoint *points = NULL;
    int count = 0;
    if (!store_read_series(ui->store, wanted->run, wanted->name, wanted->from, wanted->to,
                           wanted->most, &points, &count, error))
        return false;
    bool done = line_make(line, points, count, wanted->held, wanted->smoothing) ||
                error_fail(error, ERROR_MEMORY, "no memory for a curve");
    free(points);
    return done && value_read(ui, line, wanted, error);
}

// ---- the run ------------------------------------------------------------------------------------

const RunRecord *live_run_now(const Live *live) {
    return live->data.is_ahead ? &live->data.now : &live->data.record;
}

// As far as orders change it.
static bool is_led_alike(const RunRecord *a, const RunRecord *b) {
    return a->status == b->status && a->stale == b->stale && a->layer_count == b->layer_count &&
           (a->layer_count == 0 ||
            memcmp(a->layers, b->layers, (size_t)a->layer_count * sizeof *a->layers) == 0);
}

static bool looks_alike(const RunRecord *a, const RunRecord *b) {
    return is_led_alike(a, b) && a->step == b->step && a->total_steps == b->total_steps &&
           a->metric_count == b->metric_count && strcmp(a->precision, b->precision) == 0;
}

static void drop_now(LiveData *data) {
    record_clear(&data->now);
    data->now = (RunRecord){0};
    data->is_ahead = false;
}

// Of a run that was removed, here or by another program, nothing is left to be shown.
static bool run_read(Ui *ui, Live *live, RunRecord *record, Error *error) {
    if (store_read_run(ui->store, live->view.run, record, error))
        return true;
    if (error->code == ERROR_USAGE) {
        live_forget_run(live);
        live->view.cursor = LIVE_FOLLOWS;
        live->view.frozen = false;
        live->data.is_gone = true;
    }
    return false;
}

static bool record_look(Ui *ui, Live *live, bool *changed, Error *error) {
    LiveData *data = &live->data;
    RunRecord record = {0};
    if (!run_read(ui, live, &record, error))
        return false;
    *changed = *changed || !data->is_known || !looks_alike(&data->record, &record);
    // What is seen first, or after a pause, is no speed; and a fork jumps from 0 to behind where it
    // begins, so that steps count from the first one on that was seen of its own.
    bool began = data->is_known && data->record.step > record.parent_step;
    if (!began || record.status != RUN_RUNNING)
        live->recent.count = 0;
    live->late_rate = recent_rate(&live->recent, record.step, live->watched);
    record_clear(&data->record);
    data->record = record;
    data->is_known = true;
    data->is_gone = false;
    drop_now(data);
    return true;
}

// Behind a frozen picture; *changed: keys are called otherwise now.
static bool now_look(Ui *ui, Live *live, bool *changed, Error *error) {
    LiveData *data = &live->data;
    RunRecord record = {0};
    if (!run_read(ui, live, &record, error))
        return false;
    *changed = !is_led_alike(live_run_now(live), &record);
    drop_now(data);
    data->now = record;
    data->is_ahead = true;
    return true;
}

// ---- the window ---------------------------------------------------------------------------------

static const SeriesInfo *find_series(const LiveData *data, const char *name) {
    for (int i = 0; i < data->series_count; i++)
        if (strcmp(data->series[i].name, name) == 0)
            return &data->series[i];
    return NULL;
}

// The one asked for, else the loss or what is most like one.
static void choose_series(LiveData *data, const char *asked) {
    const SeriesInfo *chosen = asked[0] ? find_series(data, asked) : NULL;
    bool is_asked = chosen != NULL;
    for (int i = 0; i < data->series_count && !is_asked; i++) {
        const SeriesInfo *info = &data->series[i];
        bool is_scale = strcmp(info->name, "scale") == 0; // has a panel of its own
        if (!is_scale &&
            (!chosen || compare_series_rank(info->name) < compare_series_rank(chosen->name)))
            chosen = info;
    }
    memset(data->shown, 0, sizeof data->shown);
    if (chosen)
        memcpy(data->shown, chosen->name, sizeof data->shown);
}

static bool series_look(Ui *ui, Live *live, Error *error) {
    LiveData *data = &live->data;
    free(data->series);
    data->series = NULL;
    data->series_count = 0;
    if (!store_list_series(ui->store, live->view.run, &data->series, &data->series_count, error))
        return false;
    data->first = INT64_MAX;
    data->last = INT64_MIN;
    for (int i = 0; i < data->series_count; i++) {
        const SeriesInfo *info = &data->series[i];
        data->first = info->first_step < data->first ? info->first_step : data->first;
        data->last = info->last_step > data->last ? info->last_step : data->last;
    }
    if (data->first > data->last) { // no point: what the record says
        data->first = data->record.step > 0 ? 1 : 0;
        data->last = data->record.step > 0 ? data->record.step : 0;
    }
    return true;
}

static void settle_window(LiveView *view, LiveData *data) {
    int64_t whole = data->last - data->first + 1;
    if (view->cursor != LIVE_FOLLOWS) {
        if (view->cursor >= data->last)
            view->cursor = LIVE_FOLLOWS;
        else if (view->cursor < data->first)
            view->cursor = data->first;
    }
    data->step = view->cursor == LIVE_FOLLOWS ? data->last : view->cursor;
    if (view->span <= 0 || view->span >= whole) {
        view->span = 0;
        view->window_end = LIVE_FOLLOWS;
        data->left = data->first;
        data->right = data->last;
    } else {
        int64_t end = view->window_end == LIVE_FOLLOWS ? data->last : view->window_end;
        if (end >= data->last) {
            end = data->last;
            view->window_end = LIVE_FOLLOWS;
        }
        if (end - data->first + 1 < view->span)
            view->window_end = end = data->first + view->span - 1;
        data->right = end;
        data->left = end - view->span + 1;
    }
    if (view->has_cross) {
        view->cross = view->cross > data->right ? data->right : view->cross;
        view->cross = view->cross < data->left ? data->left : view->cross;
    }
}

// How many points a panel can show, and somewhat more: levels of the history lie far apart.
static int points_of(const Ui *ui, PanelId panel, int beside) {
    enum { USUAL = 100, LEAST = 16, A_COLUMN = 8 };
    const Panel *found = layout_find(&ui->layout, panel);
    int width = found ? found->width - 2 - beside : USUAL;
    return A_COLUMN * (width > LEAST ? width : LEAST);
}

// What was logged at the step before holds in the step.
static double scale_before(const LiveLine *line, int64_t step, double otherwise) {
    for (int i = line->count - 1; i >= 0; i--)
        if (line->raw[i].x < (double)step)
            return isfinite(line->raw[i].mean) ? line->raw[i].mean : otherwise;
    return otherwise;
}

static bool lines_read(Ui *ui, Live *live, Error *error) {
    LiveData *data = &live->data;
    const LiveView *view = &live->view;
    LineWanted wanted = {.run = view->run,
                         .name = data->shown,
                         .from = data->left,
                         .to = data->right,
                         .most = points_of(ui, PANEL_LOSS, LIVE_LABEL_COLUMNS),
                         .smoothing = view->smoothing,
                         .read = view->has_cross ? view->cross : data->step};
    line_clear(&data->ghost_line);
    if (!line_read(ui, &data->line, &wanted, error))
        return false;
    if (data->ghost.is_there) {
        wanted.run = data->ghost.id;
        if (!line_read(ui, &data->ghost_line, &wanted, error))
            return false;
    }
    wanted = (LineWanted){.run = view->run,
                          .name = "scale",
                          .from = data->left,
                          .to = data->right,
                          .most = points_of(ui, PANEL_SCALE, LIVE_LABEL_COLUMNS),
                          .held = true,
                          .read = data->step};
    if (!line_read(ui, &data->scale_line, &wanted, error))
        return false;
    data->scale = data->scale_line.has_value     ? data->scale_line.value
                  : view->cursor == LIVE_FOLLOWS ? data->record.scale_last
                                                 : NAN;
    data->used_scale = scale_before(&data->scale_line, data->step, data->scale);
    return true;
}

// What an order set holds from the step on that it says.
static double ordered_at(const Event *event, int64_t step) {
    const char *text = strstr(event->text, "loss scale is ");
    double scale;
    long long from;
    bool is_told = event->kind == EVENT_COMMAND && text &&
                   sscanf(text, "loss scale is %lf from step %lld", &scale, &from) == 2;
    return is_told && from == step ? scale : NAN;
}

// A skip says at which scale it overflowed; that is exact where the curve is of sums.
static void settle_used_scale(LiveData *data) {
    for (int i = data->event_count - 1; i >= 0 && data->events[i].step + 1 >= data->step; i--) {
        const Event *event = &data->events[i];
        bool is_skip = event->kind == EVENT_SKIP && event->step == data->step;
        double scale = is_skip ? live_skipped_at(event) : ordered_at(event, data->step);
        if (scale > 0)
            data->used_scale = scale;
        if (is_skip)
            break;
    }
    if (isnan(data->used_scale) && strcmp(data->record.scale_rule, "none") == 0)
        data->used_scale = 1;
}

// ---- what is at the cursor ----------------------------------------------------------------------

// Layers without parameters, such as one that flattens, have nothing to show.
static void choose_layer(Live *live) {
    const LiveData *data = &live->data;
    for (int i = 0; i < data->layer_count && !live->view.layer_is_chosen; i++)
        if (data->layers[i].count > 0) {
            live->view.layer = i;
            return;
        }
}

// Times and changes of weights are measured a few times a second: where the sample at the cursor
// has none, those of the steps before it are shown. While a run that goes on is followed, what was
// read within the last second is new enough: it takes several questions for every layer.
static bool fill_measured(Ui *ui, Live *live, const LayerSample *before, Error *error) {
    enum { BEFORE = 512, MOST = 8 };
    const double new_enough = 1;
    LiveData *data = &live->data;
    bool follows = live->view.cursor == LIVE_FOLLOWS && data->record.status == RUN_RUNNING;
    bool keeps = before && follows && live->measured_age < new_enough;
    for (int i = 0; i < data->layer_count; i++) {
        LayerSample *at = &data->layers[i], *samples;
        int count;
        if (at->width == 0 || !(isnan(at->update_ratio) || isnan(at->seconds)))
            continue;
        if (keeps) {
            if (before[i].width > 0)
                layer_sample_lend(at, &before[i]);
            continue;
        }
        if (!store_read_layer(ui->store, live->view.run, i, data->step - BEFORE, data->step, MOST,
                              &samples, &count, error))
            return false;
        for (int j = count - 1; j >= 0; j--) // the last ones count
            layer_sample_lend(at, &samples[j]);
        free(samples);
    }
    if (!keeps)
        live->measured_age = follows ? 0 : new_enough;
    return true;
}

// `before`: the layers of the last look, as many; NULL: there are none.
static bool read_layers_at_step(Ui *ui, Live *live, const LayerSample *before, Error *error) {
    static const int64_t back[] = {0, 1, 8}; // samples may end a little before the points
    LiveData *data = &live->data;
    int count = data->layer_count;
    for (size_t i = 0; i < sizeof back / sizeof *back && count > 0; i++) {
        if (!store_read_layers_at(ui->store, live->view.run, data->step - back[i], data->layers,
                                  count, error))
            return false;
        for (int j = 0; j < count; j++)
            if (data->layers[j].width > 0) {
                choose_layer(live);
                return fill_measured(ui, live, before, error);
            }
    }
    return true;
}

static bool layers_read(Ui *ui, Live *live, Error *error) {
    LiveData *data = &live->data;
    int count = live_layers_shown(&data->record);
    LayerSample *before = data->layers;
    int before_count = data->layer_count;
    data->layer_count = 0;
    data->layers = calloc((size_t)count + 1, sizeof *data->layers);
    bool done = data->layers != NULL;
    if (done) {
        data->layer_count = count;
        done = read_layers_at_step(ui, live, before_count == count ? before : NULL, error);
    } else {
        error_fail(error, ERROR_MEMORY, "no memory for %d layers", count);
    }
    free(before);
    return done;
}

static bool heat_read(Ui *ui, Live *live, Error *error) {
    LiveData *data = &live->data;
    free(data->heat);
    data->heat = NULL;
    data->heat_count = 0;
    if (live->view.layer >= data->record.layer_count ||
        (!live->view.heat && !layout_find(&ui->layout, PANEL_HEAT)))
        return true;
    PanelId panel = layout_find(&ui->layout, PANEL_HEAT) ? PANEL_HEAT : PANEL_HISTOGRAM;
    return store_read_layer(ui->store, live->view.run, live->view.layer, data->left, data->right,
                            points_of(ui, panel, LIVE_LABEL_COLUMNS) / 4, &data->heat,
                            &data->heat_count, error);
}

static bool read_all(Ui *ui, Live *live, Error *error) {
    LiveData *data = &live->data;
    if (!live->view.frozen && !series_look(ui, live, error))
        return false;
    choose_series(data, live->view.series);
    settle_window(&live->view, data);
    int layers = live_layers_shown(&data->record);
    if (live->view.layer >= layers)
        live->view.layer = layers > 0 ? layers - 1 : 0;
    if (!lines_read(ui, live, error) || !layers_read(ui, live, error) ||
        !live_read_factors(ui, live, error) || !heat_read(ui, live, error) ||
        !live_map_read(ui, live, error) || !live_profile_read(ui, live, error) ||
        !((live->view.frozen && !live->moved) || live_read_events(ui, live, error)))
        return false;
    settle_used_scale(data);
    return true;
}

// What is over, or gone, is looked at but seldom.
static bool is_due(const Live *live) {
    const double seldom = 1; // seconds
    const RunRecord *seen = live->view.frozen ? live_run_now(live) : &live->data.record;
    bool goes_on = live->data.is_known ? !live_is_over(seen) : !live->data.is_gone;
    return goes_on || live->unread >= seldom;
}

// The run, and what lies beside it.
static bool look(Ui *ui, Live *live, bool *changed, Error *error) {
    const double others_seldom = 2; // seconds
    bool looks_around = !live->data.is_known || live->others_age >= others_seldom;
    if (!record_look(ui, live, changed, error) ||
        (looks_around && !live_find_others(ui, &live->data, changed, error)) ||
        !live_look_at_events(ui, live, changed, error))
        return false;
    live->others_age = looks_around ? 0 : live->others_age;
    return true;
}

bool live_data_look(Ui *ui, Live *live, double seconds) {
    LiveData *data = &live->data;
    Error error;
    bool changed = live->moved || live_map_is_resized(ui, live), is_called_otherwise = false;
    changed = live_profile_is_measured(live) || changed;
    live->watched += seconds;
    live->unread += seconds;
    live->others_age += seconds;
    live->measured_age += seconds;
    live->map.age += seconds;
    if (live->view.run == 0)
        return false;
    if (is_due(live)) {
        bool was_known = data->is_known, is_held = was_known && live->view.frozen;
        live->unread = 0;
        if (!(is_held ? now_look(ui, live, &is_called_otherwise, &error)
                      : look(ui, live, &changed, &error))) {
            complain(ui, live, &error);
            return was_known && data->is_gone;
        }
    }
    if (!changed)
        return is_called_otherwise;
    if (!read_all(ui, live, &error))
        complain(ui, live, &error);
    live->moved = false;
    return true;
}
