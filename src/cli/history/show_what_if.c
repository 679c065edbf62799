// `mpbench show RUN --what-if[=LAYER]`: what every format would do to the gradients of layers, as
// they were at the end: of one layer in full, of all what would be lost.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/history/history.h"
#include "cli/history/show.h"
#include "cli/print/table.h"
#include "compare/factor_shares.h"
#include "compare/what_if.h"

typedef struct Asked { // what is shown
    const RunRecord *run;
    LayerSample *samples;  // [run->layer_count]
    int layer;             // -1: all
    double scale;          // the loss scale at the end
    LayerFactors *factors; // that layers in scaled formats multiplied, counted last
    int factor_count;
} Asked;

static bool is_counted(const LayerSample *sample) {
    return sample->width > 0 && sample->count > 0;
}

// ---- for people ---------------------------------------------------------------------------------

static const char *share_text(char text[TEXT_SIZE], double share) {
    const double percent = 100 * share;
    if (percent > 0 && percent < 0.01)
        snprintf(text, TEXT_SIZE, "<0.01 %%");
    else
        snprintf(text, TEXT_SIZE, percent == 0 ? "0" : "%.2f %%", percent);
    return text;
}

static void put_share(Table *table, double share) {
    char text[TEXT_SIZE];
    table_put(table, isnan(share) ? NULL : share_text(text, share), "");
}

static void put_scale(Table *table, const WhatIfRow *row, bool is_told) {
    char text[48];
    if (row->scaled == SCALED_NONE)
        snprintf(text, sizeof text, "2^%.4g", log2(row->scale));
    else
        snprintf(text, sizeof text, "%s2^%.1f", row->scaled == SCALED_BLOCK ? "from " : "own, ",
                 log2(row->scale));
    table_put(table, is_told && row->scale > 0 ? text : NULL, "");
}

static void put_bounds(Table *table, const WhatIfRow *row, bool is_told) {
    char text[2 * TEXT_SIZE + 8], least[TEXT_SIZE], most[TEXT_SIZE];
    snprintf(text, sizeof text, "%s to %s", share_text(least, row->least),
             share_text(most, row->most));
    table_put(table, is_told && row->scaled == SCALED_BLOCK ? text : NULL, "");
}

static void put_suited(Table *table, const WhatIfRow *row) {
    char text[48];
    if (row->suited.least > row->suited.most)
        snprintf(text, sizeof text, "none");
    else
        snprintf(text, sizeof text, "2^%d to 2^%d", row->suited.least, row->suited.most);
    table_put(table, row->suited.is_known ? text : NULL, "");
}

static bool finish(const ShowPage *page, Table *table, Error *error) {
    const bool done =
        table_print(table, stdout, terminal_width(&page->terminal), page->dim, page->plain, error);
    table_free(table);
    return done;
}

static void print_factors_head(const LayerFactors *factors) {
    printf("\nWhat it multiplied in step %" PRId64 ", counted at the scales of ", factors->step);
    cli_print_outside(stdout, factors->precision);
    fputs(":\n\n", stdout);
}

// What it multiplied, at the scales of the format that it was in.
static void print_factors(const Asked *asked) {
    bool has_any = false;
    for (int i = 0; i < asked->factor_count; i++) {
        const LayerFactors *factors = &asked->factors[i];
        char words[FACTOR_WORDS_SIZE];
        if (factors->layer != asked->layer)
            continue;
        if (!has_any)
            print_factors_head(factors);
        has_any = true;
        factor_words(factors, words);
        fputs("  ", stdout);
        cli_print_outside(stdout, words);
        putchar('\n');
    }
}

// Another step may have larger gradients, or smaller ones.
static void say_steps(const LayerSample *sample, char *text, size_t size) {
    const int64_t last = sample->step + sample->width - 1;
    if (sample->width == 1)
        snprintf(text, size, "step %" PRId64, last);
    else
        snprintf(text, size, "steps %" PRId64 " to %" PRId64, sample->step, last);
}

static bool print_layer(const ShowPage *page, const Asked *asked, Error *error) {
    const LayerSample *sample = &asked->samples[asked->layer];
    char steps[64], suited[96];
    say_steps(sample, steps, sizeof steps);
    snprintf(suited, sizeof suited, "loss scales for %s", steps);
    const TableColumn columns[] = {
        {"format", false, 0, 0},   {"scale", false, 4, 0},    {"flushed", true, 0, 0},
        {"by order", false, 1, 0}, {"subnormal", true, 3, 0}, {"overflowed", true, 2, 0},
        {suited, false, 1, 0},
    };
    const RecordLayer *layer = &asked->run->layers[asked->layer];
    const bool is_all_zero = sample->zeros == sample->count;
    WhatIfRow rows[FORMAT_COUNT];
    const int count = what_if_rows(sample, asked->scale, rows);
    Table *table = table_new(columns, sizeof columns / sizeof *columns);
    if (!table)
        return error_fail(error, ERROR_MEMORY, "no memory for the table");
    for (int i = 0; i < count; i++) {
        table_put(table, format_name(rows[i].format),
                  terminal_format_color(&page->terminal, rows[i].format));
        const double flushed = what_if_flushed(&rows[i], sample);
        const bool is_told = !isnan(flushed); // else nothing came that a format could lose
        put_scale(table, &rows[i], is_told);
        put_share(table, flushed);
        put_bounds(table, &rows[i], is_told);
        put_share(table, is_told ? rows[i].shares.subnormal : (double)NAN);
        put_share(table, what_if_overflowed(&rows[i], sample));
        put_suited(table, &rows[i]);
    }
    char largest[TEXT_SIZE], zero[TEXT_SIZE];
    cli_print_outside(stdout, layer->name);
    fputs(", computed in ", stdout);
    cli_print_outside(stdout, layer->precision);
    if (is_all_zero)
        fputs("; its true gradients were all zero when they came", stdout);
    else
        printf("; its true gradients: largest %s, %s zero",
               text_number(largest, sample->largest, 3),
               share_text(zero, (double)sample->zeros / (double)sample->count));
    if (what_if_broken_before(sample) > 0)
        printf(", %s not finite when they came", share_text(zero, what_if_broken_before(sample)));
    fputs("\n\n", stdout);
    if (is_all_zero)
        cli_print_wrapped("No format of gradients keeps or loses any of them. Where numbers "
                          "overflow or vanish in what the layer computes, fp32 of it mends that "
                          "(`--layer`); else they were lost further up, or the loss does not "
                          "depend on it.",
                          0);
    const bool done = is_all_zero || finish(page, table, error);
    if (is_all_zero)
        table_free(table);
    if (done)
        print_factors(asked);
    return done;
}

// What no format mends: what was not finite, or zero, before it was rounded.
static void put_came(Table *table, const LayerSample *sample) {
    char share[TEXT_SIZE], text[TEXT_SIZE + 16];
    const double broken = what_if_broken_before(sample);
    snprintf(text, sizeof text, "%s not finite", share_text(share, broken));
    table_put(table, sample->zeros == sample->count ? "all zero" : broken > 0 ? text : NULL, "");
}

static bool print_all(const ShowPage *page, const Asked *asked, Error *error) {
    TableColumn columns[FORMAT_COUNT + 2] = {{"layer", false, 0, 32}, {"came as", false, 1, 0}};
    WhatIfRow rows[FORMAT_COUNT];
    const int count = what_if_rows(&asked->samples[0], asked->scale, rows);
    for (int i = 0; i < count; i++)
        columns[i + 2] = (TableColumn){format_name(rows[i].format), true, 2 + i, 0};
    Table *table = table_new(columns, count + 2);
    if (!table)
        return error_fail(error, ERROR_MEMORY, "no memory for the table");
    for (int k = 0; k < asked->run->layer_count; k++) {
        if (!is_counted(&asked->samples[k]))
            continue;
        const LayerSample *sample = &asked->samples[k];
        table_put(table, asked->run->layers[k].name, "");
        put_came(table, sample);
        what_if_rows(sample, asked->scale, rows);
        for (int i = 0; i < count; i++)
            put_share(table,
                      what_if_flushed(&rows[i], sample) + what_if_overflowed(&rows[i], sample));
    }
    fputs("What would be lost of the true gradients: flushed to zero, or overflowed\n\n", stdout);
    return finish(page, table, error);
}

static void print_notes(const Asked *asked) {
    char words[1100], scale[TEXT_SIZE], steps[HISTORY_STEPS_SIZE];
    history_layer_steps(steps, asked->run, asked->samples);
    snprintf(
        words, sizeof words,
        "From the exponents that were counted %s. Formats without "
        "a scale of their own are at the loss scale %s; fp8, e4m3 and e5m2 at that which takes "
        "the largest number to theirs, as current scaling does. In formats of blocks it hangs "
        "on which numbers are neighbours, which no histogram knows: what is said holds for "
        "numbers mixed by chance%s. These are gradients of weights, which scaled formats "
        "round only as factors of products.",
        steps, text_number(scale, asked->scale, 6),
        asked->layer < 0
            ? "; `--what-if=LAYER` has the bounds, and loss scales that suit these gradients"
            : ", and \"by order\" are the bounds; no element saturates, as scales "
              "are large enough for the largest (scales=floor: some do). A loss scale "
              "that suits one step may be too large, or too small, for another");
    putchar('\n');
    cli_print_wrapped(words, 0);
}

// ---- for programs -------------------------------------------------------------------------------

static void write_row(JsonWriter *json, const WhatIfRow *row, const LayerSample *sample) {
    json_begin_object(json);
    json_put_text(json, "format", format_name(row->format));
    json_put_text(json, "element", format_name(row->element));
    json_put_reading(json, "scale", row->scale);
    const double share = what_if_flushed(row, sample);
    json_put_reading(json, "flushed", share);
    json_put_known(json, "flushed_least", row->least, !isnan(share));
    json_put_known(json, "flushed_most", row->most, !isnan(share));
    json_put_known(json, "subnormal", row->shares.subnormal, !isnan(share));
    json_put_reading(json, "overflowed", what_if_overflowed(row, sample));
    json_put_known(json, "least_loss_scale", ldexp(1, row->suited.least), row->suited.is_known);
    json_put_known(json, "most_loss_scale", ldexp(1, row->suited.most), row->suited.is_known);
    json_end_object(json);
}

static void write_factors(JsonWriter *json, const Asked *asked, int layer) {
    json_key(json, "factors");
    json_begin_array(json);
    for (int i = 0; i < asked->factor_count; i++) {
        const LayerFactors *factors = &asked->factors[i];
        const FactorShares shares = factor_shares(factors);
        if (factors->layer != layer)
            continue;
        json_begin_object(json);
        json_put_text(json, "role", factors->role);
        json_put_text(json, "precision", factors->precision);
        json_put_integer(json, "step", factors->step);
        json_put_integer(json, "count", factors->count);
        json_put_number(json, "flushed", shares.flushed);
        json_put_number(json, "subnormal", shares.subnormal);
        json_put_number(json, "saturated", shares.saturated);
        json_put_number(json, "not_finite", shares.broken);
        json_put_known(json, "least_scale", ldexp(1, factors->least), factors->has_scales);
        json_put_known(json, "middle_scale", ldexp(1, factors->middle), factors->has_scales);
        json_put_known(json, "most_scale", ldexp(1, factors->most), factors->has_scales);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_json(const Asked *asked) {
    JsonWriter json = {.stream = stdout};
    WhatIfRow rows[FORMAT_COUNT];
    json_begin_object(&json);
    json_put_integer(&json, "id", asked->run->id);
    json_put_text(&json, "name", asked->run->name);
    json_put_integer(&json, "step", asked->run->step);
    json_put_number(&json, "loss_scale", asked->scale);
    json_key(&json, "layers");
    json_begin_array(&json);
    for (int k = 0; k < asked->run->layer_count; k++) {
        if ((asked->layer >= 0 && k != asked->layer) || !is_counted(&asked->samples[k]))
            continue;
        const int count = what_if_rows(&asked->samples[k], asked->scale, rows);
        json_begin_object(&json);
        json_put_text(&json, "name", asked->run->layers[k].name);
        json_put_text(&json, "precision", asked->run->layers[k].precision);
        json_put_number(&json, "largest", asked->samples[k].largest);
        json_put_number(&json, "zero",
                        (double)asked->samples[k].zeros / (double)asked->samples[k].count);
        json_put_number(&json, "not_finite", what_if_broken_before(&asked->samples[k]));
        json_key(&json, "formats");
        json_begin_array(&json);
        for (int i = 0; i < count; i++)
            write_row(&json, &rows[i], &asked->samples[k]);
        json_end_array(&json);
        write_factors(&json, asked, k);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
    putchar('\n');
}

// ---- which --------------------------------------------------------------------------------------

static bool find_layer(const Cli *cli, Asked *asked, Error *error) {
    Nearest nearest;
    nearest_begin(&nearest, cli->layer);
    for (int i = 0; i < asked->run->layer_count; i++) {
        nearest_offer(&nearest, asked->run->layers[i].name);
        if (strcmp(asked->run->layers[i].name, cli->layer) == 0)
            asked->layer = i;
    }
    if (asked->layer < 0 && nearest.best)
        return error_fail(error, ERROR_USAGE,
                          "--what-if=%.60s: %s has no such layer; did you mean %s?", cli->layer,
                          asked->run->name, nearest.best);
    if (asked->layer < 0)
        return error_fail(error, ERROR_USAGE,
                          "--what-if=%.60s: %s has no such layer; `mpbench show` lists them",
                          cli->layer, asked->run->name);
    return is_counted(&asked->samples[asked->layer]) ||
           error_fail(error, ERROR_FAILED,
                      "--what-if=%.60s: no gradients of it were counted at the end: it has no "
                      "weights, or none that were trained",
                      cli->layer);
}

static bool has_any(const Asked *asked) {
    for (int i = 0; i < asked->run->layer_count; i++)
        if (is_counted(&asked->samples[i]))
            return true;
    return false;
}

bool show_what_if(const Cli *cli, const ShowPage *page, Store *store, const RunRecord *run,
                  Error *error) {
    Asked asked = {.run = run, .layer = -1, .scale = 1};
    if (isfinite(run->scale_last) && run->scale_last > 0)
        asked.scale = run->scale_last;
    asked.samples =
        calloc((size_t)(run->layer_count ? run->layer_count : 1), sizeof *asked.samples);
    if (!asked.samples)
        return error_fail(error, ERROR_MEMORY, "no memory for the layers");
    bool done =
        store_read_layers_at(store, run->id, run->step, asked.samples, run->layer_count, error) &&
        store_read_factors_at(store, run->id, run->step, &asked.factors, &asked.factor_count,
                              error) &&
        (has_any(&asked) ||
         error_fail(error, ERROR_FAILED, "no gradients of %s were counted: it trained no layer",
                    run->name)) &&
        (!cli->layer || find_layer(cli, &asked, error));
    if (done && cli->json)
        write_json(&asked);
    else if (done)
        done = asked.layer >= 0 ? print_layer(page, &asked, error) : print_all(page, &asked, error);
    if (done && !cli->json)
        print_notes(&asked);
    free(asked.samples);
    free(asked.factors);
    return done;
}
