// tests/emulator/capture_fixture.h: gpu/capture.h over the emulated card without the rest of gpu/,
// and planted kernels as its works.
#pragma once

#include "gpu/capture.h"

#include "gpu/gpu.h"
#include "kernel/allocator.h"
#include "tests/emulator/fixture.h"

static Gpu gpu;
static Device device;
static float *x, *y;
static size_t accounted; // of the inbox
static bool takes_anew;  // memory: none of what is free

// In place of gpu/device.c.
bool gpu_has_failed(const Gpu *of, Error *error) {
    if (error)
        *error = of->failure;
    return false;
}
bool gpu_check(Gpu *of, CUresult result, const char *what, Error *error) {
    if (result == CUDA_SUCCESS)
        return true;
    if (of->failure.code == ERROR_NONE)
        (void)error_fail(&of->failure, ERROR_FAILED, "%s: %d", what, (int)result);
    return gpu_has_failed(of, error);
}
CUresult gpu_enter(const Gpu *of) {
    return driver->cuCtxSetCurrent(of->context);
}
// In place of kernel/allocator.c.
void allocator_account_own(Allocator *allocator, size_t was, size_t bytes, MemoryPurpose purpose) {
    (void)allocator;
    CHECK_INT(purpose, MEMORY_WORKSPACE);
    CHECK_INT(accounted, was);
    accounted = bytes;
}
void allocator_take_anew(Allocator *allocator, bool anew) {
    (void)allocator;
    takes_anew = anew;
}

// ---- works --------------------------------------------------------------------------------------

typedef struct Planted {
    char kernel[16];
    PlantedArguments arguments;
} Planted;

static inline CUresult put_kernel(Gpu *of, const void *what) {
    Planted planted;
    memcpy(&planted, what, sizeof planted);
    return launch_as(planted.kernel, BLOCKS, THREADS, 0, of->stream, planted.arguments);
}

static inline Planted planted(const char *kernel, const float *from, float *to, float value) {
    Planted planted;
    memset(&planted, 0, sizeof planted);
    snprintf(planted.kernel, sizeof planted.kernel, "%s", kernel);
    planted.arguments.x = from;
    planted.arguments.y = to;
    planted.arguments.count = COUNT;
    planted.arguments.value = value;
    return planted;
}
static inline CUresult call(GpuPut put, const char *kernel, const float *from, float *to,
                            float value) {
    const Planted what = planted(kernel, from, to, value);
    return gpu_put(&gpu, put, kernel, &what, sizeof what);
}
static inline void fill(float *memory, float value) {
    CHECK_INT(call(put_kernel, "fill", NULL, memory, value), CUDA_SUCCESS);
}
static inline void add_one(const float *from, float *to) {
    CHECK_INT(call(put_kernel, "add_one", from, to, 0), CUDA_SUCCESS);
}
// What the host sends goes by pageable memory here, which may be used again at once.
static inline void send(float *to, float value) {
    float host[COUNT];
    for (int i = 0; i < COUNT; i++)
        host[i] = value;
    write_floats(gpu_put_sent(&gpu, to, sizeof host), host, COUNT, gpu.stream);
}
static inline float look(const float *memory) {
    float value = -1;
    gpu_put_apart(&gpu);
    read_floats(&value, memory, 1, gpu.stream);
    return value;
}
static inline uint64_t end_step(void) {
    uint64_t captured = device.captured;
    gpu_end_step(&device);
    return device.captured - captured;
}

// A count goes on in x from step to step, by way of y.
static inline void count(void) {
    add_one(x, y);
    add_one(y, x);
}
// Steps that count, of which so many are the first to be the same.
static inline void count_steps(int steps) {
    for (int i = 0; i < steps; i++) {
        count();
        end_step();
    }
}

static inline void begin(const char *settings) {
    Error error;
    emulator_control.set(settings);
    gpu = (Gpu){.device = &device, .driver = driver, .context = context};
    device = (Device){.state = &gpu, .memory = 1 << 30};
    accounted = 0;
    CHECK_INT(driver->cuStreamCreate(&gpu.stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK(gpu_open_capture(&gpu, &error));
    x = card_floats(COUNT);
    y = card_floats(COUNT);
    CHECK_INT(driver->cuMemsetD8Async(address_of(x), 0, COUNT * sizeof *x, gpu.stream),
              CUDA_SUCCESS);
    gpu_end_step(&device);
}

static inline void end(void) {
    CHECK_MESSAGE(gpu.failure.code == ERROR_NONE, "%s", gpu.failure.text);
    gpu_close_capture(&gpu);
    card_free(x);
    card_free(y);
    CHECK_INT(driver->cuStreamDestroy(gpu.stream), CUDA_SUCCESS);
    CHECK_INT(card_state().graphs_left, 0);
    emulator_control.set("");
}
