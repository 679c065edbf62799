// tests/unit/compare_fixture.h: runs made by hand, in memory or in a history, for what compares.
#pragma once

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/compare.h"
#include "store/runs.h"

typedef struct Planted { // what of a run matters to the test; the rest is the same in all
    const char *name, *precision;
    int64_t seed;
    double accuracy, steps_per_s, lr;
    double end, noise; // the loss falls from 2 to `end`, with a scatter of so much
    int64_t steps;     // 0: 400
} Planted;

// Two precisions, of three seeds each.
static const Planted six[] = {
    {"a1", "fp32", 1, 0.911, 50, 0.1, 0.2, 0.05, 0},
    {"b1", "bf16", 1, 0.910, 90, 0.1, 0.2, 0.05, 0},
    {"a2", "fp32", 2, 0.913, 51, 0.1, 0.2, 0.05, 0},
    {"b2", "bf16", 2, 0.911, 91, 0.1, 0.2, 0.05, 0},
    {"a3", "fp32", 3, 0.909, 49, 0.1, 0.2, 0.05, 0},
    {"b3", "bf16", 3, 0.909, 89, 0.1, 0.2, 0.05, 0},
};

enum { PLANTED_STEPS = 400 };

static inline int64_t planted_steps(const Planted *planted) {
    return planted->steps > 0 ? planted->steps : PLANTED_STEPS;
}

// The same in every run of the same seed, so that two of them can be equal to the bit.
static inline double planted_loss(const Planted *planted, int64_t step) {
    uint64_t x =
        (uint64_t)step * 0x9e3779b97f4a7c15u + (uint64_t)planted->seed * 0xbf58476d1ce4e5b9u;
    x ^= x >> 31;
    x *= 0x94d049bb133111ebu;
    x ^= x >> 29;
    double chance = (double)(x >> 11) / 0x1p53 - 0.5;
    return planted->end + (2 - planted->end) * exp(-(double)step / 60) + planted->noise * chance;
}

static inline RunRecord planted_record(const Planted *planted) {
    RunRecord record = {.status = RUN_FINISHED,
                        .threads = 2,
                        .seed = planted->seed,
                        .step = planted_steps(planted),
                        .applied = planted_steps(planted),
                        .total_steps = planted_steps(planted),
                        .epoch = 2,
                        .epochs = 2,
                        .samples = 32 * planted_steps(planted),
                        .has_loss = true,
                        .loss_first = planted_loss(planted, 1),
                        .loss_last = planted_loss(planted, planted_steps(planted)),
                        .scale_last = 1,
                        .scale_min = 1,
                        .scale_max = 1,
                        .steps_per_s = planted->steps_per_s,
                        .samples_per_s = 32 * planted->steps_per_s,
                        .wall_s = (double)planted_steps(planted) / planted->steps_per_s,
                        .cast_share = NAN,
                        .energy_j = NAN,
                        .created_ms = 1700000000000};
    record.loss_best = record.loss_last;
    record.memory = (RecordMemory){.peak = strcmp(planted->precision, "fp32") == 0 ? 1000 : 620,
                                   .weights = 100,
                                   .masters = RECORD_UNKNOWN,
                                   .activations = RECORD_UNKNOWN,
                                   .gradients = RECORD_UNKNOWN,
                                   .optimizer = RECORD_UNKNOWN,
                                   .workspace = RECORD_UNKNOWN};
    snprintf(record.name, sizeof record.name, "%s", planted->name);
    snprintf(record.experiment, sizeof record.experiment, "planted");
    snprintf(record.precision, sizeof record.precision, "%s", planted->precision);
    snprintf(record.scale_rule, sizeof record.scale_rule, "%s",
             strcmp(planted->precision, "fp16") == 0 ? "dynamic" : "none");
    snprintf(record.device, sizeof record.device, "cpu");
    snprintf(record.device_name, sizeof record.device_name, "A processor");
    RecordParameter lr = {.name = "lr", .kind = RECORD_NUMBER, .number = planted->lr};
    RecordMetric accuracy = {.name = "accuracy", .value = planted->accuracy};
    Error error;
    if (!record_set_parameters(&record, &lr, 1, &error) ||
        !record_set_metrics(&record, &accuracy, isnan(planted->accuracy) ? 0 : 1, &error))
        abort();
    return record;
}

static inline CompareCurve planted_curve(const Planted *planted) {
    int64_t steps = planted_steps(planted);
    CompareCurve curve = {.points = calloc((size_t)steps, sizeof(SeriesPoint)),
                          .count = (int)steps};
    for (int64_t i = 0; i < steps; i++) {
        double loss = planted_loss(planted, i + 1);
        bool is_finite = isfinite(loss);
        curve.points[i] = (SeriesPoint){.step = i + 1,
                                        .width = 1,
                                        .count = is_finite,
                                        .nans = isnan(loss),
                                        .infs = isinf(loss) && loss > 0,
                                        .first = is_finite ? loss : NAN,
                                        .last = is_finite ? loss : NAN,
                                        .min = is_finite ? loss : NAN,
                                        .mean = is_finite ? loss : NAN,
                                        .max = is_finite ? loss : NAN};
    }
    return curve;
}

static inline RunRecord *planted_records(const Planted *planted, int count) {
    RunRecord *runs = calloc((size_t)count, sizeof *runs);
    for (int i = 0; i < count; i++) {
        runs[i] = planted_record(&planted[i]);
        runs[i].id = i + 1;
    }
    return runs;
}

static inline CompareCurve *planted_curves(const Planted *planted, int count) {
    CompareCurve *curves = calloc((size_t)count, sizeof *curves);
    for (int i = 0; i < count; i++)
        curves[i] = planted_curve(&planted[i]);
    return curves;
}

static inline Comparison *compare_planted(const Planted *planted, int count, CompareAxis axis) {
    RunRecord *runs = planted_records(planted, count);
    CompareCurve *curves = planted_curves(planted, count);
    Error error;
    CompareOptions options = {.axis = axis, .grams_per_kwh = 400};
    return compare_records(runs, curves, count, &options, &error);
}

// Times of steps, of which neighbours are alike: `slow` of them are so much slower at a time.
static inline double planted_seconds(const Planted *planted, int64_t step, double slow) {
    return (1 + slow * sin((double)step / 40)) / planted->steps_per_s;
}

static inline bool plant_series(Store *store, int64_t run, const char *const *names, int count,
                                const Planted *planted, double slow, Error *error) {
    SeriesWriter *writer = series_writer_new(store, run, 0, "resume", error);
    bool done = writer && store_begin(store, error);
    for (int64_t step = 1; done && step <= planted_steps(planted); step++) {
        done =
            series_add(writer, "step_seconds", step, planted_seconds(planted, step, slow), error);
        for (int i = 0; done && i < count; i++)
            done = series_add(writer, names[i], step, planted_loss(planted, step) + i, error);
    }
    done = done && series_flush(writer, 1e6, error) && store_commit(store, error);
    series_writer_free(writer);
    return done;
}

// Into a history; gives the run's id.
static inline int64_t plant(Store *store, const Planted *planted) {
    Error error = {.code = ERROR_NONE};
    RunRecord record = planted_record(planted);
    bool done = store_add_run(store, &record, "return 1", 8, &error);
    SeriesWriter *writer = done ? series_writer_new(store, record.id, 0, "start", &error) : NULL;
    done = writer != NULL;
    for (int64_t step = 1; done && step <= planted_steps(planted); step++)
        done = series_add(writer, "loss", step, planted_loss(planted, step), &error);
    done = done && store_begin(store, &error) && series_flush(writer, 1e6, &error) &&
           store_update_run(store, &record, &error) && store_commit(store, &error);
    if (!done) {
        fprintf(stderr, "%s\n", error.text);
        abort();
    }
    int64_t id = record.id;
    series_writer_free(writer);
    record_clear(&record);
    return id;
}
