// gpu/about.h: what a card tells of itself (kernel/about.h).
#pragma once

#include "kernel/kernel.h"

int gpu_parts(const Device *device, DevicePart *parts);
void gpu_readings(Device *device, DeviceReadings *readings);
