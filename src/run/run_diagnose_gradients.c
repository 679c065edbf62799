// Gradients that vanish in fp16, and those that never came. Looked at after a few steps and then
// seldom: reading them costs about what recording a step does.
#include <stdio.h>

#include "base/shortest.h"
#include "run/run_private.h"

enum { FIRST_LOOK = 10, LOOK_EVERY = 1000 };

static const double worth_saying = 0.05; // of them

typedef struct Vanished {
    double lost, all; // elements, over all parameters
    double worst;     // share in one of them
    const char *worst_name;
    double scale;      // of that one, since the step
    double zeros;      // that came as 0, in gradients that were not gone
    double most_zeros; // share in one of them
    const char *zeros_name;
} Vanished;

static double scale_now(const StepScale *scale) {
    return scale->state ? (double)scale->state->scale : 1;
}

bool run_scale_moves(const ScaleRule *rule) {
    return rule && rule->kind != SCALE_NONE && rule->kind != SCALE_STATIC;
}

static void add_vanished(Vanished *sum, const Tensor *tensor, const GradStats *stats,
                         const StepScale *scale) {
    if (run_scale_moves(scale->rule))
        return;
    if (!(sum->all > 0))
        sum->scale = scale_now(scale);
    // Zeros among others may be no loss: a unit that is off has them. A gradient of nothing but
    // zeros vanished further up, in those of activations.
    const char *name = parameter_of(tensor) ? parameter_of(tensor)->name : NULL;
    const bool is_gone = stats->zeros + stats->flushed == stats->count;
    const double all = (double)stats->count;
    const double lost = is_gone ? all : (double)stats->flushed;
    const double zeros = is_gone ? 0 : (double)stats->zeros;
    sum->lost += lost;
    sum->zeros += zeros;
    sum->all += all;
    if (name && zeros > sum->most_zeros * all) {
        sum->most_zeros = zeros / all;
        sum->zeros_name = name;
    }
    if (name && lost > sum->worst * all) {
        sum->worst = lost / all;
        sum->worst_name = name;
        sum->scale = scale_now(scale);
    }
}

// The scale moves, and still does not do for this one.
static void check_flushed(Run *run, const StepScale *scale, const Tensor *tensor, Format round_to,
                          const GradStats *stats) {
    const double most = 0.5;
    const double all = (double)stats->count, zeros = (double)stats->zeros;
    char came[64] = "";
    if (!run_scale_moves(scale->rule) || !parameter_of(tensor) || round_to != FORMAT_FP16 ||
        !(all > zeros) || (double)stats->flushed < most * (all - zeros))
        return;
    if (zeros >= worth_saying * all)
        snprintf(came, sizeof came, ", and a further %.0f %% had come as 0", 100 * zeros / all);
    const char *layer = run_layer_of(run, tensor);
    run_diagnose(run, DIAGNOSIS_FLUSHED, layer,
                 "%.0f %% of the gradients of %.60s became zero in fp16 at scale %s%s, the "
                 "largest is %.2g: use --layer %.60s=bf16, or a larger scale",
                 100 * (double)stats->flushed / all, run_name_of(tensor),
                 shortest_of_float(scale_now(scale)).text, came, (double)stats->largest,
                 layer[0] ? layer : "NAME");
}

static void check_missing(Run *run, const Tensor *tensor, const GradientNote *note) {
    if (note->has_had_gradient || !tensor->requires_grad)
        return;
    run_diagnose(run, DIAGNOSIS_NO_GRADIENT, run_layer_of(run, tensor),
                 "%.60s had no gradient in %lld steps and is not trained: the loss does not depend "
                 "on it, or a detach or no_grad lies between; use it, or leave it out of the "
                 "optimizer",
                 run_name_of(tensor), (long long)run->step);
}

static void check_scale(Run *run, const Vanished *sum) {
    char came[160] = "";
    if (!(sum->all > 0) || sum->lost < worth_saying * (sum->all - sum->zeros))
        return;
    // No count tells what vanished on the way back from a unit that is off.
    if (sum->zeros >= worth_saying * sum->all)
        snprintf(came, sizeof came,
                 ", and a further %.0f %% had come as 0 (%.0f %% in %.60s), vanished before or of "
                 "units that are off",
                 100 * sum->zeros / sum->all, 100 * sum->most_zeros,
                 sum->zeros_name ? sum->zeros_name : "one");
    run_diagnose(
        run, DIAGNOSIS_NO_SCALER, "",
        "%.0f %% of the gradients became zero in fp16 at scale %s (%.0f %% in %.60s)%s: use "
        "--loss-scale dynamic",
        100 * sum->lost / sum->all, shortest_of_float(sum->scale).text, 100 * sum->worst,
        sum->worst_name ? sum->worst_name : "one", came);
}

static void look_at(RunState *state, const StepReport *report, int at, Vanished *sum) {
    Run *run = &state->run;
    const StepScale scale = run_scale_of(state, report, at);
    const Optimizer *optimizer = run->optimizers[at];
    const GradientNote *notes = report->note->optimizers[at].gradients.each;
    const bool is_fp16 = policy_preset(run->engine->policy)->low == FORMAT_FP16;
    bool is_to_have_all = run->step == FIRST_LOOK && run_reported(report, at).applied > 0;
    GradStats room;
    for (int i = 0; i < optimizer_parameter_count(optimizer); i++) {
        const Tensor *tensor = optimizer_parameter(optimizer, i);
        const GradStats *stats = run_reported_stats(report, at, i, &room);
        if (stats) {
            if (is_fp16 || notes[i].round_to == FORMAT_FP16) // of layers that are set to it
                add_vanished(sum, tensor, stats, &scale);
            check_flushed(run, &scale, tensor, notes[i].round_to, stats);
        }
        if (is_to_have_all)
            check_missing(run, tensor, &notes[i]);
    }
}

void run_check_gradients(RunState *state, const StepReport *report) {
    Run *run = &state->run;
    const bool is_first = run->step == run->forked_at + FIRST_LOOK;
    if (run->is_silent || (!is_first && run->step % LOOK_EVERY != 0))
        return;
    Vanished sum = {0};
    for (int i = 0; i < report->note->optimizer_count; i++)
        look_at(state, report, i, &sum);
    check_scale(run, &sum);
}
