// The page of all formats: what each would do to the gradients of the selected layer at the cursor.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/cells/bars.h"
#include "ui/cells/columns.h"
#include "ui/cells/glyphs.h"
#include "ui/live/histogram.h"

enum { BORDER = 1, MARGIN = 1 }; // of words

static const double too_much = 0.05; // said in red, as in the table of layers

// The supposed loss scale; 1 where that of the step is not known.
static double supposed(const Live *live) {
    double scale = live->data.used_scale;
    return ldexp(scale > 0 && isfinite(scale) ? scale : 1, live->view.hypothesis);
}

// ---- where things are ---------------------------------------------------------------------------

typedef enum ColumnId { // in the order in which they are given room
    COLUMN_FORMAT,
    COLUMN_LOST,
    COLUMN_NEEDED,
    COLUMN_FLUSHED,
    COLUMN_OVERFLOWED,
    COLUMN_SUBNORMAL,
    COLUMN_BAR,
    COLUMN_ORDER,
    COLUMNS
} ColumnId;

static const Column columns[COLUMNS] = {
    [COLUMN_FORMAT] = {"format", 12, 0, false},  [COLUMN_LOST] = {"lost", 8, 0, true},
    [COLUMN_NEEDED] = {"", 21, 0, false}, // of which step is said with it
    [COLUMN_FLUSHED] = {"flushed", 9, 0, true},  [COLUMN_OVERFLOWED] = {"overfl.", 9, 0, true},
    [COLUMN_SUBNORMAL] = {"subn.", 8, 0, true},  [COLUMN_BAR] = {"", 10, 30, false},
    [COLUMN_ORDER] = {"by order", 20, 0, false},
};

static const int from_left[COLUMNS] = {COLUMN_FORMAT,    COLUMN_BAR,   COLUMN_LOST,
                                       COLUMN_FLUSHED,   COLUMN_ORDER, COLUMN_OVERFLOWED,
                                       COLUMN_SUBNORMAL, COLUMN_NEEDED};

static const ColumnSet set = {columns, from_left, COLUMNS};

static ColumnPlaces places_in(int width) {
    const int more = columns[COLUMN_BAR].more;
    ColumnPlaces places;
    int left = width - COLUMN_MARGIN;
    for (int i = 0; i < COLUMNS; i++) {
        places.width[i] = columns[i].width <= left ? columns[i].width : 0;
        left -= places.width[i];
    }
    if (places.width[COLUMN_BAR] > 0)
        places.width[COLUMN_BAR] += left < more ? left : more;
    columns_place(&set, &places);
    return places;
}

static void put(Area area, const ColumnPlaces *places, ColumnId id, int row, Style style,
                const char *text) {
    columns_put(&set, places, area, (int)id, row, style, text);
}

// ---- a format -----------------------------------------------------------------------------------

static void put_share(Area area, const ColumnPlaces *places, ColumnId id, int row, double share) {
    int end = places->at[id] + places->width[id] - COLUMN_GAP;
    if (isnan(share))
        put(area, places, id, row, style_of(INK_DIM), "–");
    else if (places->width[id] > 0)
        live_draw_share(area, end, row, share,
                        share > too_much && id != COLUMN_SUBNORMAL ? INK_BAD
                        : share > 0                                ? INK_TEXT
                                                                   : INK_DIM);
}

// Loss scales of plain formats; those that formats bring along are what the layer needs.
static void put_needed(Area area, const ColumnPlaces *places, int row, const WhatIfRow *format) {
    char text[48] = "–";
    Ink ink = INK_TEXT;
    if (format->scaled == SCALED_NONE && format->suited.is_known) {
        bool is_none = format->suited.least > format->suited.most;
        ink = is_none ? INK_BAD : INK_TEXT;
        if (is_none)
            snprintf(text, sizeof text, "none");
        else
            snprintf(text, sizeof text, "2^%d to 2^%d", format->suited.least, format->suited.most);
    } else if (format->scaled != SCALED_NONE && format->scale > 0) {
        snprintf(text, sizeof text, "own, %s2^%.0f", format->scaled == SCALED_BLOCK ? "from " : "",
                 log2(format->scale));
    }
    put(area, places, COLUMN_NEEDED, row, style_of(ink), text);
}

static void draw_format(Area area, const ColumnPlaces *places, int row, const WhatIfRow *format,
                        const LayerSample *sample, bool is_own) {
    double flushed = what_if_flushed(format, sample);
    double over = what_if_overflowed(format, sample), lost = flushed + over;
    const char *name = format_name(format->format);
    Ink ink = live_ink(name);
    char bounds[80];
    put(area, places, COLUMN_FORMAT, row, is_own ? style_bold(ink) : style_of(ink), name);
    put_share(area, places, COLUMN_LOST, row, lost);
    put_share(area, places, COLUMN_FLUSHED, row, flushed);
    put_share(area, places, COLUMN_OVERFLOWED, row, over);
    put_share(area, places, COLUMN_SUBNORMAL, row,
              isnan(lost) ? (double)NAN : format->shares.subnormal);
    put_needed(area, places, row, format);
    if (places->width[COLUMN_BAR] > 0 && !isnan(lost))
        gauge_draw(area, places->at[COLUMN_BAR], row, places->width[COLUMN_BAR] - COLUMN_GAP, lost,
                   lost > too_much ? INK_BAD : ink);
    snprintf(bounds, sizeof bounds, "%s to %s", word_share(format->least).text,
             word_share(format->most).text);
    if (format->scaled == SCALED_BLOCK && !isnan(lost))
        put(area, places, COLUMN_ORDER, row, style_of(INK_DIM), bounds);
    if (is_own) {
        area_put(area, 0, row, style_bold(INK_ACCENT), GLYPH_CURSOR);
        area_set_ground(area_part(area, 0, row, area.width, 1), GROUND_SELECTED);
    }
}

// ---- the page -----------------------------------------------------------------------------------

static void write_head(const Live *live, const HistogramLayer *shown, char *text, size_t size) {
    const LayerSample *sample = shown->sample;
    double broken = what_if_broken_before(sample);
    char among[80], largest[96] = "", more[64] = "";
    live_say_steps(among, sizeof among, sample);
    if (!among[0])
        snprintf(among, sizeof among, " at step %s", word_count(live->data.step).text);
    if (sample->largest > 0)
        snprintf(largest, sizeof largest, "gradients of weights, truly up to %s, ",
                 word_reading(sample->largest).text);
    if (broken > 0)
        snprintf(more, sizeof more, ", %s not finite", word_share(broken).text);
    const Format own = live_own_format(live, live->view.layer);
    snprintf(text, size, "%s in %s%s: %s%s zero%s", shown->name,
             own == FORMAT_COUNT ? "?" : format_name(own), among, largest,
             word_share((double)sample->zeros / (double)sample->count).text, more);
}

enum { HEAD_SIZE = 400 };

// How many rows it takes: the line below it says what is supposed of plain formats.
static int head_rows(const Live *live, int width, const HistogramLayer *shown) {
    char text[HEAD_SIZE];
    write_head(live, shown, text, sizeof text);
    return area_wrap(area_to_measure(width), 0, style_of(INK_BRIGHT), text) + 1;
}

static int draw_head(const Live *live, Area area, const HistogramLayer *shown) {
    char text[HEAD_SIZE];
    write_head(live, shown, text, sizeof text);
    int row = area_wrap(area, 0, style_of(INK_BRIGHT), text);
    snprintf(text, sizeof text, "plain formats at the loss scale %s%s",
             word_scale(supposed(live)).text,
             live->view.hypothesis != 0 ? ", which is supposed" : ", < and > suppose another");
    area_text_cut(area, 0, row, area.width, style_of(INK_DIM), text);
    return row + 1;
}

// What has nothing left says nothing of formats for gradients; but it may have been lost in what
// the layer itself computes. False: there is something left.
static bool say_why_nothing(const Live *live, const LayerSample *sample, char *out, size_t size) {
    const int64_t broken = sample->nans + sample->infs;
    const Format own = live_own_format(live, live->view.layer);
    const char *name = live_is_narrow(own) ? format_name(own) : NULL;
    if (broken == sample->count && name)
        snprintf(out, size,
                 "None of its gradients was finite when it came. If numbers overflowed in its own "
                 "%s, fp32 of this layer mends that; if further up, a smaller loss scale may.",
                 name);
    else if (broken == sample->count)
        snprintf(out, size,
                 "None of its gradients was finite when it came: no format of this layer mends "
                 "that, a smaller loss scale may.");
    else if (sample->zeros + broken == sample->count && name)
        snprintf(out, size,
                 "All of its gradients were zero when they came. If numbers overflowed or vanished "
                 "in its own %s, fp32 of this layer mends that; if further up, a larger loss scale "
                 "or a wider format there; or the loss does not depend on it.",
                 name);
    else if (sample->zeros + broken == sample->count)
        snprintf(out, size,
                 "All of its gradients were zero when they came: no format of this layer mends "
                 "that. They were lost further up, where a larger loss scale or a wider format "
                 "may keep them, or the loss does not depend on it.");
    else
        return false;
    return true;
}

typedef struct FormatRows { // of the table
    int head;               // the row of its titles
    int fit;                // formats that there is room for,
    int top, last;          // the first of them, and the one that it may be at most
} FormatRows;

// Of `count` formats, below so many rows of words.
static FormatRows rows_for(const Live *live, int count, int words, int height) {
    FormatRows rows = {.head = words + (words + 1 + count < height ? 1 : 0)};
    int room = height - rows.head - 1, top = live->view.format_top;
    rows.fit = room < 0 ? 0 : room < count ? room : count;
    rows.last = count - rows.fit;
    rows.top = top > rows.last ? rows.last : top;
    return rows;
}

// The formats that there is room for; `right` gets which of them, where it is not all.
static int draw_formats(const Live *live, const HistogramLayer *shown, Area area, int row,
                        char *right, size_t size) {
    WhatIfRow rows[FORMAT_COUNT];
    int count = what_if_rows(shown->sample, supposed(live), rows);
    ColumnPlaces places = places_in(area.width);
    const FormatRows at = rows_for(live, count, row, area.height);
    columns_put_heads(&set, &places, area, at.head);
    put(area, &places, COLUMN_NEEDED, at.head, style_of(INK_DIM),
        shown->sample->width == 1 ? "scales: this step" : "scales: these steps");
    for (int i = 0; i < at.fit; i++)
        draw_format(area, &places, at.head + 1 + i, &rows[at.top + i], shown->sample,
                    rows[at.top + i].format == live_own_format(live, live->view.layer));
    if (at.fit < count)
        snprintf(right, size, "formats %d to %d of %d", at.top + 1, at.top + at.fit, count);
    return at.head + 1 + at.fit;
}

// What the layer multiplies, at the scales of its own format, as it was counted.
static int say_factors(const Live *live, Area area, int row) {
    const LiveData *data = &live->data;
    const FactorShares own = live_factors(live, live->view.layer);
    char text[FACTOR_WORDS_SIZE + 80];
    for (int i = 0; own.is_known && i < data->factor_count; i++) {
        char words[FACTOR_WORDS_SIZE];
        if (data->factors[i].layer != live->view.layer)
            continue;
        factor_words(&data->factors[i], words);
        snprintf(text, sizeof text, "counted at step %s, %s",
                 word_count(data->factors[i].step).text, words);
        const int after = row + area_wrap(area_to_measure(area.width), 0, style_of(INK_TEXT), text);
        if (after <= area.height)
            row = area_wrap(area, row, style_of(INK_TEXT), text);
    }
    return row;
}

void live_draw_what_if(const Live *live, Area area, bool focused) {
    static const char notes[] =
        "fp8 and its kind at the scale that takes the largest number to theirs, blocks as chance "
        "would mix them. A scale for one step may be too large, or too small, for another. "
        "Products take gradients of outputs, too, which may lose more: in a layer of fp8 and its "
        "kind they are counted.";
    HistogramLayer shown;
    char right[64] = "";
    bool is_there = histogram_choose(live, &shown);
    Area inside =
        area_part(area, BORDER, BORDER, area.width - 2 * BORDER, area.height - 2 * BORDER);
    Area words = area_part(inside, MARGIN, 0, inside.width - 2 * MARGIN, inside.height);
    const int layers = live_layers_shown(&live->data.record);
    if (layers > 0)
        snprintf(right, sizeof right, "layer %d of %d", live->view.layer + 1, layers);
    if (!is_there) {
        histogram_say_why_empty(live, &shown, inside);
        area_box(area, panel_name(PANEL_WHAT_IF), right, focused);
        return;
    }
    int row = draw_head(live, words, &shown);
    char why[400];
    if (say_why_nothing(live, shown.sample, why, sizeof why)) {
        area_wrap(words, row + 1, style_of(INK_WARN), why);
    } else {
        row = draw_formats(live, &shown, inside, row, right, sizeof right);
        const int said = say_factors(live, words, row + 1);
        row = said > row + 1 ? said : row;
        if (row + 1 < inside.height)
            area_wrap(words, row + 1, style_of(INK_DIM), notes);
    }
    area_box(area, panel_name(PANEL_WHAT_IF), right, focused);
}

// ---- keys ---------------------------------------------------------------------------------------

// Layers without gradients are passed over.
static void go_layers(Ui *ui, Live *live, int by) {
    const LiveData *data = &live->data;
    for (int at = live->view.layer + by; at >= 0 && at < data->layer_count; at += by)
        if (data->layers[at].count > 0) {
            int hypothesis = live->view.hypothesis;
            live_select_layer(ui, live, at);
            live->view.hypothesis = hypothesis; // of one loss scale for all
            return;
        }
}

static void scroll(Ui *ui, Live *live, int by) {
    const Panel *panel = layout_find(&ui->layout, PANEL_WHAT_IF);
    HistogramLayer shown;
    WhatIfRow formats[FORMAT_COUNT];
    if (!panel || !histogram_choose(live, &shown))
        return;
    const int count = what_if_rows(shown.sample, supposed(live), formats);
    const int words = head_rows(live, panel->width - 2 * (BORDER + MARGIN), &shown);
    const FormatRows rows = rows_for(live, count, words, panel->height - 2 * BORDER);
    const int top = rows.top + by;
    live->view.format_top = top < 0 ? 0 : top > rows.last ? rows.last : top;
    ui->dirty = true;
}

bool live_what_if_request(Ui *ui, Live *live, Request request) {
    enum { PAGE = 4 };
    switch (request) {
    case REQUEST_UP: go_layers(ui, live, -1); break;
    case REQUEST_DOWN: go_layers(ui, live, 1); break;
    case REQUEST_PAGE_UP: scroll(ui, live, -PAGE); break;
    case REQUEST_PAGE_DOWN: scroll(ui, live, PAGE); break;
    case REQUEST_ENTER: live_page_close(ui, live); break;
    default: return false;
    }
    return true;
}

bool live_what_if_label(const Live *live, Request request, const char **label) {
    (void)live;
    if (request == REQUEST_HYPOTHESIS_DOWN)
        *label = "scale";
    return request == REQUEST_HYPOTHESIS_DOWN;
}
