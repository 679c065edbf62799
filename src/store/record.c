// The lists of a record, and the words for a status.
#include "store/record.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/twin.h"

const char *const run_status_names[RUN_STATUSES + 1] = {"running", "paused", "finished", "stopped",
                                                        "failed",  "dead",   NULL};

const char *run_status_name(RunStatus status) {
    return status >= 0 && status < RUN_STATUSES ? run_status_names[status] : "unknown";
}

bool run_status_parse(const char *name, RunStatus *status) {
    for (int i = 0; i < RUN_STATUSES; i++)
        if (strcmp(name, run_status_names[i]) == 0) {
            *status = (RunStatus)i;
            return true;
        }
    return false;
}

bool record_metric_leads(const char *name) {
    return strstr(name, "accuracy") != NULL;
}

// By a part of its name, or by a whole word of it, as "val_mse".
bool record_metric_falls(const char *name) {
    static const char *const parts[] = {"loss",       "error",    "perplexity", "deviation",
                                        "distance",   "latency",  "violation",  "regret",
                                        "divergence", "residual", "runtime",    "penalty"};
    static const char *const words[] = {
        "bce", "bits", "bpb",     "bpc",    "bpd", "brier", "ce",   "cer",   "cost",  "crps",
        "ece", "eer",  "emd",     "energy", "err", "fid",   "gap",  "hinge", "huber", "kid",
        "kl",  "l1",   "l2",      "lpips",  "mad", "mae",   "mape", "mse",   "nll",   "nrmse",
        "ppl", "rmse", "seconds", "smape",  "ter", "time",  "wer",  "xent"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(name, parts[i]))
            return true;
    for (const char *at = name; *at; at++) {
        const size_t length = strcspn(at, "_-. /");
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (strlen(words[i]) == length && strncmp(at, words[i], length) == 0)
                return true;
        at += at[length] ? length : length - 1;
    }
    return false;
}

void record_clear(RunRecord *record) {
    free(record->parameters);
    free(record->layers);
    free(record->metrics);
    free(record->diagnoses);
    free(record->options);
    free(record->facts);
    if (record->twin)
        twin_report_clear(record->twin);
    free(record->twin);
    *record = (RunRecord){0};
}

// A copy of `count` elements replaces what *array points to; `list` may be that itself.
static bool replace(void **array, int *array_count, const void *list, int count, size_t size,
                    Error *error) {
    void *copy = NULL;
    if (count > 0) {
        copy = calloc((size_t)count, size);
        if (!copy)
            return error_fail(error, ERROR_MEMORY, "no memory for %d rows: close other programs",
                              count);
        memcpy(copy, list, (size_t)count * size);
    }
    free(*array);
    *array = copy;
    *array_count = count;
    return true;
}

// A function a list, all alike but for the type.
#define SET_LIST(name, type, field)                                                        \
    bool record_set_##name(RunRecord *record, const type *list, int count, Error *error) { \
        void *array = record->name;                                                        \
        bool done = replace(&array, &record->field, list, count, sizeof *list, error);     \
        record->name = array;                                                              \
        return done;                                                                       \
    }

SET_LIST(parameters, RecordParameter, parameter_count)
SET_LIST(layers, RecordLayer, layer_count)
SET_LIST(metrics, RecordMetric, metric_count)
SET_LIST(diagnoses, RecordDiagnosis, diagnosis_count)
SET_LIST(options, RecordOption, option_count)
SET_LIST(facts, RecordFact, fact_count)

bool record_option_is_typed(const RecordOption *option) {
    return strcmp(option->name, "matrix") != 0;
}

const char *record_fact(const RunRecord *record, const char *name) {
    for (int i = 0; i < record->fact_count; i++)
        if (strcmp(record->facts[i].name, name) == 0)
            return record->facts[i].value;
    return NULL;
}

double record_fact_number(const RunRecord *record, const char *name) {
    const char *fact = record_fact(record, name);
    double value;
    return fact && sscanf(fact, "%lf", &value) == 1 ? value : (double)NAN;
}

double record_fact_part(const RunRecord *record, const char *name, double *whole) {
    const char *fact = record_fact(record, name);
    double part;
    bool is_there = fact && sscanf(fact, "%lf of %lf", &part, whole) == 2 && *whole > 0;
    if (!is_there)
        *whole = NAN;
    return is_there ? part : (double)NAN;
}

#define MEMORY_TEXT                                                                     \
    "%" PRId64 " bytes: weights %" PRId64 ", masters %" PRId64 ", activations %" PRId64 \
    ", gradients %" PRId64 ", optimizer %" PRId64 ", workspace %" PRId64
#define MEMORY_SCAN                                                                     \
    "%" SCNd64 " bytes: weights %" SCNd64 ", masters %" SCNd64 ", activations %" SCNd64 \
    ", gradients %" SCNd64 ", optimizer %" SCNd64 ", workspace %" SCNd64

void record_memory_text(const RecordMemory *memory, char text[RECORD_TEXT_SIZE]) {
    snprintf(text, RECORD_TEXT_SIZE, MEMORY_TEXT, memory->peak, memory->weights, memory->masters,
             memory->activations, memory->gradients, memory->optimizer, memory->workspace);
}

bool record_memory_in_steps(const RunRecord *record, RecordMemory *memory) {
    enum { READINGS = 7 };
    const char *fact = record_fact(record, RECORD_FACT_MEMORY);
    return fact && sscanf(fact, MEMORY_SCAN, &memory->peak, &memory->weights, &memory->masters,
                          &memory->activations, &memory->gradients, &memory->optimizer,
                          &memory->workspace) == READINGS;
}

// What a layer is set to, by itself or by one that holds it; "auto": nothing.
static const char *set_in_force(const RunRecord *record, int layer) {
    for (int left = record->layer_count; layer >= 0 && layer < record->layer_count && left > 0;
         left--) {
        const RecordLayer *of = &record->layers[layer];
        if (of->set[0] && strcmp(of->set, "auto") != 0)
            return of->set;
        layer = of->parent;
    }
    return "auto";
}

void record_precision(const RunRecord *record, char text[RECORD_PRECISION_SIZE]) {
    const char *all = record->layer_count > 0 ? set_in_force(record, 0) : "auto";
    for (int i = 1; i < record->layer_count; i++)
        if (strcmp(set_in_force(record, i), all) != 0)
            all = "auto";
    bool differs = strcmp(all, "auto") != 0 && strcmp(all, record->precision) != 0;
    snprintf(text, RECORD_PRECISION_SIZE, "%.30s%s%.16s", record->precision,
             differs ? ", all layers " : "", differs ? all : "");
}

static void add_layers(const RunRecord *record, char text[RECORD_PRECISION_SIZE]) {
    int count = 0;
    for (int i = 0; i < record->layer_count; i++) {
        const char *set = record->layers[i].set;
        count += set[0] && strcmp(set, "auto") != 0 && strcmp(set, record->precision) != 0;
    }
    if (count > 0)
        snprintf(text, RECORD_PRECISION_SIZE, "%.30s +%d layer%s", record->precision, count,
                 count == 1 ? "" : "s");
}

static const char all_kept[] = "all";

// The option as it was typed last.
static const char *kept_of(const RunRecord *record) {
    const char *kept = all_kept;
    for (int i = 0; i < record->option_count; i++)
        if (strcmp(record->options[i].name, "keep-fp32") == 0)
            kept = record->options[i].value;
    return kept;
}

bool record_keeps_other(const RunRecord *record) {
    return strcmp(kept_of(record), all_kept) != 0;
}

static void add_kept(const RunRecord *record, char text[RECORD_PRECISION_SIZE]) {
    const size_t used = strlen(text);
    if (record_keeps_other(record))
        snprintf(text + used, RECORD_PRECISION_SIZE - used, " keep=%.40s", kept_of(record));
}

void record_precision_brief(const RunRecord *record, char text[RECORD_PRECISION_SIZE]) {
    record_precision(record, text);
    if (record->layer_count == 0 && record->option_count == 0 && record->label[0])
        snprintf(text, RECORD_PRECISION_SIZE, "%s", record->label);
    if (strcmp(text, record->precision) == 0)
        add_layers(record, text);
    add_kept(record, text);
}

const RecordMetric *record_metric(const RunRecord *record, const char *name) {
    for (int i = 0; i < record->metric_count; i++)
        if (strcmp(record->metrics[i].name, name) == 0)
            return &record->metrics[i];
    return NULL;
}

static const char *lead_of(const RunRecord *record) {
    const char *fact = record_fact(record, RECORD_FACT_LEADS);
    return fact ? fact : record->leads;
}

bool record_result_leads(const RunRecord *record, const char *name) {
    const char *lead = lead_of(record);
    const bool is_said = lead[0] && record_metric(record, lead);
    return is_said ? strcmp(lead, name) == 0 : record_metric_leads(name);
}

bool record_result_falls(const RunRecord *record, const char *name) {
    char fact[RECORD_NAME_SIZE]; // a long name is cut as that of the fact was
    snprintf(fact, sizeof fact, RECORD_FACT_BETTER "%s", name);
    const char *better = record_fact(record, fact);
    return better ? strcmp(better, "lower") == 0 : record_metric_falls(name);
}

const RecordMetric *record_leading_metric(const RunRecord *record) {
    for (int i = 0; i < record->metric_count; i++)
        if (record_result_leads(record, record->metrics[i].name))
            return &record->metrics[i];
    return record->metric_count > 0 ? &record->metrics[0] : NULL;
}
