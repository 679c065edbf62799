// A loss that leaves its course without ceasing to be finite, and the layer whose gradients did so
// first. Every step is looked at: where it began is known by what came before.
#include <math.h>
#include <stdlib.h>

#include "run/run_private.h"

static const struct {
    double times;                 // as large as usual, or more, is no noise
    double of_loss, of_gradients; // how soon each becomes usual: a share of the way, a step
    int known;                    // so many are to be known before anything is beyond them
    int in_a_row;                 // losses beyond
    int before;                   // gradients may have grown so many steps earlier
} rule = {.times = 10,
          .of_loss = 0.02,
          .of_gradients = 0.05,
          .known = 100,
          .in_a_row = 20,
          .before = 100};

// Towards `value`, whose logarithms are compared; false: it is beyond what is usual.
static bool follow(Usual *usual, double value, double share) {
    const double now = log(value);
    if (usual->count >= rule.known && now > usual->mean + log(rule.times))
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
        if (follow(&growth->usual, size, rule.of_gradients)) {
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
            if (growth->grew_at < 0 || growth->grew_at < state->loss_since - rule.before)
                continue;
            if (first && (growth->grew_at > first->grew_at ||
                          (growth->grew_at == first->grew_at && growth->times <= first->times)))
                continue;
            first = growth;
            *tensor = optimizer_parameter(run->optimizers[i], k);
        }
    return first;
}

// A change to try, by what the run leaves to its recipe.
static const char *recipe_to_try(const Run *run) {
    const Policy *policy = run->engine->policy;
    const Recipe *recipe = policy_recipe(policy);
    if (!format_is_scaled(policy_preset(policy)->low))
        return "";
    return recipe->norms ? "--recipe norms=own, " : recipe->floor ? "--recipe scales=up, " : "";
}

static void tell(RunState *state) {
    Run *run = &state->run;
    const Tensor *tensor = NULL;
    const GradientGrowth *first = first_to_grow(state, &tensor);
    const char *layer = first ? run_layer_of(run, tensor) : "";
    const int64_t began = first ? first->grew_at : state->loss_since;
    const int64_t before = began > 2 * rule.before ? began - rule.before : began / 2 + 1;
    char grew[160] = "", only[96] = "", of[48];
    if (run->options->parent && before <= run->forked_at) // the fork has no such step
        snprintf(of, sizeof of, "%lld", (long long)run->options->parent);
    else
        snprintf(of, sizeof of, "%.40s", run->name);
    if (first)
        snprintf(grew, sizeof grew,
                 "; gradients of %.60s were the first to grow, %.0f times theirs at step %lld",
                 run_name_of(tensor), first->times, (long long)began);
    if (layer[0])
        snprintf(only, sizeof only, "--layer %.60s=fp32, ", layer);
    run_diagnose(run, DIAGNOSIS_DIVERGED, layer,
                 "the loss was %.3g and has been over %g times that since step %lld%s: `mpbench "
                 "fork %s --at %lld` before it with one change: %s%sa lower rate",
                 exp(state->usual_loss.mean), rule.times, (long long)state->loss_since, grew, of,
                 (long long)before, recipe_to_try(run), only);
}

void run_watch_loss(RunState *state, double value, int64_t step) {
    if (!(value > 0) || !isfinite(value)) { // of such nothing is usual
        state->usual_loss = (Usual){0};
        state->losses_beyond = 0;
        return;
    }
    if (follow(&state->usual_loss, value, rule.of_loss)) {
        state->losses_beyond = 0;
        return;
    }
    if (state->losses_beyond++ == 0)
        state->loss_since = step;
    if (state->losses_beyond == rule.in_a_row)
        tell(state);
}
