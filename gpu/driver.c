// The driver of this machine. tests/emulator/driver.c stands in its place in tests.
#include "gpu/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

// The oldest driver that knows all of the table, and images of this compiler's major version.
enum { OLDEST_DRIVER = CUDA_VERSION / 1000 * 1000 };

#define TEXT_(name) #name
#define TEXT(name)  TEXT_(name)

static bool find_functions(void *library, GpuDriver *driver, Error *error) {
#define FIND(name)                                                                            \
    {                                                                                         \
        void *found = dlsym(library, TEXT(name));                                             \
        if (!found)                                                                           \
            return error_fail(error, ERROR_UNAVAILABLE,                                       \
                              "device gpu: the driver lacks %s: install a newer one", #name); \
        memcpy(&driver->name, &found, sizeof found);                                          \
    }
    GPU_DRIVER_FUNCTIONS(FIND)
#undef FIND
    return true;
}

static bool start(GpuDriver *driver, Error *error) {
    CUresult result = driver->cuInit(0);
    if (result == CUDA_ERROR_NO_DEVICE)
        return error_fail(error, ERROR_UNAVAILABLE,
                          "device gpu: this machine has no card that its driver serves");
    const char *text = "no reason given";
    if (result != CUDA_SUCCESS) {
        driver->cuGetErrorString(result, &text);
        return error_fail(error, ERROR_UNAVAILABLE,
                          "device gpu: the driver does not start: %s (cuInit: %d)", text,
                          (int)result);
    }
    if (driver->cuDriverGetVersion(&driver->version) != CUDA_SUCCESS)
        driver->version = 0;
    if (driver->version < OLDEST_DRIVER)
        return error_fail(error, ERROR_UNAVAILABLE,
                          "device gpu: the driver serves CUDA %d.%d, this build needs %d.%d: "
                          "install a newer driver",
                          driver->version / 1000, driver->version % 1000 / 10, OLDEST_DRIVER / 1000,
                          OLDEST_DRIVER % 1000 / 10);
    return true;
}

const GpuDriver *gpu_driver(Error *error) {
    static GpuDriver driver;
    static bool ready;
    if (ready)
        return &driver;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        (void)error_fail(error, ERROR_UNAVAILABLE,
                         "device gpu: no driver is installed (libcuda.so.1): install NVIDIA's, or "
                         "use --device cpu");
        return NULL;
    }
    if (!find_functions(library, &driver, error) || !start(&driver, error)) {
        dlclose(library);
        return NULL;
    }
    ready = true;
    return &driver;
}
