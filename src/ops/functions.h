// ops/functions.h: functions that are more than their operation: several of them, numbers that are
// worked out first, or a state that moves on with it.
//
// What of a call has to be decided by arithmetic or by formats is decided here, so that every
// caller of the engine gets the same; what reads a caller's arguments is the caller's. New
// references; NULL on failure.
#pragma once

#include "ops/engine.h"

// The whole numbers below `count`, from 0.
Tensor *op_arange(Engine *engine, int64_t count, Error *error) MUST_CHECK;

// -x; a whole number stays one.
Tensor *op_negative(Engine *engine, Tensor *x, Error *error) MUST_CHECK;

// A number as an operand of `op` beside a tensor: wide enough to be computed with as it is, but
// compared with what the tensor's format makes of it, so that an element that was set to it equals
// it. Beside whole numbers one that is_whole (or is compared with them) is whole too.
Tensor *op_number_beside(Engine *engine, OpId op, double value, bool is_whole, const Tensor *other,
                         Error *error) MUST_CHECK;

// An operation on rows, over any dimension.
Tensor *op_along(Engine *engine, OpId op, Tensor *x, int dim, Error *error) MUST_CHECK;
// Any number of tensors joined, at least one: more than one call takes in groups.
Tensor *op_cat(Engine *engine, Tensor *const *parts, int64_t count, int dim,
               Error *error) MUST_CHECK;

// Along one dimension: the product, whose dimension stays with size 1 where it is kept.
Tensor *op_prod(Engine *engine, Tensor *x, int dim, bool keep, Error *error) MUST_CHECK;
// A dimension drawn anew (kernel/resample.h): by OP_resample, or OP_interpolate, in `format`.
// FORMAT_COUNT: as precision has it.
Tensor *op_resample(Engine *engine, OpId op, Tensor *x, ResampleAttr attr, Format format,
                    Error *error) MUST_CHECK;
// x, and to each element that `index` names along the dimension what `source` has in its place.
Tensor *op_scatter_add(Engine *engine, Tensor *x, int dim, Tensor *index, Tensor *source,
                       Error *error) MUST_CHECK;

// x itself where nothing is to be dropped.
Tensor *op_dropout(Engine *engine, Tensor *x, double probability, bool training,
                   Error *error) MUST_CHECK;

// attr->norm has epsilon and momentum. inputs: x, weight, bias, running mean and variance. Training
// takes the batch's own statistics and moves the running ones, where there are both, on: a step
// that turns out to be skipped takes them back. Otherwise the running ones are applied.
Tensor *op_batch_norm(Engine *engine, Tensor *const inputs[5], const OpAttr *attr, bool training,
                      Error *error) MUST_CHECK;

// inputs: x, weight, bias. attr->conv without the size of what comes out, which is the smallest
// that the windows fit in and `extra` more at the lower and right edge.
Tensor *op_conv_transpose2d(Engine *engine, Tensor *const inputs[3], const OpAttr *attr,
                            const int64_t extra[2], Error *error) MUST_CHECK;

// What attention multiplies the products q·k by when nothing else is asked for.
double op_attention_scale(const Tensor *q);
