#include "checkpoint/replay.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/multi.h"

typedef struct Replay {
    Backend idle;
    const Backend *real;
    Kernel kernels[OP_COUNT];
    MultiKernels multi;
} Replay;

static bool no_kernel(Device *device, const KernelCall *call, Error *error) {
    (void)device, (void)call, (void)error;
    return true;
}

static void no_write(Device *device, void *target, const void *host, size_t bytes) {
    (void)device, (void)target, (void)host, (void)bytes;
}

static void read_zeros(Device *device, void *host, const void *source, size_t bytes) {
    (void)device, (void)source;
    memset(host, 0, bytes);
}

static bool no_scan(Device *device, ScanPlan *plan, const ScaleState *scale, StepFlags *flags,
                    Error *error) {
    (void)device, (void)plan, (void)scale, (void)flags, (void)error;
    return true;
}

static bool no_clip_norm(Device *device, double limit, StepFlags *flags, Error *error) {
    (void)device, (void)limit, (void)flags, (void)error;
    return true;
}

static bool no_clip_value(Device *device, ScanPlan *plan, float limit, Error *error) {
    (void)device, (void)plan, (void)limit, (void)error;
    return true;
}

static bool no_multiply(Device *device, ScanPlan *plan, const float *factor, Error *error) {
    (void)device, (void)plan, (void)factor, (void)error;
    return true;
}

static bool no_update(Device *device, const UpdateRule *rule, UpdatePlan *plan,
                      const StepFlags *flags, Progress *progress, Error *error) {
    (void)device, (void)rule, (void)plan, (void)flags, (void)progress, (void)error;
    return true;
}

static bool no_scale_update(Device *device, const ScaleRule *rule, ScaleState *state,
                            const StepFlags *const *flags, int count, Error *error) {
    (void)device, (void)rule, (void)state, (void)flags, (void)count, (void)error;
    return true;
}

static bool no_restore(Device *device, PairPlan *plan, const StepFlags *flags, Error *error) {
    (void)device, (void)plan, (void)flags, (void)error;
    return true;
}

static bool no_average(Device *device, PairPlan *plan, double decay, const StepFlags *flags,
                       Error *error) {
    (void)device, (void)plan, (void)decay, (void)flags, (void)error;
    return true;
}

static const MultiKernels no_multi = {
    .scan = no_scan,
    .clip_norm = no_clip_norm,
    .clip_value = no_clip_value,
    .multiply = no_multiply,
    .update = no_update,
    .scale_update = no_scale_update,
    .restore = no_restore,
    .average = no_average,
};

void device_note_step(Device *device) {
    device->marks.written |= MARK_LATE;
}

bool device_is_late(const Device *device) {
    return device->marks.written & MARK_LATE;
}

bool device_begin_replay(Device *device, Error *error) {
    assert(!device_is_idle(device) && device_is_late(device));
    Replay *replay = calloc(1, sizeof *replay);
    if (!replay)
        return error_fail(error, ERROR_MEMORY, "no memory to replay the script");
    replay->real = device->backend;
    replay->idle = *device->backend;
    for (int i = 0; i < OP_COUNT; i++)
        replay->kernels[i] = device->backend->kernels[i] ? no_kernel : NULL;
    replay->idle.is_idle = true;
    replay->idle.kernels = replay->kernels;
    replay->multi = no_multi;
    replay->multi.drop = device->backend->multi->drop; // of plans that were made before
    replay->idle.multi = &replay->multi;
    replay->idle.write = no_write;
    replay->idle.read = read_zeros;
    replay->idle.end_step = NULL;
    replay->idle.report = NULL; // nothing is asked for
    device->backend = &replay->idle;
    device->marks.written |= MARK_HOLLOW;
    device->marks.unreadable = 0;
    return true;
}

void device_end_replay(Device *device) {
    if (!device_is_idle(device))
        return;
    Replay *replay = (Replay *)device->backend; // whose first member it is
    device->backend = replay->real;
    device->marks.written &= (uint8_t)~MARK_HOLLOW;
    device->marks.unreadable = MARK_HOLLOW;
    device->marks.why = "this tensor was made before the checkpoint that the run resumed from and "
                        "is not in it; keep it as a field of a module that run:model knows, or "
                        "resume with --weights-only";
    free(replay);
}
