// The libraries that the emulated machine has installed.
#include "gpu/library.h"

#include <dlfcn.h>
#include <string.h>

#include "gpu/nvml.h"
#include "tests/emulator/cublas.h"
#include "tests/emulator/sensors.h"
#include "tests/emulator/settings.h"

typedef struct Function {
    const char *file, *name;
    size_t (*version)(void);
} Function;

static size_t convolutions_version(void) {
    return 91400;
}

static const Function functions[] = {
    {CUBLAS_FILE, "cublasLtGetVersion", emulator_cublas_version},
    {"libcudnn.so.9", "cudnnGetVersion", convolutions_version},
};

void *gpu_library_open(const char *file) {
    if (emulator_settings.files)
        (void)dlopen(file, RTLD_NOW | RTLD_LOCAL); // stays, and computes nothing
    if (strcmp(file, NVML_FILE) == 0)
        return emulator_settings.nvml == NVML_NONE ? NULL : (void *)&emulator_settings.nvml;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (emulator_settings.libraries && strcmp(functions[i].file, file) == 0)
            return (void *)(uintptr_t)&functions[i];
    return NULL;
}

void *gpu_library_function(void *library, const char *function) {
    if (library == (void *)&emulator_settings.nvml)
        return emulator_nvml_function(function);
    const Function *of = library;
    void *found = NULL;
    if (strcmp(of->file, CUBLAS_FILE) == 0)
        return emulator_cublas_function(function);
    if (strcmp(of->name, function) == 0)
        memcpy(&found, &of->version, sizeof found);
    return found;
}

void gpu_library_close(void *library) {
    (void)library;
}
