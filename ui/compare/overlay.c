// Which two runs, which layer and which step the histograms are of, and what the history has there.
#include "ui/compare/overlay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- which runs ---------------------------------------------------------------------------------

// The group that was turned to, that under the cursor, or the first that is shown.
static int other_group(const CompareView *view) {
    const int count = view->comparison->group_count;
    const int wanted = view->overlay->other > 0 ? view->overlay->other : view->cursor;
    if (wanted > 0 && wanted < count)
        return wanted;
    for (int g = 1; g < count; g++)
        if (!compare_is_group_hidden(view, g))
            return g;
    return count > 1 ? 1 : 0;
}

// Of one group two of its seeds.
static void choose_sides(const CompareView *view, OverlaySide sides[2]) {
    const Comparison *comparison = view->comparison;
    const int group = other_group(view);
    const CompareSide *other = &comparison->groups[group];
    sides[0] = (OverlaySide){.run = comparison->groups[0].members[0]};
    sides[1] = (OverlaySide){.run = group > 0 ? other->partner : other->members[1], .group = group};
}

// ---- reading ------------------------------------------------------------------------------------

// The scale that the step was made at, which the series has one step before.
static bool read_scale(Ui *ui, const RunRecord *run, int64_t step, double *scale, Error *error) {
    enum { BEFORE = 64 };
    SeriesPoint *points = NULL;
    int count = 0;
    *scale = strcmp(run->scale_rule, "none") == 0 ? 1 : (double)NAN;
    if (*scale > 0)
        return true;
    if (!store_read_series(ui->store, run->id, "scale", step > BEFORE ? step - BEFORE : 0, step, 0,
                           &points, &count, error))
        return false;
    for (int i = 0; i < count; i++)
        if (isnan(*scale) || points[i].step < step)
            *scale = points[i].last;
    free(points);
    return true;
}

static bool has_any(const LayerSample *samples, int count) {
    for (int i = 0; i < count; i++)
        if (samples[i].count > 0)
            return true;
    return false;
}

// NULL: no memory, or the history cannot be read. Free it.
static LayerSample *read_layers(Ui *ui, const RunRecord *run, int64_t step, Error *error) {
    static const int64_t back[] = {0, 1, 8}; // samples may end a little before the points
    LayerSample *samples = calloc((size_t)run->layer_count + 1, sizeof *samples);
    if (!samples) {
        error_fail(error, ERROR_MEMORY, "no memory for the layers");
        return NULL;
    }
    for (size_t i = 0; i < sizeof back / sizeof *back; i++) {
        if (!store_read_layers_at(ui->store, run->id, step - back[i], samples, run->layer_count,
                                  error)) {
            free(samples);
            return NULL;
        }
        if (has_any(samples, run->layer_count))
            break;
    }
    return samples;
}

static int layer_named(const RunRecord *run, const LayerSample *samples, const char *name) {
    for (int i = 0; i < run->layer_count; i++)
        if (samples[i].count > 0 && strcmp(run->layers[i].name, name) == 0)
            return i;
    return -1;
}

static void take_side(OverlaySide *side, const RunRecord *run, const LayerSample *samples,
                      const char *name) {
    const int layer = layer_named(run, samples, name);
    side->sample = samples[layer];
    side->format = what_if_format(side->sample.precision);
    if (side->format == FORMAT_COUNT)
        side->format = what_if_format(run->layers[layer].precision);
    if (side->format != FORMAT_COUNT)
        side->scale = what_if_own_scale(&side->sample, side->format, side->scale);
}

// The layers that both have gradients of, and those of the one that is looked at.
static bool match_layers(CompareOverlay *overlay, const RunRecord *const runs[2],
                         LayerSample *const samples[2], Error *error) {
    overlay->name_count = overlay->layer = 0;
    free(overlay->names);
    overlay->names = calloc((size_t)runs[0]->layer_count + 1, sizeof *overlay->names);
    if (!overlay->names)
        return error_fail(error, ERROR_MEMORY, "no memory for the layers");
    for (int i = 0; i < runs[0]->layer_count; i++) {
        const char *name = runs[0]->layers[i].name;
        if (samples[0][i].count <= 0 || layer_named(runs[1], samples[1], name) < 0)
            continue;
        if (strcmp(name, overlay->chosen) == 0)
            overlay->layer = overlay->name_count;
        memcpy(overlay->names[overlay->name_count++], name, RECORD_NAME_SIZE);
    }
    for (int s = 0; s < 2 && overlay->name_count > 0; s++)
        take_side(&overlay->sides[s], runs[s], samples[s], overlay->names[overlay->layer]);
    overlay->is_known = overlay->name_count > 0;
    return true;
}

static bool read_sides(Ui *ui, const CompareView *view, Error *error) {
    CompareOverlay *overlay = view->overlay;
    const RunRecord *runs[2];
    LayerSample *samples[2] = {NULL, NULL};
    bool done = true;
    choose_sides(view, overlay->sides);
    for (int s = 0; s < 2; s++)
        runs[s] = &view->comparison->runs[overlay->sides[s].run];
    overlay->last = runs[0]->step < runs[1]->step ? runs[0]->step : runs[1]->step;
    overlay->step = llround((double)overlay->last * overlay->at);
    overlay->step = overlay->step > 1 ? overlay->step : 1;
    for (int s = 0; s < 2 && done; s++)
        done = (samples[s] = read_layers(ui, runs[s], overlay->step, error)) &&
               read_scale(ui, runs[s], overlay->step, &overlay->sides[s].scale, error);
    done = done && match_layers(overlay, runs, samples, error);
    free(samples[0]);
    free(samples[1]);
    return done;
}

bool compare_look_overlay(Ui *ui, CompareView *view) {
    CompareOverlay *overlay = view->overlay;
    Error error;
    if (ui->maximised[SCREEN_COMPARE] != PANEL_OVERLAY || !overlay->wants_reading)
        return false;
    overlay->wants_reading = overlay->is_known = false;
    overlay->why[0] = 0;
    if (view->comparison && !read_sides(ui, view, &error))
        snprintf(overlay->why, sizeof overlay->why, "%s", error.text);
    return true;
}

// ---- keys ---------------------------------------------------------------------------------------

static void turn_layer(CompareOverlay *overlay, int by) {
    const int count = overlay->name_count;
    if (count > 0)
        memcpy(overlay->chosen, overlay->names[(overlay->layer + by + count) % count],
               sizeof overlay->chosen);
}

static void turn_group(CompareView *view) {
    const int count = view->comparison ? view->comparison->group_count : 0;
    if (count > 1)
        view->overlay->other = 1 + other_group(view) % (count - 1);
}

bool compare_overlay_request(CompareView *view, Request request) {
    const double stride = 1.0 / 20; // of the steps
    CompareOverlay *overlay = view->overlay;
    switch (request) {
    case REQUEST_UP: turn_layer(overlay, -1); break;
    case REQUEST_DOWN: turn_layer(overlay, 1); break;
    case REQUEST_LEFT: overlay->at = fmax(overlay->at - stride, 0); break;
    case REQUEST_RIGHT: overlay->at = fmin(overlay->at + stride, 1); break;
    case REQUEST_FIRST: overlay->at = 0; break;
    case REQUEST_LAST: overlay->at = 1; break;
    case REQUEST_SERIES: turn_group(view); break;
    default: return false;
    }
    overlay->wants_reading = true;
    return true;
}

const char *compare_overlay_label(const CompareView *view, Request request) {
    const bool has_others = view->comparison && view->comparison->group_count > 2;
    return request == REQUEST_SERIES && has_others ? "another run" : NULL;
}

bool compare_overlay_open(CompareView *view, Error *error) {
    view->overlay = calloc(1, sizeof *view->overlay);
    if (!view->overlay)
        return error_fail(error, ERROR_MEMORY, "no memory for the screen");
    view->overlay->at = 1;
    return true;
}

void compare_overlay_close(CompareView *view) {
    if (view->overlay)
        free(view->overlay->names);
    free(view->overlay);
}

// Of what is read anew, or of the group under the cursor.
void compare_overlay_renew(CompareView *view, bool from_cursor) {
    view->overlay->wants_reading = true;
    if (from_cursor)
        view->overlay->other = 0;
}
