// Along one dimension on a card: what gpu/kernels/line.cu is told.
#include "gpu/backend.h"
#include "gpu/launch.h"
#include "gpu/operands.h"

static LineArguments lines_of(const View *x, int dim, const View *input, const View *output) {
    LineArguments a = {
        .input = gpu_dense(input), .output = gpu_dense(output), .size = x->shape[dim], .inner = 1};
    i64 outer = 1;
    for (int i = 0; i < dim; i++)
        outer *= x->shape[i];
    for (int i = dim + 1; i < x->ndim; i++)
        a.inner *= x->shape[i];
    a.lines = outer * a.inner;
    return a;
}

// Of lines that lie behind each other a warp has one, of those side by side a thread.
static GpuGrid grid_of(GpuKernel kernel, LineArguments *a) {
    a->team = a->inner == 1 ? WARP : 1;
    return gpu_grid(kernel, a->lines * a->team, 1);
}

KERNEL_SIGNATURE(gpu, cumsum) {
    const View *x = &call->input[0];
    LineArguments a = lines_of(x, call->attr->line.dim, x, &call->output[0]);
    a.backwards = call->attr->line.backwards;
    return gpu_launch_cumsum(device, grid_of(GPU_KERNEL_cumsum, &a), &a, error);
}

KERNEL_SIGNATURE(gpu, prod) {
    const View *x = &call->input[0];
    LineArguments a = lines_of(x, call->attr->line.dim, x, &call->output[0]);
    return gpu_launch_prod(device, grid_of(GPU_KERNEL_prod, &a), &a, error);
}

KERNEL_SIGNATURE(gpu, prod_backward) {
    const View *x = &call->input[1], *dx = &call->output[0];
    LineArguments a = lines_of(x, call->attr->line.dim, x, dx);
    const size_t bytes = (size_t)(view_count(x) + 1) * sizeof *a.before;
    a.team = 1;
    a.gradient = gpu_dense(&call->input[0]);
    a.before = dx->format == FORMAT_FP32 ? dx->data : device_workspace(device, bytes, error);
    return a.before != NULL &&
           gpu_launch_prod_backward(device, gpu_grid(GPU_KERNEL_prod_backward, a.lines, 1), &a,
                                    error);
}

// ---- a dimension drawn anew ---------------------------------------------------------------------

static bool resample(Device *device, GpuKernel kernel, const KernelCall *call, Error *error) {
    const View *x = &call->input[0], *y = &call->output[0];
    ResampleArguments a = {.input = gpu_dense(x),
                           .output = gpu_dense(y),
                           .attr = call->attr->resample,
                           .inner = 1,
                           .count = view_count(y)};
    for (int i = a.attr.dim + 1; i < x->ndim; i++)
        a.inner *= x->shape[i];
    return gpu_launch(device, kernel, gpu_grid(kernel, a.count, 1), &a, error);
}

KERNEL_SIGNATURE(gpu, resample) {
    return resample(device, GPU_KERNEL_resample, call, error);
}
KERNEL_SIGNATURE(gpu, interpolate) {
    return resample(device, GPU_KERNEL_resample, call, error);
}
KERNEL_SIGNATURE(gpu, resample_backward) {
    return resample(device, GPU_KERNEL_resample_backward, call, error);
}
