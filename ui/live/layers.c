// The table of layers: what each computes in, where its gradients lie, and what its format loses of
// them. What would help is advice.c's.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rune.h"
#include "ui/cells/bars.h"
#include "ui/cells/glyphs.h"
#include "ui/live/live.h"

static const double too_much = 0.05; // of a layer's gradients flushed: said in red
static const double thin = 0.0005;   // of a histogram: left out of the sparks

// ---- where things are ---------------------------------------------------------------------------

enum {
    FORMAT_LEAST = 4, // "bf16"
    SET_COLUMNS = 4,  // "auto"
    GAP = 1,
    ZERO_COLUMNS = 6,
    FLUSHED_COLUMNS = 8,
    SUBNORMAL_COLUMNS = 6,
    BROKEN_COLUMNS = 8,
    RATIO_COLUMNS = 8,
    TIME_COLUMNS = 5,
    LEAST_ROWS = 3
};

typedef struct Columns { // of the table, from the left; -1: there is no room for it
    int name, name_width, format, format_width, spark, spark_width, time_width;
    int zero, flushed, subnormal, broken, ratio, time; // the columns behind them
    int first_bin, last_bin; // of the sparks: one range for all layers, to hold them side by side
    double seconds;          // of all layers together
} Columns;

// Takes from what is left, so that *have comes to `wanted` at most.
static void grow(int *left, int *have, int wanted) {
    int more = wanted - *have < *left ? wanted - *have : *left;
    if (more > 0) {
        *have += more;
        *left -= more;
    }
}

// What there is room for, then room for what is there: a panel that has the screen for itself
// shows names whole and as many exponents as there are.
static Columns columns_of(int width, int longest_name, int longest_format) {
    enum {
        NAME_LEAST = 8,
        NAME_TOLD = 12, // that layers of one kind are told apart
        NAME_USUAL = 16,
        SPARK_LEAST = 8,
        SPARK_USUAL = 16,
        FORMAT_USUAL = 5, // "mxfp8"
        TIME_USUAL = 10,
        TIME_MOST = 30
    };
    const int shares = ZERO_COLUMNS + FLUSHED_COLUMNS + SUBNORMAL_COLUMNS + BROKEN_COLUMNS;
    const int behind = GAP + SET_COLUMNS + GAP; // the format
    Columns columns = {.name = 1,
                       .time = -1,
                       .ratio = -1,
                       .spark = -1,
                       .name_width = NAME_LEAST,
                       .format_width = FORMAT_LEAST};
    int left = width - 1 - NAME_LEAST - GAP - FORMAT_LEAST - behind - shares;
    grow(&left, &columns.format_width,
         longest_format < FORMAT_USUAL ? longest_format : FORMAT_USUAL);
    bool has_spark = left >= SPARK_LEAST + GAP;
    left -= has_spark ? SPARK_LEAST + GAP : 0;
    grow(&left, &columns.name_width, longest_name < NAME_TOLD ? longest_name : NAME_TOLD);
    bool has_ratio = left >= RATIO_COLUMNS;
    left -= has_ratio ? RATIO_COLUMNS : 0;
    bool has_time = left >= TIME_COLUMNS;
    left -= has_time ? TIME_COLUMNS : 0;
    columns.spark_width = has_spark ? SPARK_LEAST : 0;
    columns.time_width = has_time ? TIME_COLUMNS : 0;
    grow(&left, &columns.name_width, longest_name < NAME_USUAL ? longest_name : NAME_USUAL);
    grow(&left, &columns.format_width, longest_format);
    if (has_spark)
        grow(&left, &columns.spark_width, SPARK_USUAL);
    if (has_time)
        grow(&left, &columns.time_width, TIME_USUAL);
    grow(&left, &columns.name_width, longest_name);
    if (has_spark)
        grow(&left, &columns.spark_width, LAYER_BINS);
    if (has_time)
        grow(&left, &columns.time_width, TIME_MOST);
    columns.format = columns.name + columns.name_width + GAP;
    int at = columns.format + columns.format_width + behind;
    if (has_spark) {
        columns.spark = at;
        at += columns.spark_width + GAP;
    }
    columns.zero = at += ZERO_COLUMNS;
    columns.flushed = at += FLUSHED_COLUMNS;
    columns.subnormal = at += SUBNORMAL_COLUMNS;
    columns.broken = at += BROKEN_COLUMNS;
    if (has_ratio)
        columns.ratio = at += RATIO_COLUMNS;
    if (has_time)
        columns.time = at + columns.time_width;
    return columns;
}

typedef struct Rows { // of the panel's inside: a head, layers, then sentences
    int top, shown;   // the first layer, and how many
    int below;        // rows left for sentences
} Rows;

static Rows rows_of(const Live *live, int width, int height) {
    enum { HEAD = 1, MARGINS = 2, SENTENCES = 2, MOST_SENTENCES = 5 };
    int count = live_layers_shown(&live->data.record), room = height - HEAD;
    int said = live_say_layers(live, area_to_measure(width - MARGINS), 0);
    // What is wrong is said whole before a third layer is shown.
    int least = live_is_troubled(live) ? LEAST_ROWS - 1 : LEAST_ROWS;
    int wanted = said < SENTENCES ? SENTENCES : said > MOST_SENTENCES ? MOST_SENTENCES : said;
    wanted += live->order_count > 0;
    int below = room - count; // all that the layers leave
    if (below < wanted)
        below = room - least < wanted ? room - least : wanted;
    below = below > 0 ? below : 0;
    int shown = room - below < count ? room - below : count;
    shown = shown > 0 ? shown : 0;
    int top = live->view.layer - shown / 2;
    top = top > count - shown ? count - shown : top;
    return (Rows){.top = top > 0 ? top : 0, .shown = shown, .below = below};
}

int live_layer_under(const Live *live, int width, int height, int row) {
    enum { BORDER = 1, HEAD = 1 };
    Rows rows = rows_of(live, width - 2 * BORDER, height - 2 * BORDER);
    int at = row - BORDER - HEAD;
    return width > 2 && at >= 0 && at < rows.shown ? rows.top + at : -1;
}

// ---- the table ----------------------------------------------------------------------------------

// What all rows have in common.
static void settle_columns(Columns *columns, const LiveData *data) {
    columns->first_bin = LAYER_BINS;
    columns->last_bin = -1;
    for (int i = 0; i < data->layer_count; i++) {
        const LayerSample *sample = &data->layers[i];
        if (sample->width == 0)
            continue;
        columns->seconds += sample->seconds > 0 ? sample->seconds : 0;
        double total = 0; // a thin tail is not worth squeezing the rest
        for (int bin = 0; bin < LAYER_BINS; bin++)
            total += sample->bins[bin];
        for (int bin = 0; bin < LAYER_BINS; bin++)
            if (sample->bins[bin] > total * thin) {
                columns->first_bin = bin < columns->first_bin ? bin : columns->first_bin;
                columns->last_bin = bin > columns->last_bin ? bin : columns->last_bin;
            }
    }
    if (columns->last_bin < columns->first_bin)
        return;
    while (columns->last_bin - columns->first_bin + 1 < columns->spark_width) {
        columns->first_bin -= columns->first_bin > 0;
        columns->last_bin += columns->last_bin < LAYER_BINS - 1;
    }
}

static const LayerSample *sample_of(const LiveData *data, int layer) {
    return layer < data->layer_count && data->layers[layer].width > 0 ? &data->layers[layer] : NULL;
}

// What it computed in at the cursor: a norm set to fp16 computes in fp32 all the same.
static const char *format_of(const Live *live, int layer) {
    const Format own = live_own_format(live, layer);
    return own != FORMAT_COUNT                 ? format_name(own)
           : live->view.cursor != LIVE_FOLLOWS ? "–"
                                               : live->data.record.layers[layer].precision;
}

static void draw_format(const Live *live, Area area, const Columns *columns, int row, int layer) {
    const RecordLayer *recorded = &live->data.record.layers[layer];
    bool is_past = live->view.cursor != LIVE_FOLLOWS;
    char format[48], set[48];
    live_clean(format, sizeof format, format_of(live, layer));
    live_clean(set, sizeof set, recorded->set);
    const int word = columns->format + columns->format_width + GAP;
    int at = area_text_cut(area, columns->format, row, columns->format_width,
                           style_of(live_ink(format)), format);
    const char *pending = live_pending(live, layer);
    bool is_set = !is_past && set[0] && strcmp(set, "auto") != 0;
    if (pending[0]) {
        area_put(area, at, row, style_of(INK_WARN), GLYPH_ARROW);
        area_text_cut(area, at + 1, row, word + SET_COLUMNS - at - 1, style_of(live_ink(pending)),
                      pending);
    } else { // of then it is not known who chose the format
        area_text_cut(area, word, row, SET_COLUMNS, style_of(is_set ? INK_BRIGHT : INK_DIM),
                      is_past  ? "–"
                      : is_set ? "set"
                               : "auto");
    }
}

static void draw_spark(Area area, const Columns *columns, int row, const LayerSample *sample,
                       Ink ink) {
    double values[LAYER_BINS];
    int count = columns->last_bin - columns->first_bin + 1;
    for (int i = 0; i < count; i++)
        values[i] = sample->bins[columns->first_bin + i];
    if (count > 0)
        spark_draw(area, columns->spark, row, columns->spark_width, values, count, ink);
}

static void draw_time(Area area, const Columns *columns, int row, double share) {
    enum { EIGHTHS = 8, WORD = 5 };
    int width = columns->time_width - WORD - GAP, left = columns->time - columns->time_width + GAP;
    int eighths = (int)lround(share * width * EIGHTHS);
    eighths = eighths < 1 ? 1 : eighths;
    for (int i = 0; i < width && eighths > 0; i++, eighths -= EIGHTHS) {
        int part = eighths < EIGHTHS ? eighths : EIGHTHS;
        area_put(area, left + i, row, style_of(INK_DIM), (uint32_t)(GLYPH_PART - (part - 1)));
    }
    char text[16];
    snprintf(text, sizeof text, "%.0f%%", share * 100);
    area_text_right(area, columns->time, row, style_of(INK_DIM), text);
}

void live_draw_share(Area area, int end, int row, double share, Ink ink) {
    char text[16];
    double percent = share * 100;
    if (share == 0)
        snprintf(text, sizeof text, "0");
    else if (share < 1 && percent >= 99.5)
        snprintf(text, sizeof text, ">99%%");
    else if (percent < 0.05)
        snprintf(text, sizeof text, "<0.1%%");
    else
        snprintf(text, sizeof text, percent < 9.95 ? "%.1f%%" : "%.0f%%", percent);
    bool is_told = ink == INK_BAD || ink == INK_WARN;
    area_text_right(area, end, row, is_told ? style_bold(ink) : style_of(ink), text);
}

// Zeros among others are usual: a unit that is off has them.
static void draw_shares(const Live *live, Area area, const Columns *columns, int row, int layer) {
    const int ends[] = {columns->zero, columns->flushed, columns->subnormal, columns->broken};
    const LayerSample *sample = sample_of(&live->data, layer);
    WhatIfShares shares = sample ? live_shares(live, layer) : (WhatIfShares){.is_known = false};
    if (!shares.is_known) {
        for (int i = 0; i < 4; i++)
            area_text_right(area, ends[i], row, style_of(INK_DIM), "–");
        return;
    }
    bool is_gone = live_is_gone(sample);
    // Of many steps it is not of this one: a sentence below says among which it was.
    Ink broken = shares.broken == 0                                      ? INK_DIM
                 : sample->width == 1 && sample->nans + sample->infs > 0 ? INK_BAD
                                                                         : INK_WARN;
    live_draw_share(area, columns->zero, row, shares.zero, is_gone ? INK_BAD : INK_DIM);
    live_draw_share(area, columns->flushed, row, shares.flushed,
                    shares.flushed > too_much ? INK_BAD
                    : shares.flushed > 0      ? INK_TEXT
                                              : INK_DIM);
    live_draw_share(area, columns->subnormal, row, shares.subnormal,
                    shares.subnormal > 0 ? INK_TEXT : INK_DIM);
    live_draw_share(area, columns->broken, row, shares.broken, broken);
}

static void draw_layer(const Live *live, Area area, const Columns *columns, int row, int layer) {
    const LiveData *data = &live->data;
    const RecordLayer *recorded = &data->record.layers[layer];
    const LayerSample *sample = sample_of(data, layer);
    bool is_selected = layer == live->view.layer;
    char name[RECORD_NAME_SIZE * 2], text[32] = "–";
    if (is_selected)
        area_put(area, 0, row, style_bold(INK_ACCENT), GLYPH_CURSOR);
    live_clean(name, sizeof name, recorded->name);
    area_text_middle(area, columns->name, row, columns->name_width,
                     is_selected ? style_bold(INK_BRIGHT) : style_of(INK_TEXT), name);
    draw_format(live, area, columns, row, layer);
    if (sample && sample->count > 0 && columns->spark >= 0)
        draw_spark(area, columns, row, sample,
                   live_ink(sample->precision[0] ? sample->precision : recorded->precision));
    draw_shares(live, area, columns, row, layer);
    if (columns->ratio >= 0) {
        if (sample && isfinite(sample->update_ratio))
            snprintf(text, sizeof text, "%s",
                     sample->update_ratio == 0 ? "0" : word_power(sample->update_ratio, 1).text);
        area_text_right(area, columns->ratio, row, style_of(INK_TEXT), text);
    }
    if (columns->time >= 0 && sample && sample->seconds > 0)
        draw_time(area, columns, row, sample->seconds / columns->seconds);
    else if (columns->time >= 0)
        area_text_right(area, columns->time, row, style_of(INK_DIM), "–");
    if (is_selected)
        area_set_ground(area_part(area, 0, row, area.width, 1), GROUND_SELECTED);
}

static void draw_head(Area area, const Columns *columns) {
    Style style = style_of(INK_DIM);
    area_text_cut(area, columns->name, 0, columns->name_width, style, "layer");
    area_text(area, columns->format, 0, style, "format");
    if (columns->spark >= 0)
        area_text_cut(area, columns->spark, 0, columns->spark_width, style,
                      columns->spark_width >= 18  ? "gradient exponents"
                      : columns->spark_width >= 9 ? "exponents"
                                                  : "2^n");
    area_text_right(area, columns->zero, 0, style, "zero");
    area_text_right(area, columns->flushed, 0, style, "flushed");
    area_text_right(area, columns->subnormal, 0, style, "subn.");
    area_text_right(area, columns->broken, 0, style, "over");
    if (columns->ratio >= 0)
        area_text_right(area, columns->ratio, 0, style, area.frame->ascii ? "dw/w" : "Δ/w");
    if (columns->time >= 0)
        area_text_right(area, columns->time, 0, style, "time");
}

static int longest_name(const RunRecord *record) {
    int longest = 0;
    for (int i = 0; i < record->layer_count; i++) {
        char name[RECORD_NAME_SIZE * 2];
        live_clean(name, sizeof name, record->layers[i].name);
        int width = text_width(name);
        longest = width > longest ? width : longest;
    }
    return longest;
}

static int longest_format(const Live *live) {
    int longest = 0;
    for (int i = 0; i < live->data.record.layer_count; i++) {
        char format[48];
        live_clean(format, sizeof format, format_of(live, i));
        int width = text_width(format);
        longest = width > longest ? width : longest;
    }
    return longest;
}

static void draw_sentences(const Live *live, Area area) {
    int said = live_say_layers(live, area_to_measure(area.width), 0);
    int pending = live->order_count > 0 && area.height > 0 ? 1 : 0;
    Area above = area_part(area, 0, 0, area.width, area.height - pending);
    live_say_layers(live, above, above.height > said ? 1 : 0);
    if (pending == 0)
        return;
    const LiveOrder *order = &live->orders[live->order_count - 1];
    int column = area_text(area, 0, area.height - 1, style_of(INK_DIM), "pending: ");
    char when[64], more[32] = "";
    if (live->order_count > 1)
        snprintf(more, sizeof more, ", and %d more", live->order_count - 1);
    snprintf(when, sizeof when, "%s%s", order->when, more);
    column = area_text_cut(area, column, area.height - 1, area.width - column, style_of(INK_WARN),
                           order->what);
    area_text_cut(area, column + 2, area.height - 1, area.width - column - 2, style_of(INK_DIM),
                  when);
}

// Of which step the columns are that are not of the one at the cursor: they are measured a few
// times a second.
static void say_measured(const Live *live, const Columns *columns, bool ascii, char *out,
                         size_t size) {
    const char *what = columns->ratio < 0 ? "time" : ascii ? "dw/w" : "Δ/w";
    const char *more = columns->ratio >= 0 && columns->time >= 0 ? ", time" : "";
    int64_t from, to;
    out[0] = 0;
    if ((columns->ratio < 0 && columns->time < 0) ||
        !layer_samples_measured(live->data.layers, live->data.layer_count, &from, &to))
        return;
    if (from == to)
        snprintf(out, size, "%s%s of step %s · ", what, more, word_count(to).text);
    else
        snprintf(out, size, "%s%s of steps %s to %s · ", what, more, word_count(from).text,
                 word_count(to).text);
}

void live_draw_layers(const Live *live, Area area, bool focused) {
    const RunRecord *record = &live->data.record;
    const int shown = live_layers_shown(record);
    char right[160] = "", more[40] = "";
    Rows rows = rows_of(live, area.width - 2, area.height - 2);
    char measured[96] = "";
    const Columns columns = columns_of(area.width - 2, longest_name(record), longest_format(live));
    say_measured(live, &columns, area.frame->ascii, measured, sizeof measured);
    if (shown < record->layer_count)
        snprintf(more, sizeof more, " · %d of %d shown", shown, record->layer_count);
    if (shown > 0)
        snprintf(right, sizeof right, "%s%d of %d%s", measured, live->view.layer + 1, shown, more);
    Area inside = area_box(area, panel_name(PANEL_LAYERS), right, focused);
    if (record->layer_count == 0) {
        area_wrap(area_part(inside, 1, 0, inside.width - 2, inside.height), 1, style_of(INK_DIM),
                  !live->data.is_known   ? live_say_no_run(live)
                  : live_is_over(record) ? "this run has no layers"
                                         : "the layers are known after the first step");
        return;
    }
    Columns settled = columns;
    settle_columns(&settled, &live->data);
    draw_head(inside, &settled);
    for (int i = 0; i < rows.shown; i++)
        draw_layer(live, inside, &settled, 1 + i, rows.top + i);
    draw_sentences(live, area_part(inside, 1, 1 + rows.shown, inside.width - 2, rows.below));
}
