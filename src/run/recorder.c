// The life of a recorder, and what the run's thread puts into it.
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "run/recorder_private.h"
#include "run/run_private.h"
#include "store/runs.h"

// ---- life ---------------------------------------------------------------------------------------

Recorder *recorder_new(const char *database, Error *error) {
    char path[STORE_PATH_SIZE];
    if (!store_path(database, path, error))
        return NULL;
    Recorder *recorder = calloc(1, sizeof *recorder);
    if (!recorder) {
        error_fail(error, ERROR_MEMORY, "no memory for a recorder");
        return NULL;
    }
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&recorder->to_writer, &steady);
    pthread_cond_init(&recorder->to_run, &steady);
    pthread_condattr_destroy(&steady);
    pthread_mutex_init(&recorder->lock, NULL);
    recorder->patience = 60;
    recorder->ring = ring_new(RING_BYTES, error);
    if (!recorder->ring || !worker_identify(&recorder->worker, error) ||
        !(recorder->store = store_open(path, STORE_WRITE, error))) {
        recorder_free(recorder);
        return NULL;
    }
    return recorder;
}

static void drop_series_writer(Recorder *recorder) {
    series_writer_free(recorder->series_writer);
    recorder->series_writer = NULL;
}

void recorder_free(Recorder *recorder) {
    if (!recorder)
        return;
    recorder_stop_writer(recorder);
    drop_series_writer(recorder);
    store_close(recorder->store);
    ring_free(recorder->ring);
    RunRecord *left = atomic_exchange(&recorder->snapshot, NULL);
    if (left)
        record_clear(left);
    free(left);
    pthread_cond_destroy(&recorder->to_writer);
    pthread_cond_destroy(&recorder->to_run);
    pthread_mutex_destroy(&recorder->lock);
    free(recorder);
}

int recorder_segment(const Recorder *recorder) {
    return series_writer_segment(recorder->series_writer);
}

const char *recorder_file(const Recorder *recorder) {
    return store_file(recorder->store);
}

static bool add_row(Recorder *recorder, Run *run, RunRecord *record, Error *error) {
    const RunOptions *options = run->options;
    const RunScript *script = &run->script;
    Store *store = recorder->store;
    const char *why = options->parent ? "fork" : "start";
    if (!store_add_run(store, record, script->text, script->length, error) ||
        !store_own_run(store, record->id, &recorder->worker, error))
        return false;
    recorder->series_writer = series_writer_new(store, record->id, options->from, why, error);
    return recorder->series_writer != NULL;
}

// A new run: its row, its worker and its first segment are there together.
static bool make_row(Recorder *recorder, Run *run, Error *error) {
    RunRecord record;
    run_look_again(run);
    if (!run_describe(run, &record, error))
        return false;
    if (!run->options->name)
        record.name[0] = 0; // the store finds one
    record.id = 0;
    bool done = store_begin(recorder->store, error);
    if (done) {
        done = add_row(recorder, run, &record, error);
        if (done)
            done = store_commit(recorder->store, error);
        else
            store_rollback(recorder->store);
    }
    if (done) {
        recorder->run = run->id = record.id;
        utf8_copy(run->name, sizeof run->name, record.name);
        atomic_store(&recorder->has_segment, true);
    } else {
        drop_series_writer(recorder);
    }
    record_clear(&record);
    return done;
}

// The rows are there, and nobody will go on with them.
static void give_back(Recorder *recorder, Run *run, const Error *why) {
    RunRecord record;
    Error ignored = {0};
    if (run->options->resumes == 0 && run_describe(run, &record, &ignored)) {
        record.id = recorder->run;
        record.status = RUN_FAILED;
        utf8_copy(record.error, sizeof record.error, why->text);
        if (!store_update_run(recorder->store, &record, &ignored))
            store_rollback(recorder->store); // it reads as dead then
        record_clear(&record);
    }
    if (!store_release_run(recorder->store, recorder->run, &recorder->worker, &ignored))
        store_rollback(recorder->store);
}

// A fork begins where it left its parent.
static void tell_beginning(Recorder *recorder, Run *run) {
    const RunOptions *options = run->options;
    char text[EVENT_TEXT_SIZE], how[80] = "started";
    recorder->is_begun = true;
    if (options->resumes)
        snprintf(how, sizeof how, "resumed");
    else if (options->parent)
        snprintf(how, sizeof how, "forked from run %" PRId64 " after step %" PRId64,
                 options->parent, options->from);
    snprintf(text, sizeof text, "%s: %s in %s on %s, %d thread%s, process %lld", how,
             run->experiment, run->precision, run->device->label, run->device->threads,
             run->device->threads == 1 ? "" : "s", (long long)recorder->worker.pid);
    int64_t step = options->parent && !options->resumes ? options->from : run->step;
    run_record_event_at(run, step, EVENT_LIFE, "", (double)NAN, text);
}

bool recorder_begin(Recorder *recorder, Run *run, Error *error) {
    int64_t resumes = run->options->resumes;
    Error why = {0};
    recorder->trained = run;
    recorder->stop_asked = &run->stop_asked;
    if (resumes ? !store_own_run(recorder->store, resumes, &recorder->worker, error)
                : !make_row(recorder, run, error))
        return false;
    recorder->run = run->id = resumes ? resumes : run->id;
    if (!recorder_start_writer(recorder, &why)) {
        give_back(recorder, run, &why);
        if (error)
            *error = why;
        return false;
    }
    if (!resumes)
        tell_beginning(recorder, run);
    return true;
}

typedef struct GoingOn {
    Recorder *recorder;
    const RunRecord *record;
    int64_t from;
} GoingOn;

static bool begin_segment(Store *store, void *context, Error *error) {
    const GoingOn *going_on = context;
    Recorder *recorder = going_on->recorder;
    if (!store_begin(store, error))
        return false;
    bool done = store_beat(store, recorder->run, &recorder->worker, error) &&
                (recorder->series_writer =
                     series_writer_new(store, recorder->run, going_on->from, "resume", error)) &&
                store_update_run(store, going_on->record, error);
    if (done)
        done = store_commit(store, error);
    else
        store_rollback(store);
    if (done)
        atomic_store(&recorder->has_segment, true);
    else
        drop_series_writer(recorder);
    return done;
}

bool recorder_go_on(Recorder *recorder, Run *run, Error *error) {
    RunRecord record;
    if (recorder->is_begun) // a fork, whose row is new
        return true;
    if (!run_describe(run, &record, error))
        return false;
    record.id = recorder->run;
    GoingOn going_on = {recorder, &record, run->options->from};
    RecorderJob job = {.work = begin_segment, .context = &going_on};
    bool done = recorder_do(recorder, &job, error);
    record_clear(&record);
    if (done)
        tell_beginning(recorder, run);
    return done;
}

bool recorder_has_begun(const Recorder *recorder) {
    return recorder->is_begun;
}

// Lua says "PATH:LINE: cause"; where it was is of less interest than the cause, and the folder of
// none.
static void tell_end(const Run *run, char *text, size_t size) {
    const char *cause = run->error.text;
    int used = snprintf(text, size, "%s after step %lld", run_status_name(run->status),
                        (long long)run->step);
    if (run->error.code == ERROR_NONE)
        return;
    const char *path_end = strchr(cause, ':');
    size_t digits = path_end ? strspn(path_end + 1, "0123456789") : 0;
    const char *rest = digits > 0 ? path_end + 1 + digits : NULL;
    if (!rest || strncmp(rest, ": ", 2) != 0) {
        snprintf(text + used, size - (size_t)used, ": %s", cause);
        return;
    }
    const char *name = path_end;
    while (name > cause && name[-1] != '/')
        name--;
    snprintf(text + used, size - (size_t)used, ": %s (%.*s)", rest + 2,
             (int)(rest - name < 64 ? rest - name : 64), name);
}

// An option was refused before a step was made: where nothing else came of the run it goes, as
// where the option is refused before the row is made. What cannot be removed stays as a run that
// failed.
static void forget_if_refused(Recorder *recorder, Run *run) {
    Error ignored = {0};
    bool is_refused = run->error.code == ERROR_USAGE && run->step <= run->forked_at, is_gone;
    if (is_refused && run->options->resumes == 0 &&
        store_forget_run(recorder->store, recorder->run, &is_gone, &ignored) && is_gone)
        run->id = 0;
}

bool recorder_end(Recorder *recorder, Run *run, Error *error) {
    if (!recorder->is_begun) { // a resume that was refused: the row stays as it was
        recorder_stop_writer(recorder);
        return true;
    }
    char text[EVENT_TEXT_SIZE];
    tell_end(run, text, sizeof text);
    run_record_event(run, EVENT_LIFE, "", (double)NAN, text);
    run_refuse_orders(run);
    Error unpublished = {0};
    bool is_published = run_publish_record(run, &unpublished);
    recorder_stop_writer(recorder);
    if (recorder->fault.code == ERROR_NONE && !is_published)
        error_fail(&recorder->fault, unpublished.code, "%s: the end of the run is not in it: %s",
                   recorder_file(recorder), unpublished.text);
    if (recorder->fault.code == ERROR_NONE && recorder->has_lost)
        error_fail(&recorder->fault, ERROR_HISTORY,
                   "%s: another process kept it locked when the run was to end",
                   recorder_file(recorder));
    if (recorder->fault.code == ERROR_NONE) {
        forget_if_refused(recorder, run);
        return true;
    }
    if (error)
        *error = recorder->fault;
    return false;
}

// ---- into the ring ------------------------------------------------------------------------------

// Room for a record; NULL where nothing is recorded any more. Waits while the ring is full.
static void *put(Recorder *recorder, size_t size) {
    if (atomic_load_explicit(&recorder->is_over, memory_order_relaxed))
        return NULL;
    void *room = ring_reserve(recorder->ring, size);
    return room ? room : recorder_wait_for_room(recorder, size);
}

void recorder_event(Recorder *recorder, const Event *event) {
    PutEvent *record = put(recorder, sizeof *record);
    if (!record)
        return;
    *record = (PutEvent){.kind = PUT_EVENT, .event = *event};
    ring_publish(recorder->ring);
}

void recorder_point(Recorder *recorder, const Run *run, int series, int64_t step, double value) {
    for (; recorder->known_series < run->series_count; recorder->known_series++) {
        PutSeries *name = put(recorder, sizeof *name);
        if (!name)
            return;
        *name = (PutSeries){.kind = PUT_SERIES, .series = recorder->known_series};
        utf8_copy(name->name, sizeof name->name, run->series[recorder->known_series].name);
    }
    PutPoint *point = put(recorder, sizeof *point);
    if (point)
        *point = (PutPoint){.kind = PUT_POINT, .series = series, .step = step, .value = value};
}

void recorder_named_point(Recorder *recorder, int series, const char *name, int64_t step,
                          double value) {
    PutSeries *record = name ? put(recorder, sizeof *record) : NULL;
    if (name && !record)
        return;
    if (name) {
        *record = (PutSeries){.kind = PUT_SERIES, .series = series};
        utf8_copy(record->name, sizeof record->name, name);
    }
    PutPoint *point = put(recorder, sizeof *point);
    if (point)
        *point = (PutPoint){.kind = PUT_POINT, .series = series, .step = step, .value = value};
}

void recorder_profile(Recorder *recorder, int layer, double seconds, double update_ratio) {
    PutProfile *record = put(recorder, sizeof *record);
    if (record)
        *record = (PutProfile){
            .kind = PUT_PROFILE, .layer = layer, .seconds = seconds, .update_ratio = update_ratio};
}

void recorder_factors(Recorder *recorder, const LayerFactors *factors) {
    PutFactors *record = put(recorder, sizeof *record);
    if (record)
        *record = (PutFactors){.kind = PUT_FACTORS, .factors = *factors};
}

enum { STRETCH = 8 }; // bins that are looked at together: most are empty, at every step
static_assert(EXPONENT_BINS % STRETCH == 0, "the histogram is stretches");

static bool is_empty(const uint64_t *at) {
    return (at[0] | at[1] | at[2] | at[3] | at[4] | at[5] | at[6] | at[7]) == 0;
}

// The bins from the first to the last that hold something.
static int find_filled(const uint64_t *bins, int *first) {
    int begin = 0, end = EXPONENT_BINS;
    while (begin < end && is_empty(bins + begin))
        begin += STRETCH;
    while (begin < end && is_empty(bins + end - STRETCH))
        end -= STRETCH;
    while (begin < end && bins[begin] == 0)
        begin++;
    while (begin < end && bins[end - 1] == 0)
        end--;
    *first = begin;
    return end - begin;
}

// Most histograms fill a few dozen bins side by side: only those are copied.
static void put_gradient(Recorder *recorder, int layer, Format format, const GradStats *stats) {
    int first, bins = find_filled(stats->exponents, &first), shift = 0;
    while (stats->count >> shift > UINT32_MAX)
        shift++;
    PutGradient *record = put(recorder, sizeof *record + (size_t)bins * sizeof(uint32_t));
    if (!record)
        return;
    *record = (PutGradient){
        .kind = PUT_GRADIENT,
        .layer = layer,
        .format = format,
        .first_bin = first,
        .bins = bins,
        .shift = shift,
#define COUNT(name) .name = stats->name,
#define SUM(name)   .name = stats->name,
#include "number/statistics.def"
    };
    for (int i = 0; i < bins; i++)
        record->exponents[i] = (uint32_t)(stats->exponents[first + i] >> shift);
}

// What the norm is where none of the gradients is finite, of which the scan's has nothing.
static double broken_norm(const StepReport *report, const Optimizer *optimizer, int at) {
    double norm = (double)INFINITY;
    GradStats room;
    for (int i = 0; i < optimizer_parameter_count(optimizer); i++) {
        const GradStats *stats = run_reported_stats(report, at, i, &room);
        if (stats && stats->nans > 0)
            norm = (double)NAN;
    }
    return norm;
}

static void put_gradients(Recorder *recorder, const Optimizer *optimizer, const StepReport *report,
                          int at) {
    const GradientNote *notes = report->note->optimizers[at].gradients.each;
    GradStats room;
    for (int i = 0; i < optimizer_parameter_count(optimizer); i++) {
        const Parameter *parameter = parameter_of(optimizer_parameter(optimizer, i));
        const GradStats *stats = run_reported_stats(report, at, i, &room);
        if (stats && parameter && parameter->layer > 0)
            put_gradient(recorder, parameter->layer - 1, notes[i].round_to, stats);
    }
}

void recorder_step(Recorder *recorder, Run *run, const StepReport *report, unsigned scanned) {
    const StepNote *note = report->note;
    if (!recorder->is_begun || atomic_load_explicit(&recorder->is_over, memory_order_relaxed))
        return;
    double squares = 0;
    for (int i = 0; i < note->optimizer_count; i++)
        if (scanned >> i & 1) {
            const OptimizerReport reported = run_reported(report, i);
            const bool is_broken = reported.found_inf && !(reported.norm > 0);
            const double norm =
                is_broken ? broken_norm(report, run->optimizers[i], i) : reported.norm;
            squares += norm * norm;
            put_gradients(recorder, run->optimizers[i], report, i);
        }
    PutStep *record = put(recorder, sizeof *record);
    if (record)
        *record = (PutStep){.kind = PUT_STEP,
                            .has_norm = scanned != 0,
                            .step = note->step,
                            .scale = run->scale_last,
                            .norm = sqrt(squares),
                            .seconds = note->seconds};
    ring_publish(recorder->ring);
}
