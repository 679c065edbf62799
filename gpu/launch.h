// gpu/launch.h: kernels as functions of C.
//
// gpu/kernels/kernels.def lists every kernel with the struct of its arguments; of each row here is
// one function, gpu_launch_NAME, that takes that struct and no other. The images that nvcc made of
// gpu/kernels/*.cu lie in the plugin (gpu/images.c), and are loaded once a device.
#pragma once

#include <stddef.h>

#include "gpu/kernels/arguments.h"
#include "kernel/kernel.h"

typedef enum GpuFile {
#define GPU_FILE(name) GPU_FILE_##name,
#include "gpu/kernels/files.def"
    GPU_FILES
} GpuFile;

typedef enum GpuKernel {
#define GPU_KERNEL(file, name, arguments, threads) GPU_KERNEL_##name,
#include "gpu/kernels/kernels.def"
    GPU_KERNELS
} GpuKernel;

// How many blocks, and how many bytes of dynamic shared memory each has. Threads a block: as many
// as kernels.def says, unless `threads` is given, a multiple of 32 not above that.
typedef struct GpuGrid {
    int64_t x;
    unsigned y, z; // 0: 1
    unsigned threads;
    unsigned shared;
} GpuGrid;

static inline int64_t gpu_divided_up(int64_t count, int64_t by) {
    return (count + by - 1) / by;
}

// As many blocks as give each of `count` elements a thread, where a thread takes `each` of them.
GpuGrid gpu_grid(GpuKernel kernel, int64_t count, int64_t each);

// Puts a kernel into the device's stream; with no block nothing happens. More blocks than one
// launch takes are refused, and the device is as good as before. What it failed at before fails
// again here.
bool gpu_launch(Device *device, GpuKernel kernel, GpuGrid grid, const void *arguments,
                Error *error) MUST_CHECK;

// Steps are compared byte by byte (gpu/record.h), and chance left its own between members. With a
// compiler that cannot clear that, a step may look like another than it is; no other one like it.
#if defined __has_builtin
#if __has_builtin(__builtin_clear_padding)
#define GPU_CLEAR_PADDING(arguments) __builtin_clear_padding(arguments)
#endif
#endif
#ifndef GPU_CLEAR_PADDING
#define GPU_CLEAR_PADDING(arguments) ((void)(arguments))
#endif

#define GPU_KERNEL(file, name, arguments, threads)                                         \
    static inline bool gpu_launch_##name(Device *device, GpuGrid grid, const arguments *a, \
                                         Error *error) {                                   \
        arguments clean = *a;                                                              \
        GPU_CLEAR_PADDING(&clean);                                                         \
        return gpu_launch(device, GPU_KERNEL_##name, grid, &clean, error);                 \
    }
#include "gpu/kernels/kernels.def"

// All kernels of the device's card.
bool gpu_load_kernels(Device *device, Error *error) MUST_CHECK;
void gpu_unload_kernels(Device *device);

// The image of a file of kernels: a fat binary in the plugin's own data.
extern const void *const gpu_images[GPU_FILES];
// What these are for, "80 90": 90 is 9.0. The oldest also serves every later card.
extern const char gpu_capabilities[];
