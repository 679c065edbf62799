// gpu/driver.h: the driver's functions as one table, opened at run time.
//
// cuda.h gives types and names only: nothing is linked. The table is filled from the driver of this
// machine, or, in tests, by the emulator (tests/emulator), which defines gpu_driver itself. Whoever
// needs another function of the driver adds its name here, and to the emulator. Any thread.
#pragma once

#include <cuda.h>

#include "base/error.h"

#define GPU_DRIVER_FUNCTIONS(F)  \
    F(cuInit)                    \
    F(cuDriverGetVersion)        \
    F(cuGetErrorString)          \
    F(cuDeviceGetCount)          \
    F(cuDeviceGet)               \
    F(cuDeviceGetName)           \
    F(cuDeviceGetAttribute)      \
    F(cuDeviceTotalMem)          \
    F(cuDevicePrimaryCtxRetain)  \
    F(cuDevicePrimaryCtxRelease) \
    F(cuCtxSetCurrent)           \
    F(cuModuleLoadData)          \
    F(cuModuleUnload)            \
    F(cuModuleGetFunction)       \
    F(cuLaunchKernel)            \
    F(cuMemAlloc)                \
    F(cuMemFree)                 \
    F(cuMemHostAlloc)            \
    F(cuMemFreeHost)             \
    F(cuMemcpyHtoDAsync)         \
    F(cuMemcpyDtoHAsync)         \
    F(cuMemcpyDtoDAsync)         \
    F(cuMemsetD8Async)           \
    F(cuStreamCreate)            \
    F(cuStreamDestroy)           \
    F(cuStreamSynchronize)       \
    F(cuStreamWaitEvent)         \
    F(cuEventCreate)             \
    F(cuEventDestroy)            \
    F(cuEventRecord)             \
    F(cuEventSynchronize)        \
    F(cuEventQuery)              \
    F(cuEventElapsedTime)        \
    F(cuStreamBeginCapture)      \
    F(cuStreamEndCapture)        \
    F(cuGraphInstantiate)        \
    F(cuGraphDestroy)            \
    F(cuGraphLaunch)             \
    F(cuGraphExecDestroy)

// cuda.h renames some (cuMemAlloc is cuMemAlloc_v2); a member is renamed with its function.
typedef struct GpuDriver {
#define MEMBER(name) __typeof__(&name) name;
    GPU_DRIVER_FUNCTIONS(MEMBER)
#undef MEMBER
    int version; // of CUDA that the driver serves: 13000 is 13.0
} GpuDriver;

// The table, filled and initialised once; NULL where there is no driver or no card that it serves,
// or where it is too old, with what to do.
const GpuDriver *gpu_driver(Error *error) MUST_CHECK;

// For who fills a table: starts the driver, and says in the table what it serves.
bool gpu_driver_start(GpuDriver *driver, Error *error) MUST_CHECK;
