// gpu/values.h: what kernels find wrong with values (kernel/status.h), on its way to the host.
//
// Kernels write it into a FoundValue in memory of the device (gpu/kernels/values.h). It travels
// behind whatever the host waits for: reading and synchronising fetch it; and with the report of
// each step, so that the first step in which something is found is heard of first. Calls are told
// apart by their number within a step, which is the same in each.
#pragma once

#include "gpu/gpu.h"

bool gpu_open_values(Gpu *gpu, Error *error) MUST_CHECK;
void gpu_close_values(Gpu *gpu);

// What a kernel is told that checks the values of a call.
ValueArguments gpu_value_arguments(Device *device, const KernelCall *call, Fault fault,
                                   int64_t bound);

// Puts the fetching of what was found behind all work; it has arrived when that was waited for.
bool gpu_fetch_values(Gpu *gpu) MUST_CHECK;
// Gives what has arrived, once: Backend's take_status.
bool gpu_take_status(Device *device, DeviceStatus *status);
