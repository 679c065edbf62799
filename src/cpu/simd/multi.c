// The loops over all parameters of a model: updates, clipping, averages.
#include "cpu/simd.h"
#include "cpu/simd/math.h"

static void sgd(float *restrict p, const float *restrict g, float *restrict m, int64_t count,
                const CpuUpdate *update) {
    const float clip = update->clip, decay = update->decay, momentum = update->momentum;
    const float rate = update->rate;
    if (!m) {
        for (int64_t i = 0; i < count; i++)
            p[i] = math_fma(-rate, math_fma(decay, p[i], g[i] * clip), p[i]);
    } else if (update->first) {
        const float more = update->nesterov ? 1 + momentum : 1;
        for (int64_t i = 0; i < count; i++) {
            float gradient = math_fma(decay, p[i], g[i] * clip);
            m[i] = gradient;
            p[i] = math_fma(-rate, gradient * more, p[i]);
        }
    } else if (update->nesterov) {
        for (int64_t i = 0; i < count; i++) {
            float gradient = math_fma(decay, p[i], g[i] * clip);
            float velocity = math_fma(momentum, m[i], gradient);
            m[i] = velocity;
            p[i] = math_fma(-rate, math_fma(momentum, velocity, gradient), p[i]);
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            float velocity = math_fma(momentum, m[i], math_fma(decay, p[i], g[i] * clip));
            m[i] = velocity;
            p[i] = math_fma(-rate, velocity, p[i]);
        }
    }
}

// Moves both moments and gives the direction of Adam.
#define ADAM_STEP(gradient_)                                           \
    float gradient = gradient_;                                        \
    float first = math_fma(beta1, m[i], rest1 * gradient);             \
    float second = math_fma(beta2, v[i], rest2 * gradient * gradient); \
    m[i] = first;                                                      \
    v[i] = second;                                                     \
    float direction = first * step1 / (sqrtf(second * step2) + epsilon);

#define ADAM_CONSTANTS                                                                 \
    const float clip = update->clip, decay = update->decay, epsilon = update->epsilon; \
    const float beta1 = update->beta1, beta2 = update->beta2;                          \
    const float rest1 = update->rest1, rest2 = update->rest2;                          \
    const float step1 = update->step1, step2 = update->step2;

static void adam(float *restrict p, const float *restrict g, float *restrict m, float *restrict v,
                 int64_t count, const CpuUpdate *update) {
    ADAM_CONSTANTS
    const float rate = update->rate;
    for (int64_t i = 0; i < count; i++) {
        ADAM_STEP(math_fma(decay, p[i], g[i] * clip))
        p[i] = math_fma(-rate, direction, p[i]);
    }
}

static void adamw(float *restrict p, const float *restrict g, float *restrict m, float *restrict v,
                  int64_t count, const CpuUpdate *update) {
    ADAM_CONSTANTS
    const float rate = update->rate;
    for (int64_t i = 0; i < count; i++) {
        ADAM_STEP(g[i] * clip)
        p[i] = math_fma(-rate, math_fma(decay, p[i], direction), p[i]);
    }
}

static void lamb_moments(const float *restrict p, const float *restrict g, float *restrict m,
                         float *restrict v, int64_t count, const CpuUpdate *update,
                         double *p_squares, double *u_squares) {
    ADAM_CONSTANTS
    float parameters = 0, directions = 0;
#pragma omp simd reduction(+ : parameters, directions)
    for (int64_t i = 0; i < count; i++) {
        ADAM_STEP(g[i] * clip)
        float u = math_fma(decay, p[i], direction);
        parameters += p[i] * p[i];
        directions += u * u;
    }
    *p_squares += (double)parameters;
    *u_squares += (double)directions;
}

static void lamb_step(float *restrict p, const float *restrict m, const float *restrict v,
                      int64_t count, const CpuUpdate *update) {
    const float rate = update->rate * update->ratio, decay = update->decay;
    const float step1 = update->step1, step2 = update->step2, epsilon = update->epsilon;
    for (int64_t i = 0; i < count; i++) {
        float direction = m[i] * step1 / (sqrtf(v[i] * step2) + epsilon);
        p[i] = math_fma(-rate, math_fma(decay, p[i], direction), p[i]);
    }
}

static void clip_value(float *restrict x, int64_t count, float limit) {
    for (int64_t i = 0; i < count; i++) {
        float value = x[i] > limit ? limit : x[i];
        x[i] = value < -limit ? -limit : value;
    }
}

static void multiply(float *restrict x, int64_t count, float factor) {
    for (int64_t i = 0; i < count; i++)
        x[i] *= factor;
}

static void average(float *restrict mean, const float *restrict parameter, int64_t count,
                    float decay, float rest) {
    for (int64_t i = 0; i < count; i++)
        mean[i] = math_fma(decay, mean[i], rest * parameter[i]);
}

// The bits that bf16 lacks are the probability of going up. Past the largest finite value, and for
// what is not finite, it stays the nearest.
static void stochastic_bf16(const float *restrict x, const uint32_t *restrict words,
                            uint16_t *restrict y, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = number_bits_of_fp32(x[i]);
        uint32_t up = (words[i] >> 16) < (bits & 0xFFFF) ? 1 : 0;
        uint32_t rounded = (bits >> 16) + up;
        uint32_t nearest = number_fp32_to_bf16(x[i]);
        y[i] = (uint16_t)number_select_(bits & 0x7FFFFFFF, 0x7F7F0000, rounded, nearest);
    }
}

extern const CpuMulti ISA_NAME(cpu_multi);
const CpuMulti ISA_NAME(cpu_multi) = {
    .sgd = sgd,
    .adam = adam,
    .adamw = adamw,
    .lamb_moments = lamb_moments,
    .lamb_step = lamb_step,
    .clip_value = clip_value,
    .multiply = multiply,
    .average = average,
    .stochastic_bf16 = stochastic_bf16,
};
