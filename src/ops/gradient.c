// Derivatives of products and of everything that normalises, selects or reduces over rows.
// gradient_simple.c has the point-wise ones.
#include "ops/gradient.h"

#include <math.h>
#include <string.h>

#include "ops/gradient_formulas.h"
#include "ops/scale.h"
#include "ops/views.h"

const GradientInfo *const gradient_table[OP_COUNT] = {
#define OP(name, inputs, outputs, class, family, gradient, ...) [OP_##name] = &gradient_##gradient,
#include "kernel/ops.def"
};

const GradientInfo gradient_none = {.rule = NULL};

// ---- products -----------------------------------------------------------------------------------

// The gradient of the weight comes first. After that neither the input is needed nor what factors
// were rounded to, so that the gradient of the input is not held beside them.
enum { SAVED_X, SAVED_W, SAVED_Y }; // of a layer: its output where a function is fused behind it

// The gradient before a fused activation is there, so that behind it is no longer needed.
static void drop_behind(Tape *tape, Activation activation) {
    tape_drop_arrived(tape, 0);
    if (activation != ACTIVATION_NONE)
        tape_drop_saved(tape, SAVED_Y);
}

// x y with the last two dimensions of either swapped first, if asked: the gradient of an input of
// the node, multiplied as that was. `gradient`: which of the two is one.
static Tensor *product(Engine *engine, const GradNode *node, int input, int gradient, Tensor *x,
                       bool swap_x, Tensor *y, bool swap_y, Error *error) {
    Tensor *result = NULL;
    int nx = x->view.ndim, ny = y->view.ndim;
    x = swap_x ? op_transpose(engine, x, nx - 2, nx - 1, error) : tensor_hold(x);
    y = swap_y ? op_transpose(engine, y, ny - 2, ny - 1, error) : tensor_hold(y);
    if (x && y) {
        OpAttr attr = attr_with_format(gradient_format(node, input));
        attr.has_compute = node->attr.has_compute;
        attr.compute = node->attr.compute;
        attr.gradients = (uint8_t)(1 << gradient);
        attr.of_weight = node->op == OP_linear && input == 1;
        result = op_two(engine, OP_matmul, x, y, &attr, error);
    }
    tensor_release(x);
    tensor_release(y);
    return result;
}

// [.., n] as [rows, n].
static Tensor *as_rows(Engine *engine, Tensor *x, Error *error) {
    if (x->view.ndim == 2)
        return tensor_hold(x);
    int64_t width = x->view.shape[x->view.ndim - 1];
    int64_t shape[2] = {width ? tensor_count(x) / width : 0, width};
    return op_reshape(engine, x, 2, shape, error);
}

GRADIENT_RULE(matmul) {
    Engine *engine = context;
    Tensor *a = node->saved[0], *b = node->saved[1], *dy = output_grad[0];
    if (gradient_wanted(node, 1) && b->view.ndim == a->view.ndim) {
        if (!(input_grad[1] = product(engine, node, 1, 1, a, true, dy, false, error)))
            return false;
    } else if (gradient_wanted(node, 1)) {
        Tensor *rows = as_rows(engine, a, error), *grad_rows = as_rows(engine, dy, error);
        if (rows && grad_rows)
            input_grad[1] = product(engine, node, 1, 1, rows, true, grad_rows, false, error);
        tensor_release(rows);
        tensor_release(grad_rows);
        if (!input_grad[1])
            return false;
    }
    tape_drop_saved(engine->tape, 0); // a, of which the gradient of b was made
    if (gradient_wanted(node, 0))
        input_grad[0] = product(engine, node, 0, 0, dy, false, b, true, error);
    return !gradient_wanted(node, 0) || input_grad[0];
}
GRADIENT_SAVES(matmul, SAVE_INPUT(0) | SAVE_INPUT(1))

// The gradient before a fused activation, from that behind it. A new reference.
static Tensor *before_activation(Engine *engine, Activation activation, Tensor *dy, Tensor *y,
                                 Error *error) {
    static const OpId backward[ACTIVATION_COUNT] = {
        [ACTIVATION_RELU] = OP_relu_backward,
        [ACTIVATION_TANH] = OP_tanh_backward,
        [ACTIVATION_SIGMOID] = OP_sigmoid_backward,
    };
    if (activation == ACTIVATION_NONE)
        return tensor_hold(dy);
    OpAttr attr = attr_with_format(dy->view.format);
    return op_two(engine, backward[activation], dy, y, &attr, error);
}

GRADIENT_RULE(linear) {
    Engine *engine = context;
    const Activation activation = node->attr.linear.activation;
    Tensor *w = node->saved[SAVED_W];
    Tensor *dz = before_activation(engine, activation, output_grad[0], node->saved[SAVED_Y], error);
    Tensor *rows = NULL, *dz_rows = NULL, *dx_rows = NULL;
    bool done = false;
    if (!dz || !(dz_rows = as_rows(engine, dz, error)))
        goto cleanup;
    drop_behind(engine->tape, activation);
    if (gradient_wanted(node, 1)) {
        rows = as_rows(engine, node->saved[SAVED_X], error);
        if (!rows ||
            !(input_grad[1] = product(engine, node, 1, 0, dz_rows, true, rows, false, error)))
            goto cleanup;
        tensor_release(rows);
        rows = NULL;
    }
    tape_drop_saved(engine->tape, SAVED_X);
    if (gradient_wanted(node, 0)) {
        const GradShape *input = &node->inputs[0];
        dx_rows = product(engine, node, 0, 0, dz_rows, false, w, false, error);
        if (!dx_rows)
            goto cleanup;
        input_grad[0] = input->ndim == 2
                            ? tensor_hold(dx_rows)
                            : op_reshape(engine, dx_rows, input->ndim, input->shape, error);
        if (!input_grad[0])
            goto cleanup;
    }
    if (gradient_wanted(node, 2)) {
        OpAttr attr = attr_with_format(gradient_format(node, 2));
        attr.reduce.dims = 1u << 0;
        if (!(input_grad[2] = op_one(engine, OP_sum, dz_rows, &attr, error)))
            goto cleanup;
    }
    done = true;
cleanup:
    tensor_release(dz);
    tensor_release(dz_rows);
    tensor_release(dx_rows);
    tensor_release(rows);
    return done;
}
static uint32_t saves_linear(OpId op, const OpAttr *attr) {
    (void)op;
    bool fused = attr->linear.activation != ACTIVATION_NONE;
    return SAVE_INPUT(0) | SAVE_INPUT(1) | (fused ? SAVE_OUTPUT(0) : 0);
}
const GradientInfo gradient_linear = {.rule = back_linear, .saves = saves_linear};

GRADIENT_RULE(conv2d) {
    Engine *engine = context;
    const Activation activation = node->attr.conv.activation;
    Tensor *dz = before_activation(engine, activation, output_grad[0], node->saved[SAVED_Y], error);
    if (!dz)
        return false;
    drop_behind(engine->tape, activation);
    bool done = true;
    OpAttr attr = node->attr;
    attr.conv.activation = ACTIVATION_NONE;
    attr.conv.input[0] = node->inputs[0].shape[1];
    attr.conv.input[1] = node->inputs[0].shape[2];
    attr.has_out_format = true;
    if (gradient_wanted(node, 1) || gradient_wanted(node, 2)) {
        Tensor *const inputs[] = {node->saved[SAVED_X], dz};
        Tensor *outputs[2];
        OpAttr of_weight = attr;
        of_weight.out_format = FORMAT_FP32;
        of_weight.gradients = 1 << 1;
        of_weight.of_weight = true;
        of_weight.conv.kernel[0] = node->inputs[1].shape[1];
        of_weight.conv.kernel[1] = node->inputs[1].shape[2];
        done = op_apply(engine, OP_conv2d_backward_weight, inputs, 2, &of_weight, outputs, error);
        if (done) {
            input_grad[1] = outputs[0];
            input_grad[2] = outputs[1];
        }
    }
    if (done)
        tape_drop_saved(engine->tape, SAVED_X);
    if (done && gradient_wanted(node, 0)) {
        attr.out_format = gradient_format(node, 0);
        attr.gradients = 1 << 0;
        input_grad[0] =
            op_two(engine, OP_conv2d_backward_input, dz, node->saved[SAVED_W], &attr, error);
        done = input_grad[0] != NULL;
    }
    // A bias is no factor of a product, and its gradient no sum of what factors are rounded to.
    if (done && gradient_wanted(node, 2) && scale_is_asked(&node->attr)) {
        OpAttr sum = attr_with_format(FORMAT_FP32);
        sum.reduce.dims = 1u << 0 | 1u << 1 | 1u << 2;
        tensor_release(input_grad[2]);
        done = (input_grad[2] = op_one(engine, OP_sum, dz, &sum, error)) != NULL;
    }
    tensor_release(dz);
    return done;
}
static uint32_t saves_conv2d(OpId op, const OpAttr *attr) {
    (void)op;
    bool fused = attr->conv.activation != ACTIVATION_NONE;
    return SAVE_INPUT(0) | SAVE_INPUT(1) | (fused ? SAVE_OUTPUT(0) : 0);
}
const GradientInfo gradient_conv2d = {.rule = back_conv2d, .saves = saves_conv2d};

// Its gradients are the convolution that it turns around, and that one's of the weights, with the
// two images exchanged.
GRADIENT_RULE(conv_transpose2d) {
    Engine *engine = context;
    Tensor *dy = output_grad[0];
    OpAttr attr = node->attr;
    attr.has_out_format = true;
    attr.gradients = 1 << 0; // the first factor of both
    if (gradient_wanted(node, 1)) {
        OpAttr of_weight = attr;
        of_weight.out_format = FORMAT_FP32;
        of_weight.of_weight = true;
        of_weight.conv.kernel[0] = node->inputs[1].shape[1];
        of_weight.conv.kernel[1] = node->inputs[1].shape[2];
        input_grad[1] =
            op_two(engine, OP_conv2d_backward_weight, dy, node->saved[SAVED_X], &of_weight, error);
        if (!input_grad[1])
            return false;
    }
    tape_drop_saved(engine->tape, SAVED_X);
    if (gradient_wanted(node, 0)) {
        attr.out_format = gradient_format(node, 0);
        input_grad[0] = op_three(engine, OP_conv2d, dy, node->saved[SAVED_W], NULL, &attr, error);
        if (!input_grad[0])
            return false;
    }
    if (gradient_wanted(node, 2)) {
        OpAttr sum = attr_with_format(gradient_format(node, 2));
        sum.reduce.dims = 1u << 0 | 1u << 1 | 1u << 2;
        input_grad[2] = op_one(engine, OP_sum, dy, &sum, error);
        if (!input_grad[2])
            return false;
    }
    return true;
}
GRADIENT_SAVES(conv_transpose2d, SAVE_INPUT(0) | SAVE_INPUT(1))

GRADIENT_RULE(attention) {
    if (gradient_is_recorded(context))
        return formula_attention(context, node, output_grad, input_grad, error);
    Tensor *const inputs[] = {output_grad[0], node->saved[0], node->saved[1],
                              node->saved[2], node->saved[3], node->saved[4]};
    OpAttr attr = node->attr;
    attr.has_out_format = true;
    attr.out_format = node->inputs[0].format;
    return op_apply(context, OP_attention_backward, inputs, 6, &attr, input_grad, error);
}
GRADIENT_SAVES(attention,
               SAVE_INPUT(0) | SAVE_INPUT(1) | SAVE_INPUT(2) | SAVE_OUTPUT(0) | SAVE_OUTPUT(1))

// ---- normalisation ------------------------------------------------------------------------------

// saved: x, weight, mean, inverse deviation.
static bool norm_back(OpId backward, void *context, const GradNode *node,
                      Tensor *const *output_grad, Tensor **input_grad, Error *error) {
    if (gradient_is_recorded(context))
        return formula_norm(context, node, output_grad, input_grad, error);
    Tensor *const inputs[] = {output_grad[0], node->saved[0], node->saved[1], node->saved[2],
                              node->saved[3]};
    OpAttr attr = node->attr;
    attr.has_out_format = true;
    attr.out_format = node->inputs[0].format;
    return op_apply(context, backward, inputs, 5, &attr, input_grad, error);
}

#define NORM_SAVES (SAVE_INPUT(0) | SAVE_INPUT(1) | SAVE_OUTPUT(1) | SAVE_OUTPUT(2))

GRADIENT_RULE(batch_norm) {
    return norm_back(OP_batch_norm_backward, context, node, output_grad, input_grad, error);
}
GRADIENT_SAVES(batch_norm, NORM_SAVES)

GRADIENT_RULE(layer_norm) {
    return norm_back(OP_layer_norm_backward, context, node, output_grad, input_grad, error);
}
GRADIENT_SAVES(layer_norm, NORM_SAVES)

GRADIENT_RULE(group_norm) {
    return norm_back(OP_group_norm_backward, context, node, output_grad, input_grad, error);
}
GRADIENT_SAVES(group_norm, NORM_SAVES)

// In evaluation the statistics are constants: y = (x - mean) inverse weight + bias.
GRADIENT_RULE(batch_norm_infer) {
    Engine *engine = context;
    Tensor *x = node->saved[0], *weight = node->saved[1], *dy = output_grad[0];
    const Format wide = x->view.format == FORMAT_FP64 ? FORMAT_FP64 : FORMAT_FP32;
    OpAttr full = attr_with_format(wide), shift = attr_with_format(wide);
    shift.scalar.a = 1;
    shift.scalar.b = node->attr.norm.epsilon;
    Tensor *shifted = op_one(engine, OP_affine, node->saved[3], &shift, error);
    Tensor *inverse = shifted ? op_one(engine, OP_rsqrt, shifted, &full, error) : NULL;
    Tensor *factor = NULL, *centred = NULL, *scaled = NULL, *product_ = NULL;
    bool done = inverse != NULL;
    if (done && gradient_wanted(node, 0)) {
        OpAttr low = attr_with_format(node->inputs[0].format);
        factor =
            weight ? op_two(engine, OP_mul, inverse, weight, &full, error) : tensor_hold(inverse);
        input_grad[0] = factor ? op_two(engine, OP_mul, dy, factor, &low, error) : NULL;
        done = input_grad[0] != NULL;
    }
    if (done && gradient_wanted(node, 1)) {
        centred = op_two(engine, OP_sub, x, node->saved[2], &full, error);
        scaled = centred ? op_two(engine, OP_mul, centred, inverse, &full, error) : NULL;
        product_ = scaled ? op_two(engine, OP_mul, dy, scaled, &full, error) : NULL;
        input_grad[1] =
            product_ ? gradient_sum_to(engine, tensor_hold(product_), &node->inputs[1], wide, error)
                     : NULL;
        done = input_grad[1] != NULL;
    }
    if (done && gradient_wanted(node, 2)) {
        input_grad[2] = gradient_sum_to(engine, tensor_hold(dy), &node->inputs[2], wide, error);
        done = input_grad[2] != NULL;
    }
    tensor_release(shifted);
    tensor_release(inverse);
    tensor_release(factor);
    tensor_release(centred);
    tensor_release(scaled);
    tensor_release(product_);
    return done;
}
GRADIENT_SAVES(batch_norm_infer, SAVE_INPUT(0) | SAVE_INPUT(1) | SAVE_INPUT(3) | SAVE_INPUT(4))

// ---- rows and pooling ---------------------------------------------------------------------------

// One kernel of the incoming gradient and one saved tensor.
static bool back_with(OpId backward, void *context, const GradNode *node,
                      Tensor *const *output_grad, Tensor **input_grad, Error *error) {
    OpAttr attr = node->attr;
    attr.has_out_format = true;
    attr.out_format = gradient_format(node, 0);
    input_grad[0] = op_two(context, backward, output_grad[0], node->saved[0], &attr, error);
    return input_grad[0] != NULL;
}

GRADIENT_RULE(softmax) {
    if (gradient_is_recorded(context))
        return formula_softmax(context, node, output_grad, input_grad, error);
    return back_with(OP_softmax_backward, context, node, output_grad, input_grad, error);
}
GRADIENT_SAVES(softmax, SAVE_OUTPUT(0))

GRADIENT_RULE(log_softmax) {
    if (gradient_is_recorded(context))
        return formula_log_softmax(context, node, output_grad, input_grad, error);
    return back_with(OP_log_softmax_backward, context, node, output_grad, input_grad, error);
}
GRADIENT_SAVES(log_softmax, SAVE_OUTPUT(0))

GRADIENT_RULE(cross_entropy) {
    if (gradient_is_recorded(context))
        return formula_cross_entropy(context, node, output_grad, input_grad, error);
    Tensor *const inputs[] = {output_grad[0], node->saved[0], node->saved[2], node->saved[1]};
    OpAttr attr = attr_with_format(node->inputs[0].format);
    return op_apply(context, OP_cross_entropy_backward, inputs, 4, &attr, input_grad, error);
}
GRADIENT_SAVES(cross_entropy, SAVE_INPUT(0) | SAVE_INPUT(1) | SAVE_OUTPUT(1))

GRADIENT_RULE(topk) {
    OpAttr attr = attr_with_format(node->inputs[0].format);
    attr.index.dim = node->inputs[0].ndim - 1;
    attr.index.count = node->inputs[0].shape[attr.index.dim];
    input_grad[0] =
        op_two(context, OP_gather_backward, output_grad[0], node->saved[0], &attr, error);
    return input_grad[0] != NULL;
}
GRADIENT_SAVES(topk, SAVE_OUTPUT(1))

// The size of the input, which strides hide.
static OpAttr pool_attr(const GradNode *node) {
    OpAttr attr = node->attr;
    attr.has_out_format = true;
    attr.out_format = node->inputs[0].format;
    attr.pool.input[0] = node->inputs[0].shape[1];
    attr.pool.input[1] = node->inputs[0].shape[2];
    return attr;
}

GRADIENT_RULE(max_pool2d) {
    OpAttr attr = pool_attr(node);
    input_grad[0] =
        op_two(context, OP_max_pool2d_backward, output_grad[0], node->saved[0], &attr, error);
    return input_grad[0] != NULL;
}
GRADIENT_SAVES(max_pool2d, SAVE_OUTPUT(1))

GRADIENT_RULE(avg_pool2d) {
    OpAttr attr = pool_attr(node);
    input_grad[0] = op_one(context, OP_avg_pool2d_backward, output_grad[0], &attr, error);
    return input_grad[0] != NULL;
}
GRADIENT_SAVES(avg_pool2d, 0)

// ---- selection ----------------------------------------------------------------------------------

GRADIENT_RULE(embedding) {
    OpAttr attr = attr_with_format(FORMAT_FP32);
    attr.index.count = node->inputs[0].shape[0];
    input_grad[0] =
        op_two(context, OP_embedding_backward, output_grad[0], node->saved[0], &attr, error);
    return input_grad[0] != NULL;
}
GRADIENT_SAVES(embedding, SAVE_INPUT(1))

GRADIENT_RULE(gather) {
    OpAttr attr = attr_with_format(node->inputs[0].format);
    attr.index.dim = node->attr.index.dim;
    attr.index.count = node->inputs[0].shape[attr.index.dim];
    input_grad[0] =
        op_two(context, OP_gather_backward, output_grad[0], node->saved[0], &attr, error);
    return input_grad[0] != NULL;
}
GRADIENT_SAVES(gather, SAVE_INPUT(1))

GRADIENT_RULE(cat) {
    int dim = node->attr.index.dim;
    int64_t first = 0;
    for (int i = 0; i < node->input_count; i++) {
        int64_t size = node->inputs[i].shape[dim];
        if (gradient_wanted(node, i)) {
            Tensor *part = op_slice(context, output_grad[0], dim, first, first + size, error);
            if (!part)
                return false;
            input_grad[i] = op_cast(context, part, gradient_format(node, i), error);
            tensor_release(part);
            if (!input_grad[i])
                return false;
        }
        first += size;
    }
    return true;
}
GRADIENT_SAVES(cat, 0)

GRADIENT_RULE(pad) {
    Tensor *part = tensor_hold(output_grad[0]);
    for (int i = 0; i < node->inputs[0].ndim && part; i++) {
        int64_t first = node->attr.pad.before[i];
        Tensor *next = op_slice(context, part, i, first, first + node->inputs[0].shape[i], error);
        tensor_release(part);
        part = next;
    }
    input_grad[0] = part;
    return part != NULL;
}
GRADIENT_SAVES(pad, 0)
