#include "measure/limits.h"

#include <math.h>

#include "base/clock.h"
#include "measure/trial.h"
#include "ops/engine.h"

static const double long_enough = 5e-3, most_seconds = 0.1; // of one, and of those of one size

// What is measured: done once.
typedef struct Work {
    Trial *trial;    // a product, or
    Engine *engine;  // a sum
    Tensor *summand; // of this and itself
} Work;

static bool do_once(const Work *work, Error *error) {
    if (work->trial)
        return trial_do(work->trial, error);
    Tensor *sum = op_two(work->engine, OP_add, work->summand, work->summand, NULL, error);
    tensor_release(sum);
    return sum != NULL;
}

static bool time_once(Device *device, const Work *work, double *seconds, Error *error) {
    const double began = clock_seconds();
    if (!do_once(work, error))
        return false;
    device_synchronize(device);
    *seconds = clock_seconds() - began;
    return device_check(device, error);
}

// The best of several; the first makes what the others find made. Where it takes too little to tell
// of the device it is left at that.
static bool time_best(Device *device, const Work *work, double *best, Error *error) {
    enum { LEAST = 3 };
    const double began = clock_seconds();
    double seconds;
    if (!time_once(device, work, best, error))
        return false;
    for (int i = 1; i < LEAST || (*best >= long_enough && clock_seconds() - began < most_seconds);
         i++) {
        if (!time_once(device, work, &seconds, error))
            return false;
        *best = fmin(*best, seconds);
    }
    return true;
}

bool measure_product_limit(Device *device, Format format, double *rate, Error *error) {
    enum { LEAST = 256, MOST = 8192 };
    *rate = (double)NAN;
    if (!trial_is_possible(device, FORMAT_PRODUCT, format))
        return true;
    double seconds = 0;
    *rate = 0;
    for (int64_t size = LEAST; size <= MOST && seconds < long_enough; size *= 2) {
        Work work = {.trial = trial_new(device, FORMAT_PRODUCT, format, size, error)};
        const bool done = work.trial && time_best(device, &work, &seconds, error);
        trial_free(work.trial);
        if (!done)
            return false;
        *rate = fmax(*rate, (double)size * (double)size * (double)size / seconds);
    }
    return true;
}

// One tensor is read twice, which costs once.
static bool time_sum(Device *device, Engine *engine, int64_t count, double *seconds, Error *error) {
    Work work = {.engine = engine};
    work.summand = op_fill(engine, FORMAT_FP32, 1, &count, 1, error);
    const bool done = work.summand && time_best(device, &work, seconds, error);
    tensor_release(work.summand);
    return done;
}

bool measure_memory_limit(Device *device, double *rate, Error *error) {
    enum { LEAST = 1 << 18, MOST = 1 << 26, NUMBER = 4 };
    Preset preset;
    if (!preset_resolve(format_name(FORMAT_FP32), device, &preset, NULL, 0, error))
        return false;
    Engine *engine = engine_new(device, &preset, 1, error);
    if (!engine)
        return false;
    double seconds = 0;
    bool done = true;
    for (int64_t count = LEAST; done && count <= MOST && seconds < long_enough; count *= 4) {
        done = time_sum(device, engine, count, &seconds, error);
        *rate =
            2.0 * NUMBER * (double)count / seconds; // of the largest: smaller ones lie in caches
    }
    engine_free(engine);
    return done;
}
