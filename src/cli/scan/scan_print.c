// What a scan found, as a table with sentences, or as JSON.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/print/table.h"
#include "cli/print/terminal.h"
#include "cli/print/text.h"
#include "cli/scan/scan.h"

const char *scan_format_of(const Scan *scan, int unit) {
    int format = scan->policy[unit];
    return format < scan->format_count ? scan->formats[format] : "fp32";
}

const ScanTraining *scan_training_of(const Scan *scan, const char *label) {
    for (int i = 0; i < scan->training_count; i++)
        if (strcmp(scan->trainings[i].label, label) == 0)
            return &scan->trainings[i];
    return NULL;
}

static int units_in_fp32(const Scan *scan) {
    int count = 0;
    for (int i = 0; i < scan->unit_count; i++)
        count += scan->policy[i] == scan->format_count;
    return count;
}

// Of each unit the worst of the formats that were tried.
static double damage_of(const Scan *scan, int unit) {
    double worst = 0;
    for (int f = 0; f < scan->format_count; f++)
        worst = fmax(worst, scan->cells[unit][f].damage);
    return worst;
}

// Whether the seeds scatter too much for what is allowed to be told from what is not.
static bool is_open(const Scan *scan, const ScanTraining *training) {
    return training->broken == 0 && training->above != 0 && // the same to the bit is the same
           (isnan(training->interval) || training->interval > scan->within);
}

// ---- sentences ----------------------------------------------------------------------------------

// "all 6 layers in bf16", "conv1 fp32, the other 5 in fp16", as far as there is room.
static int say_policy(const Scan *scan, char *text, size_t size) {
    const char *most = NULL;
    int most_count = 0;
    for (int f = 0; f <= scan->format_count; f++) {
        int count = 0;
        for (int i = 0; i < scan->unit_count; i++)
            count += scan->policy[i] == f;
        if (count > most_count) {
            most = f < scan->format_count ? scan->formats[f] : "fp32";
            most_count = count;
        }
    }
    if (most_count == scan->unit_count)
        return snprintf(
            text, size, "%sall %d layers in %s",
            strcmp(most, "fp32") == 0 ? "" : "every layer may go low: ", scan->unit_count, most);
    int used = 0, named = 0;
    for (int i = 0; i < scan->unit_count && named < 4; i++)
        if (strcmp(scan_format_of(scan, i), most) != 0)
            used += snprintf(text + used, size - (size_t)used, "%s%.40s in %s", named++ ? ", " : "",
                             scan->units[i], scan_format_of(scan, i));
    int rest = scan->unit_count - most_count - named;
    if (rest > 0)
        used += snprintf(text + used, size - (size_t)used, " and %d more", rest);
    return used +
           snprintf(text + used, size - (size_t)used, ", the other %d in %s", most_count, most);
}

void scan_verdict(const ScanPage *page, char *text, size_t size) {
    const Scan *scan = page->scan;
    const ScanTraining *policy = scan_training_of(scan, "policy");
    const ScanTraining *base = scan_training_of(scan, "fp32");
    text[0] = 0;
    if (scan->unit_count == 0)
        return;
    int used = say_policy(scan, text, size);
    if (!policy || !base) {
        snprintf(text + used, size - (size_t)used,
                 ": by what their gradients lose; no training has verified it.");
        return;
    }
    used += snprintf(text + used, size - (size_t)used, ": %.2fx the speed of fp32",
                     base->seconds / policy->seconds);
    if (policy->broken > 0) {
        snprintf(text + used, size - (size_t)used, "; %d of %" PRId64 " seeds diverged.",
                 policy->broken, scan->seeds);
        return;
    }
    used += snprintf(text + used, size - (size_t)used, ", loss %+.2f %%", 100 * policy->above);
    if (!isnan(policy->interval))
        used += snprintf(text + used, size - (size_t)used, " +- %.2f %%", 100 * policy->interval);
    snprintf(text + used, size - (size_t)used,
             " of fp32's over %" PRId64 " steps and %" PRId64 " seed%s, %s the %g %% allowed.",
             scan->steps, scan->seeds, scan->seeds == 1 ? "" : "s",
             is_open(scan, policy) ? "too few to tell it from"
             : policy->is_within   ? "within"
                                   : "beyond",
             100 * scan->within);
}

// ---- the tables ---------------------------------------------------------------------------------

static void put_percent(char *text, double share) {
    double percent = 100 * share;
    snprintf(text, TEXT_SIZE, percent > 0 && percent < 0.01 ? "<0.01 %%" : "%.2g %%", percent);
}

static void put_cell(Table *table, const Terminal *terminal, const Scan *scan,
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

typedef struct Rank {
    int unit;
    double damage;
} Rank;

static int by_damage(const void *a, const void *b) {
    const Rank *left = a, *right = b;
    if (left->damage != right->damage)
        return left->damage < right->damage ? 1 : -1;
    return left->unit - right->unit;
}

static bool print_units(const Terminal *terminal, const ScanPage *page, Error *error) {
    const Scan *scan = page->scan;
    TableColumn columns[SCAN_MOST_FORMATS + 5] = {{"layer", false, 0, 40}, {"numbers", true, 9, 0}};
    int count = 2;
    for (int f = 0; f < scan->format_count; f++)
        columns[count++] = (TableColumn){scan->formats[f], true, 0, 0};
    columns[count++] = (TableColumn){"loses", false, 5, 0};
    columns[count++] = (TableColumn){"may have", false, 0, 0};
    Table *table = table_new(columns, count);
    Rank ranks[SCAN_MOST_UNITS];
    if (!table)
        return error_fail(error, ERROR_MEMORY, "no memory for the table");
    for (int i = 0; i < scan->unit_count; i++)
        ranks[i] = (Rank){i, damage_of(scan, i)};
    qsort(ranks, (size_t)scan->unit_count, sizeof *ranks, by_damage);
    for (int r = 0; r < scan->unit_count; r++) {
        int unit = ranks[r].unit;
        char text[TEXT_SIZE];
        table_put(table, scan->units[unit], "");
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
        if (flushed > 0.001)
            snprintf(loses, sizeof loses, "%s flushed", share);
        put_percent(share, beyond);
        if (beyond > 0.001) {
            const size_t used = strlen(loses);
            snprintf(loses + used, sizeof loses - used, "%s%s beyond", used > 0 ? ", " : "", share);
        }
        table_put(table, loses[0] ? loses : NULL, "");
        const char *format = scan_format_of(scan, unit);
        table_put(table, format, terminal_format_color(terminal, format_named(format)));
    }
    bool done =
        table_print(table, stdout, terminal_width(terminal), terminal_style(terminal, STYLE_DIM),
                    terminal_style(terminal, STYLE_NONE), error);
    table_free(table);
    return done;
}

static bool print_costs(const Terminal *terminal, const Scan *scan, Error *error) {
    static const TableColumn columns[] = {{"all layers in", false, 0, 0},
                                          {"ms a pass", true, 0, 0},
                                          {"speed", true, 0, 0},
                                          {"activations", true, 0, 0},
                                          {"of it", true, 0, 0}};
    Table *table = table_new(columns, sizeof columns / sizeof *columns);
    if (!table)
        return error_fail(error, ERROR_MEMORY, "no memory for the table");
    const int base = scan->format_count;
    for (int i = 0; i <= scan->format_count; i++) {
        int f = i == 0 ? base : i - 1; // fp32 first
        char text[TEXT_SIZE];
        table_put(table, f == base ? "fp32" : scan->formats[f], "");
        table_put(table, text_number(text, 1e3 * scan->seconds[f], 4), "");
        snprintf(text, sizeof text, "%.2fx", scan->seconds[base] / scan->seconds[f]);
        table_put(table, text, "");
        table_put(table, text_bytes(text, (double)scan->activations[f]), "");
        snprintf(text, sizeof text, "%.2fx",
                 (double)scan->activations[f] / (double)scan->activations[base]);
        table_put(table, scan->activations[base] > 0 ? text : NULL, "");
    }
    putchar('\n');
    bool done =
        table_print(table, stdout, terminal_width(terminal), terminal_style(terminal, STYLE_DIM),
                    terminal_style(terminal, STYLE_NONE), error);
    table_free(table);
    return done;
}

static bool print_trainings(const Terminal *terminal, const Scan *scan, Error *error) {
    static const TableColumn columns[] = {{"trained on", false, 0, 0}, {"loss", true, 0, 0},
                                          {"of fp32's", true, 0, 0},   {"ms a step", true, 0, 0},
                                          {"speed", true, 0, 0},       {"", false, 0, 0}};
    const ScanTraining *base = scan_training_of(scan, "fp32");
    if (!base)
        return true;
    Table *table = table_new(columns, sizeof columns / sizeof *columns);
    if (!table)
        return error_fail(error, ERROR_MEMORY, "no memory for the table");
    for (int i = 0; i < scan->training_count; i++) {
        const ScanTraining *training = &scan->trainings[i];
        char text[2 * TEXT_SIZE], number[TEXT_SIZE];
        table_put(table, training->label, "");
        table_put(table,
                  training->broken > 0 ? "not finite" : text_number(number, training->loss, 4), "");
        if (isnan(training->interval))
            snprintf(text, sizeof text, "%+.2f %%", 100 * training->above);
        else
            snprintf(text, sizeof text, "%+.2f +- %.2f %%", 100 * training->above,
                     100 * training->interval);
        table_put(table, training == base || training->broken > 0 ? NULL : text, "");
        table_put(table, text_number(number, 1e3 * training->seconds, 4), "");
        snprintf(text, sizeof text, "%.2fx", base->seconds / training->seconds);
        table_put(table, text, "");
        table_put(table,
                  training == base          ? NULL
                  : is_open(scan, training) ? "cannot be told: more --seeds or --steps"
                  : training->is_within     ? "within"
                                            : "beyond what is allowed",
                  training->is_within || is_open(scan, training)
                      ? ""
                      : terminal_style(terminal, STYLE_BAD));
    }
    putchar('\n');
    bool done =
        table_print(table, stdout, terminal_width(terminal), terminal_style(terminal, STYLE_DIM),
                    terminal_style(terminal, STYLE_NONE), error);
    table_free(table);
    return done;
}

bool scan_print(const Cli *cli, const ScanPage *page, Error *error) {
    const Scan *scan = page->scan;
    Terminal terminal = terminal_of(stdout, cli->color);
    char text[512];
    if (!print_units(&terminal, page, error) || !print_costs(&terminal, scan, error) ||
        !print_trainings(&terminal, scan, error))
        return false;
    putchar('\n');
    snprintf(text, sizeof text,
             "Damage: the distance of gradients to fp32's, as a share of what they differ by from "
             "batch to batch (of %" PRId64 "), of the layer or of the whole model, whichever is "
             "more. Up to %.3g %% may go low. On %s, %d thread%s.",
             scan->batches, 100 * scan->tolerance, page->device, page->threads,
             page->threads == 1 ? "" : "s");
    cli_print_wrapped(text, 0);
    text_load(text, page->others);
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
        snprintf(text, sizeof text, "The first policy did not hold; %d layer%s had to go higher.",
                 scan->rounds, scan->rounds == 1 ? "" : "s");
        cli_print_wrapped(text, 0);
    }
    scan_verdict(page, text, sizeof text);
    fputs(terminal_style(&terminal, STYLE_STRONG), stdout);
    cli_print_wrapped(text, 0);
    fputs(terminal_style(&terminal, STYLE_NONE), stdout);
    if (units_in_fp32(scan) == scan->unit_count)
        cli_print_wrapped(
            "Nothing here gains from these formats, or nothing bears them: train in fp32.", 0);
    if (page->policy_file) {
        snprintf(text, sizeof text, "mpbench run .. --layers %.300s trains so.", page->policy_file);
        cli_print_wrapped(text, 0);
    }
    return true;
}

// ---- JSON ---------------------------------------------------------------------------------------

static void write_cell(JsonWriter *json, const Scan *scan, int unit, int format) {
    const ScanCell *cell = &scan->cells[unit][format];
    const struct {
        const char *key;
        double value;
    } readings[] = {{"damage", cell->damage},
                    {"own_error", cell->own_error},
                    {"own_noise", cell->own_noise},
                    {"own_degrees", cell->own_degrees},
                    {"all_error", cell->all_error},
                    {"all_noise", cell->all_noise},
                    {"all_degrees", cell->all_degrees},
                    {"loss_change", cell->loss_change},
                    {"flushed", cell->flushed},
                    {"overflowed", cell->overflowed},
                    {"subnormal", cell->subnormal},
                    {"least_scale", cell->least_scale},
                    {"middle_scale", cell->middle_scale},
                    {"most_scale", cell->most_scale},
                    {"scale", cell->scale}};
    json_key(json, scan->formats[format]);
    json_begin_object(json);
    json_put_boolean(json, "breaks", cell->is_broken);
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++)
        json_put_reading(json, readings[i].key,
                         cell->is_known && !cell->is_broken ? readings[i].value : (double)NAN);
    json_end_object(json);
}

void scan_write_json(const ScanPage *page) {
    const Scan *scan = page->scan;
    JsonWriter json = {.stream = stdout};
    char verdict[512];
    json_begin_object(&json);
    json_put_text(&json, "subject", page->subject);
    json_put_text(&json, "device", page->device);
    json_put_integer(&json, "threads", page->threads);
    json_put_reading(&json, "others_busy", page->others);
    json_put_number(&json, "tolerance", scan->tolerance);
    json_put_number(&json, "within", scan->within);
    json_key(&json, "layers");
    json_begin_array(&json);
    for (int i = 0; i < scan->unit_count; i++) {
        json_begin_object(&json);
        json_put_text(&json, "name", scan->units[i]);
        json_put_integer(&json, "parameters", scan->parameters[i]);
        json_put_text(&json, "policy", scan_format_of(scan, i));
        json_key(&json, "formats");
        json_begin_object(&json);
        for (int f = 0; f < scan->format_count; f++)
            write_cell(&json, scan, i, f);
        json_end_object(&json);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_key(&json, "costs");
    json_begin_object(&json);
    for (int f = 0; f <= scan->format_count; f++) {
        json_key(&json, f < scan->format_count ? scan->formats[f] : "fp32");
        json_begin_object(&json);
        json_put_number(&json, "seconds", scan->seconds[f]);
        json_put_integer(&json, "activations", scan->activations[f]);
        json_end_object(&json);
    }
    json_end_object(&json);
    json_key(&json, "trainings");
    json_begin_array(&json);
    for (int i = 0; i < scan->training_count; i++) {
        const ScanTraining *training = &scan->trainings[i];
        json_begin_object(&json);
        json_put_text(&json, "label", training->label);
        json_put_number(&json, "loss", training->loss);
        json_put_number(&json, "above", training->above);
        json_put_reading(&json, "interval_95", training->interval);
        json_put_number(&json, "step_seconds", training->seconds);
        json_put_integer(&json, "diverged", training->broken);
        json_put_boolean(&json, "within", training->is_within);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_put_integer(&json, "rounds", scan->rounds);
    json_put_boolean(&json, "verified", scan->is_final);
    json_put_text(&json, "policy_file", page->policy_file);
    scan_verdict(page, verdict, sizeof verdict);
    json_put_text(&json, "verdict", verdict);
    json_end_object(&json);
    putchar('\n');
}
