// What the run's thread waits for the recorder's with: work on the store, and room in the ring.
#include <time.h>

#include "base/clock.h"
#include "run/recorder_private.h"
#include "run/run_private.h"

static void pause_briefly(void) {
    const struct timespec moment = {.tv_nsec = 1000000};
    nanosleep(&moment, NULL);
}

void recorder_wait_briefly(Recorder *recorder) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 50000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&recorder->to_run, &recorder->lock, &until);
}

// Once it takes a moment, it is a wait, and people are told what training waits for.
static void tell_waiting(Recorder *recorder, double waited) {
    Run *run = recorder->trained;
    if (waited < 0.5)
        return;
    if (!recorder->is_waiting)
        run_begin_wait(run_state(run));
    recorder->is_waiting = true;
    if (recorder->is_telling || run->is_silent)
        return;
    recorder->is_telling = true; // what is told may be recorded, and wait
    run->waits_for = atomic_load(&recorder->is_full) ? "disk full" : "history locked";
    if (run->observer.step)
        run->observer.step(run->observer.context, run);
    recorder->is_telling = false;
}

// Whether to wait on for the writer, since `since`. A lock of another process ends some time,
// unless somebody wants the run to end: then `patience` is all it gets, and a full disk nothing.
static bool may_wait(Recorder *recorder, double since) {
    double now = clock_seconds();
    tell_waiting(recorder, now - since);
    if (!run_is_to_stop(recorder->trained))
        return true;
    if (atomic_load(&recorder->is_full))
        return false;
    if (recorder->give_up == 0)
        recorder->give_up = now + recorder->patience;
    return now < recorder->give_up;
}

static void end_waiting(Recorder *recorder, bool done) {
    recorder->trained->waits_for = NULL;
    if (recorder->is_waiting)
        run_end_wait(run_state(recorder->trained));
    recorder->is_waiting = false;
    if (done)
        recorder->give_up = 0;
    else
        recorder->has_lost = true;
}

bool recorder_do(Recorder *recorder, RecorderJob *job, Error *error) {
    double since = clock_seconds();
    pthread_mutex_lock(&recorder->lock);
    if (!atomic_load(&recorder->is_over)) {
        recorder->job = job;
        pthread_cond_signal(&recorder->to_writer);
        // While it is worked on it stays here, though recording may be over by then.
        while (!job->is_done && (job->is_running || !atomic_load(&recorder->is_over))) {
            recorder_wait_briefly(recorder);
            if (job->is_done)
                break;
            pthread_mutex_unlock(&recorder->lock);
            bool goes_on = may_wait(recorder, since);
            pthread_mutex_lock(&recorder->lock);
            if (!goes_on && !job->is_running)
                break;
        }
        recorder->job = NULL;
    }
    if (!job->is_done) {
        job->error = recorder->fault;
        bool is_full = atomic_load(&recorder->is_full);
        if (!atomic_load(&recorder->is_over))
            error_fail(&job->error, is_full ? ERROR_FULL : ERROR_BUSY, "%s: %s",
                       recorder_file(recorder),
                       is_full ? "its disk is full" : "another process keeps it locked");
    }
    pthread_mutex_unlock(&recorder->lock);
    end_waiting(recorder, job->has_worked || job->is_done);
    if (!job->has_worked && error)
        *error = job->error;
    return job->has_worked;
}

bool recorder_call(Recorder *recorder, bool (*work)(Store *store, void *context, Error *error),
                   void *context, Error *error) {
    RecorderJob job = {.work = work, .context = context};
    if (!recorder->is_begun)
        return error_fail(error, ERROR_HISTORY, "nothing is recorded yet");
    ring_publish(recorder->ring);
    return recorder_do(recorder, &job, error);
}

void *recorder_wait_for_room(Recorder *recorder, size_t size) {
    void *room = NULL;
    double since = clock_seconds();
    while (!room && !atomic_load(&recorder->is_over) && may_wait(recorder, since)) {
        ring_publish(recorder->ring);
        pause_briefly();
        room = ring_reserve(recorder->ring, size);
    }
    end_waiting(recorder, room != NULL);
    return room;
}
