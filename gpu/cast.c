// Casts on a card: what gpu/kernels/cast.cu is told.
#include "gpu/backend.h"
#include "gpu/launch.h"
#include "gpu/moving.h"
#include "gpu/operands.h"

enum { EACH = 8, WORTH_TILES = 8 }; // elements or pieces of a thread; of a dimension

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

// The dimension along which the input's neighbours lie, where that is another than the last and
// both are worth a tile; else -1.
static int turned(const CastArguments *cast) {
    const int last = (int)cast->extent.ndim - 1;
    if (cast->input.kind != OPERAND_STRIDED || cast->input.stride[last] == 1 ||
        cast->extent.size[last] < WORTH_TILES || format_table[cast->input.format].bytes > 4 ||
        format_table[cast->output.format].bytes > 4)
        return -1;
    for (int d = last - 1; d >= 0; d--)
        if (cast->input.stride[d] == 1 && cast->extent.size[d] >= WORTH_TILES)
            return d;
    return -1;
}

static bool transpose(Device *device, const CastArguments *cast, int along, Error *error) {
    const Extent *extent = &cast->extent;
    const int64_t lasts = extent->size[extent->ndim - 1], alongs = extent->size[along];
    const bool keeps = cast->input.format == cast->output.format;
    TransposeArguments a = {.input = cast->input,
                            .output = cast->output,
                            .extent = *extent,
                            .along = (u32)along,
                            .keeps = keeps ? (u32)format_table[cast->input.format].bytes : 0,
                            .tiles_along = gpu_divided_up(alongs, CAST_TILE),
                            .tiles_last = gpu_divided_up(lasts, CAST_TILE)};
    const int64_t others = extent->count / (lasts * alongs);
    const GpuGrid grid = {.x = others * a.tiles_along * a.tiles_last};
    return gpu_launch_transpose(device, grid, &a, error);
}

KERNEL_SIGNATURE(gpu, cast) {
    CastArguments a = {0};
    gpu_operands(call->input, 1, &call->output[0], &a.input, &a.output, &a.extent);
    const int along = a.extent.count > 0 ? turned(&a) : -1;
    if (along >= 0)
        return transpose(device, &a, along, error);
    if (a.input.format == a.output.format)
        return copy(device, &a, error);
    a.wide = a.input.kind == OPERAND_WIDE && gpu_goes_wide(&a.input) && gpu_goes_wide(&a.output);
    return gpu_launch_cast(device, gpu_grid(GPU_KERNEL_cast, a.extent.count, EACH), &a, error);
}
