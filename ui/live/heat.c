// The exponents of the selected layer's gradients over time.
#include <stdio.h>

#include "ui/cells/glyphs.h"
#include "ui/cells/zones.h"
#include "ui/live/histogram.h"

static uint32_t shade_of(double share) {
    // Shares fall off by powers of two around their middle: shades go by powers of four.
    static const double least[] = {0.12, 0.03, 0.008, 0};
    static const uint32_t shades[] = {GLYPH_BLOCK_FULL, GLYPH_SHADE + 2, GLYPH_SHADE + 1,
                                      GLYPH_SHADE};
    for (int i = 0; i < 4; i++)
        if (share > least[i])
            return shades[i];
    return ' ';
}

// Which samples a column of the window shows: the last one that begins at or before its end.
static const LayerSample *sample_at(const LiveData *data, int *at, double step) {
    while (*at + 1 < data->heat_count && (double)data->heat[*at + 1].step <= step)
        (*at)++;
    return (double)data->heat[*at].step <= step ? &data->heat[*at] : NULL;
}

static void draw_heat_cells(const Live *live, const HistogramLayer *shown, Area area, int top,
                            int a_row) {
    const LiveData *data = &live->data;
    PlotAxes axes = {.left = (double)data->left, .right = (double)data->right};
    int at = 0;
    for (int column = 0; column < area.width; column++) {
        const LayerSample *sample = sample_at(data, &at, plot_x_of(&axes, area.width, column));
        if (!sample || sample->count <= 0)
            continue;
        double total = 0;
        for (int i = 0; i < LAYER_BINS; i++)
            total += sample->bins[i];
        for (int row = 0; row < area.height && total > 0; row++) {
            double sum = 0;
            int high = top - row * a_row;
            for (int i = 0; i < a_row; i++) {
                int bin = high - i - LAYER_LOWEST_EXPONENT;
                sum += bin >= 0 && bin < LAYER_BINS ? sample->bins[bin] : 0;
            }
            uint32_t shade = shade_of(sum / total);
            WhatIfZone zone = histogram_zone(shown, high - a_row + 1);
            if (shade != ' ')
                area_put(area, column, row, style_of(zone_ink(zone, shown->ink)), shade);
        }
        if (sample->nans + sample->infs > 0)
            area_put(area, column, 0, style_bold(INK_BAD), GLYPH_CROSS);
    }
    int cursor = plot_column_of(&axes, area.width, (double)data->step);
    if (live->view.cursor != LIVE_FOLLOWS && cursor >= 0)
        for (int row = 0; row < area.height; row++)
            area_put(area, cursor, row, style_of(INK_DIM), GLYPH_VERTICAL);
}

static void exponents_of(const LiveData *data, int *low, int *high) {
    *low = LAYER_BINS;
    *high = -1;
    for (int i = 0; i < data->heat_count; i++)
        for (int bin = 0; bin < LAYER_BINS; bin++)
            if (data->heat[i].bins[bin] > 0) {
                *low = bin < *low ? bin : *low;
                *high = bin > *high ? bin : *high;
            }
    *low += LAYER_LOWEST_EXPONENT;
    *high += LAYER_LOWEST_EXPONENT;
}

void live_draw_heat(const Live *live, Area area, bool focused) {
    enum { LABEL = 7, ROWS_BETWEEN = 4 };
    const LiveData *data = &live->data;
    HistogramLayer shown;
    histogram_choose(live, &shown);
    char text[16];
    Area inside = histogram_box(area, &shown, PANEL_HEAT, focused);
    int low, high;
    exponents_of(data, &low, &high);
    if (data->heat_count > 0 && high < low && shown.sample) {
        area_wrap(area_part(inside, 1, 1, inside.width - 2, inside.height - 1), 0,
                  style_of(INK_DIM), "no gradient of this layer was finite and above zero here");
        return;
    }
    if (data->heat_count == 0 || high < low) {
        histogram_say_why_empty(live, &shown, inside);
        return;
    }
    inside =
        live_label_steps(live, area_part(inside, 0, 0, inside.width - 1, inside.height), LABEL);
    Area cells = area_part(inside, LABEL, 0, inside.width - LABEL, inside.height);
    if (area_is_empty(cells))
        return;
    int a_row = (high - low + cells.height) / cells.height;
    int spare = cells.height * a_row - (high - low + 1);
    int top = high + spare / 2;
    for (int row = 0; row < cells.height; row += ROWS_BETWEEN) {
        snprintf(text, sizeof text, "2^%d", top - row * a_row);
        area_text_right(inside, LABEL - 1, row, style_of(INK_DIM), text);
    }
    draw_heat_cells(live, &shown, cells, top, a_row);
}
