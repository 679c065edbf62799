// cuDNN of this machine.
#include "gpu/dnn/library.h"

#include <dlfcn.h>
#include <string.h>

static bool find_functions(void *library, DnnLibrary *table, Error *error) {
#define FIND(name)                                                                           \
    {                                                                                        \
        void *found = dlsym(library, #name);                                                 \
        if (!found)                                                                          \
            return error_fail(error, ERROR_UNAVAILABLE,                                      \
                              "libcudnn.so.9 lacks " #name ": install a newer one of CUDA"); \
        memcpy(&table->name, &found, sizeof found);                                          \
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
    void *library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        (void)error_fail(error, ERROR_UNAVAILABLE,
                         "libcudnn.so.9 is not installed: install cuDNN 9 of CUDA %d",
                         (int)(CUDART_VERSION / 1000));
        return NULL;
    }
    if (!find_functions(library, &table, error)) {
        dlclose(library);
        return NULL;
    }
    ready = true;
    return &table;
}
