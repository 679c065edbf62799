#include "gpu/nvml.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "gpu/library.h"

static bool open_nvml(Nvml *nvml) {
    void *library = gpu_library_open(NVML_FILE);
    if (!library)
        return false;
    void *found;
#define FIND(member, name, parameters)           \
    found = gpu_library_function(library, name); \
    memcpy(&nvml->member, &found, sizeof found);
    NVML_FUNCTIONS(FIND)
#undef FIND
    if (nvml->start && nvml->start() == NVML_OK)
        return true;
    gpu_library_close(library);
    return false;
}

const Nvml *gpu_nvml(void) {
    static Nvml nvml;
    static enum { UNTRIED, OPEN, NONE } state;
    if (state == UNTRIED)
        state = open_nvml(&nvml) ? OPEN : NONE;
    return state == OPEN ? &nvml : NULL;
}
