// From the comparison to curves that can be drawn: of every run, or of the runs of a group the mean
// and the band about it, or what that is apart from the baseline's.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sanitize.h"
#include "ui/cells/theme.h"
#include "ui/compare/compare.h"

enum { MOST_MEANS = 512 }; // of a curve: more than columns tell apart, and each has its price

static const double smoothings[COMPARE_SMOOTHINGS] = {0, 0.6, 0.9, 0.97};

double compare_smoothing(const CompareView *view) {
    return smoothings[view->smoothing];
}

void compare_clear_curves(CompareCurves *curves) {
    for (int i = 0; i < curves->count; i++) {
        free(curves->points[i]);
        free(curves->extremes[i]);
        free(curves->logged[i]);
    }
    *curves = (CompareCurves){0};
}

Ink compare_ink(const Comparison *comparison, int run) {
    return theme_format_ink(comparison->runs[run].precision);
}

char compare_letter(int group) {
    return (char)('a' + group % 26);
}

void compare_window(const CompareView *view, double *left, double *right) {
    double last = view->curves.last_x > 0 ? view->curves.last_x : 1;
    *left = last * view->from;
    *right = last * fmin(view->from + view->span, 1);
}

// ---- runs ---------------------------------------------------------------------------------------

typedef struct Line { // points of a run, smoothed or not, and how far they were read
    int64_t seed;
    PlotPoint *points;
    int count, at;
    bool bad; // among those read since it was last asked
} Line;

// Without memory it has no points.
static Line line_of(const CompareView *view, int run, double smoothing) {
    const CompareCurve *curve = &view->comparison->losses[run];
    Line line = {.seed = view->comparison->runs[run].seed,
                 .points = calloc((size_t)curve->count + 1, sizeof *line.points)};
    for (int i = 0; line.points && i < curve->count; i++) {
        const SeriesPoint *point = &curve->points[i];
        if (!isfinite(curve->x[i]))
            continue;
        line.points[line.count++] =
            (PlotPoint){.x = curve->x[i],
                        .low = point->min,
                        .mean = point->mean,
                        .high = point->max,
                        .bad = point->nans + point->infs + point->minus_infs > 0};
    }
    plot_smooth(line.points, line.count, smoothing);
    return line;
}

// ---- means --------------------------------------------------------------------------------------

// Reads on up to x and gives the value there, between two points on the way from one to the other;
// NaN: the run has none so early or so late, infinite: it is not finite.
static double read_to(Line *line, double x) {
    if (line->count == 0 || x < line->points[0].x || x > line->points[line->count - 1].x)
        return NAN;
    while (line->at + 1 < line->count && line->points[line->at + 1].x <= x)
        line->bad |= line->points[++line->at].bad;
    const PlotPoint *here = &line->points[line->at];
    if (here->x == x || line->at + 1 == line->count)
        return isfinite(here->mean) ? here->mean : INFINITY;
    double share = (x - here->x) / (here[1].x - here->x);
    double value = here->mean + share * (here[1].mean - here->mean);
    return isfinite(value) ? value : INFINITY;
}

typedef struct Place { // the runs of a group at one x
    Sample sample;
    Statistic all;
    double least, most;
    bool is_whole; // all of them have come there
    bool bad;      // since the place before
} Place;

static void read_place(Line *lines, int count, double x, Place *place) {
    place->sample.count = 0;
    place->is_whole = true;
    place->bad = false;
    place->least = INFINITY, place->most = -INFINITY;
    for (int i = 0; i < count; i++) {
        const double value = read_to(&lines[i], x);
        sample_add(&place->sample, lines[i].seed, value);
        place->is_whole &= !isnan(value);
        place->bad |= lines[i].bad;
        lines[i].bad = false;
        if (!isfinite(value))
            continue;
        place->least = fmin(place->least, value);
        place->most = fmax(place->most, value);
    }
    place->all = statistic_of(place->sample.values, place->is_whole ? count : 0);
}

// Where one of the runs is not finite their mean is not either: a gap, and a mark.
static bool is_finite(const Place *place) {
    return place->all.not_finite == 0 && place->all.count > 0;
}

static PlotPoint point_of(double x, double value, double interval, bool bad) {
    double wide = isfinite(interval) ? interval : 0;
    return (PlotPoint){x, value - wide, value, value + wide, bad};
}

// The runs that are drawn as one, and where it goes.
typedef struct Means {
    Line lines[COMPARE_MOST_CURVES];
    int count;
    Line base[COMPARE_MOST_CURVES]; // which they are held against; none: nothing
    int base_count;
    PlotPoint *points, *extremes; // where axes must reach; not freed with the rest
    int made, pairs;              // how many, and of how many the difference is one of pairs
} Means;

static int take_lines(const CompareView *view, int group, double smoothing, Line *lines) {
    const CompareSide *side = &view->comparison->groups[group];
    int count = 0;
    for (int i = 0; i < side->member_count && count < COMPARE_MOST_CURVES; i++) {
        lines[count] = line_of(view, side->members[i], smoothing);
        if (lines[count].count > 0)
            count++;
        else
            free(lines[count].points);
    }
    return count;
}

static void free_lines(Means *means) {
    for (int i = 0; i < means->count; i++)
        free(means->lines[i].points);
    for (int i = 0; i < means->base_count; i++)
        free(means->base[i].points);
}

// What runs of one seed are apart, at the least and at the most.
static void reach_of_pairs(const Sample *base, const Sample *ours, PlotPoint *point) {
    point->low = INFINITY, point->high = -INFINITY;
    for (int i = 0; i < ours->count; i++)
        for (int k = 0; k < base->count; k++) {
            if (base->seeds[k] != ours->seeds[i])
                continue;
            const double apart = ours->values[i] - base->values[k];
            point->low = fmin(point->low, apart);
            point->high = fmax(point->high, apart);
        }
}

static void add_place(Means *means, double x) {
    Place ours, base;
    read_place(means->lines, means->count, x, &ours);
    read_place(means->base, means->base_count, x, &base);
    bool has_base = means->base_count > 0;
    if (!ours.is_whole || !base.is_whole)
        return;
    bool is_known = is_finite(&ours) && (!has_base || is_finite(&base));
    Contrast contrast = statistic_contrast_samples(&base.sample, &ours.sample);
    double value = has_base ? contrast.delta : ours.all.mean;
    double from = has_base ? base.all.mean : 0;
    means->pairs += contrast.pairs > 0;
    PlotPoint *point = &means->points[means->made], *extreme = &means->extremes[means->made++];
    *point = point_of(x, is_known ? value : NAN, has_base ? contrast.interval : ours.all.interval,
                      ours.bad || base.bad || !is_known);
    *extreme = *point;
    extreme->low = is_known ? ours.least - from : NAN;
    extreme->high = is_known ? ours.most - from : NAN;
    if (is_known && contrast.pairs > 0)
        reach_of_pairs(&base.sample, &ours.sample, extreme);
}

// As far as all runs have come: a mean of fewer would jump where one of them ends.
static void make_means(const CompareView *view, Means *means) {
    const Line *first = &means->lines[0];
    double left, right;
    int stride = 1, within = 0;
    compare_window(view, &left, &right);
    for (int i = 0; i < first->count; i++)
        within += first->points[i].x >= left && first->points[i].x <= right;
    stride += within / MOST_MEANS;
    means->points = calloc(MOST_MEANS + 2, sizeof *means->points);
    means->extremes = calloc(MOST_MEANS + 2, sizeof *means->extremes);
    for (int i = 0, seen = 0; means->points && means->extremes && i < first->count; i++) {
        double x = first->points[i].x;
        if (x >= left && x <= right && seen++ % stride == 0)
            add_place(means, x);
    }
}

// ---- curves -------------------------------------------------------------------------------------

static int begin_curve(CompareView *view, int group, int run) {
    CompareCurves *curves = &view->curves;
    int at = curves->count++;
    curves->letters[at] = compare_letter(group);
    curves->lines[at] = (PlotLine){.ink = compare_ink(view->comparison, run),
                                   .spans = compare_smoothing(view) == 0,
                                   .dotted = group % 2 == 1};
    curves->groups[at] = group;
    curves->tails[at][0] = curves->seeds[at][0] = 0;
    curves->has_last[at] = false;
    return at;
}

static void end_curve(CompareCurves *curves, int at, PlotPoint *points, PlotPoint *logged,
                      int count) {
    curves->points[at] = points;
    curves->logged[at] = logged;
    curves->lines[at].points = points;
    curves->lines[at].count = points && logged ? count : 0;
}

static void add_run(CompareView *view, int group, int run) {
    const RunRecord *record = &view->comparison->runs[run];
    CompareCurves *curves = &view->curves;
    const CompareCurve *raw = &view->comparison->losses[run];
    int at = begin_curve(view, group, run);
    Line line = line_of(view, run, compare_smoothing(view)), logged = line_of(view, run, 0);
    curves->has_last[at] = raw->count > 0;
    curves->last[at] = raw->count > 0 ? raw->points[raw->count - 1].last : (double)NAN;
    end_curve(curves, at, line.points, logged.points, line.count);
    curves->groups[at] = -1; // its number tells it from all others
    snprintf(curves->labels[at], sizeof curves->labels[at], "#%lld %s", (long long)record->id,
             record->precision);
    snprintf(curves->seeds[at], sizeof curves->seeds[at], ", seed %lld", (long long)record->seed);
}

static void write_label(CompareView *view, int group, const Means *means, int at) {
    CompareCurves *curves = &view->curves;
    const char *raw = view->comparison->groups[group].label;
    char *tail = curves->tails[at];
    sanitize_line(curves->labels[at], sizeof curves->labels[at], raw, strlen(raw));
    if (means->base_count == 0)
        snprintf(tail, sizeof curves->tails[at], " n %d", means->count);
    else if (means->count > 1 || means->base_count > 1)
        snprintf(tail, sizeof curves->tails[at], " n %d, %d", means->count, means->base_count);
}

// Of the runs that have the series, or what they are apart from the baseline's that do. Without
// memory it has no points.
static void take_means(const CompareView *view, int group, double smoothing, Means *means) {
    means->count = take_lines(view, group, smoothing, means->lines);
    if (view->shows_difference)
        means->base_count = take_lines(view, 0, smoothing, means->base);
    bool has_sides = means->count > 0 && (means->base_count > 0 || !view->shows_difference);
    if (has_sides)
        make_means(view, means);
    free_lines(means);
}

static void add_mean(CompareView *view, int group) {
    CompareCurves *curves = &view->curves;
    Means *means = calloc(2, sizeof *means), *logged = means + 1;
    if (!means)
        return;
    int at = begin_curve(view, group, view->comparison->groups[group].members[0]);
    take_means(view, group, compare_smoothing(view), means);
    take_means(view, group, 0, logged);
    end_curve(curves, at, means->points, logged->points,
              means->made < logged->made ? means->made : logged->made);
    curves->extremes[at] = means->extremes;
    curves->lines[at].spans = true;
    curves->has_bands |= means->count > 1 && means->base_count != 1;
    curves->has_pairs |= means->pairs > 0;
    write_label(view, group, means, at);
    free(logged->extremes);
    free(means);
}

static double last_x(const CompareView *view) {
    const Comparison *comparison = view->comparison;
    double last = 0;
    for (int run = 0; run < comparison->run_count; run++)
        for (int i = 0; i < comparison->losses[run].count && !compare_is_hidden(view, run); i++)
            last = fmax(last, comparison->losses[run].x[i]); // of a NaN nothing
    return isfinite(last) ? last : 0;
}

void compare_make_curves(CompareView *view) {
    const Comparison *comparison = view->comparison;
    compare_clear_curves(&view->curves);
    if (!comparison)
        return;
    view->curves.last_x = last_x(view);
    for (int g = 0; g < comparison->group_count; g++) {
        const CompareSide *group = &comparison->groups[g];
        bool is_mean = view->shows_difference || (group->member_count > 1 && !view->each_seed);
        bool is_apart = g > 0 && compare_is_of_baseline(comparison, group);
        if (compare_is_group_hidden(view, g) || (view->shows_difference && !is_apart))
            continue;
        if (is_mean)
            add_mean(view, g);
        for (int i = 0; i < group->member_count && !is_mean; i++)
            add_run(view, g, group->members[i]);
    }
}
