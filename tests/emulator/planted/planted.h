// tests/emulator/planted/planted.h: what the kernels of the emulator's own tests are told.
#pragma once

#include <stdint.h>

typedef struct PlantedArguments {
    const float *x;
    float *y;
    int64_t count;
    float value;
} PlantedArguments;
