// In place of fat binaries: the names of the files whose kernels kernels.c has.
#include "gpu/launch.h"
#include "tests/emulator/device.h"

#define GPU_FILE(name) static const EmulatorImage image_##name = {"EMULATED", #name};
#include "gpu/kernels/files.def"

const void *const gpu_images[GPU_FILES] = {
#define GPU_FILE(name) &image_##name,
#include "gpu/kernels/files.def"
};

const char gpu_capabilities[] = "80 90";
