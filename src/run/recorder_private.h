// run/recorder_private.h: the two threads of a recorder and what they share. Seen by run/ only.
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "run/recorder.h"
#include "run/ring.h"
#include "store/commands.h"
#include "store/events.h"
#include "store/layers.h"
#include "store/worker.h"

enum {
    RING_BYTES = 8 << 20,
    MOST_ORDERS = 16,        // that wait on one side
    MOST_BACKLOG = 64 << 20, // bytes set aside while a lock is waited for
};

// ---- what goes through the ring -----------------------------------------------------------------

typedef enum PutKind {
    PUT_STEP,
    PUT_POINT,
    PUT_SERIES,
    PUT_GRADIENT,
    PUT_PROFILE,
    PUT_EVENT
} PutKind;

typedef struct PutStep { // ends what was put for a step
    PutKind kind;
    bool has_norm;
    int64_t step;
    double scale, norm, seconds;
} PutStep;

typedef struct PutPoint {
    PutKind kind;
    int series;
    int64_t step;
    double value;
} PutPoint;

typedef struct PutSeries { // before the first point of a series
    PutKind kind;
    int series;
    char name[RUN_NAME_SIZE];
} PutSeries;

typedef struct PutGradient { // statistics of one parameter, of the step that is about to end
    PutKind kind;
    int layer; // of the record
    Format format;
    int first_bin, bins, shift; // counts are divided by 2^shift
    uint64_t count, zeros, nans, infinities, flushed, subnormal, overflowed;
    double sum, sum_squares;
    float largest;
    uint32_t exponents[];
} PutGradient;

typedef struct PutProfile { // of a sampled step, a layer
    PutKind kind;
    int layer;
    double seconds, update_ratio; // NaN: unknown
} PutProfile;

typedef struct PutEvent {
    PutKind kind;
    Event event;
} PutEvent;

// ---- what is shared -----------------------------------------------------------------------------

// What the run's thread is to look at, at the next boundary.
enum {
    ATTEND_SNAPSHOT = 1 << 0, // a record is wanted
    ATTEND_ORDERS = 1 << 1,
    ATTEND_FULL = 1 << 2, // the disk is full
    ATTEND_OVER = 1 << 3, // recording is over; `fault` says why
};

typedef struct OrderQueue {
    RunCommand orders[MOST_ORDERS];
    int count;
} OrderQueue;

typedef struct RecorderJob {
    bool (*work)(Store *store, void *context, Error *error);
    void *context;
    Error error;
    bool is_done, has_worked;
} RecorderJob;

typedef struct RecorderWriter RecorderWriter; // recorder_writer.c

struct Recorder {
    Store *store; // the writer's, once it runs
    int64_t run;
    atomic_int *stop_asked; // the run's
    WorkerId worker;
    Ring *ring;
    RecorderWriter *writer;
    SeriesWriter *series_writer;
    atomic_int attention;
    atomic_bool is_over;           // nothing is recorded any more
    atomic_bool is_full;           // the last commit found the disk full
    _Atomic(RunRecord *) snapshot; // the newest, not taken yet
    // The run's thread only.
    bool is_begun, has_told_over;
    int known_series; // whose names were put
    GradStats *stats; // room for the statistics of one optimizer
    int stats_size;
    double step_clock; // run_clock at the last boundary
    int64_t last_step; // that was recorded whole
    // Under `lock`.
    pthread_mutex_t lock;
    pthread_cond_t to_writer, to_run;
    OrderQueue claimed, answered;
    RecorderJob *job;
    bool is_ending;
    Error fault; // why recording is over
};

// ---- the run's thread ---------------------------------------------------------------------------

// At the end of a step: what optimizers scanned in it (a bit each), points, the step.
void recorder_step(Recorder *recorder, Run *run, unsigned scanned);
void recorder_point(Recorder *recorder, const Run *run, int series, int64_t step, double value);
void recorder_event(Recorder *recorder, const Event *event);
// Of the step that is about to end.
void recorder_profile(Recorder *recorder, int layer, double seconds, double update_ratio);

// ---- the writer ---------------------------------------------------------------------------------

bool recorder_start_writer(Recorder *recorder, int64_t from, const char *why,
                           Error *error) MUST_CHECK;
void recorder_stop_writer(Recorder *recorder); // waits until it has written all, or cannot
void recorder_attend(Recorder *recorder, int what);
