// The optimizers' updates and the moving average of the weights.
#include <math.h>

#include "kernel/random.h"
#include "ref/access.h"
#include "ref/kernels.h"

// What is the same for every element of one update.
typedef struct UpdateStep {
    const UpdateRule *rule;
    double rate;            // of the schedule, for the item's group
    double gradient_factor; // clipping, by the caller and by max_grad_norm
    double correction[2];   // what the moments are divided by
    bool is_first;          // no update of this tensor was done before
} UpdateStep;

// ---- rounding to what the parameters are kept in ------------------------------------------------

// The neighbours of a value that the format cannot hold are taken with probabilities that make the
// result right on average. Past the largest finite value it stays the nearest.
static double round_stochastically(Format format, double value, uint32_t word) {
    double nearest = format_round(format, value, OVERFLOW_SATURATES);
    if (!isfinite(value) || !isfinite(nearest) || nearest == value)
        return nearest;
    uint32_t toward_zero = format_encode(format, fabs(nearest), OVERFLOW_SATURATES);
    if (fabs(nearest) > fabs(value))
        toward_zero--; // patterns of one sign are in the order of their magnitudes
    double low = format_decode(format, toward_zero), high = format_decode(format, toward_zero + 1);
    if (!isfinite(high))
        return nearest;
    bool up = (double)random_uniform(word) < (fabs(value) - low) / (high - low);
    return copysign(up ? high : low, value);
}

static void parameter_put(const UpdateStep *step, const UpdateItem *item, int64_t i, double value,
                          uint64_t first_block) {
    const View *parameter = &item->parameter;
    bool is_low = parameter->format != FORMAT_FP32 && parameter->format != FORMAT_FP64;
    if (step->rule->stochastic && is_low) {
        RandomBlock block = random_block(step->rule->random.seed, first_block + (uint64_t)i / 4);
        value = round_stochastically(parameter->format, value, block.word[i % 4]);
    }
    ref_put(parameter, i, value);
    if (ref_is_present(&item->low)) // a rounding of what the master is now
        ref_put(&item->low, i, ref_get(parameter, i));
}

// ---- one element --------------------------------------------------------------------------------

static double gradient_of(const UpdateStep *step, const UpdateItem *item, int64_t i) {
    return ref_get(&item->gradient, i) * step->gradient_factor;
}

// How far SGD moves a parameter, for a rate of 1.
static double sgd_direction(const UpdateStep *step, const UpdateItem *item, int64_t i, double g) {
    double momentum = (double)step->rule->momentum;
    g += (double)item->weight_decay * ref_get(&item->parameter, i);
    if (momentum == 0)
        return g;
    double velocity = step->is_first ? g : momentum * ref_get(&item->moment[0], i) + g;
    ref_put(&item->moment[0], i, velocity);
    return step->rule->nesterov ? g + momentum * velocity : velocity;
}

// Moves both moments; the ratio of the first to the root of the second.
static double adam_ratio(const UpdateStep *step, const UpdateItem *item, int64_t i, double g) {
    double beta1 = (double)step->rule->beta1, beta2 = (double)step->rule->beta2;
    double first = beta1 * ref_get(&item->moment[0], i) + (1 - beta1) * g;
    double second = beta2 * ref_get(&item->moment[1], i) + (1 - beta2) * g * g;
    ref_put(&item->moment[0], i, first);
    ref_put(&item->moment[1], i, second);
    return first / step->correction[0] /
           (sqrt(second / step->correction[1]) + (double)step->rule->epsilon);
}

static double direction_of(const UpdateStep *step, const UpdateItem *item, int64_t i) {
    double parameter = ref_get(&item->parameter, i), decay = (double)item->weight_decay;
    double g = gradient_of(step, item, i);
    switch (step->rule->kind) {
    case OPTIMIZER_SGD: return sgd_direction(step, item, i, g);
    case OPTIMIZER_ADAM: return adam_ratio(step, item, i, g + decay * parameter);
    case OPTIMIZER_ADAMW:
    case OPTIMIZER_LAMB:
    case OPTIMIZER_COUNT: break;
    }
    return adam_ratio(step, item, i, g) + decay * parameter;
}

// ---- one tensor, and all of them ----------------------------------------------------------------

static bool update_one(Device *device, const UpdateStep *step, const UpdateItem *item,
                       uint64_t first_block, Error *error) {
    int64_t count = view_count(&item->parameter);
    double *direction = ref_scratch(device, count, 0, error);
    if (!direction)
        return false;
    double direction_squared = 0, parameter_squared = 0;
    for (int64_t i = 0; i < count; i++) {
        double parameter = ref_get(&item->parameter, i);
        direction[i] = direction_of(step, item, i);
        direction_squared += direction[i] * direction[i];
        parameter_squared += parameter * parameter;
    }
    double rate = step->rate;
    bool has_norms = parameter_squared > 0 && direction_squared > 0;
    if (step->rule->kind == OPTIMIZER_LAMB && has_norms)
        rate *= sqrt(parameter_squared) / sqrt(direction_squared);
    double moved_squared = 0;
    for (int64_t i = 0; i < count; i++) {
        double before = ref_get(&item->parameter, i);
        parameter_put(step, item, i, before - rate * direction[i], first_block);
        double moved = ref_get(&item->parameter, i) - before;
        moved_squared += moved * moved;
    }
    if (step->rule->measures && item->moved) {
        item->moved[0] = moved_squared;
        item->moved[1] = parameter_squared;
    }
    return true;
}

// The norm of all gradients as the update reads them, clipping included.
static double gradient_norm(const UpdatePlan *plan, const StepFlags *flags) {
    if (flags)
        return sqrt(flags->norm_squared) * (double)flags->clip;
    double sum = 0;
    for (int k = 0; k < plan->count; k++)
        for (int64_t i = 0; i < view_count(&plan->items[k].gradient); i++) {
            double gradient = ref_get(&plan->items[k].gradient, i);
            sum += gradient * gradient;
        }
    return sqrt(sum);
}

// What all gradients are multiplied by.
static double clip_of(const UpdateRule *rule, const UpdatePlan *plan, const StepFlags *flags) {
    const StepFlags *measured = rule->measured ? rule->measured : flags;
    double clip = flags ? (double)flags->clip : 1;
    if (rule->max_grad_norm > 0)
        clip /= fmax(1, gradient_norm(plan, measured) / (double)rule->max_grad_norm);
    return clip;
}

static UpdateStep step_of(const UpdateRule *rule, const UpdateItem *item, double clip,
                          uint64_t applied) {
    uint64_t own = item->steps ? *item->steps : applied;
    UpdateStep step = {
        .rule = rule,
        .rate = update_rate(rule, item->group, applied),
        .gradient_factor = clip,
        .correction = {1, 1},
        .is_first = own == 0,
    };
    if (rule->bias_correction) {
        step.correction[0] = 1 - pow((double)rule->beta1, (double)(own + 1));
        step.correction[1] = 1 - pow((double)rule->beta2, (double)(own + 1));
    }
    return step;
}

bool ref_update(Device *device, const UpdateRule *rule, UpdatePlan *plan, const StepFlags *flags,
                Progress *progress, Error *error) {
    if (flags && flags->found_inf) {
        progress->skipped++;
        return true;
    }
    double clip = clip_of(rule, plan, flags);
    uint64_t block = random_begin(&rule->random); // each tensor begins a new block
    for (int k = 0; k < plan->count; k++) {
        const UpdateItem *item = &plan->items[k];
        UpdateStep step = step_of(rule, item, clip, progress->applied);
        if (!update_one(device, &step, item, block, error))
            return false;
        if (item->steps)
            ++*item->steps;
        block += random_blocks(view_count(&item->parameter));
    }
    progress->applied++;
    return true;
}

bool ref_average(Device *device, PairPlan *plan, double decay, const StepFlags *flags,
                 Error *error) {
    (void)device;
    (void)error;
    if (flags && flags->found_inf)
        return true;
    for (int k = 0; k < plan->count; k++) {
        const View *average = &plan->items[k].target, *parameter = &plan->items[k].source;
        for (int64_t i = 0; i < view_count(average); i++)
            ref_put(average, i, decay * ref_get(average, i) + (1 - decay) * ref_get(parameter, i));
    }
    return true;
}
