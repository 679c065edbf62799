// kernel/plugin.h: a backend that lies in a file of its own, loaded when it is asked for.
//
// A plugin is a shared object with one function, mpbench_plugin, that returns its table. It has
// its own copies of the functions that it uses and shares only data with the program: so both must
// have been built of the same contract, which the stamp proves.
#pragma once

#include "kernel/about.h"
#include "kernel/kernel.h"
#include "kernel/multi.h"

typedef struct Plugin {
    uint64_t stamp; // plugin_stamp() as its compiler saw it; first, whatever else changes
    const Backend *backend;
} Plugin;

typedef const Plugin *(*PluginEntry)(void);
#define PLUGIN_ENTRY "mpbench_plugin"

// A hash of the operations, in their order, and of the sizes of all that program and plugin share.
static inline uint64_t plugin_stamp(void) {
    static const char operations[] =
#define OP(name, inputs, outputs, class, family, gradient, layout, text) \
#name " " #inputs " " #outputs " " #class " " #layout "\n"
#include "kernel/ops.def"
        ;
    static const uint64_t sizes[] = {
        sizeof(Backend),    sizeof(Device),         sizeof(KernelCall),   sizeof(OpAttr),
        sizeof(View),       sizeof(GradStats),      sizeof(ScanItem),     sizeof(StepFlags),
        sizeof(ScaleRule),  sizeof(ScaleState),     sizeof(UpdateItem),   sizeof(UpdateRule),
        sizeof(Schedule),   sizeof(Progress),       sizeof(MultiKernels), sizeof(Error),
        sizeof(DevicePart), sizeof(DeviceReadings), FORMAT_COUNT,         MEMORY_PURPOSES,
        OPTIMIZER_COUNT,    EXPONENT_BINS,
    };
    uint64_t hash = UINT64_C(0xCBF29CE484222325); // FNV-1a
    for (size_t i = 0; i + 1 < sizeof operations; i++)
        hash = (hash ^ (unsigned char)operations[i]) * UINT64_C(0x100000001B3);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        hash = (hash ^ sizes[i]) * UINT64_C(0x100000001B3);
    return hash;
}
