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
    SLOTS = LOADER_MOST_THREADS + 2, // at most
    ALIGNMENT = 64,
    THREAD_FROM = 64 << 10, // smaller batches are filled faster than handed over
};

static const int64_t max_batch_bytes = (int64_t)1 << 40; // more is a mistake, not a batch

typedef struct Slot {
    void *x, *y;
    int64_t *indices; // of the samples
    float *scratch;   // one sample, where they are moved; NULL: none
    int64_t count;
    LoaderState at;
    bool busy;  // a thread is filling it
    bool ready; // it holds the batch whose turn it is
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

    // Whoever chooses a batch's samples: threads, under the lock, or else the consumer.
    uint32_t *order; // of the epoch order_epoch; NULL unless a permutation is needed
    uint64_t order_epoch;
    bool ordered;

    // Between them, under the lock. Batch number i lies in slot i % slot_count, counted over all
    // epochs; the consumer has batch taken - 1, threads have begun those before `begun`.
    bool threaded;
    int slot_count; // `ahead` are prepared beyond the one that the consumer has
    int ahead;
    int started; // threads that run
    pthread_t thread[LOADER_MOST_THREADS];
    pthread_mutex_t lock;
    pthread_cond_t changed_for_filler, changed_for_consumer;
    int fillers_wait;
    bool consumer_waits;
    bool stop;
    uint64_t begun, taken;
    LoaderState next_begun; // what is begun next
    uint64_t generation;    // counts the jumps: a batch begun before one is thrown away
};

// ---- What is in a batch -------------------------------------------------------------------------

static bool draws_windows(const Loader *loader) {
    return loader->options.shuffle && loader->dataset->x.kind == FIELD_WINDOWS;
}

static void choose_indices(Loader *loader, LoaderState at, int64_t count, int64_t *indices) {
    const LoaderOptions *options = &loader->options;
    int64_t begin = at.position * options->batch;
    if (draws_windows(loader)) {
        for (int64_t i = 0; i < count; i++)
            indices[i] = order_draw((uint32_t)loader->starts, (uint64_t)(begin + i), options->seed,
                                    at.epoch);
    } else if (options->shuffle) {
        if (!loader->ordered || loader->order_epoch != at.epoch) {
            order_shuffle(loader->order, (uint32_t)loader->samples, options->seed, at.epoch);
            loader->order_epoch = at.epoch;
            loader->ordered = true;
        }
        for (int64_t i = 0; i < count; i++)
            indices[i] = loader->order[begin + i];
    } else {
        // Windows that do not overlap begin a context apart.
        const Field *x = &loader->dataset->x;
        int64_t step = x->kind == FIELD_WINDOWS ? x->size : 1;
        for (int64_t i = 0; i < count; i++)
            indices[i] = (begin + i) * step;
    }
}

static int64_t count_at(const Loader *loader, LoaderState at) {
    int64_t left = loader->samples - at.position * loader->options.batch;
    return left < loader->options.batch ? left : loader->options.batch;
}

// Which samples a slot gets, and then they themselves.
static void begin_slot(Loader *loader, Slot *slot, LoaderState at) {
    slot->count = count_at(loader, at);
    slot->at = at;
    choose_indices(loader, at, slot->count, slot->indices);
}

static void fill_slot(const Loader *loader, Slot *slot) {
    const Field *x = &loader->dataset->x;
    const Transform *transform = &loader->options.transform;
    dataset_fill(loader->dataset, slot->indices, slot->count, slot->x, slot->y);
    for (int64_t i = 0; i < slot->count && transform_changes(transform); i++)
        transform_sample(transform, x, loader->options.seed, slot->at.epoch, slot->indices[i],
                         (float *)slot->x + i * x->size, slot->scratch);
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

// The slot of the batch that is to be begun, or NULL: all are prepared that may be, or a thread is
// still at work there on what was thrown away.
static Slot *free_slot(Loader *loader) {
    if (loader->begun >= loader->taken + (uint64_t)loader->ahead)
        return NULL;
    Slot *slot = &loader->slots[loader->begun % (uint64_t)loader->slot_count];
    return slot->busy ? NULL : slot;
}

static void *run_filler(void *argument) {
    Loader *loader = argument;
    be_patient();
    pthread_mutex_lock(&loader->lock);
    while (!loader->stop) {
        Slot *slot = free_slot(loader);
        if (!slot) {
            loader->fillers_wait++;
            pthread_cond_wait(&loader->changed_for_filler, &loader->lock);
            loader->fillers_wait--;
            continue;
        }
        begin_slot(loader, slot, loader->next_begun);
        loader->next_begun = batch_after(loader, loader->next_begun);
        loader->begun++;
        slot->busy = true;
        uint64_t generation = loader->generation;
        pthread_mutex_unlock(&loader->lock);
        fill_slot(loader, slot);
        pthread_mutex_lock(&loader->lock);
        slot->busy = false;
        slot->ready = generation == loader->generation;
        if (slot->ready && loader->consumer_waits)
            pthread_cond_signal(&loader->changed_for_consumer);
        if (!slot->ready && loader->fillers_wait > 0)
            pthread_cond_broadcast(&loader->changed_for_filler);
    }
    pthread_mutex_unlock(&loader->lock);
    return NULL;
}

// Of several threads those do that can be started.
static bool start_threads(Loader *loader, Error *error) {
    // Signals are for the program's own threads to see.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = 0, wanted = loader->options.threads > 1 ? loader->options.threads : 1;
    while (code == 0 && loader->started < wanted) {
        code = pthread_create(&loader->thread[loader->started], NULL, run_filler, loader);
        loader->started += code == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (loader->started == 0)
        return error_fail(error, ERROR_FAILED, "cannot start the thread that loads data: %s%s",
                          error_cause(code), error_remedy(code));
    return true;
}

static Slot *take_slot(Loader *loader) {
    pthread_mutex_lock(&loader->lock);
    Slot *slot = &loader->slots[loader->taken % (uint64_t)loader->slot_count];
    while (!slot->ready) {
        loader->consumer_waits = true;
        pthread_cond_wait(&loader->changed_for_consumer, &loader->lock);
        loader->consumer_waits = false;
    }
    slot->ready = false;
    loader->taken++;
    if (loader->fillers_wait > 0)
        pthread_cond_signal(&loader->changed_for_filler);
    pthread_mutex_unlock(&loader->lock);
    return slot;
}

// Lets the threads go on from loader->next, whatever they have prepared. A slot that one of them is
// filling right now is not the consumer's, so the batch in use stays whole.
static void jump(Loader *loader) {
    pthread_mutex_lock(&loader->lock);
    loader->generation++;
    loader->begun = loader->taken;
    loader->next_begun = batch_at(loader, loader->next);
    for (int i = 0; i < loader->slot_count; i++)
        loader->slots[i].ready = false;
    if (loader->fillers_wait > 0)
        pthread_cond_broadcast(&loader->changed_for_filler);
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
    if (options->threads < 0 || options->threads > LOADER_MOST_THREADS)
        return error_fail(error, ERROR_USAGE, "threads: is %d; from 1 to %d is possible",
                          options->threads, LOADER_MOST_THREADS);
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

static bool allocate_slot(const Loader *loader, int64_t count, Slot *slot, Error *error) {
    const Dataset *dataset = loader->dataset;
    if (!allocate_field(loader, &dataset->x, count, &slot->x, error) ||
        !allocate_field(loader, &dataset->y, count, &slot->y, error))
        return false;
    slot->indices = calloc((size_t)count, sizeof *slot->indices);
    bool moves = transform_moves(&loader->options.transform);
    slot->scratch = moves ? calloc((size_t)dataset->x.size, sizeof *slot->scratch) : NULL;
    return (slot->indices && (slot->scratch || !moves)) ||
           error_fail(error, ERROR_MEMORY, "no memory for a batch of %" PRId64 " samples", count);
}

static bool allocate(Loader *loader, Error *error) {
    const Dataset *dataset = loader->dataset;
    const LoaderOptions *options = &loader->options;
    int64_t count = smaller(options->batch, loader->samples);
    int64_t bytes = 0, x_bytes = field_bytes(&dataset->x), y_bytes = field_bytes(&dataset->y);
    bool large = __builtin_mul_overflow(count, x_bytes + y_bytes, &bytes) || bytes > THREAD_FROM;
    loader->threaded = options->thread == LOADER_THREAD_ALWAYS || options->threads > 1 ||
                       (options->thread == LOADER_THREAD_AUTO && large);
    loader->ahead = options->threads > 1 ? options->threads + 1 : 2;
    loader->slot_count = loader->threaded ? loader->ahead + 1 : 1;
    for (int i = 0; i < loader->slot_count; i++)
        if (!allocate_slot(loader, count, &loader->slots[i], error))
            return false;
    if (options->shuffle && !draws_windows(loader)) {
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
    if (!transform_fits(&options->transform, &dataset->x, error) || !plan_epoch(loader, error) ||
        !allocate(loader, error)) {
        loader_free(loader);
        return NULL;
    }
    return loader;
}

void loader_free(Loader *loader) {
    if (!loader)
        return;
    pthread_mutex_lock(&loader->lock);
    loader->stop = true;
    pthread_cond_broadcast(&loader->changed_for_filler);
    pthread_mutex_unlock(&loader->lock);
    for (int i = 0; i < loader->started; i++)
        pthread_join(loader->thread[i], NULL);
    pthread_cond_destroy(&loader->changed_for_filler);
    pthread_cond_destroy(&loader->changed_for_consumer);
    pthread_mutex_destroy(&loader->lock);
    for (int i = 0; i < SLOTS; i++) {
        free(loader->slots[i].x);
        free(loader->slots[i].y);
        free(loader->slots[i].indices);
        free(loader->slots[i].scratch);
    }
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
    if (loader->threaded && !loader->started && !start_threads(loader, error))
        return false;
    Slot *slot = &loader->slots[0];
    if (loader->threaded) {
        slot = take_slot(loader);
    } else {
        begin_slot(loader, slot, loader->next);
        fill_slot(loader, slot);
    }
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
