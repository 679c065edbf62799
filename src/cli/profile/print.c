// A profile for people, as a table with sentences below it, and for programs as JSON.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/phrase.h"
#include "cli/print/table.h"
#include "cli/print/terminal.h"
#include "cli/print/text.h"
#include "cli/profile/profile.h"

static const TableColumn columns[] = {
    {"layer", false, 0, 40}, {"operation", false, 1, 28}, {"way", false, 4, 0},
    {"in", false, 3, 0},     {"calls", true, 5, 0},       {"ms a step", true, 0, 0},
    {"share", true, 0, 0},   {"of limit", true, 2, 0},
};

// ---- for people ---------------------------------------------------------------------------------

static void put_number(Table *table, double value, int digits) {
    char text[TEXT_SIZE];
    table_put(table, isnan(value) ? NULL : text_number(text, value, digits), "");
}

static void put_share(Table *table, double share) {
    char text[TEXT_SIZE];
    snprintf(text, sizeof text, "%.1f %%", 100 * share);
    table_put(table, isnan(share) ? NULL : text, "");
}

static double reach_of(const ProfileRow *row) {
    return row->limited > 0 ? row->at_limit / row->limited : (double)NAN;
}

static void put_formats(Table *table, const Terminal *terminal, const ProfileRow *row) {
    char text[TEXT_SIZE];
    const bool is_known = row->from < FORMAT_COUNT;
    if (is_known && profile_is_cast(row) && row->to < FORMAT_COUNT)
        snprintf(text, sizeof text, "%s > %s", format_name(row->from), format_name(row->to));
    else if (is_known)
        snprintf(text, sizeof text, "%s", format_name(row->from));
    table_put(table, is_known ? text : NULL,
              is_known ? terminal_format_color(terminal, row->from) : "");
}

static void put_row(Table *table, const Terminal *terminal, const ProfileReport *report,
                    const ProfileRow *row) {
    table_put(table, row->layer[0] ? row->layer : NULL, "");
    table_put(table, row->operation, "");
    table_put(table, row->way, "");
    put_formats(table, terminal, row);
    put_number(table, row->calls > 0 ? row->calls : (double)NAN, 3);
    put_number(table, 1e3 * row->seconds, 3);
    put_share(table, profile_share(report, row->seconds));
    put_share(table, reach_of(row));
}

// A row that is a name and a time: of what is not told apart, and of all.
static void put_sum(Table *table, const ProfileReport *report, const char *name, double seconds,
                    const char *style) {
    table_put(table, name, style);
    for (int i = 1; i < 5; i++)
        table_put(table, "", "");
    put_number(table, 1e3 * seconds, 3);
    put_share(table, profile_share(report, seconds));
    table_put(table, "", "");
}

static bool print_table(const Cli *cli, const Terminal *terminal, const ProfileReport *report,
                        const ProfileRow *rows, int count, Error *error) {
    Table *table = table_new(columns, sizeof columns / sizeof *columns);
    if (!table)
        return error_fail(error, ERROR_MEMORY, "no memory for the table");
    const int shown = cli->top > 0 && cli->top < count ? (int)cli->top : count;
    double rest = 0;
    for (int i = 0; i < count; i++)
        if (i < shown)
            put_row(table, terminal, report, &rows[i]);
        else
            rest += rows[i].seconds;
    char name[48];
    const char *dim = terminal_style(terminal, STYLE_DIM);
    snprintf(name, sizeof name, "%d other%s", count - shown, count - shown == 1 ? "" : "s");
    if (count > shown)
        put_sum(table, report, name, rest, dim);
    put_sum(table, report,
            !isnan(report->all_seconds) ? "outside of all layers" : "between operations / Lua",
            report->between, dim);
    put_sum(table, report, "a step", report->step_seconds, terminal_style(terminal, STYLE_STRONG));
    const bool done = table_print(table, stdout, terminal_width(terminal), dim,
                                  terminal_style(terminal, STYLE_NONE), error);
    table_free(table);
    return done;
}

static void print_head(const ProfileReport *report) {
    char steps[TEXT_SIZE];
    if (report->run)
        printf("%lld ", (long long)report->run);
    cli_print_outside(stdout, report->name);
    fputs(" in ", stdout);
    cli_print_outside(stdout, report->precision);
    fputs(" on ", stdout);
    cli_print_outside(stdout, report->device);
    // What a run kept is of some of them.
    printf(", %d thread%s: the time of %s%s step%s\n\n", report->threads,
           report->threads == 1 ? "" : "s", isnan(report->all_seconds) ? "" : "some of ",
           text_count(steps, report->steps), report->steps == 1 ? "" : "s");
}

static void print_casts(const ProfileReport *report) {
    char bytes[TEXT_SIZE], words[160];
    if (isnan(report->cast_seconds))
        return;
    if (isnan(report->casts))
        snprintf(words, sizeof words, "Casts between formats: %.1f %% of the time.",
                 100 * profile_share(report, report->cast_seconds));
    else if (report->casts > 0)
        snprintf(words, sizeof words,
                 "Casts: %.3g a step, which read and write %s in %.3g ms, %.1f %% of the time.",
                 report->casts, text_bytes(bytes, report->cast_bytes), 1e3 * report->cast_seconds,
                 100 * profile_share(report, report->cast_seconds));
    else
        snprintf(words, sizeof words, "Casts: none.");
    cli_print_wrapped(words, 0);
}

// What a share of the limit is a share of.
static void print_limits(const ProfileReport *report) {
    char words[320 + 64 * FORMAT_COUNT];
    Phrase phrase = phrase_begin(words, sizeof words);
    if (isnan(report->memory_limit))
        return;
    phrase_add(&phrase,
               "The limit, measured %s on this device: ", report->run ? "then" : "just now");
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (!isnan(report->product_limit[i]))
            phrase_add(&phrase, "large products in %s, %.4g GFLOP/s; ", format_name((Format)i),
                       2e-9 * report->product_limit[i]);
    phrase_add(&phrase,
               "for all else memory, by sums of large tensors, %.3g GB/s. Over 100 %%: what lies "
               "in caches, and convolutions that multiply less than they have taps. A dash: "
               "nobody counts what it does.",
               1e-9 * report->memory_limit);
    cli_print_wrapped(words, 0);
}

// What the means are of.
static void print_steps(const ProfileReport *report) {
    char words[320], late[TEXT_SIZE], busy[TEXT_LOAD_SIZE];
    Phrase phrase = phrase_begin(words, sizeof words);
    if (report->late > 0)
        phrase_add(&phrase,
                   "Means of steps but for %s that took over 3 times the median, %.3g ms in the "
                   "mean: something else had the processor, or the script did more. ",
                   text_count(late, report->late),
                   1e3 * report->late_seconds / (double)report->late);
    text_load(busy, report->others);
    if (busy[0])
        phrase_add(&phrase, "O%s: times tell of them, too.", busy + 1);
    if (words[0])
        cli_print_wrapped(words, 0);
}

static void print_words(const ProfileReport *report) {
    putchar('\n');
    print_steps(report);
    print_casts(report);
    print_limits(report);
    if (!isnan(report->all_seconds)) {
        char words[480];
        snprintf(
            words, sizeof words,
            "From what the run kept: the time of its layers, on a few steps a second, which "
            "that makes longer: shares are of those, %.3g ms in the mean, where all steps took "
            "%.3g; on a card in steps that are not captured. `mpbench profile EXPERIMENT`, "
            "with the run's options, trains for some seconds and tells operations apart.",
            1e3 * report->step_seconds, 1e3 * report->all_seconds);
        cli_print_wrapped(words, 0);
    }
    putchar('\n');
    for (int i = 0; i < report->word_count; i++) {
        char line[PROFILE_WORDS_SIZE + 4];
        snprintf(line, sizeof line, "- %s.", report->words[i]);
        cli_print_wrapped(line, 2);
    }
}

bool profile_print(const Cli *cli, const ProfileReport *report, Error *error) {
    Terminal terminal = terminal_of(stdout, cli->color);
    ProfileRow *rows = calloc((size_t)(report->row_count ? report->row_count : 1), sizeof *rows);
    if (!rows)
        return error_fail(error, ERROR_MEMORY, "no memory for the profile");
    int count;
    bool done = profile_group(report, cli->by, rows, &count, error);
    if (done) {
        print_head(report);
        done = print_table(cli, &terminal, report, rows, count, error);
    }
    if (done)
        print_words(report);
    free(rows);
    return done;
}

// ---- for programs -------------------------------------------------------------------------------

static void put_format(JsonWriter *json, const char *key, Format format) {
    json_put_text(json, key, format < FORMAT_COUNT ? format_name(format) : NULL);
}

static void write_row(JsonWriter *json, const ProfileReport *report, const ProfileRow *row) {
    json_begin_object(json);
    json_put_text(json, "layer", row->layer[0] ? row->layer : NULL);
    json_put_text(json, "operation", row->operation);
    json_put_text(json, "direction", row->way);
    put_format(json, "format", row->from);
    put_format(json, "gives", row->to);
    json_put_known(json, "calls", row->calls, row->calls > 0);
    json_put_number(json, "seconds", row->seconds);
    json_put_number(json, "share", profile_share(report, row->seconds));
    json_put_known(json, "flops", 2 * row->multiplications, row->multiplications > 0);
    json_put_known(json, "bytes", row->bytes, row->bytes > 0);
    json_put_reading(json, "of_limit", reach_of(row));
    json_end_object(json);
}

static void write_limits(JsonWriter *json, const ProfileReport *report) {
    json_key(json, "limits");
    json_begin_object(json);
    json_put_reading(json, "memory_bytes_per_s", report->memory_limit);
    json_key(json, "product_flops_per_s");
    json_begin_object(json);
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (!isnan(report->product_limit[i]))
            json_put_number(json, format_name((Format)i), 2 * report->product_limit[i]);
    json_end_object(json);
    json_end_object(json);
}

static void write_casts(JsonWriter *json, const ProfileReport *report) {
    json_key(json, "casts");
    json_begin_object(json);
    json_put_reading(json, "count", report->casts);
    json_put_reading(json, "bytes", report->cast_bytes);
    json_put_reading(json, "seconds", report->cast_seconds);
    json_put_reading(json, "share",
                     isnan(report->cast_seconds) ? (double)NAN
                                                 : profile_share(report, report->cast_seconds));
    json_end_object(json);
}

bool profile_write_json(const Cli *cli, const ProfileReport *report, Error *error) {
    JsonWriter json = {.stream = stdout};
    ProfileRow *rows = calloc((size_t)(report->row_count ? report->row_count : 1), sizeof *rows);
    if (!rows)
        return error_fail(error, ERROR_MEMORY, "no memory for the profile");
    int count;
    if (!profile_group(report, cli->by, rows, &count, error)) {
        free(rows);
        return false;
    }
    json_begin_object(&json);
    json_put_text(&json, report->run ? "run" : "experiment", report->name);
    const int64_t id = report->run ? report->run : report->kept_as;
    json_put_known(&json, "id", (double)id, id != 0);
    json_put_text(&json, "precision", report->precision);
    json_put_text(&json, "device", report->device);
    json_put_text(&json, "device_name", report->device_name);
    json_put_integer(&json, "threads", report->threads);
    json_put_integer(&json, "steps", report->steps);
    json_put_integer(&json, "steps_left_out", report->late);
    json_put_reading(&json, "others_busy", report->others);
    json_put_reading(&json, "step_seconds", report->step_seconds);
    json_put_reading(&json, "all_steps_seconds", report->all_seconds);
    json_put_reading(&json, "between_seconds", report->between);
    json_key(&json, "parts");
    json_begin_array(&json);
    for (int i = 0; i < count && (cli->top == 0 || i < cli->top); i++)
        write_row(&json, report, &rows[i]);
    json_end_array(&json);
    write_casts(&json, report);
    write_limits(&json, report);
    json_key(&json, "says");
    json_begin_array(&json);
    for (int i = 0; i < report->word_count; i++)
        json_text(&json, report->words[i]);
    json_end_array(&json);
    json_end_object(&json);
    putchar('\n');
    free(rows);
    return true;
}
