// ops/gradient.h: the derivative of each operation, by the name that its row in ops.def gives.
//
// A rule is written in operations, so that the walk back can itself be recorded. Where it calls a
// kernel of its own, either that has a rule too (gradient_again.c), or a walk that is recorded
// takes a formula instead (gradient_formulas.h). `saves` says which tensors the forward pass must
// keep.
#pragma once

#include "ops/engine.h"

#define SAVE_INPUT(i)  (1u << (i))
#define SAVE_OUTPUT(i) (1u << (16 + (i)))

typedef struct GradientInfo {
    GradRule rule; // NULL: none
    uint32_t (*saves)(OpId op, const OpAttr *attr);
} GradientInfo;

extern const GradientInfo *const gradient_table[OP_COUNT];

// Whether unary operation `op` keeps its result (true) or its input for the derivative.
extern const bool unary_saves_output[OP_COUNT];
// The operation that computes the derivative: OP_relu -> OP_relu_backward, OP_mse -> ..
extern const OpId backward_of[OP_COUNT];

// Whether the node that this tensor came from can make it again as it was, for less than it takes
// to keep it.
bool gradient_makes_again(const Tensor *tensor);

// Sums a gradient over what was broadcast, so that it has the shape and format of the input; takes
// over the reference to `gradient`.
Tensor *gradient_sum_to(Engine *engine, Tensor *gradient, const GradShape *shape, Format format,
                        Error *error) MUST_CHECK;

// ---- for the files that hold the rules ----------------------------------------------------------

#define GRADIENT_RULE(name)                                                                  \
    static bool back_##name(void *context, const GradNode *node, Tensor *const *output_grad, \
                            Tensor **input_grad, Error *error)

// Ends a rule whose needs do not hang on the attributes.
#define GRADIENT_SAVES(name, set)                               \
    static uint32_t saves_##name(OpId op, const OpAttr *attr) { \
        (void)op;                                               \
        (void)attr;                                             \
        return set;                                             \
    }                                                           \
    const GradientInfo gradient_##name = {.rule = back_##name, .saves = saves_##name};

static inline bool gradient_wanted(const GradNode *node, int input) {
    return node->wants & (1u << input);
}

// The format that the gradient of input i is kept in.
static inline Format gradient_format(const GradNode *node, int i) {
    return grad_leaf_wants_full(node, i) ? FORMAT_FP32 : node->inputs[i].format;
}

static inline OpAttr attr_with_format(Format format) {
    return (OpAttr){.out_format = format, .has_out_format = true};
}

#define OP(name, inputs, outputs, class, family, gradient, ...) \
    extern const GradientInfo gradient_##gradient;
#include "kernel/ops.def"
