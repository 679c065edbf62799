// What came of the runs that are compared, and what differs between them.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rune.h"
#include "base/sanitize.h"
#include "ui/cells/theme.h"
#include "ui/cells/words.h"
#include "ui/compare/compare.h"

// ---- outcomes -----------------------------------------------------------------------------------

static void write_ratio(char *text, size_t size, double ratio) {
    if (isfinite(ratio))
        snprintf(text, size, "%.*f×", ratio < 99.995 ? 2 : 0, ratio);
    else
        snprintf(text, size, "–");
}

static void write_mean(char *text, size_t size, const Statistic *value) {
    if (value->count == 0)
        snprintf(text, size, "–");
    else if (isfinite(value->interval))
        snprintf(text, size, "%s±%.2g", word_number(value->mean).text, value->interval);
    else
        snprintf(text, size, "%s", word_number(value->mean).text);
}

typedef struct Outcome {
    const char *title;
    int width, least;
} Outcome;

static const Outcome outcomes[] = {
    {"steps/s", 8, 0},    {"speed", 6, 0},    {"memory", 8, 54}, {"of it", 6, 62},
    {"mean loss", 13, 0}, {"result", 13, 46}, {"energy", 7, 80}, {"skipped", 8, 90},
};
enum { OUTCOMES = sizeof outcomes / sizeof *outcomes };

static void outcome_cells(const CompareSide *side, char cells[OUTCOMES][48]) {
    snprintf(cells[0], 48, "%s", word_short(side->steps_per_s.mean).text);
    write_ratio(cells[1], 48, side->speedup);
    snprintf(cells[2], 48, "%s",
             word_bytes(isfinite(side->memory.mean) ? (int64_t)side->memory.mean : INT64_MIN).text);
    write_ratio(cells[3], 48, side->memory_ratio);
    write_mean(cells[4], 48, &side->loss);
    const CompareMetric *metric = compare_leading_metric(side);
    if (metric)
        write_mean(cells[5], 48, &metric->value);
    else
        snprintf(cells[5], 48, "–");
    write_ratio(cells[6], 48, side->energy_ratio);
    snprintf(cells[7], 48, "%s", word_count(side->skipped).text);
}

// Whether another group's label would be cut to the same.
static bool is_cut_alike(const Comparison *comparison, int group, int bytes) {
    for (int i = 0; i < comparison->group_count; i++)
        if (i != group && strncmp(comparison->groups[i].label, comparison->groups[group].label,
                                  (size_t)bytes) == 0)
            return true;
    return false;
}

// Labels that begin alike are cut in the middle: runs are numbered at the end of their names.
static void draw_label(Area area, int row, int room, Style style, const Comparison *comparison,
                       int group) {
    char label[2 * COMPARE_LABEL_SIZE];
    const char *raw = comparison->groups[group].label;
    sanitize_line(label, sizeof label, raw, strlen(raw));
    int head = (room - 1) / 2;
    if (text_width(label) <= room || head < 1 || !is_cut_alike(comparison, group, room - 1)) {
        area_text_cut(area, 1, row, room, style, label);
        return;
    }
    const char *tail = label;
    while (text_width(tail) > room - 1 - head)
        rune_next(&tail);
    area_text_cut(area, 1, row, head + 1, style, label);
    area_text(area, 1 + head + 1, row, style, tail);
}

// A title row when `group` is negative.
static void draw_outcome(Area area, int row, const Comparison *comparison, int group) {
    const CompareSide *side = group >= 0 ? &comparison->groups[group] : NULL;
    char cells[OUTCOMES][48];
    int at = area.width;
    if (side)
        outcome_cells(side, cells);
    for (int i = OUTCOMES - 1; i >= 0; i--) {
        if (area.width < outcomes[i].least)
            continue;
        area_text_right(area, at, row, style_of(side ? INK_BRIGHT : INK_DIM),
                        side ? cells[i] : outcomes[i].title);
        at -= outcomes[i].width + 1;
    }
    if (side)
        draw_label(area, row, at - 1, style_bold(compare_ink(comparison, side->members[0])),
                   comparison, group);
}

static bool describe_parting(const CompareSide *side, char *text, size_t size) {
    const CompareDivergence *divergence = &side->divergence;
    if (!divergence->is_known)
        return false;
    if (divergence->different < 0 && compare_loss_is_broken(side))
        snprintf(text, size, "%s: the same all along, and not finite in the end", side->label);
    else if (divergence->different < 0)
        snprintf(text, size, "%s: the same to the bit all along", side->label);
    else if (divergence->parted < 0)
        snprintf(text, size,
                 "%s: first different bit at step %lld; never apart by more "
                 "than noise",
                 side->label, (long long)divergence->different);
    else
        snprintf(text, size, "%s: first different bit at step %lld, apart from step %lld on",
                 side->label, (long long)divergence->different, (long long)divergence->parted);
    return true;
}

// All sentences, one below the other from `row` on; returns the row after them. Without a frame
// they are measured alone.
static int draw_sentences(const Comparison *comparison, Area area, int row) {
    char text[COMPARE_LABEL_SIZE + 160], clean[2 * sizeof text];
    for (int i = 0; i < comparison->verdict_count; i++)
        row = area_wrap(area, row, style_of(INK_BRIGHT), comparison->verdicts[i]);
    for (int i = 1; i < comparison->group_count; i++)
        if (describe_parting(&comparison->groups[i], text, sizeof text)) {
            sanitize_line(clean, sizeof clean, text, strlen(text));
            row = area_wrap(area, row, style_of(INK_DIM), clean);
        }
    for (int i = 0; i < comparison->caveat_count; i++)
        row = area_wrap(area, row, style_of(INK_WARN), comparison->caveats[i]);
    return row;
}

// On the border: how much of the sentences is not seen.
static void mark_hidden(Area area, int above, int below) {
    char text[64] = "";
    if (above > 0 && below > 0)
        snprintf(text, sizeof text, " %d above, %d more below ", above, below);
    else if (above > 0)
        snprintf(text, sizeof text, " %d above ", above);
    else if (below > 0)
        snprintf(text, sizeof text, " %d more below: down ", below);
    area_text_right(area, area.width - 2, area.height - 1, style_of(INK_WARN), text);
}

static void describe_baseline(const CompareSide *side, char *text, size_t size) {
    enum { NAME_MOST = 24 };
    char label[COMPARE_LABEL_SIZE];
    sanitize_line(label, sizeof label, side->label, strlen(side->label));
    bool is_short = text_width(label) <= NAME_MOST;
    snprintf(text, size, "%s is the baseline", is_short ? label : "the first");
}

void compare_draw_outcomes(CompareView *view, Area area, bool focused) {
    const Comparison *comparison = view->comparison;
    char right[COMPARE_LABEL_SIZE * 2] = "";
    if (comparison)
        describe_baseline(&comparison->groups[0], right, sizeof right);
    Area inside = area_box(area, "outcomes", right, focused);
    if (!comparison || area_is_empty(inside))
        return;
    int row = 1;
    draw_outcome(inside, 0, comparison, -1);
    for (int i = 0; i < comparison->group_count && row < inside.height; i++, row++)
        draw_outcome(inside, row, comparison, i);
    row += inside.height > 7; // a line apart where there is room
    Area text = area_part(inside, 1, row, inside.width - 2, inside.height - row);
    int most = draw_sentences(comparison, area_to_measure(text.width), 0) - text.height;
    view->scroll = view->scroll < most ? view->scroll : most;
    view->scroll = view->scroll > 0 ? view->scroll : 0;
    draw_sentences(comparison, text, -view->scroll);
    mark_hidden(area, view->scroll, most - view->scroll);
}

// ---- differences --------------------------------------------------------------------------------

// Groups that nothing tells apart are one training, done again with the same seed.
static void draw_nothing(const Comparison *comparison, Area inside) {
    char text[160] = "nothing but the seed";
    if (comparison->group_count > 1) {
        int64_t different = comparison->groups[1].divergence.different;
        int used =
            snprintf(text, sizeof text, "nothing: the same in everything asked for, the seed too");
        if (different >= 0)
            snprintf(text + used, sizeof text - (size_t)used, "; other bits from step %lld on",
                     (long long)different);
    }
    area_wrap(area_part(inside, 1, 0, inside.width - 2, inside.height), 0, style_of(INK_DIM), text);
}

void compare_draw_differences(CompareView *view, Area area, bool focused) {
    enum { NAME = 16 };
    const Comparison *comparison = view->comparison;
    Area inside = area_box(area, "what differs", NULL, focused);
    if (!comparison || area_is_empty(inside))
        return;
    if (comparison->difference_count == 0)
        draw_nothing(comparison, inside);
    int groups = comparison->group_count;
    int width = (inside.width - NAME - 1) / groups;
    int most = comparison->difference_count - inside.height, *skip = &view->first_difference;
    *skip = *skip < most ? *skip : most;
    *skip = *skip > 0 ? *skip : 0;
    for (int i = *skip; i < comparison->difference_count && i - *skip < inside.height; i++) {
        const CompareDifference *difference = &comparison->differences[i];
        area_outside(inside, 1, i - *skip, NAME - 2, style_of(INK_DIM), difference->name);
        for (int j = 0; j < groups; j++) {
            const char *value = difference->values[j];
            Ink ink = theme_format_ink(value);
            area_outside(inside, NAME + width * j, i - *skip, width - 1,
                         style_of(ink == INK_TEXT ? INK_BRIGHT : ink), value[0] ? value : "–");
        }
    }
}
