#include "gpu/library.h"

#include <dlfcn.h>

void *gpu_library_open(const char *file) {
    return dlopen(file, RTLD_NOW | RTLD_LOCAL);
}

void *gpu_library_function(void *library, const char *function) {
    return dlsym(library, function);
}

void gpu_library_close(void *library) {
    if (library)
        dlclose(library);
}
