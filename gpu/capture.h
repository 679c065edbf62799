// gpu/capture.h: the one way into a device's stream, and steps that go there as graphs.
//
// Work for the card is a function that puts it into the stream, and the bytes that it is told: what
// has the same function and the same bytes does the same. Usually it is put there at once. Of the
// steps of a training (Backend's end_step is between two) the work is remembered, and what came a
// second time, call for call and address for address, is captured as a graph: from what is
// remembered, when the step is over, so that nothing is lost where that fails. From then on a step
// is held back as long as its calls are those of a graph, one after the other; if they all were,
// the graph is launched at its end. At the first call that is another one, and before anybody waits
// or goes to the stream by himself, what was held back is put there, in order, and the step goes on
// as ever. So a graph is launched only where each of its calls was made, with all that it is told.
//
// What changes from step to step must not be among those bytes, or no step is ever like another. It
// lies in memory of the device; what the host sends passes through the inbox, below. From the
// thread that drives the device, which has been entered (gpu_enter).
#pragma once

#include "gpu/driver.h"
#include "kernel/kernel.h"

typedef struct Gpu Gpu;
typedef struct GpuCapture GpuCapture;

// Puts a work into gpu->stream. It reads nothing but `what`, aligned to 16 bytes, and memory that
// lasts as long as the device; it waits for nothing and takes no memory. A library that refuses
// says why in gpu->refusal.
typedef CUresult (*GpuPut)(Gpu *gpu, const void *what);

// What does a work in place of a library that refuses it, when it was held back before and its
// caller is long gone: `told` are bytes that follow from what the library was told, and are kept
// beside it. It goes by words of kernel/kernel.h, and may take memory.
typedef struct GpuInstead {
    bool (*run)(Device *device, const void *told, Error *error);
    const void *told;
    size_t bytes;
    int covers; // so many works that follow are done by it too
} GpuInstead;

bool gpu_open_capture(Gpu *gpu, Error *error) MUST_CHECK;
void gpu_close_capture(Gpu *gpu);

// Puts it, or holds it back: then its failure is told later, by `name`, which lasts as long as the
// device, and kept.
CUresult gpu_put(Gpu *gpu, GpuPut put, const char *name, const void *what, size_t bytes);
// The same for a library: what it refuses at once is the caller's to do otherwise, what it refuses
// after it was held back is done by `instead`. That is told by a remark of the device, once.
CUresult gpu_put_or(Gpu *gpu, GpuPut put, const GpuInstead *instead, const char *name,
                    const void *what, size_t bytes);

// Where bytes that the host sends to `target` are to be put at once: there, or into the inbox, from
// which the step brings them on when its turn comes.
void *gpu_put_sent(Gpu *gpu, void *target, size_t bytes);

// Before anything that waits for the stream or goes there by itself. Between two steps it disturbs
// nothing; a step in which it happens is not captured.
void gpu_put_apart(Gpu *gpu);

// Before memory of the device is given back, or what works are told is made anew.
void gpu_forget_steps(Gpu *gpu);

// Backend's end_step.
void gpu_end_step(Device *device);
