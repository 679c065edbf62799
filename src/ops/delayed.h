// ops/delayed.h: scales that follow from the steps before: of each layer and each kind of factor,
// what the largest numbers were, and what numbers are multiplied by.
//
// All of it lies in device memory, a row a layer and kind, so that no step waits: products note the
// largest, the end of a step makes the next scale of it. An engine owns one; a checkpoint holds it.
#pragma once

#include "precision/recipe.h"
#include "tensor/tensor.h"

typedef struct Engine Engine;

typedef struct Delayed {
    Tensor *state; // fp32 [rows, SCALE_HISTORY + history]; NULL: nothing was scaled so yet
} Delayed;

// Makes room of so many rows anew, for what a checkpoint has: of fewer layers than there are, or of
// more. Room for the layers that there are is made when one of them is first scaled so.
bool delayed_make(Engine *engine, int64_t rows, Error *error) MUST_CHECK;
// Numbers of a row, as long as the recipe looks back so far.
int64_t delayed_width(const Engine *engine);
// What there is takes, or would, where there is none yet.
size_t delayed_bytes(const Engine *engine);
// Where scale and largest of this kind of factor lie; NULL on failure.
float *delayed_scale(Engine *engine, int layer, FactorRole role, Error *error) MUST_CHECK;
// A step has ended: what was noted in it makes the scales of the next.
bool delayed_end_step(Engine *engine, Error *error) MUST_CHECK;
void delayed_clear(Delayed *delayed);
