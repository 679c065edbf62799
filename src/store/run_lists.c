// The lists of a run: parameters, layers, metrics, diagnoses, options, facts. Each is written
// whole, when it differs from what was written last.
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mix.h"
#include "store/schema.h"
#include "store/store_private.h"

// ---- what a list holds, as one number -----------------------------------------------------------

// Up to the end of the text: what follows it in its array is no part of it.
static void mix_text(uint64_t *hash, const char *text) {
    *hash = mix_bytes(*hash, text, strlen(text) + 1);
}

static void mix_integer(uint64_t *hash, int64_t value) {
    *hash = mix_bytes(*hash, &value, sizeof value);
}

static void mix_number(uint64_t *hash, double value) {
    *hash = mix_bytes(*hash, &value, sizeof value);
}

// ---- elements: how each is hashed, put and got --------------------------------------------------

static const char *const parameter_kinds[] = {"number", "integer", "boolean", "text"};

static void hash_parameter(uint64_t *hash, const void *element) {
    const RecordParameter *parameter = element;
    mix_text(hash, parameter->name);
    mix_integer(hash, (int64_t)parameter->kind);
    mix_number(hash, parameter->number);
    mix_integer(hash, parameter->integer);
    mix_text(hash, parameter->text);
}

static void put_parameter(Query *query, const void *element) {
    const RecordParameter *parameter = element;
    query_put_text(query, parameter->name);
    query_put_text(query, parameter_kinds[parameter->kind]);
    switch (parameter->kind) {
    case RECORD_NUMBER:
        if (isnan(parameter->number))
            query_put_text(query, "nan");
        else if (isinf(parameter->number))
            query_put_text(query, parameter->number > 0 ? "+inf" : "-inf");
        else
            query_put_number(query, parameter->number);
        break;
    case RECORD_INTEGER:
    case RECORD_BOOLEAN: query_put_integer(query, parameter->integer); break;
    case RECORD_TEXT: query_put_text(query, parameter->text); break;
    }
}

static void get_parameter(Query *query, void *element) {
    RecordParameter *parameter = element;
    query_text(query, 0, parameter->name, sizeof parameter->name);
    const char *kind = query_word(query, 1);
    parameter->kind = strcmp(kind, parameter_kinds[RECORD_NUMBER]) == 0    ? RECORD_NUMBER
                      : strcmp(kind, parameter_kinds[RECORD_INTEGER]) == 0 ? RECORD_INTEGER
                      : strcmp(kind, parameter_kinds[RECORD_BOOLEAN]) == 0 ? RECORD_BOOLEAN
                                                                           : RECORD_TEXT;
    parameter->number = query_number(query, 2);
    parameter->integer = query_integer(query, 2);
    query_text(query, 2, parameter->text, sizeof parameter->text);
    if (parameter->kind == RECORD_NUMBER && strcmp(parameter->text, "+inf") == 0)
        parameter->number = (double)INFINITY;
    if (parameter->kind == RECORD_NUMBER && strcmp(parameter->text, "-inf") == 0)
        parameter->number = -(double)INFINITY;
    if (parameter->kind != RECORD_TEXT)
        parameter->text[0] = 0;
}

static void hash_layer(uint64_t *hash, const void *element) {
    const RecordLayer *layer = element;
    mix_text(hash, layer->name);
    mix_integer(hash, layer->parent);
    mix_text(hash, layer->precision);
    mix_text(hash, layer->set);
}

static void put_layer(Query *query, const void *element) {
    const RecordLayer *layer = element;
    query_put_text(query, layer->name);
    query_put_known(query, layer->parent < 0 ? RECORD_UNKNOWN : layer->parent);
    query_put_text(query, layer->precision);
    query_put_text(query, layer->set);
}

static void get_layer(Query *query, void *element) {
    RecordLayer *layer = element;
    query_text(query, 0, layer->name, sizeof layer->name);
    int64_t parent = query_known(query, 1);
    layer->parent = parent >= 0 && parent < INT32_MAX ? (int)parent : -1;
    query_text(query, 2, layer->precision, sizeof layer->precision);
    query_text(query, 3, layer->set, sizeof layer->set);
}

static void hash_metric(uint64_t *hash, const void *element) {
    const RecordMetric *metric = element;
    mix_text(hash, metric->name);
    mix_number(hash, metric->value);
}

static void put_metric(Query *query, const void *element) {
    const RecordMetric *metric = element;
    query_put_text(query, metric->name);
    query_put_number(query, metric->value);
    query_put_kind(query, metric->value);
}

static void get_metric(Query *query, void *element) {
    RecordMetric *metric = element;
    query_text(query, 0, metric->name, sizeof metric->name);
    metric->value = query_value(query, 1);
}

static void hash_diagnosis(uint64_t *hash, const void *element) {
    const RecordDiagnosis *diagnosis = element;
    mix_text(hash, diagnosis->kind);
    mix_text(hash, diagnosis->layer);
    mix_integer(hash, diagnosis->step);
    mix_text(hash, diagnosis->text);
}

static void put_diagnosis(Query *query, const void *element) {
    const RecordDiagnosis *diagnosis = element;
    query_put_text(query, diagnosis->kind);
    query_put_text(query, diagnosis->layer);
    query_put_integer(query, diagnosis->step);
    query_put_text(query, diagnosis->text);
}

static void get_diagnosis(Query *query, void *element) {
    RecordDiagnosis *diagnosis = element;
    query_text(query, 0, diagnosis->kind, sizeof diagnosis->kind);
    query_text(query, 1, diagnosis->layer, sizeof diagnosis->layer);
    diagnosis->step = query_integer(query, 2);
    query_text(query, 3, diagnosis->text, sizeof diagnosis->text);
}

// Options and facts are pairs of texts of the same sizes.
_Static_assert(sizeof(RecordOption) == sizeof(RecordFact), "options and facts are alike");

static void hash_pair(uint64_t *hash, const void *element) {
    const RecordOption *pair = element;
    mix_text(hash, pair->name);
    mix_text(hash, pair->value);
}

static void put_pair(Query *query, const void *element) {
    const RecordOption *pair = element;
    query_put_text(query, pair->name);
    query_put_text(query, pair->value);
}

static void get_pair(Query *query, void *element) {
    RecordOption *pair = element;
    query_text(query, 0, pair->name, sizeof pair->name);
    query_text(query, 1, pair->value, sizeof pair->value);
}

// ---- the six lists ------------------------------------------------------------------------------

typedef struct List {
    const char *clear, *insert, *select;
    size_t array, count, size; // where the record has it; of an element
    void (*hash)(uint64_t *hash, const void *element);
    void (*put)(Query *query, const void *element);
    void (*get)(Query *query, void *element);
} List;

#define LIST(field, counter, type) \
    offsetof(RunRecord, field), offsetof(RunRecord, counter), sizeof(type)

static const List lists[STORE_RECORD_LISTS] = {
    {"DELETE FROM params WHERE run = ?",
     "INSERT INTO params (run, position, name, kind, value) VALUES (?, ?, ?, ?, ?)",
     "SELECT name, kind, value FROM params WHERE run = ? ORDER BY position",
     LIST(parameters, parameter_count, RecordParameter), hash_parameter, put_parameter,
     get_parameter},
    {"DELETE FROM layers WHERE run = ?",
     "INSERT INTO layers (run, layer, name, parent, precision, set_to) VALUES (?, ?, ?, ?, ?, ?)",
     "SELECT name, parent, precision, set_to FROM layers WHERE run = ? ORDER BY layer",
     LIST(layers, layer_count, RecordLayer), hash_layer, put_layer, get_layer},
    {"DELETE FROM metrics WHERE run = ?",
     "INSERT INTO metrics (run, position, name, value, kind) VALUES (?, ?, ?, ?, ?)",
     "SELECT name, value, kind FROM metrics WHERE run = ? ORDER BY position",
     LIST(metrics, metric_count, RecordMetric), hash_metric, put_metric, get_metric},
    {"DELETE FROM diagnoses WHERE run = ?",
     "INSERT INTO diagnoses (run, position, kind, layer, step, text) VALUES (?, ?, ?, ?, ?, ?)",
     "SELECT kind, layer, step, text FROM diagnoses WHERE run = ? ORDER BY position",
     LIST(diagnoses, diagnosis_count, RecordDiagnosis), hash_diagnosis, put_diagnosis,
     get_diagnosis},
    {"DELETE FROM options WHERE run = ?",
     "INSERT INTO options (run, position, name, value) VALUES (?, ?, ?, ?)",
     "SELECT name, value FROM options WHERE run = ? ORDER BY position",
     LIST(options, option_count, RecordOption), hash_pair, put_pair, get_pair},
    {"DELETE FROM environment WHERE run = ?",
     "INSERT INTO environment (run, position, name, value) VALUES (?, ?, ?, ?)",
     "SELECT name, value FROM environment WHERE run = ? ORDER BY position",
     LIST(facts, fact_count, RecordFact), hash_pair, put_pair, get_pair},
};

static uint64_t hash_list(const List *list, const char *elements, int count) {
    uint64_t hash = MIX_BEGIN;
    mix_integer(&hash, count);
    for (int i = 0; i < count; i++)
        list->hash(&hash, elements + (size_t)i * list->size);
    return hash;
}

static bool clear_list(Store *store, const List *list, int64_t run, Error *error) {
    Query query;
    if (!query_begin(&query, store, list->clear, error))
        return false;
    query_put_integer(&query, run);
    query_next(&query);
    return query_end(&query, "the run cannot be updated in the history", error);
}

static bool write_list(Store *store, const List *list, int64_t run, const char *elements, int count,
                       Error *error) {
    if (!clear_list(store, list, run, error))
        return false;
    for (int i = 0; i < count; i++) {
        Query query;
        if (!query_begin(&query, store, list->insert, error))
            return false;
        query_put_integer(&query, run);
        query_put_integer(&query, i);
        list->put(&query, elements + (size_t)i * list->size);
        query_next(&query);
        if (!query_end(&query, "the run cannot be updated in the history", error))
            return false;
    }
    return true;
}

// For lists of runs, which read no layers and no options of any.
static bool write_label(Store *store, const RunRecord *record, bool is_known, Error *error) {
    char label[RECORD_PRECISION_SIZE];
    bool has = false;
    Query query;
    record_precision_brief(record, label);
    const bool differs = strcmp(label, record->precision) != 0;
    if (is_known && strcmp(store->updated_label, label) == 0)
        return true;
    if (!store_has_table(store, "run_labels", &has, error) ||
        (differs && !store_make_table(store, "run_labels", error)))
        return false;
    if (differs || has) {
        if (!query_begin(&query, store,
                         differs ? "INSERT OR REPLACE INTO run_labels VALUES (?, ?)"
                                 : "DELETE FROM run_labels WHERE run = ?",
                         error))
            return false;
        query_put_integer(&query, record->id);
        if (differs)
            query_put_text(&query, label);
        query_next(&query);
        if (!query_end(&query, "the run cannot be updated in the history", error))
            return false;
    }
    snprintf(store->updated_label, sizeof store->updated_label, "%s", label);
    return true;
}

bool run_lists_write(Store *store, const RunRecord *record, Error *error) {
    bool is_known = store->updated_run == record->id;
    for (int i = 0; i < STORE_RECORD_LISTS; i++) {
        const List *list = &lists[i];
        const char *base = (const char *)record;
        const char *elements = *(const char *const *)(const void *)(base + list->array);
        int count = *(const int *)(const void *)(base + list->count);
        uint64_t hash = hash_list(list, elements, count);
        if (is_known && store->updated_lists[i] == hash)
            continue;
        store->updated_run = 0; // until all are written
        if (!write_list(store, list, record->id, elements, count, error))
            return false;
        store->updated_lists[i] = hash;
    }
    if (!write_label(store, record, is_known, error))
        return false;
    store->updated_run = record->id;
    return true;
}

static bool read_list(Store *store, const List *list, RunRecord *record, Error *error) {
    void **array = (void **)(void *)((char *)record + list->array);
    int *count = (int *)(void *)((char *)record + list->count);
    int capacity = 0;
    Query query;
    if (!query_begin(&query, store, list->select, error))
        return false;
    query_put_integer(&query, record->id);
    while (query_next(&query)) {
        if (!store_grow(array, *count, &capacity, list->size, error)) {
            query_drop(&query);
            return false;
        }
        char *element = (char *)*array + (size_t)*count * list->size;
        memset(element, 0, list->size);
        list->get(&query, element);
        ++*count;
    }
    return query_end(&query, "the run cannot be read", error);
}

bool run_lists_read(Store *store, RunRecord *record, Error *error) {
    for (int i = 0; i < STORE_RECORD_LISTS; i++)
        if (!read_list(store, &lists[i], record, error))
            return false;
    return true;
}
