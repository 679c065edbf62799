// cuDNN of this machine.
#include "gpu/dnn/library.h"

#include "gpu/library.h"

static const LibraryFunction functions[] = {
#define ROW(name) LIBRARY_FUNCTION(DnnLibrary, name)
    DNN_FUNCTIONS(ROW)
#undef ROW
};

const DnnLibrary *dnn_library(Error *error) {
    static DnnLibrary table;
    static bool ready;
    if (ready)
        return &table;
    const char *lacking;
    void *library = gpu_library_fill("libcudnn.so.9", functions,
                                     sizeof functions / sizeof *functions, &table, &lacking);
    ready = library && !lacking;
    if (ready)
        return &table;
    if (library)
        (void)error_fail(error, ERROR_UNAVAILABLE, "libcudnn.so.9 lacks %s: install a newer one",
                         lacking);
    else
        (void)error_fail(error, ERROR_UNAVAILABLE,
                         "libcudnn.so.9 is not installed: install cuDNN 9 of CUDA %d",
                         (int)(CUDART_VERSION / 1000));
    gpu_library_close(library);
    return NULL;
}
