// ops/shape.h: what an operation accepts and what comes out, one rule a family of ops.def.
//
// A rule reads the inputs' shapes and formats and the attributes of a call and fills each output's
// ndim, shape and dense strides. It sets an output's format where the operation's nature fixes it
// (int32 for indices, uint8 for masks, fp32 for statistics) and leaves FORMAT_COUNT where precision
// decides. What does not fit is an error that says what was expected and what came: "input has 64
// features, weight wants 128". Pure: no memory, no device. Any thread.
#pragma once

#include "base/error.h"
#include "kernel/kernel.h"

typedef bool (*ShapeRule)(const KernelCall *call, View *output, Error *error);

#define OP(name, inputs, outputs, class, family, ...) \
    bool shape_##family(const KernelCall *call, View *output, Error *error);
#include "kernel/ops.def"

extern const ShapeRule shape_rules[OP_COUNT];
