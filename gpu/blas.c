#include "gpu/blas.h"

#if GPU_HAS_BLAS
#include <stdbool.h>

#include "gpu/library.h"

// Of the same major version as what this build was made with, whose types it uses.
#define LIBRARY "libcublasLt.so." LIBRARY_TEXT(CUBLAS_VER_MAJOR)

static const LibraryFunction functions[] = {
#define ROW(name) LIBRARY_FUNCTION(GpuBlas, name)
    GPU_BLAS_FUNCTIONS(ROW)
#undef ROW
};

const GpuBlas *gpu_blas(void) {
    static GpuBlas blas;
    static bool ready;
    if (ready)
        return &blas;
    if (!gpu_libraries_compute())
        return NULL;
    const char *lacking;
    void *library =
        gpu_library_fill(LIBRARY, functions, sizeof functions / sizeof *functions, &blas, &lacking);
    ready = library && !lacking;
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
