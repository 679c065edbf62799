// The table of a scan: a row a layer, a column a format, and below what all layers in it gain.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/cells/glyphs.h"
#include "ui/cells/theme.h"
#include "ui/cells/words.h"
#include "ui/home/home.h"
#include "ui/scan/scan.h"

enum { NUMBERS = 9, CELL = 13, POLICY = 12, LEAST_NAME = 14, FOOT = 5 };

typedef struct Places {
    int name, first, shown, policy; // columns of the name, the first format, ..
    int from;                       // formats scrolled away
} Places;

static Places places_in(const ScanView *view, int width) {
    Places places = {.shown = (width - LEAST_NAME - NUMBERS - POLICY) / CELL};
    const int count = view->scan->format_count;
    places.shown = places.shown > count ? count : places.shown < 1 ? 1 : places.shown;
    places.policy = width - POLICY;
    places.first = places.policy - places.shown * CELL;
    places.name = places.first - NUMBERS;
    places.from = view->format >= places.shown ? view->format - places.shown + 1 : 0;
    return places;
}

static void draw_titles(const ScanView *view, const Places *places, Area area) {
    area_text(area, 1, 0, style_of(INK_DIM), "layer");
    area_text_right(area, places->first - 2, 0, style_of(INK_DIM), "numbers");
    for (int i = 0; i < places->shown; i++) {
        const char *format = view->scan->formats[places->from + i];
        const bool here = places->from + i == view->format;
        const Ink ink = theme_format_ink(format);
        area_text_cut(area, places->first + i * CELL + 2, 0, CELL - 3,
                      here ? style_bold(ink) : style_of(ink), format);
    }
    area_text(area, places->policy, 0, style_of(INK_DIM), "policy");
}

static void draw_unit_cell(const ScanView *view, Area area, int column, int line, int unit,
                           int format) {
    const ScanRecord *scan = view->scan;
    const ScanCell *cell = &scan->cells[unit][format];
    const ScanGrade grade = scan_grade(scan, cell);
    const bool here = unit == view->unit && format == view->format;
    const Style style = here ? style_bold(grade.ink) : style_of(grade.ink);
    char text[40] = "";
    if (scan->has_policy && scan->policy[unit] == format)
        area_put(area, column, line, style_bold(INK_ACCENT), GLYPH_SELECTED);
    if (!cell->is_known)
        snprintf(text, sizeof text, "..");
    else if (grade.letter == 'X')
        snprintf(text, sizeof text, "X breaks");
    else
        snprintf(text, sizeof text, "%c %s", grade.letter, word_share(cell->damage).text);
    area_text_cut(area, column + 2, line, CELL - 3, style, text);
    if (here) {
        area_put(area, column + 1, line, style_bold(INK_ACCENT), GLYPH_LEFT);
        area_put(area, column + CELL - 2, line, style_bold(INK_ACCENT), GLYPH_RIGHT);
    }
}

static void draw_unit(const ScanView *view, const Places *places, Area area, int line, int unit) {
    const ScanRecord *scan = view->scan;
    const bool here = unit == view->unit;
    const char *policy = scan_format_of(scan, unit);
    if (here)
        area_put(area, 0, line, style_bold(INK_ACCENT), GLYPH_CURSOR);
    char name[RECORD_NAME_SIZE];
    word_shorten(name, sizeof name, scan->units[unit], places->name - 2);
    area_outside(area, 1, line, places->name - 2,
                 here ? style_bold(INK_BRIGHT) : style_of(INK_TEXT), name);
    area_text_right(area, places->first - 2, line, style_of(INK_DIM),
                    scan->parameters[unit] < 1000
                        ? word_count(scan->parameters[unit]).text
                        : word_short((double)scan->parameters[unit]).text);
    for (int i = 0; i < places->shown; i++)
        draw_unit_cell(view, area, places->first + i * CELL, line, unit, places->from + i);
    area_text_cut(area, places->policy, line, POLICY - 1, style_bold(theme_format_ink(policy)),
                  policy);
    if (here)
        area_set_ground(area_part(area, 0, line, area.width, 1), GROUND_SELECTED);
}

// The question mark stands where rounds leave open whether it is faster than fp32.
static void say_gain(const ScanRecord *scan, int row, int format, char *out, size_t size) {
    const RoundsGain gain = scan_pass_gain(scan, format);
    const int64_t base = scan->activations[scan->format_count];
    const char *open = rounds_tempo(&gain) == TEMPO_OPEN ? " ?" : "";
    snprintf(out, size, "–");
    if (row == 0 && isfinite(gain.faster))
        snprintf(out, size, "%.2fx%s", gain.faster, open);
    else if (row == 1 && isfinite(gain.least))
        snprintf(out, size, "%.2f-%.2f", gain.least, gain.most);
    else if (row == 2 && base > 0)
        snprintf(out, size, "%.2fx", (double)scan->activations[format] / (double)base);
}

// All layers in the format, against all in fp32: measured, of a forward and backward pass.
static void draw_gains(const ScanView *view, const Places *places, Area area, int line) {
    static const char *const names[] = {"all layers: speed", "that lies between",
                                        "memory of activations"};
    const int rows = sizeof names / sizeof *names;
    const ScanRecord *scan = view->scan;
    for (int row = 0; row < rows; row++) {
        area_text_cut(area, 1, line + row, places->first - 2, style_of(INK_DIM), names[row]);
        for (int i = 0; i < places->shown; i++) {
            const RoundsGain gain = scan_pass_gain(scan, places->from + i);
            const bool is_good = row == 0 && rounds_tempo(&gain) == TEMPO_FASTER;
            char text[24];
            say_gain(scan, row, places->from + i, text, sizeof text);
            area_text_cut(area, places->first + i * CELL + 2, line + row, CELL - 2,
                          style_of(is_good ? INK_GOOD : INK_TEXT), text);
        }
    }
}

static void draw_empty(const ScanView *view, Area area) {
    static const char none[] =
        "No scan is in this history. s scans an experiment or a run: every layer in every format, "
        "beside fp32 on the same batches; then it proposes which layers may go low, and trains "
        "with that. The same without a screen: mpbench scan EXPERIMENT.";
    Area words = area_part(area, 1, 1, area.width - 2, area.height - 1);
    area_wrap(words, 0, style_of(view->problem[0] ? INK_BAD : INK_TEXT),
              view->problem[0]      ? view->problem
              : view->scan->id != 0 ? "The model is being looked at: its layers come."
                                    : none);
}

void scan_draw_table(ScanView *view, Area area, bool focused) {
    const ScanRecord *scan = view->scan;
    char title[SCAN_SUBJECT_SIZE + 64] = "layers by formats", subject[SCAN_SUBJECT_SIZE];
    if (scan->id != 0) {
        scan_say_subject(scan, subject, sizeof subject);
        snprintf(title, sizeof title, "%.80s, seed %lld, on %.20s", subject, (long long)scan->seed,
                 scan->device);
    }
    Area inside =
        area_box(area, title, view->in_model_order ? "as in the model" : "worst first", focused);
    if (scan->id == 0 || scan->unit_count == 0) {
        draw_empty(view, inside);
        return;
    }
    const Places places = places_in(view, inside.width);
    const bool has_foot = inside.height > 2 * FOOT;
    view->height = inside.height - 1 - (has_foot ? FOOT : 0);
    view->top = home_scroll(view->top, scan_row_of(view), scan->unit_count, view->height);
    draw_titles(view, &places, inside);
    for (int i = 0; i < view->height && view->top + i < scan->unit_count; i++)
        draw_unit(view, &places, inside, 1 + i, view->order[view->top + i]);
    if (has_foot) {
        draw_gains(view, &places, inside, inside.height - FOOT + 1);
        area_text_cut(inside, 1, inside.height - 1, inside.width - 2, style_of(INK_DIM),
                      scan_grades_told);
    }
}
