// tests/emulator/sensors.h: NVML as the emulated machine has it.
#pragma once

void *emulator_nvml_function(const char *name); // NULL: it has none of that name
