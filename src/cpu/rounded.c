#include "cpu/rounded.h"

#include "cpu/cpu.h"
#include "kernel/allocator.h"

// How many of the first inputs are factors.
static const int factors_of[OP_COUNT] = {
    [OP_matmul] = 2,
    [OP_linear] = 2,
    [OP_conv2d] = 2,
    [OP_conv2d_backward_input] = 2,
    [OP_conv2d_backward_weight] = 2,
    [OP_conv_transpose2d] = 2,
    [OP_attention] = 3,
    [OP_attention_backward] = 4,
};

bool rounded_serves(OpId op) {
    return factors_of[op] > 0;
}

// The memory from the first element to the last, where no more lies there than the view counts: one
// that leaves nothing out, in whatever order, or repeats what it has. False: it has gaps.
static bool lies_whole(const View *view, View *memory) {
    int64_t numbers = view_count(view) > 0;
    for (int i = 0; i < view->ndim && numbers > 0; i++)
        numbers += (view->shape[i] - 1) * view->stride[i];
    *memory = view_dense(view->data, view->format, 1, &numbers);
    return numbers <= view_count(view);
}

// What is copied of a factor: as it lies, so that a matrix that lies turned stays so; or what it
// counts, which becomes dense.
static View copied_of(const View *factor) {
    View memory;
    return lies_whole(factor, &memory) ? memory : *factor;
}

static bool is_rounded(const KernelCall *call, int input) {
    return call->attr->has_compute && input < factors_of[call->op] &&
           call->input[input].format == FORMAT_FP32;
}

static int64_t room_for(const View *factor) {
    const View copied = copied_of(factor);
    return cpu_padded(view_count(&copied));
}

// Puts a copy at `memory` into the place of a factor.
static bool round_factor(Device *device, Format format, View *factor, float *memory, Error *error) {
    View from = copied_of(factor);
    const View to = view_dense(memory, format, from.ndim, from.shape);
    if (!cpu_cast_view(device, &from, &to, error))
        return false;
    if (!lies_whole(factor, &from))
        *factor = view_dense(memory, factor->format, factor->ndim, factor->shape);
    factor->data = memory;
    return true;
}

bool rounded_begin(Device *device, const KernelCall *call, Rounded *rounded, Error *error) {
    *rounded = (Rounded){.call = *call};
    int64_t room = 0;
    for (int i = 0; i < factors_of[call->op]; i++)
        room += is_rounded(call, i) ? room_for(&call->input[i]) : 0;
    if (room == 0)
        return true;
    float *memory = rounded->memory =
        allocator_take(device->allocator, (size_t)room * sizeof *memory, MEMORY_WORKSPACE, error);
    bool done = memory != NULL;
    for (int i = 0; i < factors_of[call->op] && done; i++) {
        if (!is_rounded(call, i))
            continue;
        done = round_factor(device, call->attr->compute, &rounded->call.input[i], memory, error);
        memory += room_for(&call->input[i]);
    }
    if (!done)
        rounded_end(device, rounded);
    return done;
}

void rounded_end(Device *device, Rounded *rounded) {
    allocator_give(device->allocator, rounded->memory);
    rounded->memory = NULL;
}

bool rounded_run(Device *device, const KernelCall *call, Kernel kernel, Error *error) {
    if (!call->attr->has_compute)
        return kernel(device, call, error);
    Rounded rounded;
    if (!rounded_begin(device, call, &rounded, error))
        return false;
    const bool done = kernel(device, &rounded.call, error);
    rounded_end(device, &rounded);
    return done;
}
