// Pooling on a card: what gpu/kernels/pool.cu is told.
#include "gpu/backend.h"
#include "gpu/launch.h"
#include "gpu/operands.h"

// `where` names the largest of each window: written forward, read backward.
static bool pool(Device *device, GpuKernel kernel, const KernelCall *call, const View *where,
                 bool backward, double share, Error *error) {
    const View *in = &call->input[0], *out = &call->output[0];
    const View *image = backward ? out : in, *pooled = backward ? in : out;
    const PoolAttr *attr = &call->attr->pool;
    PoolArguments a = {.input = gpu_dense(in),
                       .output = gpu_dense(out),
                       .where = where ? where->data : NULL,
                       .height = (i32)image->shape[1],
                       .width = (i32)image->shape[2],
                       .out_height = (i32)pooled->shape[1],
                       .out_width = (i32)pooled->shape[2],
                       .channels = out->shape[3],
                       .share = (float)share};
    for (int i = 0; i < 2; i++) {
        a.kernel[i] = (i32)attr->kernel[i];
        a.stride[i] = (i32)attr->stride[i];
        a.padding[i] = (i32)attr->padding[i];
    }
    a.wide = gpu_goes_wide(&a.input) && gpu_goes_wide(&a.output) && a.channels % EIGHT == 0 &&
             (uintptr_t)a.where % EIGHT == 0;
    const int64_t count = view_count(out) / (a.wide ? EIGHT : 1);
    if (count > UINT32_MAX)
        return error_fail(error, ERROR_UNAVAILABLE,
                          "pooling: %lld numbers are more than the card's kernel counts; use "
                          "--device cpu",
                          (long long)view_count(out));
    a.count = (u32)count;
    return gpu_launch(device, kernel, gpu_grid(kernel, count, 1), &a, error);
}

static double share_of(const KernelCall *call) {
    return 1 / (double)(call->attr->pool.kernel[0] * call->attr->pool.kernel[1]);
}

KERNEL_SIGNATURE(gpu, max_pool2d) {
    return pool(device, GPU_KERNEL_max_pool2d, call, &call->output[1], false, 1, error);
}
KERNEL_SIGNATURE(gpu, max_pool2d_backward) {
    return pool(device, GPU_KERNEL_max_pool2d_backward, call, &call->input[1], true, 1, error);
}
KERNEL_SIGNATURE(gpu, avg_pool2d) {
    return pool(device, GPU_KERNEL_avg_pool2d, call, NULL, false, share_of(call), error);
}
KERNEL_SIGNATURE(gpu, avg_pool2d_backward) {
    return pool(device, GPU_KERNEL_avg_pool2d_backward, call, NULL, true, share_of(call), error);
}
