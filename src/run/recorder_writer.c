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

static const double drain_interval = 0.01, commit_interval = 0.2, poll_interval = 0.02,
                    beat_interval = 1, retry_interval = 1;

struct RecorderWriter {
    Recorder *recorder;
    pthread_t thread;
    RecorderIntake intake;
    RunRecord *record; // the newest, not committed yet
    OrderQueue answers;
    int64_t last_order;
    bool has_left; // nothing more is written
    bool has_more; // than the last commit took from the ring
    double last_commit, next_commit, next_poll, next_beat;
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

// ---- into the store -----------------------------------------------------------------------------

// `is_part`: there is more in the ring, which the record counts already.
static bool write_all(RecorderWriter *writer, double now, bool is_part, Error *error) {
    Recorder *recorder = writer->recorder;
    Store *store = recorder->store;
    if (!series_flush(recorder->series_writer, now - writer->last_commit, error))
        return false;
    for (int i = 0; i < writer->intake.event_count; i++)
        if (!store_add_event(store, recorder->run, &writer->intake.events[i], error))
            return false;
    const int segment = series_writer_segment(recorder->series_writer);
    for (int i = 0; i < writer->intake.factor_count; i++)
        if (!store_add_factors(store, recorder->run, segment, &writer->intake.factors[i], error))
            return false;
    if (writer->record && !is_part && !store_update_run(store, writer->record, error))
        return false;
    for (int i = 0; i < writer->answers.count; i++)
        if (!store_answer_command(store, &writer->answers.orders[i], error))
            return false;
    return true;
}

// What every commit begins with: a sign of life now and then, and where the rest needs that the run
// is still ours. The orders of one that another worker took were refused by it: no answer fits.
static bool write_beat(RecorderWriter *writer, double now, Error *error) {
    Recorder *recorder = writer->recorder;
    return (now < writer->next_beat && writer->answers.count == 0) ||
           store_beat(recorder->store, recorder->run, &recorder->worker, error);
}

static bool write_leave(RecorderWriter *writer, Error *error) {
    Recorder *recorder = writer->recorder;
    return store_refuse_commands(recorder->store, recorder->run, "the run has ended", error) &&
           store_release_run(recorder->store, recorder->run, &recorder->worker, error);
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

// Those to stop wait for the commit that ends the run: whoever waits for one finds it over, its
// checkpoint kept. `is_end`: this is it, where there is room for all. True: none is left.
static bool take_answers(RecorderWriter *writer, bool is_end) {
    Recorder *recorder = writer->recorder;
    pthread_mutex_lock(&recorder->lock);
    OrderQueue *from = &recorder->answered, *to = &writer->answers;
    bool has_room = from->count + to->count <= MOST_ORDERS;
    int left = 0;
    for (int i = 0; i < from->count; i++) {
        const RunCommand *order = &from->orders[i];
        bool is_due = is_end ? has_room : !command_is(order, VERB_STOP);
        if (is_due && to->count < MOST_ORDERS)
            to->orders[to->count++] = *order;
        else
            from->orders[left++] = *order;
    }
    from->count = left;
    pthread_mutex_unlock(&recorder->lock);
    return left == 0;
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

// Everything there is; before the first segment of a run that is resumed that is a sign of life.
// `is_last`: the run is given back in the same transaction, once all answers are in it.
static bool commit(RecorderWriter *writer, bool is_last) {
    Recorder *recorder = writer->recorder;
    Error fault = {0};
    double now = clock_seconds();
    bool is_recording = atomic_load(&recorder->has_segment), is_part = false;
    writer->next_commit = now + commit_interval;
    if (is_recording) { // before the ring: what they tell of is in there
        take_snapshot(writer);
        take_answers(writer, false);
    }
    if (is_recording && !intake_drain(&writer->intake, &fault)) {
        if (fault.code != ERROR_FULL)
            return is_passing(writer, &fault, now) && false;
        is_part = true; // the rest with the next
    }
    bool leaves = is_last && !is_part && (!is_recording || take_answers(writer, true));
    if (!store_begin(recorder->store, &fault))
        return is_passing(writer, &fault, now) && false;
    if (!write_beat(writer, now, &fault) ||
        (is_recording && !write_all(writer, now, is_part, &fault)) ||
        (leaves && !write_leave(writer, &fault))) {
        store_rollback(recorder->store);
        return is_passing(writer, &fault, now) && false;
    }
    if (!store_commit(recorder->store, &fault))
        return is_passing(writer, &fault, now) && false;
    writer->has_left = leaves;
    writer->has_more = is_part;
    if (now >= writer->next_beat) {
        writer->next_beat = now + beat_interval;
        if (end_when_replaced(recorder))
            return false;
    }
    if (atomic_exchange(&recorder->is_full, false))
        recorder_attend(recorder, ATTEND_FULL);
    if (!is_recording)
        return true;
    writer->last_commit = now;
    writer->intake.event_count = writer->intake.factor_count = writer->answers.count = 0;
    if (!is_part)
        drop_record(writer);
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
        if (command_is(&orders[i], VERB_STOP))
            atomic_store(recorder->stop_asked, 1);
    pthread_mutex_lock(&recorder->lock);
    memcpy(&recorder->claimed.orders[recorder->claimed.count], orders,
           (size_t)count * sizeof *orders);
    recorder->claimed.count += count;
    pthread_mutex_unlock(&recorder->lock);
    recorder_attend(recorder, ATTEND_ORDERS);
}

// What the run put before it asked: a checkpoint whose steps were lost would leave a gap for good.
static bool commit_all(RecorderWriter *writer) {
    Recorder *recorder = writer->recorder;
    if (!atomic_load(&recorder->has_segment))
        return true;
    do {
        if (atomic_load(&recorder->is_full) || !commit(writer, false))
            return false;
    } while (writer->has_more);
    return true;
}

static void work_off_job(RecorderWriter *writer) {
    Recorder *recorder = writer->recorder;
    pthread_mutex_lock(&recorder->lock);
    // One that is done may go with its caller's stack as soon as the lock is free.
    RecorderJob *job = recorder->job && !recorder->job->is_done ? recorder->job : NULL;
    if (job)
        job->is_running = true;
    pthread_mutex_unlock(&recorder->lock);
    if (!job)
        return;
    bool is_begun = commit_all(writer);
    bool done = is_begun && job->work(recorder->store, job->context, &job->error);
    pthread_mutex_lock(&recorder->lock);
    job->is_running = false;
    job->has_worked = done;
    // Else again in a moment.
    job->is_done = is_begun && (done || job->error.code != ERROR_BUSY);
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
// given up, since nothing else can be done. A resume that never went on has nothing to write but
// that it leaves, which its end tells as well: for that no room is waited for.
static void write_last(RecorderWriter *writer) {
    Recorder *recorder = writer->recorder;
    Error fault = {0};
    writer->next_beat = 0;
    // The run's thread may have waited already.
    double give_up = recorder->give_up;
    if (give_up == 0)
        give_up = clock_seconds() + recorder->patience;
    while (!writer->has_left) {
        if (commit(writer, true))
            continue; // there may be more than one takes
        if (atomic_load(&recorder->is_over))
            return;
        bool is_full = atomic_load(&recorder->is_full);
        const bool may_wait = atomic_load(&recorder->has_segment) && !run_stop_requested();
        if (clock_seconds() >= give_up || (is_full && !may_wait)) {
            error_fail(&fault, ERROR_HISTORY, "%s: the end of the run could not be written: %s",
                       store_file(recorder->store),
                       is_full ? "the disk is full" : "another process keeps it locked");
            end_recording(recorder, &fault);
            return;
        }
        const struct timespec moment = {.tv_nsec = 200000000};
        nanosleep(&moment, NULL);
    }
}

static void *write_loop(void *context) {
    RecorderWriter *writer = context;
    Recorder *recorder = writer->recorder;
    bool is_ending = false;
    while (!is_ending && !atomic_load(&recorder->is_over)) {
        Error fault = {0};
        double now = clock_seconds();
        bool is_recording = atomic_load(&recorder->has_segment);
        if (is_recording && !atomic_load(&recorder->is_full) &&
            !intake_drain(&writer->intake, &fault) && fault.code != ERROR_FULL)
            end_recording(recorder, &fault);
        else if (now >= (is_recording ? writer->next_commit : writer->next_beat))
            commit(writer, false);
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
    intake_clear(&writer->intake);
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

bool recorder_start_writer(Recorder *recorder, Error *error) {
    RecorderWriter *writer = calloc(1, sizeof *writer);
    if (!writer)
        return error_fail(error, ERROR_MEMORY, "no memory for a recorder");
    writer->recorder = recorder;
    writer->last_commit = clock_seconds();
    if (!intake_make(&writer->intake, recorder, error)) {
        writer_free(writer);
        return false;
    }
    store_set_waiting(recorder->store, 5, intake_set_aside, &writer->intake);
    int failed = start_thread(writer);
    if (!failed) {
        recorder->writer = writer;
        return true;
    }
    store_set_waiting(recorder->store, 5, NULL, NULL);
    writer_free(writer);
    return error_fail(error, ERROR_FAILED, "cannot start the thread of the history: %s%s",
                      error_cause(failed), error_remedy(failed));
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
}
