// The format lab: a number or an expression in every format, bit by bit, the ranges of the formats
// side by side, and a block of numbers in those that scale.
#include "ui/formats/formats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static Lab *lab_of(const Ui *ui) {
    return ui->state[SCREEN_FORMATS];
}

static bool is_block_open(const Ui *ui) {
    return ui->maximised[SCREEN_FORMATS] == PANEL_BLOCK;
}

// ---- what is looked at --------------------------------------------------------------------------

static bool evaluate(Lab *lab, const char *text, Error *error) {
    ExpressionResult results[FORMAT_COUNT];
    for (int i = 0; i < lab->plain.count; i++)
        if (!describe_expression(text, lab->plain.list[i], &results[i], error))
            return false;
    memmove(lab->text, text, strlen(text) + 1);
    memcpy(lab->results, results, sizeof results);
    return true;
}

static void take_text(Ui *ui, const char *text) {
    Error error;
    if (strlen(text) >= LAB_TEXT_SIZE)
        ui_say(ui, INK_WARN, "an expression has up to %d characters", LAB_TEXT_SIZE - 1);
    else if (text[0] && !evaluate(lab_of(ui), text, &error))
        ui_fail(ui, &error);
}

static void take_block(Ui *ui, const char *text) {
    Error error;
    if (text[0] && !lab_block_set(lab_of(ui), text, &error))
        ui_fail(ui, &error);
}

// For another number, or other numbers of the block, which begin with `text`.
static void ask_from(Ui *ui, const char *text) {
    if (is_block_open(ui))
        prompt_ask(ui, "numbers that share scales, with blanks between", text, take_block);
    else
        prompt_ask(ui, "a number or an expression", text, take_text);
}

static void ask(Ui *ui) {
    const Lab *lab = lab_of(ui);
    ask_from(ui, is_block_open(ui) ? lab->block.text : lab->text);
}

// The value in the row's format with the bit under the cursor turned over: then that is looked at.
static void turn_bit(Ui *ui) {
    Lab *lab = lab_of(ui);
    Format format = lab->plain.list[lab->row];
    int count = format_bits(format);
    uint32_t bits = lab->results[lab->row].of.bits;
    // tf32 lies in the upper bits of an fp32.
    int top = format == FORMAT_TF32 ? 31 : count - 1;
    char text[LAB_TEXT_SIZE];
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
    char text[LAB_TEXT_SIZE];
    if (by > 0 ? !of->has_above : !of->has_below)
        return;
    double value = by > 0 ? of->above : of->below;
    if (!isfinite(value))
        return;
    snprintf(text, sizeof text, "%.17g", value);
    take_text(ui, text);
}

// ---- the screen ---------------------------------------------------------------------------------

static bool is_of_blocks(Format format) {
    return format_table[format].scaled == SCALED_BLOCK;
}

static void pick(LabFormats *formats, bool (*wanted)(Format format)) {
    formats->count = format_pick(formats->list, wanted);
}

static bool lab_open(Ui *ui, Error *error) {
    Lab *lab = calloc(1, sizeof *lab);
    if (!lab)
        return error_fail(error, ERROR_MEMORY, "no memory for the screen");
    ui->state[SCREEN_FORMATS] = lab;
    pick(&lab->plain, format_is_shown);
    pick(&lab->blocks, is_of_blocks);
    pick(&lab->scaled, format_is_scaled);
    while (lab->plain.list[lab->row] != FORMAT_FP16) // where most of it happens
        lab->row++;
    lab->line = lab->row;
    return evaluate(lab, "1e-4*1e-4", error) && lab_block_set(lab, "7 3.5 -0.9 0.2 1e-4", error);
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
    area_text_right(area, area.width, 0, style_of(INK_DIM),
                    is_block_open(ui) ? "to the nearest element" : "each step to nearest even");
}

static void lab_draw(Ui *ui, PanelId panel, Area area, bool focused) {
    if (panel == PANEL_NUMBER)
        lab_draw_number(lab_of(ui), area, focused);
    else if (panel == PANEL_RANGES)
        lab_draw_ranges(lab_of(ui), area, focused);
    else
        lab_draw_block(lab_of(ui), area, focused);
}

// ---- keys ---------------------------------------------------------------------------------------

static void show_block(Ui *ui, bool shows) {
    LabBlock *block = &lab_of(ui)->block;
    if (shows)
        block->focus_before = ui->focus[SCREEN_FORMATS];
    ui->maximised[SCREEN_FORMATS] = shows ? PANEL_BLOCK : PANEL_NONE;
    ui->focus[SCREEN_FORMATS] = shows ? PANEL_BLOCK : block->focus_before;
    ui_lay_out(ui);
}

static int turned(int at, int by, int count) {
    return (at + by + count) % count;
}

static void go_to_row(Lab *lab, int row) {
    const int bits = format_bits(lab->plain.list[row]);
    lab->row = lab->line = row;
    if (lab->bit >= bits)
        lab->bit = bits - 1;
}

// Of the panel in focus. Where the ranges are those of blocks, the number's cursor stays.
static void move_row(const Ui *ui, int by) {
    Lab *lab = lab_of(ui);
    if (is_block_open(ui))
        lab->block.number = turned(lab->block.number, by, lab->block.count);
    else if (ui->focus[SCREEN_FORMATS] == PANEL_RANGES)
        lab->line = turned(lab->line, by, lab->plain.count + lab->blocks.count);
    else
        lab->line = turned(lab->row, by, lab->plain.count);
    if (lab->line < lab->plain.count)
        go_to_row(lab, lab->line);
}

// How many lie beside each other, and which of them the cursor is on.
static int *beside(const Ui *ui, int *count) {
    Lab *lab = lab_of(ui);
    *count = is_block_open(ui) ? lab->scaled.count : format_bits(lab->plain.list[lab->row]);
    return is_block_open(ui) ? &lab->block.column : &lab->bit;
}

static void move_beside(const Ui *ui, int by) {
    int count, *at = beside(ui, &count);
    *at = turned(*at, by, count);
}

static void go_to_end(const Ui *ui, bool last) {
    int count, *at = beside(ui, &count);
    *at = last ? count - 1 : 0;
}

static bool block_request(Ui *ui, Request request) {
    switch (request) {
    case REQUEST_BLOCK_SCALES: lab_block_turn_rule(lab_of(ui)); return true;
    case REQUEST_BLOCK:
    case REQUEST_BACK:
    case REQUEST_MAXIMISE:
    case REQUEST_NEXT_PANEL:
    case REQUEST_PREVIOUS_PANEL: show_block(ui, false); return true;
    default: return false;
    }
}

static bool lab_request(Ui *ui, Request request) {
    if (is_block_open(ui) && block_request(ui, request))
        return true;
    switch (request) {
    case REQUEST_UP: move_row(ui, -1); return true;
    case REQUEST_DOWN: move_row(ui, 1); return true;
    case REQUEST_LEFT: move_beside(ui, -1); return true;
    case REQUEST_RIGHT: move_beside(ui, 1); return true;
    case REQUEST_FIRST: go_to_end(ui, false); return true;
    case REQUEST_LAST: go_to_end(ui, true); return true;
    case REQUEST_ENTER: ask(ui); return true;
    case REQUEST_BLOCK: show_block(ui, true); return true;
    case REQUEST_COPY:
        ui_copy(ui, is_block_open(ui) ? lab_of(ui)->block.text : lab_of(ui)->text);
        return true;
    default: return false;
    }
}

static const char *lab_label(const Ui *ui, Request request, const char *usual) {
    if (request == REQUEST_BLOCK && is_block_open(ui))
        return "close";
    const bool is_useless = request == REQUEST_BLOCK_SCALES
                                ? !is_block_open(ui)
                                : request == REQUEST_MAXIMISE && is_block_open(ui);
    return is_useless ? NULL : usual;
}

// Whatever begins a number begins another one, and there numbers of a block.
static bool lab_key(Ui *ui, int key) {
    const bool on_number = !is_block_open(ui);
    if (on_number && key == ' ') {
        turn_bit(ui);
        return true;
    }
    if (on_number && (key == '+' || key == '-')) {
        step_to_neighbour(ui, key == '+' ? 1 : -1);
        return true;
    }
    if (key > '~' || !strchr(on_number ? "0123456789.(/" : "0123456789.(-", key) || key == 0)
        return false;
    ask_from(ui, (char[]){(char)key, 0});
    return true;
}

static void lab_click(Ui *ui, PanelId panel, int column, int row, MouseAction action) {
    Lab *lab = lab_of(ui);
    const Panel *number = layout_find(&ui->layout, PANEL_NUMBER);
    const int by = action == MOUSE_WHEEL_UP ? 1 : action == MOUSE_WHEEL_DOWN ? -1 : 0;
    (void)column;
    if (by != 0 && panel == PANEL_NUMBER)
        step_to_neighbour(ui, by);
    else if (by != 0)
        move_row(ui, -by);
    else if (action == MOUSE_DOUBLE)
        ask(ui);
    else if (panel == PANEL_NUMBER && number) {
        const int at = lab_number_at(lab, number->height, row);
        if (at >= 0)
            go_to_row(lab, at);
    }
}

static const char *lab_explain(PanelId panel) {
    if (panel == PANEL_NUMBER)
        return "A number, or an expression, as every format computes it: each step is rounded "
               "to the format. Red bits are the sign, then the exponent, then the mantissa; the "
               "right column says what rounding did. Space turns the bit under the cursor, + "
               "and - go to the next number that the format has. e3m2, e2m3 and e2m1 are "
               "elements of blocks, and e8m0 is a scale of them: b shows a whole block.";
    if (panel == PANEL_RANGES)
        return "What each format can hold, over powers of two. Where the line ends numbers "
               "overflow; in the dots they lose bits; left of them they become zero. Numbers of mx "
               "formats and nvfp4 share the scale of their block: the line is what a block holds "
               "whose largest is the number, thin is what blocks with other scales do.";
    return "Numbers that are neighbours along the depth of a product, in every format that "
           "scales: what each becomes, and red where it went to zero or saturated. Above stands "
           "the scale of the block that the cursor is in. s turns to the other rule for scales in "
           "powers of two: up, large enough for the largest; or floor, the standard's. Digits "
           "begin other numbers, with blanks between.";
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
    .label = lab_label,
};
