#include "ops/formula.h"

#include <assert.h>

#include "ops/gradient.h"
#include "ops/views.h"

Formula formula_begin(Engine *engine, Format format, Error *error) {
    return (Formula){.engine = engine, .error = error, .format = format};
}

void formula_end(Formula *formula) {
    for (int i = 0; i < formula->count; i++)
        tensor_release(formula->made[i]);
    formula->count = 0;
}

Tensor *formula_keep(Formula *formula, Tensor *made) {
    assert(formula->count < FORMULA_MOST);
    if (made)
        formula->made[formula->count++] = made;
    return made;
}

Tensor *formula_give(Formula *formula, Tensor *result, Format format, const GradShape *shape) {
    Tensor *shaped = formula_reshape(formula, result, shape->ndim, shape->shape);
    if (!shaped || shaped->view.format == format)
        return tensor_hold(shaped);
    return op_cast(formula->engine, shaped, format, formula->error);
}

Tensor *formula_one(Formula *formula, OpId op, Tensor *x) {
    OpAttr attr = attr_with_format(formula->format);
    return x ? formula_keep(formula, op_one(formula->engine, op, x, &attr, formula->error)) : NULL;
}

Tensor *formula_two(Formula *formula, OpId op, Tensor *x, Tensor *y) {
    OpAttr attr = attr_with_format(formula->format);
    return x && y ? formula_keep(formula, op_two(formula->engine, op, x, y, &attr, formula->error))
                  : NULL;
}

Tensor *formula_where(Formula *formula, Tensor *mask, Tensor *x, Tensor *y) {
    OpAttr attr = attr_with_format(formula->format);
    return mask && x && y ? formula_keep(formula, op_three(formula->engine, OP_where, mask, x, y,
                                                           &attr, formula->error))
                          : NULL;
}

Tensor *formula_number(Formula *formula, double value) {
    return formula_keep(formula,
                        op_fill(formula->engine, formula->format, 0, NULL, value, formula->error));
}

Tensor *formula_wide(Formula *formula, Tensor *x) {
    return x && x->view.format != formula->format ? formula_one(formula, OP_cast, x) : x;
}

Tensor *formula_line(Formula *formula, Tensor *x, double factor, double shift) {
    OpAttr attr = attr_with_format(formula->format);
    attr.scalar.a = factor;
    attr.scalar.b = shift;
    return x ? formula_keep(formula, op_one(formula->engine, OP_affine, x, &attr, formula->error))
             : NULL;
}

Tensor *formula_over(Formula *formula, OpId op, Tensor *x, uint32_t dims) {
    OpAttr attr = attr_with_format(formula->format);
    attr.reduce.dims = dims;
    attr.reduce.keep = true;
    return x ? formula_keep(formula, op_one(formula->engine, op, x, &attr, formula->error)) : NULL;
}

Tensor *formula_reshape(Formula *formula, Tensor *x, int ndim, const int64_t *shape) {
    return x ? formula_keep(formula, op_reshape(formula->engine, x, ndim, shape, formula->error))
             : NULL;
}

Tensor *formula_swap(Formula *formula, Tensor *x, int first, int second) {
    return x ? formula_keep(formula,
                            op_transpose(formula->engine, x, first, second, formula->error))
             : NULL;
}
