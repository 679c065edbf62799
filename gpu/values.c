#include "gpu/values.h"

static const char failing[] = "fetching what kernels found";

static bool forget(Gpu *gpu, Error *error) {
    gpu_put_apart(gpu);
    gpu->arrived->call = FOUND_NOTHING;
    return gpu_check(gpu,
                     gpu->driver->cuMemsetD8Async(gpu_address(gpu->found), 0xFF, sizeof *gpu->found,
                                                  gpu->stream),
                     failing, error);
}

bool gpu_open_values(Gpu *gpu, Error *error) {
    CUdeviceptr found = 0;
    void *arrived = NULL;
    if (!gpu_check(gpu, gpu->driver->cuMemAlloc(&found, sizeof *gpu->found), failing, error))
        return false;
    gpu->found = (FoundValue *)(uintptr_t)found;
    if (!gpu_check(gpu, gpu->driver->cuMemHostAlloc(&arrived, sizeof *gpu->arrived, 0), failing,
                   error))
        return false;
    gpu->arrived = arrived;
    return forget(gpu, error);
}

void gpu_close_values(Gpu *gpu) {
    if (gpu->arrived)
        gpu->driver->cuMemFreeHost(gpu->arrived);
    if (gpu->found)
        gpu->driver->cuMemFree(gpu_address(gpu->found));
}

ValueArguments gpu_value_arguments(Device *device, const KernelCall *call, Fault fault,
                                   int64_t bound) {
    Gpu *gpu = gpu_of(device);
    return (ValueArguments){value_check(call, fault, bound), gpu->value_calls++, gpu->found};
}

bool gpu_fetch_values(Gpu *gpu) {
    return gpu_check(gpu,
                     gpu->driver->cuMemcpyDtoHAsync(gpu->arrived, gpu_address(gpu->found),
                                                    sizeof *gpu->arrived, gpu->stream),
                     failing, NULL);
}

bool gpu_take_status(Device *device, DeviceStatus *status) {
    Gpu *gpu = gpu_of(device);
    const FoundValue *arrived = gpu->arrived;
    if (gpu->failure.code != ERROR_NONE || arrived->call == FOUND_NOTHING)
        return false;
    *status = (DeviceStatus){arrived->check, (int64_t)(arrived->first >> 32),
                             (int32_t)(uint32_t)arrived->first};
    return forget(gpu, NULL);
}
