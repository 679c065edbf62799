#include "gpu/nvml.h"

#include <stdbool.h>

#include "gpu/library.h"

static const LibraryFunction functions[] = {
#define ROW(member, name, parameters) {name, offsetof(Nvml, member)},
    NVML_FUNCTIONS(ROW)
#undef ROW
};

static bool open_nvml(Nvml *nvml) {
    const char *lacking; // whoever calls one looks whether it is there
    void *library = gpu_library_fill(NVML_FILE, functions, sizeof functions / sizeof *functions,
                                     nvml, &lacking);
    if (library && nvml->start && nvml->start() == NVML_OK)
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
