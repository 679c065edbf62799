// Joining, padding and selecting on a card: what gpu/kernels/arrange.cu is told.
#include "gpu/backend.h"
#include "gpu/launch.h"
#include "gpu/moving.h"
#include "gpu/values.h"

enum { EACH = 8 }; // elements or pieces of a thread

// ---- cat ----------------------------------------------------------------------------------------

KERNEL_SIGNATURE(gpu, cat) {
    const View *y = &call->output[0];
    const int64_t count = view_count(y);
    int64_t outer = 1;
    for (int i = 0; i < call->attr->index.dim; i++)
        outer *= y->shape[i];
    if (count == 0)
        return true;
    CatArguments a = {.output = y->data, .moving = gpu_moving(y->format, y->format)};
    gpu_moving_address(&a.moving, y->data);
    for (int k = 0; k < call->input_count; k++) {
        const View *x = &call->input[k];
        if (view_count(x) == 0)
            continue;
        if (x->format != y->format)
            a.moving.bytes = 0;
        gpu_moving_address(&a.moving, x->data);
        gpu_moving_distance(&a.moving, view_count(x) / outer);
        a.input[a.inputs] = x->data;
        a.format[a.inputs] = x->format;
        a.run += view_count(x) / outer;
        a.end[a.inputs++] = a.run;
    }
    for (u32 k = 0; k < a.inputs; k++)
        a.end[k] = gpu_moving_pieces(&a.moving, a.end[k]);
    a.run = gpu_moving_pieces(&a.moving, a.run);
    a.count = gpu_moving_pieces(&a.moving, count);
    return gpu_launch_cat(device, gpu_grid(GPU_KERNEL_cat, a.count, EACH), &a, error);
}

// ---- pad ----------------------------------------------------------------------------------------

// What is not padded itself widens the dimension before it.
static void take_dimension(PadArguments *a, int64_t size, int64_t before, int64_t after) {
    Extent *extent = &a->extent;
    if (extent->ndim > 0 && before == 0 && after == 0) {
        const u32 last = extent->ndim - 1;
        extent->size[last] *= size;
        a->size[last] *= size;
        a->before[last] *= size;
        return;
    }
    const u32 at = extent->ndim++;
    extent->size[at] = before + size + after;
    a->size[at] = size;
    a->before[at] = before;
}

KERNEL_SIGNATURE(gpu, pad) {
    const View *x = &call->input[0], *y = &call->output[0];
    const PadAttr *attr = &call->attr->pad;
    PadArguments a = {.input = x->data,
                      .output = y->data,
                      .moving = gpu_moving(x->format, y->format),
                      .pattern = gpu_pattern(y->format, attr->value)};
    for (int i = 0; i < x->ndim; i++)
        take_dimension(&a, x->shape[i], attr->before[i], attr->after[i]);
    if (a.extent.ndim == 0)
        take_dimension(&a, 1, 0, 0);
    const u32 last = a.extent.ndim - 1;
    gpu_moving_address(&a.moving, x->data);
    gpu_moving_address(&a.moving, y->data);
    gpu_moving_distance(&a.moving, a.size[last]);
    gpu_moving_distance(&a.moving, a.before[last]);
    gpu_moving_distance(&a.moving, a.extent.size[last]);
    a.bytes = a.moving.bytes ? a.moving.bytes : (u32)format_table[y->format].bytes;
    a.size[last] = gpu_moving_pieces(&a.moving, a.size[last]);
    a.before[last] = gpu_moving_pieces(&a.moving, a.before[last]);
    a.extent.size[last] = gpu_moving_pieces(&a.moving, a.extent.size[last]);
    a.extent.count = gpu_moving_pieces(&a.moving, view_count(y));
    return gpu_launch_pad(device, gpu_grid(GPU_KERNEL_pad, a.extent.count, EACH), &a, error);
}

// ---- gather -------------------------------------------------------------------------------------

// `whole` is what the index selects in.
static GatherArguments gathering(Device *device, const KernelCall *call, const View *whole) {
    const View *index = &call->input[1];
    const int dim = call->attr->index.dim;
    GatherArguments a = {.input = call->input[0].data,
                         .index = index->data,
                         .output = call->output[0].data,
                         .moving = gpu_moving(call->input[0].format, call->output[0].format),
                         .size = whole->shape[dim],
                         .picked = index->shape[dim],
                         .inner = 1,
                         .count = view_count(&call->output[0])};
    a.values = gpu_value_arguments(device, call, FAULT_ELEMENT, a.size);
    for (int i = dim + 1; i < whole->ndim; i++)
        a.inner *= whole->shape[i];
    return a;
}

KERNEL_SIGNATURE(gpu, gather) {
    GatherArguments a = gathering(device, call, &call->input[0]);
    gpu_moving_distance(&a.moving, 1);
    gpu_moving_address(&a.moving, a.input);
    return gpu_launch_gather(device, gpu_grid(GPU_KERNEL_gather, a.count, EACH), &a, error);
}

KERNEL_SIGNATURE(gpu, gather_backward) {
    GatherArguments a = gathering(device, call, &call->output[0]);
    CheckArguments check = {a.index, view_count(&call->input[1]), a.values};
    return gpu_launch_check_index(device, gpu_grid(GPU_KERNEL_check_index, check.count, EACH),
                                  &check, error) &&
           gpu_launch_gather_backward(device, gpu_grid(GPU_KERNEL_gather_backward, a.count, 1), &a,
                                      error);
}
