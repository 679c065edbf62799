// Derivatives of the kernels that derivatives call, so that a walk which was recorded can be walked
// itself. All of these kernels are linear in the gradient that they are given. What is more than
// that is a formula (gradient_formulas.h), of which there are derivatives anyway.
#include "ops/formula.h"
#include "ops/functions.h"
#include "ops/gradient.h"
#include "ops/views.h"

static Format wider_of(const Tensor *x, const Tensor *y) {
    if (x->view.format == y->view.format)
        return x->view.format;
    bool is_double = x->view.format == FORMAT_FP64 || y->view.format == FORMAT_FP64;
    return is_double ? FORMAT_FP64 : FORMAT_FP32;
}

// ---- convolutions -------------------------------------------------------------------------------

// The attributes of the convolution that `node` is a gradient of, with the sizes of its input and
// its weight.
static OpAttr conv_attr(const GradNode *node, const GradShape *input, const GradShape *weight,
                        Format format) {
    OpAttr attr = node->attr;
    attr.has_out_format = true;
    attr.out_format = format;
    attr.conv.activation = ACTIVATION_NONE;
    for (int i = 0; i < 2; i++) {
        attr.conv.input[i] = input->shape[1 + i];
        attr.conv.kernel[i] = weight->shape[1 + i];
    }
    return attr;
}

// A kernel of convolutions whose two factors share a format, whatever they come in.
static bool convolve(Engine *engine, OpId op, Tensor *x, Tensor *y, const OpAttr *attr,
                     Tensor **output, Error *error) {
    Formula f = formula_begin(engine, wider_of(x, y), error);
    Tensor *factors[3] = {formula_wide(&f, x), formula_wide(&f, y), NULL};
    Tensor *outputs[OP_MAX_OUTPUTS] = {NULL};
    bool done = factors[0] && factors[1] &&
                op_apply(engine, op, factors, op == OP_conv2d ? 3 : 2, attr, outputs, error);
    for (int i = 1; i < OP_MAX_OUTPUTS; i++)
        tensor_release(outputs[i]);
    *output = outputs[0];
    formula_end(&f);
    return done;
}

// dx of dy and w; what arrives has the shape of x.
GRADIENT_RULE(conv2d_backward_input) {
    Tensor *dy = node->saved[0], *w = node->saved[1], *g = output_grad[0];
    OpAttr attr = conv_attr(node, &node->output[0], &node->inputs[1], gradient_format(node, 0));
    if (gradient_wanted(node, 0) &&
        !convolve(context, OP_conv2d, g, w, &attr, &input_grad[0], error))
        return false;
    attr.out_format = FORMAT_FP32;
    return !gradient_wanted(node, 1) ||
           convolve(context, OP_conv2d_backward_weight, g, dy, &attr, &input_grad[1], error);
}
GRADIENT_SAVES(conv2d_backward_input, SAVE_INPUT(0) | SAVE_INPUT(1))

// The gradient of dy, in which the weight's and the bias's are linear; either may be missing.
static Tensor *of_weight_and_bias(Engine *engine, const GradNode *node, const OpAttr *attr,
                                  Tensor *const *output_grad, Error *error) {
    const GradShape *dy = &node->inputs[1];
    Formula f = formula_begin(engine, attr->out_format, error);
    Tensor *product = NULL, *bias = NULL;
    if (output_grad[0] &&
        convolve(engine, OP_conv2d, node->saved[0], output_grad[0], attr, &product, error))
        formula_keep(&f, product);
    if (output_grad[1] && (product || !output_grad[0]))
        bias = formula_keep(&f, op_expand(engine, output_grad[1], dy->ndim, dy->shape, error));
    Tensor *sum = product && bias ? formula_add(&f, product, bias) : product ? product : bias;
    bool failed = (output_grad[0] && !product) || (output_grad[1] && !bias);
    Tensor *result = failed ? NULL : formula_give(&f, sum, attr->out_format, dy);
    formula_end(&f);
    return result;
}

// dw and dbias of x and dy.
GRADIENT_RULE(conv2d_backward_weight) {
    OpAttr attr = conv_attr(node, &node->inputs[0], &node->output[0], gradient_format(node, 0));
    if (gradient_wanted(node, 0) && output_grad[0] &&
        !convolve(context, OP_conv2d_backward_input, node->saved[1], output_grad[0], &attr,
                  &input_grad[0], error))
        return false;
    if (!gradient_wanted(node, 1))
        return true;
    attr.out_format = gradient_format(node, 1);
    input_grad[1] = of_weight_and_bias(context, node, &attr, output_grad, error);
    return input_grad[1] != NULL;
}
GRADIENT_SAVES(conv2d_backward_weight, SAVE_INPUT(0) | SAVE_INPUT(1))

// ---- functions of one number --------------------------------------------------------------------

// How the slope of a function bends: what `moved`, a gradient times that which arrived before,
// becomes, with x or y as its derivative has it. NULL only on failure.
typedef Tensor *(*Bend)(Formula *f, const ScalarAttr *constants, Tensor *moved, Tensor *saved);

#define UNUSED __attribute__((unused))
#define BEND(name)                                                                    \
    static Tensor *bend_##name(UNUSED Formula *f, UNUSED const ScalarAttr *constants, \
                               Tensor *moved, UNUSED Tensor *s)

BEND(exp) {
    return moved;
}

// f' = 1/x, f'' = -1/x²
BEND(log) {
    return formula_line(f, formula_div(f, formula_div(f, moved, s), s), -1, 0);
}

// f' = 1/2y
BEND(sqrt) {
    return formula_line(f, formula_div(f, formula_div(f, moved, s), s), -0.5, 0);
}

// f' = -y³/2
BEND(rsqrt) {
    return formula_line(f, formula_mul(f, formula_mul(f, moved, s), s), -1.5, 0);
}

// f' = -y²
BEND(reciprocal) {
    return formula_line(f, formula_mul(f, moved, s), -2, 0);
}

BEND(sin) {
    return formula_line(f, formula_mul(f, moved, formula_one(f, OP_sin, s)), -1, 0);
}

BEND(cos) {
    return formula_line(f, formula_mul(f, moved, formula_one(f, OP_cos, s)), -1, 0);
}

BEND(square) {
    return formula_line(f, moved, 2, 0);
}

// f' = a x^(a-1), whose slope is a times that of x^(a-1).
BEND(pow) {
    if (constants->a == 0)
        return formula_keep(
            f, op_fill(f->engine, f->format, s->view.ndim, s->view.shape, 0, f->error));
    OpAttr attr = attr_with_format(f->format);
    attr.scalar.a = constants->a - 1;
    Tensor *slope = formula_keep(f, op_two(f->engine, OP_pow_backward, moved, s, &attr, f->error));
    return formula_line(f, slope, constants->a, 0);
}

// f' = 1 - y²
BEND(tanh) {
    return formula_line(f, formula_mul(f, moved, s), -2, 0);
}

// f' = y (1 - y)
BEND(sigmoid) {
    return formula_mul(f, moved, formula_line(f, s, -2, 1));
}

// f' = sigmoid(x)
BEND(softplus) {
    Tensor *share = formula_one(f, OP_sigmoid, s);
    return formula_mul(f, formula_mul(f, moved, share), formula_line(f, share, -1, 1));
}

// f' = p (1 + x (1 - p)) with p = sigmoid(x); f'' = p (1 - p) (2 + x (1 - 2 p))
BEND(silu) {
    Tensor *share = formula_one(f, OP_sigmoid, s), *rest = formula_line(f, share, -1, 1);
    Tensor *factor = formula_line(f, formula_mul(f, s, formula_line(f, share, -2, 1)), 1, 2);
    return formula_mul(f, formula_mul(f, moved, formula_mul(f, share, rest)), factor);
}

// f'' = (2 - x²) density(x)
BEND(gelu) {
    const double inverse_sqrt_2pi = 0.39894228040143267794;
    Tensor *square = formula_one(f, OP_square, s);
    Tensor *density = formula_line(f, formula_one(f, OP_exp, formula_line(f, square, -0.5, 0)),
                                   inverse_sqrt_2pi, 0);
    return formula_mul(f, moved, formula_mul(f, density, formula_line(f, square, -1, 2)));
}

// Straight lines, broken here and there.
#define bend_relu       NULL
#define bend_leaky_relu NULL
#define bend_abs        NULL
#define bend_neg        NULL
#define bend_clamp      NULL
#define bend_affine     NULL

// By the operation whose derivative bends.
static const Bend bends[OP_COUNT] = {
#define UNARY(name, ...) [OP_##name##_backward] = bend_##name,
#include "kernel/pointwise.def"
};

GRADIENT_RULE(unary_backward) {
    Tensor *dy = node->saved[0], *s = node->saved[1], *g = output_grad[0];
    OpAttr attr = node->attr;
    attr.has_out_format = true;
    attr.out_format = gradient_format(node, 0);
    if (gradient_wanted(node, 0) &&
        !(input_grad[0] = op_two(context, node->op, g, s, &attr, error)))
        return false;
    const Bend bend = bends[node->op];
    if (!gradient_wanted(node, 1) || !bend)
        return true;
    Format wide = wider_of(dy, s) == FORMAT_FP64 ? FORMAT_FP64 : FORMAT_FP32;
    Formula f = formula_begin(context, wide, error);
    Tensor *bent = bend(&f, &node->attr.scalar, formula_mul(&f, g, dy), s);
    input_grad[1] = formula_give(&f, bent, gradient_format(node, 1), &node->inputs[1]);
    formula_end(&f);
    return input_grad[1] != NULL;
}
GRADIENT_SAVES(unary_backward, SAVE_INPUT(0) | SAVE_INPUT(1))

// ---- pooling ------------------------------------------------------------------------------------

// What is whole numbers all the way: where of [H W] each maximum lay, from where in its window.
static Tensor *places_of_maxima(Formula *f, const GradNode *node, Tensor *where) {
    const PoolAttr *pool = &node->attr.pool;
    Tensor *first[2]; // row and column that each window begins at
    for (int i = 0; i < 2; i++) {
        OpAttr attr = attr_with_format(FORMAT_INT32);
        attr.create.ndim = 1;
        attr.create.shape[0] = where->view.shape[1 + i];
        attr.create.a = (double)-pool->padding[i];
        attr.create.b = (double)pool->stride[i];
        Tensor *numbers = NULL;
        if (!op_apply(f->engine, OP_arange, NULL, 0, &attr, &numbers, f->error))
            return NULL;
        const int64_t shape[3] = {where->view.shape[1 + i], 1, 1};
        first[i] = formula_reshape(f, formula_keep(f, numbers), i == 0 ? 3 : 2, shape);
    }
    Formula halves = formula_begin(f->engine, FORMAT_FP32, f->error);
    const double width = (double)pool->kernel[1];
    // Casts round to the nearest: that of w / width, half a place up and half a row down, is below.
    Tensor *row = formula_wide(
        f, formula_line(&halves, formula_wide(&halves, where), 1 / width, 0.5 / width - 0.5));
    formula_end(&halves);
    Tensor *line = formula_number(f, (double)pool->input[1]);
    Tensor *column =
        formula_sub(f, formula_wide(f, where), formula_mul(f, row, formula_number(f, width)));
    Tensor *down = formula_mul(f, formula_add(f, row, first[0]), line);
    return formula_add(f, down, formula_add(f, column, first[1]));
}

// What arrives has the input's shape: of it, what lies where the maxima lay.
GRADIENT_RULE(max_pool2d_backward) {
    const GradShape *x = &node->output[0], *dy = &node->inputs[0];
    const int64_t pixels[3] = {x->shape[0], x->shape[1] * x->shape[2], x->shape[3]};
    const int64_t windows[3] = {dy->shape[0], dy->shape[1] * dy->shape[2], dy->shape[3]};
    Formula f = formula_begin(context, FORMAT_INT32, error);
    Tensor *places = formula_reshape(&f, places_of_maxima(&f, node, node->saved[0]), 3, windows);
    Tensor *flat = formula_reshape(&f, output_grad[0], 3, pixels);
    OpAttr attr = attr_with_format(gradient_format(node, 0));
    attr.index.dim = 1;
    Tensor *taken = places && flat
                        ? formula_keep(&f, op_two(context, OP_gather, flat, places, &attr, error))
                        : NULL;
    input_grad[0] = formula_give(&f, taken, gradient_format(node, 0), dy);
    formula_end(&f);
    return input_grad[0] != NULL;
}
GRADIENT_SAVES(max_pool2d_backward, SAVE_INPUT(1))

GRADIENT_RULE(avg_pool2d_backward) {
    OpAttr attr = node->attr;
    attr.has_out_format = true;
    attr.out_format = gradient_format(node, 0);
    input_grad[0] = op_one(context, OP_avg_pool2d, output_grad[0], &attr, error);
    return input_grad[0] != NULL;
}
GRADIENT_SAVES(avg_pool2d_backward, 0)

// ---- selection ----------------------------------------------------------------------------------

GRADIENT_RULE(gather_backward) {
    OpAttr attr = attr_with_format(gradient_format(node, 0));
    attr.index.dim = node->attr.index.dim;
    input_grad[0] = op_two(context, OP_gather, output_grad[0], node->saved[0], &attr, error);
    return input_grad[0] != NULL;
}
GRADIENT_SAVES(gather_backward, SAVE_INPUT(1))

GRADIENT_RULE(embedding_backward) {
    OpAttr attr = attr_with_format(gradient_format(node, 0));
    input_grad[0] = op_two(context, OP_embedding, output_grad[0], node->saved[0], &attr, error);
    return input_grad[0] != NULL;
}
GRADIENT_SAVES(embedding_backward, SAVE_INPUT(1))
