// The exponents of the selected layer's gradients: under the range of its format, at the scale or a
// supposed one.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rune.h"
#include "ui/cells/bars.h"
#include "ui/cells/glyphs.h"
#include "ui/cells/zones.h"
#include "ui/live/histogram.h"

enum { MOST_COLUMNS = FRAME_MOST };

bool histogram_choose(const Live *live, HistogramLayer *shown) {
    const LiveData *data = &live->data;
    int layer = live->view.layer;
    *shown = (HistogramLayer){.format = live_layer_format(live, layer)};
    if (layer < 0 || layer >= data->record.layer_count)
        return false;
    live_clean(shown->name, sizeof shown->name, data->record.layers[layer].name);
    shown->scale = ldexp(data->used_scale, live->view.hypothesis);
    shown->ink = shown->format == FORMAT_COUNT  ? INK_BRIGHT
                 : shown->format == FORMAT_E5M2 ? INK_FP8
                                                : live_ink(format_name(shown->format));
    if (layer >= data->layer_count || data->layers[layer].width == 0)
        return false;
    shown->has_time_only = data->layers[layer].count == 0;
    shown->sample = &data->layers[layer];
    shown->scale = ldexp(what_if_own_scale(shown->sample, shown->format, data->used_scale),
                         live->view.hypothesis);
    return !shown->has_time_only;
}

WhatIfZone histogram_zone(const HistogramLayer *shown, int exponent) {
    return what_if_zone(shown->format, shown->scale, exponent);
}

// The layer's name gives way, so that it is always said that the values are true ones.
Area histogram_box(Area area, const HistogramLayer *shown, PanelId panel, bool focused) {
    enum { CORNERS = 6, BETWEEN = 4, LEAST_NAME = 6 };
    static const char right[] = "true values";
    const char *what = panel_name(panel);
    int room = area.width - CORNERS - BETWEEN - (int)sizeof right;
    int name_width = text_width(shown->name);
    if (name_width + 3 + text_width(what) > room)
        what = panel == PANEL_HEAT ? "over time" : "exponents";
    int left = room - 3 - text_width(what);
    left = left < LEAST_NAME ? LEAST_NAME : left;
    char title[RECORD_NAME_SIZE * 2 + 64], name[RECORD_NAME_SIZE * 2];
    word_shorten(name, sizeof name, shown->name, left);
    if (!shown->name[0])
        snprintf(title, sizeof title, "%s", what);
    else
        snprintf(title, sizeof title, "%s · %s", name, what);
    return area_box(area, title, right, focused);
}

// ---- the range of exponents ---------------------------------------------------------------------

typedef struct Range { // exponents, and how they share the columns
    int first, last;
    int bins_a_column, columns_a_bin; // one of them is 1
    int columns;
} Range;

static int clamp(int value, int least, int most) {
    return value < least ? least : value > most ? most : value;
}

// All that holds elements, and the limits of the format where they are near.
static LiveExponents wanted_by(const HistogramLayer *shown) {
    enum { AROUND = 2, NEAR = 14, HIGHEST = LAYER_LOWEST_EXPONENT + LAYER_BINS - 1 };
    int first = LAYER_BINS, last = -1;
    for (int i = 0; i < LAYER_BINS; i++)
        if (shown->sample->bins[i] > 0) {
            first = i < first ? i : first;
            last = i;
        }
    if (last < 0)
        first = last = -LAYER_LOWEST_EXPONENT;
    first += LAYER_LOWEST_EXPONENT;
    last += LAYER_LOWEST_EXPONENT;
    int low = first, high = last;
    for (int i = first - NEAR; i < first; i++)
        if (histogram_zone(shown, i) != histogram_zone(shown, i + 1) && i < low)
            low = i;
    for (int i = last + NEAR; i > last; i--)
        if (histogram_zone(shown, i) != histogram_zone(shown, i - 1) && i > high)
            high = i;
    return (LiveExponents){clamp(low - AROUND, LAYER_LOWEST_EXPONENT, HIGHEST),
                           clamp(high + AROUND, LAYER_LOWEST_EXPONENT, HIGHEST)};
}

static Range range_of(LiveExponents exponents, int width) {
    Range range = {.first = exponents.first, .last = exponents.last};
    int bins = range.last - range.first + 1;
    width = width > 1 ? width : 1;
    range.bins_a_column = (bins + width - 1) / width;
    range.columns_a_bin = range.bins_a_column > 1 ? 1 : clamp(width / bins, 1, 12);
    range.columns = (bins + range.bins_a_column - 1) / range.bins_a_column * range.columns_a_bin;
    range.columns = clamp(range.columns, 1, MOST_COLUMNS);
    return range;
}

static int exponent_at(const Range *range, int column) {
    int exponent = range->first + column / range->columns_a_bin * range->bins_a_column;
    return exponent < range->last ? exponent : range->last;
}

// ---- the histogram ------------------------------------------------------------------------------

static void draw_bars(const HistogramLayer *shown, Area area, const Range *range) {
    double values[MOST_COLUMNS], most = 0;
    Ink inks[MOST_COLUMNS];
    for (int column = 0; column < range->columns; column++) {
        int exponent = exponent_at(range, column);
        values[column] = 0;
        for (int i = 0; i < range->bins_a_column; i++) {
            int bin = exponent + i - LAYER_LOWEST_EXPONENT;
            values[column] += bin < LAYER_BINS ? shown->sample->bins[bin] : 0;
        }
        most = fmax(most, values[column]);
        inks[column] = zone_ink(histogram_zone(shown, exponent), shown->ink);
    }
    bars_draw(area, values, range->columns, most, shown->ink, inks);
}

static void draw_range(const HistogramLayer *shown, Area area, const Range *range) {
    for (int column = 0; column < range->columns; column++) {
        WhatIfZone zone = histogram_zone(shown, exponent_at(range, column));
        area_put(area, column, 0, style_of(zone_ink(zone, shown->ink)), zone_glyph(zone));
    }
}

// Labels where the zones change first, then at the ends.
static void draw_labels(const HistogramLayer *shown, Area area, const Range *range) {
    int taken[16][2], count = 0;
    enum { MOST = sizeof taken / sizeof *taken };
    for (int pass = 0; pass < 2; pass++)
        for (int column = 0; column < range->columns && count < MOST; column++) {
            int exponent = exponent_at(range, column);
            bool is_first = column == 0 || exponent_at(range, column - 1) != exponent;
            bool is_edge = column > 0 && histogram_zone(shown, exponent) !=
                                             histogram_zone(shown, exponent_at(range, column - 1));
            bool is_end = column == 0 || column == range->columns - range->columns_a_bin;
            if (!is_first || !(pass == 0 ? is_edge : is_end))
                continue;
            char text[16];
            int width = snprintf(text, sizeof text, "2^%d", exponent);
            int at = clamp(column, 0, area.width - width);
            bool is_free = at >= 0;
            for (int i = 0; i < count; i++)
                is_free = is_free && (at > taken[i][1] + 1 || at + width < taken[i][0]);
            if (!is_free)
                continue;
            area_text(area, at, 0, style_of(INK_DIM), text);
            taken[count][0] = at;
            taken[count++][1] = at + width - 1;
        }
}

typedef struct Piece { // of the row above the histogram
    char text[160];
    Ink ink;
} Piece;

enum { PIECES = 5 };

// What was counted, shorter at every level; returns how many columns it takes.
static int gather_counted(const HistogramLayer *shown, int level, Piece pieces[PIECES]) {
    enum { WITHOUT_LARGEST = 1, BRIEF_WORDS, BRIEF_STEPS, WITHOUT_SUBNORMAL, WITHOUT_ZERO };
    const LayerSample *sample = shown->sample;
    WhatIfShares shares = what_if_counted(sample);
    int64_t broken = sample->infs + sample->nans + sample->overflowed;
    char among[80] = "";
    int width = 0, exponent;
    for (int i = 0; i < PIECES; i++)
        pieces[i] = (Piece){.ink = INK_TEXT};
    if (level < WITHOUT_ZERO || live_is_gone(sample))
        snprintf(pieces[0].text, sizeof pieces[0].text, "%s zero  ", word_share(shares.zero).text);
    pieces[0].ink = live_is_gone(sample) ? INK_BAD : shares.zero > 0 ? INK_TEXT : INK_DIM;
    snprintf(pieces[1].text, sizeof pieces[1].text, "%s flushed  ",
             word_share(shares.flushed).text);
    if (level < WITHOUT_SUBNORMAL)
        snprintf(pieces[2].text, sizeof pieces[2].text, "%s %s  ",
                 word_share(shares.subnormal).text, level < BRIEF_WORDS ? "subnormal" : "subn.");
    if (broken > 0 && sample->width > 1 && level < BRIEF_STEPS)
        live_say_steps(among, sizeof among, sample);
    else if (broken > 0 && sample->width > 1)
        snprintf(among, sizeof among, " in %" PRId64 " steps", sample->width);
    snprintf(pieces[3].text, sizeof pieces[3].text, "%s %s%s", sample->nans > 0 ? "nan" : "inf",
             word_count(broken).text, among);
    pieces[3].ink = broken > 0 ? INK_BAD : INK_TEXT;
    if (sample->largest > 0 && level < WITHOUT_LARGEST) {
        frexp(sample->largest, &exponent);
        snprintf(pieces[4].text, sizeof pieces[4].text, "  max 2^%d", exponent - 1);
    }
    for (int i = 0; i < PIECES; i++)
        width += text_width(pieces[i].text);
    return width;
}

static void draw_counted(const HistogramLayer *shown, Area area) {
    enum { LEVELS = 6 };
    Piece pieces[PIECES];
    int level = 0, column = 0;
    while (gather_counted(shown, level, pieces) > area.width && level < LEVELS - 1)
        level++;
    for (int i = 0; i < PIECES; i++) {
        Ink ink = pieces[i].ink;
        column = area_text_cut(area, column, 0, area.width - column,
                               ink == INK_BAD ? style_bold(ink) : style_of(ink), pieces[i].text);
    }
}

// In one word what the scale would do; what is lost is never said to fit.
static Ink judge(const Live *live, const HistogramLayer *shown, const WhatIfShares *shares,
                 char *text, size_t size) {
    const double most = 0.5, much = 0.05;
    const LayerSample *sample = shown->sample;
    double left = 1 - shares->zero, lost = left > 0 ? shares->flushed / left : 0;
    bool is_broken = sample->nans + sample->infs > 0 && live->view.hypothesis >= 0;
    bool fits = what_if_fits(sample, shown->format, shown->scale);
    if (is_broken)
        snprintf(text, size, "%s not finite", word_share(shares->broken).text);
    else if (!fits && shares->broken > 0)
        snprintf(text, size, "%s overflow", word_share(shares->broken).text);
    else if (!fits)
        snprintf(text, size, "overflows");
    else if (lost > much)
        snprintf(text, size, "loses %s", word_share(lost).text);
    else
        snprintf(text, size, "fits");
    return is_broken || !fits || lost > most ? INK_BAD : lost > much ? INK_WARN : INK_DIM;
}

// As much as there is room for; what is subnormal is kept, if less exactly.
static void say_details(const WhatIfShares *shares, const char *verdict, const char *which,
                        const char *brief, int room, char *text, size_t size) {
    char flushed[48], subnormal[48];
    snprintf(flushed, sizeof flushed, ", %s flushed", word_share(shares->flushed).text);
    snprintf(subnormal, sizeof subnormal, ", %s subnormal", word_share(shares->subnormal).text);
    const char *const tries[][3] = {
        {flushed, subnormal, which}, {flushed, "", which}, {"", "", which}, {"", "", brief}};
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        const char *scales = tries[i][2];
        snprintf(text, size, "%s%s%s%s%s", verdict, tries[i][0], tries[i][1],
                 scales[0] ? " · " : "", scales);
        if (text_width(text) <= room)
            return;
    }
    snprintf(text, size, "%s", verdict);
}

// What the scale, or a supposed one, does, computed; and which ones would do, in a row of their own
// where there is one.
static void draw_supposed(const Live *live, const HistogramLayer *shown, Area area) {
    WhatIfShares shares = what_if_shares(shown->sample, shown->format, shown->scale);
    WhatIfScales scales = what_if_scales(shown->sample, shown->format);
    char text[240], verdict[64], which[96] = "", brief[64] = "";
    int column = 0;
    bool has_row = area.height > 1;
    area_put(area, column, 0, style_bold(INK_ACCENT), GLYPH_LEFT);
    snprintf(text, sizeof text, " at %s ", word_scale(shown->scale).text);
    column = area_text(area, 2 - 1, 0, style_bold(INK_ACCENT), text);
    area_put(area, column, 0, style_bold(INK_ACCENT), GLYPH_RIGHT);
    column += 2;
    if (!shares.is_known) {
        area_text_cut(area, column, 0, area.width - column, style_of(INK_DIM),
                      "what the format does is not known");
        return;
    }
    if (scales.is_known) {
        live_say_scales(&scales, false, which, sizeof which);
        live_say_scales(&scales, true, brief, sizeof brief);
    }
    const Format own = live_own_format(live, live->view.layer);
    Ink ink = judge(live, shown, &shares, verdict, sizeof verdict);
    say_details(&shares, verdict, has_row ? "" : which, has_row ? "" : brief, area.width - column,
                text, sizeof text);
    area_text_cut(area, column, 0, area.width - column, style_of(ink), text);
    const bool has_own_scale = own != FORMAT_COUNT && format_is_scaled(own); // which products take
    if (has_own_scale)
        snprintf(text, sizeof text, "gradients of its weights, in %s; < > try",
                 format_name(shown->format));
    else
        snprintf(text, sizeof text, "%s%s< > try others", which, which[0] ? " this layer; " : "");
    if (text_width(text) > area.width && !has_own_scale)
        snprintf(text, sizeof text, "%s; < > try others", which);
    if (has_row)
        area_text_cut(area, 0, 1, area.width, style_of(INK_DIM), text);
}

void histogram_say_why_empty(const Live *live, const HistogramLayer *shown, Area inside) {
    const char *why =
        !live->data.is_known                 ? live_say_no_run(live)
        : live->data.record.layer_count == 0 ? "this run has no layers"
        : shown->has_time_only ? "this layer has no weights, and so no gradients to count"
        : shown->name[0] && live_is_over(&live->data.record)
            ? "no gradients of this layer were counted here"
            : "no gradients of this layer are counted so far: they are from the first "
              "steps on, where it has weights of its own";
    area_wrap(area_part(inside, 1, 1, inside.width - 2, inside.height - 1), 0, style_of(INK_DIM),
              why);
}

static bool has_values(const LayerSample *sample) {
    for (int i = 0; i < LAYER_BINS; i++)
        if (sample->bins[i] > 0)
            return true;
    return false;
}

bool live_wanted_exponents(const Live *live, LiveExponents *wanted) {
    HistogramLayer shown;
    bool is_there = histogram_choose(live, &shown) && has_values(shown.sample);
    if (is_there)
        *wanted = wanted_by(&shown);
    return is_there;
}

void live_draw_histogram(const Live *live, Area area, bool focused) {
    enum { FOOT = 3, HIGH = 9 }; // the range, its labels, the supposed scale
    if (live->view.heat) {
        live_draw_heat(live, area, focused);
        return;
    }
    HistogramLayer shown;
    bool is_there = histogram_choose(live, &shown);
    Area inside = histogram_box(area, &shown, PANEL_HISTOGRAM, focused);
    inside = area_part(inside, 1, 0, inside.width - 2, inside.height);
    if (area_is_empty(inside))
        return;
    if (!is_there) {
        histogram_say_why_empty(live, &shown, inside);
        return;
    }
    if (!has_values(shown.sample)) {
        draw_counted(&shown, inside);
        area_wrap(area_part(inside, 1, 2, inside.width - 2, inside.height - 2), 0,
                  style_of(INK_DIM),
                  shown.sample->zeros < shown.sample->count
                      ? "no gradient of this layer is finite and above zero here"
                      : "all gradients of this layer are zero here: how large they were, and so "
                        "which scale would keep them, is known once one of them stays");
        return;
    }
    Range range = range_of(live_held_exponents(live, wanted_by(&shown)), inside.width);
    int left = (inside.width - range.columns) / 2;
    draw_counted(&shown, inside);
    int more = inside.height >= HIGH ? 1 : 0;
    int bars = inside.height - 1 - FOOT - more;
    Area middle = area_part(inside, left, 1, range.columns, bars);
    if (bars > 0)
        draw_bars(&shown, middle, &range);
    int foot = bars > 0 ? 1 + bars : 1;
    draw_range(&shown, area_part(inside, left, foot, range.columns, 1), &range);
    draw_labels(&shown, area_part(inside, left, foot + 1, range.columns, 1), &range);
    draw_supposed(live, &shown, area_part(inside, 0, foot + 2, inside.width, 1 + more));
}
