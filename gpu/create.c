// Creations and dropout on a card: what gpu/kernels/create.cu is told.
#include "gpu/backend.h"
#include "gpu/launch.h"
#include "gpu/moving.h"
#include "gpu/operands.h"
#include "kernel/random.h"

enum { EACH = 8 }; // elements or pieces of a thread

KERNEL_SIGNATURE(gpu, fill) {
    const View *y = &call->output[0];
    const int64_t count = view_count(y);
    Moving moving = gpu_moving(y->format, y->format);
    gpu_moving_address(&moving, y->data);
    gpu_moving_distance(&moving, count);
    FillArguments a = {.output = y->data,
                       .count = gpu_moving_pieces(&moving, count),
                       .bytes = moving.bytes,
                       .pattern = gpu_pattern(y->format, call->attr->create.a)};
    return gpu_launch_fill(device, gpu_grid(GPU_KERNEL_fill, a.count, EACH), &a, error);
}

KERNEL_SIGNATURE(gpu, arange) {
    const View *y = &call->output[0];
    ArangeArguments a = {.output = gpu_dense(y),
                         .count = view_count(y),
                         .first = call->attr->create.a,
                         .step = call->attr->create.b};
    return gpu_launch_arange(device, gpu_grid(GPU_KERNEL_arange, a.count, EACH), &a, error);
}

static bool draw(Device *device, GpuKernel kernel, const KernelCall *call, DrawArguments *a,
                 const RandomAttr *random, Error *error) {
    const View *y = &call->output[0];
    a->output = gpu_dense(y);
    a->count = view_count(y);
    a->random = *random;
    // Whole numbers of randint go wide too, though nothing else of that format does.
    a->wide = gpu_goes_wide(&a->output) ||
              (kernel == GPU_KERNEL_randint && a->output.kind == OPERAND_WIDE);
    if (call->input_count > 0) {
        a->input = gpu_dense(&call->input[0]);
        a->wide = a->wide && gpu_goes_wide(&a->input);
    }
    return gpu_launch(device, kernel, gpu_grid(kernel, a->count, EACH), a, error);
}

KERNEL_SIGNATURE(gpu, uniform) {
    const CreateAttr *create = &call->attr->create;
    DrawArguments a = {.a = create->a, .b = create->b - create->a};
    a.last = (float)random_uniform_last(call->output[0].format, create->a, create->b);
    return draw(device, GPU_KERNEL_uniform, call, &a, &call->attr->random, error);
}

KERNEL_SIGNATURE(gpu, normal) {
    DrawArguments a = {.a = call->attr->create.a, .b = call->attr->create.b};
    return draw(device, GPU_KERNEL_normal, call, &a, &call->attr->random, error);
}

KERNEL_SIGNATURE(gpu, randint) {
    const int64_t low = (int64_t)call->attr->create.a;
    DrawArguments a = {.a = (double)low, .b = (double)((int64_t)call->attr->create.b - low)};
    return draw(device, GPU_KERNEL_randint, call, &a, &call->attr->random, error);
}

KERNEL_SIGNATURE(gpu, dropout) {
    const double probability = call->attr->dropout.probability;
    DrawArguments a = {.a = probability, .b = probability < 1 ? 1 / (1 - probability) : 0};
    return draw(device, GPU_KERNEL_dropout, call, &a, &call->attr->dropout.stream, error);
}
