// What the runs that are compared hold in memory, by purpose, side by side.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rune.h"
#include "ui/cells/glyphs.h"
#include "ui/cells/words.h"
#include "ui/compare/compare.h"

// -1: all at once.
static double bytes_of(const Comparison *comparison, int group, int purpose) {
    const CompareSide *side = &comparison->groups[group];
    return purpose < 0 ? side->memory.mean
                       : compare_bytes(comparison, side, &compare_purposes[purpose]);
}

static double most_of(const CompareView *view, int purpose) {
    double most = 0;
    for (int g = 0; g < view->comparison->group_count; g++)
        if (!compare_is_group_hidden(view, g))
            most = fmax(most, bytes_of(view->comparison, g, purpose)); // of a NaN nothing
    return most;
}

typedef struct Row {
    int purpose, group;
    bool is_first; // of its purpose
} Row;

enum { MOST_ROWS = (1 + COMPARE_PURPOSES) * COMPARE_MOST_CURVES };

// What is largest comes first, after all of it together; what none of them has is left out.
static int gather_rows(const CompareView *view, Row rows[MOST_ROWS]) {
    int order[COMPARE_PURPOSES], kinds = 0, count = 0;
    for (int p = 0; p < COMPARE_PURPOSES; p++) {
        int at = kinds;
        if (!(most_of(view, p) > 0))
            continue;
        for (; at > 0 && most_of(view, order[at - 1]) < most_of(view, p); at--)
            order[at] = order[at - 1];
        order[at] = p;
        kinds++;
    }
    for (int k = -1; k < kinds; k++) {
        bool is_first = true;
        for (int g = 0; g < view->comparison->group_count && count < MOST_ROWS; g++) {
            if (compare_is_group_hidden(view, g))
                continue;
            rows[count++] = (Row){k < 0 ? -1 : order[k], g, is_first};
            is_first = false;
        }
    }
    return count;
}

// Without the rest of a gauge, which takes colour to be told from what is full.
static void draw_bar(Area area, int column, int row, int width, double share, Ink ink) {
    int full = share > 0 ? (int)lround(share * width) : 0; // of a NaN nothing
    for (int i = 0; i < full || (i == 0 && share > 0); i++)
        area_put(area, column + i, row, style_of(ink), GLYPH_BAR);
}

// Purpose, letter, label, a bar on one scale for all, bytes, and that as a share of the baseline's.
static void draw_row(const CompareView *view, Area area, int line, const Row *row,
                     const char *label, int label_width, double most) {
    enum { PURPOSE = 12, LETTER = 2, BYTES = 9, RATIO = 7 };
    const Comparison *comparison = view->comparison;
    const CompareSide *side = &comparison->groups[row->group];
    double bytes = bytes_of(comparison, row->group, row->purpose);
    double base = bytes_of(comparison, 0, row->purpose);
    bool has_ratio = bytes > 0 && base > 0 && compare_is_of_baseline(comparison, side);
    Ink ink = compare_ink(comparison, side->members[0]);
    int bar = PURPOSE + LETTER + label_width + 1, right = area.width - RATIO;
    if (row->is_first)
        area_text(area, 0, line, style_bold(INK_BRIGHT),
                  row->purpose < 0 ? "in all" : compare_purposes[row->purpose].name);
    area_put(area, PURPOSE, line, style_bold(ink), (unsigned char)compare_letter(row->group));
    area_text_cut(area, PURPOSE + LETTER, line, label_width, style_of(ink), label);
    if (right - BYTES - 1 > bar)
        draw_bar(area, bar, line, right - BYTES - 1 - bar, bytes / most, ink);
    area_text_right(area, right, line, style_of(INK_BRIGHT),
                    word_bytes(isnan(bytes) ? INT64_MIN : (int64_t)bytes).text);
    char text[16] = "–";
    if (has_ratio)
        snprintf(text, sizeof text, "%.2f×", bytes / base);
    area_text_right(area, area.width, line, style_of(INK_DIM), text);
}

static int label_width_of(const CompareView *view, int most) {
    int widest = 4;
    for (int g = 0; g < view->comparison->group_count; g++) {
        int width = text_width(view->comparison->groups[g].label);
        widest = width > widest ? width : widest;
    }
    return widest < most ? widest : most;
}

void compare_draw_memory(CompareView *view, Area area, bool focused) {
    static const char note[] = "Each purpose at its own highest, which need not be at one moment: "
                               "they need not add up to what was there at once.";
    const Comparison *comparison = view->comparison;
    Row rows[MOST_ROWS];
    Area inside = area_box(area, "memory by purpose", "× of the baseline's", focused);
    inside = area_part(inside, 1, 0, inside.width - 2, inside.height);
    if (!comparison || area_is_empty(inside))
        return;
    int count = gather_rows(view, rows);
    double most = most_of(view, -1);
    for (int p = 0; p < COMPARE_PURPOSES; p++)
        most = fmax(most, most_of(view, p));
    int foot = area_wrap(area_to_measure(inside.width), 0, style_of(INK_DIM), note);
    if (!(most > 0)) {
        area_wrap(inside, 0, style_of(INK_DIM),
                  count > 0 ? "nobody counted the memory of these runs"
                            : "all are hidden: space on the outcomes shows them");
        return;
    }
    int room = inside.height - foot - 1, last = count - room;
    view->memory_top = view->memory_top < last ? view->memory_top : last;
    view->memory_top = view->memory_top > 0 ? view->memory_top : 0;
    int label_width = label_width_of(view, inside.width / 4);
    CompareLabels fitted;
    compare_fit_labels(comparison, label_width, &fitted);
    for (int i = 0; i < room && view->memory_top + i < count; i++) {
        Row row = rows[view->memory_top + i];
        row.is_first |= i == 0; // its name has left
        draw_row(view, inside, i, &row, fitted.text[row.group], label_width, most);
    }
    area_wrap(area_part(inside, 0, inside.height - foot, inside.width, foot), 0, style_of(INK_DIM),
              note);
    area_mark_hidden(area, view->memory_top, last - view->memory_top);
}

bool compare_memory_request(CompareView *view, Request request) {
    if (request != REQUEST_UP && request != REQUEST_DOWN)
        return false;
    view->memory_top += request == REQUEST_DOWN ? 1 : -1;
    return true;
}
