// gpu/about.h: what a card tells of itself (kernel/about.h).
#pragma once

#include "kernel/kernel.h"

// Of large products in a format beside fp32.
double gpu_gain(const Device *device, Format format);

int gpu_parts(const Device *device, DevicePart *parts);
void gpu_readings(Device *device, DeviceReadings *readings);
