// gpu/zero.h: memory of the card that begins as 0, in its turn.
#pragma once

#include "kernel/kernel.h"

// Puts zeros into the device's stream as gpu_launch puts a kernel; with no bytes nothing happens.
bool gpu_zero(Device *device, void *memory, size_t bytes, Error *error) MUST_CHECK;
