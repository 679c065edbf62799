// data/loader.h: batches out of a dataset, prepared ahead of the training that takes them.
//
// A Loader belongs to one thread, the consumer's, which makes all calls. When a batch is large
// enough to be worth it, a thread of the loader's own prepares the next two, or several threads one
// more than they are, each a batch at a time. Batches come in the epoch's order whoever is done
// first, and what is in them depends on the dataset and the options alone, never on timing or on
// how many threads there are. Everything is allocated by loader_new; threads start with the first
// batch.
//
// An epoch goes once through the samples: in order, or shuffled by a permutation made of (seed,
// epoch). Windows of a text are, shuffled, as many full batches of windows as cover the text,
// beginning anywhere. The last batch of an epoch may be smaller, unless drop_last leaves it out.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "data/dataset.h"
#include "data/transform.h"

typedef enum LoaderThread {
    LOADER_THREAD_AUTO,  // for batches of more than 64 KiB
    LOADER_THREAD_NEVER, // loader_next prepares the batch itself
    LOADER_THREAD_ALWAYS,
} LoaderThread;

typedef struct LoaderOptions {
    int64_t batch; // samples
    bool shuffle;
    bool drop_last;
    uint64_t seed;
    int64_t limit;  // use the first `limit` samples only; 0: all
    int64_t epochs; // loader_next says `end` after so many; 0: after each, -1: never
    LoaderThread thread;
    int threads;         // more than 1: so many, whatever the size of a batch
    Transform transform; // of x
} LoaderOptions;

enum { LOADER_MOST_THREADS = 64 };

// What loader_next gives next: the batch with this number in this epoch, both from 0. Saved and set
// again, the same batches follow. A position of loader_len is the end of the epoch.
typedef struct LoaderState {
    uint64_t epoch;
    int64_t position;
} LoaderState;

typedef struct LoaderArray {
    const void *data; // dense; NULL: there is none
    Format format;    // FORMAT_FP32 or FORMAT_INT32
    int ndim;
    int64_t shape[VIEW_MAX_DIMS]; // the first dimension counts samples
} LoaderArray;

typedef struct LoaderBatch {
    LoaderArray x, y;
    int64_t count;  // samples
    LoaderState at; // which batch it is
} LoaderBatch;

typedef struct Loader Loader;

// Holds the dataset. NULL on failure.
Loader *loader_new(Dataset *dataset, const LoaderOptions *options, Error *error) MUST_CHECK;
// Ends the thread, whatever it is doing; NULL is fine.
void loader_free(Loader *loader);

// The next batch, valid until the next call with this loader; or *end, when as many epochs are over
// as were asked for: the call after that begins the next epoch.
bool loader_next(Loader *loader, LoaderBatch *batch, bool *end, Error *error) MUST_CHECK;

// The same without preparing anything: shapes and counts of the batch, no data. Batches that are
// taken afterwards are as if these had been taken too.
void loader_skip(Loader *loader, LoaderBatch *batch, bool *end);

// For the head of a loop over one epoch: leaves a half-read epoch and goes to the start of the
// next. At the start of one, and directly after loader_set_state, it changes nothing.
void loader_begin(Loader *loader);

// Batches in an epoch.
int64_t loader_len(const Loader *loader);
// Samples in an epoch, as the batches of loader_len give them out.
int64_t loader_samples(const Loader *loader);
const Dataset *loader_dataset(const Loader *loader);

LoaderState loader_state(const Loader *loader);
bool loader_set_state(Loader *loader, LoaderState state, Error *error) MUST_CHECK;
