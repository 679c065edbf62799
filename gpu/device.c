// A card as a device: opening, memory, bytes to and fro.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/about.h"
#include "gpu/backend.h"
#include "gpu/clock.h"
#include "gpu/dnn.h"
#include "gpu/gpu.h"
#include "gpu/report.h"
#include "gpu/values.h"
#include "kernel/scale.h"

enum { OLDEST_CAPABILITY = 80 };

// ---- what the driver says -----------------------------------------------------------------------

static const char *cause_of(const Gpu *gpu, CUresult result) {
    const char *text = NULL;
    if (gpu->driver->cuGetErrorString(result, &text) != CUDA_SUCCESS || !text)
        text = "an error that the driver has no words for";
    return text;
}

bool gpu_has_failed(const Gpu *gpu, Error *error) {
    if (error)
        *error = gpu->failure;
    return false;
}

bool gpu_check(Gpu *gpu, CUresult result, const char *what, Error *error) {
    if (result == CUDA_SUCCESS)
        return true;
    if (gpu->failure.code == ERROR_NONE)
        (void)error_fail(&gpu->failure, ERROR_FAILED, "device %s: %s: %s (error %d); %s",
                         gpu->device->label, what, cause_of(gpu, result), (int)result,
                         gpu->is_open
                             ? "what the card computes is not to be trusted any more: resume the "
                               "run from its last checkpoint, or begin it anew where it has none"
                             : "use another, or --device cpu");
    return gpu_has_failed(gpu, error);
}

CUresult gpu_enter(const Gpu *gpu) {
    static _Thread_local CUcontext current;
    if (current == gpu->context)
        return CUDA_SUCCESS;
    CUresult result = gpu->driver->cuCtxSetCurrent(gpu->context);
    current = result == CUDA_SUCCESS ? gpu->context : NULL;
    return result;
}

// ---- opening and closing ------------------------------------------------------------------------

static int attribute(const Gpu *gpu, CUdevice_attribute which) {
    int value = 0;
    return gpu->driver->cuDeviceGetAttribute(&value, which, gpu->card) == CUDA_SUCCESS ? value : 0;
}

// A driver is started once, whatever comes of it.
static const GpuDriver *start_driver(Error *error) {
    static const GpuDriver *driver;
    static Error failure;
    if (!driver && failure.code == ERROR_NONE)
        driver = gpu_driver(&failure);
    if (!driver && error)
        *error = failure;
    return driver;
}

static int count_cards(void) {
    const GpuDriver *driver = start_driver(NULL);
    int cards;
    if (!driver)
        return 0;
    return driver->cuDeviceGetCount(&cards) == CUDA_SUCCESS ? cards : 1; // opening it tells why
}

static void prepare(void) {
    if (count_cards() > 0)
        gpu_hold_libraries();
}

static bool choose_card(Device *device, int index, Error *error) {
    Gpu *gpu = gpu_of(device);
    int cards = 0;
    if (!gpu_check(gpu, gpu->driver->cuDeviceGetCount(&cards), "counting the cards", error))
        return false;
    if (index >= cards)
        return error_fail(error, ERROR_UNAVAILABLE,
                          "device gpu:%d: this machine has %d card%s that the driver serves%s",
                          index, cards, cards == 1 ? "" : "s", cards ? ", the first is gpu:0" : "");
    if (!gpu_check(gpu, gpu->driver->cuDeviceGet(&gpu->card, index), "asking for the card",
                   error) ||
        !gpu_check(gpu,
                   gpu->driver->cuDeviceGetName(device->name, (int)sizeof device->name, gpu->card),
                   "asking for the card's name", error))
        return false;
    gpu->capability = 10 * attribute(gpu, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                      attribute(gpu, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    device->multiprocessors = attribute(gpu, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    if (gpu->capability < OLDEST_CAPABILITY)
        return error_fail(error, ERROR_UNAVAILABLE,
                          "device gpu:%d: %s has capability %d.%d, 8.0 or later is needed: use "
                          "--device cpu",
                          index, device->name, gpu->capability / 10, gpu->capability % 10);
    size_t memory = 0;
    if (!gpu_check(gpu, gpu->driver->cuDeviceTotalMem(&memory, gpu->card),
                   "asking for the card's memory", error))
        return false;
    device->memory = memory;
    snprintf(device->about, sizeof device->about,
             "capability %d.%d, %.1f GiB, its driver serves CUDA %d.%d", gpu->capability / 10,
             gpu->capability % 10, (double)memory / (1 << 30), gpu->driver->version / 1000,
             gpu->driver->version % 1000 / 10);
    return true;
}

static void close_gpu(Device *device) {
    Gpu *gpu = gpu_of(device);
    gpu_enter(gpu);
    gpu_close_capture(gpu);
    gpu_close_stages(gpu);
    gpu_close_dnn(gpu);
    gpu_close_clock(gpu);
    gpu_close_marks(gpu);
    gpu_close_values(gpu);
    blas_products_close(gpu->products);
    gpu_unload_kernels(device);
    if (gpu->stream)
        gpu->driver->cuStreamDestroy(gpu->stream);
    if (gpu->context)
        gpu->driver->cuDevicePrimaryCtxRelease(gpu->card);
    gpu->context = NULL;
    gpu_enter(gpu);
    free(gpu);
    device->state = NULL;
}

static bool start(Device *device, int index, Error *error) {
    Gpu *gpu = gpu_of(device);
    return choose_card(device, index, error) &&
           gpu_check(gpu, gpu->driver->cuDevicePrimaryCtxRetain(&gpu->context, gpu->card),
                     "starting the card", error) &&
           gpu_check(gpu, gpu_enter(gpu), "starting the card", error) &&
           gpu_check(gpu, gpu->driver->cuStreamCreate(&gpu->stream, CU_STREAM_NON_BLOCKING),
                     "making a stream", error) &&
           gpu_open_capture(gpu, error) && gpu_open_stages(gpu, error) &&
           gpu_open_values(gpu, error) && gpu_open_marks(gpu, error) &&
           gpu_load_kernels(device, error);
}

static bool open_gpu(Device *device, int index, int threads, Error *error) {
    const GpuDriver *driver = start_driver(error);
    if (!driver)
        return false;
    Gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu)
        return error_fail(error, ERROR_MEMORY, "device gpu: no memory");
    gpu->device = device;
    gpu->driver = driver;
    device->state = gpu;
    device->threads = threads > 0 ? threads : 1;
    gpu->is_open = start(device, index, error);
    if (gpu->is_open) {
        gpu_enter(gpu);
        gpu->products = blas_products_open();
        return true;
    }
    close_gpu(device);
    return false;
}

// ---- memory -------------------------------------------------------------------------------------

// None left is no failure of the card: the allocator gives up its cache, and says what is too much.
static void *memory_new(Device *device, size_t bytes) {
    Gpu *gpu = gpu_of(device);
    CUdeviceptr memory = 0;
    gpu_enter(gpu);
    CUresult result = gpu->driver->cuMemAlloc(&memory, bytes);
    if (result != CUDA_ERROR_OUT_OF_MEMORY &&
        !gpu_check(gpu, result, "taking memory of the card", NULL))
        return NULL;
    return (void *)(uintptr_t)memory;
}

static void memory_free(Device *device, void *memory, size_t bytes) {
    (void)bytes;
    Gpu *gpu = gpu_of(device);
    gpu_enter(gpu);
    gpu_forget_steps(gpu);
    device->waits++;
    bool freed =
        gpu_check(gpu, gpu->driver->cuStreamSynchronize(gpu->stream), "waiting", NULL) &&
        gpu_check(gpu, gpu->driver->cuMemFree(gpu_address(memory)), "giving back memory", NULL);
    (void)freed; // the failure is kept, and told by the next check
}

static void write_bytes(Device *device, void *target, const void *host, size_t bytes) {
    Gpu *gpu = gpu_of(device);
    gpu_enter(gpu);
    gpu_send(gpu, target, host, bytes);
}

// With what kernels found on the way.
static bool wait_for_all(Gpu *gpu) {
    return gpu_fetch_values(gpu) && gpu_check(gpu, gpu->driver->cuStreamSynchronize(gpu->stream),
                                              "waiting for the card", NULL);
}

// What cannot be read is read as zeros; whoever then checks the device is told why.
static void read_bytes(Device *device, void *host, const void *source, size_t bytes) {
    Gpu *gpu = gpu_of(device);
    if (bytes == 0)
        return;
    gpu_enter(gpu);
    gpu_put_apart(gpu);
    if (gpu->failure.code == ERROR_NONE &&
        gpu_check(gpu,
                  gpu->driver->cuMemcpyDtoHAsync(host, gpu_address(source), bytes, gpu->stream),
                  "copying from the card", NULL) &&
        wait_for_all(gpu))
        return;
    memset(host, 0, bytes);
}

static void synchronize(Device *device) {
    Gpu *gpu = gpu_of(device);
    gpu_enter(gpu);
    gpu_put_apart(gpu);
    if (gpu->failure.code == ERROR_NONE) {
        bool done = wait_for_all(gpu);
        (void)done; // the failure is kept, and told by the next check
    }
}

static bool check(const Device *device, Error *error) {
    const Gpu *gpu = gpu_of(device);
    return gpu->failure.code == ERROR_NONE || gpu_has_failed(gpu, error);
}

// ---- the tables ---------------------------------------------------------------------------------

static bool multiplies(OpId op) {
    switch (op) {
    case OP_matmul:
    case OP_linear:
    case OP_conv2d:
    case OP_conv2d_backward_input:
    case OP_conv2d_backward_weight:
    case OP_conv_transpose2d:
    case OP_attention:
    case OP_attention_backward: return true;
    default: return false;
    }
}

static bool supports(const Device *device, OpId op, Format format) {
    (void)device;
    return format_trains(format) || (format_multiplies(format) && multiplies(op)) ||
           (format_is_scaled(format) && scale_serves(op)) ||
           (op == OP_cast && format_is_plain(format) && format != FORMAT_TF32);
}

static const Kernel kernels[OP_COUNT] = {
#define OP(name, ...) [OP_##name] = gpu_##name,
#include "kernel/ops.def"
};

static const char *const absences[OP_COUNT] = {NULL};

const Backend gpu_backend = {
    .name = "gpu",
    .count = count_cards,
    .prepare = prepare,
    .open = open_gpu,
    .close = close_gpu,
    .memory_new = memory_new,
    .memory_free = memory_free,
    .write = write_bytes,
    .read = read_bytes,
    .synchronize = synchronize,
    .report = &gpu_report,
    .clock = &gpu_clock,
    .take_status = gpu_take_status,
    .end_step = gpu_end_step,
    .check = check,
    .kernels = kernels,
    .absences = absences,
    .supports = supports,
    .gain = gpu_gain,
    .parts = gpu_parts,
    .readings = gpu_readings,
    .multi = &gpu_multi,
};
