// The catalogue: adding, updating, reading, listing and removing runs.
#include "store/runs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "store/schema.h"
#include "store/store_private.h"

static bool fail_missing(Store *store, int64_t id, Error *error) {
    return error_fail(error, ERROR_USAGE, "no run %" PRId64 " in %s: see mpbench ls", id,
                      store->path);
}

// ---- adding -------------------------------------------------------------------------------------

// What would be taken for a number, for @last or for a scan is no name.
static bool check_name(const char *name, Error *error) {
    if (name[0] == '@')
        return error_fail(error, ERROR_USAGE, "%s: a name may not begin with @", name);
    if (strncmp(name, "scan:", strlen("scan:")) == 0)
        return error_fail(error, ERROR_USAGE,
                          "%s: a name may not begin with scan: since scans are called so", name);
    if (name[0] && name[strspn(name, "0123456789")] == 0)
        return error_fail(error, ERROR_USAGE, "%s: a name may not be a number: that is a run's id",
                          name);
    return true;
}

static bool find_name(Store *store, const char *name, int64_t *id, Error *error) {
    Query query;
    *id = 0;
    if (!query_begin(&query, store, "SELECT id FROM runs WHERE name = ?", error))
        return false;
    query_put_text(&query, name);
    while (query_next(&query))
        *id = query_integer(&query, 0);
    return query_end(&query, "the names of runs cannot be read", error);
}

// EXPERIMENT-ID, or where somebody gave another run that name, EXPERIMENT-ID-2, ...
static bool make_name(Store *store, RunRecord *record, Error *error) {
    for (int attempt = 1; attempt < 1000; attempt++) {
        char suffix[48];
        int length = snprintf(suffix, sizeof suffix, "-%" PRId64, record->id);
        if (attempt > 1)
            length += snprintf(suffix + length, sizeof suffix - (size_t)length, "-%d", attempt);
        const char *experiment = record->experiment[0] ? record->experiment : "run";
        utf8_copy(record->name, sizeof record->name - (size_t)length, experiment);
        memcpy(record->name + strlen(record->name), suffix, (size_t)length + 1);
        int64_t other = 0;
        if (!find_name(store, record->name, &other, error))
            return false;
        if (other == 0)
            return true;
    }
    return error_fail(error, ERROR_FAILED, "no name is free for the run: give one with --name");
}

static bool set_name(Store *store, const RunRecord *record, Error *error) {
    Query query;
    if (!query_begin(&query, store, "UPDATE runs SET name = ? WHERE id = ?", error))
        return false;
    query_put_text(&query, record->name);
    query_put_integer(&query, record->id);
    query_next(&query);
    return query_end(&query, "the run cannot be named", error);
}

static bool keep_script(Store *store, RunRecord *record, const char *script, size_t length,
                        Error *error) {
    sha256_hex(record->script_hash, script, length);
    Query query;
    if (!query_begin(&query, store, "INSERT OR IGNORE INTO scripts (hash, text) VALUES (?, ?)",
                     error))
        return false;
    query_put_text(&query, record->script_hash);
    query_put_blob(&query, script, length);
    query_next(&query);
    return query_end(&query, "the script cannot be kept", error);
}

static bool add_run(Store *store, RunRecord *record, const char *script, size_t script_length,
                    Error *error) {
    bool is_named = record->name[0] != 0;
    int64_t other = 0;
    if (is_named && !find_name(store, record->name, &other, error))
        return false;
    if (other != 0)
        return error_fail(error, ERROR_USAGE,
                          "%s: run %" PRId64 " has this name: take another with --name",
                          record->name, other);
    if (script && !keep_script(store, record, script, script_length, error))
        return false;
    if (!is_named) // until the id is known; a name that nobody may give
        snprintf(record->name, sizeof record->name, "@new");
    if (!run_rows_insert(store, record, error))
        return false;
    if (!is_named && (!make_name(store, record, error) || !set_name(store, record, error)))
        return false;
    return run_lists_write(store, record, error);
}

bool store_add_run(Store *store, RunRecord *record, const char *script, size_t script_length,
                   Error *error) {
    char name[RECORD_NAME_SIZE];
    memcpy(name, record->name, sizeof name);
    if (!check_name(record->name, error) || !store_begin(store, error))
        return false;
    if (record->created_ms == 0)
        record->created_ms = store_wall_ms();
    if (store_end(store, add_run(store, record, script, script_length, error), error))
        return true;
    memcpy(record->name, name, sizeof name); // so that the same call may be made again
    record->id = 0;
    return false;
}

bool store_update_run(Store *store, const RunRecord *record, Error *error) {
    if (!store_begin(store, error))
        return false;
    bool done = run_rows_update(store, record, error) && run_lists_write(store, record, error);
    return store_end(store, done, error);
}

// ---- reading ------------------------------------------------------------------------------------

static bool read_row(Store *store, int64_t id, RunRecord *record, Error *error) {
    char sql[RUN_SQL_SIZE];
    Query query;
    WorkerId here;
    run_rows_select(sql, "WHERE runs.id = ?");
    if (!query_begin(&query, store, sql, error))
        return false;
    worker_here(&here);
    query_put_integer(&query, id);
    while (query_next(&query))
        run_rows_get(&query, record, &here);
    return query_end(&query, "the run cannot be read", error) &&
           (record->id != 0 || fail_missing(store, id, error));
}

bool store_read_run(Store *store, int64_t id, RunRecord *record, Error *error) {
    *record = (RunRecord){0};
    if (!store_begin_reading(store, error))
        return false;
    bool done = read_row(store, id, record, error) && run_lists_read(store, record, error);
    store_end_reading(store);
    if (!done)
        record_clear(record);
    return done;
}

// Metrics of all runs, walked beside the runs: from the newest to the oldest, from the last to the
// first of each.
typedef struct MetricWalk {
    Query query;
    bool has_row;
    RecordMetric *metrics; // of the current run, backwards
    int count, capacity;
} MetricWalk;

static bool gather_metrics(MetricWalk *walk, RunRecord *record, Error *error) {
    walk->count = 0;
    while (walk->has_row && query_integer(&walk->query, 0) > record->id)
        walk->has_row = query_next(&walk->query);
    while (walk->has_row && query_integer(&walk->query, 0) == record->id) {
        if (!store_grow((void **)&walk->metrics, walk->count, &walk->capacity,
                        sizeof *walk->metrics, error))
            return false;
        RecordMetric *metric = &walk->metrics[walk->count++];
        query_text(&walk->query, 1, metric->name, sizeof metric->name);
        metric->value = query_value(&walk->query, 2);
        walk->has_row = query_next(&walk->query);
    }
    for (int i = 0, j = walk->count - 1; i < j; i++, j--) {
        RecordMetric metric = walk->metrics[i];
        walk->metrics[i] = walk->metrics[j];
        walk->metrics[j] = metric;
    }
    return record_set_metrics(record, walk->metrics, walk->count, error);
}

// A text of those runs that have one, walked likewise: rows of run and text, the newest first.
typedef struct TextWalk {
    Query query;
    bool is_open, has_row;
} TextWalk;

static bool begin_texts(TextWalk *walk, Store *store, const char *sql, Error *error) {
    walk->is_open = query_begin(&walk->query, store, sql, error);
    walk->has_row = walk->is_open && query_next(&walk->query);
    return walk->is_open;
}

static bool begin_labels(TextWalk *walk, Store *store, Error *error) {
    bool has_table;
    return store_has_table(store, "run_labels", &has_table, error) &&
           (!has_table ||
            begin_texts(walk, store, "SELECT run, label FROM run_labels ORDER BY run DESC", error));
}

// Which result leads, where the script says it.
static bool begin_leads(TextWalk *walk, Store *store, Error *error) {
    return begin_texts(walk, store,
                       "SELECT run, value FROM environment WHERE name = '" RECORD_FACT_LEADS
                       "' ORDER BY run DESC",
                       error);
}

static void take_text(TextWalk *walk, int64_t run, char *text, size_t size) {
    while (walk->has_row && query_integer(&walk->query, 0) > run)
        walk->has_row = query_next(&walk->query);
    if (walk->has_row && query_integer(&walk->query, 0) == run)
        query_text(&walk->query, 1, text, size);
}

static void drop_texts(TextWalk *walk) {
    if (walk->is_open)
        query_drop(&walk->query);
}

static bool end_texts(TextWalk *walk, const char *what, Error *error) {
    return !walk->is_open || query_end(&walk->query, what, error);
}

static bool visit_rows(Query *query, MetricWalk *walk, TextWalk *labels, TextWalk *leads,
                       const RunVisitor *visitor, Error *error) {
    WorkerId here;
    worker_here(&here);
    bool enough = false;
    while (!enough && query_next(query)) {
        RunRecord record = {0};
        run_rows_get(query, &record, &here);
        take_text(labels, record.id, record.label, sizeof record.label);
        take_text(leads, record.id, record.leads, sizeof record.leads);
        bool done = gather_metrics(walk, &record, error) &&
                    visitor->use(visitor->context, &record, &enough, error);
        record_clear(&record);
        if (!done)
            return false;
    }
    return true;
}

static bool visit(Store *store, const RunVisitor *visitor, Error *error) {
    char sql[RUN_SQL_SIZE];
    static const char what[] = "the runs cannot be listed";
    run_rows_select(sql, "ORDER BY runs.id DESC");
    Query query;
    MetricWalk walk = {0};
    TextWalk labels = {.is_open = false}, leads = {.is_open = false};
    if (!query_begin(&query, store, sql, error))
        return false;
    if (!query_begin(&walk.query, store,
                     "SELECT run, name, value, kind FROM metrics ORDER BY run DESC, position DESC",
                     error)) {
        query_drop(&query);
        return false;
    }
    walk.has_row = query_next(&walk.query);
    bool done = begin_labels(&labels, store, error) && begin_leads(&leads, store, error) &&
                visit_rows(&query, &walk, &labels, &leads, visitor, error);
    free(walk.metrics);
    if (!done) {
        query_drop(&query);
        query_drop(&walk.query);
        drop_texts(&labels);
        drop_texts(&leads);
        return false;
    }
    done = end_texts(&leads, what, error);
    done = end_texts(&labels, what, done ? error : NULL) && done;
    done = query_end(&walk.query, what, done ? error : NULL) && done;
    return query_end(&query, what, done ? error : NULL) && done;
}

typedef struct Counted { // a visitor that remembers how far it came
    const RunVisitor *visitor;
    int64_t last; // id; 0: none yet
    bool enough;
} Counted;

static bool visit_counted(void *context, RunRecord *record, bool *enough, Error *error) {
    Counted *counted = context;
    counted->last = record->id;
    bool done = counted->visitor->use(counted->visitor->context, record, enough, error);
    counted->enough = *enough;
    return done;
}

bool store_visit_runs(Store *store, const RunVisitor *visitor, Error *error) {
    Counted counted = {visitor, 0, false};
    int64_t before = store->losses;
    if (!store_begin_reading(store, error))
        return false;
    bool done = visit(store, &(RunVisitor){&counted, visit_counted}, error);
    if (done && store->losses > before && !counted.enough)
        done = rescue_visit_runs(store, counted.last, visitor, error);
    store_end_reading(store);
    return done;
}

typedef struct Listing {
    const RunFilter *filter;
    Filter words;
    RunRecord *runs;
    int count, capacity;
} Listing;

static bool list_run(void *context, RunRecord *record, bool *enough, Error *error) {
    Listing *listing = context;
    if ((listing->filter->matrix && record->matrix != listing->filter->matrix) ||
        !filter_matches(&listing->words, record))
        return true;
    if (!store_grow((void **)&listing->runs, listing->count, &listing->capacity,
                    sizeof *listing->runs, error))
        return false;
    listing->runs[listing->count++] = *record;
    *record = (RunRecord){0};
    *enough = listing->filter->limit > 0 && listing->count >= listing->filter->limit;
    return true;
}

bool store_list_runs(Store *store, const RunFilter *filter, RunRecord **runs, int *count,
                     Error *error) {
    Listing listing = {.filter = filter};
    *runs = NULL;
    *count = 0;
    if (!filter_parse(&listing.words, filter->words, error))
        return false;
    bool done = store_visit_runs(store, &(RunVisitor){&listing, list_run}, error);
    filter_clear(&listing.words);
    if (!done) {
        store_free_runs(listing.runs, listing.count);
        return false;
    }
    *runs = listing.runs;
    *count = listing.count;
    return true;
}

void store_free_runs(RunRecord *runs, int count) {
    for (int i = 0; i < count; i++)
        record_clear(&runs[i]);
    free(runs);
}

bool store_count_runs(Store *store, int64_t *count, Error *error) {
    Query query;
    *count = 0;
    if (!query_begin(&query, store, "SELECT count(*) FROM runs", error))
        return false;
    while (query_next(&query))
        *count = query_integer(&query, 0);
    return query_end(&query, "the runs cannot be counted", error);
}

// ---- what people write on a run, and taking it away ---------------------------------------------

static bool set_text(Store *store, const char *sql, int64_t id, const char *text, size_t size,
                     const char *what, Error *error) {
    if (strlen(text) >= size)
        return error_fail(error, ERROR_USAGE, "the %s is longer than %zu bytes: shorten it", what,
                          size - 1);
    Query query;
    if (!query_begin(&query, store, sql, error))
        return false;
    query_put_text(&query, text);
    query_put_integer(&query, id);
    query_next(&query);
    int64_t changes = query_changes(&query);
    if (!query_end(&query, "the run cannot be changed", error))
        return false;
    return changes > 0 || fail_missing(store, id, error);
}

bool store_set_tag(Store *store, int64_t id, const char *tag, Error *error) {
    return set_text(store, "UPDATE runs SET tag = ? WHERE id = ?", id, tag, RECORD_NAME_SIZE, "tag",
                    error);
}

bool store_set_note(Store *store, int64_t id, const char *note, Error *error) {
    return set_text(store, "UPDATE runs SET note = ? WHERE id = ?", id, note, RECORD_TEXT_SIZE,
                    "note", error);
}

static bool run_statement(Store *store, const char *sql, const char *what, Error *error) {
    Query query;
    if (!query_begin(&query, store, sql, error))
        return false;
    query_next(&query);
    return query_end(&query, what, error);
}

// The newest matrix stays: its first run may be about to begin, and no other gets its id.
static bool remove_unused(Store *store, Error *error) {
    return run_statement(store,
                         "DELETE FROM scripts WHERE hash NOT IN"
                         " (SELECT script_hash FROM runs WHERE script_hash IS NOT NULL)",
                         "the scripts that no run needs cannot be removed", error) &&
           run_statement(store,
                         "DELETE FROM matrices WHERE id < (SELECT max(id) FROM matrices)"
                         " AND id NOT IN (SELECT matrix FROM runs WHERE matrix IS NOT NULL)",
                         "the matrices that no run needs cannot be removed", error);
}

// `sql` deletes it, or leaves it where it may not go.
static bool delete_row(Store *store, const char *sql, int64_t id, bool *is_gone, Error *error) {
    if (!store_refuse_living(store, id, error))
        return false;
    Query query;
    if (!query_begin(&query, store, sql, error))
        return false;
    query_put_integer(&query, id);
    query_next(&query);
    *is_gone = query_changes(&query) > 0;
    return query_end(&query, "the run cannot be removed", error);
}

static bool remove_row(Store *store, int64_t id, Error *error) {
    bool is_gone;
    if (!delete_row(store, "DELETE FROM runs WHERE id = ?", id, &is_gone, error))
        return false;
    return is_gone ? remove_unused(store, error) : fail_missing(store, id, error);
}

bool store_remove_run(Store *store, int64_t id, Error *error) {
    if (!store_begin(store, error))
        return false;
    if (store->updated_run == id)
        store->updated_run = 0;
    return store_end(store, remove_row(store, id, error), error);
}

// Its matrix stays: the next of its runs may be about to begin.
bool store_forget_run(Store *store, int64_t id, bool *is_gone, Error *error) {
    *is_gone = false;
    if (!store_begin(store, error))
        return false;
    bool done = delete_row(store,
                           "DELETE FROM runs WHERE id = ?1"
                           " AND NOT EXISTS (SELECT 1 FROM metrics WHERE run = ?1)"
                           " AND NOT EXISTS (SELECT 1 FROM series WHERE run = ?1)"
                           " AND NOT EXISTS (SELECT 1 FROM events WHERE run = ?1"
                           " AND kind = 'message')"
                           " AND NOT EXISTS (SELECT 1 FROM checkpoints WHERE run = ?1)"
                           " AND NOT EXISTS (SELECT 1 FROM commands WHERE run = ?1)",
                           id, is_gone, error);
    if (*is_gone && store->updated_run == id)
        store->updated_run = 0;
    return store_end(store, done, error);
}

bool store_remove_unused(Store *store, Error *error) {
    return store_begin(store, error) && store_end(store, remove_unused(store, error), error);
}

// ---- scripts and matrices -----------------------------------------------------------------------

char *store_read_script(Store *store, const char *hash, size_t *length, Error *error) {
    Query query;
    char *text = NULL;
    bool is_known = false;
    *length = 0;
    if (!query_begin(&query, store, "SELECT text FROM scripts WHERE hash = ?", error))
        return NULL;
    query_put_text(&query, hash);
    while (query_next(&query)) {
        const void *bytes = query_blob(&query, 0, length);
        is_known = true;
        if (!text)
            text = malloc(*length + 1);
        if (text) {
            memcpy(text, bytes ? bytes : "", *length);
            text[*length] = 0;
        }
    }
    if (!query_end(&query, "the script cannot be read", error)) {
        free(text);
        return NULL;
    }
    if (!is_known)
        error_fail(error, ERROR_USAGE, "no script %.64s in %s", hash, store->path);
    else if (!text)
        error_fail(error, ERROR_MEMORY, "no memory for a script of %zu bytes", *length);
    return text;
}

bool store_find_matrix(Store *store, const char *specification, int64_t *id, Error *error) {
    Query query;
    *id = 0;
    if (!query_begin(&query, store, "SELECT id FROM matrices WHERE specification = ?", error))
        return false;
    query_put_text(&query, specification);
    while (query_next(&query))
        *id = query_integer(&query, 0);
    return query_end(&query, "the matrices cannot be read", error);
}

bool store_keep_matrix(Store *store, const char *specification, int64_t *id, Error *error) {
    Query query;
    *id = 0;
    if (!store_begin(store, error))
        return false;
    bool done = query_begin(&query, store,
                            "INSERT OR IGNORE INTO matrices (specification) VALUES (?)", error);
    if (done) {
        query_put_text(&query, specification);
        query_next(&query);
        done = query_end(&query, "the matrix cannot be kept", error);
    }
    done = done && store_find_matrix(store, specification, id, error);
    return store_end(store, done, error);
}

bool store_next_matrix(Store *store, int64_t after, int64_t *id, char **specification,
                       Error *error) {
    Query query;
    bool has_memory = true;
    *id = 0;
    *specification = NULL;
    if (!query_begin(&query, store,
                     "SELECT id, specification FROM matrices WHERE id > ? ORDER BY id LIMIT 1",
                     error))
        return false;
    query_put_integer(&query, after);
    while (query_next(&query)) {
        *id = query_integer(&query, 0);
        *specification = strdup(query_word(&query, 1));
        has_memory = *specification != NULL;
    }
    if (query_end(&query, "the matrices cannot be read", error) && has_memory)
        return true;
    free(*specification);
    *specification = NULL;
    return has_memory ? false : error_fail(error, ERROR_MEMORY, "no memory for a matrix");
}
