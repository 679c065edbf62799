// ops/inputs.h: the inputs of an operation as its kernel is to get them: in the format that was
// decided, laid out as it reads them, and nothing else of the call. For the dispatcher, op.c.
#pragma once

#include "ops/engine.h"

typedef struct PreparedInputs {
    Tensor *edge[OP_MAX_INPUTS]; // where gradients flow; references held
    Tensor *used[OP_MAX_INPUTS]; // what the kernel reads; references held
    int count;
} PreparedInputs;

// The floating formats among the inputs; FP32 when there is none. A number beside a tensor decides
// nothing.
void inputs_formats(Tensor *const *inputs, int count, Format *first, Format *widest);
// Casts and lays out; notes what weights are computed in, for gradients are rounded by that. False:
// what is there until then is to be cleared too.
bool inputs_prepare(Engine *engine, OpId op, Tensor *const *inputs, int count,
                    const OpFormats *formats, PreparedInputs *prepared, Error *error);
void inputs_clear(PreparedInputs *prepared);
