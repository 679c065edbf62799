// Derivatives of point-wise operations, reductions and casts.
#include <string.h>

#include "ops/gradient.h"
#include "ops/gradient_formulas.h"
#include "ops/views.h"

const bool unary_saves_output[OP_COUNT] = {
#define SAVE_X                         false
#define SAVE_Y                         true
#define UNARY(name, class, saved, ...) [OP_##name] = saved,
#include "kernel/pointwise.def"
};

const OpId backward_of[OP_COUNT] = {
#define UNARY(name, ...) [OP_##name] = OP_##name##_backward,
#define LOSS(name, ...)  [OP_##name] = OP_##name##_backward,
#include "kernel/pointwise.def"
};

Tensor *gradient_sum_to(Engine *engine, Tensor *gradient, const GradShape *shape, Format format,
                        Error *error) {
    int extra = gradient->view.ndim - shape->ndim;
    OpAttr attr = attr_with_format(format);
    for (int i = 0; i < gradient->view.ndim; i++) {
        int64_t wanted = i < extra ? 1 : shape->shape[i - extra];
        if (gradient->view.shape[i] != wanted || i < extra)
            attr.reduce.dims |= 1u << i;
    }
    if (!attr.reduce.dims) {
        if (gradient->view.format == format)
            return gradient;
        Tensor *cast = op_cast(engine, gradient, format, error);
        tensor_release(gradient);
        return cast;
    }
    attr.reduce.keep = true;
    Tensor *sum = op_one(engine, OP_sum, gradient, &attr, error);
    tensor_release(gradient);
    if (!sum || !extra)
        return sum;
    Tensor *result = op_reshape(engine, sum, shape->ndim, shape->shape, error);
    tensor_release(sum);
    return result;
}

// Puts `gradient`, whose reference it takes over, into input_grad[i] in the input's shape.
static bool deliver(void *context, const GradNode *node, int i, Tensor *gradient,
                    Tensor **input_grad, Error *error) {
    if (!gradient)
        return false;
    input_grad[i] =
        gradient_sum_to(context, gradient, &node->inputs[i], gradient_format(node, i), error);
    return input_grad[i] != NULL;
}

// ---- functions of one number --------------------------------------------------------------------

// A line's slope needs nothing of where on it x lies, and is itself a line in the gradient.
static bool is_line(OpId op) {
    return op == OP_neg || op == OP_affine;
}

GRADIENT_RULE(unary) {
    OpAttr attr = node->attr;
    attr.has_out_format = true;
    attr.out_format = gradient_format(node, 0);
    if (is_line(node->op)) {
        attr.scalar.b = 0;
        input_grad[0] = op_one(context, node->op, output_grad[0], &attr, error);
        return input_grad[0] != NULL;
    }
    input_grad[0] =
        op_two(context, backward_of[node->op], output_grad[0], node->saved[0], &attr, error);
    return input_grad[0] != NULL;
}
// What a function of one number gives lies beside the number that its slope is taken at. In a
// format of few bits one pass gives it again; a card computes so fast that passes are what its
// steps take.
bool gradient_makes_again(const Tensor *tensor) {
    const GradNode *node = tensor ? (const GradNode *)tensor->origin : NULL;
    if (!node || node->op >= OP_COUNT || gradient_table[node->op]->rule != back_unary)
        return false;
    return node->saved_count == 1 && node->saved[0] && node->saved_output[0] < 0 &&
           op_table[node->op].precision == CLASS_KEEP && tensor_version(tensor) == 0 &&
           tensor_device(tensor)->memory == 0 && format_table[tensor->view.format].bytes == 2 &&
           node->saved[0]->view.format == tensor->view.format;
}

static uint32_t saves_unary(OpId op, const OpAttr *attr) {
    (void)attr;
    if (is_line(op))
        return 0;
    return unary_saves_output[op] ? SAVE_OUTPUT(0) : SAVE_INPUT(0);
}
const GradientInfo gradient_unary = {.rule = back_unary, .saves = saves_unary};

GRADIENT_RULE(cast) {
    input_grad[0] = op_cast(context, output_grad[0], gradient_format(node, 0), error);
    return input_grad[0] != NULL;
}
GRADIENT_SAVES(cast, 0)

// The same positions are dropped from the gradient: the mask is a function of the attributes.
GRADIENT_RULE(dropout) {
    OpAttr attr = node->attr;
    attr.has_out_format = true;
    attr.out_format = node->inputs[0].format;
    input_grad[0] = op_one(context, OP_dropout, output_grad[0], &attr, error);
    return input_grad[0] != NULL;
}
GRADIENT_SAVES(dropout, 0)

// The target's derivative is only known for differences, where it is the negative of the input's.
GRADIENT_RULE(loss) {
    OpAttr attr = attr_with_format(gradient_format(node, 0));
    Tensor *dx = gradient_is_recorded(context)
                     ? formula_loss(context, node, output_grad[0], error)
                     : op_three(context, backward_of[node->op], output_grad[0], node->saved[0],
                                node->saved[1], &attr, error);
    if (!dx)
        return false;
    bool done = true;
    if (gradient_wanted(node, 1)) {
        if (node->op == OP_mse || node->op == OP_l1) {
            OpAttr negative = attr_with_format(gradient_format(node, 1));
            done = deliver(context, node, 1, op_one(context, OP_neg, dx, &negative, error),
                           input_grad, error);
        } else {
            done = error_fail(error, ERROR_USAGE,
                              "%s: the target asks for a gradient, and only the first argument has "
                              "one; detach the target",
                              op_table[node->op].name);
        }
    }
    if (done && gradient_wanted(node, 0))
        return deliver(context, node, 0, dx, input_grad, error);
    tensor_release(dx);
    return done;
}
GRADIENT_SAVES(loss, SAVE_INPUT(0) | SAVE_INPUT(1))

// ---- functions of two numbers -------------------------------------------------------------------

GRADIENT_RULE(add) {
    for (int i = 0; i < 2; i++)
        if (gradient_wanted(node, i) &&
            !deliver(context, node, i, tensor_hold(output_grad[0]), input_grad, error))
            return false;
    return true;
}
GRADIENT_SAVES(add, 0)

GRADIENT_RULE(sub) {
    if (gradient_wanted(node, 0) &&
        !deliver(context, node, 0, tensor_hold(output_grad[0]), input_grad, error))
        return false;
    OpAttr attr = attr_with_format(output_grad[0]->view.format);
    return !gradient_wanted(node, 1) ||
           deliver(context, node, 1, op_one(context, OP_neg, output_grad[0], &attr, error),
                   input_grad, error);
}
GRADIENT_SAVES(sub, 0)

GRADIENT_RULE(mul) {
    for (int i = 0; i < 2; i++) {
        OpAttr attr = attr_with_format(output_grad[0]->view.format);
        if (gradient_wanted(node, i) &&
            !deliver(context, node, i,
                     op_two(context, OP_mul, output_grad[0], node->saved[1 - i], &attr, error),
                     input_grad, error))
            return false;
    }
    return true;
}
GRADIENT_SAVES(mul, SAVE_INPUT(0) | SAVE_INPUT(1))

// d(x/y) = dx/y - dy (x/y)/y; saved: y, x/y.
GRADIENT_RULE(div) {
    OpAttr attr = attr_with_format(output_grad[0]->view.format);
    Tensor *share = op_two(context, OP_div, output_grad[0], node->saved[0], &attr, error);
    if (!share)
        return false;
    bool done = true;
    if (gradient_wanted(node, 1)) {
        Tensor *product = op_two(context, OP_mul, share, node->saved[1], &attr, error);
        Tensor *negative = product ? op_one(context, OP_neg, product, &attr, error) : NULL;
        tensor_release(product);
        done = deliver(context, node, 1, negative, input_grad, error);
    }
    if (done && gradient_wanted(node, 0))
        return deliver(context, node, 0, share, input_grad, error);
    tensor_release(share);
    return done;
}
GRADIENT_SAVES(div, SAVE_INPUT(1) | SAVE_OUTPUT(0))

// The gradient where `mask` is 1, or where it is 0, and zero elsewhere.
static Tensor *masked(void *context, Tensor *mask, bool where_set, Tensor *gradient, Error *error) {
    Tensor *zero = op_fill(context, gradient->view.format, 0, NULL, 0, error);
    if (!zero)
        return NULL;
    OpAttr attr = attr_with_format(gradient->view.format);
    Tensor *result = op_three(context, OP_where, mask, where_set ? gradient : zero,
                              where_set ? zero : gradient, &attr, error);
    tensor_release(zero);
    return result;
}

// Gradients of a choice between inputs `yes` and `no`, by a mask of uint8.
static bool choice_back(void *context, const GradNode *node, Tensor *mask, int yes, int no,
                        Tensor *const *output_grad, Tensor **input_grad, Error *error) {
    return (!gradient_wanted(node, yes) ||
            deliver(context, node, yes, masked(context, mask, true, output_grad[0], error),
                    input_grad, error)) &&
           (!gradient_wanted(node, no) ||
            deliver(context, node, no, masked(context, mask, false, output_grad[0], error),
                    input_grad, error));
}

GRADIENT_RULE(where) {
    return choice_back(context, node, node->saved[0], 1, 2, output_grad, input_grad, error);
}
GRADIENT_SAVES(where, SAVE_INPUT(0))

// The gradient of input `i`, which is not chosen where `lost` holds of it and the other input:
// equals get half each. A NaN is neither, so that both get all of it.
static bool extreme_back(void *context, const GradNode *node, int i, OpId lost, Tensor *tied,
                         Tensor *half, Tensor *const *output_grad, Tensor **input_grad,
                         Error *error) {
    OpAttr attr = attr_with_format(output_grad[0]->view.format);
    Tensor *mask = op_two(context, lost, node->saved[i], node->saved[1 - i], NULL, error);
    Tensor *share =
        mask ? op_three(context, OP_where, tied, half, output_grad[0], &attr, error) : NULL;
    bool done = share && deliver(context, node, i, masked(context, mask, false, share, error),
                                 input_grad, error);
    tensor_release(mask);
    tensor_release(share);
    return done;
}

static bool choose_extreme(void *context, const GradNode *node, OpId lost,
                           Tensor *const *output_grad, Tensor **input_grad, Error *error) {
    OpAttr halve = attr_with_format(output_grad[0]->view.format);
    halve.scalar.a = 0.5;
    Tensor *tied = op_two(context, OP_equal, node->saved[0], node->saved[1], NULL, error);
    Tensor *half = tied ? op_one(context, OP_affine, output_grad[0], &halve, error) : NULL;
    bool done = half != NULL;
    for (int i = 0; i < 2; i++)
        done = done &&
               (!gradient_wanted(node, i) ||
                extreme_back(context, node, i, lost, tied, half, output_grad, input_grad, error));
    tensor_release(tied);
    tensor_release(half);
    return done;
}

GRADIENT_RULE(maximum) {
    return choose_extreme(context, node, OP_less, output_grad, input_grad, error);
}
GRADIENT_SAVES(maximum, SAVE_INPUT(0) | SAVE_INPUT(1))

GRADIENT_RULE(minimum) {
    return choose_extreme(context, node, OP_greater, output_grad, input_grad, error);
}
GRADIENT_SAVES(minimum, SAVE_INPUT(0) | SAVE_INPUT(1))

// ---- reductions ---------------------------------------------------------------------------------

// A tensor in the shape it would have with the reduced dimensions kept, spread over the input.
static Tensor *spread(Engine *engine, const GradNode *node, Tensor *x, Error *error) {
    const GradShape *input = &node->inputs[0];
    uint32_t dims = node->attr.reduce.dims ? node->attr.reduce.dims : ~0u;
    int64_t kept[VIEW_MAX_DIMS];
    for (int i = 0; i < input->ndim; i++)
        kept[i] = dims & (1u << i) ? 1 : input->shape[i];
    Tensor *column = op_reshape(engine, x, input->ndim, kept, error);
    if (!column)
        return NULL;
    Tensor *wide = op_expand(engine, column, input->ndim, input->shape, error);
    tensor_release(column);
    return wide;
}

static double shape_count(const GradShape *shape) {
    double count = 1;
    for (int i = 0; i < shape->ndim; i++)
        count *= (double)shape->shape[i];
    return count;
}

GRADIENT_RULE(sum) {
    Tensor *wide = spread(context, node, output_grad[0], error);
    if (!wide)
        return false;
    input_grad[0] = op_cast(context, wide, gradient_format(node, 0), error);
    tensor_release(wide);
    return input_grad[0] != NULL;
}
GRADIENT_SAVES(sum, 0)

GRADIENT_RULE(mean) {
    Tensor *wide = spread(context, node, output_grad[0], error);
    if (!wide)
        return false;
    OpAttr attr = attr_with_format(gradient_format(node, 0));
    attr.scalar.a = shape_count(&node->output[0]) / shape_count(&node->inputs[0]);
    input_grad[0] = op_one(context, OP_affine, wide, &attr, error);
    tensor_release(wide);
    return input_grad[0] != NULL;
}
GRADIENT_SAVES(mean, 0)

// Where x equals the extreme, divided by how many do.
GRADIENT_RULE(extreme) {
    Engine *engine = context;
    bool done = false;
    OpAttr counts = attr_with_format(FORMAT_FP32);
    counts.reduce = node->attr.reduce;
    OpAttr share_attr = attr_with_format(output_grad[0]->view.format);
    Tensor *extreme = spread(engine, node, node->saved[1], error);
    Tensor *mask = extreme ? op_two(engine, OP_equal, node->saved[0], extreme, NULL, error) : NULL;
    Tensor *ones = mask ? op_cast(engine, mask, FORMAT_FP32, error) : NULL;
    Tensor *count = ones ? op_one(engine, OP_sum, ones, &counts, error) : NULL;
    Tensor *share =
        count ? op_two(engine, OP_div, output_grad[0], count, &share_attr, error) : NULL;
    Tensor *wide = share ? spread(engine, node, share, error) : NULL;
    if (wide)
        done = deliver(engine, node, 0, masked(engine, mask, true, wide, error), input_grad, error);
    tensor_release(extreme);
    tensor_release(mask);
    tensor_release(ones);
    tensor_release(count);
    tensor_release(share);
    tensor_release(wide);
    return done;
}
GRADIENT_SAVES(extreme, SAVE_INPUT(0) | SAVE_OUTPUT(0))
