// The functions of kernel/pointwise.def, in double and with the C library's functions.
#include <math.h>

#include "ref/access.h"
#include "ref/kernels.h"

typedef double real;

#define EXP              exp
#define LOG              log
#define LOG1P            log1p
#define ERF              erf
#define TANH             tanh
#define SIN              sin
#define COS              cos
#define SQRT             sqrt
#define POW              pow
#define ABS              fabs
#define HALF             0.5
#define SQRT_HALF        0.70710678118654752440
#define INVERSE_SQRT_2PI 0.39894228040143267794

typedef double (*UnaryFunction)(real x, real a, real b);
typedef double (*GradientFunction)(real dy, real x_or_y, real a, real b);
typedef double (*PairFunction)(real x, real y);
typedef double (*LossGradient)(real dy, real x, real t);

static bool unary(const KernelCall *call, UnaryFunction function) {
    const View *x = &call->input[0], *y = &call->output[0];
    const ScalarAttr *constants = &call->attr->scalar;
    for (int64_t i = 0; i < view_count(y); i++)
        ref_put(y, i, function(ref_get(x, i), constants->a, constants->b));
    return true;
}

static bool unary_backward(const KernelCall *call, GradientFunction function) {
    const View *dy = &call->input[0], *saved = &call->input[1], *dx = &call->output[0];
    const ScalarAttr *constants = &call->attr->scalar;
    for (int64_t i = 0; i < view_count(dx); i++)
        ref_put(dx, i, function(ref_get(dy, i), ref_get(saved, i), constants->a, constants->b));
    return true;
}

static double get_broadcast(const View *view, const View *shape, int64_t index) {
    return ref_load(view, ref_offset_in(view, shape, index));
}

// Between whole numbers: modulo 2^32, and of uint8 modulo 2^8.
static double whole_result(OpId op, Format format, int64_t x, int64_t y) {
    int64_t result = 0;
    switch (op) {
    case OP_add: result = x + y; break;
    case OP_sub: result = x - y; break;
    case OP_mul: result = x * y; break;
    case OP_maximum: result = x > y ? x : y; break;
    case OP_minimum: result = x < y ? x : y; break;
    default: break; // a quotient is no whole number
    }
    return format == FORMAT_UINT8 ? (uint8_t)result : (int32_t)(uint32_t)result;
}

static bool binary(const KernelCall *call, PairFunction function) {
    const View *x = &call->input[0], *y = &call->input[1], *z = &call->output[0];
    bool whole = !format_is_floating(z->format);
    for (int64_t i = 0; i < view_count(z); i++) {
        double left = get_broadcast(x, z, i), right = get_broadcast(y, z, i);
        ref_put(z, i,
                whole ? whole_result(call->op, z->format, (int64_t)left, (int64_t)right)
                      : function(left, right));
    }
    return true;
}

static bool compare(const KernelCall *call, PairFunction function) {
    const View *z = &call->output[0];
    for (int64_t i = 0; i < view_count(z); i++)
        ref_put(
            z, i,
            function(get_broadcast(&call->input[0], z, i), get_broadcast(&call->input[1], z, i)));
    return true;
}

static bool loss(const KernelCall *call, PairFunction function) {
    const View *x = &call->input[0], *target = &call->input[1];
    double sum = 0;
    for (int64_t i = 0; i < view_count(x); i++)
        sum += function(ref_get(x, i), get_broadcast(target, x, i));
    ref_put(&call->output[0], 0, sum / (double)view_count(x));
    return true;
}

static bool loss_backward(const KernelCall *call, LossGradient gradient) {
    const View *x = &call->input[1], *target = &call->input[2], *dx = &call->output[0];
    double share = ref_number(&call->input[0]) / (double)view_count(x);
    for (int64_t i = 0; i < view_count(x); i++)
        ref_put(dx, i, gradient(share, ref_get(x, i), get_broadcast(target, x, i)));
    return true;
}

// The letters that an expression of pointwise.def may use and does not are marked so.
#define UNUSED __attribute__((unused))
#define SAVE_X x
#define SAVE_Y y

#define UNARY(name, class, saved, forward, gradient, ...)                           \
    static double name##_forward(UNUSED real x, UNUSED real a, UNUSED real b) {     \
        return forward;                                                             \
    }                                                                               \
    static double name##_gradient(UNUSED real dy, UNUSED real saved, UNUSED real a, \
                                  UNUSED real b) {                                  \
        return gradient;                                                            \
    }                                                                               \
    REF_KERNEL(name) {                                                              \
        return unary(call, name##_forward);                                         \
    }                                                                               \
    REF_KERNEL(name##_backward) {                                                   \
        return unary_backward(call, name##_gradient);                               \
    }
#define BINARY(name, class, forward, text)         \
    static double name##_forward(real x, real y) { \
        return forward;                            \
    }                                              \
    REF_KERNEL(name) {                             \
        return binary(call, name##_forward);       \
    }
#define COMPARE(name, forward, text)               \
    static double name##_forward(real x, real y) { \
        return forward;                            \
    }                                              \
    REF_KERNEL(name) {                             \
        return compare(call, name##_forward);      \
    }
#define LOSS(name, class, forward, gradient, ...)            \
    static double name##_forward(real x, real t) {           \
        return forward;                                      \
    }                                                        \
    static double name##_gradient(real dy, real x, real t) { \
        return gradient;                                     \
    }                                                        \
    REF_KERNEL(name) {                                       \
        return loss(call, name##_forward);                   \
    }                                                        \
    REF_KERNEL(name##_backward) {                            \
        return loss_backward(call, name##_gradient);         \
    }
#include "kernel/pointwise.def"
