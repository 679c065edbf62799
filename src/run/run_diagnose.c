// What a run can see by itself that its user should know.
#include <math.h>
#include <string.h>

#include "base/shortest.h"
#include "precision/untaken.h"
#include "run/run_private.h"
#include "run/twin_private.h"

bool run_check_rule(const Policy *policy, const RunLayerRule *rule, Error *error) {
    char hint[POLICY_HINT_SIZE];
    return policy_names(policy, rule->pattern, hint) ||
           error_fail(error, ERROR_USAGE,
                      "--layer%s %.200s%s%.60s: no layer of the model has such a name%s",
                      rule->file ? "s" : "", rule->file ? rule->file : "", rule->file ? ": " : "",
                      rule->pattern, hint);
}

bool run_is_low(Format format) {
    return format_trains(format) && format != FORMAT_FP32;
}

const char *run_layer_of(const Run *run, const Tensor *tensor) {
    const Parameter *parameter = parameter_of(tensor);
    return parameter ? policy_layer(run->engine->policy, parameter->layer)->name : "";
}

const char *run_name_of(const Tensor *tensor) {
    const Parameter *parameter = parameter_of(tensor);
    return parameter && parameter->name[0] ? parameter->name : "a parameter";
}

// Weights that are kept low lose updates smaller than half a step of their format.
static void check_masters(Run *run) {
    for (int i = 0; i < run->optimizer_count; i++)
        for (int j = 0; j < optimizer_parameter_count(run->optimizers[i]); j++) {
            const Tensor *tensor = optimizer_parameter(run->optimizers[i], j);
            if (!run_is_low(tensor->view.format))
                continue;
            const char *format = format_name(tensor->view.format);
            run_diagnose(run, DIAGNOSIS_NO_MASTERS, run_layer_of(run, tensor),
                         "%.60s and what is like it is kept in %s without an fp32 master: updates "
                         "under 1/%d of a weight are lost; use -p %s, which keeps masters",
                         run_name_of(tensor), format,
                         2 << format_table[tensor->view.format].mantissa_bits, format);
            return;
        }
}

// ---- sizes --------------------------------------------------------------------------------------

// Units that multiply low formats take blocks of 8 or 16; 0: both sides fill theirs.
static int64_t odd_side(const View *view) {
    enum { BLOCK = 8, LEAST = 32 }; // of small sides little is lost
    if (view->ndim < 2)
        return 0;
    const int64_t sides[] = {view->shape[0], view->shape[view->ndim - 1]};
    for (int i = 0; i < 2; i++)
        if (sides[i] >= LEAST && sides[i] % BLOCK != 0)
            return sides[i];
    return 0;
}

static void check_sizes(Run *run) {
    const double worth_saying = 0.25;
    const Tensor *worst = NULL;
    double all = 0;
    for (int i = 0; i < run->optimizer_count; i++)
        for (int j = 0; j < optimizer_parameter_count(run->optimizers[i]); j++) {
            const Tensor *tensor = optimizer_parameter(run->optimizers[i], j);
            const Parameter *parameter = parameter_of(tensor);
            if (!parameter || !run_is_low(parameter->round_to))
                continue;
            all += (double)tensor_count(tensor);
            if (parameter->is_factor && odd_side(&tensor->view) &&
                (!worst || tensor_count(tensor) > tensor_count(worst)))
                worst = tensor;
        }
    if (!worst || (double)tensor_count(worst) < worth_saying * all)
        return;
    int64_t side = odd_side(&worst->view);
    run_diagnose(run, DIAGNOSIS_ODD_SIZES, run_layer_of(run, worst),
                 "%.60s, used in %s, has a side of %lld: products in low formats go by blocks of 8 "
                 "or 16, and what is over costs as much as a block; take %lld",
                 run_name_of(worst), format_name(parameter_of(worst)->round_to), (long long)side,
                 (long long)((side + 7) / 8 * 8));
}

// ---- weights that come without their scale ------------------------------------------------------

void run_begin_with_weights(Run *run, double scale) {
    run_state(run)->scale_of_weights = scale;
}

static void check_scale_of_weights(RunState *state) {
    Run *run = &state->run;
    double was = state->scale_of_weights;
    if (!run->scaler || run->options->loss_scale || !(was > 0))
        return;
    const ScaleRule *rule = scaler_rule(run->scaler);
    double is = (double)scale_state_initial(rule).scale;
    if (rule->kind == SCALE_NONE || rule->kind == SCALE_STATIC || was == is)
        return;
    run_diagnose(run, DIAGNOSIS_NO_SCALER_STATE, "",
                 "the weights come from a checkpoint whose loss scale stood at %s, and this run "
                 "begins at %s with a fresh optimizer: the first steps may be skipped; resume "
                 "without --weights-only, or give --loss-scale",
                 shortest_of_float(was).text, shortest_of_float(is).text);
}

// ---- a recipe that nothing heeds ----------------------------------------------------------------

static void check_recipe(Run *run) {
    const Policy *policy = run->engine->policy;
    Format formats[FORMAT_COUNT] = {policy_preset(policy)->low};
    int count = 1;
    for (int i = 1; i < policy_layer_count(policy) && count < FORMAT_COUNT; i++) {
        const LayerPrecision own = policy_layer(policy, i)->own;
        bool is_new = own != LAYER_AUTO;
        for (int k = 0; k < count; k++)
            is_new = is_new && formats[k] != layer_precision_format(own);
        if (is_new)
            formats[count++] = layer_precision_format(own);
    }
    char text[EVENT_TEXT_SIZE], fact[RECORD_TEXT_SIZE];
    const char *wanted;
    const char *key =
        recipe_unheeded(policy_recipe(policy), formats, count, run->engine->has_norms, &wanted);
    if (!key || !run->options->recipe)
        return;
    snprintf(fact, sizeof fact, "nothing heeds %s so far: it is for layers in %s (-p, --layer)",
             key, wanted);
    run_add_fact(run, RECORD_FACT_UNHEEDED, fact);
    snprintf(text, sizeof text, "--recipe %.100s: %s", run->options->recipe, fact);
    run_tell(run, EVENT_LIFE, "", (double)NAN, text);
}

// ---- kinds to keep where all are kept -----------------------------------------------------------

// Whether a layer would have what is no product below fp32, were it not kept there.
static bool is_any_low(const Policy *policy) {
    const bool is_full = policy_preset(policy)->mode == POLICY_FULL;
    for (int i = 0; i < policy_layer_count(policy); i++) {
        const PolicyLayer *layer = policy_layer(policy, i);
        const AutocastRegion within = {.enabled = true};
        const Format low = policy_low_format(policy, i, layer->knows_op ? layer->region : within);
        if (format_is_scaled(low) ? !is_full : format_kept(low) != FORMAT_FP32)
            return true;
    }
    return false;
}

// A twin may heed it.
static void check_keep(Run *run) {
    const char *asked = run->options->keep_fp32;
    char text[EVENT_TEXT_SIZE];
    if (!asked || run->options->twin || is_any_low(run->engine->policy))
        return;
    snprintf(text, sizeof text,
             "--keep-fp32 %.100s: nothing heeds it so far: without a layer in bf16 or fp16 (-p, "
             "--layer) what is no product is in fp32 anyway",
             asked);
    run_tell(run, EVENT_LIFE, "", (double)NAN, text);
}

// ---- a layer that does not take its format ------------------------------------------------------

// None of those that it names: of a pattern for all it goes without saying that norms stay.
static void check_taken(Run *run, const RunLayerRule *rule) {
    char text[EVENT_TEXT_SIZE], more[32] = "";
    const Untaken untaken = untaken_find(run->engine->policy, rule->pattern, rule->precision);
    const PolicyLayer *layer = policy_layer(run->engine->policy, untaken.layer);
    if (untaken.count == 0 || untaken.others > 0 || !layer->region.enabled)
        return;
    if (untaken.count > 1)
        snprintf(more, sizeof more, " and %d more", untaken.count - 1);
    snprintf(text, sizeof text,
             "--layer%s %.100s%s%.60s=%s: %.60s%s compute%s in %s nevertheless: %s",
             rule->file ? "s" : "", rule->file ? rule->file : "", rule->file ? ": " : "",
             rule->pattern, layer_precision_name(rule->precision), layer->name, more,
             untaken.count > 1 ? "" : "s", format_name(untaken.computed), untaken.why);
    run_tell(run, EVENT_LIFE, "", (double)NAN, text);
}

bool run_check_layers(Run *run, Error *error) {
    RunState *state = run_state(run);
    if (state->knows_layers)
        return true;
    const RunOptions *options = run->options;
    for (int i = 0; i < options->layer_count; i++)
        if (!run_check_rule(run->engine->policy, &options->layers[i], error))
            return false;
    for (int i = 0; i < options->fork_layer_count; i++)
        if (!run_check_rule(run->engine->policy, &options->fork_layers[i], error))
            return false;
    state->knows_layers = true;
    if (options->layer_count > 0)
        run_announce(run);
    return twin_layers_known(state, error);
}

void run_check_setup(RunState *state) {
    const RunOptions *options = state->run.options;
    check_masters(&state->run);
    check_sizes(&state->run);
    check_scale_of_weights(state);
    check_recipe(&state->run);
    check_keep(&state->run);
    for (int i = 0; i < options->layer_count; i++)
        check_taken(&state->run, &options->layers[i]);
}

// ---- a loop that forgets to ask -----------------------------------------------------------------

// Layers that are kept in fp32 are as they should be. A script that uses autocast for some layers
// and not for others, or turns it off for these, means that.
void run_check_autocast(Run *run) {
    const Policy *policy = run->engine->policy;
    int forgotten = 0, refused = 0;
    Format asked = FORMAT_FP32, computed = FORMAT_FP32;
    if (policy_knows_autocast(policy))
        return;
    for (int i = 1; i < policy_layer_count(policy); i++) {
        const PolicyLayer *layer = policy_layer(policy, i);
        if (!layer->knows_computed || !layer->has_products)
            continue;
        if (run_is_low(layer->computed))
            return;
        const Format low = policy_low_format(policy, i, (AutocastRegion){.enabled = true});
        if (low == layer->computed)
            continue;
        refused += layer->region.refused;
        if (forgotten++ == 0) {
            asked = low;
            computed = layer->computed;
        }
    }
    if (forgotten == 0)
        return;
    run_diagnose(run, DIAGNOSIS_NO_AUTOCAST, "",
                 "nothing was computed in %s, which was asked for: %d layer%s %s, in %s; %s",
                 format_name(asked), forgotten, forgotten == 1 ? " multiplies" : "s multiply",
                 refused == forgotten ? "within mp.autocast(false, ..)" : "outside of autocast",
                 format_name(computed),
                 refused == forgotten ? "take the false away, or ask for -p fp32"
                 : refused > 0 ? "put mp.autocast around the model and its loss, without false"
                               : "put mp.autocast around the model and its loss");
}

// ---- steps that nobody ended -------------------------------------------------------------------

static void check_idle(Run *run) {
    for (int i = 0; i < run->optimizer_count; i++) {
        OptimizerReport report = optimizer_report(run->optimizers[i]);
        const Tensor *first = optimizer_parameter(run->optimizers[i], 0);
        int count = optimizer_parameter_count(run->optimizers[i]);
        if (report.applied + report.skipped > 0)
            continue;
        run_diagnose(run, DIAGNOSIS_NO_GRADIENT, run_layer_of(run, first),
                     "an optimizer over %d parameter%s (%.60s%s) made no step in %lld of the run: "
                     "what it trains stayed as it was made; call scaler:step on it too",
                     count, count == 1 ? "" : "s", run_name_of(first), count == 1 ? "" : ", ..",
                     (long long)run->step);
    }
}

// A loss that moves with its data may look as if something were learnt.
static void check_all_skipped(Run *run) {
    if (run->step == 0 || run->applied > 0 || run->skipped < run->step)
        return;
    run_diagnose(run, DIAGNOSIS_MANY_SKIPS, "",
                 "nothing was trained: %s skipped, as gradients were not finite, the last at a "
                 "scale of %s: take a smaller --loss-scale, or dynamic and more steps",
                 run->step == 1 ? "its only step was" : "all its steps were",
                 shortest_of_float(run->scale_last).text);
}

void run_check_steps(RunState *state, bool is_whole) {
    Run *run = &state->run;
    uint64_t applied = 0;
    run_end_loss(state);
    for (int i = 0; i < run->optimizer_count; i++)
        applied += optimizer_applied(run->optimizers[i]);
    if (run->step > 0)
        run_check_autocast(run);
    if (run->step > 0 && is_whole)
        check_idle(run);
    check_all_skipped(run);
    if (run->step > 0 || applied == 0 || !run->scaler)
        return;
    run_diagnose(run, DIAGNOSIS_NO_STEP_ENDED, "",
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
    if (strcmp(series, "loss") == 0)
        run_watch_loss(state, value, step);
    if (isfinite(value))
        return;
    state->bad_loss_step = step;
    run_sample_soon(state);
    bool is_fp16 = policy_preset(state->run.engine->policy)->low == FORMAT_FP16;
    const char *what = isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    run_diagnose(
        &state->run, DIAGNOSIS_LOSS_NOT_FINITE, "",
        "%.60s is %s after step %lld: it went wrong on the way forward, which no loss scale "
        "mends; look for large activations%s, log(0), divisions, and data that is not "
        "finite; where the next step shows it too, where it began is told",
        series, what, (long long)step, is_fp16 ? " (fp16 ends at 65504: -p bf16 would tell)" : "");
}

void run_check_data(Run *run, const char *what, const float *values, int64_t count,
                    int64_t samples) {
    int64_t bad = 0, first = 0;
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i]) && bad++ == 0)
            first = i / (count / samples) + 1;
    if (bad == 0)
        return;
    run_diagnose(
        run, DIAGNOSIS_DATA_NOT_FINITE, "",
        "%lld number%s of %s, data to train or test on, %s inf or nan, the first in sample "
        "%lld: a batch with such has a loss that is not finite; clean the data",
        (long long)bad, bad == 1 ? "" : "s", what, bad == 1 ? "is" : "are", (long long)first);
}

// ---- rates that a script moves ------------------------------------------------------------------

void run_check_rate(RunState *state, int i, double rate, bool has_skipped) {
    enum { IN_A_ROW = 3 }; // fewer may answer to something
    Run *run = &state->run;
    WatchedOptimizer *watched = &state->watched[i];
    double before = watched->rate;
    bool knows = watched->knows_rate, after_skip = watched->has_skipped;
    watched->knows_rate = true;
    watched->has_skipped = has_skipped;
    watched->rate = rate;
    watched->largest_rate = fmax(watched->largest_rate, rate);
    if (!knows)
        return;
    if (rate == before) {
        watched->moves_in_a_row = 0;
        watched->moved_on_skip = 0;
        return;
    }
    watched->moves_in_a_row++;
    if (after_skip && watched->moved_on_skip == 0) {
        watched->moved_on_skip = run->step - 1;
        watched->moved_from = before;
        watched->moved_to = rate;
    }
    if (watched->moves_in_a_row < IN_A_ROW || watched->moved_on_skip == 0)
        return;
    run_diagnose(run, DIAGNOSIS_SCHEDULE_ON_SKIP, "",
                 "step %lld was skipped, yet the script took the learning rate on from %g to %g: "
                 "its schedule runs ahead of the training; count with opt:steps(), or give the "
                 "optimizer a schedule of mp.optim.schedule",
                 (long long)watched->moved_on_skip, watched->moved_from, watched->moved_to);
}
