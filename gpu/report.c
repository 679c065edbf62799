#include "gpu/report.h"

static const char failing[] = "reporting a step";

bool gpu_open_marks(Gpu *gpu, Error *error) {
    for (int i = 0; i < GPU_MARKS; i++) {
        void *found = NULL;
        if (!gpu_check(gpu, gpu->driver->cuMemHostAlloc(&found, sizeof(FoundValue), 0), failing,
                       error))
            return false;
        gpu->mark[i].found = found;
        gpu->mark[i].found->call = FOUND_NOTHING;
        if (!gpu_check(gpu, gpu->driver->cuEventCreate(&gpu->mark[i].past, CU_EVENT_DISABLE_TIMING),
                       failing, error))
            return false;
    }
    return true;
}

void gpu_close_marks(Gpu *gpu) {
    for (int i = 0; i < GPU_MARKS; i++) {
        if (gpu->mark[i].past)
            gpu->driver->cuEventDestroy(gpu->mark[i].past);
        if (gpu->mark[i].found)
            gpu->driver->cuMemFreeHost(gpu->mark[i].found);
    }
}

static void *memory_new(Device *device, size_t bytes) {
    Gpu *gpu = gpu_of(device);
    void *memory = NULL;
    gpu_enter(gpu);
    CUresult result = gpu->driver->cuMemHostAlloc(&memory, bytes, 0);
    if (result != CUDA_ERROR_OUT_OF_MEMORY && !gpu_check(gpu, result, failing, NULL))
        return NULL;
    return memory;
}

static void memory_free(Device *device, void *memory, size_t bytes) {
    (void)bytes;
    Gpu *gpu = gpu_of(device);
    gpu_enter(gpu);
    bool freed = gpu_check(gpu, gpu->driver->cuMemFreeHost(memory), failing, NULL);
    (void)freed; // the failure is kept, and told by the next check
}

static bool fetch(Gpu *gpu, void *host, const void *source, size_t bytes) {
    gpu_enter(gpu);
    gpu_put_apart(gpu);
    return gpu->failure.code == ERROR_NONE &&
           gpu_check(gpu,
                     gpu->driver->cuMemcpyDtoHAsync(host, gpu_address(source), bytes, gpu->stream),
                     failing, NULL);
}

static void copy(Device *device, void *host, const void *source, size_t bytes) {
    bool done = bytes == 0 || fetch(gpu_of(device), host, source, bytes);
    (void)done;
}

static void mark(Device *device, int number) {
    Gpu *gpu = gpu_of(device);
    GpuMark *one = &gpu->mark[number];
    bool done = fetch(gpu, one->found, gpu->found, sizeof *one->found) &&
                gpu_check(gpu, gpu->driver->cuEventRecord(one->past, gpu->stream), failing, NULL);
    (void)done;
}

// Of a card that has failed all is past: whoever looks at the report checks the device before.
static bool is_past(Device *device, int number, bool waits) {
    Gpu *gpu = gpu_of(device);
    GpuMark *one = &gpu->mark[number];
    if (gpu->failure.code != ERROR_NONE)
        return true;
    gpu_enter(gpu);
    CUresult result =
        waits ? gpu->driver->cuEventSynchronize(one->past) : gpu->driver->cuEventQuery(one->past);
    if (result == CUDA_ERROR_NOT_READY)
        return false;
    if (gpu_check(gpu, result, failing, NULL) && one->found->call != FOUND_NOTHING)
        *gpu->arrived = *one->found; // for take_status
    return true;
}

const ReportKernels gpu_report = {.late = GPU_MARKS - 1,
                                  .memory_new = memory_new,
                                  .memory_free = memory_free,
                                  .copy = copy,
                                  .mark = mark,
                                  .is_past = is_past};
