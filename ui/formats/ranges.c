// The panel of ranges: what each format can hold, over powers of two, and where the number lies.
#include <math.h>

#include "number/scaled.h"
#include "ui/cells/glyphs.h"
#include "ui/formats/formats.h"

static const double least_power = -150, most_power = 130;

typedef struct Range {              // of positive numbers
    double least, normal, most;     // with full precision from `normal` on
    double reach_least, reach_most; // with whatever scale a block may have; else the same
} Range;

static Range range_of_numbers(Format format) {
    const FormatInfo *info = &format_table[format];
    const double normal = format_is_floating(format) ? info->smallest_normal : 1;
    const double least = info->smallest_subnormal > 0 ? info->smallest_subnormal : normal;
    return (Range){least, normal, info->largest, least, info->largest};
}

// Of a block whose largest is the number; and of all, which fp32 numbers are put into.
static Range range_of_block(Format format, double number) {
    const double most = format_table[FORMAT_FP32].largest;
    Range range = range_of_numbers(format);
    BlockDescription of = {.number[0].scale = 0};
    if (number != 0 && fabs(number) <= most)
        block_describe(format, &number, 1, true, &of);
    const double scale = of.number[0].scale > 0 ? of.number[0].scale : 1;
    range.reach_least = range.least * (double)NUMBER_LEAST_SCALE;
    range.reach_most = most;
    range.least *= scale;
    range.normal *= scale;
    range.most *= scale;
    return range;
}

static bool is_between(double power, double least, double most) {
    return power >= log2(least) && power <= log2(most);
}

static void draw_range(Area band, Ink ink, const Range *range, double number) {
    for (int column = 0; column < band.width; column++) {
        const double power = least_power + (most_power - least_power) * (column + 0.5) / band.width;
        if (is_between(power, range->normal, range->most))
            area_put(band, column, 0, style_of(ink), GLYPH_BAR);
        else if (is_between(power, range->least, range->normal))
            area_put(band, column, 0, style_of(INK_WARN), GLYPH_DOT);
        else if (is_between(power, range->reach_least, range->reach_most))
            area_put(band, column, 0, style_of(INK_DIM), GLYPH_HORIZONTAL);
    }
    const double power = log2(fabs(number));
    if (isfinite(power) && power >= least_power && power <= most_power) {
        const int column =
            (int)((power - least_power) / (most_power - least_power) * (band.width - 1) + 0.5);
        const bool fits =
            fabs(number) <= range->reach_most && fabs(number) >= range->reach_least / 2;
        area_put(band, column, 0, style_bold(fits ? INK_BRIGHT : INK_BAD), GLYPH_CROSS);
    }
}

// The first of the panel's lines are the formats that have numbers of their own.
static Format format_at(const Lab *lab, int line) {
    return line < lab->plain.count ? lab->plain.list[line]
                                   : lab->blocks.list[line - lab->plain.count];
}

// The words behind the lines, as many as there is room for.
static void draw_legend(Area inside, int row) {
    static const char *const legend[] = {
        "a line: full precision; dots: subnormal, losing bits; the cross: the number",
        "of mx formats and nvfp4: in a block whose largest is the number; thin: with other scales",
    };
    for (size_t i = 0; i < sizeof legend / sizeof *legend; i++, row++)
        if (row < inside.height)
            area_text_cut(inside, 1, row, inside.width - 1, style_of(INK_DIM), legend[i]);
}

void lab_draw_ranges(const Lab *lab, Area area, bool focused) {
    enum { LABEL = 12 };
    Area inside = area_box(area, panel_name(PANEL_RANGES), "2^-150 .. 2^130", focused);
    const int count = lab->plain.count + lab->blocks.count;
    const int shown = inside.height < count ? inside.height : count;
    const int from = lab_scrolled(lab->line, shown);
    const double number = lab->results[0].exact;
    for (int row = 0; row < shown; row++) {
        const Format format = format_at(lab, from + row);
        const Range range = from + row < lab->plain.count ? range_of_numbers(format)
                                                          : range_of_block(format, number);
        if (focused && from + row == lab->line)
            area_put(inside, 0, row, style_of(INK_ACCENT), GLYPH_CURSOR);
        area_text(inside, 1, row, style_bold(lab_ink(format)), format_name(format));
        draw_range(area_part(inside, LABEL, row, inside.width - LABEL - 1, 1), lab_ink(format),
                   &range, number);
    }
    draw_legend(inside, count + (inside.height > count + 2));
}
