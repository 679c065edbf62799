// What a scan found, in words: the cell under the cursor, and the whole.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/sanitize.h"
#include "ui/cells/theme.h"
#include "ui/cells/words.h"
#include "ui/scan/scan.h"

const char scan_grades_told[] =
    "A fine  B bearable  C too much  D more than batches differ by  X not finite  ◆ policy  "
    "? untold";

// Letters, so that nothing hangs on colour.
ScanGrade scan_grade(const ScanRecord *scan, const ScanCell *cell) {
    const double all_of_it = 1; // as much as batches differ by
    if (!cell->is_known)
        return (ScanGrade){' ', INK_DIM};
    if (cell->is_broken || !(cell->damage < INFINITY))
        return (ScanGrade){'X', INK_BAD};
    return cell->damage <= scan->tolerance / 10 ? (ScanGrade){'A', INK_GOOD}
           : cell->damage <= scan->tolerance    ? (ScanGrade){'B', INK_TEXT}
           : cell->damage <= all_of_it          ? (ScanGrade){'C', INK_WARN}
                                                : (ScanGrade){'D', INK_BAD};
}

// ---- a cell -------------------------------------------------------------------------------------

static void say_lost(const ScanCell *cell, char *out, size_t size) {
    int used = 0;
    out[0] = 0;
    if (!isnan(cell->flushed))
        used = snprintf(out, size, "%s flushed to zero, ", word_share(cell->flushed).text);
    if (!isnan(cell->overflowed))
        used += snprintf(out + used, size - (size_t)used, "%s overflowed",
                         word_share(cell->overflowed).text);
    if (!isnan(cell->least_scale))
        snprintf(out + used, size - (size_t)used, ", at scales of its own from 2^%.0f to 2^%.0f",
                 cell->least_scale, cell->most_scale);
    else if (cell->scale > 1)
        snprintf(out + used, size - (size_t)used, ", at a loss scale of %s",
                 word_scale(cell->scale).text);
}

// Gradients that are all zero are all off, and point nowhere.
static void say_apart(const char *whose, double error, double degrees, char *out, size_t size) {
    if (degrees == 0 && fabs(error - 1) < 1e-9)
        snprintf(out, size, "%s gradients: all zero.", whose);
    else
        snprintf(out, size, "%s gradients: %s off, %.2f degrees.", whose, word_share(error).text,
                 degrees);
}

static int draw_numbers(const ScanRecord *scan, const ScanCell *cell, Area area, int row) {
    const bool goes_low = cell->damage <= scan->tolerance;
    char text[240], lost[160];
    snprintf(text, sizeof text, "Damage %s: %s the %s allowed.", word_share(cell->damage).text,
             goes_low ? "within" : "more than", word_share(scan->tolerance).text);
    row = area_wrap(area, row, style_of(scan_grade(scan, cell).ink), text);
    say_apart("Own", cell->own_error, cell->own_degrees, text, sizeof text);
    row = area_wrap(area, row, style_of(INK_TEXT), text);
    say_apart("All", cell->all_error, cell->all_degrees, text, sizeof text);
    row = area_wrap(area, row, style_of(INK_TEXT), text);
    snprintf(text, sizeof text, "Loss: changes by %s.", word_share(cell->loss_change).text);
    row = area_wrap(area, row, style_of(INK_TEXT), text);
    say_lost(cell, lost, sizeof lost);
    return lost[0] ? area_wrap(area, row, style_of(INK_DIM), lost) : row;
}

void scan_draw_cell(const ScanView *view, Area area, bool focused) {
    const ScanRecord *scan = view->scan;
    const bool is_there = scan->unit_count > 0 && view->format < scan->format_count;
    Area inside = area_box(area, panel_name(PANEL_CELL), NULL, focused);
    Area words = area_part(inside, 1, 0, inside.width - 2, inside.height);
    if (!is_there)
        return;
    const ScanCell *cell = &scan->cells[view->unit][view->format];
    const char *format = scan->formats[view->format];
    const char *name = scan->units[view->unit];
    char clean[RECORD_NAME_SIZE];
    sanitize_line(clean, sizeof clean, name, strlen(name));
    area_text_middle(words, 0, 0, words.width - 12, style_bold(INK_BRIGHT), clean);
    area_text_right(words, words.width, 0, style_bold(theme_format_ink(format)), format);
    if (!cell->is_known)
        area_wrap(words, 1, style_of(INK_DIM), "It has not been measured yet.");
    else if (cell->is_broken)
        area_wrap(words, 1, style_of(INK_BAD),
                  scan_is_kept(scan, view->unit)
                      ? "Breaks: the loss, a gradient or a running statistic is not finite."
                      : "Breaks: the loss or a gradient is not finite, at any loss scale.");
    else
        draw_numbers(scan, cell, words, 1);
}

// ---- the whole ----------------------------------------------------------------------------------

// By how much its result is worse, with the blanks behind; "": the scan has none.
static void say_result(const ScanRecord *scan, const ScanTraining *training, char *out,
                       size_t size) {
    char metric[RECORD_NAME_SIZE];
    out[0] = 0;
    if (!scan->metric[0])
        return;
    sanitize_line(metric, sizeof metric, scan->metric, strlen(scan->metric));
    if (isfinite(training->worse))
        snprintf(out, size, "%.20s %.2g %% %s  ", metric, 100 * fabs(training->worse),
                 training->worse < 0 ? "better" : "worse");
    else
        snprintf(out, size, "%.20s not finite  ", metric);
}

static int draw_training(const ScanRecord *scan, const ScanTraining *training, Area area, int row) {
    const RoundsGain gain = scan_step_gain(scan, training);
    const char *open = rounds_tempo(&gain) == TEMPO_OPEN ? " ?" : "";
    const ScanOutcome outcome = scan_outcome(scan, training);
    const double above = 100 * training->above;
    char text[240], label[SCAN_LABEL_SIZE], loss[24], result[120];
    sanitize_line(label, sizeof label, training->label, strlen(training->label));
    snprintf(loss, sizeof loss, above >= 99.5 && above < 1e6 ? "%+.0f" : "%+.2g", above);
    say_result(scan, training, result, sizeof result);
    if (training->broken > 0)
        snprintf(text, sizeof text, "%-10.20s %d of %d seeds diverged", label, training->broken,
                 (int)scan->seeds);
    else
        snprintf(text, sizeof text, "%-10.20s %.2fx%s  loss %s %%  %s%s", label, gain.faster, open,
                 loss, result, scan_outcome_name(outcome));
    area_text_cut(area, 0, row, area.width, style_of(outcome == SCAN_BEYOND ? INK_BAD : INK_TEXT),
                  text);
    return row + 1;
}

static void say_progress(const ScanRecord *scan, char *out, size_t size) {
    const int all = scan->unit_count * scan->format_count, known = scan_cells_known(scan);
    if (all == 0)
        snprintf(out, size, "The model is being looked at.");
    else if (known < all)
        snprintf(out, size, "%d of %d cells are measured%s.", known, all,
                 scan->is_live ? "" : "; scan it again, and it goes on");
    else
        snprintf(out, size, "All cells are measured; the policy is being trained with.");
}

void scan_draw_verdict(const ScanView *view, Area area, bool focused) {
    const ScanRecord *scan = view->scan;
    char verdict[SCAN_VERDICT_SIZE], clean[SCAN_VERDICT_SIZE + 128];
    Area inside = area_box(area, panel_name(PANEL_VERDICT), NULL, focused);
    Area words = area_part(inside, 1, 0, inside.width - 2, inside.height);
    if (scan->id == 0)
        return;
    scan_verdict(scan, verdict);
    int row = 0;
    if (scan->ended_ms == 0 || !verdict[0]) {
        say_progress(scan, clean, sizeof clean);
        row = area_wrap(words, row, style_of(INK_WARN), clean);
    }
    if (verdict[0]) {
        sanitize_line(clean, sizeof clean, verdict, strlen(verdict));
        row = area_wrap(words, row, style_bold(INK_BRIGHT), clean);
    }
    if (scan->ended_ms > 0 && scan->has_policy)
        row = area_wrap(words, row, style_of(INK_ACCENT),
                        "Next: enter gives this policy to the run that goes on, or fills the form, "
                        "where enter trains.");
    row += row + 1 + scan->training_count < words.height ? 1 : 0;
    for (int i = 0; i < scan->training_count && row < words.height; i++) {
        const ScanTraining *training = &scan->trainings[i];
        if (scan_shows_training(scan, training) && strcmp(training->label, "fp32") != 0)
            row = draw_training(scan, training, words, row);
    }
}
