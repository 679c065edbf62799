// The page of a block: what the scaled formats make of numbers that are neighbours along the depth
// of a product, as `mpbench formats --block` prints it.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "number/expression.h"
#include "ui/cells/glyphs.h"
#include "ui/formats/formats.h"

// ---- what is looked at --------------------------------------------------------------------------

static void describe_all(Lab *lab) {
    LabBlock *block = &lab->block;
    for (int i = 0; i < lab->scaled.count; i++)
        block_describe(lab->scaled.list[i], block->numbers, block->count, !block->floor,
                       &block->of[i]);
}

// False: the error says which of them is none.
static bool read_numbers(char *text, double numbers[BLOCK_MOST_NUMBERS], int *count, Error *error) {
    char *rest = text;
    *count = 0;
    for (const char *one; (one = strtok_r(rest, " ", &rest)); ++*count) {
        if (*count == BLOCK_MOST_NUMBERS)
            return error_fail(error, ERROR_USAGE, "a block has up to %d numbers here",
                              BLOCK_MOST_NUMBERS);
        if (!expression_evaluate(one, FORMAT_FP64, OVERFLOW_SATURATES, &numbers[*count], NULL,
                                 error))
            return error_prefix(error, "%.40s", one);
    }
    return *count > 0 || error_fail(error, ERROR_USAGE, "numbers are wanted, blanks between");
}

bool lab_block_set(Lab *lab, const char *text, Error *error) {
    LabBlock *block = &lab->block;
    char copy[PROMPT_SIZE];
    double numbers[BLOCK_MOST_NUMBERS];
    int count;
    snprintf(copy, sizeof copy, "%s", text);
    if (!read_numbers(copy, numbers, &count, error))
        return false;
    snprintf(block->text, sizeof block->text, "%s", text);
    memcpy(block->numbers, numbers, (size_t)count * sizeof *numbers);
    block->count = count;
    block->number = block->number < count ? block->number : count - 1;
    describe_all(lab);
    return true;
}

void lab_block_turn_rule(Lab *lab) {
    lab->block.floor = !lab->block.floor;
    describe_all(lab);
}

// ---- drawing ------------------------------------------------------------------------------------

enum { LABEL = 13, CELL = 11, HEAD = 4, COUNTS = 3, WORDS = 2 };

typedef struct Places {
    int columns, from_column; // formats that are seen, and the first of them
    int numbers, from_number;
} Places;

static Places places_in(const Lab *lab, Area inside) {
    const LabBlock *block = &lab->block;
    Places places = {.columns = (inside.width - LABEL) / CELL,
                     .numbers = inside.height - HEAD - COUNTS - WORDS};
    if (places.columns > lab->scaled.count)
        places.columns = lab->scaled.count;
    if (places.numbers > block->count)
        places.numbers = block->count;
    if (places.numbers < 1)
        places.numbers = 1;
    places.from_column = lab_scrolled(block->column, places.columns);
    places.from_number = lab_scrolled(block->number, places.numbers);
    return places;
}

// A scale as what it is kept in writes it: a power of two by its exponent.
static void write_scale(char *text, size_t size, Format kept_in, double scale) {
    if (kept_in == FORMAT_E8M0)
        snprintf(text, size, "2^%d", ilogb(scale));
    else
        snprintf(text, size, "%.4g", scale);
}

static int column_of(const Places *places, int at) { // where it ends
    return LABEL + (at - places->from_column + 1) * CELL;
}

static void draw_head(const Lab *lab, const Places *places, Area area) {
    const LabBlock *block = &lab->block;
    int column = area_print(area, 1, 0, style_of(INK_DIM), "scales of mx formats: ");
    column = area_text(area, column, 0, style_bold(INK_BRIGHT), block->floor ? "floor" : "up");
    area_text_cut(area, column, 0, area.width - column, style_of(INK_DIM),
                  block->floor ? ", the standard's rule, by which the largest may saturate"
                               : ", large enough for the largest");
    area_text(area, 1, HEAD - 1, style_of(INK_DIM), "scale there");
    for (int i = places->from_column; i < places->from_column + places->columns; i++) {
        const Format format = lab->scaled.list[i];
        char text[24];
        const Ink ink = lab_ink(format);
        area_text_right(area, column_of(places, i), HEAD - 2,
                        i == block->column ? style_bold(ink) : style_of(ink), format_name(format));
        write_scale(text, sizeof text, format_table[format].scale,
                    block->of[i].number[block->number].scale);
        area_text_right(area, column_of(places, i), HEAD - 1, style_of(INK_DIM), text);
    }
}

static void draw_line(const Lab *lab, const Places *places, Area area, int row, int at,
                      bool focused) {
    const LabBlock *block = &lab->block;
    const bool here = at == block->number;
    if (here && focused)
        area_put(area, 0, row, style_of(INK_ACCENT), GLYPH_CURSOR);
    area_print(area, 1, row, here ? style_bold(INK_BRIGHT) : style_of(INK_TEXT), "%.6g",
               describe_without_sign(block->numbers[at]));
    for (int i = places->from_column; i < places->from_column + places->columns; i++) {
        const BlockNumber *number = &block->of[i].number[at];
        char text[24];
        snprintf(text, sizeof text, "%.4g", describe_without_sign(number->worth));
        Style style = style_of(number->is_flushed || number->is_saturated ? INK_BAD : INK_TEXT);
        style.reverse = here && focused && i == block->column;
        area_text_right(area, column_of(places, i), row, style, text);
    }
    if (here)
        area_set_ground(area_part(area, 0, row, area.width, 1), GROUND_SELECTED);
}

static void draw_counts(const Lab *lab, const Places *places, Area area, int row) {
    static const char *const names[COUNTS] = {"flushed", "saturated", "error"};
    for (int c = 0; c < COUNTS; c++) {
        area_text(area, 1, row + c, style_of(INK_DIM), names[c]);
        for (int i = places->from_column; i < places->from_column + places->columns; i++) {
            const BlockDescription *of = &lab->block.of[i];
            const int count = c == 0 ? of->flushed : of->saturated;
            char text[24];
            if (c < 2)
                snprintf(text, sizeof text, "%d", count);
            else
                snprintf(text, sizeof text, "%.3g", of->root_mean_square);
            area_text_right(area, column_of(places, i), row + c,
                            style_of(c < 2 && count > 0 ? INK_BAD : INK_DIM), text);
        }
    }
}

// What stands for the number under the cursor.
static void draw_words(const Lab *lab, Area area, int row) {
    const LabBlock *block = &lab->block;
    const Format format = lab->scaled.list[block->column];
    const FormatInfo *info = &format_table[format];
    const BlockNumber *number = &block->of[block->column].number[block->number];
    char scale[24];
    write_scale(scale, sizeof scale, info->scale, number->scale);
    int column =
        area_print(area, 1, row, style_of(INK_DIM),
                   "%.6g in %s: ", describe_without_sign(number->asked), format_name(format));
    column = area_print(area, column, row, style_of(INK_BRIGHT), "%.6g",
                        describe_without_sign(number->element));
    column = area_print(area, column, row, style_of(INK_DIM), " in %s, times %s",
                        format_name(info->element), scale);
    if (number->error != 0)
        column = area_print(area, column, row, style_of(INK_DIM), ": off by %+.2g", number->error);
    if (number->is_flushed || number->is_saturated)
        area_text(area, column, row, style_of(INK_BAD),
                  number->is_flushed ? ", flushed to zero" : ", saturated");
    if (info->block > 0)
        area_print(area, 1, row + 1, style_of(INK_DIM), "%d share a scale in %s%s", info->block,
                   format_name(info->scale),
                   info->scale == FORMAT_E4M3 ? ", within that of the tensor in fp32" : "");
    else
        area_text(area, 1, row + 1, style_of(INK_DIM), "all of a tensor share a scale in fp32");
}

void lab_draw_block(const Lab *lab, Area area, bool focused) {
    enum { BORDER = 1 };
    const Places places = places_in(
        lab, area_part(area, BORDER, BORDER, area.width - 2 * BORDER, area.height - 2 * BORDER));
    char label[80] = "digits: other numbers · F1: home";
    if (places.columns < lab->scaled.count)
        snprintf(label, sizeof label, "%d of %d formats: left, right · digits: other numbers",
                 places.columns, lab->scaled.count);
    const Area inside = area_box(area, panel_name(PANEL_BLOCK), label, focused);
    draw_head(lab, &places, inside);
    for (int i = 0; i < places.numbers; i++)
        draw_line(lab, &places, inside, HEAD + i, places.from_number + i, focused);
    draw_counts(lab, &places, inside, HEAD + places.numbers);
    draw_words(lab, inside, HEAD + places.numbers + COUNTS);
}
