#include "gpu/zero.h"

#include "gpu/gpu.h"

// Memory as work for the stream.
typedef struct Zeros {
    void *memory;
    size_t bytes;
} Zeros;

static CUresult put_zeros(Gpu *gpu, const void *what) {
    const Zeros *zeros = what;
    return gpu->driver->cuMemsetD8Async(gpu_address(zeros->memory), 0, zeros->bytes, gpu->stream);
}

bool gpu_zero(Device *device, void *memory, size_t bytes, Error *error) {
    static const char clearing[] = "clearing memory";
    Gpu *gpu = gpu_of(device);
    if (gpu->failure.code != ERROR_NONE)
        return gpu_has_failed(gpu, error);
    if (bytes == 0)
        return true;
    _Alignas(16) const Zeros zeros = {memory, bytes};
    gpu_enter(gpu);
    return gpu_check(gpu, gpu_put(gpu, put_zeros, clearing, &zeros, sizeof zeros), clearing, error);
}
