#include "gpu/clock.h"

#include <math.h>
#include <stdlib.h>

// Room for one more than `number`, and an event there.
static bool has_stamp(Gpu *gpu, int number) {
    if (number >= gpu->stamp_room) {
        int room = number + 1 > 2 * gpu->stamp_room ? number + 1 : 2 * gpu->stamp_room;
        CUevent *stamps = realloc(gpu->stamp, (size_t)room * sizeof *stamps);
        if (!stamps)
            return false;
        for (int i = gpu->stamp_room; i < room; i++)
            stamps[i] = NULL;
        gpu->stamp = stamps;
        gpu->stamp_room = room;
    }
    return gpu->stamp[number] ||
           gpu->driver->cuEventCreate(&gpu->stamp[number], CU_EVENT_DEFAULT) == CUDA_SUCCESS;
}

static bool stamp(Device *device, int number) {
    Gpu *gpu = gpu_of(device);
    if (gpu->failure.code != ERROR_NONE || !gpu_check(gpu, gpu_enter(gpu), "timing", NULL))
        return false;
    gpu_put_apart(gpu);
    return gpu->failure.code == ERROR_NONE && has_stamp(gpu, number) &&
           gpu_check(gpu, gpu->driver->cuEventRecord(gpu->stamp[number], gpu->stream), "timing",
                     NULL);
}

static double between(Device *device, int from, int to) {
    Gpu *gpu = gpu_of(device);
    float milliseconds = 0;
    if (gpu->failure.code != ERROR_NONE || !gpu_check(gpu, gpu_enter(gpu), "timing", NULL) ||
        gpu->driver->cuEventElapsedTime(&milliseconds, gpu->stamp[from], gpu->stamp[to]) !=
            CUDA_SUCCESS)
        return (double)NAN;
    return (double)milliseconds * 1e-3;
}

const ClockKernels gpu_clock = {.stamp = stamp, .between = between};

void gpu_close_clock(Gpu *gpu) {
    for (int i = 0; i < gpu->stamp_room; i++)
        if (gpu->stamp[i])
            gpu->driver->cuEventDestroy(gpu->stamp[i]);
    free(gpu->stamp);
}
