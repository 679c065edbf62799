// kernel/int8.h: linear and conv2d with weights in int8 (number/int8.h), for evaluation.
//
// Their second input is then int8, [rows of the weight][terms of a sum], and OpAttr says by `int8`
// what its rows and the first input are scaled by. The first input is rounded as it is read, in
// whatever floating format; padding is 0. Sums are whole and exact: what comes out, before its
// activation, is float(sum) * (step * steps[row]) + bias, each rounded to fp32, on every device.
#pragma once

#include "kernel/kernel.h"
#include "number/int8.h"

static inline bool int8_serves(OpId op) {
    return op == OP_linear || op == OP_conv2d;
}

static inline bool int8_is_given(const KernelCall *call) {
    return call->input[1].format == FORMAT_INT8;
}
