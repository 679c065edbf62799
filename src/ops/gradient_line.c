// Derivatives of operations along one dimension.
#include "ops/formula.h"
#include "ops/functions.h"
#include "ops/gradient_formulas.h"

// Every sum that an element is part of: those from it on.
GRADIENT_RULE(cumsum) {
    OpAttr attr = attr_with_format(gradient_format(node, 0));
    attr.line = node->attr.line;
    attr.line.backwards = !attr.line.backwards;
    input_grad[0] = op_one(context, OP_cumsum, output_grad[0], &attr, error);
    return input_grad[0] != NULL;
}
GRADIENT_SAVES(cumsum, 0)

// Of each row as many, each with 1 in place of another element; their products.
static Tensor *products_of_others(Formula *f, Tensor *rows) {
    const int64_t *shape = rows->view.shape, length = shape[2];
    const int64_t spread[4] = {shape[0], shape[1], 1, length}, down[2] = {length, 1};
    Tensor *every = formula_keep(f, op_arange(f->engine, length, f->error));
    Tensor *own = formula_two(f, OP_equal, every, formula_reshape(f, every, 2, down));
    Tensor *others =
        formula_where(f, own, formula_number(f, 1), formula_reshape(f, rows, 4, spread));
    OpAttr attr = attr_with_format(f->format);
    attr.line.dim = 3;
    return others ? formula_keep(f, op_one(f->engine, OP_prod, others, &attr, f->error)) : NULL;
}

// The same as a formula, for a walk that is recorded.
static bool formula_prod(Engine *engine, const GradNode *node, Tensor *dy, Tensor **input_grad,
                         Error *error) {
    const GradShape *x = &node->inputs[0];
    const int dim = node->attr.line.dim;
    int64_t shape[3] = {1, x->shape[dim], 1};
    for (int i = 0; i < x->ndim; i++)
        shape[i < dim ? 0 : 2] *= i == dim ? 1 : x->shape[i];
    const int64_t column[3] = {shape[0], shape[2], 1};
    Formula f = formula_begin(engine, x->format == FORMAT_FP64 ? FORMAT_FP64 : FORMAT_FP32, error);
    Tensor *rows = formula_swap(&f, formula_reshape(&f, node->saved[0], 3, shape), 1, 2);
    Tensor *others = rows ? products_of_others(&f, formula_wide(&f, rows)) : NULL;
    Tensor *dx = formula_mul(&f, others, formula_reshape(&f, dy, 3, column));
    input_grad[0] = formula_give(&f, formula_swap(&f, dx, 1, 2), gradient_format(node, 0), x);
    formula_end(&f);
    return input_grad[0] != NULL;
}

GRADIENT_RULE(prod) {
    if (gradient_is_recorded(context))
        return formula_prod(context, node, output_grad[0], input_grad, error);
    OpAttr attr = attr_with_format(gradient_format(node, 0));
    attr.line = node->attr.line;
    input_grad[0] = op_two(context, OP_prod_backward, output_grad[0], node->saved[0], &attr, error);
    return input_grad[0] != NULL;
}
GRADIENT_SAVES(prod, SAVE_INPUT(0))

GRADIENT_RULE(resample) {
    OpAttr attr = attr_with_format(gradient_format(node, 0));
    attr.resample = node->attr.resample;
    input_grad[0] = op_one(context, OP_resample_backward, output_grad[0], &attr, error);
    return input_grad[0] != NULL;
}
GRADIENT_SAVES(resample, 0)

GRADIENT_RULE(resample_backward) {
    OpAttr attr = attr_with_format(gradient_format(node, 0));
    attr.resample = node->attr.resample;
    input_grad[0] = op_one(context, OP_resample, output_grad[0], &attr, error);
    return input_grad[0] != NULL;
}
GRADIENT_SAVES(resample_backward, 0)
