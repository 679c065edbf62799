// Scans as they are written, each part as it is measured.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "store/scan_tables.h"
#include "store/schema.h"

static const char cannot_write[] = "the scan cannot be written";

const char *const scan_tables[] = {"scans",          "scan_options", "scan_formats",
                                   "scan_layers",    "scan_cells",   "scan_readings",
                                   "scan_trainings", "scan_seeds",   NULL};
const char scan_rounds_table[] = "scan_rounds";
const char scan_kept_table[] = "scan_kept";
const char scan_lowered_table[] = "scan_lowered";
const char scan_results_table[] = "scan_results";
const char scan_skips_table[] = "scan_skips";

static bool run_query(Query *query, Error *error) {
    query_next(query);
    return query_end(query, cannot_write, error);
}

// ---- who measures it ----------------------------------------------------------------------------

static void put_worker(Query *query, const WorkerId *worker) {
    query_put_text(query, worker->token);
    query_put_text(query, worker->host);
    query_put_text(query, worker->boot);
    query_put_integer(query, worker->pid_space);
    query_put_integer(query, worker->pid);
    query_put_integer(query, worker->started);
    query_put_integer(query, worker_boot_ms());
    query_put_integer(query, store_wall_ms());
}

// The row must be there for it.
static bool touch(Query *query, int64_t id, Error *error) {
    query_next(query);
    const int64_t changes = query_changes(query);
    if (!query_end(query, cannot_write, error))
        return false;
    return changes > 0 || error_fail(error, ERROR_FAILED,
                                     "scan %" PRId64 " was removed meanwhile: this one ends", id);
}

// Each write is a sign of life.
static bool beat(Store *store, const ScanRecord *scan, Error *error) {
    Query query;
    if (!query_begin(&query, store, "UPDATE scans SET beat_ms = ?, beat_wall_ms = ? WHERE id = ?",
                     error))
        return false;
    query_put_integer(&query, worker_boot_ms());
    query_put_integer(&query, store_wall_ms());
    query_put_integer(&query, scan->id);
    return touch(&query, scan->id, error);
}

static bool refuse_living(Store *store, int64_t id, const char *remedy, Error *error) {
    Query query;
    WorkerRow row;
    WorkerId here;
    pid_t pid;
    bool has_worker = false, is_live = false;
    if (!query_begin(&query, store, "SELECT " WORKER_COLUMNS " FROM scans w WHERE w.id = ?", error))
        return false;
    query_put_integer(&query, id);
    while (query_next(&query))
        has_worker = worker_row_get(&query, 0, &row);
    if (!query_end(&query, "the scan cannot be read", error))
        return false;
    if (has_worker) {
        worker_here(&here);
        is_live = worker_judge(&row, &here, &pid) != WORKER_DEAD;
    }
    return !is_live || error_fail(error, ERROR_TAKEN,
                                  "scan %" PRId64 " is measured by process %" PRId64 " on %s: %s",
                                  id, row.id.pid, row.id.host, remedy);
}

static bool write_owner(Store *store, int64_t id, const WorkerId *worker, Error *error) {
    Query query;
    if (!query_begin(&query, store,
                     "UPDATE scans SET token = ?, host = ?, boot = ?, pid_space = ?, pid = ?,"
                     " started = ?, beat_ms = ?, beat_wall_ms = ? WHERE id = ?",
                     error))
        return false;
    put_worker(&query, worker);
    query_put_integer(&query, id);
    return touch(&query, id, error);
}

bool store_own_scan(Store *store, int64_t id, const WorkerId *worker, Error *error) {
    return store_begin(store, error) &&
           store_end(
               store,
               refuse_living(store, id, "wait for its end, or measure anew with --again", error) &&
                   write_owner(store, id, worker, error),
               error);
}

bool store_release_scan(Store *store, int64_t id, const WorkerId *worker, Error *error) {
    Query query;
    if (!query_begin(&query, store, "UPDATE scans SET token = NULL WHERE id = ? AND token = ?",
                     error))
        return false;
    query_put_integer(&query, id);
    query_put_text(&query, worker->token);
    return run_query(&query, error);
}

// ---- a new one ----------------------------------------------------------------------------------

static bool insert_scan(Store *store, ScanRecord *scan, const WorkerId *worker, Error *error) {
    Query query;
    scan->created_ms = store_wall_ms();
    if (!query_begin(&query, store,
                     "INSERT INTO scans (key, subject, run, run_step, experiment, script_path,"
                     " script_hash, seed, device, device_name, threads, ways, batches, warm_up,"
                     " steps, seeds, within, tolerance, by_block, created_ms, token, host, boot,"
                     " pid_space, pid, started, beat_ms, beat_wall_ms)"
                     " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
                     " ?, ?, ?, ?, ?) RETURNING id",
                     error))
        return false;
    query_put_text(&query, scan->key);
    query_put_text(&query, scan->subject);
    query_put_positive(&query, scan->run);
    query_put_known(&query, scan->run > 0 ? scan->run_step : RECORD_UNKNOWN);
    query_put_text(&query, scan->experiment);
    query_put_text(&query, scan->script_path);
    query_put_text(&query, scan->script_hash);
    query_put_integer(&query, scan->seed);
    query_put_text(&query, scan->device);
    query_put_text(&query, scan->device_name);
    query_put_integer(&query, scan->threads);
    query_put_text(&query, scan->ways);
    query_put_integer(&query, scan->batches);
    query_put_integer(&query, scan->warm_up);
    query_put_integer(&query, scan->steps);
    query_put_integer(&query, scan->seeds);
    query_put_number(&query, scan->within);
    query_put_number(&query, scan->tolerance);
    query_put_integer(&query, scan->by_block);
    query_put_integer(&query, scan->created_ms);
    put_worker(&query, worker);
    while (query_next(&query))
        scan->id = query_integer(&query, 0);
    return query_end(&query, cannot_write, error);
}

static bool insert_option(Store *store, int64_t id, int position, const RecordOption *option,
                          Error *error) {
    Query query;
    if (!query_begin(&query, store, "INSERT INTO scan_options VALUES (?, ?, ?, ?)", error))
        return false;
    query_put_integer(&query, id);
    query_put_integer(&query, position);
    query_put_text(&query, option->name);
    query_put_text(&query, option->value);
    return run_query(&query, error);
}

static bool put_format(Store *store, const ScanRecord *scan, int format, Error *error) {
    Query query;
    if (!query_begin(&query, store, "INSERT OR REPLACE INTO scan_formats VALUES (?, ?, ?, ?, ?)",
                     error))
        return false;
    const bool is_known = scan->seconds[format] > 0;
    query_put_integer(&query, scan->id);
    query_put_integer(&query, format);
    query_put_text(&query, scan_format_name(scan, format));
    query_put_number(&query, is_known ? scan->seconds[format] : (double)NAN);
    query_put_known(&query, is_known ? scan->activations[format] : RECORD_UNKNOWN);
    return run_query(&query, error);
}

static bool put_formats(Store *store, const ScanRecord *scan, Error *error) {
    bool done = true;
    for (int i = 0; done && i <= scan->format_count; i++)
        done = put_format(store, scan, i, error);
    return done;
}

static bool add(Store *store, ScanRecord *scan, const WorkerId *worker, Error *error) {
    bool done = true;
    for (int i = 0; done && scan_tables[i]; i++)
        done = store_make_table(store, scan_tables[i], error);
    done = done && insert_scan(store, scan, worker, error) && put_formats(store, scan, error);
    for (int i = 0; done && i < scan->option_count; i++)
        done = insert_option(store, scan->id, i, &scan->options[i], error);
    return done;
}

bool store_add_scan(Store *store, ScanRecord *scan, const WorkerId *worker, Error *error) {
    return store_begin(store, error) && store_end(store, add(store, scan, worker, error), error);
}

// ---- what was found -----------------------------------------------------------------------------

static bool put_layer(Store *store, const ScanRecord *scan, int unit, Error *error) {
    Query query;
    if (!query_begin(&query, store, "INSERT OR REPLACE INTO scan_layers VALUES (?, ?, ?, ?, ?)",
                     error))
        return false;
    query_put_integer(&query, scan->id);
    query_put_integer(&query, unit);
    query_put_text(&query, scan->units[unit]);
    query_put_integer(&query, scan->parameters[unit]);
    query_put_text(&query, scan->has_policy ? scan_format_name(scan, scan->policy[unit]) : NULL);
    return run_query(&query, error);
}

static bool put_kept(Store *store, const ScanRecord *scan, int unit, Error *error) {
    Query query;
    if (!scan_is_kept(scan, unit))
        return true;
    if (!store_make_table(store, scan_kept_table, error) ||
        !query_begin(&query, store, "INSERT OR REPLACE INTO scan_kept VALUES (?, ?, ?, ?)", error))
        return false;
    query_put_integer(&query, scan->id);
    query_put_integer(&query, unit);
    query_put_text(&query, scan->kept[unit]);
    query_put_text(&query, scan->rests[unit]);
    return run_query(&query, error);
}

// What is known of the whole.
static bool put_head(Store *store, const ScanRecord *scan, Error *error) {
    Query query;
    if (!query_begin(&query, store,
                     "UPDATE scans SET loss = ?, left_out = ?, rounds = ?, verified = ?"
                     " WHERE id = ?",
                     error))
        return false;
    query_put_number(&query, scan->loss);
    query_put_integer(&query, scan->left_out);
    query_put_integer(&query, scan->rounds);
    query_put_integer(&query, scan->is_final);
    query_put_integer(&query, scan->id);
    return touch(&query, scan->id, error);
}

static bool put_layers(Store *store, const ScanRecord *scan, Error *error) {
    bool done = put_head(store, scan, error) && beat(store, scan, error);
    for (int i = 0; done && i < scan->unit_count; i++)
        done = put_layer(store, scan, i, error) && put_kept(store, scan, i, error);
    return done;
}

bool store_put_scan_layers(Store *store, const ScanRecord *scan, Error *error) {
    return store_begin(store, error) && store_end(store, put_layers(store, scan, error), error);
}

static bool put_reading(Store *store, const ScanRecord *scan, int unit, int format,
                        const char *name, double value, Error *error) {
    Query query;
    if (!query_begin(&query, store,
                     "INSERT OR REPLACE INTO scan_readings VALUES (?, ?, ?, ?, ?, ?)", error))
        return false;
    query_put_integer(&query, scan->id);
    query_put_integer(&query, unit);
    query_put_text(&query, scan->formats[format]);
    query_put_text(&query, name);
    query_put_number(&query, value);
    query_put_kind(&query, value);
    return run_query(&query, error);
}

static bool put_cell(Store *store, const ScanRecord *scan, int unit, int format, Error *error) {
    ScanCell cell = scan->cells[unit][format];
    Query query;
    if (!beat(store, scan, error) ||
        !query_begin(&query, store, "INSERT OR REPLACE INTO scan_cells VALUES (?, ?, ?, ?)", error))
        return false;
    query_put_integer(&query, scan->id);
    query_put_integer(&query, unit);
    query_put_text(&query, scan->formats[format]);
    query_put_integer(&query, cell.is_broken);
    bool done = run_query(&query, error);
    for (const ScanReading *reading = scan_readings; done && reading->name; reading++) {
        const double value = *scan_reading(&cell, reading);
        done = isnan(value) || put_reading(store, scan, unit, format, reading->name, value, error);
    }
    return done;
}

bool store_put_scan_cell(Store *store, const ScanRecord *scan, int unit, int format, Error *error) {
    return store_begin(store, error) &&
           store_end(store, put_cell(store, scan, unit, format, error), error);
}

static bool put_round(Store *store, int64_t id, const char *what, int position, int round,
                      double seconds, Error *error) {
    Query query;
    if (!query_begin(&query, store, "INSERT INTO scan_rounds VALUES (?, ?, ?, ?, ?)", error))
        return false;
    query_put_integer(&query, id);
    query_put_text(&query, what);
    query_put_integer(&query, position);
    query_put_integer(&query, round);
    query_put_number(&query, seconds);
    return run_query(&query, error);
}

// What was timed again in fewer rounds keeps none of those of before.
static bool drop_rounds(Store *store, int64_t id, const char *what, int position, Error *error) {
    Query query;
    if (!query_begin(&query, store,
                     "DELETE FROM scan_rounds WHERE scan = ? AND what = ? AND position = ?", error))
        return false;
    query_put_integer(&query, id);
    query_put_text(&query, what);
    query_put_integer(&query, position);
    return run_query(&query, error);
}

static bool put_rounds(Store *store, int64_t id, const char *what, int position,
                       const double *rounds, int count, Error *error) {
    bool done = count == 0 || (store_make_table(store, scan_rounds_table, error) &&
                               drop_rounds(store, id, what, position, error));
    for (int i = 0; done && i < count; i++)
        done = put_round(store, id, what, position, i, rounds[i], error);
    return done;
}

static bool put_lowered(Store *store, const ScanRecord *scan, int format, int round, Error *error) {
    Query query;
    if (!store_make_table(store, scan_lowered_table, error) ||
        !query_begin(&query, store, "INSERT OR REPLACE INTO scan_lowered VALUES (?, ?, ?, ?, ?)",
                     error))
        return false;
    query_put_integer(&query, scan->id);
    query_put_text(&query, scan->formats[format]);
    query_put_integer(&query, round);
    query_put_number(&query, scan->lowered[format].rounds[round]);
    query_put_integer(&query, scan->lowered[format].activations);
    return run_query(&query, error);
}

static bool put_costs(Store *store, const ScanRecord *scan, Error *error) {
    bool done = beat(store, scan, error) && put_formats(store, scan, error);
    for (int i = 0; done && i <= scan->format_count; i++)
        done = put_rounds(store, scan->id, "pass", i, scan->pass_rounds[i],
                          scan->pass_round_count[i], error);
    for (int i = 0; done && i < scan->format_count; i++)
        for (int round = 0; done && round < scan->lowered[i].round_count; round++)
            done = put_lowered(store, scan, i, round, error);
    return done;
}

bool store_put_scan_costs(Store *store, const ScanRecord *scan, Error *error) {
    return store_begin(store, error) && store_end(store, put_costs(store, scan, error), error);
}

static bool put_seed(Store *store, const ScanRecord *scan, int training, int seed, Error *error) {
    Query query;
    if (!query_begin(&query, store, "INSERT OR REPLACE INTO scan_seeds VALUES (?, ?, ?, ?, ?, ?)",
                     error))
        return false;
    const double loss = scan->trainings[training].seeds[seed].loss;
    query_put_integer(&query, scan->id);
    query_put_integer(&query, training);
    query_put_integer(&query, seed + 1);
    query_put_number(&query, loss);
    query_put_kind(&query, loss);
    query_put_number(&query, scan->trainings[training].seeds[seed].seconds);
    return run_query(&query, error);
}

static bool put_result(Store *store, const ScanRecord *scan, int training, int seed, double value,
                       double worse, double interval, Error *error) {
    Query query;
    if (!query_begin(&query, store,
                     "INSERT OR REPLACE INTO scan_results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                     error))
        return false;
    query_put_integer(&query, scan->id);
    query_put_integer(&query, training);
    query_put_integer(&query, seed);
    query_put_text(&query, scan->metric);
    query_put_number(&query, value);
    query_put_kind(&query, value);
    query_put_number(&query, worse);
    query_put_kind(&query, worse);
    query_put_number(&query, interval);
    return run_query(&query, error);
}

static bool put_results(Store *store, const ScanRecord *scan, int at, Error *error) {
    const ScanTraining *training = &scan->trainings[at];
    if (!scan->metric[0])
        return true;
    bool done = store_make_table(store, scan_results_table, error);
    for (int i = 0; done && i < SCAN_MOST_SEEDS; i++)
        done = !training->seeds[i].has_result ||
               put_result(store, scan, at, i + 1, training->seeds[i].result, (double)NAN,
                          (double)NAN, error);
    return done &&
           (!training->is_known || put_result(store, scan, at, 0, training->result, training->worse,
                                              training->worse_interval, error));
}

static bool put_skips(Store *store, const ScanRecord *scan, int at, Error *error) {
    const ScanTraining *training = &scan->trainings[at];
    bool done = store_make_table(store, scan_skips_table, error);
    for (int i = 0; done && i < SCAN_MOST_SEEDS; i++) {
        Query query;
        if (!training->seeds[i].has_skipped)
            continue;
        if (!query_begin(&query, store, "INSERT OR REPLACE INTO scan_skips VALUES (?, ?, ?, ?)",
                         error))
            return false;
        query_put_integer(&query, scan->id);
        query_put_integer(&query, at);
        query_put_integer(&query, i + 1);
        query_put_integer(&query, training->seeds[i].skipped);
        done = run_query(&query, error);
    }
    return done;
}

static bool put_training(Store *store, const ScanRecord *scan, int at, Error *error) {
    const ScanTraining *training = &scan->trainings[at];
    char formats[SCAN_FORMATS_SIZE] = "";
    size_t used = 0;
    Query query;
    for (int i = 0; i < scan->unit_count; i++)
        used += (size_t)snprintf(formats + used, sizeof formats - used, "%s%s", i > 0 ? " " : "",
                                 scan_format_name(scan, training->format[i]));
    if (!beat(store, scan, error) ||
        !query_begin(
            &query, store,
            "INSERT OR REPLACE INTO scan_trainings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            error))
        return false;
    query_put_integer(&query, scan->id);
    query_put_integer(&query, at);
    query_put_text(&query, training->label);
    query_put_text(&query, formats);
    query_put_integer(&query, training->is_known);
    query_put_number(&query, training->loss);
    query_put_kind(&query, training->loss);
    query_put_number(&query, training->above);
    query_put_kind(&query, training->above);
    query_put_number(&query, training->interval);
    query_put_number(&query, training->seconds);
    query_put_integer(&query, training->broken);
    query_put_integer(&query, training->is_within);
    bool done = run_query(&query, error);
    for (int seed = 0; done && seed < SCAN_MOST_SEEDS; seed++)
        done = !training->seeds[seed].is_known || put_seed(store, scan, at, seed, error);
    return done && put_results(store, scan, at, error) && put_skips(store, scan, at, error) &&
           put_rounds(store, scan->id, "step", at, training->rounds, training->round_count, error);
}

bool store_put_scan_training(Store *store, const ScanRecord *scan, int training, Error *error) {
    return store_begin(store, error) &&
           store_end(store, put_training(store, scan, training, error), error);
}

bool store_end_scan(Store *store, const ScanRecord *scan, const WorkerId *worker, Error *error) {
    Query query;
    if (!query_begin(&query, store,
                     "UPDATE scans SET ended_ms = ?, others_busy = ?, policy_file = ?,"
                     " token = nullif(token, ?) WHERE id = ?",
                     error))
        return false;
    query_put_positive(&query, scan->ended_ms);
    query_put_number(&query, scan->others);
    query_put_text(&query, scan->policy_file);
    query_put_text(&query, worker->token);
    query_put_integer(&query, scan->id);
    return touch(&query, scan->id, error);
}

// ---- removed ------------------------------------------------------------------------------------

static bool remove_scan(Store *store, int64_t id, Error *error) {
    Query query;
    if (!refuse_living(store, id, "end it first", error) ||
        !query_begin(&query, store, "DELETE FROM scans WHERE id = ?", error))
        return false;
    query_put_integer(&query, id);
    return touch(&query, id, error);
}

bool store_remove_scan(Store *store, int64_t id, Error *error) {
    return store_begin(store, error) && store_end(store, remove_scan(store, id, error), error);
}
