#include "ui/cells/bars.h"

#include <math.h>

#include "ui/cells/glyphs.h"

enum { EIGHTHS = 8, MOST_COLUMNS = 512 };

static int eighths_of(double value, double most, int height) {
    if (!(value > 0) || !(most > 0))
        return 0;
    int eighths = (int)lround(fmin(value / most, 1) * height * EIGHTHS);
    return eighths > 0 ? eighths : 1;
}

void bars_draw(Area area, const double *values, int count, double most, Ink ink, const Ink *inks) {
    for (int column = 0; column < count && column < area.width; column++) {
        int left = eighths_of(values[column], most, area.height);
        Style style = style_of(inks ? inks[column] : ink);
        for (int row = area.height - 1; row >= 0 && left > 0; row--, left -= EIGHTHS) {
            int part = left < EIGHTHS ? left : EIGHTHS;
            area_put(area, column, row, style, (uint32_t)(GLYPH_BLOCK + part - 1));
        }
    }
}

void bars_gather(const double *values, int count, double *sums, int width) {
    for (int i = 0; i < width; i++) {
        sums[i] = 0;
        for (int j = i * count / width; j < (i + 1) * count / width; j++)
            sums[i] += values[j];
    }
}

void spark_draw(Area area, int column, int row, int width, const double *values, int count,
                Ink ink) {
    double sums[MOST_COLUMNS], most = 0;
    if (width > count)
        width = count;
    if (width > MOST_COLUMNS)
        width = MOST_COLUMNS;
    bars_gather(values, count, sums, width);
    for (int i = 0; i < width; i++)
        most = fmax(most, sums[i]);
    for (int i = 0; i < width; i++) {
        int eighths = eighths_of(sums[i], most, 1);
        if (eighths > 0)
            area_put(area, column + i, row, style_of(ink), (uint32_t)(GLYPH_BLOCK + eighths - 1));
        else
            area_put(area, column + i, row, style_of(INK_BORDER), GLYPH_DOT);
    }
}

void gauge_draw(Area area, int column, int row, int width, double share, Ink ink) {
    int full = share > 0 ? (int)lround(fmin(share, 1) * width) : 0;
    if (full == 0 && share > 0)
        full = 1;
    for (int i = 0; i < width; i++) // ASCII has no thick line that also comes dim
        area_put(area, column + i, row, style_of(i < full ? ink : INK_BORDER),
                 i >= full && area.frame->ascii ? '.' : GLYPH_BAR);
}
