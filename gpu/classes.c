// What compares rows of logits with classes (gpu/kernels/classes.cu).
#include "gpu/backend.h"
#include "gpu/operands.h"
#include "gpu/rows.h"
#include "gpu/values.h"

typedef struct Kept {
    float *given;
    u32 *kept;
} Kept;

// A number and a count of each block.
static bool take_kept(Device *device, int64_t blocks, Kept *kept, Error *error) {
    const size_t each = (size_t)(blocks > 0 ? blocks : 1) * sizeof(float);
    char *memory = device_workspace(device, 2 * each, error);
    if (!memory)
        return false;
    *kept = (Kept){(float *)memory, (u32 *)(memory + each)};
    return true;
}

static bool run_mean(Device *device, const KernelCall *call, const Kept *kept, int64_t blocks,
                     Error *error) {
    const ClassMeanArguments arguments = {gpu_dense(&call->output[0]), kept->given, kept->kept,
                                          blocks};
    return gpu_launch_class_mean(device, (GpuGrid){.x = 1}, &arguments, error);
}

// The mean of what `kernel` finds in rows.
static bool mean_over_rows(Device *device, const KernelCall *call, GpuKernel kernel, float *sums,
                           Error *error) {
    const GpuRows rows = gpu_rows(call, 1, 0);
    Kept kept;
    if (!take_kept(device, rows.grid.x, &kept, error))
        return false;
    const ClassArguments arguments = {
        .rows = rows.arguments,
        .classes = gpu_dense(&call->input[1]),
        .values = gpu_value_arguments(device, call, FAULT_CLASS, rows.arguments.length),
        .sums = sums,
        .given = kept.given,
        .kept = kept.kept};
    return gpu_launch(device, kernel, rows.grid, &arguments, error) &&
           run_mean(device, call, &kept, rows.grid.x, error);
}

KERNEL_SIGNATURE(gpu, cross_entropy) {
    return mean_over_rows(device, call, GPU_KERNEL_cross_entropy, call->output[1].data, error);
}

KERNEL_SIGNATURE(gpu, accuracy) {
    return mean_over_rows(device, call, GPU_KERNEL_accuracy, NULL, error);
}

KERNEL_SIGNATURE(gpu, cross_entropy_backward) {
    const View *logits = &call->input[1], *classes = &call->input[3];
    const int64_t length = logits->shape[logits->ndim - 1], rows = view_count(classes);
    const int64_t blocks = gpu_divided_up(rows, CLASSES_OF_BLOCK);
    Kept kept;
    if (view_count(logits) == 0)
        return true;
    if (!take_kept(device, blocks, &kept, error))
        return false;
    const ClassArguments count = {.rows = {.rows = rows},
                                  .classes = gpu_dense(classes),
                                  .values = gpu_value_arguments(device, call, FAULT_CLASS, length),
                                  .kept = kept.kept};
    EntropyBackwardArguments arguments = {.gradient = gpu_dense(&call->input[0]),
                                          .logits = gpu_dense(logits),
                                          .sums = gpu_dense(&call->input[2]),
                                          .classes = count.classes,
                                          .output = gpu_dense(&call->output[0]),
                                          .rows = rows,
                                          .length = length,
                                          .kept = kept.kept,
                                          .counts = (u32)blocks};
    arguments.wide = gpu_goes_wide(&arguments.logits) && gpu_goes_wide(&arguments.output);
    const GpuGrid grid =
        gpu_grid(GPU_KERNEL_cross_entropy_backward, rows * length, (int64_t)8 * ENTROPY_STEPS);
    return gpu_launch_class_count(device, (GpuGrid){.x = blocks}, &count, error) &&
           gpu_launch_cross_entropy_backward(device, grid, &arguments, error);
}
