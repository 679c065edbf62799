#include "gpu/operands.h"

#include <string.h>

// The stride of an input along a dimension of the output: 0 where it is broadcast.
static int64_t stride_along(const View *input, const View *output, int dim) {
    int own = dim - (output->ndim - input->ndim);
    return own < 0 || input->shape[own] == 1 ? 0 : input->stride[own];
}

// Whether two neighbouring dimensions are one for every input: a step of the outer one is as many
// of the inner as it has elements.
static bool can_merge(const Operand *inputs, int count, int dim, const int64_t *strides,
                      int64_t size) {
    for (int k = 0; k < count; k++)
        if (inputs[k].stride[dim] != strides[k] * size)
            return false;
    return true;
}

static OperandKind kind_of(const Operand *operand, const Extent *extent) {
    bool one = true, dense = extent->ndim == 1 && operand->stride[0] == 1;
    for (u32 i = 0; i < extent->ndim; i++)
        one = one && (operand->stride[i] == 0 || extent->size[i] == 1);
    if (!operand->data)
        return OPERAND_ABSENT;
    if (one)
        return OPERAND_ONE;
    if (!dense)
        return OPERAND_STRIDED;
    return (uintptr_t)operand->data % WIDE_BYTES == 0 ? OPERAND_WIDE : OPERAND_DENSE;
}

void gpu_operands(const View *inputs, int count, const View *output, Operand *input_operands,
                  Operand *output_operand, Extent *extent) {
    *extent = (Extent){.count = view_count(output)};
    for (int k = 0; k < count; k++)
        input_operands[k] = (Operand){.data = inputs[k].data, .format = inputs[k].format};
    // The output takes part in merging of its own accord, since it is dense.
    for (int i = 0; i < output->ndim; i++) {
        int64_t size = output->shape[i], strides[OP_MAX_INPUTS];
        if (size == 1)
            continue;
        for (int k = 0; k < count; k++)
            strides[k] = inputs[k].data ? stride_along(&inputs[k], output, i) : 0;
        u32 last = extent->ndim - 1;
        bool merged =
            extent->ndim > 0 && can_merge(input_operands, count, (int)last, strides, size);
        u32 at = merged ? last : extent->ndim++;
        extent->size[at] = merged ? extent->size[at] * size : size;
        for (int k = 0; k < count; k++)
            input_operands[k].stride[at] = strides[k];
    }
    if (extent->ndim == 0)
        extent->size[extent->ndim++] = 1;
    for (int k = 0; k < count; k++)
        input_operands[k].kind = kind_of(&input_operands[k], extent);
    *output_operand = gpu_dense(output);
}

bool gpu_goes_wide(const Operand *operand) {
    bool floating = operand->format == FORMAT_FP32 || operand->format == FORMAT_BF16 ||
                    operand->format == FORMAT_FP16;
    return operand->kind == OPERAND_ONE || (operand->kind == OPERAND_WIDE && floating);
}

Operand gpu_dense(const View *view) {
    bool wide = (uintptr_t)view->data % WIDE_BYTES == 0;
    return (Operand){.data = view->data,
                     .format = view->format,
                     .kind = !view->data ? OPERAND_ABSENT
                             : wide      ? OPERAND_WIDE
                                         : OPERAND_DENSE};
}
