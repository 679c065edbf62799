// tests/late_device.h: a device whose reports come as late as they may: what the host is told of a
// step it is told when it cannot be kept from it any longer. All else is the device's own.
#pragma once

#include <stdlib.h>
#include <string.h>

#include "kernel/kernel.h"

enum { LATE_STEPS = 4 };

typedef struct LateCopy { // on its way: as it was when it was asked for
    struct LateCopy *next;
    void *host;
    size_t bytes;
    char values[];
} LateCopy;

static LateCopy *late_begun, *late_marked[LATE_STEPS + 1];

static inline void *late_memory_new(Device *one, size_t bytes) {
    (void)one;
    return malloc(bytes);
}

static inline void late_memory_free(Device *one, void *memory, size_t bytes) {
    (void)one, (void)bytes;
    free(memory);
}

static inline void late_copy(Device *one, void *host, const void *source, size_t bytes) {
    (void)one;
    LateCopy *copy = malloc(sizeof *copy + bytes);
    *copy = (LateCopy){.next = late_begun, .host = host, .bytes = bytes};
    memcpy(copy->values, source, bytes);
    memset(host, 0xa5, bytes); // nobody may look yet
    late_begun = copy;
}

static inline void late_mark(Device *one, int number) {
    (void)one;
    late_marked[number] = late_begun;
    late_begun = NULL;
}

static inline bool late_is_past(Device *one, int number, bool waits) {
    (void)one;
    for (LateCopy *copy = late_marked[number], *next; waits && copy; copy = next) {
        next = copy->next;
        memcpy(copy->host, copy->values, copy->bytes);
        free(copy);
    }
    if (waits)
        late_marked[number] = NULL;
    return waits;
}

static const ReportKernels late_kernels = {.late = LATE_STEPS,
                                           .memory_new = late_memory_new,
                                           .memory_free = late_memory_free,
                                           .copy = late_copy,
                                           .mark = late_mark,
                                           .is_past = late_is_past};

// Before anything was reported of the device. `backend` is the caller's and outlives it.
static inline void device_make_late(Device *one, Backend *backend) {
    *backend = *one->backend;
    backend->report = &late_kernels;
    one->backend = backend;
}
