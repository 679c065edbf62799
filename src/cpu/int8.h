// cpu/int8.h: products with weights in int8, as kernel/int8.h says. Private to this folder.
#pragma once

#include "cpu/cpu.h"

bool cpu_int8_linear(Device *device, const KernelCall *call, Error *error);
bool cpu_int8_conv2d(Device *device, const KernelCall *call, Error *error);
