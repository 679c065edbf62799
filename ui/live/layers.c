// The table of layers: what each computes in, where its gradients lie, what its format loses of
// them, and what would help.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rune.h"
#include "ui/cells/bars.h"
#include "ui/cells/glyphs.h"
#include "ui/live/live.h"

static const double too_much = 0.05; // of a layer's gradients flushed: said in red
static const double noticed = 0.001; // said at all
static const double thin = 0.0005;   // of a histogram: left out of the sparks

// ---- where things are ---------------------------------------------------------------------------

enum { FORMAT_COLUMNS = 10, SHARE_COLUMNS = 8, RATIO_COLUMNS = 8, LEAST_ROWS = 3 };

typedef struct Columns { // of the table, from the left; -1: there is no room for it
    int name, name_width, format, spark, spark_width, flushed, ratio, time, time_width;
    int first_bin, last_bin; // of the sparks: one range for all layers, to hold them side by side
    double seconds;          // of all layers together
} Columns;

static Columns columns_of(int width) {
    enum { NAME_LEAST = 8, NAME_MOST = 28, SPARK_LEAST = 8, SPARK_MOST = 40, TIME = 10, GAP = 1 };
    Columns columns = {.name = 1, .time = -1, .ratio = -1, .spark = -1};
    int left = width - 1 - NAME_LEAST - GAP - FORMAT_COLUMNS - SHARE_COLUMNS;
    bool has_spark = left >= SPARK_LEAST + GAP;
    left -= has_spark ? SPARK_LEAST + GAP : 0;
    bool has_ratio = left >= RATIO_COLUMNS;
    left -= has_ratio ? RATIO_COLUMNS : 0;
    bool has_time = left >= TIME;
    left -= has_time ? TIME : 0;
    left = left > 0 ? left : 0;
    int more_name = left / 2 < NAME_MOST - NAME_LEAST ? left / 2 : NAME_MOST - NAME_LEAST;
    int more_spark = left - more_name;
    more_spark = more_spark < SPARK_MOST - SPARK_LEAST ? more_spark : SPARK_MOST - SPARK_LEAST;
    columns.name_width = NAME_LEAST + more_name;
    columns.format = columns.name + columns.name_width + GAP;
    int at = columns.format + FORMAT_COLUMNS;
    if (has_spark) {
        columns.spark = at;
        columns.spark_width = SPARK_LEAST + more_spark;
        at += columns.spark_width + GAP;
    }
    columns.flushed = at += SHARE_COLUMNS;
    if (has_ratio)
        columns.ratio = at += RATIO_COLUMNS;
    if (has_time) {
        columns.time = at + GAP;
        columns.time_width = TIME - GAP;
    }
    return columns;
}

typedef struct Rows { // of the panel's inside: a head, layers, then sentences
    int top, shown;   // the first layer, and how many
    int below;        // rows left for sentences
} Rows;

static Rows rows_of(const Live *live, int height) {
    enum { HEAD = 1, SENTENCES = 2 };
    int count = live->data.record.layer_count, room = height - HEAD;
    count = count < LIVE_MOST_LAYERS ? count : LIVE_MOST_LAYERS;
    int wanted = SENTENCES + (live->order_count > 0 ? 1 : 0);
    int below = room - count; // all that the layers leave
    if (below < wanted)
        below = room - LEAST_ROWS < wanted ? room - LEAST_ROWS : wanted;
    below = below > 0 ? below : 0;
    int shown = room - below < count ? room - below : count;
    shown = shown > 0 ? shown : 0;
    int top = live->view.layer - shown / 2;
    top = top > count - shown ? count - shown : top;
    return (Rows){.top = top > 0 ? top : 0, .shown = shown, .below = below};
}

int live_layer_under(const Live *live, int width, int height, int row) {
    enum { BORDER = 1, HEAD = 1 };
    Rows rows = rows_of(live, height - 2 * BORDER);
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

static void draw_format(const Live *live, Area area, int column, int row, int layer) {
    const RecordLayer *recorded = &live->data.record.layers[layer];
    const LayerSample *sample = sample_of(&live->data, layer);
    bool is_past = live->view.cursor != LIVE_FOLLOWS;
    const char *then = sample && sample->precision[0] ? sample->precision : "–";
    char format[48], set[48];
    live_clean(format, sizeof format, is_past ? then : recorded->precision);
    live_clean(set, sizeof set, recorded->set);
    int at = area_text_cut(area, column, row, 5, style_of(live_ink(format)), format);
    const char *pending = live_pending(live, layer);
    bool is_set = !is_past && set[0] && strcmp(set, "auto") != 0;
    if (pending[0]) {
        area_put(area, at, row, style_of(INK_WARN), GLYPH_ARROW);
        area_text_cut(area, at + 1, row, 4, style_of(live_ink(pending)), pending);
    } else { // of then it is not known who chose the format
        area_text_cut(area, column + 5, row, 4, style_of(is_set ? INK_BRIGHT : INK_DIM),
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
    enum { EIGHTHS = 8, WORD = 4 };
    int width = columns->time_width - WORD - 1;
    int eighths = (int)lround(share * width * EIGHTHS);
    eighths = eighths < 1 ? 1 : eighths;
    for (int i = 0; i < width && eighths > 0; i++, eighths -= EIGHTHS) {
        int part = eighths < EIGHTHS ? eighths : EIGHTHS;
        area_put(area, columns->time + i, row, style_of(INK_DIM),
                 (uint32_t)(GLYPH_PART - (part - 1)));
    }
    char text[16];
    snprintf(text, sizeof text, "%.0f%%", share * 100);
    area_text_right(area, columns->time + columns->time_width, row, style_of(INK_DIM), text);
}

static void draw_layer(const Live *live, Area area, const Columns *columns, int row, int layer) {
    const LiveData *data = &live->data;
    const RecordLayer *recorded = &data->record.layers[layer];
    const LayerSample *sample = sample_of(data, layer);
    bool is_selected = layer == live->view.layer;
    if (is_selected)
        area_put(area, 0, row, style_bold(INK_ACCENT), GLYPH_CURSOR);
    area_outside(area, columns->name, row, columns->name_width,
                 is_selected ? style_bold(INK_BRIGHT) : style_of(INK_TEXT), recorded->name);
    draw_format(live, area, columns->format, row, layer);
    LiveShares shares = sample ? live_counted(sample) : (LiveShares){0};
    char text[32] = "–";
    if (sample && sample->count > 0 && columns->spark >= 0)
        draw_spark(area, columns, row, sample,
                   live_ink(sample->precision[0] ? sample->precision : recorded->precision));
    if (shares.is_known)
        snprintf(text, sizeof text, "%.1f%%", shares.flushed * 100);
    bool is_bad = shares.is_known && shares.flushed > too_much;
    // Of many steps it is not of this one: the sentence below says among which it was.
    if (shares.is_known && sample->width == 1 &&
        sample->nans + sample->infs + sample->overflowed > 0) {
        snprintf(text, sizeof text, sample->nans > 0 ? "nan" : "inf");
        is_bad = true;
    }
    area_text_right(area, columns->flushed, row, is_bad ? style_bold(INK_BAD) : style_of(INK_TEXT),
                    text);
    if (columns->ratio >= 0) {
        snprintf(text, sizeof text, "–");
        if (sample && isfinite(sample->update_ratio))
            snprintf(text, sizeof text, "%s", word_power(sample->update_ratio, 1).text);
        area_text_right(area, columns->ratio, row, style_of(INK_TEXT), text);
    }
    if (columns->time >= 0 && sample && sample->seconds > 0)
        draw_time(area, columns, row, sample->seconds / columns->seconds);
    else if (columns->time >= 0)
        area_text_right(area, columns->time + columns->time_width, row, style_of(INK_DIM), "–");
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
    area_text_right(area, columns->flushed, 0, style, "flushed");
    if (columns->ratio >= 0)
        area_text_right(area, columns->ratio, 0, style, area.frame->ascii ? "dw/w" : "Δ/w");
    if (columns->time >= 0)
        area_text_right(area, columns->time + columns->time_width, 0, style, "time");
}

// ---- sentences ----------------------------------------------------------------------------------

// What could be done about a layer that loses gradients, from its histogram.
static int advise(const Live *live, Area area, int row, int layer) {
    const double good_enough = 0.005;
    const LayerSample *sample = &live->data.layers[layer];
    Format format = live_layer_format(live, layer);
    double scale = live->data.scale;
    char text[320], other[120] = "";
    if (format == FORMAT_COUNT || !(scale > 0))
        return row;
    LiveShares bf16 = live_shares(sample, FORMAT_BF16, scale);
    if (format != FORMAT_BF16 && bf16.is_known && live_fits(sample, FORMAT_BF16, scale))
        snprintf(other, sizeof other,
                 bf16.flushed > 0 ? "bf16 would flush %s." : "bf16 keeps all%s.",
                 bf16.flushed > 0 ? word_share(bf16.flushed).text : "");
    LiveLimit seen = live_seen_limit(live);
    int n = live_better_scale(sample, format, scale, good_enough);
    double better = ldexp(scale, n);
    if (n > 0) {
        double flushed = live_shares(sample, format, better).flushed;
        char end[96] = "and fit";
        if (better >= seen.scale) // gradients that were not finite are in no histogram
            snprintf(end, sizeof end, "but step %s overflowed at %s", word_count(seen.step).text,
                     word_scale(seen.scale).text);
        snprintf(text, sizeof text,
                 flushed > 0 ? "At %s all but %s would stay, %s%s%s"
                             : "At %s all%s would stay, %s%s%s",
                 word_scale(better).text, flushed > 0 ? word_share(flushed).text : "", end,
                 other[0] ? "; " : ".", other);
    } else {
        snprintf(text, sizeof text, "No scale keeps them and lets the largest fit%s%s",
                 other[0] ? "; " : ".", other);
    }
    return area_wrap(area, row, style_of(INK_DIM), text);
}

static int say_worst(const Live *live, Area area, int row) {
    const LiveData *data = &live->data;
    double flushed;
    int worst = live_worst_layer(live, &flushed);
    char name[RECORD_NAME_SIZE * 2], among[80], text[400];
    for (int i = 0; i < data->layer_count; i++) {
        int64_t broken = data->layers[i].nans + data->layers[i].infs + data->layers[i].overflowed;
        if (data->layers[i].width == 0 || broken == 0)
            continue;
        live_clean(name, sizeof name, data->record.layers[i].name);
        live_say_steps(among, sizeof among, &data->layers[i]);
        snprintf(text, sizeof text, "%s: %s gradients%s are not finite.", name,
                 word_count(broken).text, among);
        return area_wrap(area, row, style_of(INK_BAD), text);
    }
    if (worst < 0)
        return row;
    live_clean(name, sizeof name, data->record.layers[worst].name);
    if (flushed <= noticed) {
        snprintf(text, sizeof text, "No layer flushes more than %s of its gradients at %s.",
                 word_share(noticed).text, word_scale(data->scale).text);
        return area_wrap(area, row, style_of(INK_DIM), text);
    }
    snprintf(text, sizeof text, "%s flushes %s of its gradients at %s.", name,
             word_share(flushed).text, word_scale(data->scale).text);
    row = area_wrap(area, row, style_of(INK_WARN), text);
    return advise(live, area, row, worst);
}

static void draw_sentences(const Live *live, Area area) {
    int row = area.height > 3 ? 1 : 0;
    int pending = live->order_count > 0 && area.height > 0 ? 1 : 0;
    Area above = area_part(area, 0, 0, area.width, area.height - pending);
    say_worst(live, above, row);
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

void live_draw_layers(const Live *live, Area area, bool focused) {
    const RunRecord *record = &live->data.record;
    char right[64] = "";
    Rows rows = rows_of(live, area.height - 2);
    if (record->layer_count > 0)
        snprintf(right, sizeof right, "%d of %d", live->view.layer + 1, record->layer_count);
    Area inside = area_box(area, panel_name(PANEL_LAYERS), right, focused);
    if (record->layer_count == 0) {
        area_wrap(area_part(inside, 1, 0, inside.width - 2, inside.height), 1, style_of(INK_DIM),
                  !live->data.is_known   ? "no run is open"
                  : live_is_over(record) ? "this run has no layers"
                                         : "the layers are known after the first step");
        return;
    }
    Columns columns = columns_of(inside.width);
    settle_columns(&columns, &live->data);
    draw_head(inside, &columns);
    for (int i = 0; i < rows.shown; i++)
        draw_layer(live, inside, &columns, 1 + i, rows.top + i);
    draw_sentences(live, area_part(inside, 1, 1 + rows.shown, inside.width - 2, rows.below));
}
