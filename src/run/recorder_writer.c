// The thread of a recorder: from the ring into the store, and orders the other way.
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "run/recorder_private.h"
#include "run/run_private.h"
#include "store/runs.h"

static const double drain_interval = 0.01, commit_interval = 0.2, poll_interval = 0.05,
                    beat_interval = 1, retry_interval = 1, patience = 60;

// The statistics of one layer of the step that is being put together.
typedef struct LayerSum {
    LayerSample sample;
    bool is_touched;
    int next; // touched layer; -1: the last
    uint64_t bins[LAYER_BINS];
} LayerSum;

struct RecorderWriter {
    Recorder *recorder;
    pthread_t thread;
    char (*names)[RUN_NAME_SIZE]; // of series, by the run's index
    LayerSum *layers;
    int layer_count, first_touched;
    Event *events; // not committed yet
    int event_count, event_size;
    RunRecord *record; // the newest, not committed yet
    OrderQueue answers;
    char *backlog; // taken from the ring while a lock was waited for: size_t, record, ...
    size_t backlog_used, backlog_size;
    int64_t last_order;
    double last_commit, next_commit, next_poll, next_beat, gave_up_at;
};

void recorder_attend(Recorder *recorder, int what) {
    atomic_fetch_or(&recorder->attention, what);
    pthread_mutex_lock(&recorder->lock);
    pthread_cond_broadcast(&recorder->to_run);
    pthread_mutex_unlock(&recorder->lock);
}

static void end_recording(Recorder *recorder, const Error *fault) {
    pthread_mutex_lock(&recorder->lock);
    recorder->fault = *fault;
    atomic_store(&recorder->is_full, false);
    atomic_store(&recorder->is_over, true);
    pthread_mutex_unlock(&recorder->lock);
    recorder_attend(recorder, ATTEND_OVER);
}

// ---- out of the ring ----------------------------------------------------------------------------

static LayerSum *layer_sum(RecorderWriter *writer, int layer, Error *error) {
    if (layer >= writer->layer_count) {
        int count = layer + 16;
        LayerSum *layers = realloc(writer->layers, (size_t)count * sizeof *layers);
        if (!layers) {
            error_fail(error, ERROR_MEMORY, "no memory for the statistics of %d layers", count);
            return NULL;
        }
        for (int i = writer->layer_count; i < count; i++)
            layers[i].is_touched = false;
        writer->layers = layers;
        writer->layer_count = count;
    }
    LayerSum *sum = &writer->layers[layer];
    if (!sum->is_touched) {
        *sum =
            (LayerSum){.sample = {.width = 1, .update_ratio = (double)NAN, .seconds = (double)NAN},
                       .is_touched = true,
                       .next = writer->first_touched};
        writer->first_touched = layer;
    }
    return sum;
}

static bool take_gradient(RecorderWriter *writer, const PutGradient *put, Error *error) {
    LayerSum *sum = layer_sum(writer, put->layer, error);
    if (!sum)
        return false;
    LayerSample *sample = &sum->sample;
    if (!sample->precision[0])
        run_copy_text(sample->precision, sizeof sample->precision, format_name(put->format));
    sample->count += (int64_t)put->count;
    sample->zeros += (int64_t)put->zeros;
    sample->nans += (int64_t)put->nans;
    sample->infs += (int64_t)put->infinities;
    sample->flushed += (int64_t)put->flushed;
    sample->subnormal += (int64_t)put->subnormal;
    sample->overflowed += (int64_t)put->overflowed;
    sample->largest = fmax(sample->largest, (double)put->largest);
    sample->sum += put->sum;
    sample->sum_squares += put->sum_squares;
    for (int i = 0; i < put->bins; i++)
        sum->bins[put->first_bin + i] += (uint64_t)put->exponents[i] << put->shift;
    return true;
}

static bool take_profile(RecorderWriter *writer, const PutProfile *put, Error *error) {
    LayerSum *sum = layer_sum(writer, put->layer, error);
    if (!sum)
        return false;
    sum->sample.seconds = put->seconds;
    sum->sample.update_ratio = put->update_ratio;
    return true;
}

static void settle_bins(LayerSum *sum) {
    uint64_t most = 0;
    int shift = 0;
    for (int i = 0; i < LAYER_BINS; i++)
        most = sum->bins[i] > most ? sum->bins[i] : most;
    while (most >> shift > UINT32_MAX)
        shift++;
    for (int i = 0; i < LAYER_BINS; i++)
        sum->sample.bins[i] = (uint32_t)(sum->bins[i] >> shift);
    sum->sample.bins_are_scaled = shift > 0;
}

static bool take_step(RecorderWriter *writer, const PutStep *put, Error *error) {
    SeriesWriter *series = writer->recorder->series_writer;
    for (; writer->first_touched >= 0;
         writer->first_touched = writer->layers[writer->first_touched].next) {
        LayerSum *sum = &writer->layers[writer->first_touched];
        sum->is_touched = false;
        sum->sample.step = put->step;
        settle_bins(sum);
        if (!layers_add(series, writer->first_touched, &sum->sample, error))
            return false;
    }
    return series_add(series, "scale", put->step, put->scale, error) &&
           (!put->has_norm || series_add(series, "grad_norm", put->step, put->norm, error)) &&
           series_add(series, "step_seconds", put->step, put->seconds, error);
}

static bool take_event(RecorderWriter *writer, const PutEvent *put, Error *error) {
    if (writer->event_count == writer->event_size) {
        int size = writer->event_size ? 2 * writer->event_size : 64;
        Event *events = realloc(writer->events, (size_t)size * sizeof *events);
        if (!events)
            return error_fail(error, ERROR_MEMORY, "no memory for %d events", size);
        writer->events = events;
        writer->event_size = size;
    }
    Event *event = &writer->events[writer->event_count++];
    *event = put->event;
    event->segment = series_writer_segment(writer->recorder->series_writer);
    return true;
}

static bool take(RecorderWriter *writer, const void *record, Error *error) {
    const PutPoint *point = record;
    const PutSeries *series = record;
    switch (*(const PutKind *)record) {
    case PUT_STEP: return take_step(writer, record, error);
    case PUT_POINT:
        return series_add(writer->recorder->series_writer, writer->names[point->series],
                          point->step, point->value, error);
    case PUT_SERIES:
        memcpy(writer->names[series->series], series->name, sizeof series->name);
        return true;
    case PUT_GRADIENT: return take_gradient(writer, record, error);
    case PUT_PROFILE: return take_profile(writer, record, error);
    case PUT_EVENT: return take_event(writer, record, error);
    }
    return true;
}

static bool drain(RecorderWriter *writer, Error *error) {
    size_t size;
    for (size_t at = 0; at < writer->backlog_used; at += sizeof size + size) {
        memcpy(&size, writer->backlog + at, sizeof size);
        if (!take(writer, writer->backlog + at + sizeof size, error))
            return false;
    }
    writer->backlog_used = 0;
    for (const void *record; (record = ring_peek(writer->recorder->ring, &size));
         ring_release(writer->recorder->ring))
        if (!take(writer, record, error))
            return false;
    return true;
}

// While a lock is waited for, in the middle of a call of the store: makes room in the ring.
static bool set_aside(void *context) {
    enum { WORD = sizeof(size_t) };
    RecorderWriter *writer = context;
    size_t size;
    for (const void *record; (record = ring_peek(writer->recorder->ring, &size));) {
        size_t padded = (size + WORD - 1) & ~(size_t)(WORD - 1);
        size_t needed = writer->backlog_used + WORD + padded;
        if (needed > MOST_BACKLOG)
            break; // training waits
        if (needed > writer->backlog_size) {
            size_t wanted = 2 * needed;
            char *backlog = realloc(writer->backlog, wanted);
            if (!backlog)
                break;
            writer->backlog = backlog;
            writer->backlog_size = wanted;
        }
        memcpy(writer->backlog + writer->backlog_used, &padded, WORD);
        memcpy(writer->backlog + writer->backlog_used + WORD, record, size);
        writer->backlog_used = needed;
        ring_release(writer->recorder->ring);
    }
    return true;
}

// ---- into the store -----------------------------------------------------------------------------

static bool write_all(RecorderWriter *writer, double now, Error *error) {
    Recorder *recorder = writer->recorder;
    Store *store = recorder->store;
    if (!series_flush(recorder->series_writer, now - writer->last_commit, error))
        return false;
    for (int i = 0; i < writer->event_count; i++)
        if (!store_add_event(store, recorder->run, &writer->events[i], error))
            return false;
    if (writer->record && !store_update_run(store, writer->record, error))
        return false;
    for (int i = 0; i < writer->answers.count; i++)
        if (!store_answer_command(store, &writer->answers.orders[i], error))
            return false;
    return now < writer->next_beat || store_beat(store, recorder->run, &recorder->worker, error);
}

static void drop_record(RecorderWriter *writer) {
    if (writer->record)
        record_clear(writer->record);
    free(writer->record);
    writer->record = NULL;
}

static void take_snapshot(RecorderWriter *writer) {
    RunRecord *newer = atomic_exchange(&writer->recorder->snapshot, NULL);
    if (!newer)
        return;
    drop_record(writer);
    writer->record = newer;
}

static void take_answers(RecorderWriter *writer) {
    Recorder *recorder = writer->recorder;
    pthread_mutex_lock(&recorder->lock);
    OrderQueue *from = &recorder->answered, *to = &writer->answers;
    int taken = 0;
    while (taken < from->count && to->count < MOST_ORDERS)
        to->orders[to->count++] = from->orders[taken++];
    from->count -= taken;
    memmove(from->orders, from->orders + taken, (size_t)from->count * sizeof *from->orders);
    pthread_mutex_unlock(&recorder->lock);
}

static bool end_when_replaced(Recorder *recorder) {
    Error fault = {0};
    if (!store_is_replaced(recorder->store))
        return false;
    error_fail(&fault, ERROR_HISTORY,
               "%s: the history was deleted or replaced while it was written",
               store_file(recorder->store));
    end_recording(recorder, &fault);
    return true;
}

// What all that fails in a commit leads to. True: it may be tried again.
static bool is_passing(RecorderWriter *writer, const Error *fault, double now) {
    Recorder *recorder = writer->recorder;
    if (fault->code == ERROR_FULL) {
        writer->next_commit = now + retry_interval;
        if (!atomic_exchange(&recorder->is_full, true))
            recorder_attend(recorder, ATTEND_FULL);
        return true;
    }
    if (fault->code == ERROR_BUSY)
        return true;
    if (!end_when_replaced(recorder)) // that would be why
        end_recording(recorder, fault);
    return false;
}

static bool commit(RecorderWriter *writer) {
    Recorder *recorder = writer->recorder;
    Error fault = {0};
    double now = clock_seconds();
    writer->next_commit = now + commit_interval;
    take_snapshot(writer); // before the ring: what it counts is in there
    take_answers(writer);
    if (!drain(writer, &fault) || !store_begin(recorder->store, &fault))
        return is_passing(writer, &fault, now) && false;
    if (!write_all(writer, now, &fault)) {
        store_rollback(recorder->store);
        return is_passing(writer, &fault, now) && false;
    }
    if (!store_commit(recorder->store, &fault))
        return is_passing(writer, &fault, now) && false;
    if (now >= writer->next_beat) {
        writer->next_beat = now + beat_interval;
        if (end_when_replaced(recorder))
            return false;
    }
    writer->last_commit = now;
    writer->event_count = writer->answers.count = 0;
    drop_record(writer);
    if (atomic_exchange(&recorder->is_full, false))
        recorder_attend(recorder, ATTEND_FULL);
    recorder_attend(recorder, ATTEND_SNAPSHOT);
    return true;
}

// ---- orders -------------------------------------------------------------------------------------

static void poll_orders(RecorderWriter *writer, double now) {
    Recorder *recorder = writer->recorder;
    Error ignored = {0}; // a commit finds out what it means
    int64_t last = 0;
    writer->next_poll = now + poll_interval;
    if (!store_last_command(recorder->store, recorder->run, &last, &ignored) ||
        last == writer->last_order)
        return;
    pthread_mutex_lock(&recorder->lock);
    int room = MOST_ORDERS - recorder->claimed.count;
    pthread_mutex_unlock(&recorder->lock);
    RunCommand orders[MOST_ORDERS];
    int count = 0;
    if (room == 0 || !store_claim_commands(recorder->store, recorder->run, recorder->worker.token,
                                           orders, room, &count, &ignored))
        return;
    if (count < room) // else there may be more
        writer->last_order = last;
    if (count == 0)
        return;
    for (int i = 0; i < count; i++) // a script that makes no steps is interrupted for it
        if (strcmp(orders[i].verb, "stop") == 0)
            atomic_store(recorder->stop_asked, 1);
    pthread_mutex_lock(&recorder->lock);
    memcpy(&recorder->claimed.orders[recorder->claimed.count], orders,
           (size_t)count * sizeof *orders);
    recorder->claimed.count += count;
    pthread_mutex_unlock(&recorder->lock);
    recorder_attend(recorder, ATTEND_ORDERS);
}

static void work_off_job(RecorderWriter *writer) {
    Recorder *recorder = writer->recorder;
    pthread_mutex_lock(&recorder->lock);
    // One that is done may go with its caller's stack as soon as the lock is free.
    RecorderJob *job = recorder->job && !recorder->job->is_done ? recorder->job : NULL;
    pthread_mutex_unlock(&recorder->lock);
    if (!job)
        return;
    bool done = job->work(recorder->store, job->context, &job->error);
    if (!done && job->error.code == ERROR_BUSY)
        return; // again in a moment
    pthread_mutex_lock(&recorder->lock);
    job->has_worked = done;
    job->is_done = true;
    pthread_cond_broadcast(&recorder->to_run);
    pthread_mutex_unlock(&recorder->lock);
}

// ---- the thread ---------------------------------------------------------------------------------

// Until the next thing to do; wakes early for a job or the end. True: the end.
static bool wait_a_moment(Recorder *recorder) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(drain_interval * 1e9);
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&recorder->lock);
    if (!recorder->is_ending && !recorder->job)
        pthread_cond_timedwait(&recorder->to_writer, &recorder->lock, &until);
    bool is_ending = recorder->is_ending;
    pthread_mutex_unlock(&recorder->lock);
    return is_ending;
}

// The last state. A lock is waited for, a full disk as long as nobody wants the end; then it is
// given up, since nothing else can be done.
static void write_last(RecorderWriter *writer) {
    Recorder *recorder = writer->recorder;
    Error fault = {0};
    writer->next_beat = 0;
    double give_up = clock_seconds() + patience;
    while (!commit(writer)) {
        if (atomic_load(&recorder->is_over))
            return;
        bool is_full = atomic_load(&recorder->is_full);
        if (clock_seconds() >= give_up || (is_full && run_stop_requested())) {
            error_fail(&fault, ERROR_HISTORY, "%s: the end of the run could not be written: %s",
                       store_file(recorder->store),
                       is_full ? "the disk is full" : "another process keeps it locked");
            end_recording(recorder, &fault);
            return;
        }
        const struct timespec moment = {.tv_nsec = 200000000};
        nanosleep(&moment, NULL);
    }
    if (!store_refuse_commands(recorder->store, recorder->run, "the run has ended", &fault) ||
        !store_release_run(recorder->store, recorder->run, &recorder->worker, &fault))
        end_recording(recorder, &fault);
}

static void *write_loop(void *context) {
    RecorderWriter *writer = context;
    Recorder *recorder = writer->recorder;
    bool is_ending = false;
    while (!is_ending && !atomic_load(&recorder->is_over)) {
        Error fault = {0};
        double now = clock_seconds();
        if (!atomic_load(&recorder->is_full) && !drain(writer, &fault))
            end_recording(recorder, &fault);
        else if (now >= writer->next_commit)
            commit(writer);
        if (now >= writer->next_poll && !atomic_load(&recorder->is_over))
            poll_orders(writer, now);
        if (!atomic_load(&recorder->is_over))
            work_off_job(writer);
        is_ending = wait_a_moment(recorder);
    }
    if (!atomic_load(&recorder->is_over))
        write_last(writer);
    return NULL;
}

static void writer_free(RecorderWriter *writer) {
    drop_record(writer);
    free(writer->names);
    free(writer->layers);
    free(writer->events);
    free(writer->backlog);
    free(writer);
}

// Signals belong to the program's own threads.
static int start_thread(RecorderWriter *writer) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&writer->thread, NULL, write_loop, writer);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

bool recorder_start_writer(Recorder *recorder, int64_t from, const char *why, Error *error) {
    RecorderWriter *writer = calloc(1, sizeof *writer);
    char(*names)[RUN_NAME_SIZE] = calloc(RUN_MAX_SERIES, sizeof *names);
    if (!writer || !names) {
        free(writer);
        free(names);
        return error_fail(error, ERROR_MEMORY, "no memory for a recorder");
    }
    *writer = (RecorderWriter){.recorder = recorder, .names = names, .first_touched = -1};
    recorder->series_writer = series_writer_new(recorder->store, recorder->run, from, why, error);
    writer->last_commit = clock_seconds();
    store_set_waiting(recorder->store, 5, set_aside, writer);
    int failed = recorder->series_writer ? start_thread(writer) : 0;
    if (recorder->series_writer && !failed) {
        recorder->writer = writer;
        return true;
    }
    if (failed)
        error_fail(error, ERROR_FAILED, "cannot start the thread of the history: %s",
                   strerror(failed));
    store_set_waiting(recorder->store, 5, NULL, NULL);
    series_writer_free(recorder->series_writer);
    recorder->series_writer = NULL;
    writer_free(writer);
    return false;
}

void recorder_stop_writer(Recorder *recorder) {
    if (!recorder->writer)
        return;
    pthread_mutex_lock(&recorder->lock);
    recorder->is_ending = true;
    pthread_cond_broadcast(&recorder->to_writer);
    pthread_mutex_unlock(&recorder->lock);
    pthread_join(recorder->writer->thread, NULL);
    store_set_waiting(recorder->store, 5, NULL, NULL);
    writer_free(recorder->writer);
    recorder->writer = NULL;
    series_writer_free(recorder->series_writer);
    recorder->series_writer = NULL;
}
