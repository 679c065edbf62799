// In place of tests/emulator/kernels.c and images.c: the planted kernels, as one image.
#include "tests/emulator/planted/planted.h"

#include "tests/emulator/device.h"

// References are addresses in C.
#define PLANTED(name, threads) void planted_##name(const void *arguments);
#include "tests/emulator/planted/planted.def"

const EmulatorKernel emulator_kernels[] = {
#define PLANTED(name, threads) \
    {"planted", #name, planted_##name, sizeof(PlantedArguments), threads},
#include "tests/emulator/planted/planted.def"
    {0},
};
