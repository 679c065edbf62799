#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/int8.h"
#include "kernel/scale.h"
#include "ref/kernels.h"

enum { ALIGNMENT = 64 };

static bool device_start(Device *device, int index, int threads, Error *error) {
    (void)threads; // one is enough for an oracle, and makes the order of every sum the same
    if (index != 0)
        return error_fail(error, ERROR_UNAVAILABLE,
                          "device ref:%d: there is one reference device, called ref", index);
    device->state = NULL;
    device->threads = 1;
    snprintf(device->name, sizeof device->name, "reference, float64");
    return true;
}

static void device_end(Device *device) {
    (void)device;
}

static void *memory_new(Device *device, size_t bytes) {
    (void)device;
    if (bytes > SIZE_MAX - ALIGNMENT || !memory_is_left_for(bytes))
        return NULL;
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return aligned_alloc(ALIGNMENT, rounded ? rounded : ALIGNMENT);
}

static void memory_free(Device *device, void *memory, size_t bytes) {
    (void)device;
    (void)bytes;
    free(memory);
}

static void copy(Device *device, void *target, const void *source, size_t bytes) {
    (void)device;
    if (bytes)
        memcpy(target, source, bytes);
}

static void synchronize(Device *device) {
    (void)device; // nothing is ever under way
}

static bool supports(const Device *device, OpId op, Format format) {
    (void)device;
    if (op == OP_cast)
        return format_is_plain(format);
    if (format == FORMAT_INT8)
        return int8_serves(op);
    return format_is_plain(format) ? format_is_floating(format) : scale_serves(op);
}

static double gain(const Device *device, Format format) {
    (void)device;
    (void)format;
    return 1;
}

static const Kernel kernels[OP_COUNT] = {
#define OP(name, ...) [OP_##name] = ref_##name,
#include "kernel/ops.def"
};

static const char *const absences[OP_COUNT] = {NULL};

static const MultiKernels multi = {
    .scan = ref_scan,
    .clip_norm = ref_clip_norm,
    .clip_value = ref_clip_value,
    .multiply = ref_multiply,
    .update = ref_update,
    .scale_update = ref_scale_update,
    .restore = ref_restore,
    .average = ref_average,
    .largest = ref_largest,
};

extern const Backend ref_backend;
const Backend ref_backend = {
    .name = "ref",
    .open = device_start,
    .close = device_end,
    .memory_new = memory_new,
    .memory_free = memory_free,
    .write = copy,
    .read = copy,
    .synchronize = synchronize,
    .kernels = kernels,
    .absences = absences,
    .supports = supports,
    .sums = true,
    .gain = gain,
    .multi = &multi,
};
