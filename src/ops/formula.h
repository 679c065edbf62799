// ops/formula.h: several operations written as one formula.
//
// All results come in one format, the formula's. What is made on the way belongs to it and is let
// go at its end; a NULL operand gives NULL, so that a formula is written down whole and looked at
// once, in formula_end. Everything is on the record, as operations are: what is written so can be
// differentiated again.
#pragma once

#include "ops/engine.h"

enum { FORMULA_MOST = 64 }; // operations

typedef struct Formula {
    Engine *engine;
    Error *error;
    Format format;
    int count;
    Tensor *made[FORMULA_MOST];
} Formula;

Formula formula_begin(Engine *engine, Format format, Error *error);
// Lets go of everything.
void formula_end(Formula *formula);
// Takes over a tensor (NULL: it failed) and gives it back, to be let go of at the end.
Tensor *formula_keep(Formula *formula, Tensor *made);
// A new reference to `result` as `format` has it, in the given shape, for whoever called. NULL
// where something failed.
Tensor *formula_give(Formula *formula, Tensor *result, Format format, const GradShape *shape);

Tensor *formula_one(Formula *formula, OpId op, Tensor *x);
Tensor *formula_two(Formula *formula, OpId op, Tensor *x, Tensor *y);
Tensor *formula_where(Formula *formula, Tensor *mask, Tensor *x, Tensor *y);
Tensor *formula_number(Formula *formula, double value); // of no dimension
Tensor *formula_wide(Formula *formula, Tensor *x);      // in the formula's format
Tensor *formula_line(Formula *formula, Tensor *x, double factor, double shift);
// OP_sum or OP_mean over the dimensions of the mask, which stay with size 1.
Tensor *formula_over(Formula *formula, OpId op, Tensor *x, uint32_t dims);
Tensor *formula_reshape(Formula *formula, Tensor *x, int ndim, const int64_t *shape);
Tensor *formula_swap(Formula *formula, Tensor *x, int first, int second); // two dimensions

static inline Tensor *formula_add(Formula *formula, Tensor *x, Tensor *y) {
    return formula_two(formula, OP_add, x, y);
}
static inline Tensor *formula_sub(Formula *formula, Tensor *x, Tensor *y) {
    return formula_two(formula, OP_sub, x, y);
}
static inline Tensor *formula_mul(Formula *formula, Tensor *x, Tensor *y) {
    return formula_two(formula, OP_mul, x, y);
}
static inline Tensor *formula_div(Formula *formula, Tensor *x, Tensor *y) {
    return formula_two(formula, OP_div, x, y);
}
