#include "data/loader.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "data/order.h"

#if defined(__linux__)
#include <linux/sched.h> // SCHED_BATCH, which POSIX does not have
#endif

enum {
    AHEAD = 2,         // batches prepared beyond the one that the consumer has
    SLOTS = AHEAD + 1, // of which one is the consumer's
    ALIGNMENT = 64,
    THREAD_FROM = 64 << 10, // smaller batches are filled faster than handed over
};

static const int64_t max_batch_bytes = (int64_t)1 << 40; // more is a mistake, not a batch

typedef struct Slot {
    void *x, *y;
    int64_t count;
    LoaderState at;
} Slot;

struct Loader {
    Dataset *dataset;
    LoaderOptions options;
    int64_t samples; // in an epoch
    int64_t batches;
    int64_t starts; // of windows: how many tokens the drawn ones may begin with
    Slot slots[SLOTS];

    // The consumer's.
    LoaderState next; // what it gets next
    bool resumed;     // loader_set_state was called and no batch came since
    bool skipped;     // so did loader_skip: the filler is behind

    // The filler's: the thread's while there is one, else the consumer's.
    int64_t *indices; // of one batch
    uint32_t *order;  // of the epoch order_epoch; NULL unless a permutation is needed
    uint64_t order_epoch;
    bool ordered;

    // Between the two, under the lock. Batch number i lies in slot i % SLOTS, counted over all
    // epochs; the consumer has batch taken - 1.
    bool threaded, started;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed_for_filler, changed_for_consumer;
    bool filler_waits, consumer_waits;
    bool stop;
    uint64_t filled, taken;
    LoaderState ahead;   // what is filled next
    uint64_t generation; // counts the jumps: a batch begun before one is thrown away
};

// ---- What is in a batch -------------------------------------------------------------------------

static bool draws_windows(const Loader *loader) {
    return loader->options.shuffle && loader->dataset->x.kind == FIELD_WINDOWS;
}

static void choose_indices(Loader *loader, LoaderState at, int64_t count) {
    const LoaderOptions *options = &loader->options;
    int64_t begin = at.position * options->batch;
    if (draws_windows(loader)) {
        for (int64_t i = 0; i < count; i++)
            loader->indices[i] = order_draw((uint32_t)loader->starts, (uint64_t)(begin + i),
                                            options->seed, at.epoch);
    } else if (options->shuffle) {
        if (!loader->ordered || loader->order_epoch != at.epoch) {
            order_shuffle(loader->order, (uint32_t)loader->samples, options->seed, at.epoch);
            loader->order_epoch = at.epoch;
            loader->ordered = true;
        }
        for (int64_t i = 0; i < count; i++)
            loader->indices[i] = loader->order[begin + i];
    } else {
        // Windows that do not overlap begin a context apart.
        const Field *x = &loader->dataset->x;
        int64_t step = x->kind == FIELD_WINDOWS ? x->size : 1;
        for (int64_t i = 0; i < count; i++)
            loader->indices[i] = (begin + i) * step;
    }
}

static int64_t count_at(const Loader *loader, LoaderState at) {
    int64_t left = loader->samples - at.position * loader->options.batch;
    return left < loader->options.batch ? left : loader->options.batch;
}

static void fill_slot(Loader *loader, Slot *slot, LoaderState at) {
    slot->count = count_at(loader, at);
    slot->at = at;
    choose_indices(loader, at, slot->count);
    dataset_fill(loader->dataset, loader->indices, slot->count, slot->x, slot->y);
}

// The batch after this one, in this epoch or the next.
static LoaderState batch_after(const Loader *loader, LoaderState at) {
    if (++at.position >= loader->batches)
        at = (LoaderState){at.epoch + 1, 0};
    return at;
}

// The batch that a state means: the end of an epoch is the start of the next.
static LoaderState batch_at(const Loader *loader, LoaderState state) {
    if (state.position >= loader->batches)
        state = (LoaderState){state.epoch + 1, 0};
    return state;
}

// ---- The thread ---------------------------------------------------------------------------------

// Asks that being woken does not take the processor from the thread that wakes: without this the
// batch after next is filled inside the consumer's call (measured, medians: 17 to 200 us a call,
// with it 2 to 20). Where the system refuses, only time is lost.
static void be_patient(void) {
#if defined(SCHED_BATCH)
    struct sched_param parameter = {0};
    (void)pthread_setschedparam(pthread_self(), SCHED_BATCH, &parameter);
#endif
}

static void *run_filler(void *argument) {
    Loader *loader = argument;
    be_patient();
    pthread_mutex_lock(&loader->lock);
    while (!loader->stop) {
        if (loader->filled >= loader->taken + AHEAD) {
            loader->filler_waits = true;
            pthread_cond_wait(&loader->changed_for_filler, &loader->lock);
            loader->filler_waits = false;
            continue;
        }
        Slot *slot = &loader->slots[loader->filled % SLOTS];
        LoaderState at = loader->ahead;
        uint64_t generation = loader->generation;
        pthread_mutex_unlock(&loader->lock);
        fill_slot(loader, slot, at);
        pthread_mutex_lock(&loader->lock);
        if (generation != loader->generation)
            continue;
        loader->filled++;
        loader->ahead = batch_after(loader, at);
        if (loader->consumer_waits)
            pthread_cond_signal(&loader->changed_for_consumer);
    }
    pthread_mutex_unlock(&loader->lock);
    return NULL;
}

static bool start_thread(Loader *loader, Error *error) {
    // Signals are for the program's own threads to see.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&loader->thread, NULL, run_filler, loader);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0)
        return error_fail(error, ERROR_FAILED, "cannot start the thread that loads data: %s%s",
                          error_cause(code), error_remedy(code));
    loader->started = true;
    return true;
}

static Slot *take_slot(Loader *loader) {
    pthread_mutex_lock(&loader->lock);
    while (loader->filled == loader->taken) {
        loader->consumer_waits = true;
        pthread_cond_wait(&loader->changed_for_consumer, &loader->lock);
        loader->consumer_waits = false;
    }
    Slot *slot = &loader->slots[loader->taken++ % SLOTS];
    if (loader->filler_waits)
        pthread_cond_signal(&loader->changed_for_filler);
    pthread_mutex_unlock(&loader->lock);
    return slot;
}

// Lets the filler go on from loader->next, whatever it has prepared. A slot that it is filling
// right now is not the consumer's, so the batch in use stays whole.
static void jump(Loader *loader) {
    pthread_mutex_lock(&loader->lock);
    loader->generation++;
    loader->filled = loader->taken;
    loader->ahead = batch_at(loader, loader->next);
    if (loader->filler_waits)
        pthread_cond_signal(&loader->changed_for_filler);
    pthread_mutex_unlock(&loader->lock);
}

// ---- Making and using one -----------------------------------------------------------------------

// How many samples and batches an epoch has.
static bool plan_epoch(Loader *loader, Error *error) {
    const LoaderOptions *options = &loader->options;
    const Dataset *dataset = loader->dataset;
    if (options->batch < 1)
        return error_fail(error, ERROR_USAGE, "batch: is %" PRId64 "; 1 or more is expected",
                          options->batch);
    if (options->limit < 0)
        return error_fail(error, ERROR_USAGE, "limit: is %" PRId64 "; 0 (all) or more is expected",
                          options->limit);
    if (options->epochs < -1)
        return error_fail(error, ERROR_USAGE,
                          "epochs: is %" PRId64 "; -1 (no end), 0 or more is expected",
                          options->epochs);
    int64_t samples = dataset->count;
    loader->starts = dataset->starts;
    if (options->limit > 0 && options->limit < samples) {
        samples = options->limit;
        loader->starts = (samples - 1) * dataset->x.size + 1; // the end of the last window allowed
    }
    if (options->shuffle && (samples > UINT32_MAX || loader->starts > UINT32_MAX))
        return error_fail(error, ERROR_USAGE,
                          "shuffle: %" PRId64 " samples are too many; set a limit", samples);
    int64_t full = samples / options->batch, rest = samples % options->batch;
    loader->batches = full + (rest > 0 && !options->drop_last);
    if (draws_windows(loader)) { // windows may begin anywhere: every batch can be full
        loader->batches = full + (rest > 0);
        if (__builtin_mul_overflow(loader->batches, options->batch, &samples))
            return error_fail(error, ERROR_USAGE, "batch: %" PRId64 " is too large",
                              options->batch);
    } else if (options->drop_last) {
        if (full == 0)
            return error_fail(error, ERROR_USAGE,
                              "batch: %" PRId64 " is more than the %" PRId64
                              " samples there are, and drop_last leaves nothing; take a smaller "
                              "batch",
                              options->batch, samples);
    }
    loader->samples = samples;
    return true;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static bool allocate_field(const Loader *loader, const Field *field, int64_t count, void **memory,
                           Error *error) {
    int64_t bytes;
    if (field->kind == FIELD_NONE)
        return true;
    if (__builtin_mul_overflow(field_bytes(field), count, &bytes) || bytes > max_batch_bytes ||
        posix_memalign(memory, ALIGNMENT, (size_t)bytes) != 0) {
        *memory = NULL;
        return error_fail(error, ERROR_MEMORY,
                          "no memory for a batch of %" PRId64 " samples of %" PRId64
                          " bytes; take a smaller batch",
                          loader->options.batch, field_bytes(field));
    }
    return true;
}

static bool allocate(Loader *loader, Error *error) {
    const Dataset *dataset = loader->dataset;
    int64_t count = smaller(loader->options.batch, loader->samples);
    int64_t bytes = 0, x_bytes = field_bytes(&dataset->x), y_bytes = field_bytes(&dataset->y);
    bool large = __builtin_mul_overflow(count, x_bytes + y_bytes, &bytes) || bytes > THREAD_FROM;
    loader->threaded = loader->options.thread == LOADER_THREAD_ALWAYS ||
                       (loader->options.thread == LOADER_THREAD_AUTO && large);
    for (int i = 0; i < (loader->threaded ? SLOTS : 1); i++)
        if (!allocate_field(loader, &dataset->x, count, &loader->slots[i].x, error) ||
            !allocate_field(loader, &dataset->y, count, &loader->slots[i].y, error))
            return false;
    loader->indices = calloc((size_t)count, sizeof *loader->indices);
    if (!loader->indices)
        return error_fail(error, ERROR_MEMORY, "no memory for a batch of %" PRId64 " samples",
                          count);
    if (loader->options.shuffle && !draws_windows(loader)) {
        loader->order = calloc((size_t)loader->samples, sizeof *loader->order);
        if (!loader->order)
            return error_fail(error, ERROR_MEMORY, "no memory to shuffle %" PRId64 " samples",
                              loader->samples);
    }
    return true;
}

Loader *loader_new(Dataset *dataset, const LoaderOptions *options, Error *error) {
    Loader *loader = calloc(1, sizeof *loader);
    if (!loader) {
        error_fail(error, ERROR_MEMORY, "no memory for a loader");
        return NULL;
    }
    loader->dataset = dataset_hold(dataset);
    loader->options = *options;
    pthread_mutex_init(&loader->lock, NULL);
    pthread_cond_init(&loader->changed_for_filler, NULL);
    pthread_cond_init(&loader->changed_for_consumer, NULL);
    if (!plan_epoch(loader, error) || !allocate(loader, error)) {
        loader_free(loader);
        return NULL;
    }
    return loader;
}

void loader_free(Loader *loader) {
    if (!loader)
        return;
    if (loader->started) {
        pthread_mutex_lock(&loader->lock);
        loader->stop = true;
        pthread_cond_signal(&loader->changed_for_filler);
        pthread_mutex_unlock(&loader->lock);
        pthread_join(loader->thread, NULL);
    }
    pthread_cond_destroy(&loader->changed_for_filler);
    pthread_cond_destroy(&loader->changed_for_consumer);
    pthread_mutex_destroy(&loader->lock);
    for (int i = 0; i < SLOTS; i++) {
        free(loader->slots[i].x);
        free(loader->slots[i].y);
    }
    free(loader->indices);
    free(loader->order);
    dataset_release(loader->dataset);
    free(loader);
}

static LoaderArray array_of(const Field *field, const void *data, int64_t count) {
    LoaderArray array = {.data = data, .format = field_format(field), .ndim = field->ndim + 1};
    array.shape[0] = count;
    for (int i = 0; i < field->ndim; i++)
        array.shape[i + 1] = field->shape[i];
    return array;
}

// Goes to the next epoch where one is over; *end says whether that was the last.
static void turn_epoch(Loader *loader, LoaderBatch *batch, bool *end) {
    *end = false;
    if (loader->next.position < loader->batches)
        return;
    loader->next = (LoaderState){loader->next.epoch + 1, 0};
    int64_t epochs = loader->options.epochs ? loader->options.epochs : 1;
    if (epochs > 0 && loader->next.epoch % (uint64_t)epochs == 0) {
        *batch = (LoaderBatch){0};
        *end = true;
        loader->resumed = false;
    }
}

static void give(Loader *loader, const Slot *slot, LoaderBatch *batch) {
    const Dataset *dataset = loader->dataset;
    *batch = (LoaderBatch){
        .x = array_of(&dataset->x, slot->x, slot->count), .count = slot->count, .at = slot->at};
    if (dataset->y.kind != FIELD_NONE)
        batch->y = array_of(&dataset->y, slot->y, slot->count);
    loader->next.position++;
    loader->resumed = false;
}

bool loader_next(Loader *loader, LoaderBatch *batch, bool *end, Error *error) {
    turn_epoch(loader, batch, end);
    if (*end)
        return true;
    if (loader->skipped) {
        jump(loader);
        loader->skipped = false;
    }
    if (loader->threaded && !loader->started && !start_thread(loader, error))
        return false;
    Slot *slot = &loader->slots[0];
    if (loader->threaded)
        slot = take_slot(loader);
    else
        fill_slot(loader, slot, loader->next);
    give(loader, slot, batch);
    return true;
}

void loader_skip(Loader *loader, LoaderBatch *batch, bool *end) {
    turn_epoch(loader, batch, end);
    if (*end)
        return;
    loader->skipped = true;
    const Slot slot = {.x = NULL, .count = count_at(loader, loader->next), .at = loader->next};
    give(loader, &slot, batch);
}

void loader_begin(Loader *loader) {
    if (loader->resumed || loader->next.position == 0)
        return;
    bool whole = loader->next.position >= loader->batches;
    loader->next = (LoaderState){loader->next.epoch + 1, 0};
    if (!whole) // else the next epoch's batches are what was prepared
        jump(loader);
}

int64_t loader_len(const Loader *loader) {
    return loader->batches;
}

int64_t loader_samples(const Loader *loader) {
    return smaller(loader->samples, loader->batches * loader->options.batch);
}

const Dataset *loader_dataset(const Loader *loader) {
    return loader->dataset;
}

LoaderState loader_state(const Loader *loader) {
    return loader->next;
}

bool loader_set_state(Loader *loader, LoaderState state, Error *error) {
    if (state.position < 0 || state.position > loader->batches)
        return error_fail(error, ERROR_USAGE,
                          "data: cannot go on at batch %" PRId64 " of an epoch of %" PRId64
                          "; the batch, the limit or the data differ from those of the checkpoint",
                          state.position, loader->batches);
    loader->next = state;
    loader->resumed = true;
    jump(loader);
    return true;
}
