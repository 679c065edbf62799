// The format lab: a number or an expression in every format, bit by bit, and the ranges of the
// formats side by side.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rune.h"
#include "number/describe.h"
#include "ui/cells/glyphs.h"
#include "ui/cells/theme.h"
#include "ui/screen.h"

static const Format shown[] = {
#define FORMAT(...)
#define TRAINED(id, ...)   FORMAT_##id,
#define UNTRAINED(id, ...) FORMAT_##id,
#define SCALED(...)
#include "number/formats.def"
};

enum { SHOWN = sizeof shown / sizeof *shown, TEXT_SIZE = 128 };

typedef struct Lab {
    char text[TEXT_SIZE];
    ExpressionResult results[SHOWN]; // of `text`
    int row, bit;                    // of the cursor; bit 0 is the sign
} Lab;

static Lab *lab_of(const Ui *ui) {
    return ui->state[SCREEN_FORMATS];
}

static Ink ink_of(Format format) {
    return theme_format_ink(format_name(format));
}

// ---- what is looked at --------------------------------------------------------------------------

static bool evaluate(Lab *lab, const char *text, Error *error) {
    ExpressionResult results[SHOWN];
    for (int i = 0; i < SHOWN; i++)
        if (!describe_expression(text, shown[i], &results[i], error))
            return false;
    memmove(lab->text, text, strlen(text) + 1);
    memcpy(lab->results, results, sizeof results);
    return true;
}

static void take_text(Ui *ui, const char *text) {
    Error error;
    if (strlen(text) >= TEXT_SIZE)
        ui_say(ui, INK_WARN, "an expression has up to %d characters", TEXT_SIZE - 1);
    else if (text[0] && !evaluate(lab_of(ui), text, &error))
        ui_fail(ui, &error);
}

static void ask(Ui *ui) {
    prompt_ask(ui, "a number or an expression", lab_of(ui)->text, take_text);
}

// The value in the row's format with the bit under the cursor turned over: then that is looked at.
static void turn_bit(Ui *ui) {
    Lab *lab = lab_of(ui);
    Format format = shown[lab->row];
    int count = format_bits(format);
    uint32_t bits = lab->results[lab->row].of.bits;
    // tf32 lies in the upper bits of an fp32.
    int top = format == FORMAT_TF32 ? 31 : count - 1;
    char text[TEXT_SIZE];
    double value = format_decode(format, bits ^ ((uint32_t)1 << (top - lab->bit)));
    if (isinf(value))
        snprintf(text, sizeof text, "%sinf", value < 0 ? "-" : "");
    else if (isnan(value)) // of either sign
        snprintf(text, sizeof text, "nan");
    else
        snprintf(text, sizeof text, "%.17g", value);
    take_text(ui, text);
}

static void step_to_neighbour(Ui *ui, int by) {
    const Description *of = &lab_of(ui)->results[lab_of(ui)->row].of;
    char text[TEXT_SIZE];
    if (by > 0 ? !of->has_above : !of->has_below)
        return;
    double value = by > 0 ? of->above : of->below;
    if (!isfinite(value))
        return;
    snprintf(text, sizeof text, "%.17g", value);
    take_text(ui, text);
}

// ---- drawing ------------------------------------------------------------------------------------

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
    Style style = style_bold(ink_of(of->format));
    area_put(area, 0, row, style_of(INK_ACCENT), here && focused ? GLYPH_CURSOR : ' ');
    area_text(area, 1, row, style, format_name(of->format));
    draw_bits(area, BITS, row, of, here && focused ? lab->bit : -1);
    bool is_wide = has_hex(area.width);
    int event = event_column(area.width);
    if (is_wide)
        area_text(area, HEX_AT, row, style_of(INK_DIM), of->hex);
    area_print(area, is_wide ? VALUE : HEX_AT, row, style_of(INK_BRIGHT), "%.9g", of->value);
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

static void draw_number(const Ui *ui, Area area, bool focused) {
    const Lab *lab = lab_of(ui);
    Area inside =
        area_box(area, "number", "digits: another · space: turns a bit · F1: home", focused);
    int column = area_text(inside, 1, 0, style_bold(INK_BRIGHT), lab->text);
    column = area_print(inside, column, 0, style_of(INK_DIM), " = %.17g", lab->results[0].exact);
    if (lab->results[0].beyond_double) {
        column = area_text(inside, column, 0, style_of(INK_WARN), ": ");
        area_text_cut(inside, column, 0, inside.width - column, style_of(INK_WARN),
                      lab->results[0].beyond_double);
    }
    int row = inside.height > SHOWN + 3 ? 2 : 1;
    for (int i = 0; i < SHOWN; i++)
        draw_result(inside, row + i, lab, i, focused);
    row += SHOWN + (inside.height > SHOWN + 4);
    draw_neighbours(inside, row, &lab->results[lab->row].of);
    draw_shortened(inside, row + 1, &lab->results[lab->row]);
}

// The band of a format over powers of two, and where the number lies in it.
static void draw_range(Area area, int row, Format format, double value, double least, double most) {
    enum { LABEL = 7 };
    const FormatInfo *info = &format_table[format];
    Area band = area_part(area, LABEL, row, area.width - LABEL - 1, 1);
    area_text(area, 1, row, style_bold(ink_of(format)), info->name);
    const double normal = format_is_floating(format) ? info->smallest_normal : 1;
    const double smallest = info->smallest_subnormal > 0 ? info->smallest_subnormal : normal;
    for (int column = 0; column < band.width; column++) {
        double power = least + (most - least) * (column + 0.5) / band.width;
        bool is_normal = power >= log2(normal) && power <= log2(info->largest);
        bool is_subnormal = !is_normal && power >= log2(smallest) && power < log2(info->largest);
        if (is_normal)
            area_put(band, column, 0, style_of(ink_of(format)), GLYPH_BAR);
        else if (is_subnormal)
            area_put(band, column, 0, style_of(INK_WARN), GLYPH_DOT);
    }
    double power = log2(fabs(value));
    if (isfinite(power) && power >= least && power <= most) {
        int column = (int)((power - least) / (most - least) * (band.width - 1) + 0.5);
        bool fits = fabs(value) <= info->largest && fabs(value) >= smallest / 2;
        area_put(band, column, 0, style_bold(fits ? INK_BRIGHT : INK_BAD), GLYPH_CROSS);
    }
}

static void draw_ranges(const Ui *ui, Area area, bool focused) {
    const Lab *lab = lab_of(ui);
    const double least = -150, most = 130;
    Area inside = area_box(area, "ranges", "2^-150 .. 2^130", focused);
    for (int i = 0; i < SHOWN && i < inside.height; i++)
        draw_range(inside, i, shown[i], lab->results[0].exact, least, most);
    if (inside.height > SHOWN + 1)
        area_text(inside, 1, SHOWN + 1, style_of(INK_DIM),
                  "a line: full precision; dots: subnormal, losing bits; the cross: the number");
}

// ---- the screen ---------------------------------------------------------------------------------

static bool lab_open(Ui *ui, Error *error) {
    Lab *lab = calloc(1, sizeof *lab);
    if (!lab)
        return error_fail(error, ERROR_MEMORY, "no memory for the screen");
    ui->state[SCREEN_FORMATS] = lab;
    lab->row = 3; // fp16: where most of it happens
    return evaluate(lab, "1e-4*1e-4", error);
}

static void lab_close(Ui *ui) {
    free(lab_of(ui));
}

static void lab_enter(Ui *ui) {
    (void)ui;
}

static bool lab_refresh(Ui *ui, double seconds) {
    (void)ui, (void)seconds;
    return false;
}

static void lab_header(Ui *ui, Area area) {
    (void)ui;
    area_text_right(area, area.width, 0, style_of(INK_DIM), "each step to nearest even");
}

static void lab_draw(Ui *ui, PanelId panel, Area area, bool focused) {
    if (panel == PANEL_NUMBER)
        draw_number(ui, area, focused);
    else
        draw_ranges(ui, area, focused);
}

static void move_row(Lab *lab, int by) {
    lab->row = (lab->row + by + SHOWN) % SHOWN;
    if (lab->bit >= format_bits(shown[lab->row]))
        lab->bit = format_bits(shown[lab->row]) - 1;
}

static void move_bit(Lab *lab, int by) {
    int count = format_bits(shown[lab->row]);
    lab->bit = (lab->bit + by + count) % count;
}

static bool lab_request(Ui *ui, Request request) {
    Lab *lab = lab_of(ui);
    switch (request) {
    case REQUEST_UP: move_row(lab, -1); return true;
    case REQUEST_DOWN: move_row(lab, 1); return true;
    case REQUEST_LEFT: move_bit(lab, -1); return true;
    case REQUEST_RIGHT: move_bit(lab, 1); return true;
    case REQUEST_FIRST: lab->bit = 0; return true;
    case REQUEST_LAST: lab->bit = format_bits(shown[lab->row]) - 1; return true;
    case REQUEST_ENTER: ask(ui); return true;
    case REQUEST_COPY: ui_copy(ui, lab->text); return true;
    default: return false;
    }
}

// Whatever begins a number begins another one.
static bool lab_key(Ui *ui, int key) {
    if (key == ' ') {
        turn_bit(ui);
        return true;
    }
    if (key == '+' || key == '-') {
        step_to_neighbour(ui, key == '+' ? 1 : -1);
        return true;
    }
    if (key > '~' || !strchr("0123456789.(/", key) || key == 0)
        return false;
    prompt_ask(ui, "a number or an expression", (char[]){(char)key, 0}, take_text);
    return true;
}

static void lab_click(Ui *ui, PanelId panel, int column, int row, MouseAction action) {
    Lab *lab = lab_of(ui);
    (void)column;
    if (action == MOUSE_WHEEL_UP || action == MOUSE_WHEEL_DOWN)
        step_to_neighbour(ui, action == MOUSE_WHEEL_UP ? 1 : -1);
    else if (action == MOUSE_DOUBLE)
        ask(ui);
    else if (panel == PANEL_NUMBER && row >= 3 && row < 3 + SHOWN)
        lab->row = row - 3;
}

static const char *lab_explain(PanelId panel) {
    return panel == PANEL_NUMBER
               ? "A number, or an expression, as every format computes it: each step is rounded "
                 "to the format. Red bits are the sign, then the exponent, then the mantissa; the "
                 "right column says what rounding did. Space turns the bit under the cursor, + "
                 "and - go to the next number that the format has."
               : "What each format can hold, over powers of two. Where the line ends numbers "
                 "overflow; in the dots they lose bits; left of them they become zero.";
}

const Screen screen_formats = {
    .name = "formats",
    .on = ON_FORMATS,
    .open = lab_open,
    .close = lab_close,
    .enter = lab_enter,
    .refresh = lab_refresh,
    .draw_header = lab_header,
    .draw_panel = lab_draw,
    .request = lab_request,
    .key = lab_key,
    .click = lab_click,
    .explain = lab_explain,
};
