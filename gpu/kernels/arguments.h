// gpu/kernels/arguments.h: what a kernel is told, one struct a kernel or a family of them.
//
// The contract of three compilers: the host's (C17), nvcc and the emulator's (C++17). Plain values
// and addresses of device memory only. What changes from step to step is never a value here, since
// a captured step would repeat it: a kernel gets the address of where it lies.
#pragma once

#include "kernel/view.h"
#include "number/format.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t i32;
typedef int64_t i64;

// How the elements of an operand are found from the number of an element of the output.
typedef enum OperandKind {
    OPERAND_ABSENT,
    OPERAND_WIDE,   // one behind the other, the first at a multiple of 16 bytes
    OPERAND_DENSE,  // one behind the other
    OPERAND_ONE,    // the same for all
    OPERAND_STRIDED // by the strides, along the extent's dimensions
} OperandKind;

typedef struct Operand {
    void *data;
    u32 format, kind;          // Format, OperandKind
    i64 stride[VIEW_MAX_DIMS]; // of OPERAND_STRIDED
} Operand;

// Of the output, in as few dimensions as its operands allow.
typedef struct Extent {
    u32 ndim;
    i64 size[VIEW_MAX_DIMS];
    i64 count;
} Extent;

// ---- pointwise.cu -------------------------------------------------------------------------------

typedef struct PointwiseArguments {
    Operand input[3], output;
    Extent extent;
    float a, b; // of ScalarAttr
    u32 wide;   // eight neighbours of every operand come and go by 16 bytes
} PointwiseArguments;
