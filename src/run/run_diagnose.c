// What a run can see by itself that its user should know (precision.md §7).
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run/run_private.h"

static bool check_pattern(const Run *run, const char *pattern, Error *error) {
    const char *nearest;
    if (policy_names(run->engine->policy, pattern, &nearest))
        return true;
    return error_fail(
        error, ERROR_USAGE, "--layer %.60s: no layer of the model has such a name%s%.60s%s",
        pattern, nearest ? " (did you mean " : "", nearest ? nearest : "", nearest ? "?)" : "");
}

static bool is_low(Format format) {
    return format == FORMAT_FP16 || format == FORMAT_BF16;
}

// Weights that are kept low lose updates smaller than half a step of their format.
static void check_masters(Run *run) {
    for (int i = 0; i < run->optimizer_count; i++)
        for (int j = 0; j < optimizer_parameter_count(run->optimizers[i]); j++) {
            const Tensor *tensor = optimizer_parameter(run->optimizers[i], j);
            if (!is_low(tensor->view.format))
                continue;
            const char *format = format_name(tensor->view.format);
            const char *name = parameter_of(tensor) ? parameter_of(tensor)->name : "";
            run_diagnose(run, "no_masters", "",
                         "%.60s and what is like it is kept in %s without an fp32 master: updates "
                         "under 1/%d of a weight are lost; use -p %s, which keeps masters",
                         name[0] ? name : "a parameter", format,
                         2 << format_table[tensor->view.format].mantissa_bits, format);
            return;
        }
}

bool run_check_setup(RunState *state, Error *error) {
    Run *run = &state->run;
    for (int i = 0; i < run->options->layer_count; i++)
        if (!check_pattern(run, run->options->layers[i].pattern, error))
            return false;
    check_masters(run);
    return true;
}

// ---- gradients that vanish ----------------------------------------------------------------------

typedef struct Vanished {
    double lost, all; // elements, over all parameters
    double worst;     // share in one of them
    const char *worst_name;
} Vanished;

static void add_vanished(Vanished *sum, Optimizer *optimizer) {
    int count = optimizer_parameter_count(optimizer);
    GradStats *stats = calloc((size_t)count, sizeof *stats);
    if (!stats)
        return; // a diagnosis less
    optimizer_read_stats(optimizer, stats);
    for (int i = 0; i < count; i++) {
        // Zeros among others are no loss: a unit that is off has them. A gradient of nothing but
        // zeros vanished further up, in those of activations.
        bool is_gone = stats[i].zeros + stats[i].flushed == stats[i].count;
        double all = (double)(is_gone ? stats[i].count : stats[i].count - stats[i].zeros);
        double lost = is_gone ? all : (double)stats[i].flushed;
        sum->lost += lost;
        sum->all += all;
        const Parameter *parameter = parameter_of(optimizer_parameter(optimizer, i));
        if (all > 0 && lost / all > sum->worst && parameter) {
            sum->worst = lost / all;
            sum->worst_name = parameter->name;
        }
    }
    free(stats);
}

void run_check_underflow(RunState *state) {
    enum { FIRST_LOOK = 10, LOOK_EVERY = 1000 };
    const double worth_saying = 0.05;
    Run *run = &state->run;
    if (run->step != FIRST_LOOK && run->step % LOOK_EVERY != 0)
        return;
    ScaleKind kind = run->scaler ? scaler_rule(run->scaler)->kind : SCALE_NONE;
    if (policy_preset(run->engine->policy)->low != FORMAT_FP16 ||
        (kind != SCALE_NONE && kind != SCALE_STATIC))
        return;
    Vanished sum = {0};
    for (int i = 0; i < run->optimizer_count; i++)
        add_vanished(&sum, run->optimizers[i]);
    if (!(sum.all > 0) || sum.lost / sum.all < worth_saying)
        return;
    run_diagnose(run, "no_scaler", "",
                 "%.0f %% of the gradients became zero in fp16 at scale %g (%.0f %% in %.60s): use "
                 "--loss-scale dynamic",
                 100 * sum.lost / sum.all, run->scale_last, 100 * sum.worst,
                 sum.worst_name ? sum.worst_name : "one");
}

// ---- steps that nobody ended -------------------------------------------------------------------

void run_check_steps(RunState *state) {
    Run *run = &state->run;
    uint64_t applied = 0;
    for (int i = 0; i < run->optimizer_count; i++)
        applied += optimizer_applied(run->optimizers[i]);
    if (run->step > 0 || applied == 0 || !run->scaler)
        return;
    run_diagnose(run, "no_step_ended", "",
                 "the optimizers were applied %llu times, but no step was counted: a step ends at "
                 "scaler:update(), and the run's scaler was never updated; use it in every step, "
                 "or call run:scaler() in none",
                 (unsigned long long)applied);
}

// ---- the loss -----------------------------------------------------------------------------------

void run_check_loss(RunState *state, const char *series, double value, int64_t step) {
    if (strncmp(series, "loss", 4) != 0)
        return;
    state->loss_step = step;
    if (isfinite(value))
        return;
    state->bad_loss_step = step;
    bool is_fp16 = policy_preset(state->run.engine->policy)->low == FORMAT_FP16;
    const char *what = isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    run_diagnose(&state->run, "loss_not_finite", "",
                 "%.60s is %s after step %lld: the forward pass overflowed, which no loss scale "
                 "mends%s; look for large activations, log(0) and divisions, or lower the learning "
                 "rate",
                 series, what, (long long)step,
                 is_fp16 ? " (fp16 ends at 65504: try -p bf16, or fp32 for the last layers)" : "");
}

// ---- what sampled steps show --------------------------------------------------------------------

void run_check_activations(RunState *state, int layer, double largest) {
    const double end_of_fp16 = 65504, near = 0.9;
    if (!(largest >= near * end_of_fp16) || !isfinite(largest))
        return;
    const char *name = policy_layer(state->run.engine->policy, layer)->name;
    run_diagnose(&state->run, "near_overflow", name,
                 "%.60s gives values up to %.0f, and fp16 ends at 65504: use --layer %.60s=bf16",
                 name, largest, name);
}

void run_check_casts(RunState *state) {
    enum { SAMPLES = 20 };
    const double worth_saying = 0.4;
    double share = run_cast_share(&state->run);
    if (state->sampler.count < SAMPLES || !(share > worth_saying))
        return;
    run_diagnose(&state->run, "casting", "",
                 "%.0f %% of the time of steps goes into casts between formats: the layers are too "
                 "small to gain from low precision; try -p fp32, or larger batches",
                 100 * share);
}
