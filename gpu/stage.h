// gpu/stage.h: bytes of the host on their way to the card.
//
// They are copied into pinned memory first, so that the host may reuse its own at once and nobody
// waits for the card to fetch them. Pieces fill one stage after another; a stage is filled anew
// when the card has passed all that was fetched from it, which is long past unless the host is as
// far ahead as all stages together hold. That is no part of a step (gpu/capture.h): pieces are on
// their way at once, be it to the inbox of a step that is held back.
#pragma once

#include "gpu/driver.h"

typedef struct Gpu Gpu;

enum { GPU_STAGES = 8 };

typedef struct GpuStage {
    char *memory;
    CUevent passed; // by the card, after the last piece in it
} GpuStage;

typedef struct GpuStages {
    GpuStage stage[GPU_STAGES];
    int filling; // the one that pieces go into
    size_t used; // bytes of it
} GpuStages;

bool gpu_open_stages(Gpu *gpu, Error *error) MUST_CHECK;
void gpu_close_stages(Gpu *gpu);

// Puts the copy behind all work of the device. What fails is kept, and told by the next check.
void gpu_send(Gpu *gpu, void *target, const void *host, size_t bytes);
