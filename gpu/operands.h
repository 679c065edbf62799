// gpu/operands.h: views as the kernels' operands: how their elements are found, in as few steps as
// their strides allow.
#pragma once

#include "gpu/kernels/arguments.h"
#include "kernel/kernel.h"

// Describes `count` inputs, broadcast to the output's shape, and the output, which is dense. An
// input without data is OPERAND_ABSENT.
void gpu_operands(const View *inputs, int count, const View *output, Operand *input_operands,
                  Operand *output_operand, Extent *extent);

// Whether eight neighbours of it come and go by 16 bytes.
bool gpu_goes_wide(const Operand *operand);

// A dense view as an operand.
Operand gpu_dense(const View *view);
