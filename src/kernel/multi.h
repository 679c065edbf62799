// kernel/multi.h: what runs over all tensors of a model in one call: the one pass over the
// gradients, the optimizers' updates, the scale. Part of the backend contract.
//
// Everything a step decides by is in device memory: StepFlags, ScaleState, Progress, the rates. No
// function here waits, and none is told by value what changes from one step to the next: it would
// be frozen into a step that a device has captured.
#pragma once

#include "base/kernel_inline.h"
#include "kernel/kernel.h"
#include "kernel/scale_rule.h"
#include "kernel/schedule.h"

// ---- plans --------------------------------------------------------------------------------------

// What runs over many tensors is told by a plan: items of the host's, which seldom change, and what
// a backend has made of them on the device. Where the host's memory is the device's the items are
// all there is to it. Whoever changes an item or the count calls plan_changed; items are read
// before a call returns.
typedef struct PlanTable {
    uint64_t version; // of the items; 0: a plan for one call, of which nothing is to be kept
    uint64_t made_of; // the version that `made` was made of
    void *made;       // the backend's own, dropped by it; NULL: nothing
} PlanTable;

static inline void plan_changed(PlanTable *table) {
    table->version++;
}

// What the backend keeps of a plan is let go.
void plan_drop(Device *device, PlanTable *table);

// ---- the one pass over the gradients ------------------------------------------------------------

enum { EXPONENT_BINS = 128, EXPONENT_LOWEST = -64 }; // bin i holds |g| in [2^(i-64), 2^(i-63))

// What one gradient is made of, true (unscaled) values, before the rounding to the layer's format.
// What lies below the lowest bin or above the highest is counted in these.
typedef struct GradStats {
#define COUNT(name) uint64_t name;
#define SUM(name)   double name;
#define MOST(name)  float name;
#include "number/statistics.def"
    uint64_t exponents[EXPONENT_BINS];
} GradStats;

typedef struct ScanItem {
    View gradient;    // fp32, dense; rounded and unscaled in place
    Format round_to;  // the layer's format: FP32 leaves the rounding out
    GradStats *stats; // device memory, overwritten; may be NULL
    bool adds;        // to what `stats` holds
} ScanItem;

typedef struct ScanPlan {
    ScanItem *items;
    int count;
    PlanTable table;
} ScanPlan;

typedef struct StepFlags { // device memory
    uint32_t found_inf;    // the scan saw a gradient that is not finite
    float clip;            // factor that clipping by norm asks for; 1 without
    double norm_squared;   // of all unscaled gradients of the last scan
    double sum;            // of |g|, for the scalers that look at it
    uint64_t count;
    float largest;
    float norm; // set by clip_norm: the root of norm_squared, before clipping
} StepFlags;

// The scaler's transition for one iteration of optimizers that left these flags; where they are.
KERNEL_INLINE void step_flags_move_scale(const StepFlags *const *flags, int count,
                                         const ScaleRule *rule, ScaleState *state) {
    bool found_inf = false;
    double largest = 0, sum = 0, elements = 0;
    for (int k = 0; k < count; k++) {
        found_inf = found_inf || flags[k]->found_inf;
        largest = fmax(largest, (double)flags[k]->largest);
        sum += flags[k]->sum;
        elements += (double)flags[k]->count;
    }
    scale_rule_update(rule, state, found_inf, largest, elements > 0 ? sum / elements : 0);
}

// ---- updates ------------------------------------------------------------------------------------

typedef enum OptimizerKind {
    OPTIMIZER_SGD,
    OPTIMIZER_ADAM,
    OPTIMIZER_ADAMW,
    OPTIMIZER_LAMB,
    OPTIMIZER_COUNT
} OptimizerKind;

typedef struct UpdateItem {
    View parameter; // fp32; or low, when a run keeps no masters
    View gradient;  // fp32, unscaled
    View moment[2]; // SGD: momentum; the others: both. data NULL where the rule has none
    View low;       // the low copy, rewritten in the same pass; data NULL: none
    double *moved; // device memory, |change|² and |parameter before|², for rule->measures; or NULL
    uint64_t *steps; // device memory: its own updates so far, which the bias correction follows and
                     // the update counts; NULL: the optimizer's
    int group;       // whose rate it takes
    float weight_decay;
} UpdateItem;

typedef struct UpdatePlan {
    UpdateItem *items;
    int count;
    PlanTable table;
} UpdatePlan;

typedef struct UpdateRule {
    OptimizerKind kind;
    Schedule schedule; // the rate at an applied step, kernel/schedule.h
    // Device memory: the schedule's base rate, then what each group multiplies it by. NULL:
    // schedule.rate and 1.
    const double *rates;
    float momentum; // SGD
    bool nesterov;
    float beta1, beta2, epsilon;
    bool bias_correction;
    float max_grad_norm;       // 0 for none; else the norm of all gradients is held to it
    const StepFlags *measured; // device memory: whose norm that is; NULL: the update's flags
    bool measures;             // how far each parameter moves
    bool stochastic;           // round low parameters stochastically (no masters, bf16)
    RandomAttr random;
} UpdateRule;

typedef struct Progress { // device memory, one an optimizer
    uint64_t applied;     // updates done; the schedule follows it
    uint64_t skipped;
} Progress;

// The rate of a group's update that follows `applied` others; where the rates are.
KERNEL_INLINE double update_rate(const UpdateRule *rule, int group, uint64_t applied) {
    double base = rule->rates ? rule->rates[0] * rule->rates[1 + group] : rule->schedule.rate;
    return schedule_rate(&rule->schedule, base, applied);
}

// ---- what goes by a step's outcome --------------------------------------------------------------

typedef struct ViewPair { // both dense, of as many elements
    View target, source;
} ViewPair;

typedef struct PairPlan {
    ViewPair *items;
    int count;
    PlanTable table;
} PairPlan;

// What a device that runs on its own finds in numbers that it looks at. Device memory.
typedef struct LookFound {
    float largest;       // magnitude; NaN where one is
    uint32_t unused;     // 0
    uint64_t nans, infs; // how many are
    uint64_t first;      // UINT64_MAX less the row-major index of the first of these; 0: none
} LookFound;

struct MultiKernels {
    // Rounds, counts, checks and unscales (gradient = rounded * inverse of scale->scale) in one
    // pass; overwrites *flags. scale NULL: 1.
    bool (*scan)(Device *device, ScanPlan *plan, const ScaleState *scale, StepFlags *flags,
                 Error *error);
    // flags->norm = the norm, flags->clip = min(1, limit / norm); the update applies it. Where a
    // gradient is not finite the norm is infinite, and nothing is clipped.
    bool (*clip_norm)(Device *device, double limit, StepFlags *flags, Error *error);
    // The items' gradients, each value held to the limit; or times a number in device memory.
    bool (*clip_value)(Device *device, ScanPlan *plan, float limit, Error *error);
    bool (*multiply)(Device *device, ScanPlan *plan, const float *factor, Error *error);
    // p, moments and low copies, unless flags->found_inf; counts in *progress. The gradient is
    // multiplied by flags->clip as it is read. flags NULL: always, unclipped.
    bool (*update)(Device *device, const UpdateRule *rule, UpdatePlan *plan, const StepFlags *flags,
                   Progress *progress, Error *error);
    // The scaler's transition (kernel/scale_rule.h) for one iteration of `count` optimizers.
    bool (*scale_update)(Device *device, const ScaleRule *rule, ScaleState *state,
                         const StepFlags *const *flags, int count, Error *error);
    // target = source where flags->found_inf: takes running statistics back.
    bool (*restore)(Device *device, PairPlan *plan, const StepFlags *flags, Error *error);
    // target = decay * target + (1 - decay) * source, unless flags->found_inf (may be NULL).
    bool (*average)(Device *device, PairPlan *plan, double decay, const StepFlags *flags,
                    Error *error);
    // The largest magnitude of a dense view of floating numbers; NaN where one is. Waits for the
    // work so far. NULL: a device that runs on its own, where asking so often would be waiting.
    double (*largest)(Device *device, const View *view);
    // What such a device does in its place: `count` of these hold nothing from here on; and what is
    // in a view of floating numbers is added to one. NULL: it is asked by `largest`, or not at all.
    bool (*look_begin)(Device *device, LookFound *found, int count, Error *error);
    bool (*look)(Device *device, const View *view, LookFound *found, Error *error);
    // Lets go of what it has made of a plan; NULL: it never makes anything.
    void (*drop)(Device *device, PlanTable *table);
};
