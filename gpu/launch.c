#include "gpu/launch.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "gpu/gpu.h"

typedef struct KernelFacts {
    const char *name; // as the image has it
    GpuFile file;
    unsigned threads;
    size_t arguments; // bytes
} KernelFacts;

static const KernelFacts facts[GPU_KERNELS] = {
#define GPU_KERNEL(file, name, arguments, threads) \
    {"gpu_kernel_" #name, GPU_FILE_##file, threads, sizeof(arguments)},
#include "gpu/kernels/kernels.def"
};

// What one launch can take.
enum { MOST_BLOCKS = 0x7FFFFFFF, MOST_BLOCKS_ACROSS = 65535, MOST_PARAMETERS = 4096 };

#define GPU_KERNEL(file, name, arguments, threads) \
    static_assert(sizeof(arguments) <= MOST_PARAMETERS, #name ": too many arguments");
#include "gpu/kernels/kernels.def"

bool gpu_load_kernels(Device *device, Error *error) {
    Gpu *gpu = gpu_of(device);
    for (int i = 0; i < GPU_FILES; i++) {
        CUresult result = gpu->driver->cuModuleLoadData(&gpu->module[i], gpu_images[i]);
        if (result == CUDA_ERROR_NO_BINARY_FOR_GPU)
            return error_fail(error, ERROR_UNAVAILABLE,
                              "device gpu: this build has no kernels for %s (capability %d.%d): it "
                              "was made with GPU_ARCHS=\"%s\", build it anew with %d among them",
                              device->name, gpu->capability / 10, gpu->capability % 10,
                              gpu_capabilities, gpu->capability);
        if (result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
            return error_fail(error, ERROR_UNAVAILABLE,
                              "device gpu: the driver of %s is older than the compiler of this "
                              "build's kernels: install a newer driver",
                              device->name);
        if (!gpu_check(gpu, result, "loading the kernels", error))
            return false;
    }
    for (int i = 0; i < GPU_KERNELS; i++)
        if (!gpu_check(gpu,
                       gpu->driver->cuModuleGetFunction(&gpu->kernel[i], gpu->module[facts[i].file],
                                                        facts[i].name),
                       facts[i].name, error))
            return false;
    return true;
}

void gpu_unload_kernels(Device *device) {
    Gpu *gpu = gpu_of(device);
    for (int i = 0; i < GPU_FILES; i++)
        if (gpu->module[i])
            gpu->driver->cuModuleUnload(gpu->module[i]);
}

GpuGrid gpu_grid(GpuKernel kernel, int64_t count, int64_t each) {
    int64_t of_block = (int64_t)facts[kernel].threads * each;
    return (GpuGrid){.x = gpu_divided_up(count, of_block)};
}

// The driver would refuse it too, but what the driver refuses is a failure of the card.
static bool fits_launch(const Device *device, GpuKernel kernel, GpuGrid grid, Error *error) {
    return (grid.x <= MOST_BLOCKS && grid.y <= MOST_BLOCKS_ACROSS &&
            grid.z <= MOST_BLOCKS_ACROSS) ||
           error_fail(error, ERROR_UNAVAILABLE,
                      "device %s: %s: tensors of such sizes need %lld x %u x %u blocks, more than "
                      "one launch takes; use --device cpu",
                      device->label, facts[kernel].name, (long long)grid.x, grid.y ? grid.y : 1,
                      grid.z ? grid.z : 1);
}

// A launch as work for the stream.
typedef struct Launch {
    unsigned kernel; // GpuKernel
    unsigned grid[3], threads, shared;
    unsigned unused[2];
    _Alignas(16) char arguments[MOST_PARAMETERS];
} Launch;

static CUresult put_launch(Gpu *gpu, const void *what) {
    const Launch *launch = what;
    void *parameters[] = {(void *)(uintptr_t)launch->arguments};
    return gpu->driver->cuLaunchKernel(gpu->kernel[launch->kernel], launch->grid[0],
                                       launch->grid[1], launch->grid[2], launch->threads, 1, 1,
                                       launch->shared, gpu->stream, parameters, NULL);
}

bool gpu_launch(Device *device, GpuKernel kernel, GpuGrid grid, const void *arguments,
                Error *error) {
    Gpu *gpu = gpu_of(device);
    if (gpu->failure.code != ERROR_NONE)
        return gpu_has_failed(gpu, error);
    if (grid.x == 0)
        return true;
    if (!fits_launch(device, kernel, grid, error))
        return false;
    gpu_enter(gpu);
    Launch launch;
    launch.kernel = kernel;
    launch.grid[0] = (unsigned)grid.x;
    launch.grid[1] = grid.y ? grid.y : 1;
    launch.grid[2] = grid.z ? grid.z : 1;
    launch.threads = grid.threads ? grid.threads : facts[kernel].threads;
    launch.shared = grid.shared;
    launch.unused[0] = launch.unused[1] = 0;
    assert(launch.threads % 32 == 0 && launch.threads <= facts[kernel].threads);
    memcpy(launch.arguments, arguments, facts[kernel].arguments);
    CUresult result = gpu_put(gpu, put_launch, facts[kernel].name, &launch,
                              offsetof(Launch, arguments) + facts[kernel].arguments);
    return gpu_check(gpu, result, facts[kernel].name, error);
}
