// Embeddings on a card: what gpu/kernels/embedding.cu is told.
#include "gpu/backend.h"
#include "gpu/launch.h"
#include "gpu/moving.h"
#include "gpu/operands.h"
#include "gpu/sort.h"
#include "gpu/values.h"

enum { EACH = 8 }; // pieces of a thread

KERNEL_SIGNATURE(gpu, embedding) {
    const View *weight = &call->input[0], *index = &call->input[1], *y = &call->output[0];
    EmbeddingArguments a = {.weight = weight->data,
                            .index = index->data,
                            .output = y->data,
                            .moving = gpu_moving(weight->format, y->format)};
    gpu_moving_address(&a.moving, a.weight);
    gpu_moving_address(&a.moving, a.output);
    gpu_moving_distance(&a.moving, weight->shape[1]);
    a.depth = gpu_moving_pieces(&a.moving, weight->shape[1]);
    a.count = gpu_moving_pieces(&a.moving, view_count(y));
    a.values = gpu_value_arguments(device, call, FAULT_ROW, weight->shape[0]);
    return gpu_launch_embedding(device, gpu_grid(GPU_KERNEL_embedding, a.count, EACH), &a, error);
}

KERNEL_SIGNATURE(gpu, embedding_backward) {
    const View *dy = &call->input[0], *index = &call->input[1], *dweight = &call->output[0];
    const int64_t count = view_count(index), rows = dweight->shape[0], depth = dweight->shape[1];
    if (count > UINT32_MAX || rows > INT32_MAX)
        return error_fail(error, ERROR_UNAVAILABLE,
                          "embedding_backward: %lld indices of %lld rows are more than the card's "
                          "kernel counts; use --device cpu",
                          (long long)count, (long long)rows);
    void *workspace = device_workspace(device, gpu_sort_bytes(count, rows), error);
    GpuSorted sorted;
    if (!workspace || !gpu_sort(device, index, gpu_value_arguments(device, call, FAULT_ROW, rows),
                                workspace, &sorted, error))
        return false;
    EmbeddingSumArguments a = {.input = gpu_dense(dy),
                               .output = gpu_dense(dweight),
                               .key = sorted.key,
                               .position = sorted.position,
                               .bounds = sorted.bounds,
                               .rows = rows,
                               .depth = depth};
    a.wide = gpu_goes_wide(&a.input) && gpu_goes_wide(&a.output) && depth % EIGHT == 0;
    const int64_t columns = a.wide ? WARP * EIGHT : WARP;
    const GpuGrid often = {.x = gpu_divided_up(count, EMBEDDING_OFTEN),
                           .y = (unsigned)gpu_divided_up(depth, columns)};
    return gpu_launch_embedding_rows(device, gpu_grid(GPU_KERNEL_embedding_rows, rows * WARP, 1),
                                     &a, error) &&
           gpu_launch_embedding_often(device, often, &a, error);
}
