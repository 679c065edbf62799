// What a scan found, as a table with sentences: as it ends, and as it is kept.
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sanitize.h"
#include "cli/print/table.h"
#include "cli/print/terminal.h"
#include "cli/print/text.h"
#include "cli/scan/scan.h"
#include "compare/scan.h"

// ---- the tables ---------------------------------------------------------------------------------

static void put_percent(char *text, double share) {
    double percent = 100 * share;
    if (percent >= 99.5) // three digits are no power of ten
        snprintf(text, TEXT_SIZE, percent < 1e6 ? "%.0f %%" : "%.2g %%", percent);
    else
        snprintf(text, TEXT_SIZE, percent > 0 && percent < 0.01 ? "<0.01 %%" : "%.2g %%", percent);
}

static void put_cell(Table *table, const Terminal *terminal, const ScanRecord *scan,
                     const ScanCell *cell) {
    char text[TEXT_SIZE];
    const char *style = "";
    if (!cell->is_known) {
        table_put(table, NULL, "");
        return;
    }
    if (cell->is_broken) {
        snprintf(text, sizeof text, "breaks");
        style = terminal_style(terminal, STYLE_BAD);
    } else {
        put_percent(text, cell->damage);
        if (cell->damage > scan->tolerance)
            style = terminal_style(terminal, STYLE_BAD);
    }
    table_put(table, text, style);
}

static const double least_told = 0.001; // of what a layer loses

static bool loses_any(const ScanRecord *scan) {
    bool any = false;
    for (int unit = 0; unit < scan->unit_count; unit++)
        for (int f = 0; f < scan->format_count; f++)
            any = any || scan->cells[unit][f].flushed > least_told ||
                  scan->cells[unit][f].overflowed > least_told;
    return any;
}

static bool print_units(const Terminal *terminal, const ScanRecord *scan, Error *error) {
    TableColumn columns[SCAN_MOST_FORMATS + 6] = {
        {"layer", false, 0, 40}, {"kept in fp32 as", false, 8, 0}, {"numbers", true, 9, 0}};
    int count = 3;
    for (int f = 0; f < scan->format_count; f++)
        columns[count++] = (TableColumn){scan->formats[f], true, 0, 0};
    columns[count++] = (TableColumn){"loses", false, 5, 0};
    columns[count++] = (TableColumn){"gets", false, 0, 0};
    Table *table = table_new(columns, count);
    int ranks[SCAN_MOST_UNITS];
    if (!table)
        return error_fail(error, ERROR_MEMORY, "no memory for the table");
    scan_rank(scan, ranks);
    for (int r = 0; r < scan->unit_count; r++) {
        const int unit = ranks[r];
        char text[TEXT_SIZE];
        table_put(table, scan->units[unit], "");
        table_put(table, scan->kept[unit], "");
        table_put(table, text_count(text, scan->parameters[unit]), "");
        double flushed = 0, beyond = 0;
        for (int f = 0; f < scan->format_count; f++) {
            const ScanCell *cell = &scan->cells[unit][f];
            put_cell(table, terminal, scan, cell);
            flushed = fmax(flushed, cell->flushed);
            beyond = fmax(beyond, cell->overflowed);
        }
        char loses[2 * TEXT_SIZE] = "", share[TEXT_SIZE];
        put_percent(share, flushed);
        if (flushed > least_told)
            snprintf(loses, sizeof loses, "%s flushed", share);
        put_percent(share, beyond);
        if (beyond > least_told) {
            const size_t used = strlen(loses);
            snprintf(loses + used, sizeof loses - used, "%s%s beyond", used > 0 ? ", " : "", share);
        }
        table_put(table, loses[0] ? loses : NULL, "");
        const char *format = scan_format_of(scan, unit);
        const Format named = format_named(format);
        table_put(table, format[0] ? format : NULL,
                  named < FORMAT_COUNT ? terminal_format_color(terminal, named) : "");
    }
    bool done =
        table_print(table, stdout, terminal_width(terminal), terminal_style(terminal, STYLE_DIM),
                    terminal_style(terminal, STYLE_NONE), error);
    table_free(table);
    return done;
}

// How many times as fast as fp32, and between what that lies.
static void put_gain(Table *table, const RoundsGain *gain, bool is_base) {
    char text[TEXT_SIZE];
    snprintf(text, sizeof text, "%.2fx", gain->faster);
    table_put(table, isnan(gain->faster) ? NULL : text, "");
    snprintf(text, sizeof text, "%.2f-%.2f", gain->least, gain->most);
    table_put(table, is_base ? "" : isnan(gain->least) ? NULL : text, "");
}

static void put_cost(Table *table, const ScanRecord *scan, const char *name, double seconds,
                     const RoundsGain *gain, int64_t activations, bool is_base) {
    const int64_t base = scan->activations[scan->format_count];
    char text[TEXT_SIZE];
    table_put(table, name, "");
    table_put(table, text_number(text, 1e3 * seconds, 4), "");
    put_gain(table, gain, is_base);
    table_put(table, is_base ? "" : rounds_tempo_name(rounds_tempo(gain)), "");
    table_put(table, text_bytes(text, (double)activations), "");
    snprintf(text, sizeof text, "%.2fx", (double)activations / (double)base);
    table_put(table, base > 0 ? text : NULL, "");
}

// Of each format, and behind it with norms and embeddings in it too.
static bool print_costs(const Terminal *terminal, const ScanRecord *scan, Error *error) {
    static const TableColumn columns[] = {
        {"all layers in", false, 0, 0}, {"ms a pass", true, 0, 0}, {"speed", true, 0, 0},
        {"spread", true, 1, 0},         {"", false, 0, 0},         {"activations", true, 0, 0},
        {"of it", true, 0, 0}};
    const int base = scan->format_count;
    if (scan->seconds[base] <= 0) // it has not come so far
        return true;
    Table *table = table_new(columns, sizeof columns / sizeof *columns);
    if (!table)
        return error_fail(error, ERROR_MEMORY, "no memory for the table");
    for (int i = 0; i <= scan->format_count; i++) {
        int f = i == 0 ? base : i - 1; // fp32 first
        RoundsGain gain = scan_pass_gain(scan, f);
        char name[TEXT_SIZE];
        put_cost(table, scan, scan_format_name(scan, f), scan->seconds[f], &gain,
                 scan->activations[f], f == base);
        if (f == base || scan->lowered[f].round_count == 0)
            continue;
        gain = scan_lowered_gain(scan, f);
        snprintf(name, sizeof name, "%s, norms too", scan->formats[f]);
        put_cost(table, scan, name, scan->lowered[f].seconds, &gain, scan->lowered[f].activations,
                 false);
    }
    putchar('\n');
    bool done =
        table_print(table, stdout, terminal_width(terminal), terminal_style(terminal, STYLE_DIM),
                    terminal_style(terminal, STYLE_NONE), error);
    table_free(table);
    return done;
}

static const char *outcome_of(const ScanRecord *scan, const ScanTraining *training) {
    const Tempo tempo = scan_step_tempo(scan, training);
    const ScanOutcome outcome = scan_outcome(scan, training);
    const bool is_alike = scan_seeds_are_alike(scan, training);
    return outcome == SCAN_OPEN
               ? is_alike ? "cannot be told: seeds are alike" : "cannot be told: more --seeds"
           : outcome == SCAN_BEYOND ? "beyond what is allowed"
           : tempo == TEMPO_FASTER  ? "within, and faster"
           : tempo == TEMPO_OPEN    ? "within; whether faster cannot be told"
           : tempo == TEMPO_SLOWER  ? "within, but slower"
                                    : "within, and as fast";
}

// By how much it differs from fp32's, and what that is known to.
static void put_change(Table *table, double share, double interval) {
    char text[2 * TEXT_SIZE];
    if (isnan(interval))
        snprintf(text, sizeof text, "%+.2f %%", 100 * share);
    else
        snprintf(text, sizeof text, "%+.2f +- %.2f %%", 100 * share, 100 * interval);
    table_put(table, text, "");
}

// Nothing where the scan has no metric: then the columns are left out.
static void put_result(Table *table, const ScanRecord *scan, const ScanTraining *training,
                       bool is_base) {
    char number[TEXT_SIZE];
    const bool is_known = scan->metric[0] && isfinite(training->result);
    table_put(table,
              is_known          ? text_number(number, training->result, 4)
              : scan->metric[0] ? "not finite"
                                : "",
              "");
    if (is_known && !is_base && isfinite(training->worse))
        put_change(table, training->worse, training->worse_interval);
    else
        table_put(table, scan->metric[0] ? NULL : "", "");
}

static bool print_trainings(const Terminal *terminal, const ScanRecord *scan, Error *error) {
    char metric[RECORD_NAME_SIZE], worse[RECORD_NAME_SIZE];
    sanitize_line(metric, sizeof metric, scan->metric, strlen(scan->metric));
    snprintf(worse, sizeof worse, "%.20s worse by", metric);
    const TableColumn columns[] = {
        {"trained on", false, 0, 0}, {"loss", true, 3, 0},   {"of fp32's", true, 0, 0},
        {metric, true, 4, 20},       {worse, true, 0, 0},    {"ms a step", true, 6, 0},
        {"speed", true, 2, 0},       {"spread", true, 5, 0}, {"", false, 0, 0}};
    const ScanTraining *base = scan_training_of(scan, "fp32");
    if (!base)
        return true;
    Table *table = table_new(columns, sizeof columns / sizeof *columns);
    if (!table)
        return error_fail(error, ERROR_MEMORY, "no memory for the table");
    for (int i = 0; i < scan->training_count; i++) {
        const ScanTraining *training = &scan->trainings[i];
        if (!scan_shows_training(scan, training))
            continue;
        char number[TEXT_SIZE];
        table_put(table, training->label, "");
        table_put(table,
                  training->broken > 0 ? "not finite" : text_number(number, training->loss, 4), "");
        if (training == base || training->broken > 0)
            table_put(table, NULL, "");
        else
            put_change(table, training->above, training->interval);
        put_result(table, scan, training, training == base);
        table_put(table, text_number(number, 1e3 * training->seconds, 4), "");
        const RoundsGain gain = scan_step_gain(scan, training);
        put_gain(table, &gain, training == base);
        table_put(table, training == base ? NULL : outcome_of(scan, training),
                  scan_outcome(scan, training) == SCAN_BEYOND ? terminal_style(terminal, STYLE_BAD)
                                                              : "");
    }
    putchar('\n');
    bool done =
        table_print(table, stdout, terminal_width(terminal), terminal_style(terminal, STYLE_DIM),
                    terminal_style(terminal, STYLE_NONE), error);
    table_free(table);
    return done;
}

// How far it came, where it has not come to its end; "" else.
static void say_progress(const ScanRecord *scan, char text[SCAN_VERDICT_SIZE]) {
    text[0] = 0;
    if (scan->ended_ms == 0)
        snprintf(text, SCAN_VERDICT_SIZE, "%d of %d cells are measured%s.", scan_cells_known(scan),
                 scan->unit_count * scan->format_count,
                 scan->is_live ? ", and it goes on" : "; the same `mpbench scan` goes on with it");
}

static const char rounds_told[] =
    "Speeds are medians of what rounds through all formats in turn each found, not ratios of the "
    "times beside them; spread is between what they lie in 95 of 100 cases. What it leaves open "
    "cannot be told, and what differs by less than 5 % is as fast: memory decides then, and "
    "damage.";

// Layers in such a format round the factors of products alone: what else there is stays as it is
// beneath them.
static void say_of_scaled(const ScanRecord *scan) {
    char text[SCAN_VERDICT_SIZE];
    const char *first = NULL;
    for (int i = scan->format_count - 1; i >= 0; i--) {
        const Format format = format_named(scan->formats[i]);
        if (format < FORMAT_COUNT && format_is_scaled(format) &&
            format_table[format].element != format) // of elements alone there are no presets
            first = scan->formats[i];
    }
    if (!first)
        return;
    snprintf(text, sizeof text,
             "Of what shares scales, as %s, activations are as all else is, here fp32. A run of -p "
             "%s has bf16 there, which takes less: --dry-run tells how much.",
             first, first);
    cli_print_wrapped(text, 0);
}

bool scan_print(const Cli *cli, const ScanRecord *scan, Error *error) {
    Terminal terminal = terminal_of(stdout, cli->color);
    char text[SCAN_VERDICT_SIZE];
    if (!print_units(&terminal, scan, error) || !print_costs(&terminal, scan, error) ||
        !print_trainings(&terminal, scan, error))
        return false;
    putchar('\n');
    snprintf(text, sizeof text,
             "Damage: the distance of gradients to fp32's, as a share of what they differ by from "
             "batch to batch (of %" PRId64 "), of the layer or of the whole model, whichever is "
             "more. Up to %.3g %% may go low. On %s, %d thread%s.",
             scan->batches, 100 * scan->tolerance, scan->device, scan->threads,
             scan->threads == 1 ? "" : "s");
    cli_print_wrapped(text, 0);
    if (scan->format_count > 1 && loses_any(scan))
        cli_print_wrapped(
            "Of what a layer loses, flushed and beyond are each the most of all formats.", 0);
    if (scan->pass_round_count[scan->format_count] > 0)
        cli_print_wrapped(rounds_told, 0);
    say_of_scaled(scan);
    const ScanTraining *trained = scan_training_of(scan, "fp32");
    if (trained && scan_seeds_are_alike(scan, trained)) {
        snprintf(text, sizeof text,
                 "All %" PRId64 " seeds gave the same to the bit in fp32: they change nothing in "
                 "this script, and count as one. A loader with `shuffle = true`, dropout, whatever "
                 "draws random numbers makes them differ.",
                 scan->seeds);
        cli_print_wrapped(text, 0);
    }
    text_load(text, scan->others);
    if (text[0]) {
        text[0] = 'O';
        snprintf(text + strlen(text), sizeof text - strlen(text), ": speeds tell of them, too.");
        cli_print_wrapped(text, 0);
    }
    if (scan->left_out > 0) {
        snprintf(text, sizeof text, "%d more were left in fp32: --by block looks at fewer, larger.",
                 scan->left_out);
        cli_print_wrapped(text, 0);
    }
    if (scan->rounds > 0) {
        snprintf(text, sizeof text, "The first policy did not hold; it was made higher %d time%s.",
                 scan->rounds, scan->rounds == 1 ? "" : "s");
        cli_print_wrapped(text, 0);
    }
    scan_say_skipped(scan, text);
    if (text[0]) {
        text[0] = (char)toupper((unsigned char)text[0]);
        cli_print_wrapped(text, 0);
    }
    if (scan->metric[0] && scan_training_of(scan, "fp32") && !scan_result_counts(scan))
        cli_print_wrapped("What `eval` gives is not finite in fp32 either: the loss alone decides.",
                          0);
    say_progress(scan, text);
    if (!text[0])
        scan_verdict(scan, text);
    fputs(terminal_style(&terminal, STYLE_STRONG), stdout);
    cli_print_wrapped(text, 0);
    fputs(terminal_style(&terminal, STYLE_NONE), stdout);
    if (scan->id > 0) {
        snprintf(text, sizeof text, "Kept as scan %" PRId64 ": mpbench show scan:%" PRId64,
                 scan->id, scan->id);
        cli_print_wrapped(text, 0);
    }
    scan_print_next(scan);
    return true;
}
