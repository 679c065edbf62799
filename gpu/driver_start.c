// What holds of every driver's table, whoever filled it: that it starts, and serves this build.
#include "gpu/driver.h"

// The oldest driver that knows all of the table, and images of this compiler's major version.
enum { OLDEST_DRIVER = CUDA_VERSION / 1000 * 1000 };

bool gpu_driver_start(GpuDriver *driver, Error *error) {
    CUresult result = driver->cuInit(0);
    if (result == CUDA_ERROR_NO_DEVICE)
        return error_fail(error, ERROR_UNAVAILABLE,
                          "device gpu: this machine has no card that its driver serves");
    const char *text = NULL;
    if (result != CUDA_SUCCESS) {
        driver->cuGetErrorString(result, &text);
        return error_fail(error, ERROR_UNAVAILABLE,
                          "device gpu: the driver does not start: %s (cuInit: %d)",
                          text ? text : "it has no words for why", (int)result);
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
