// ops/gradient_formulas.h: the derivatives that a kernel of their own computes, written as formulas
// of operations, for a walk that is itself recorded.
//
// A rule takes its formula in place of its kernel when gradient_is_recorded says so: what comes out
// is the same up to rounding, and can be differentiated as often as one likes. Walks of plain
// training never come here.
#pragma once

#include "ops/gradient.h"

static inline bool gradient_is_recorded(const Engine *engine) {
    return tape_is_enabled(engine->tape);
}

// As rules are, for nodes of the operations that they are named after.
bool formula_softmax(Engine *engine, const GradNode *node, Tensor *const *output_grad,
                     Tensor **input_grad, Error *error) MUST_CHECK;
bool formula_log_softmax(Engine *engine, const GradNode *node, Tensor *const *output_grad,
                         Tensor **input_grad, Error *error) MUST_CHECK;
bool formula_cross_entropy(Engine *engine, const GradNode *node, Tensor *const *output_grad,
                           Tensor **input_grad, Error *error) MUST_CHECK;
// Of batch, layer and group norm.
bool formula_norm(Engine *engine, const GradNode *node, Tensor *const *output_grad,
                  Tensor **input_grad, Error *error) MUST_CHECK;
bool formula_attention(Engine *engine, const GradNode *node, Tensor *const *output_grad,
                       Tensor **input_grad, Error *error) MUST_CHECK;
// The gradient of a loss in its first input, in the shape that both inputs have together; NULL on
// failure.
Tensor *formula_loss(Engine *engine, const GradNode *node, Tensor *dloss, Error *error) MUST_CHECK;
