// What came of the runs that are compared, and what differs between them.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rune.h"
#include "base/sanitize.h"
#include "ui/cells/glyphs.h"
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

// Digits are left out until it fits: what is very small or large needs exponents, too. Values that
// are all the same say nothing of chance.
static void write_mean(char *text, size_t size, const Statistic *value, int width) {
    const bool scatters = isfinite(value->interval) && value->interval > 0;
    if (value->count == 0)
        snprintf(text, size, "–");
    else if (!scatters)
        snprintf(text, size, "%s", word_number(value->mean).text);
    else
        snprintf(text, size, "%s±%.2g", word_number(value->mean).text, value->interval);
    for (int digits = 3; digits > 0 && scatters && text_width(text) > width; digits--)
        snprintf(text, size, "%.*g±%.1g", digits, value->mean, value->interval);
}

typedef struct Outcome {
    const char *title;
    int width, least; // least: of the panel, so that labels keep five columns and more
} Outcome;

static const Outcome outcomes[] = {
    {"n", 2, 0},     {"steps/s", 8, 0},  {"speed", 6, 0},   {"memory", 8, 61},  {"of it", 6, 68},
    {"mean", 13, 0}, {"result", 13, 52}, {"energy", 7, 80}, {"skipped", 8, 90},
};
enum { OUTCOMES = sizeof outcomes / sizeof *outcomes, SEEDS = 0, MEAN = 5, RESULT = 6 };

static bool has_seeds(const Comparison *comparison) {
    return comparison->group_count < comparison->run_count;
}

// With the gap before it.
static int column_width(const Comparison *comparison, int column) {
    enum { INTERVAL = 2 }; // more where there may be one
    const bool may_have = has_seeds(comparison) && (column == MEAN || column == RESULT);
    return outcomes[column].width + 1 + (may_have ? INTERVAL : 0);
}

static void outcome_cells(const Comparison *comparison, const CompareSide *side,
                          char cells[OUTCOMES][48]) {
    bool has_ratios = compare_is_of_baseline(comparison, side);
    snprintf(cells[SEEDS], 48, "%d", side->member_count);
    snprintf(cells[1], 48, "%s", word_short(side->steps_per_s.mean).text);
    write_ratio(cells[2], 48, has_ratios ? compare_told_speedup(comparison, side) : (double)NAN);
    snprintf(cells[3], 48, "%s",
             word_bytes(isfinite(side->memory.mean) ? (int64_t)side->memory.mean : INT64_MIN).text);
    write_ratio(cells[4], 48, has_ratios ? side->memory_ratio : (double)NAN);
    write_mean(cells[MEAN], 48, &side->loss, column_width(comparison, MEAN) - 1);
    // That of the column's title.
    const CompareMetric *titled = compare_leading_metric(&comparison->groups[0]);
    const CompareMetric *metric =
        titled ? compare_metric(side, titled->name) : compare_leading_metric(side);
    if (metric)
        write_mean(cells[RESULT], 48, &metric->value, column_width(comparison, RESULT) - 1);
    else
        snprintf(cells[RESULT], 48, "–");
    write_ratio(cells[7], 48, has_ratios ? side->energy_ratio : (double)NAN);
    snprintf(cells[8], 48, "%s", word_count(side->skipped).text);
}

// The mean is of the series that is compared, and a result has the name of what it measures, where
// there is room for it.
static void write_title(const Comparison *comparison, int column, char *text, size_t size) {
    const CompareMetric *metric = compare_leading_metric(&comparison->groups[0]);
    char wanted[RECORD_NAME_SIZE + 8];
    snprintf(wanted, sizeof wanted, "%s", outcomes[column].title);
    if (column == MEAN)
        snprintf(wanted, sizeof wanted, "mean %s", comparison->series);
    else if (column == RESULT && metric)
        snprintf(wanted, sizeof wanted, "%s", metric->name);
    bool has_room = text_width(wanted) <= outcomes[column].width;
    const char *shown = has_room ? wanted : outcomes[column].title;
    sanitize_line(text, size, shown, strlen(shown));
}

enum { CURSOR = 1, LETTER = 1, BEFORE_LABEL = CURSOR + LETTER + 1 };

static bool has_column(const Comparison *comparison, int width, int column) {
    enum { FOR_SEEDS = 7 }; // what all that seeds add takes from the labels
    const int least = outcomes[column].least;
    if (column == SEEDS)
        return has_seeds(comparison);
    return width >= least + (has_seeds(comparison) && least > 0 ? FOR_SEEDS : 0);
}

// What columns leave to labels.
static int label_room(const Comparison *comparison, int width) {
    int room = width - BEFORE_LABEL;
    for (int i = 0; i < OUTCOMES; i++)
        room -= has_column(comparison, width, i) ? column_width(comparison, i) : 0;
    return room;
}

// A title row when `group` is negative.
static void draw_cells(Area area, int row, const Comparison *comparison, int group, Ink ink) {
    char cells[OUTCOMES][48];
    int at = area.width;
    if (group >= 0)
        outcome_cells(comparison, &comparison->groups[group], cells);
    for (int i = OUTCOMES - 1; i >= 0; i--) {
        if (!has_column(comparison, area.width, i))
            continue;
        if (group < 0)
            write_title(comparison, i, cells[i], sizeof cells[i]);
        area_text_right(area, at, row, style_of(ink), cells[i]);
        at -= column_width(comparison, i);
    }
}

static void draw_outcome(Area area, int row, const CompareView *view, int group,
                         const char *label) {
    const Comparison *comparison = view->comparison;
    const CompareSide *side = &comparison->groups[group];
    const bool is_hidden = compare_is_group_hidden(view, group);
    Style style =
        is_hidden ? style_of(INK_DIM) : style_bold(compare_ink(comparison, side->members[0]));
    draw_cells(area, row, comparison, group, is_hidden ? INK_DIM : INK_BRIGHT);
    if (group == view->cursor)
        area_put(area, 0, row, style_bold(INK_ACCENT), GLYPH_CURSOR);
    area_put(area, CURSOR, row, style,
             is_hidden ? GLYPH_DASH : (unsigned char)compare_letter(group));
    area_text_cut(area, BEFORE_LABEL, row, label_room(comparison, area.width), style, label);
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

// With scales as all screens write them.
static int draw_sentence(Area area, int row, Ink ink, const char *text) {
    char clean[2 * COMPARE_TEXT_SIZE], sentence[2 * COMPARE_TEXT_SIZE];
    sanitize_line(clean, sizeof clean, text, strlen(text));
    word_rewrite(sentence, sizeof sentence, clean);
    return area_wrap(area, row, style_of(ink), sentence);
}

// All sentences but those of what is hidden, one below the other from `row` on; returns the row
// after them. Without a frame they are measured alone.
static int draw_sentences(const CompareView *view, Area area, int row) {
    const Comparison *comparison = view->comparison;
    const bool is_of_groups = comparison->group_count > 1; // one each, but for the baseline
    char text[COMPARE_TEXT_SIZE];
    for (int i = 0; i < comparison->group_count && comparison->options.target; i++) {
        compare_say_target(comparison, i, text);
        if (!compare_is_group_hidden(view, i))
            row = draw_sentence(area, row, INK_TEXT, text);
    }
    for (int i = 0; i < comparison->verdict_count; i++)
        if (!is_of_groups || !compare_is_group_hidden(view, i + 1))
            row = draw_sentence(area, row, INK_BRIGHT, comparison->verdicts[i]);
    for (int i = 1; i < comparison->group_count; i++)
        if (!compare_is_group_hidden(view, i) &&
            describe_parting(&comparison->groups[i], text, sizeof text))
            row = draw_sentence(area, row, INK_DIM, text);
    for (int i = 0; i < comparison->caveat_count; i++)
        row = draw_sentence(area, row, INK_WARN, comparison->caveats[i]);
    return row;
}

static void describe_baseline(const CompareSide *side, char *text, size_t size) {
    enum { NAME_MOST = 24 };
    char label[COMPARE_LABEL_SIZE];
    sanitize_line(label, sizeof label, side->label, strlen(side->label));
    bool is_short = text_width(label) <= NAME_MOST;
    snprintf(text, size, "%s is the baseline", is_short ? label : "the first");
}

// Those about the cursor where not all fit beside some sentences; returns how many rows they take.
static int draw_groups(CompareView *view, Area inside) {
    enum { TITLES = 1, FOR_SENTENCES = 2 };
    const int count = view->comparison->group_count, most = inside.height - TITLES - FOR_SENTENCES;
    const int shown = count <= most ? count : most > 1 ? most : 1;
    int first = view->first_group;
    first = view->cursor < first ? view->cursor : first;
    first = view->cursor >= first + shown ? view->cursor - shown + 1 : first;
    view->first_group = first + shown <= count ? first : count - shown;
    CompareLabels fitted;
    compare_fit_labels(view->comparison, label_room(view->comparison, inside.width), &fitted);
    draw_cells(inside, 0, view->comparison, -1, INK_DIM);
    if (shown < count)
        area_print(inside, 1, 0, style_of(INK_WARN), "%d/%d", view->cursor + 1, count);
    for (int i = 0; i < shown; i++)
        draw_outcome(inside, TITLES + i, view, view->first_group + i,
                     fitted.text[view->first_group + i]);
    return TITLES + shown;
}

void compare_draw_outcomes(CompareView *view, Area area, bool focused) {
    const Comparison *comparison = view->comparison;
    char right[COMPARE_LABEL_SIZE * 2] = "";
    if (comparison)
        describe_baseline(&comparison->groups[0], right, sizeof right);
    Area inside = area_box(area, "outcomes", right, focused);
    if (!comparison || area_is_empty(inside))
        return;
    int row = draw_groups(view, inside);
    row += inside.height > 7; // a line apart where there is room
    Area text = area_part(inside, 1, row, inside.width - 2, inside.height - row);
    int most = draw_sentences(view, area_to_measure(text.width), 0) - text.height;
    view->scroll = view->scroll < most ? view->scroll : most;
    view->scroll = view->scroll > 0 ? view->scroll : 0;
    draw_sentences(view, text, -view->scroll);
    area_mark_hidden(area, view->scroll, most - view->scroll);
}

void compare_click_group(CompareView *view, int row) {
    enum { ABOVE = 2 }; // the border and the titles
    const int group = view->first_group + row - ABOVE;
    if (view->comparison && row >= ABOVE && group < view->comparison->group_count)
        view->cursor = group;
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

// Words take as many lines as they need, a word alone is cut. Returns how many lines.
static int draw_value(Area area, const CompareDifference *difference, int group) {
    char clean[2 * RECORD_TEXT_SIZE], text[2 * RECORD_TEXT_SIZE];
    bool is_scale = strcmp(difference->name, "loss scale") == 0;
    Word rule = word_rule(difference->values[group]);
    const char *value = is_scale ? rule.text : difference->values[group];
    Ink ink = theme_format_ink(value);
    Style style = style_of(ink == INK_TEXT ? INK_BRIGHT : ink);
    sanitize_line(clean, sizeof clean, value[0] ? value : "–", value[0] ? strlen(value) : 3);
    word_rewrite(text, sizeof text, clean);
    if (text_width(text) > area.width && strchr(text, ' '))
        return area_wrap(area, 0, style, text);
    if (area.frame)
        area_text_cut(area, 0, 0, area.width, style, text);
    return 1;
}

static bool has_equal_before(const CompareDifference *difference, int group) {
    for (int i = 0; i < group; i++)
        if (strcmp(difference->values[i], difference->values[group]) == 0)
            return true;
    return false;
}

// Where groups are too many for a column each: every value once, a line each, and the letters of
// the curves that have it.
static int draw_by_value(const Comparison *comparison, Area area,
                         const CompareDifference *difference) {
    int row = 0;
    for (int i = 0; i < comparison->group_count; i++) {
        char letters[2 * COMPARE_MOST_CURVES + 1] = "";
        size_t used = 0;
        if (has_equal_before(difference, i))
            continue;
        for (int j = i; j < comparison->group_count; j++)
            if (strcmp(difference->values[j], difference->values[i]) == 0) {
                letters[used++] = compare_letter(j);
                letters[used++] = ' ';
            }
        letters[used] = 0;
        int column = (int)used + 1;
        if (area.frame)
            area_text(area, 0, row, style_of(INK_TEXT), letters);
        Area rest = area.frame
                        ? area_part(area, column, row, area.width - column, area.height - row)
                        : area_to_measure(area.width - column);
        row += draw_value(rest, difference, i);
    }
    return row;
}

// A column a group where there is room; returns how many lines.
static int draw_difference(const Comparison *comparison, Area area,
                           const CompareDifference *difference) {
    enum { LEAST = 10 };
    int groups = comparison->group_count, width = area.width / groups, most = 1;
    if (width < LEAST)
        return draw_by_value(comparison, area, difference);
    for (int i = 0; i < groups; i++) {
        Area part = area.frame ? area_part(area, width * i, 0, width - 1, area.height)
                               : area_to_measure(width - 1);
        int rows = draw_value(part, difference, i);
        most = rows > most ? rows : most;
    }
    return most;
}

void compare_draw_differences(CompareView *view, Area area, bool focused) {
    enum { NAME = 16 };
    const Comparison *comparison = view->comparison;
    Area inside = area_box(area, "what differs", NULL, focused);
    if (!comparison || area_is_empty(inside))
        return;
    if (comparison->difference_count == 0)
        draw_nothing(comparison, inside);
    int width = inside.width - NAME, most = comparison->difference_count;
    for (int rows = 0; most > 0; most--) { // the first from which on all that follow fit
        rows +=
            draw_difference(comparison, area_to_measure(width), &comparison->differences[most - 1]);
        if (rows > inside.height)
            break;
    }
    int *skip = &view->first_difference;
    *skip = *skip < most ? *skip : most;
    *skip = *skip > 0 ? *skip : 0;
    for (int i = *skip, row = 0; i < comparison->difference_count && row < inside.height; i++) {
        const CompareDifference *difference = &comparison->differences[i];
        area_outside(inside, 1, row, NAME - 2, style_of(INK_DIM), difference->name);
        row += draw_difference(comparison, area_part(inside, NAME, row, width, inside.height - row),
                               difference);
    }
    area_mark_hidden(area, *skip, most - *skip);
}
