// `mpbench compare`: runs side by side, the first of them the baseline.
#include "cli/history/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/phrase.h"
#include "base/sanitize.h"
#include "cli/history/history.h"
#include "cli/print/curve.h"
#include "cli/print/table.h"
#include "cli/print/wrap.h"

enum { CURVE_COLUMNS = 64, CURVE_ROWS = 4, MOST_CURVES = 8, GROUPS_A_TABLE = 5 };

typedef struct Page {
    const Comparison *comparison;
    Terminal terminal;
    int width;
    bool has_utf8;
    bool has_batches; // steps are of different numbers of samples
    const char *strong, *dim, *plain;
} Page;

static void print_wrapped(const Page *page, const char *text) {
    enum { READABLE = 100 };
    char clean[4 * COMPARE_TEXT_SIZE];
    sanitize_line(clean, sizeof clean, text, strlen(text));
    for (char *sign = clean; !page->has_utf8 && (sign = strstr(sign, "±"));)
        memcpy(sign, "+-", 2); // two bytes of UTF-8
    wrap_print(stdout, clean, page->width > 0 && page->width < READABLE ? page->width : READABLE, 0,
               0);
    putchar('\n');
}

// ---- the table ----------------------------------------------------------------------------------

enum { MOST_METRICS = 16 }; // in columns

// Of the results those that no column of a table has.
typedef struct LeftOut {
    const char *names[COMPARE_MOST_METRICS];
    int count;
} LeftOut;

static void put_statistic(Table *table, const Page *page, const Statistic *value) {
    char text[STATISTIC_TEXT_SIZE];
    bool is_known = value->count + value->not_finite > 0;
    table_put(table, is_known ? statistic_text(text, value, !page->has_utf8) : NULL, "");
}

static void put_ratio(Table *table, double ratio) {
    char text[TEXT_SIZE];
    snprintf(text, sizeof text, ratio > 0 && ratio < 0.095 ? "%.2gx" : "%.2fx", ratio);
    table_put(table, isnan(ratio) ? NULL : text, "");
}

static void put_side(Table *table, const Page *page, const CompareSide *side,
                     const char *const *metrics, int metric_count) {
    const RunRecord *run = &page->comparison->runs[side->members[0]];
    const Statistic unknown = {.count = 0};
    char text[COMPARE_LABEL_SIZE], number[TEXT_SIZE];
    table_put(table, side->label, history_precision_style(&page->terminal, run->precision));
    if (side->member_count > 1)
        snprintf(text, sizeof text, "%d seeds", side->member_count);
    else
        snprintf(text, sizeof text, "run %" PRId64, run->id);
    table_put(table, text, "");
    put_statistic(table, page, &side->loss);
    for (int m = 0; m < metric_count; m++) {
        const CompareMetric *found = compare_metric(side, metrics[m]);
        put_statistic(table, page, found ? &found->value : &unknown);
    }
    put_statistic(table, page, &side->steps_per_s);
    put_statistic(table, page, page->has_batches ? &side->samples_per_s : &unknown);
    put_ratio(table, compare_told_speedup(page->comparison, side));
    table_put(table, isnan(side->memory.mean) ? NULL : text_bytes(number, side->memory.mean), "");
    put_ratio(table, side->memory_ratio);
    put_statistic(table, page, &side->wall_s);
    put_statistic(table, page, &side->energy_j);
    put_ratio(table, side->energy_ratio);
    put_statistic(table, page, &side->co2_g);
    table_put(table, side->skipped > 0 ? text_count(number, side->skipped) : NULL, "");
}

static bool print_sides(const Page *page, const CompareSide *sides, int count, LeftOut *left,
                        Error *error) {
    const TableColumn before[] = {
        {"", false, 0, 40}, {"of", false, 9, 0}, {page->comparison->series, true, 1, 0}};
    static const TableColumn after[] = {{"steps/s", true, 6, 0}, {"samples/s", true, 4, 0},
                                        {"speed", true, 2, 0},   {"memory", true, 7, 0},
                                        {"of it", true, 3, 0},   {"seconds", true, 8, 0},
                                        {"joules", true, 10, 0}, {"of them", true, 5, 0},
                                        {"g CO2", true, 11, 0},  {"skipped", true, 12, 0}};
    enum { BEFORE = sizeof before / sizeof *before, AFTER = sizeof after / sizeof *after };
    TableColumn columns[BEFORE + MOST_METRICS + AFTER];
    const char *metrics[COMPARE_MOST_METRICS];
    const int known = compare_metric_names(page->comparison, metrics, COMPARE_MOST_METRICS);
    const int metric_count = known < MOST_METRICS ? known : MOST_METRICS;
    memcpy(columns, before, sizeof before);
    for (int m = 0; m < metric_count; m++) // the first stays longest
        columns[BEFORE + m] = (TableColumn){metrics[m], true, m == 0 ? 1 : 20 + m, 0};
    memcpy(columns + BEFORE + metric_count, after, sizeof after);
    Table *table = table_new(columns, BEFORE + metric_count + AFTER);
    if (!table)
        return error_fail(error, ERROR_MEMORY, "no memory for the comparison");
    for (int i = 0; i < count; i++)
        put_side(table, page, &sides[i], metrics, metric_count);
    left->count = 0;
    for (int m = 0; m < known; m++)
        if (m >= metric_count || !table_shows(table, page->width, BEFORE + m))
            left->names[left->count++] = metrics[m];
    bool done = table_print(table, stdout, page->width, page->dim, page->plain, error);
    table_free(table);
    return done;
}

// Which results gave way to a narrow terminal, or are more than a table has.
static void print_left_out(const Page *page, const LeftOut *left) {
    enum { MOST_NAMED = 6 };
    char text[COMPARE_TEXT_SIZE];
    if (left->count == 0)
        return;
    Phrase phrase = phrase_begin(text, sizeof text);
    phrase_add(&phrase, "%d more result%s that %s no room here, in --json: ", left->count,
               left->count == 1 ? "" : "s", left->count == 1 ? "has" : "have");
    for (int i = 0; i < left->count && i < MOST_NAMED; i++)
        phrase_add(&phrase, "%s%.60s", i > 0 ? ", " : "", left->names[i]);
    phrase_add(&phrase, "%s", left->count > MOST_NAMED ? ", .." : "");
    fputs(page->dim, stdout);
    print_wrapped(page, text);
    fputs(page->plain, stdout);
}

// Where the last value alone is told, it is another figure of the same name.
static void print_series_meaning(const Page *page, const CompareSide *sides, int count) {
    bool is_known = false;
    for (int i = 0; i < count; i++)
        is_known |= sides[i].loss.count > 0;
    if (!is_known)
        return;
    char text[COMPARE_TEXT_SIZE];
    snprintf(
        text, sizeof text,
        "%.60s: the mean of the last tenth of what all did; run, ls and show tell the last one",
        page->comparison->series);
    fputs(page->dim, stdout);
    print_wrapped(page, text);
    fputs(page->plain, stdout);
}

// ---- to a target --------------------------------------------------------------------------------

static bool print_reach(const Page *page, Error *error) {
    const Comparison *comparison = page->comparison;
    char title[COMPARE_LABEL_SIZE], value[TEXT_SIZE];
    if (!comparison->options.target)
        return true;
    snprintf(title, sizeof title, "to %.60s %s %s", comparison->options.target,
             compare_target_falls(comparison) ? "<=" : ">=",
             text_number(value, comparison->options.target_value, 4));
    const TableColumn columns[] = {{title, false, 0, 40},
                                   {"reached by", false, 1, 0},
                                   {"steps", true, 0, 0},
                                   {"seconds", true, 0, 0},
                                   {"of them", true, 2, 0}};
    Table *table = table_new(columns, sizeof columns / sizeof *columns);
    if (!table)
        return error_fail(error, ERROR_MEMORY, "no memory for the comparison");
    for (int g = 0; g < comparison->group_count; g++) {
        const CompareSide *side = &comparison->groups[g];
        char text[64];
        snprintf(text, sizeof text, "%d of %d", side->target_steps.count, side->member_count);
        table_put(table, side->label, "");
        table_put(table, text, "");
        put_statistic(table, page, &side->target_steps);
        put_statistic(table, page, &side->target_seconds);
        put_ratio(table, side->target_ratio);
    }
    putchar('\n');
    bool done = table_print(table, stdout, page->width, page->dim, page->plain, error);
    table_free(table);
    return done;
}

// ---- what differs -------------------------------------------------------------------------------

// The groups from..to-1; many groups are told in several tables.
static bool print_differences_of(const Page *page, int from, int to, Error *error) {
    const Comparison *comparison = page->comparison;
    TableColumn columns[1 + GROUPS_A_TABLE] = {{"differs", false, 0, 40}};
    for (int g = from; g < to; g++)
        columns[1 + g - from] = (TableColumn){comparison->groups[g].label, false, 0, 40};
    Table *table = table_new(columns, 1 + to - from);
    if (!table)
        return error_fail(error, ERROR_MEMORY, "no memory for the comparison");
    for (int i = 0; i < comparison->difference_count; i++) {
        const CompareDifference *difference = &comparison->differences[i];
        table_put(table, difference->name, "");
        for (int g = from; g < to; g++)
            table_put(table, difference->values[g][0] ? difference->values[g] : NULL, "");
    }
    putchar('\n');
    bool done = table_print(table, stdout, page->width, page->dim, page->plain, error);
    table_free(table);
    return done;
}

static bool print_differences(const Page *page, Error *error) {
    int groups = page->comparison->group_count;
    for (int from = 0; from < groups && page->comparison->difference_count > 0;
         from += GROUPS_A_TABLE) {
        int to = from + GROUPS_A_TABLE < groups ? from + GROUPS_A_TABLE : groups;
        if (!print_differences_of(page, from, to, error))
            return false;
    }
    return true;
}

static void print_divergence(const Page *page, const CompareSide *side) {
    const CompareDivergence *divergence = &side->divergence;
    const RunRecord *base = &page->comparison->runs[0];
    const RunRecord *run = &page->comparison->runs[side->partner];
    if (!divergence->is_known)
        return;
    char text[COMPARE_TEXT_SIZE], step[TEXT_SIZE], parted[TEXT_SIZE];
    Phrase phrase = phrase_begin(text, sizeof text);
    phrase_add(&phrase, "%s and %s: ", base->name, run->name);
    if (divergence->different < 0)
        phrase_add(&phrase, "the same %s to the bit, wherever both were kept.",
                   page->comparison->series);
    else
        phrase_add(&phrase, "other bits from step %s on%s", text_count(step, divergence->different),
                   divergence->different_width > 1 ? " or soon after" : "");
    if (divergence->parted >= 0)
        phrase_add(&phrase, ", and beyond the noise of the %s from step %s%s.",
                   page->comparison->series, text_count(parted, divergence->parted),
                   divergence->is_parted_at_end ? " to the end" : " for a while");
    else if (divergence->different >= 0)
        phrase_add(&phrase, ", and never beyond the noise of the %s.", page->comparison->series);
    print_wrapped(page, text);
}

// ---- curves -------------------------------------------------------------------------------------

// The mean over the members of a group, where all of them have a value.
static void mean_of_group(const double *values, int cells, const CompareSide *group, double *row) {
    for (int c = 0; c < cells; c++) {
        double sum = 0;
        for (int i = 0; i < group->member_count; i++)
            sum += values[(size_t)group->members[i] * (size_t)cells + (size_t)c];
        row[c] = sum / group->member_count;
    }
}

static bool print_curves(const Page *page, Error *error) {
    const Comparison *comparison = page->comparison;
    int room = page->width > 0 ? page->width - CURVE_LABEL_COLUMNS - 2 : CURVE_COLUMNS;
    CurveFrame frame = {.columns = room < CURVE_COLUMNS ? room : CURVE_COLUMNS,
                        .rows = CURVE_ROWS,
                        .has_braille = page->has_utf8,
                        .plain = page->plain,
                        .indent = ""};
    if (frame.columns < 8)
        return true;
    int cells = curve_cells(&frame), groups = comparison->group_count;
    double *values = calloc((size_t)comparison->run_count * (size_t)cells, sizeof *values);
    double *rows = calloc((size_t)groups * (size_t)cells, sizeof *rows), last;
    bool done = values && rows;
    if (!done)
        error_fail(error, ERROR_MEMORY, "no memory for the curves");
    if (done) {
        compare_align(comparison, cells, values, &last);
        for (int g = 0; g < groups; g++) {
            double *row = rows + (size_t)g * (size_t)cells;
            mean_of_group(values, cells, &comparison->groups[g], row);
            curve_bridge(row, cells);
        }
    }
    CurveAxis axis = {0, 1, false};
    if (done)
        axis = curve_axis(rows, groups * cells);
    for (int g = 0; done && last > 0 && g < groups && g < MOST_CURVES; g++) {
        const CompareSide *group = &comparison->groups[g];
        frame.style =
            history_precision_style(&page->terminal, comparison->runs[group->members[0]].precision);
        char title[COMPARE_LABEL_SIZE + RECORD_NAME_SIZE + 32];
        snprintf(title, sizeof title, "%s of %s%s", comparison->series, group->label,
                 axis.is_log ? ", logarithmic" : "");
        putchar('\n');
        print_wrapped(page, title);
        curve_print(stdout, &frame, &axis, rows + (size_t)g * (size_t)cells);
    }
    if (done && last > 0) {
        char text[TEXT_SIZE + 16], number[TEXT_SIZE];
        snprintf(text, sizeof text, "%s %s", compare_axis_name(comparison->options.axis),
                 text_number(number, last, 6));
        printf("%*s0%*s\n", CURVE_LABEL_COLUMNS, "", frame.columns - 1, text);
    }
    if (done && last > 0 && groups > MOST_CURVES)
        printf("(the curves of %d more are left out)\n", groups - MOST_CURVES);
    free(values);
    free(rows);
    return done;
}

// ---- the page -----------------------------------------------------------------------------------

// Whether a step is not of as many samples in all runs.
static bool batches_differ(const Comparison *comparison) {
    const double notable = 0.01;
    const RunRecord *first = &comparison->runs[0];
    for (int i = 1; i < comparison->run_count; i++) {
        const RunRecord *run = &comparison->runs[i];
        double ours = (double)first->samples * (double)run->step;
        double theirs = (double)run->samples * (double)first->step;
        if (fabs(ours - theirs) > notable * fmax(ours, theirs))
            return true;
    }
    return false;
}

static bool print_page(const Cli *cli, const Comparison *comparison, Error *error) {
    Page page = {.comparison = comparison,
                 .terminal = terminal_of(stdout, cli->color),
                 .has_utf8 = curve_locale_is_utf8(),
                 .has_batches = batches_differ(comparison)};
    page.width = terminal_width(&page.terminal);
    page.strong = terminal_style(&page.terminal, STYLE_STRONG);
    page.dim = terminal_style(&page.terminal, STYLE_DIM);
    page.plain = terminal_style(&page.terminal, STYLE_NONE);
    bool has_seeds = comparison->group_count < comparison->run_count;
    LeftOut left;
    if (!print_sides(&page, comparison->groups, comparison->group_count, &left, error))
        return false;
    if (has_seeds) { // each table has its own room
        print_left_out(&page, &left);
        printf("\n%severy run%s\n", page.dim, page.plain);
        if (!print_sides(&page, comparison->sides, comparison->run_count, &left, error))
            return false;
    }
    print_left_out(&page, &left);
    print_series_meaning(&page, comparison->groups, comparison->group_count);
    if (!print_reach(&page, error) || !print_differences(&page, error) ||
        !print_curves(&page, error))
        return false;
    putchar('\n');
    for (int g = 1; g < comparison->group_count; g++)
        print_divergence(&page, &comparison->groups[g]);
    for (int i = 0; i < comparison->energy_count; i++)
        print_wrapped(&page, comparison->energies[i]);
    for (int i = 0; i < comparison->caveat_count; i++)
        print_wrapped(&page, comparison->caveats[i]);
    for (int i = 0; i < comparison->verdict_count; i++) {
        fputs(page.strong, stdout);
        print_wrapped(&page, comparison->verdicts[i]);
        fputs(page.plain, stdout);
    }
    return true;
}

bool cli_compare_runs(const Cli *cli, Store *store, const int64_t *runs, int count, Error *error) {
    CompareOptions options = {.axis = COMPARE_BY_STEP,
                              .grams_per_kwh = history_grams_per_kwh(cli),
                              .series = cli->series,
                              .watts = cli->watts,
                              .target = cli->target,
                              .target_value = cli->target_value,
                              .toward = cli->target_toward};
    if (cli->axis && !compare_axis_parse(cli->axis, &options.axis))
        return error_fail(error, ERROR_USAGE, "--by %.60s: not known", cli->axis);
    Comparison *comparison = compare_new(store, runs, count, &options, error);
    if (!comparison)
        return false;
    bool done = true;
    if (cli->json) {
        JsonWriter json = {.stream = stdout};
        comparison_write_json(comparison, &json);
        putchar('\n');
    } else if (cli->markdown) {
        comparison_print_markdown(comparison);
    } else {
        done = print_page(cli, comparison, error);
    }
    compare_free(comparison);
    return done;
}

bool command_compare(Cli *cli, Error *error) {
    int64_t runs[CLI_MAX_OPERANDS];
    Store *store = history_open(cli, STORE_RESCUE, error);
    bool done = store != NULL;
    for (int i = 0; i < cli->operand_count && done; i++)
        done = store_find_run(store, cli->operands[i], &runs[i], error);
    done = done && cli_compare_runs(cli, store, runs, cli->operand_count, error);
    done = history_tell_losses(store, done, error);
    store_close(store);
    return done;
}
