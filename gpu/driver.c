// The driver of this machine. tests/emulator/driver.c stands in its place in tests.
#include "gpu/driver.h"

#include <dlfcn.h>
#include <string.h>

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
    if (!find_functions(library, &driver, error) || !gpu_driver_start(&driver, error)) {
        dlclose(library);
        return NULL;
    }
    ready = true;
    return &driver;
}
