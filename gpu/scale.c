// Factors of products in scaled formats on a card: what gpu/kernels/scale.cu is told.
#include "gpu/backend.h"
#include "gpu/launch.h"
#include "gpu/operands.h"
#include "gpu/zero.h"

enum { BLOCK = 256 };

// How many threads share a block of numbers: as many as read neighbours together.
static u32 team_of(const ScaleLines *lines) {
    if (lines->lines > 1)
        return BLOCK;
    if (lines->inner > 1)
        return 1;
    return lines->block < WARP ? 16 : WARP;
}

// One word of device memory, 0.
static float *zeroed_word(Device *device, Error *error) {
    float *word = device_workspace(device, sizeof *word, error);
    return word && gpu_zero(device, word, sizeof *word, error) ? word : NULL;
}

KERNEL_SIGNATURE(gpu, scale_factor) {
    const ScaleAttr *by = &call->attr->factor.by;
    ScaleArguments a = {.lines = scale_lines(&call->input[0], by),
                        .element = number_element(by->element),
                        .scale = by->scale,
                        .up = by->up,
                        .best = by->best,
                        .at_random = by->at_random,
                        .hadamard = by->hadamard,
                        .random = call->attr->factor.stream};
    gpu_operands(call->input, 1, &call->output[0], &a.input, &a.output, &a.extent);
    const int64_t count = a.extent.count;
    if (count == 0)
        return true;
    if (by->delayed) {
        a.delayed = &by->delayed[SCALE_NOW];
        a.largest = by->notes ? &by->delayed[SCALE_LARGEST] : NULL;
    } else if ((by->block == 0 || by->scale == FORMAT_E4M3) &&
               !(a.largest = zeroed_word(device, error))) {
        return false;
    }
    if (a.largest && !gpu_launch_scale_largest(
                         device, gpu_grid(GPU_KERNEL_scale_largest, count, EIGHT), &a, error))
        return false;
    if (by->block == 0)
        return gpu_launch_scale_all(device, gpu_grid(GPU_KERNEL_scale_all, count, EIGHT), &a,
                                    error);
    a.team = team_of(&a.lines);
    const int64_t along = gpu_divided_up(a.lines.depth, a.lines.block);
    const int64_t across = scale_groups(&a.lines);
    const int64_t teams = BLOCK / a.team;
    return gpu_launch_scale_blocks(device, (GpuGrid){.x = gpu_divided_up(along * across, teams)},
                                   &a, error);
}

KERNEL_SIGNATURE(gpu, scale_history) {
    const View *x = &call->input[0];
    const HistoryArguments a = {.input = x->data,
                                .output = call->output[0].data,
                                .rows = x->shape[0],
                                .width = x->shape[1],
                                .row = x->stride[0],
                                .step = x->stride[1],
                                .history = call->attr->history};
    return gpu_launch_scale_history(device, (GpuGrid){.x = a.rows}, &a, error);
}
