// kernel/scale_rule.h: how the loss scale moves, computed where its state is (on the device).
// Inline and portable: every backend compiles the same function.
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/kernel_inline.h"

typedef enum ScaleKind {
    SCALE_NONE,   // 1, for ever
    SCALE_STATIC, // init, for ever
    SCALE_DYNAMIC,
    SCALE_LOGMAX,
    SCALE_ADAPTIVE,
    SCALE_GIVEN // the host writes it: a scaler written in Lua, or update(scale)
} ScaleKind;

typedef struct ScaleRule {
    ScaleKind kind;
    double init, growth, backoff, floor, ceiling;
    int64_t interval, hysteresis;
} ScaleRule;

typedef struct ScaleState { // device memory
    float scale;
    int64_t good, hysteresis_left;
    int64_t skips_at_floor;                              // in a row
    double mean, variance, mean_weight, variance_weight; // logmax: decayed sums for bias correction
} ScaleState;

KERNEL_INLINE ScaleState scale_state_initial(const ScaleRule *rule) {
    ScaleState state = {.scale = 1, .hysteresis_left = rule->hysteresis};
    if (rule->kind != SCALE_NONE)
        state.scale = (float)rule->init;
    return state;
}

// One iteration has ended: found_inf in any of its optimizers; the largest and the mean |g| of the
// unscaled gradients, for the rules that look at them.
KERNEL_INLINE void scale_rule_update(const ScaleRule *rule, ScaleState *state, bool found_inf,
                                     double largest, double mean);

// ---- the transitions ----------------------------------------------------------------------------

KERNEL_INLINE void scale_rule_dynamic(const ScaleRule *rule, ScaleState *state, bool found_inf) {
    if (found_inf) {
        state->good = 0;
        if (--state->hysteresis_left <= 0)
            state->scale = (float)fmax(rule->floor, (double)state->scale * rule->backoff);
        return;
    }
    if (++state->good < rule->interval)
        return;
    state->good = 0;
    state->hysteresis_left = rule->hysteresis;
    float grown = state->scale * (float)rule->growth;
    if (isfinite(grown))
        state->scale = (float)fmin((double)grown, rule->ceiling);
}

KERNEL_INLINE void scale_rule_logmax(ScaleState *state, bool found_inf, double largest) {
    const double mean_decay = 0.99, variance_decay = 0.999, largest_scale = 0x1p24;
    // An overflow says that the largest value was past what fp32 holds, not that nothing was seen.
    double x = found_inf || !isfinite(largest) ? 128 : largest > 0 ? log2(largest) : -149;
    state->mean = mean_decay * state->mean + (1 - mean_decay) * x;
    state->mean_weight = mean_decay * state->mean_weight + (1 - mean_decay);
    double mean = state->mean / state->mean_weight, away = x - mean;
    state->variance = variance_decay * state->variance + (1 - variance_decay) * away * away;
    state->variance_weight = variance_decay * state->variance_weight + (1 - variance_decay);
    double deviation = sqrt(state->variance / state->variance_weight);
    state->scale = (float)fmin(fmax(exp2(16 - (mean + 3.09 * deviation)), 1.0), largest_scale);
}

KERNEL_INLINE void scale_rule_adaptive(const ScaleRule *rule, ScaleState *state, bool found_inf,
                                       double mean) {
    const double quiet = 1e-7;
    if (found_inf)
        state->scale = (float)fmax(rule->floor, (double)state->scale * rule->backoff);
    else if (mean < quiet)
        state->scale = (float)fmin((double)state->scale * rule->growth, rule->ceiling);
}

KERNEL_INLINE void scale_rule_update(const ScaleRule *rule, ScaleState *state, bool found_inf,
                                     double largest, double mean) {
    bool stuck = found_inf && (rule->kind == SCALE_NONE || rule->kind == SCALE_STATIC ||
                               (double)state->scale <= rule->floor);
    state->skips_at_floor = stuck ? state->skips_at_floor + 1 : 0;
    switch (rule->kind) {
    case SCALE_DYNAMIC: scale_rule_dynamic(rule, state, found_inf); break;
    case SCALE_LOGMAX: scale_rule_logmax(state, found_inf, largest); break;
    case SCALE_ADAPTIVE: scale_rule_adaptive(rule, state, found_inf, mean); break;
    case SCALE_NONE:
    case SCALE_STATIC:
    case SCALE_GIVEN: break;
    }
}
