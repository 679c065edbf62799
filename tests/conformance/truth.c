#include "tests/conformance/truth.h"

#include <math.h>
#include <stdlib.h>

typedef long double Wide;

// ---- elements -----------------------------------------------------------------------------------

static Wide element(const CaseInput *input, const int64_t *at) {
    int64_t offset = input->offset;
    for (int i = 0; i < input->view.ndim; i++)
        offset += at[i] * input->view.stride[i];
    return (Wide)input->values[offset];
}

// Element `index` of `shape`, against whose last dimensions the input is broadcast.
static Wide broadcast(const CaseInput *input, const View *shape, int64_t index) {
    int64_t at[VIEW_MAX_DIMS] = {0};
    int missing = shape->ndim - input->view.ndim;
    for (int i = shape->ndim - 1; i >= missing && i >= 0; i--) {
        at[i - missing] = input->view.shape[i - missing] == 1 ? 0 : index % shape->shape[i];
        index /= shape->shape[i];
    }
    return element(input, at);
}

long double truth_element(const CaseInput *input, int64_t index) {
    return broadcast(input, &input->view, index);
}

// ---- functions of one number --------------------------------------------------------------------

static Wide logistic(Wide x) {
    return 1 / (1 + expl(-x));
}

static Wide normal_below(Wide x) {
    return 0.5L * erfcl(-x * sqrtl(0.5L));
}

static Wide normal_at(Wide x) {
    return expl(-0.5L * x * x) * 0.398942280401432677939946059934381868L;
}

static Wide soft_plus(Wide x) {
    return x > 1000 ? x : log1pl(expl(x)); // past the range of expl the two are equal
}

static Wide sign_of(Wide x) {
    return isnan(x) ? x : (Wide)(x > 0) - (Wide)(x < 0);
}

// A definition and its slope in x or, where pointwise.def saves y, in y. Of a function that is put
// together from branches, one that is flat has no slope at all: what arrives there ends, even an
// infinity. A slope that only comes to nothing is a factor like any other.
typedef struct Definition {
    Wide (*value)(Wide x, Wide a, Wide b);
    Wide (*slope)(Wide x, Wide y, Wide a, Wide b);
    bool branches;
} Definition;

#define DEFINE(name, value, slope)                             \
    static Wide name##_value(Wide x, Wide a, Wide b) {         \
        (void)a, (void)b;                                      \
        return value;                                          \
    }                                                          \
    static Wide name##_slope(Wide x, Wide y, Wide a, Wide b) { \
        (void)x, (void)y, (void)a, (void)b;                    \
        return slope;                                          \
    }
DEFINE(relu, isnan(x) ? x : fmaxl(x, 0), isnan(y) || y > 0)
DEFINE(leaky_relu, x > 0 ? x : a * x, x > 0 ? 1 : a)
DEFINE(gelu, x *normal_below(x), normal_below(x) + x * normal_at(x))
DEFINE(silu, x *logistic(x), logistic(x) + x * logistic(x) * logistic(-x))
DEFINE(tanh, tanhl(x), 1 - y * y)
DEFINE(sigmoid, logistic(x), y - y * y)
DEFINE(softplus, soft_plus(x), logistic(x))
DEFINE(exp, expl(x), y)
DEFINE(log, logl(x), 1 / x)
DEFINE(sin, sinl(x), cosl(x))
DEFINE(cos, cosl(x), -sinl(x))
DEFINE(sqrt, sqrtl(x), 1 / (2 * y))
DEFINE(rsqrt, 1 / sqrtl(x), -powl(y, 3) / 2)
DEFINE(reciprocal, 1 / x, -(y *y))
DEFINE(square, x *x, 2 * x)
DEFINE(pow, powl(x, a), a == 0 ? 0 : a * powl(x, a - 1))
DEFINE(abs, fabsl(x), sign_of(x))
DEFINE(neg, -x, -1)
DEFINE(clamp, isnan(x) ? x : fminl(fmaxl(x, a), b), x >= a && x <= b)
DEFINE(affine, a *x + b, a)

static bool has_branches(OpId op, const ScalarAttr *scalar) {
    return op == OP_relu || op == OP_abs || op == OP_clamp || (op == OP_pow && scalar->a == 0);
}

// A function of pointwise.def without a definition above does not compile.
static Definition definition_of(OpId op, const ScalarAttr *scalar) {
#define UNARY(name, ...)                                                                  \
    if (op == OP_##name || op == OP_##name##_backward) {                                  \
        return (Definition){name##_value, name##_slope, has_branches(OP_##name, scalar)}; \
    }
#include "kernel/pointwise.def"
    return (Definition){NULL, NULL, false};
}

static bool solve_unary(const Case *test, double *value) {
    const ScalarAttr *scalar = &test->attr.scalar;
    Definition definition = definition_of(test->op, scalar);
    for (int64_t i = 0; i < view_count(&test->output[0]); i++)
        value[i] =
            (double)definition.value(truth_element(&test->input[0], i), scalar->a, scalar->b);
    return true;
}

static bool solve_unary_backward(const Case *test, double *value) {
    const ScalarAttr *scalar = &test->attr.scalar;
    Definition definition = definition_of(test->op, scalar);
    for (int64_t i = 0; i < view_count(&test->output[0]); i++) {
        Wide saved = truth_element(&test->input[1], i);
        Wide slope = definition.slope(saved, saved, scalar->a, scalar->b);
        bool ends = definition.branches && slope == 0;
        value[i] = ends ? 0 : (double)(truth_element(&test->input[0], i) * slope);
    }
    return true;
}

// ---- functions of two numbers -------------------------------------------------------------------

typedef Wide (*Pair)(Wide x, Wide y);

#define DEFINE_PAIR(name, value)              \
    static Wide name##_pair(Wide x, Wide y) { \
        return value;                         \
    }
DEFINE_PAIR(add, x + y)
DEFINE_PAIR(sub, x - y)
DEFINE_PAIR(mul, x *y)
DEFINE_PAIR(div, x / y)
DEFINE_PAIR(maximum, isnan(x + y) && (isnan(x) || isnan(y)) ? (Wide)NAN : fmaxl(x, y))
DEFINE_PAIR(minimum, isnan(x + y) && (isnan(x) || isnan(y)) ? (Wide)NAN : fminl(x, y))
DEFINE_PAIR(greater, isgreater(x, y))
DEFINE_PAIR(less, isless(x, y))
DEFINE_PAIR(equal, !isunordered(x, y) && !islessgreater(x, y))

// Whole numbers go round at the end of their range.
static double within(Format format, Wide value) {
    switch (format) {
    case FORMAT_INT32: return (int32_t)(uint32_t)(uint64_t)(int64_t)value;
    case FORMAT_UINT8: return (uint8_t)(uint64_t)(int64_t)value;
    default: return (double)value;
    }
}

static bool solve_pairs(const Case *test, double *value) {
    static const Pair pairs[OP_COUNT] = {
#define BINARY(name, ...)  [OP_##name] = name##_pair,
#define COMPARE(name, ...) [OP_##name] = name##_pair,
#include "kernel/pointwise.def"
    };
    const View *shape = &test->output[0];
    for (int64_t i = 0; i < view_count(shape); i++)
        value[i] = within(shape->format, pairs[test->op](broadcast(&test->input[0], shape, i),
                                                         broadcast(&test->input[1], shape, i)));
    return true;
}

// The logarithm of a probability, as far down as the loss goes.
static Wide held(Wide logarithm) {
    return logarithm < -100 ? -100 : logarithm;
}

DEFINE_PAIR(mse, (x - y) * (x - y))
DEFINE_PAIR(mse_slope, 2 * (x - y))
DEFINE_PAIR(l1, fabsl(x - y))
DEFINE_PAIR(l1_slope, sign_of(x - y))
DEFINE_PAIR(bce_with_logits, y *soft_plus(-x) + (1 - y) * soft_plus(x))
DEFINE_PAIR(bce_with_logits_slope, logistic(x) - y)
DEFINE_PAIR(bce, -(y *held(logl(x)) + (1 - y) * held(log1pl(-x))))
DEFINE_PAIR(bce_slope, (x - y) / (x * (1 - x) < 1e-12L ? 1e-12L : x * (1 - x)))

static bool solve_loss(const Case *test, double *value) {
    static const Pair pairs[OP_COUNT] = {
#define LOSS(name, ...) [OP_##name] = name##_pair,
#include "kernel/pointwise.def"
    };
    const View *shape = &test->input[0].view;
    Wide sum = 0;
    for (int64_t i = 0; i < view_count(shape); i++)
        sum += pairs[test->op](broadcast(&test->input[0], shape, i),
                               broadcast(&test->input[1], shape, i));
    value[0] = (double)(sum / (Wide)view_count(shape));
    return true;
}

static bool solve_loss_backward(const Case *test, double *value) {
    static const Pair slopes[OP_COUNT] = {
#define LOSS(name, ...) [OP_##name##_backward] = name##_slope_pair,
#include "kernel/pointwise.def"
    };
    const View *shape = &test->output[0];
    int64_t count = view_count(shape);
    Wide arriving = truth_element(&test->input[0], 0) / (Wide)count;
    for (int64_t i = 0; i < count; i++) {
        Wide slope = slopes[test->op](broadcast(&test->input[1], shape, i),
                                      broadcast(&test->input[2], shape, i));
        bool ends = test->op == OP_l1_backward && slope == 0;
        value[i] = ends ? 0 : (double)(arriving * slope);
    }
    return true;
}

// ---- exponentials over a row --------------------------------------------------------------------

// What all shares of a row are measured by: any number may be subtracted from all of them, and with
// the largest no sum is past the range of expl. NaN where there are no shares.
typedef struct Measure {
    Wide base, log_sum;
} Measure;

static Measure measure_of(const Wide *row, int64_t length) {
    Measure measure = {row[0], 0};
    Wide sum = 0;
    for (int64_t j = 1; j < length; j++)
        measure.base = fmaxl(measure.base, row[j]);
    for (int64_t j = 0; j < length; j++)
        sum += expl(row[j] - measure.base); // NaN, and infinities less each other, arrive here
    measure.log_sum = logl(sum);
    return measure;
}

static Wide log_share(Measure measure, Wide x) {
    return (x - measure.base) - measure.log_sum;
}

static Wide *row_of(const CaseInput *input, int64_t row, int64_t length) {
    Wide *numbers = malloc((size_t)length * sizeof *numbers);
    if (!numbers)
        abort();
    for (int64_t j = 0; j < length; j++)
        numbers[j] = truth_element(input, row * length + j);
    return numbers;
}

static int64_t length_of(const View *view) {
    return view->shape[view->ndim - 1];
}

static bool solve_rowwise(const Case *test, double *value) {
    int64_t length = length_of(&test->input[0].view), count = view_count(&test->input[0].view);
    for (int64_t row = 0; row * length < count; row++) {
        Wide *x = row_of(&test->input[0], row, length);
        Measure measure = measure_of(x, length);
        for (int64_t j = 0; j < length; j++) {
            Wide share = log_share(measure, x[j]);
            value[row * length + j] = (double)(test->op == OP_softmax ? expl(share) : share);
        }
        free(x);
    }
    return true;
}

static bool solve_cross_entropy(const Case *test, double *value) {
    int64_t length = length_of(&test->input[0].view), count = view_count(&test->input[0].view);
    int64_t kept = 0;
    Wide sum = 0;
    for (int64_t row = 0; row * length < count; row++) {
        int64_t class = (int64_t)truth_element(&test->input[1], row);
        if (class < 0)
            continue;
        Wide *x = row_of(&test->input[0], row, length);
        sum -= log_share(measure_of(x, length), x[class]);
        kept++;
        free(x);
    }
    value[0] = (double)(sum / (Wide)kept);
    return true;
}

// From the logits alone: what the forward pass kept of them is no part of the definition.
static bool solve_cross_entropy_backward(const Case *test, double *value) {
    const CaseInput *logits = &test->input[1], *classes = &test->input[3];
    int64_t length = length_of(&logits->view), count = view_count(&logits->view), kept = 0;
    for (int64_t row = 0; row * length < count; row++)
        kept += truth_element(classes, row) >= 0;
    Wide arriving = truth_element(&test->input[0], 0) / (Wide)kept;
    for (int64_t row = 0; row * length < count; row++) {
        int64_t class = (int64_t)truth_element(classes, row);
        Wide *x = row_of(logits, row, length);
        Measure measure = measure_of(x, length);
        for (int64_t j = 0; j < length; j++)
            value[row * length + j] =
                class < 0 ? 0
                          : (double)(arriving * (expl(log_share(measure, x[j])) - (j == class)));
        free(x);
    }
    return true;
}

// ---- attention ----------------------------------------------------------------------------------

// The shares of the keys that query i of a batch and head sees; their number.
static int64_t shares_of(const Case *test, int first, int64_t b, int64_t h, int64_t i,
                         Wide *share) {
    const CaseInput *q = &test->input[first], *k = &test->input[first + 1];
    int64_t keys = k->view.shape[1], depth = k->view.shape[3];
    int64_t seen = test->attr.attention.causal && i + 1 < keys ? i + 1 : keys;
    Wide *score = calloc((size_t)seen, sizeof *score);
    if (!score)
        abort();
    for (int64_t j = 0; j < seen; j++) {
        for (int64_t d = 0; d < depth; d++)
            score[j] += element(q, (int64_t[]){b, i, h, d}) * element(k, (int64_t[]){b, j, h, d});
        score[j] *= (Wide)test->attr.attention.scale;
    }
    Measure measure = measure_of(score, seen);
    for (int64_t j = 0; j < seen; j++)
        share[j] = expl(log_share(measure, score[j]));
    free(score);
    return seen;
}

// A share as it is multiplied.
static Wide factor_of(const Case *test, Wide share) {
    return test->attr.has_compute
               ? (Wide)format_round(test->attr.compute, (double)share, OVERFLOW_SATURATES)
               : share;
}

static bool solve_attention(const Case *test, double *value) {
    const View *y = &test->output[0];
    const CaseInput *v = &test->input[2];
    int64_t depth = y->shape[3], keys = v->view.shape[1];
    Wide *share = calloc((size_t)keys, sizeof *share);
    for (int64_t row = 0; share && row < view_count(y) / depth; row++) {
        int64_t h = row % y->shape[2], i = row / y->shape[2] % y->shape[1];
        int64_t b = row / y->shape[2] / y->shape[1];
        int64_t seen = shares_of(test, 0, b, h, i, share);
        for (int64_t d = 0; d < depth; d++) {
            Wide sum = 0;
            for (int64_t j = 0; j < seen; j++)
                sum += factor_of(test, share[j]) * element(v, (int64_t[]){b, j, h, d});
            value[row * depth + d] = (double)sum;
        }
    }
    free(share);
    return share != NULL;
}

// ---- the table ----------------------------------------------------------------------------------

typedef struct Truth {
    bool (*solve)(const Case *test, double *value); // the first output
    TruthKind kind;
} Truth;

static const Truth truths[OP_COUNT] = {
#define UNARY(name, ...)                      \
    [OP_##name] = {solve_unary, TRUTH_EXACT}, \
    [OP_##name##_backward] = {solve_unary_backward, TRUTH_EXACT},
#define BINARY(name, ...)  [OP_##name] = {solve_pairs, TRUTH_EXACT},
#define COMPARE(name, ...) [OP_##name] = {solve_pairs, TRUTH_EXACT},
#define LOSS(name, ...)                      \
    [OP_##name] = {solve_loss, TRUTH_EXACT}, \
    [OP_##name##_backward] = {solve_loss_backward, TRUTH_EXACT},
#include "kernel/pointwise.def"
    [OP_softmax] = {solve_rowwise, TRUTH_EXACT},
    [OP_log_softmax] = {solve_rowwise, TRUTH_EXACT},
    [OP_cross_entropy] = {solve_cross_entropy, TRUTH_EXACT},
    [OP_cross_entropy_backward] = {solve_cross_entropy_backward, TRUTH_FROM_KEPT},
    [OP_attention] = {solve_attention, TRUTH_EXACT},
    [OP_resample] = {truth_resample, TRUTH_EXACT},
    [OP_interpolate] = {truth_resample, TRUTH_EXACT},
    [OP_resample_backward] = {truth_resample, TRUTH_EXACT},
    [OP_scale_factor] = {truth_scale_factor, TRUTH_EXACT},
};

TruthKind truth_solve(const Case *test, double *value[OP_MAX_OUTPUTS]) {
    const Truth *truth = &truths[test->op];
    if (!truth->solve)
        return TRUTH_NONE;
    value[0] = malloc((size_t)(view_count(&test->output[0]) + 1) * sizeof **value);
    if (!value[0])
        abort();
    if (truth->solve(test, value[0]))
        return truth->kind;
    free(value[0]);
    value[0] = NULL;
    return TRUTH_NONE;
}
