// The images that nvcc made of gpu/kernels/*.cu, in the plugin's own data, aligned as the driver
// likes them. GPU_IMAGES is the folder they lie in, GPU_ARCHS what they were made for.
#include "gpu/launch.h"

#ifndef GPU_ARCHS
#define GPU_ARCHS "" // of who looks at this file alone
#endif

const char gpu_capabilities[] = GPU_ARCHS;

#define GPU_FILE(name)                                                            \
    __asm__(".section .rodata\n.balign 64\n"                                      \
            "gpu_image_" #name ":\n.incbin \"" GPU_IMAGES "/" #name ".fatbin\"\n" \
            ".byte 0\n.text\n");                                                  \
    extern const char gpu_image_##name[] __attribute__((visibility("hidden")));
#include "gpu/kernels/files.def"

const void *const gpu_images[GPU_FILES] = {
#define GPU_FILE(name) gpu_image_##name,
#include "gpu/kernels/files.def"
};
