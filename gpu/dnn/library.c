// cuDNN of this machine.
#include "gpu/dnn/library.h"

#include <string.h>

#include "gpu/library.h"

static bool find_functions(void *library, DnnLibrary *table, Error *error) {
#define FIND(name)                                                                   \
    {                                                                                \
        void *found = gpu_library_function(library, #name);                          \
        if (!found)                                                                  \
            return error_fail(error, ERROR_UNAVAILABLE,                              \
                              "libcudnn.so.9 lacks " #name ": install a newer one"); \
        memcpy(&table->name, &found, sizeof found);                                  \
    }
    DNN_FUNCTIONS(FIND)
#undef FIND
    return true;
}

const DnnLibrary *dnn_library(Error *error) {
    static DnnLibrary table;
    static bool ready;
    if (ready)
        return &table;
    void *library = gpu_library_open("libcudnn.so.9");
    if (!library) {
        (void)error_fail(error, ERROR_UNAVAILABLE,
                         "libcudnn.so.9 is not installed: install cuDNN 9 of CUDA %d",
                         (int)(CUDART_VERSION / 1000));
        return NULL;
    }
    if (!find_functions(library, &table, error)) {
        gpu_library_close(library);
        return NULL;
    }
    ready = true;
    return &table;
}
