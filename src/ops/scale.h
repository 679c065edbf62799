// ops/scale.h: products in scaled formats (mxfp8): each factor is rounded to elements that share
// scales along the depth of that product, from what the tensor holds, and multiplied as what the
// elements are worth.
//
// A weight has so one form in the forward product and another in that of its input's gradient, and
// neither is made of the other. What the tape keeps is the tensor itself. Weights and biases of
// layer and group norms are rounded likewise where the recipe says so; second derivatives take
// those as they are.
#pragma once

#include "ops/engine.h"

// Whether what the operation multiplies by is scaled.
static inline bool scale_is_asked(const OpAttr *attr) {
    return attr->has_compute && format_is_scaled(attr->compute);
}

// Which inputs these are: so many from `first` on, each of which may be absent.
typedef struct ScaledInputs {
    int first, count;
} ScaledInputs;

ScaledInputs scale_inputs(OpId op);

// One of them as it is to be multiplied. References are held by who has it.
typedef struct ScaledFactor {
    Tensor *worth; // of its elements
    Tensor *times; // a single number by which the product is multiplied besides; NULL: none
    int block;     // so many along the depth share a scale; 0: it has no such scales
    Format element, scale;
} ScaledFactor;

bool scale_factor(Engine *engine, OpId op, const OpAttr *attr, int i, Tensor *x,
                  ScaledFactor *factor, Error *error) MUST_CHECK;
void scale_clear(ScaledFactor *factor);

// What both factors of a product are made of, for devices that can multiply that.
NumberBlocks scale_blocks(const ScaledFactor *a, const ScaledFactor *b);
