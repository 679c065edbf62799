// Losses over elements: what gpu/kernels/losses.cu is told. Their gradients go element by element
// (gpu/pointwise.c).
#include "gpu/backend.h"
#include "gpu/operands.h"
#include "gpu/reduce.h"

enum { EACH = 8, MOST_BLOCKS = 1024 };

static bool mean_loss(Device *device, GpuKernel kernel, const KernelCall *call, Error *error) {
    const View *x = &call->input[0];
    const View shape = view_dense(NULL, x->format, x->ndim, x->shape);
    LossArguments arguments = {0};
    Operand none;
    gpu_operands(call->input, 2, &shape, arguments.input, &none, &arguments.extent);
    arguments.wide = gpu_goes_wide(&arguments.input[0]) && gpu_goes_wide(&arguments.input[1]);
    const int64_t count = arguments.extent.count;
    GpuGrid grid = gpu_grid(kernel, count, EACH);
    grid.x = grid.x < MOST_BLOCKS ? grid.x : MOST_BLOCKS;
    arguments.sums = device_workspace(device, MOST_BLOCKS * sizeof *arguments.sums, error);
    return arguments.sums && gpu_launch(device, kernel, grid, &arguments, error) &&
           gpu_sum_numbers(device, arguments.sums, grid.x, (double)count, &call->output[0], error);
}

#define LOSS(name, ...)                                           \
    KERNEL_SIGNATURE(gpu, name) {                                 \
        return mean_loss(device, GPU_KERNEL_##name, call, error); \
    }
#include "kernel/pointwise.def"
