// The table of layers of `mpbench show`: precision, what it flushed, and where its gradients lay.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/history/history.h"
#include "cli/history/show.h"
#include "cli/print/curve.h"
#include "cli/print/table.h"
#include "cli/print/text.h"
#include "compare/factor_shares.h"
#include "store/layers.h"

enum { SPARK_COLUMNS = 24 };

static const TableColumn columns[] = {
    {"layer", false, 0, 32},    {"in", false, 1, 0},      {"set to", false, 8, 0},
    {"not finite", true, 3, 0}, {"flushed", true, 2, 0},  {"zero", true, 6, 0},
    {"overflowed", true, 9, 0}, {"mean |g|", true, 7, 0}, {"largest", true, 5, 0},
    {"exponents", false, 4, 0}, {"update", true, 10, 0},  {"ms a step", true, 11, 0},
};

typedef struct Bins { // the exponents that any layer has, in groups of equal width
    int first, width, count;
} Bins;

static Bins choose_bins(const LayerSample *samples, int count) {
    int low = LAYER_BINS, high = -1;
    for (int i = 0; i < count; i++)
        for (int bin = 0; bin < LAYER_BINS; bin++)
            if (samples[i].width > 0 && samples[i].bins[bin] > 0) {
                low = bin < low ? bin : low;
                high = bin > high ? bin : high;
            }
    if (high < low)
        return (Bins){0, 1, 0};
    int width = (high - low + SPARK_COLUMNS) / SPARK_COLUMNS;
    return (Bins){low, width, (high - low) / width + 1};
}

static void put_share(Table *table, int64_t part, int64_t whole) {
    char text[TEXT_SIZE];
    double percent = whole > 0 ? 100 * (double)part / (double)whole : 0;
    snprintf(text, sizeof text, percent > 0 && percent < 0.01 ? "<0.01 %%" : "%.2f %%", percent);
    table_put(table, whole > 0 ? part > 0 ? text : "0" : NULL, "");
}

static void put_known(Table *table, double value, int digits) {
    char text[TEXT_SIZE];
    table_put(table, isnan(value) ? NULL : text_number(text, value, digits), "");
}

typedef struct Shown {
    LayerSample *samples; // [layers of the run]
    LayerFactors *factors;
    int factor_count;
} Shown;

// Of a layer in a scaled format, as long as it is in that: gradients of weights, which are kept in
// another, tell nothing of it.
static FactorShares factors_of(const Shown *shown, const RunRecord *run, int layer) {
    const FactorShares worst = factor_shares_worst(shown->factors, shown->factor_count, layer);
    const bool is_its = worst.is_known && run->step <= factors_hold_until(worst.of) &&
                        strcmp(worst.of->precision, run->layers[layer].precision) == 0;
    return is_its ? worst : (FactorShares){.is_known = false};
}

static int64_t broken_of(const LayerSample *sample) {
    return sample->width > 0 ? sample->nans + sample->infs : 0;
}

// `has_broken`: of any layer; else the column is left out.
static void put_layer(Table *table, const ShowPage *page, const RecordLayer *layer,
                      const LayerSample *sample, const FactorShares *factors, const Bins *bins,
                      bool has_broken) {
    bool is_known = sample->width > 0;
    int64_t broken = broken_of(sample), finite = sample->count - broken;
    table_put(table, layer->name, "");
    table_put(table, layer->precision, history_precision_style(&page->terminal, layer->precision));
    table_put(table, layer->set[0] ? layer->set : NULL, "");
    put_share(table, broken, is_known && has_broken ? sample->count : 0);
    if (factors->is_known)
        put_share(table, factors->of->flushed, factors->of->count);
    else
        put_share(table, sample->flushed, is_known ? sample->count : 0);
    put_share(table, sample->zeros, is_known ? sample->count : 0);
    if (factors->is_known)
        put_share(table, factors->of->saturated, factors->of->count);
    else
        put_share(table, sample->overflowed, is_known ? sample->count : 0);
    put_known(table, is_known && finite > 0 ? sample->sum / (double)finite : NAN, 2);
    put_known(table, is_known && finite > 0 ? sample->largest : NAN, 2);
    double heights[LAYER_BINS] = {0};
    char spark[4 * SPARK_COLUMNS + 1];
    for (int i = 0; is_known && i < bins->count; i++)
        for (int k = 0; k < bins->width && bins->first + i * bins->width + k < LAYER_BINS; k++)
            heights[i] += sample->bins[bins->first + i * bins->width + k];
    curve_spark(spark, sizeof spark, heights, bins->count, page->has_utf8);
    table_put(table, is_known ? spark : NULL, "");
    put_known(table, is_known ? sample->update_ratio : NAN, 2);
    put_known(table, is_known ? 1e3 * sample->seconds : NAN, 3);
}

static void print_note(const LayerFactors *counted) {
    char words[320];
    snprintf(
        words, sizeof words,
        "Of layers in formats with scales of their own, flushed and overflowed (cut off at the "
        "largest element) are of what they multiplied in step %lld, at those scales: of "
        "activations, weights or gradients, which lose most; --what-if=LAYER tells all three.",
        (long long)counted->step);
    putchar('\n');
    cli_print_wrapped(words, 0);
}

// Of which steps the columns are that are not of the last: they are measured a few times a second.
static void print_measured(const LayerSample *samples, int count) {
    int64_t from, to;
    char words[160];
    if (!layer_samples_measured(samples, count, &from, &to))
        return;
    if (from == to)
        snprintf(words, sizeof words, "Update and ms a step were measured last in step %lld.",
                 (long long)to);
    else
        snprintf(words, sizeof words,
                 "Update and ms a step were measured last in steps %lld to %lld.", (long long)from,
                 (long long)to);
    putchar('\n');
    cli_print_wrapped(words, 0);
}

static bool print_layers(const ShowPage *page, const RunRecord *run, const Shown *shown,
                         Error *error) {
    const LayerSample *samples = shown->samples;
    const LayerFactors *counted = NULL;
    Bins bins = choose_bins(samples, run->layer_count);
    Table *table = table_new(columns, sizeof columns / sizeof *columns);
    if (!table)
        return error_fail(error, ERROR_MEMORY, "no memory for the layers");
    bool has_broken = false;
    for (int i = 0; i < run->layer_count; i++)
        has_broken = has_broken || broken_of(&samples[i]) > 0;
    for (int i = 0; i < run->layer_count; i++) {
        const FactorShares factors = factors_of(shown, run, i);
        counted = factors.is_known ? factors.of : counted;
        put_layer(table, page, &run->layers[i], &samples[i], &factors, &bins, has_broken);
    }
    char title[128], steps[HISTORY_STEPS_SIZE];
    if (bins.count > 0)
        snprintf(title, sizeof title, "Layers, their true gradients %s (2^%d to 2^%d)",
                 history_layer_steps(steps, run, samples), bins.first + LAYER_LOWEST_EXPONENT,
                 bins.first + bins.width * bins.count - 1 + LAYER_LOWEST_EXPONENT);
    else
        snprintf(title, sizeof title, "Layers");
    show_title(page, title);
    bool done =
        table_print(table, stdout, terminal_width(&page->terminal), page->dim, page->plain, error);
    table_free(table);
    if (done && counted)
        print_note(counted);
    if (done)
        print_measured(samples, run->layer_count);
    return done;
}

bool show_layers(const ShowPage *page, Store *store, const RunRecord *run, Error *error) {
    if (run->layer_count == 0)
        return true;
    Shown shown = {.samples = calloc((size_t)run->layer_count, sizeof *shown.samples)};
    if (!shown.samples)
        return error_fail(error, ERROR_MEMORY, "no memory for the layers");
    bool done = history_read_layers(store, run, shown.samples, error) &&
                store_read_factors_at(store, run->id, run->step, &shown.factors,
                                      &shown.factor_count, error) &&
                print_layers(page, run, &shown, error);
    free(shown.samples);
    free(shown.factors);
    return done;
}
