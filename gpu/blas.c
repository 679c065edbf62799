#include "gpu/blas.h"

#if GPU_HAS_BLAS
#include <stdbool.h>
#include <string.h>

#include "gpu/library.h"

// Of the same major version as what this build was made with, whose types it uses.
#define TEXT_(name) #name
#define TEXT(name)  TEXT_(name)
#define LIBRARY     "libcublasLt.so." TEXT(CUBLAS_VER_MAJOR)

static bool find_functions(void *library, GpuBlas *blas) {
#define FIND(name)                                          \
    {                                                       \
        void *found = gpu_library_function(library, #name); \
        if (!found)                                         \
            return false;                                   \
        memcpy(&blas->name, &found, sizeof found);          \
    }
    GPU_BLAS_FUNCTIONS(FIND)
#undef FIND
    return true;
}

const GpuBlas *gpu_blas(void) {
    static GpuBlas blas;
    static bool ready;
    if (ready)
        return &blas;
    void *library = gpu_library_open(LIBRARY);
    ready = library && find_functions(library, &blas);
    if (ready)
        return &blas;
    gpu_library_close(library);
    return NULL;
}
#else
const GpuBlas *gpu_blas(void) {
    return NULL;
}
#endif
