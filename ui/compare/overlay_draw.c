// Two histograms of exponents over each other, each a line of its own kind, above the range that
// the format of each has at its scale.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rune.h"
#include "base/sanitize.h"
#include "ui/cells/plot.h"
#include "ui/cells/words.h"
#include "ui/cells/zones.h"
#include "ui/compare/overlay.h"

enum { SIDES = 2, MARGIN = 2 }; // before the plot: the letters of the ranges

static WhatIfZone zone_of(const OverlaySide *side, int exponent) {
    return what_if_zone(side->format, side->scale, exponent);
}

static double total_of(const LayerSample *sample) {
    double total = 0;
    for (int i = 0; i < LAYER_BINS; i++)
        total += sample->bins[i];
    return total;
}

static int clamp(int value, int least, int most) {
    return value < least ? least : value > most ? most : value;
}

// All that either holds, and the limits of the formats where they are near.
static void find_range(const CompareOverlay *overlay, int *first, int *last) {
    enum { AROUND = 2, NEAR = 14, HIGHEST = LAYER_LOWEST_EXPONENT + LAYER_BINS - 1 };
    int low = HIGHEST, high = LAYER_LOWEST_EXPONENT;
    for (int s = 0; s < SIDES; s++)
        for (int i = 0; i < LAYER_BINS; i++)
            if (overlay->sides[s].sample.bins[i] > 0) {
                low = i + LAYER_LOWEST_EXPONENT < low ? i + LAYER_LOWEST_EXPONENT : low;
                high = i + LAYER_LOWEST_EXPONENT > high ? i + LAYER_LOWEST_EXPONENT : high;
            }
    *first = low, *last = high;
    for (int s = 0; s < SIDES; s++)
        for (int i = 1; i <= NEAR; i++) {
            const OverlaySide *side = &overlay->sides[s];
            if (zone_of(side, low - i) != zone_of(side, low - i + 1) && low - i < *first)
                *first = low - i;
            if (zone_of(side, high + i) != zone_of(side, high + i - 1) && high + i > *last)
                *last = high + i;
        }
    *first = clamp(*first - AROUND, LAYER_LOWEST_EXPONENT, HIGHEST);
    *last = clamp(*last + AROUND, LAYER_LOWEST_EXPONENT, HIGHEST);
}

// ---- in words -----------------------------------------------------------------------------------

static void say_format(const OverlaySide *side, char *text, size_t size) {
    if (side->format == FORMAT_COUNT)
        snprintf(text, size, "in a format that is not known");
    else if (side->scale > 0)
        snprintf(text, size, "%s at %s", format_name(side->format), word_scale(side->scale).text);
    else
        snprintf(text, size, "%s, at a scale that is not known", format_name(side->format));
}

// "a #7 fp32, step 938: fp32 at 2^0: 0 % zero, 0 % flushed, ..", as it was counted.
static void say_side(const CompareView *view, const OverlaySide *side, char *text, size_t size) {
    const RunRecord *run = &view->comparison->runs[side->run];
    const LayerSample *sample = &side->sample;
    const WhatIfShares shares = what_if_counted(sample);
    char format[96], steps[96], largest[32] = "";
    int exponent;
    say_format(side, format, sizeof format);
    if (sample->width > 1)
        snprintf(steps, sizeof steps, "steps %s to %s", word_count(sample->step).text,
                 word_count(sample->step + sample->width - 1).text);
    else
        snprintf(steps, sizeof steps, "step %s", word_count(sample->step).text);
    if (sample->largest > 0 && isfinite(sample->largest)) {
        frexp(sample->largest, &exponent);
        snprintf(largest, sizeof largest, ", largest 2^%d", exponent - 1);
    }
    snprintf(text, size, "%c #%lld, %s, %s: %s zero, %s flushed, %s subnormal, %s not finite%s",
             compare_letter(side->group), (long long)run->id, steps, format,
             word_share(shares.zero).text, word_share(shares.flushed).text,
             word_share(shares.subnormal).text, word_share(shares.broken).text, largest);
}

// What the format of the one would do to the other's. Of formats that share scales a histogram does
// not tell it: it does not know which numbers are neighbours.
static void say_crossed(const CompareOverlay *overlay, char *text, size_t size) {
    const OverlaySide *base = &overlay->sides[0], *other = &overlay->sides[1];
    char format[96];
    text[0] = 0;
    if (other->format == FORMAT_COUNT || format_is_scaled(other->format) || !(other->scale > 0))
        return;
    const WhatIfShares shares = what_if_shares(&base->sample, other->format, other->scale);
    say_format(other, format, sizeof format);
    if (shares.is_known)
        snprintf(text, size, "%s would flush %s of %c's, and %s would overflow.", format,
                 word_share(shares.flushed).text, compare_letter(base->group),
                 word_share(shares.broken - what_if_broken_before(&base->sample)).text);
}

// ---- the plot -----------------------------------------------------------------------------------

typedef struct Curve {
    PlotPoint points[LAYER_BINS];
    PlotLine line;
} Curve;

// Shares of what each has, so that layers of two sizes can be held against each other.
static double make_curve(const CompareView *view, const OverlaySide *side, int first, int last,
                         bool dotted, Curve *curve) {
    const double total = total_of(&side->sample);
    double most = 0;
    int count = 0;
    for (int e = first; e <= last; e++) {
        double share = total > 0 ? side->sample.bins[e - LAYER_LOWEST_EXPONENT] / total : 0;
        curve->points[count++] =
            (PlotPoint){.x = e + 0.5, .low = share, .mean = share, .high = share};
        most = fmax(most, share);
    }
    curve->line = (PlotLine){.points = curve->points,
                             .count = count,
                             .ink = compare_ink(view->comparison, side->run),
                             .dotted = dotted};
    return most;
}

// At its highest place, beside one that stands there already.
static void put_letter(Area plot, const PlotAxes *axes, const Curve *curve, char letter, int side) {
    const PlotPoint *top = &curve->points[0];
    for (int i = 1; i < curve->line.count; i++)
        top = curve->points[i].mean > top->mean ? &curve->points[i] : top;
    int column = plot_column_of(axes, plot.width, top->x) + side;
    int row = plot_row_of(axes, plot.height, top->mean);
    if (top->mean > 0 && column >= 0 && row >= 0)
        area_put(plot, column, row, style_bold(curve->line.ink), (unsigned char)letter);
}

static void draw_range(Area area, const CompareView *view, const OverlaySide *side,
                       const PlotAxes *axes, int row) {
    const Ink ink = compare_ink(view->comparison, side->run);
    area_put(area, 0, row, style_bold(ink), (unsigned char)compare_letter(side->group));
    for (int column = 0; column < area.width - MARGIN; column++) {
        int exponent = (int)floor(plot_x_of(axes, area.width - MARGIN, column));
        WhatIfZone zone = zone_of(side, exponent);
        area_put(area, MARGIN + column, row, style_of(zone_ink(zone, ink)), zone_glyph(zone));
    }
}

static void draw_labels(Area area, const PlotAxes *axes, int row) {
    enum { APART = 9 };
    for (int column = 0; column + APART - 2 < area.width; column += APART) {
        int exponent = (int)floor(plot_x_of(axes, area.width, column));
        area_print(area, column, row, style_of(INK_DIM), "2^%d", exponent);
    }
}

static void draw_curves(const CompareView *view, Area area) {
    const CompareOverlay *overlay = view->overlay;
    Curve curves[SIDES];
    PlotLine lines[SIDES];
    double most = 0;
    int first, last;
    find_range(overlay, &first, &last);
    for (int s = 0; s < SIDES; s++) {
        most = fmax(most, make_curve(view, &overlay->sides[s], first, last, s > 0, &curves[s]));
        lines[s] = curves[s].line;
    }
    PlotAxes axes = {first, last + 1, 0, most > 0 ? 1.05 * most : 1, false};
    Area plot = area_part(area, MARGIN, 0, area.width - MARGIN, area.height - SIDES - 1);
    plot_draw(plot, &axes, lines, SIDES);
    for (int s = 0; s < SIDES; s++) {
        put_letter(plot, &axes, &curves[s], compare_letter(overlay->sides[s].group), s);
        draw_range(area, view, &overlay->sides[s], &axes, plot.height + s);
    }
    draw_labels(area_part(area, MARGIN, 0, area.width - MARGIN, area.height), &axes,
                area.height - 1);
}

// ---- the page -----------------------------------------------------------------------------------

static const char *say_why_empty(const CompareView *view) {
    const CompareOverlay *overlay = view->overlay;
    return !view->comparison ? view->problem
           : overlay->why[0] ? overlay->why
                             : "no layer of one name has gradients in both runs at this step: left "
                               "and right take others, v another run";
}

static void draw_head(const CompareOverlay *overlay, Area area) {
    enum { LEAST_NAME = 16 };
    char place[160];
    snprintf(place, sizeof place, "%d of %d, up and down · step %s of %s, left and right",
             overlay->layer + 1, overlay->name_count, word_count(overlay->step).text,
             word_count(overlay->last).text);
    int room = area.width - text_width(place) - 2;
    if (room < LEAST_NAME) { // the keys are in the help
        snprintf(place, sizeof place, "%d of %d · step %s of %s", overlay->layer + 1,
                 overlay->name_count, word_count(overlay->step).text,
                 word_count(overlay->last).text);
        room = area.width - text_width(place) - 2;
    }
    area_outside(area, 0, 0, room, style_bold(INK_BRIGHT), overlay->names[overlay->layer]);
    area_text_right(area, area.width, 0, style_of(INK_DIM), place);
}

void compare_draw_overlay(CompareView *view, Area area, bool focused) {
    enum { LINES = 3, LINE = 512, LEAST = 5 };
    const CompareOverlay *overlay = view->overlay;
    char text[LINES][LINE];
    Area inside = area_box(area, panel_name(PANEL_OVERLAY), "true values, shares of each", focused);
    inside = area_part(inside, 1, 0, inside.width - 2, inside.height);
    if (area_is_empty(inside))
        return;
    if (!overlay->is_known) {
        area_wrap(inside, 1, style_of(INK_DIM), say_why_empty(view));
        return;
    }
    for (int s = 0; s < SIDES; s++)
        say_side(view, &overlay->sides[s], text[s], LINE);
    say_crossed(overlay, text[SIDES], LINE);
    int foot = 0;
    for (int i = 0; i < LINES; i++)
        foot += text[i][0]
                    ? area_wrap(area_to_measure(inside.width), 0, style_of(INK_TEXT), text[i])
                    : 0;
    draw_head(overlay, inside);
    int height = inside.height - 1 - foot;
    if (height >= LEAST)
        draw_curves(view, area_part(inside, 0, 1, inside.width, height));
    int row = height >= LEAST ? 1 + height : 1;
    for (int i = 0; i < LINES; i++) {
        Ink ink = i < SIDES ? compare_ink(view->comparison, overlay->sides[i].run) : INK_TEXT;
        if (text[i][0])
            row = area_wrap(inside, row, style_of(ink), text[i]);
    }
}
