// The kernels of gpu/kernels, as functions of this program.
#include "gpu/kernels/arguments.h"
#include "tests/emulator/threads.h"

#define GPU_KERNEL(file, name, arguments, threads) \
    void gpu_kernel_##name(arguments a);           \
    static void call_##name(const void *a) {       \
        gpu_kernel_##name(*(const arguments *)a);  \
    }
#include "gpu/kernels/kernels.def"

const EmulatorKernel emulator_kernels[] = {
#define GPU_KERNEL(file, name, arguments, threads) \
    {#file, "gpu_kernel_" #name, call_##name, sizeof(arguments), threads},
#include "gpu/kernels/kernels.def"
    {0},
};
