// A loss that leaves its course without ceasing to be finite, and the layer whose gradients did so
// first. Every step is looked at: where it began is known by what came before.
#include <math.h>
#include <stdlib.h>

#include "run/run_private.h"

static const struct {
    double times;                 // as large as usual, or more, is no noise
    double of_first;              // of the first losses, which tell less of what is usual
    double of_loss, of_gradients; // how soon each becomes usual: a share of the way, a step
    int known;                    // so many are to be known before anything is beyond them
    int grown;                    // so many in a row that end the run, each above the one before
} rule = {
    .times = 10, .of_first = 100, .of_loss = 0.02, .of_gradients = 0.05, .known = 100, .grown = 4};

// Towards `value`, whose logarithms are compared; false: it is beyond what is usual, `times` that
// or more. INFINITY: nothing is.
static bool follow(Usual *usual, double value, double times, double share) {
    const double now = log(value);
    if (usual->count > 0 && now > usual->mean + log(times))
        return false;
    usual->count++;
    const double first = 1 / (double)usual->count;
    usual->mean += (first > share ? first : share) * (now - usual->mean);
    return true;
}

// ---- gradients ----------------------------------------------------------------------------------

static bool make_room(WatchedOptimizer *watched, int count) {
    if (watched->growth_count >= count)
        return true;
    GradientGrowth *growth = realloc(watched->growth, (size_t)count * sizeof *growth);
    if (!growth)
        return false;
    for (int k = watched->growth_count; k < count; k++)
        growth[k] = (GradientGrowth){.grew_at = -1};
    watched->growth = growth;
    watched->growth_count = count;
    return true;
}

static void look_at(const Run *run, const StepReport *report, int i, WatchedOptimizer *watched) {
    const Optimizer *optimizer = run->optimizers[i];
    const int count = optimizer_parameter_count(optimizer);
    GradStats room;
    if (!make_room(watched, count))
        return;
    for (int k = 0; k < count; k++) {
        GradientGrowth *growth = &watched->growth[k];
        const GradStats *stats = run_reported_stats(report, i, k, &room);
        if (!stats || !(stats->sum_squares > 0) || !isfinite(stats->sum_squares))
            continue;
        const double size = sqrt(stats->sum_squares);
        const double times = growth->usual.count < rule.known ? (double)INFINITY : rule.times;
        if (follow(&growth->usual, size, times, rule.of_gradients)) {
            growth->grew_at = -1;
        } else if (growth->grew_at < 0) {
            growth->grew_at = run->step;
            growth->times = size / exp(growth->usual.mean);
        }
    }
}

void run_watch_gradients(RunState *state, const StepReport *report) {
    Run *run = &state->run;
    if (run->is_silent)
        return;
    for (int i = 0; i < report->note->optimizer_count; i++)
        look_at(run, report, i, &state->watched[i]);
}

void run_forget_gradients(WatchedOptimizer *watched) {
    free(watched->growth);
    watched->growth = NULL;
    watched->growth_count = 0;
}

// ---- the loss -----------------------------------------------------------------------------------

// Of those that began to grow around `since` the first; of several the one that grew most.
static const GradientGrowth *first_to_grow(const RunState *state, const Tensor **tensor) {
    const Run *run = &state->run;
    const GradientGrowth *first = NULL;
    for (int i = 0; i < run->optimizer_count; i++)
        for (int k = 0; k < state->watched[i].growth_count; k++) {
            const GradientGrowth *growth = &state->watched[i].growth[k];
            if (growth->grew_at < 0 || growth->grew_at < state->loss_since - RUN_BEFORE_LOSS)
                continue;
            if (first && (growth->grew_at > first->grew_at ||
                          (growth->grew_at == first->grew_at && growth->times <= first->times)))
                continue;
            first = growth;
            *tensor = optimizer_parameter(run->optimizers[i], k);
        }
    return first;
}

// So many times what is usual is beyond it. Where a loss changes its sign, what comes near 0 tells
// nothing of those that follow it.
static double times_beyond(const RunState *state) {
    if (state->usual_loss.count >= rule.known)
        return rule.times;
    return state->loss_began_anew ? (double)INFINITY : rule.of_first;
}

static void count_growth(RunState *state, double value, int64_t step) {
    const bool grows = state->loss_before > 0 && value > state->loss_before;
    if (!grows || state->losses_grown == 0) {
        state->loss_grew_from = grows ? state->loss_before : value;
        state->loss_grew_at = step;
    }
    state->losses_grown = grows ? state->losses_grown + 1 : 0;
    state->loss_before = value;
}

// What too few losses tell while they come: they grew to the end, far beyond what was usual.
void run_end_loss(RunState *state) {
    const int grown = state->losses_grown;
    const double usual = fmax(state->loss_grew_from, exp(state->usual_loss.mean));
    if (state->loss_began_anew) // what comes near 0 tells nothing of those that follow it
        return;
    if (state->run.is_silent || state->losses_beyond >= RUN_LOSSES_BEYOND || grown < rule.grown ||
        state->loss_before < rule.times * usual || state->run.skips_in_a_row > 0)
        return;
    Divergence divergence = {.usual = state->loss_grew_from,
                             .times = state->loss_before / state->loss_grew_from};
    run_tell_growing(state, &divergence);
}

void run_watch_loss(RunState *state, double value, int64_t step) {
    count_growth(state, value > 0 && isfinite(value) ? value : 0, step);
    if (!(value > 0) || !isfinite(value)) { // of such nothing is usual
        state->usual_loss = (Usual){0};
        state->loss_began_anew = true;
        state->loss_is_beyond = false;
        return;
    }
    if (!(state->loss_first > 0))
        state->loss_first = value;
    state->loss_before_it = state->usual_loss.count > 0 ? exp(state->usual_loss.mean) : value;
    state->loss_finite = value;
    const double times = times_beyond(state);
    if (follow(&state->usual_loss, value, times, rule.of_loss)) {
        state->loss_is_beyond = false;
        return;
    }
    if (!state->loss_is_beyond) {
        state->loss_is_beyond = true;
        state->loss_since = step;
        state->losses_beyond = 0;
    }
    if (state->run.skips_in_a_row > 0) // the weights stay as they were: that is another fault
        return;
    if (++state->losses_beyond != RUN_LOSSES_BEYOND)
        return;
    Divergence divergence = {.usual = exp(state->usual_loss.mean), .times = times};
    divergence.growth = first_to_grow(state, &divergence.grown);
    run_tell_diverged(state, &divergence);
}
