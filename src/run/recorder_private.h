// run/recorder_private.h: the two threads of a recorder and what they share. Seen by run/ only.
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "run/recorder.h"
#include "run/ring.h"
#include "store/commands.h"
#include "store/events.h"
#include "store/layer_factors.h"
#include "store/layers.h"
#include "store/worker.h"

enum {
    RING_BYTES = 8 << 20,
    MOST_ORDERS = 16,        // that wait on one side
    MOST_BACKLOG = 64 << 20, // bytes set aside while a lock is waited for
    MOST_EVENTS = 1 << 16,   // that wait for a commit; what comes then waits in the ring
    MOST_FACTORS = 1 << 16,  // likewise
};

typedef struct StepReport StepReport; // run/run_private.h

// ---- what goes through the ring -----------------------------------------------------------------

typedef enum PutKind {
    PUT_STEP,
    PUT_POINT,
    PUT_SERIES,
    PUT_GRADIENT,
    PUT_PROFILE,
    PUT_FACTORS,
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
#define COUNT(name) uint64_t name;
#define SUM(name)   double name;
#define MOST(name)  float name;
#include "number/statistics.def"
    uint32_t exponents[];
} PutGradient;

typedef struct PutProfile { // of a sampled step, a layer
    PutKind kind;
    int layer;
    double seconds, update_ratio; // NaN: unknown
} PutProfile;

typedef struct PutFactors { // of a step that was counted, a layer and role
    PutKind kind;
    LayerFactors factors;
} PutFactors;

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
    bool is_running, is_done, has_worked;
} RecorderJob;

typedef struct RecorderWriter RecorderWriter; // recorder_writer.c

struct Recorder {
    Store *store; // the writer's, once it runs
    int64_t run;
    Run *trained;           // the run's thread only
    atomic_int *stop_asked; // the run's
    double patience;        // seconds that a lock is waited for once the run is to end
    WorkerId worker;
    Ring *ring;
    RecorderWriter *writer;
    SeriesWriter *series_writer; // from has_segment on
    atomic_int attention;
    atomic_bool has_segment;       // what comes is written; false while a resume is at its replay
    atomic_bool is_over;           // nothing is recorded any more
    atomic_bool is_full;           // the last commit found the disk full
    _Atomic(RunRecord *) snapshot; // the newest, not taken yet
    // The run's thread only.
    bool is_begun, has_told_over, is_telling, is_waiting;
    bool has_lost;    // something was given up
    double give_up;   // clock_seconds at which waiting ends; 0: nothing is waited for
    int known_series; // whose names were put
    // Under `lock`.
    pthread_mutex_t lock;
    pthread_cond_t to_writer, to_run;
    OrderQueue claimed, answered;
    RecorderJob *job;
    bool is_ending;
    Error fault; // why recording is over
};

// ---- the run's thread ---------------------------------------------------------------------------

// The step of a report: what optimizers scanned in it (a bit each), points, the step.
void recorder_step(Recorder *recorder, Run *run, const StepReport *report, unsigned scanned);
void recorder_point(Recorder *recorder, const Run *run, int series, int64_t step, double value);
// Of a series that is none of the script's: `series` from RUN_MAX_SERIES on, less than TWIN_SERIES
// more; `name` with its first point, NULL with others.
void recorder_named_point(Recorder *recorder, int series, const char *name, int64_t step,
                          double value);
void recorder_event(Recorder *recorder, const Event *event);
// Until the writer has news, or a moment is over: signals wake nobody. With the lock held.
void recorder_wait_briefly(Recorder *recorder);
// Has the writer do it, in its turn.
bool recorder_do(Recorder *recorder, RecorderJob *job, Error *error) MUST_CHECK;
// In the ring, which is full; NULL where recording ends before there is any.
void *recorder_wait_for_room(Recorder *recorder, size_t size);
// Of the step that is about to end.
void recorder_profile(Recorder *recorder, int layer, double seconds, double update_ratio);
void recorder_factors(Recorder *recorder, const LayerFactors *factors);

// ---- the writer ---------------------------------------------------------------------------------

bool recorder_start_writer(Recorder *recorder, Error *error) MUST_CHECK;
void recorder_stop_writer(Recorder *recorder); // waits until it has written all, or cannot
void recorder_attend(Recorder *recorder, int what);

// ---- recorder_take.c: the writer's thread, between the ring and the store -----------------------

typedef struct LayerSum LayerSum;

typedef struct RecorderIntake {
    Recorder *recorder;
    char (*names)[RUN_NAME_SIZE]; // of series, by the run's index
    LayerSum *layers;             // of the step that is being put together
    int layer_count, first_touched;
    Event *events; // not committed yet
    int event_count, event_size;
    LayerFactors *factors; // likewise
    int factor_count, factor_size;
    char *backlog; // taken from the ring while a lock was waited for: size_t, record, ...
    size_t backlog_at, backlog_used, backlog_size; // before `at` all is taken
    bool has_left_out;                             // something that the store refused
} RecorderIntake;

bool intake_make(RecorderIntake *intake, Recorder *recorder, Error *error) MUST_CHECK;
void intake_clear(RecorderIntake *intake);
// All that lies in the backlog and the ring. ERROR_FULL: what was taken must be flushed first; the
// next call goes on from there.
bool intake_drain(RecorderIntake *intake, Error *error) MUST_CHECK;
// While a lock is waited for, in the middle of a call of the store: makes room in the ring.
bool intake_set_aside(void *intake);
