// cpu/pointwise.h: what the files of the point-wise kernels share. Private to cpu/pointwise*.c and
// their tests.
#pragma once

#include "cpu/cpu.h"

// A call, as its tasks see it.
typedef struct Pointwise {
    const CpuPointwise *table;
    OpId op;
    Operand input[3];
    Result output;
    float a, b;
} Pointwise;

typedef struct PointwiseBuffer {
    _Alignas(64) float value[CPU_BLOCK];
} PointwiseBuffer;

// Nanoseconds an element where the function itself decides: exponentials and the like.
#define POINTWISE_FUNCTION 1.0
