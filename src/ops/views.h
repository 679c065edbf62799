// ops/views.h: other ways to look at the same memory: no kernel runs unless a reshape must copy.
// Each is recorded on the tape. New references; NULL on failure.
#pragma once

#include "ops/engine.h"

// One dimension may be -1: what is left. Copies where the strides cannot express it.
Tensor *op_reshape(Engine *engine, Tensor *x, int ndim, const int64_t *shape, Error *error);
Tensor *op_permute(Engine *engine, Tensor *x, const int *order, Error *error);
Tensor *op_transpose(Engine *engine, Tensor *x, int first, int second, Error *error);
// Elements first .. last-1 along a dimension.
Tensor *op_slice(Engine *engine, Tensor *x, int dim, int64_t first, int64_t last, Error *error);
// The i-th along the first dimension, without it.
Tensor *op_part(Engine *engine, Tensor *x, int64_t i, Error *error);
// `count` equal parts along a dimension. The gradients of a few parts are joined in one go, where
// slices would each be a gradient of the whole. Where it fails, all parts are NULL.
bool op_chunk(Engine *engine, Tensor *x, int dim, int count, Tensor **parts,
              Error *error) MUST_CHECK;
// Broadcasts dimensions of size 1, and adds dimensions in front.
Tensor *op_expand(Engine *engine, Tensor *x, int ndim, const int64_t *shape, Error *error);
// The same memory with no history.
Tensor *op_detach(Engine *engine, Tensor *x, Error *error);
