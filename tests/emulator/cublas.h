// tests/emulator/cublas.h: cuBLASLt as the emulated machine has it.
#pragma once

#include <stddef.h>

#include "tests/emulator/control.h"

#define CUBLAS_FILE "libcublasLt.so.13"

size_t emulator_cublas_version(void);
// A function of it; NULL: it has none of that name.
void *emulator_cublas_function(const char *name);
// What it adds to a report.
void emulator_cublas_count(EmulatorState *state);
