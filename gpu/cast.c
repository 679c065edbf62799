// Casts on a card: what gpu/kernels/cast.cu is told.
#include "gpu/backend.h"
#include "gpu/launch.h"
#include "gpu/moving.h"
#include "gpu/operands.h"

enum { EACH = 8 }; // elements or pieces of a thread

// Bytes that stay as they are go by pieces as large as the innermost stretch allows.
static bool copy(Device *device, CastArguments *cast, Error *error) {
    CopyArguments a = {.input = cast->input,
                       .output = cast->output.data,
                       .moving = gpu_moving(cast->input.format, cast->output.format),
                       .extent = cast->extent};
    const u32 last = a.extent.ndim - 1;
    const bool stretches = a.input.kind == OPERAND_STRIDED && a.input.stride[last] == 1;
    gpu_moving_address(&a.moving, a.input.data);
    gpu_moving_address(&a.moving, a.output);
    if (a.input.kind == OPERAND_STRIDED || a.input.kind == OPERAND_ONE)
        gpu_moving_distance(&a.moving, stretches ? a.extent.size[last] : 1);
    for (u32 i = 0; stretches && i < last; i++)
        gpu_moving_distance(&a.moving, a.input.stride[i]);
    gpu_moving_distance(&a.moving, a.extent.count);
    for (u32 i = 0; stretches && i < last; i++)
        a.input.stride[i] = gpu_moving_pieces(&a.moving, a.input.stride[i]);
    a.extent.size[last] = gpu_moving_pieces(&a.moving, a.extent.size[last]);
    a.extent.count = gpu_moving_pieces(&a.moving, a.extent.count);
    return gpu_launch_copy(device, gpu_grid(GPU_KERNEL_copy, a.extent.count, EACH), &a, error);
}

KERNEL_SIGNATURE(gpu, cast) {
    CastArguments a = {0};
    gpu_operands(call->input, 1, &call->output[0], &a.input, &a.output, &a.extent);
    if (a.input.format == a.output.format)
        return copy(device, &a, error);
    a.wide = a.input.kind == OPERAND_WIDE && gpu_goes_wide(&a.input) && gpu_goes_wide(&a.output);
    return gpu_launch_cast(device, gpu_grid(GPU_KERNEL_cast, a.extent.count, EACH), &a, error);
}
