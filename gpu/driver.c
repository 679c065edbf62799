// The driver of this machine. tests/emulator/driver.c stands in its place in tests.
#include "gpu/driver.h"

#include "gpu/library.h"

static const LibraryFunction functions[] = {
#define ROW(name) LIBRARY_FUNCTION(GpuDriver, name)
    GPU_DRIVER_FUNCTIONS(ROW)
#undef ROW
};

static bool start(GpuDriver *driver, const char *lacking, Error *error) {
    if (lacking)
        return error_fail(error, ERROR_UNAVAILABLE,
                          "device gpu: the driver lacks %s: install a newer one", lacking);
    return gpu_driver_start(driver, error);
}

const GpuDriver *gpu_driver(Error *error) {
    static GpuDriver driver;
    static bool ready;
    if (ready)
        return &driver;
    const char *lacking;
    void *library = gpu_library_fill("libcuda.so.1", functions,
                                     sizeof functions / sizeof *functions, &driver, &lacking);
    if (!library)
        (void)error_fail(error, ERROR_UNAVAILABLE,
                         "device gpu: no driver is installed (libcuda.so.1): install NVIDIA's, or "
                         "use --device cpu");
    ready = library && start(&driver, lacking, error);
    if (ready)
        return &driver;
    gpu_library_close(library);
    return NULL;
}
