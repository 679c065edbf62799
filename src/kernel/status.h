// kernel/status.h: what a kernel finds wrong with the values it is given, and how that is told.
//
// Shapes and formats are checked before a kernel runs; classes and indices it checks itself, by the
// ValueCheck of its call. A device that is done when a call returns says at once what it found, by
// value_fail. One that runs on its own writes a DeviceStatus into its memory, which the host takes
// later (Backend's take_status): the message is the same. Such a device keeps the first that it
// finds, of one call that of the lowest position. For a value that does not pass it reads and
// writes nothing, and what it computes from then on means nothing.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/kernel_inline.h"

typedef enum Fault {
    FAULT_NONE,
#define FAULT(name, ...) FAULT_##name,
#include "kernel/faults.def"
    FAULT_COUNT
} Fault;

typedef struct ValueCheck { // what the values of one call are held to
    Fault fault;
    int op, layer; // of the call
    int dim;       // FAULT_ELEMENT: along which they select
    int64_t lowest, bound;
} ValueCheck;

typedef struct DeviceStatus {
    ValueCheck check; // fault FAULT_NONE: nothing was found
    int64_t position, value;
} DeviceStatus;

struct KernelCall;

ValueCheck value_check(const struct KernelCall *call, Fault fault, int64_t bound);

KERNEL_INLINE bool value_passes(const ValueCheck *check, int64_t value) {
    return value >= check->lowest && value < check->bound;
}

// Says that the value at a position did not pass; always false.
bool value_fail(const ValueCheck *check, int64_t position, int64_t value, Error *error);
