// A driver (libcuda.so.1) that has no card, and pretends that compiled kernels load: enough for
// cuDNN to compile and finalise the engines that it makes at run time, on a machine without a
// driver. Loaded before cuDNN is, it stands in the way of a real one too.
#include <stddef.h>

enum { NO_DEVICE = 100, SERVES = 13000 };

#define ABSENT(name)      \
    int name(void);       \
    int name(void) {      \
        return NO_DEVICE; \
    }
ABSENT(cuInit)
ABSENT(cuDeviceGet)
ABSENT(cuDeviceGetCount)
ABSENT(cuDeviceGetAttribute)
ABSENT(cuDevicePrimaryCtxRetain)
ABSENT(cuDevicePrimaryCtxReset)
ABSENT(cuDevicePrimaryCtxRelease)
ABSENT(cuCtxGetDevice)
ABSENT(cuCtxGetCurrent)
ABSENT(cuCtxPushCurrent)
ABSENT(cuCtxPopCurrent)
ABSENT(cuCtxGetLimit)
ABSENT(cuStreamGetCtx)
ABSENT(cuStreamSynchronize)
ABSENT(cuLaunchKernel)
ABSENT(cuLaunchKernelEx)
ABSENT(cuLaunchCooperativeKernel)
ABSENT(cuGetErrorString)
ABSENT(cuGetErrorName)
ABSENT(cuOccupancyMaxPotentialClusterSize)
ABSENT(cuOccupancyMaxActiveBlocksPerMultiprocessor)
ABSENT(cuMemcpyDtoH_v2)
ABSENT(cuTensorMapEncodeTiled)
ABSENT(cuModuleGetGlobal_v2)
ABSENT(cuModuleLoadFatBinary)
ABSENT(cuFuncGetAttribute)
ABSENT(cuLinkCreate)
ABSENT(cuLinkCreate_v2)
ABSENT(cuLinkAddData)
ABSENT(cuLinkAddData_v2)
ABSENT(cuLinkAddFile_v2)
ABSENT(cuLinkComplete)
ABSENT(cuLinkDestroy)

// What succeeds: it gives a handle that nothing is behind.
static int loaded(void **handle) {
    static char anything;
    *handle = &anything;
    return 0;
}
#define LOADS(name)            \
    int name(void **handle);   \
    int name(void **handle) {  \
        return loaded(handle); \
    }
LOADS(cuLibraryLoadData)
LOADS(cuLibraryLoadFromFile)
LOADS(cuLibraryGetKernel)
LOADS(cuKernelGetFunction)
LOADS(cuModuleLoadData)
LOADS(cuModuleLoadDataEx)
LOADS(cuModuleGetFunction)

#define SUCCEEDS(name) \
    int name(void);    \
    int name(void) {   \
        return 0;      \
    }
SUCCEEDS(cuLibraryUnload)
SUCCEEDS(cuModuleUnload)
SUCCEEDS(cuKernelSetAttribute)
SUCCEEDS(cuFuncSetAttribute)

int cuDriverGetVersion(int *version);
int cuDriverGetVersion(int *version) {
    *version = SERVES;
    return 0;
}

int cuKernelGetAttribute(int *value);
int cuKernelGetAttribute(int *value) {
    *value = 0;
    return 0;
}
