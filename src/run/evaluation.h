// run/evaluation.h: a trained model looked at in one format: what is asked, and what came of it.
//
// The command fills what is asked and lends it to the script's machine (lua/experiment.h), whose
// binding fills the rest while the experiment's own `eval` goes over its test data: nothing is
// trained or recorded. Models of several formats are alive at once, so that they can be timed in
// turn: each waits in `ready`, from within which the next is begun. What stayed unknown is NaN, or
// RECORD_UNKNOWN. One thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/rounds.h"
#include "store/record.h"

enum { EVALUATION_MOST_METRICS = 16 };

// What the model is called with.
typedef enum EvaluationCall {
    EVALUATION_ONE,   // a single sample
    EVALUATION_BATCH, // as many as it is evaluated in
    EVALUATION_CALLS,
} EvaluationCall;

// What one call of the model takes: of each round the median.
typedef struct EvaluationTime {
    double rounds[ROUNDS_MOST]; // seconds
    int round_count;            // 0: not measured
    int64_t count;              // calls in all of them
} EvaluationTime;

// A model that waits to be timed, while others do, too.
typedef struct EvaluationCaller {
    // Calls it once. False: the script failed, or was asked to stop.
    bool (*call)(void *model, EvaluationCall what, double *seconds, Error *error);
    void *model;
} EvaluationCaller;

typedef struct Evaluation {
    // Asked.
    int64_t calibrate; // batches of training data whose numbers int8 is scaled by
    bool largest;      // by the largest of them, not by the percentile that loses least
    int64_t memory;    // bytes that the device may use; 0: all it has
    bool quick;        // no times
    // Batches that were gone through; `of` 0: how many there are is not known. May be NULL.
    void (*progress)(void *context, const char *what, int64_t done, int64_t of);
    // The model may be timed, until this returns. Not called where it is not to be.
    void (*ready)(void *context, const EvaluationCaller *caller);
    void *context; // of both

    // What came of it.
    RecordMetric metrics[EVALUATION_MOST_METRICS]; // means over all samples
    bool falls[EVALUATION_MOST_METRICS];           // whether each gets better so
    char leads[RECORD_NAME_SIZE];                  // as the script says; "": it does not
    int metric_count;
    int64_t samples, batch;                 // looked at; of which so many at once
    EvaluationTime times[EVALUATION_CALLS]; // whoever calls fills them
    char one_fails[256];                    // why a single sample is not timed; "": it is
    int64_t weights_disk;                   // bytes, as `export` writes them
    bool takers_unknown;       // which no product takes: counted there as if all were taken by some
    int64_t weights_memory;    // that products read: without what training keeps beside
    int64_t activations, peak; // bytes, the most at once; peak: of all of the above
    int64_t largest_batch, needed; // under a cap: what fits; bytes that one sample takes
    char broken[RECORD_NAME_SIZE]; // the first of the weights that hold inf or nan; "": none does
    int64_t broken_numbers;        // in all of them
    int broken_count;              // of weights
} Evaluation;

// By its name; NULL: none.
static inline const RecordMetric *evaluation_metric(const Evaluation *evaluation,
                                                    const char *name) {
    for (int i = 0; i < evaluation->metric_count; i++)
        if (strcmp(evaluation->metrics[i].name, name) == 0)
            return &evaluation->metrics[i];
    return NULL;
}
