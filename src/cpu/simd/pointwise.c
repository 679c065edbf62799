// The functions of kernel/pointwise.def as loops over dense fp32.
#include "cpu/simd.h"
#include "cpu/simd/math.h"

typedef float real;

#define EXP(x)           math_exp(x)
#define LOG(x)           math_log(x)
#define LOG1P(x)         math_log1p(x)
#define TANH(x)          math_tanh(x)
#define ERF(x)           math_erf(x)
#define SIN(x)           math_sin(x)
#define COS(x)           math_cos(x)
#define SQRT(x)          sqrtf(x)
#define ABS(x)           fabsf(x)
#define POW(x, y)        powf(x, y)
#define HALF             0.5f
#define SQRT_HALF        0.70710678118654752f
#define INVERSE_SQRT_2PI 0.39894228040143268f

#define UNARY(name, class, saved_, forward, gradient, ...)                                         \
    static void unary_##name(const float *restrict in, float *restrict out, int64_t count, real a, \
                             real b) {                                                             \
        (void)a, (void)b;                                                                          \
        for (int64_t i = 0; i < count; i++) {                                                      \
            real x = in[i];                                                                        \
            out[i] = (real)(forward);                                                              \
        }                                                                                          \
    }                                                                                              \
    static void unary_backward_##name(const float *restrict arriving, const float *restrict saved, \
                                      float *restrict dx, int64_t count, real a, real b) {         \
        (void)a, (void)b;                                                                          \
        for (int64_t i = 0; i < count; i++) {                                                      \
            real dy = arriving[i], x = saved[i], y = saved[i];                                     \
            (void)x, (void)y;                                                                      \
            dx[i] = (real)(gradient);                                                              \
        }                                                                                          \
    }
// The output may be one of the inputs: no element waits for another, which is all that vectors
// need.
#define BINARY(name, class, forward, text)                                                        \
    static void binary_##name(const float *left, const float *right, float *out, int64_t count) { \
        _Pragma("omp simd") for (int64_t i = 0; i < count; i++) {                                 \
            real x = left[i], y = right[i];                                                       \
            out[i] = forward;                                                                     \
        }                                                                                         \
    }
#define COMPARE(name, forward, text)                                                    \
    static void compare_##name(const float *restrict left, const float *restrict right, \
                               uint8_t *restrict out, int64_t count) {                  \
        for (int64_t i = 0; i < count; i++) {                                           \
            real x = left[i], y = right[i];                                             \
            out[i] = (forward) ? 1 : 0;                                                 \
        }                                                                               \
    }
#define LOSS(name, class, forward, gradient, ...)                                            \
    static float loss_##name(const float *restrict in, const float *restrict target,         \
                             int64_t count) {                                                \
        float sum = 0;                                                                       \
        _Pragma("omp simd reduction(+ : sum)") for (int64_t i = 0; i < count; i++) {         \
            real x = in[i], t = target[i];                                                   \
            sum += forward;                                                                  \
        }                                                                                    \
        return sum;                                                                          \
    }                                                                                        \
    static void loss_backward_##name(const float *restrict in, const float *restrict target, \
                                     float *restrict dx, int64_t count, real dy) {           \
        for (int64_t i = 0; i < count; i++) {                                                \
            real x = in[i], t = target[i];                                                   \
            dx[i] = (real)(gradient);                                                        \
        }                                                                                    \
    }
#include "kernel/pointwise.def"

static void select_where(const float *restrict condition, const float *restrict x,
                         const float *restrict y, float *restrict out, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        out[i] = condition[i] != 0 ? x[i] : y[i];
}

#define UNARY(name, ...) \
    .unary[OP_##name] = unary_##name, .unary_backward[OP_##name##_backward] = unary_backward_##name,
#define BINARY(name, ...)  .binary[OP_##name] = binary_##name,
#define COMPARE(name, ...) .compare[OP_##name] = compare_##name,
#define LOSS(name, ...) \
    .loss[OP_##name] = loss_##name, .loss_backward[OP_##name##_backward] = loss_backward_##name,
extern const CpuPointwise ISA_NAME(cpu_pointwise);
const CpuPointwise ISA_NAME(cpu_pointwise) = {
#include "kernel/pointwise.def"
    .select = select_where,
};
