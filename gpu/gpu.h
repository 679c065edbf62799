// gpu/gpu.h: what one opened card is, for the files of this room alone.
//
// All work of a device goes to one stream, in the order of the calls (gpu/capture.h), and nothing
// waits for it but reading and synchronising. What the driver refuses after the device was opened
// is kept: no later kernel does anything but say so (faults 56 to 60), since a card that failed
// once gives no right number any more. From the thread that drives the device.
#pragma once

#include "gpu/blas_products.h"
#include "gpu/capture.h"
#include "gpu/driver.h"
#include "gpu/launch.h"
#include "gpu/stage.h"
#include "kernel/kernel.h"

enum { GPU_MARKS = 5 };

// Where a report of a step has come to: gpu/report.h.
typedef struct GpuMark {
    CUevent past;
    FoundValue *found; // pinned: what kernels had found by then
} GpuMark;

typedef struct Gpu {
    Device *device;
    bool is_open;
    const GpuDriver *driver;
    CUdevice card;
    CUcontext context;
    CUstream stream;
    GpuCapture *capture;
    CUmodule module[GPU_FILES];
    CUfunction kernel[GPU_KERNELS];
    GpuStages stages;
    CUevent *stamp; // gpu/clock.h; [stamp_room]
    int stamp_room;
    GpuMark mark[GPU_MARKS];
    FoundValue *found,
        *arrived;         // gpu/values.h: on the device; on this side, as it was fetched last
    uint64_t value_calls; // of this step that were told to look at values
    struct Dnn *dnn;      // gpu/dnn.h: opened when it was first asked for; NULL: there is none
    bool dnn_asked;
    Error refusal;            // why a library last did not do a work (GpuPut)
    int capability;           // 90 is 9.0
    struct NvmlCard *sensors; // of it, for gpu/about.c; NULL: none, or not yet looked for
    bool has_looked_for_sensors;
    BlasProducts *products; // NULL: there is no library
    Error failure;          // the first; its code is ERROR_NONE while there was none
} Gpu;

static inline Gpu *gpu_of(const Device *device) {
    return (Gpu *)device->state;
}

// Whether a call of the driver went well. If not: `error` says what failed, and it is kept.
bool gpu_check(Gpu *gpu, CUresult result, const char *what, Error *error) MUST_CHECK;

// Makes the card the one that the driver's calls of this thread are about. Whoever makes the next
// need not ask how it went: that fails as this did.
CUresult gpu_enter(const Gpu *gpu);

// Tells what the device failed at; always false.
bool gpu_has_failed(const Gpu *gpu, Error *error) MUST_CHECK;

// An address as the driver takes it.
static inline CUdeviceptr gpu_address(const void *memory) {
    return (CUdeviceptr)(uintptr_t)memory;
}
