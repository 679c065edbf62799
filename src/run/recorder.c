// The life of a recorder, and what the run's thread puts into it.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
    recorder->ring = ring_new(RING_BYTES, error);
    if (!recorder->ring || !worker_identify(&recorder->worker, error) ||
        !(recorder->store = store_open(path, STORE_WRITE, error))) {
        recorder_free(recorder);
        return NULL;
    }
    return recorder;
}

void recorder_free(Recorder *recorder) {
    if (!recorder)
        return;
    recorder_stop_writer(recorder);
    store_close(recorder->store);
    ring_free(recorder->ring);
    RunRecord *left = atomic_exchange(&recorder->snapshot, NULL);
    if (left)
        record_clear(left);
    free(left);
    free(recorder->stats);
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

// The row of the run, new or taken over.
static bool make_row(Recorder *recorder, Run *run, Error *error) {
    RunRecord record;
    if (!run_describe(run, &record, error))
        return false;
    bool is_new = run->options->resumes == 0;
    if (is_new && !run->options->name)
        record.name[0] = 0; // the store finds one
    record.id = run->options->resumes;
    bool done = store_begin(recorder->store, error);
    if (done) {
        const RunScript *script = &run->script;
        done = (!is_new ||
                store_add_run(recorder->store, &record, script->text, script->length, error)) &&
               store_own_run(recorder->store, record.id, &recorder->worker, error) &&
               (is_new || store_update_run(recorder->store, &record, error));
        if (done)
            done = store_commit(recorder->store, error);
        else
            store_rollback(recorder->store);
    }
    if (done) {
        recorder->stop_asked = &run->stop_asked;
        recorder->run = run->id = record.id;
        if (is_new)
            run_copy_text(run->name, sizeof run->name, record.name);
    }
    record_clear(&record);
    return done;
}

bool recorder_begin(Recorder *recorder, Run *run, Error *error) {
    const RunOptions *options = run->options;
    const char *why = options->resumes ? "resume" : options->parent ? "fork" : "start";
    if (!make_row(recorder, run, error) ||
        !recorder_start_writer(recorder, options->from, why, error))
        return false;
    recorder->is_begun = true;
    char text[EVENT_TEXT_SIZE];
    snprintf(text, sizeof text, "%s: %s in %s on %s, %d threads, process %lld",
             options->resumes  ? "resumed"
             : options->parent ? "forked"
                               : "started",
             run->experiment, run->precision, run->device->backend->name, run->device->threads,
             (long long)recorder->worker.pid);
    run_record_event(run, EVENT_LIFE, "", (double)NAN, text);
    return true;
}

bool recorder_end(Recorder *recorder, Run *run, Error *error) {
    if (!recorder->is_begun)
        return true;
    char text[EVENT_TEXT_SIZE];
    snprintf(text, sizeof text, "%s after step %lld%s%.300s", run_status_name(run->status),
             (long long)run->step, run->error.code != ERROR_NONE ? ": " : "",
             run->error.code != ERROR_NONE ? run->error.text : "");
    run_record_event(run, EVENT_LIFE, "", (double)NAN, text);
    run_refuse_orders(run);
    run_publish_record(run);
    recorder_stop_writer(recorder);
    if (recorder->fault.code == ERROR_NONE)
        return true;
    if (error)
        *error = recorder->fault;
    return false;
}

bool recorder_call(Recorder *recorder, bool (*work)(Store *store, void *context, Error *error),
                   void *context, Error *error) {
    RecorderJob job = {.work = work, .context = context};
    if (!recorder->is_begun)
        return error_fail(error, ERROR_HISTORY, "nothing is recorded yet");
    pthread_mutex_lock(&recorder->lock);
    if (!atomic_load(&recorder->is_over)) {
        recorder->job = &job;
        pthread_cond_signal(&recorder->to_writer);
        while (!job.is_done && !atomic_load(&recorder->is_over))
            pthread_cond_wait(&recorder->to_run, &recorder->lock);
        recorder->job = NULL;
    }
    if (!job.is_done)
        job.error = recorder->fault;
    pthread_mutex_unlock(&recorder->lock);
    if (!job.has_worked && error)
        *error = job.error;
    return job.has_worked;
}

// ---- into the ring ------------------------------------------------------------------------------

static void pause_briefly(void) {
    const struct timespec moment = {.tv_nsec = 1000000};
    nanosleep(&moment, NULL);
}

// Room for a record; NULL where nothing is recorded any more. Waits while the ring is full, but not
// when somebody wants the run to end and the disk gives no hope.
static void *put(Recorder *recorder, size_t size) {
    if (atomic_load_explicit(&recorder->is_over, memory_order_relaxed))
        return NULL;
    void *room = ring_reserve(recorder->ring, size);
    while (!room && !atomic_load(&recorder->is_over)) {
        if (run_stop_requested() && atomic_load(&recorder->is_full))
            return NULL;
        ring_publish(recorder->ring);
        pause_briefly();
        room = ring_reserve(recorder->ring, size);
    }
    return room;
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
        run_copy_text(name->name, sizeof name->name, run->series[recorder->known_series].name);
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

// Most histograms fill a few dozen bins side by side: only those are copied.
static void put_gradient(Recorder *recorder, const Parameter *parameter, const GradStats *stats) {
    int first = 0, last = EXPONENT_BINS - 1, shift = 0;
    while (first < EXPONENT_BINS && stats->exponents[first] == 0)
        first++;
    while (last > first && stats->exponents[last] == 0)
        last--;
    int bins = first < EXPONENT_BINS ? last - first + 1 : 0;
    while (stats->count >> shift > UINT32_MAX)
        shift++;
    PutGradient *record = put(recorder, sizeof *record + (size_t)bins * sizeof(uint32_t));
    if (!record)
        return;
    *record = (PutGradient){
        .kind = PUT_GRADIENT,
        .layer = parameter->layer - 1,
        .format = parameter->round_to,
        .first_bin = first,
        .bins = bins,
        .shift = shift,
        .count = stats->count,
        .zeros = stats->zeros,
        .nans = stats->nans,
        .infinities = stats->infinities,
        .flushed = stats->flushed,
        .subnormal = stats->subnormal,
        .overflowed = stats->overflowed,
        .sum = stats->sum,
        .sum_squares = stats->sum_squares,
        .largest = stats->largest,
    };
    for (int i = 0; i < bins; i++)
        record->exponents[i] = (uint32_t)(stats->exponents[first + i] >> shift);
}

static void put_gradients(Recorder *recorder, Optimizer *optimizer) {
    int count = optimizer_parameter_count(optimizer);
    if (count > recorder->stats_size) { // once an optimizer
        GradStats *stats = realloc(recorder->stats, (size_t)count * sizeof *stats);
        if (!stats)
            return; // a step less
        recorder->stats = stats;
        recorder->stats_size = count;
    }
    optimizer_read_stats(optimizer, recorder->stats);
    for (int i = 0; i < count; i++) {
        const Parameter *parameter = parameter_of(optimizer_parameter(optimizer, i));
        if (parameter && parameter->layer > 0 && recorder->stats[i].count > 0)
            put_gradient(recorder, parameter, &recorder->stats[i]);
    }
}

void recorder_step(Recorder *recorder, Run *run, unsigned scanned) {
    if (!recorder->is_begun || atomic_load_explicit(&recorder->is_over, memory_order_relaxed))
        return;
    double squares = 0;
    for (int i = 0; i < run->optimizer_count; i++)
        if (scanned >> i & 1) {
            double norm = optimizer_norm(run->optimizers[i]);
            squares += norm * norm;
            put_gradients(recorder, run->optimizers[i]);
        }
    double clock = run_clock(run);
    PutStep *record = put(recorder, sizeof *record);
    if (record)
        *record = (PutStep){.kind = PUT_STEP,
                            .has_norm = scanned != 0,
                            .step = run->step,
                            .scale = run->scale_last,
                            .norm = sqrt(squares),
                            .seconds = clock - recorder->step_clock};
    recorder->step_clock = clock;
    recorder->last_step = run->step;
    ring_publish(recorder->ring);
}
