#include "gpu/stage.h"

#include <string.h>

#include "gpu/gpu.h"

enum { STAGE_BYTES = 1 << 20, PIECE_STEP = 64 }; // pieces begin at multiples of the step

bool gpu_open_stages(Gpu *gpu, Error *error) {
    for (int i = 0; i < GPU_STAGES; i++) {
        GpuStage *stage = &gpu->stages.stage[i];
        void *memory = NULL;
        if (!gpu_check(gpu, gpu->driver->cuMemHostAlloc(&memory, STAGE_BYTES, 0),
                       "taking pinned memory", error))
            return false;
        stage->memory = memory;
        if (!gpu_check(gpu, gpu->driver->cuEventCreate(&stage->passed, CU_EVENT_DISABLE_TIMING),
                       "making an event", error))
            return false;
    }
    return true;
}

void gpu_close_stages(Gpu *gpu) {
    for (int i = 0; i < GPU_STAGES; i++) {
        GpuStage *stage = &gpu->stages.stage[i];
        if (stage->passed)
            gpu->driver->cuEventDestroy(stage->passed);
        if (stage->memory)
            gpu->driver->cuMemFreeHost(stage->memory);
    }
}

// The full stage is marked, and the next, which the card has passed, is there to be filled.
static bool turn(Gpu *gpu) {
    GpuStages *stages = &gpu->stages;
    static const char failing[] = "copying to the card";
    if (!gpu_check(gpu,
                   gpu->driver->cuEventRecord(stages->stage[stages->filling].passed, gpu->stream),
                   failing, NULL))
        return false;
    stages->filling = (stages->filling + 1) % GPU_STAGES;
    stages->used = 0;
    CUevent passed = stages->stage[stages->filling].passed;
    CUresult result = gpu->driver->cuEventQuery(passed);
    if (result == CUDA_ERROR_NOT_READY) {
        gpu->device->waits++;
        result = gpu->driver->cuEventSynchronize(passed);
    }
    return gpu_check(gpu, result, failing, NULL);
}

void gpu_send(Gpu *gpu, void *target, const void *host, size_t bytes) {
    GpuStages *stages = &gpu->stages;
    if (bytes == 0 || gpu->failure.code != ERROR_NONE)
        return;
    char *to = gpu_put_sent(gpu, target, bytes);
    for (size_t done = 0; done < bytes && gpu->failure.code == ERROR_NONE;) {
        if (stages->used == STAGE_BYTES && !turn(gpu))
            return;
        size_t room = STAGE_BYTES - stages->used;
        size_t part = bytes - done < room ? bytes - done : room;
        char *piece = stages->stage[stages->filling].memory + stages->used;
        memcpy(piece, (const char *)host + done, part);
        if (!gpu_check(
                gpu,
                gpu->driver->cuMemcpyHtoDAsync(gpu_address(to + done), piece, part, gpu->stream),
                "copying to the card", NULL))
            return;
        done += part;
        stages->used += (part + PIECE_STEP - 1) / PIECE_STEP * PIECE_STEP;
    }
}
