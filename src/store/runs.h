// store/runs.h: the catalogue of runs: making, updating, finding, listing, removing them.
#pragma once

#include "store/record.h"
#include "store/store.h"

// A new run with a new id; record->id is set, and record->name made unique where it was left empty:
// EXPERIMENT-ID. A name that another run has is refused. `script` is its text (kept once a hash),
// of `script_length` bytes; NULL: unknown.
bool store_add_run(Store *store, RunRecord *record, const char *script, size_t script_length,
                   Error *error) MUST_CHECK;
// Writes all that may change while a run goes on (everything but id, name, tag, note, created,
// seed, experiment, parent, matrix). Lists that did not change since the last call are not written
// again.
bool store_update_run(Store *store, const RunRecord *record, Error *error) MUST_CHECK;

// Everything, lists included. The status is what liveness says (worker.h): a run whose worker is
// gone reads as dead.
bool store_read_run(Store *store, int64_t id, RunRecord *record, Error *error) MUST_CHECK;

// A time in which a run trained: from its start, or a resume, to the last event that is known of
// it.
typedef struct RunStretch {
    int64_t from_ms, to_ms; // wall clock, since 1970
} RunStretch;

// In order; none where nobody wrote down when it began. The caller frees the array.
bool store_read_stretches(Store *store, int64_t run, RunStretch **stretches, int *count,
                          Error *error) MUST_CHECK;

// RUN as people type it: a number, a unique name or a unique beginning of one (that is not all
// digits), @last, @last:fp16 (the last run of that precision or status), @last:EXPERIMENT.
// ERROR_USAGE with the nearest name.
bool store_find_run(Store *store, const char *text, int64_t *id, Error *error) MUST_CHECK;
// The same, and a beginning is not enough: for what cannot be taken back, which once the run that
// was meant is gone would take another whose name begins as its did.
bool store_find_whole_name(Store *store, const char *text, int64_t *id, Error *error) MUST_CHECK;

typedef struct RunFilter { // all that are set must hold
    const char *words;     // "status:failed precision:fp16 acc>0.9 tag:baseline cnn"; NULL: all
    int64_t matrix;        // 0: any
    int limit;             // 0: all; the newest first
} RunFilter;

// Without lists but metrics: parameters, layers, diagnoses, options and facts stay empty. The array
// is the caller's: store_free_runs.
bool store_list_runs(Store *store, const RunFilter *filter, RunRecord **runs, int *count,
                     Error *error) MUST_CHECK;
void store_free_runs(RunRecord *runs, int count);
// All that are in the history; quick beside listing them.
bool store_count_runs(Store *store, int64_t *count, Error *error) MUST_CHECK;
// Checks the words of a filter: fields and values that there are none of are refused, and the
// nearest right ones named. NULL as a store: metrics are not looked for.
bool store_check_filter(Store *store, const char *words, Error *error) MUST_CHECK;

bool store_set_tag(Store *store, int64_t id, const char *tag, Error *error) MUST_CHECK;
bool store_set_note(Store *store, int64_t id, const char *note, Error *error) MUST_CHECK;
// With all rows of it. Refused while its worker lives. Checkpoint files are the caller's to remove:
// first read them with store_list_checkpoints.
bool store_remove_run(Store *store, int64_t id, Error *error) MUST_CHECK;

// One that came to nothing; left as it is (*is_gone false) where it has results, points, messages
// of its script, checkpoints or orders.
bool store_forget_run(Store *store, int64_t id, bool *is_gone, Error *error) MUST_CHECK;

// Scripts and matrices that no run needs any more; store_remove_run does it too.
bool store_remove_unused(Store *store, Error *error) MUST_CHECK;

// The text of a script; the caller frees it. NULL with an error when the hash is unknown.
char *store_read_script(Store *store, const char *hash, size_t *length, Error *error);

// A matrix: what was asked for, by its specification, so that the same one is gone on with. Gives
// its id; 0: the history has none.
bool store_find_matrix(Store *store, const char *specification, int64_t *id,
                       Error *error) MUST_CHECK;
// The same; where there is none it is made.
bool store_keep_matrix(Store *store, const char *specification, int64_t *id,
                       Error *error) MUST_CHECK;
// The first whose id is above `after`, and what was asked for, which the caller frees. *id is 0
// after the last.
bool store_next_matrix(Store *store, int64_t after, int64_t *id, char **specification,
                       Error *error) MUST_CHECK;
