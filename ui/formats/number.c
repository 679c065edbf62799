// The panel of one number: a row a format, with its bits and what rounding did.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rune.h"
#include "ui/cells/glyphs.h"
#include "ui/formats/formats.h"

// The bits in three groups; the one under the cursor stands out.
static int draw_bits(Area area, int column, int row, const Description *of, int cursor) {
    const char *const groups[] = {of->sign, of->exponent, of->mantissa};
    static const Ink inks[] = {INK_BAD, INK_ACCENT, INK_BRIGHT};
    int bit = 0;
    for (int group = 0; group < 3; group++) {
        for (const char *digit = groups[group]; *digit; digit++, bit++) {
            Style style = style_of(*digit == '1' ? inks[group] : INK_DIM);
            style.reverse = bit == cursor;
            area_put(area, column++, row, style, (unsigned char)*digit);
        }
        column++;
    }
    return column;
}

static void describe_result(const ExpressionResult *result, char *text, size_t size) {
    const Description *of = &result->of;
    int used = snprintf(text, size, "%s%s", result->event, of->is_subnormal ? ", subnormal" : "");
    if (result->error != 0)
        snprintf(text + used, size - (size_t)used, " (%+.2g)", result->error);
}

// In `room` columns: by how much gives way first, then that it was on the way. True: it is all
// there.
static bool fit_result(const ExpressionResult *result, int room, char *text, size_t size) {
    static const char where[] = " on the way";
    describe_result(result, text, size);
    if (text_width(text) <= room)
        return true;
    const char *at = strstr(result->event, where);
    const char *more = result->of.is_subnormal ? ", subnormal" : "";
    int length = (int)strlen(result->event);
    if (length + text_width(more) > room && at)
        length = (int)(at - result->event);
    snprintf(text, size, "%.*s%s", length, result->event, more);
    return false;
}

enum { HEX_AT = 43, EVENT_AT = 74, EVENT_AT_LEAST = 59, LEAST_EVENT = 18 };

// The pattern in hexadecimal gives way where there is little room.
static bool has_hex(int width) {
    return width >= EVENT_AT + LEAST_EVENT;
}

static int event_column(int width) {
    return has_hex(width) ? EVENT_AT : EVENT_AT_LEAST;
}

static void draw_result(Area area, int row, const Lab *lab, int i, bool focused) {
    enum { BITS = 7, VALUE = 55 };
    const ExpressionResult *result = &lab->results[i];
    const Description *of = &result->of;
    bool here = i == lab->row;
    Style style = style_bold(lab_ink(of->format));
    area_put(area, 0, row, style_of(INK_ACCENT), here && focused ? GLYPH_CURSOR : ' ');
    area_text(area, 1, row, style, format_name(of->format));
    draw_bits(area, BITS, row, of, here && focused ? lab->bit : -1);
    bool is_wide = has_hex(area.width);
    int event = event_column(area.width);
    if (is_wide)
        area_text(area, HEX_AT, row, style_of(INK_DIM), of->hex);
    area_print(area, is_wide ? VALUE : HEX_AT, row, style_of(INK_BRIGHT), "%.9g",
               describe_without_sign(of->value));
    char text[96];
    fit_result(result, area.width - event, text, sizeof text);
    area_text_cut(area, event, row, area.width - event,
                  style_of(result->is_bad ? INK_BAD : INK_TEXT), text);
    if (here)
        area_set_ground(area_part(area, 0, row, area.width, 1), GROUND_SELECTED);
}

// At the end of what the format has there is one neighbour only.
static const char *describe_end(const Description *of) {
    bool is_top = of->has_below;
    return isinf(of->value)
               ? (is_top ? " past the largest, " : " past the lowest, ")
               : (is_top ? " the largest there is, after " : " the lowest there is, before ");
}

static void draw_neighbours(Area area, int row, const Description *of) {
    if (area.height <= row || !(of->has_below || of->has_above))
        return;
    int column = area_print(area, 1, row, style_of(INK_DIM), "in %s", format_name(of->format));
    if (!of->has_below || !of->has_above) {
        column = area_text(area, column, row, style_of(INK_DIM), describe_end(of));
        area_print(area, column, row, style_of(INK_BRIGHT), "%.9g",
                   of->has_below ? of->below : of->above);
        return;
    }
    column = area_text(area, column, row, style_of(INK_DIM), " between ");
    column = area_print(area, column, row, style_of(INK_BRIGHT), "%.9g", of->below);
    column = area_text(area, column, row, style_of(INK_DIM), " and ");
    column = area_print(area, column, row, style_of(INK_BRIGHT), "%.9g", of->above);
    if (of->step > 0)
        area_print(area, column, row, style_of(INK_DIM), ", steps of %.3g", of->step);
}

// What the row of the cursor had no room for, whole.
static void draw_shortened(Area area, int row, const ExpressionResult *result) {
    char text[96];
    if (row >= area.height ||
        fit_result(result, area.width - event_column(area.width), text, sizeof text))
        return;
    describe_result(result, text, sizeof text);
    area_print(area, 1, row, style_of(INK_DIM), "%s", text);
}

// Where its parts lie, in rows inside the border: the formats, of which not all may fit, and below
// them two lines on the one under the cursor.
typedef struct Places {
    int first, shown,
        from; // the row of the first format that is seen, how many are, and which it is
    int foot;
} Places;

static Places places_in(const Lab *lab, int height) {
    enum { TITLE = 1, FOOT = 2 };
    const int room = height - TITLE - FOOT, count = lab->plain.count;
    Places places = {.first = TITLE, .shown = room < 1 ? 1 : room < count ? room : count};
    const int spare = room - places.shown;
    places.first += spare > 0;
    places.from = lab_scrolled(lab->row, places.shown);
    places.foot = places.first + places.shown + (spare > 1);
    return places;
}

int lab_number_at(const Lab *lab, int height, int row) {
    const Places places = places_in(lab, height - 2);
    const int at = row - 1 - places.first;
    return at >= 0 && at < places.shown ? places.from + at : -1;
}

void lab_draw_number(const Lab *lab, Area area, bool focused) {
    Area inside = area_box(area, panel_name(PANEL_NUMBER),
                           "digits: another · space: turns a bit · F1: home", focused);
    int column = area_text(inside, 1, 0, style_bold(INK_BRIGHT), lab->text);
    column = area_print(inside, column, 0, style_of(INK_DIM), " = %.17g",
                        describe_without_sign(lab->results[0].exact));
    if (lab->results[0].beyond_double) {
        column = area_text(inside, column, 0, style_of(INK_WARN), ": ");
        area_text_cut(inside, column, 0, inside.width - column, style_of(INK_WARN),
                      lab->results[0].beyond_double);
    }
    const Places places = places_in(lab, inside.height);
    for (int i = 0; i < places.shown; i++)
        draw_result(inside, places.first + i, lab, places.from + i, focused);
    draw_neighbours(inside, places.foot, &lab->results[lab->row].of);
    draw_shortened(inside, places.foot + 1, &lab->results[lab->row]);
}
