// Scans as they are read, listed and found.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/scan_tables.h"
#include "store/schema.h"

static const char cannot_read[] = "the scans cannot be read";

// None of the tables: no scan was kept yet. Some: others were lost.
static bool look_at_tables(Store *store, bool *has, Error *error) {
    if (!store_has_table(store, scan_tables[0], has, error))
        return false;
    for (int i = 1; *has && scan_tables[i]; i++) {
        bool is_there;
        if (!store_has_table(store, scan_tables[i], &is_there, error))
            return false;
        if (!is_there)
            return error_fail(error, ERROR_HISTORY,
                              "%s has scans, but not their table %s: put back a copy of the file, "
                              "or scan again, which makes it anew",
                              store_file(store), scan_tables[i]);
    }
    return true;
}

static bool is_live(const WorkerRow *row) {
    WorkerId here;
    pid_t pid;
    worker_here(&here);
    return worker_judge(row, &here, &pid) != WORKER_DEAD;
}

// ---- the whole ----------------------------------------------------------------------------------

enum { WORKER_AT = 28 }; // the first column of the worker

static void take_head(Query *query, ScanRecord *scan) {
    WorkerRow worker;
    scan->id = query_integer(query, 0);
    query_text(query, 1, scan->key, sizeof scan->key);
    query_text(query, 2, scan->subject, sizeof scan->subject);
    scan->run = query_integer(query, 3);
    scan->run_step = query_integer(query, 4);
    query_text(query, 5, scan->experiment, sizeof scan->experiment);
    query_text(query, 6, scan->script_path, sizeof scan->script_path);
    query_text(query, 7, scan->script_hash, sizeof scan->script_hash);
    scan->seed = query_integer(query, 8);
    query_text(query, 9, scan->device, sizeof scan->device);
    query_text(query, 10, scan->device_name, sizeof scan->device_name);
    scan->threads = (int)query_integer(query, 11);
    query_text(query, 12, scan->ways, sizeof scan->ways);
    scan->batches = query_integer(query, 13);
    scan->warm_up = query_integer(query, 14);
    scan->steps = query_integer(query, 15);
    scan->seeds = query_integer(query, 16);
    scan->within = query_number(query, 17);
    scan->tolerance = query_number(query, 18);
    scan->by_block = query_integer(query, 19) != 0;
    scan->created_ms = query_integer(query, 20);
    scan->ended_ms = query_integer(query, 21);
    scan->loss = query_number(query, 22);
    scan->left_out = (int)query_integer(query, 23);
    scan->rounds = (int)query_integer(query, 24);
    scan->is_final = query_integer(query, 25) != 0;
    scan->others = query_number(query, 26);
    query_text(query, 27, scan->policy_file, sizeof scan->policy_file);
    scan->is_live = worker_row_get(query, WORKER_AT, &worker) && is_live(&worker);
}

static bool read_head(Store *store, int64_t id, ScanRecord *scan, Error *error) {
    Query query;
    if (!query_begin(&query, store,
                     "SELECT id, key, subject, run, run_step, experiment, script_path, script_hash,"
                     " seed, device, device_name, threads, ways, batches, warm_up, steps, seeds,"
                     " within, tolerance, by_block, created_ms, ended_ms, loss, left_out, rounds,"
                     " verified, others_busy, policy_file, " WORKER_COLUMNS
                     " FROM scans w WHERE id = ?",
                     error))
        return false;
    query_put_integer(&query, id);
    while (query_next(&query))
        take_head(&query, scan);
    if (!query_end(&query, cannot_read, error))
        return false;
    return scan->id != 0 ||
           error_fail(error, ERROR_USAGE, "no scan %" PRId64 " in %s: mpbench scan makes one", id,
                      store_file(store));
}

static bool read_options(Store *store, ScanRecord *scan, Error *error) {
    Query query;
    int capacity = 0;
    if (!query_begin(&query, store,
                     "SELECT name, value FROM scan_options WHERE scan = ? ORDER BY position",
                     error))
        return false;
    query_put_integer(&query, scan->id);
    while (query_next(&query)) {
        if (!store_grow((void **)&scan->options, scan->option_count, &capacity,
                        sizeof *scan->options, error)) {
            query_drop(&query);
            return false;
        }
        RecordOption *option = &scan->options[scan->option_count++];
        query_text(&query, 0, option->name, sizeof option->name);
        query_text(&query, 1, option->value, sizeof option->value);
    }
    return query_end(&query, cannot_read, error);
}

// ---- its parts ----------------------------------------------------------------------------------

// The index of a format; -1: none of this scan's.
static int format_at(const ScanRecord *scan, const char *name, size_t length) {
    for (int i = 0; i <= scan->format_count; i++) {
        const char *own = scan_format_name(scan, i);
        if (strncmp(own, name, length) == 0 && own[length] == 0)
            return i;
    }
    return -1;
}

static bool take_format(Query *query, ScanRecord *scan) {
    const int at = (int)query_integer(query, 0);
    if (at != scan->format_count || at > SCAN_MOST_FORMATS)
        return false;
    scan->seconds[at] = query_is_null(query, 2) ? 0 : query_number(query, 2);
    scan->activations[at] = query_integer(query, 3);
    if (strcmp(query_word(query, 1), "fp32") == 0)
        return true;
    if (at == SCAN_MOST_FORMATS)
        return false;
    query_text(query, 1, scan->formats[at], SCAN_FORMAT_SIZE);
    scan->format_count++;
    return true;
}

static bool take_layer(Query *query, ScanRecord *scan) {
    const int at = scan->unit_count;
    if (at == SCAN_MOST_UNITS || query_integer(query, 0) != at)
        return false;
    query_text(query, 1, scan->units[at], sizeof scan->units[at]);
    scan->parameters[at] = query_integer(query, 2);
    scan->unit_count++;
    if (query_is_null(query, 3))
        return true;
    const char *policy = query_word(query, 3);
    scan->has_policy = true;
    const int format = format_at(scan, policy, strlen(policy));
    scan->policy[at] = format < 0 ? scan->format_count : format;
    return format >= 0;
}

static ScanCell *cell_of(Query *query, ScanRecord *scan) {
    const int64_t unit = query_integer(query, 0);
    const char *name = query_word(query, 1);
    const int format = format_at(scan, name, strlen(name));
    return unit >= 0 && unit < scan->unit_count && format >= 0 && format < scan->format_count
               ? &scan->cells[unit][format]
               : NULL;
}

static bool take_cell(Query *query, ScanRecord *scan) {
    ScanCell *cell = cell_of(query, scan);
    if (!cell)
        return false;
    *cell = (ScanCell){.is_known = true, .is_broken = query_integer(query, 2) != 0};
    for (const ScanReading *reading = scan_readings; reading->name; reading++)
        *scan_reading(cell, reading) = (double)NAN;
    return true;
}

// One that a later program measures is passed over.
static bool take_reading(Query *query, ScanRecord *scan) {
    ScanCell *cell = cell_of(query, scan);
    const char *name = query_word(query, 2);
    for (const ScanReading *reading = scan_readings; cell && reading->name; reading++)
        if (strcmp(reading->name, name) == 0)
            *scan_reading(cell, reading) = query_value(query, 3);
    return cell != NULL;
}

static bool take_training(Query *query, ScanRecord *scan) {
    if (scan->training_count == SCAN_MOST_TRAININGS ||
        query_integer(query, 0) != scan->training_count)
        return false;
    ScanTraining *training = &scan->trainings[scan->training_count++];
    query_text(query, 1, training->label, sizeof training->label);
    const char *formats = query_word(query, 2);
    for (int i = 0; i < scan->unit_count; i++) {
        const size_t length = strcspn(formats, " ");
        const int format = format_at(scan, formats, length);
        if (format < 0)
            return false;
        training->format[i] = (short)format;
        formats += length + (formats[length] == ' ');
    }
    training->is_known = query_integer(query, 3) != 0;
    training->loss = query_value(query, 4);
    training->above = query_value(query, 6);
    training->interval = query_number(query, 8);
    training->seconds = query_number(query, 9);
    training->broken = (int)query_integer(query, 10);
    training->is_within = query_integer(query, 11) != 0;
    return !*formats;
}

static bool take_seed(Query *query, ScanRecord *scan) {
    const int64_t training = query_integer(query, 0), seed = query_integer(query, 1);
    if (training < 0 || training >= scan->training_count || seed < 1 || seed > SCAN_MOST_SEEDS)
        return false;
    ScanTraining *of = &scan->trainings[training];
    of->seeds[seed - 1].is_known = true;
    of->seeds[seed - 1].loss = query_value(query, 2);
    of->seeds[seed - 1].seconds = query_number(query, 4);
    return true;
}

static bool take_kept(Query *query, ScanRecord *scan) {
    const int64_t at = query_integer(query, 0);
    if (at < 0 || at >= scan->unit_count)
        return false;
    query_text(query, 1, scan->kept[at], sizeof scan->kept[at]);
    query_text(query, 2, scan->rests[at], sizeof scan->rests[at]);
    return scan->kept[at][0] && scan->rests[at][0];
}

static bool take_lowered(Query *query, ScanRecord *scan) {
    const char *name = query_word(query, 0);
    const int at = format_at(scan, name, strlen(name));
    const int64_t round = query_integer(query, 1);
    if (at < 0 || at == scan->format_count || round != scan->lowered[at].round_count ||
        round >= ROUNDS_MOST || !(query_number(query, 2) > 0))
        return false;
    scan->lowered[at].rounds[scan->lowered[at].round_count++] = query_number(query, 2);
    scan->lowered[at].activations = query_integer(query, 3);
    double sorted[ROUNDS_MOST];
    memcpy(sorted, scan->lowered[at].rounds, sizeof sorted);
    scan->lowered[at].seconds = rounds_median(sorted, scan->lowered[at].round_count);
    return true;
}

static bool take_result(Query *query, ScanRecord *scan) {
    const int64_t at = query_integer(query, 0), seed = query_integer(query, 1);
    if (at < 0 || at >= scan->training_count || seed < 0 || seed > SCAN_MOST_SEEDS)
        return false;
    ScanTraining *training = &scan->trainings[at];
    query_text(query, 2, scan->metric, sizeof scan->metric);
    if (seed > 0) {
        training->seeds[seed - 1].has_result = true;
        training->seeds[seed - 1].result = query_value(query, 3);
        return true;
    }
    training->result = query_value(query, 3);
    training->worse = query_value(query, 5);
    training->worse_interval = query_number(query, 7);
    return true;
}

static bool take_skips(Query *query, ScanRecord *scan) {
    const int64_t at = query_integer(query, 0), seed = query_integer(query, 1);
    if (at < 0 || at >= scan->training_count || seed < 1 || seed > SCAN_MOST_SEEDS)
        return false;
    ScanSeed *of = &scan->trainings[at].seeds[seed - 1];
    of->has_skipped = true;
    of->skipped = query_integer(query, 2);
    return of->skipped >= 0;
}

static bool take_told(Query *query, ScanRecord *scan) {
    char text[RECORD_DIAGNOSIS_SIZE];
    query_text(query, 1, text, sizeof text);
    scan_take_told(scan, query_word(query, 0), text);
    return true;
}

// Rounds come one after the other, as the times of all do.
static bool take_round(Query *query, ScanRecord *scan) {
    const bool is_pass = strcmp(query_word(query, 0), "pass") == 0;
    const int64_t at = query_integer(query, 1), round = query_integer(query, 2);
    if (at < 0 || at >= (is_pass ? scan->format_count + 1 : scan->training_count))
        return false;
    double *rounds = is_pass ? scan->pass_rounds[at] : scan->trainings[at].rounds;
    int *count = is_pass ? &scan->pass_round_count[at] : &scan->trainings[at].round_count;
    if (round != *count || round >= ROUNDS_MOST || !(query_number(query, 3) > 0))
        return false;
    rounds[(*count)++] = query_number(query, 3);
    return true;
}

// A row that makes no sense is damage: it is left out where the store rescues, else an error.
static bool read_part(Store *store, const char *sql, bool (*take)(Query *query, ScanRecord *scan),
                      ScanRecord *scan, Error *error) {
    Query query;
    bool is_sound = true;
    if (!query_begin(&query, store, sql, error))
        return false;
    query_put_integer(&query, scan->id);
    while (query_next(&query))
        is_sound = take(&query, scan) && is_sound;
    if (!query_end(&query, cannot_read, error))
        return false;
    return is_sound || rescue_lose(store) ||
           error_fail(error, ERROR_HISTORY,
                      "scan %" PRId64 " of %s is damaged, a row of it makes no sense: measure it "
                      "anew with mpbench scan --again, and remove it with mpbench rm scan:%" PRId64,
                      scan->id, store_file(store), scan->id);
}

static bool read_parts(Store *store, ScanRecord *scan, Error *error) {
    static const struct {
        const char *sql;
        bool (*take)(Query *query, ScanRecord *scan);
    } parts[] = {
        {"SELECT position, format, seconds, activations FROM scan_formats WHERE scan = ?"
         " ORDER BY position",
         take_format},
        {"SELECT layer, name, parameters, policy FROM scan_layers WHERE scan = ? ORDER BY layer",
         take_layer},
        {"SELECT layer, format, breaks FROM scan_cells WHERE scan = ?", take_cell},
        {"SELECT layer, format, name, value, kind FROM scan_readings WHERE scan = ?", take_reading},
        {"SELECT training, label, formats, ended, loss, loss_kind, above, above_kind, interval,"
         " seconds, diverged, within FROM scan_trainings WHERE scan = ? ORDER BY training",
         take_training},
        {"SELECT training, seed, loss, kind, seconds FROM scan_seeds WHERE scan = ?", take_seed},
        {"SELECT kind, text FROM diagnoses WHERE run = (SELECT run FROM scans WHERE id = ?)"
         " ORDER BY position",
         take_told},
    };
    // What scans of before have no table for.
    static const struct {
        const char *table, *sql;
        bool (*take)(Query *query, ScanRecord *scan);
    } later[] = {
        {scan_rounds_table,
         "SELECT what, position, round, seconds FROM scan_rounds WHERE scan = ?"
         " ORDER BY what, position, round",
         take_round},
        {scan_kept_table, "SELECT layer, kind, rests FROM scan_kept WHERE scan = ?", take_kept},
        {scan_lowered_table,
         "SELECT format, round, seconds, activations FROM scan_lowered WHERE scan = ?"
         " ORDER BY format, round",
         take_lowered},
        {scan_results_table,
         "SELECT training, seed, name, value, kind, worse, worse_kind, interval FROM scan_results"
         " WHERE scan = ?",
         take_result},
        {scan_skips_table, "SELECT training, seed, skipped FROM scan_skips WHERE scan = ?",
         take_skips},
    };
    bool has, done = read_options(store, scan, error);
    for (size_t i = 0; done && i < sizeof parts / sizeof *parts; i++)
        done = read_part(store, parts[i].sql, parts[i].take, scan, error);
    for (size_t i = 0; done && i < sizeof later / sizeof *later; i++)
        done = store_has_table(store, later[i].table, &has, error) &&
               (!has || read_part(store, later[i].sql, later[i].take, scan, error));
    return done;
}

static void clear(ScanRecord *scan) {
    free(scan->options);
    memset(scan, 0, sizeof *scan);
    scan->loss = scan->others = (double)NAN;
}

static bool fail_unknown(const Store *store, const char *text, Error *error) {
    return error_fail(error, ERROR_USAGE, "scan:%.60s: no such scan in %s: mpbench scan makes one",
                      text, store_file(store));
}

bool store_read_scan(Store *store, int64_t id, ScanRecord *scan, Error *error) {
    bool has;
    clear(scan);
    if (!store_begin_reading(store, error))
        return false;
    bool done = look_at_tables(store, &has, error);
    if (done && !has) {
        char number[32];
        snprintf(number, sizeof number, "%" PRId64, id);
        done = fail_unknown(store, number, error);
    }
    done = done && read_head(store, id, scan, error) && read_parts(store, scan, error);
    store_end_reading(store);
    for (int i = 0; done && i < scan->training_count; i++) // scans of before claimed one
        scan_forget_alike(scan, &scan->trainings[i]);
    return done;
}

// ---- lists --------------------------------------------------------------------------------------

static void take_entry(Query *query, ScanEntry *entry) {
    WorkerRow worker;
    *entry = (ScanEntry){.id = query_integer(query, 0),
                         .run = query_integer(query, 1),
                         .created_ms = query_integer(query, 4),
                         .ended_ms = query_integer(query, 5),
                         .is_final = query_integer(query, 6) != 0,
                         .units = (int)query_integer(query, 7),
                         .formats = (int)query_integer(query, 8),
                         .cells = (int)query_integer(query, 9)};
    query_text(query, 2, entry->subject, sizeof entry->subject);
    query_text(query, 3, entry->experiment, sizeof entry->experiment);
    entry->is_live = worker_row_get(query, 10, &worker) && is_live(&worker);
}

static bool read_entries(Store *store, ScanEntry **list, int *count, Error *error) {
    Query query;
    int capacity = 0;
    if (!query_begin(&query, store,
                     "SELECT id, run, subject, experiment, created_ms, ended_ms, verified,"
                     " (SELECT count(*) FROM scan_layers WHERE scan = w.id),"
                     " (SELECT count(*) FROM scan_formats WHERE scan = w.id) - 1,"
                     " (SELECT count(*) FROM scan_cells WHERE scan = w.id), " WORKER_COLUMNS
                     " FROM scans w ORDER BY id DESC",
                     error))
        return false;
    while (query_next(&query)) {
        if (!store_grow((void **)list, *count, &capacity, sizeof **list, error)) {
            query_drop(&query);
            return false;
        }
        take_entry(&query, &(*list)[(*count)++]);
    }
    return query_end(&query, cannot_read, error);
}

bool store_list_scans(Store *store, ScanEntry **list, int *count, Error *error) {
    bool has;
    *list = NULL;
    *count = 0;
    if (!store_begin_reading(store, error))
        return false;
    const bool done =
        look_at_tables(store, &has, error) && (!has || read_entries(store, list, count, error));
    store_end_reading(store);
    if (!done) {
        free(*list);
        *list = NULL;
        *count = 0;
    }
    return done;
}

// The newest of those that `sql` lets through; 0: there is none.
static bool find(Store *store, const char *sql, const char *text, int64_t *id, Error *error) {
    Query query;
    bool has;
    *id = 0;
    if (!store_has_table(store, scan_tables[0], &has, error))
        return false;
    if (!has)
        return true;
    if (!query_begin(&query, store, sql, error))
        return false;
    query_put_text(&query, text);
    while (query_next(&query))
        *id = query_integer(&query, 0);
    return query_end(&query, cannot_read, error);
}

bool store_find_scan_by_key(Store *store, const char *key, int64_t *id, Error *error) {
    return find(store, "SELECT max(id) FROM scans WHERE key = ?", key, id, error);
}

bool store_find_scan(Store *store, const char *text, int64_t *id, Error *error) {
    return find(store, "SELECT max(id) FROM scans WHERE ?1 = 'last' OR CAST(id AS TEXT) = ?1", text,
                id, error) &&
           (*id != 0 || fail_unknown(store, text, error));
}
