#include <stdlib.h>
#include <string.h>

#include "gpu/library.h"

bool gpu_libraries_compute(void) {
    const char *said = getenv("MPBENCH_GPU_LIBRARIES");
    return !said || strcmp(said, "none") != 0;
}

void *gpu_library_fill(const char *file, const LibraryFunction *functions, size_t count,
                       void *table, const char **lacking) {
    void *library = gpu_library_open(file);
    *lacking = NULL;
    for (size_t i = 0; library && i < count; i++) {
        void *found = gpu_library_function(library, functions[i].name);
        memcpy((char *)table + functions[i].offset, &found, sizeof found);
        if (!found && !*lacking)
            *lacking = functions[i].name;
    }
    return library;
}
