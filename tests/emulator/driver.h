// tests/emulator/driver.h: the functions of the emulated driver, one a row of gpu/driver.h.
//
// They lie in three files, by what they are about: driver.c (the machine and kernels), memory and
// work. Each keeps to what NVIDIA's documents promise and not to what a card happens to do.
#pragma once

#include "gpu/driver.h"

#define DECLARE(name) __typeof__(name) emulated_##name;
GPU_DRIVER_FUNCTIONS(DECLARE)
#undef DECLARE
