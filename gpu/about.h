// gpu/about.h: what a card tells of itself (kernel/about.h).
#pragma once

#include "kernel/kernel.h"

// Of large products in a format beside fp32.
double gpu_gain(const Device *device, Format format);

int gpu_parts(const Device *device, DevicePart *parts);
void gpu_readings(Device *device, DeviceReadings *readings);

// Opens what a card works with besides its driver, for the life of the process: from then on the
// system tells where it lies.
void gpu_hold_libraries(void);
