// Layers whose gradients are nothing but zeros, step after step, while others learn, or all of them
// from the first step on: looked at over ten steps now and then, as one step's may be by chance.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shortest.h"
#include "run/run_private.h"

enum { FIRST_STEP = 30, STEPS = 10, EVERY = 1000, LEAST = 8 };

void run_free_zeros(RunState *state) {
    free(state->zeros.layers);
}

// Begins over; false: there is no memory for it, and nothing is told.
static bool begin(ZeroLayers *zeros, int layers) {
    ZeroLayer *list = realloc(zeros->layers, (size_t)layers * sizeof *list);
    if (!list)
        return false;
    memset(list, 0, (size_t)layers * sizeof *list);
    *zeros = (ZeroLayers){.layers = list, .count = layers};
    return true;
}

// What has come is not 0, or became so by being rounded here, which is another diagnosis.
static void add_step(RunState *state, const StepReport *report, int at) {
    const Optimizer *optimizer = state->run.optimizers[at];
    ZeroLayers *zeros = &state->zeros;
    GradStats room;
    for (int i = 0; i < optimizer_parameter_count(optimizer); i++) {
        const Parameter *parameter = parameter_of(optimizer_parameter(optimizer, i));
        const GradStats *stats = run_reported_stats(report, at, i, &room);
        if (!stats || !parameter || parameter->layer < 0 || parameter->layer >= zeros->count)
            continue;
        ZeroLayer *layer = &zeros->layers[parameter->layer];
        layer->seen_at = report->note->step;
        layer->is_alive |= stats->zeros < stats->count;
    }
}

static void count_step(ZeroLayers *zeros, int64_t step) {
    for (int i = 0; i < zeros->count; i++)
        zeros->layers[i].steps += zeros->layers[i].seen_at == step;
}

static bool is_dead(const ZeroLayer *layer) {
    return layer->steps >= LEAST && !layer->is_alive;
}

// "conv1, norm1, conv2 and 2 more".
static int name_dead(const Run *run, const ZeroLayers *zeros, char *out, size_t size) {
    enum { NAMED = 3 };
    int count = 0;
    size_t used = 0;
    out[0] = 0;
    for (int i = 1; i < zeros->count; i++) {
        if (!is_dead(&zeros->layers[i]) || count++ >= NAMED)
            continue;
        used += (size_t)snprintf(out + used, size - used, "%s%.40s", used > 0 ? ", " : "",
                                 policy_layer(run->engine->policy, i)->name);
    }
    if (count > NAMED)
        snprintf(out + used, size - used, " and %d more", count - NAMED);
    return count;
}

// What became inf on the way forward and 0 when it was divided by: the loss knows nothing of it,
// and no gradient comes back through it.
static bool tell_overflow(RunState *state, const StepReport *report, const char *names, int steps) {
    Run *run = &state->run;
    const FaultOrigin *origin =
        lookout_origin(&run->engine->lookout, report->note->faults.of_overflow);
    if (!origin || origin->layer == 0)
        return false;
    const char *layer = policy_layer(run->engine->policy, origin->layer)->name;
    const char *file = strrchr(origin->place, '/');
    run_diagnose(run, DIAGNOSIS_ZERO_GRADIENTS, layer,
                 "all gradients of %s have been zero for %d steps, before they were rounded: "
                 "nothing is learnt there; on the way forward %s in %.60s gives more than %s "
                 "holds%s%.60s%s: --layer %.60s=%s",
                 names, steps, op_table[origin->op].name, layer, format_name(origin->view.format),
                 origin->place[0] ? " (" : "", file ? file + 1 : origin->place,
                 origin->place[0] ? ")" : "", layer, format_name(FORMAT_BF16));
    run_tell_vanished(state, origin, false);
    return true;
}

// A weight of theirs that is 0 throughout, through which nothing comes back; NULL: none, or the
// device would have to be waited for.
static const Tensor *find_zero_weight(const RunState *state) {
    const Run *run = &state->run;
    const ZeroLayers *zeros = &state->zeros;
    if (lookout_is_late(run->engine))
        return NULL;
    for (int i = 0; i < run->optimizer_count; i++)
        for (int k = 0; k < optimizer_parameter_count(run->optimizers[i]); k++) {
            const Tensor *tensor = optimizer_parameter(run->optimizers[i], k);
            const Parameter *parameter = parameter_of(tensor);
            const bool is_matrix = tensor->view.ndim > 1 && view_is_dense(&tensor->view);
            if (is_matrix && parameter && parameter->layer > 0 && parameter->layer < zeros->count &&
                is_dead(&zeros->layers[parameter->layer]) &&
                run->device->backend->multi->largest(run->device, &tensor->view) == 0)
                return tensor;
        }
    return NULL;
}

// Whether fp32 would be news to one of them.
static bool is_one_low(const Run *run, const ZeroLayers *zeros) {
    for (int i = 1; i < zeros->count; i++) {
        const PolicyLayer *layer = policy_layer(run->engine->policy, i);
        const Format format =
            layer->knows_computed ? layer->computed : policy_preset(run->engine->policy)->low;
        if (is_dead(&zeros->layers[i]) && run_is_low(format))
            return true;
    }
    return false;
}

static void add_causes(const RunState *state, int count, Phrase *text) {
    const Tensor *zero = find_zero_weight(state);
    if (zero) {
        phrase_add(text, "%.60s is 0 throughout, and nothing comes through it: begin it at random",
                   run_name_of(zero));
        return;
    }
    const bool is_low = is_one_low(&state->run, &state->zeros);
    if (is_low)
        phrase_add(text,
                   "if numbers overflow or vanish on the way forward, fp32 of %s mends that "
                   "(--layer NAME=fp32; --twin fp32 finds which); ",
                   count > 1 ? "one of these layers" : "the layer");
    phrase_add(text,
               "%s the loss does not depend on %s, or what follows gives the same for all inputs "
               "(a relu of nothing above 0: a bias, or a rate that was too large)",
               is_low ? "else" : "either", count > 1 ? "them" : "it");
}

// ---- of all layers ------------------------------------------------------------------------------

// Gradients that were not 0 once, and are now, have done their work: such training is at its end.
static bool has_had_gradients(const RunState *state) {
    for (int i = 0; i < state->run.optimizer_count; i++)
        for (int k = 0; k < state->watched[i].growth_count; k++)
            if (state->watched[i].growth[k].usual.count > 0)
                return true;
    return false;
}

// What was trained elsewhere may have come to its end there.
static bool is_from_start(const RunState *state) {
    const Run *run = &state->run;
    for (int i = 0; i < run->options->typed_count; i++)
        if (strcmp(run->options->typed[i].name, "weights") == 0)
            return false;
    return run->forked_at == 0 && run->options->resumes == 0 && !(state->scale_of_weights > 0);
}

// A power of two that makes of this loss what a scale of 4096 makes of one of 1; 0: none that is
// larger than the scale there is.
static int fitting_exponent(const RunState *state) {
    enum { OF_ONE = 12, MOST = 100 };
    const double loss = state->loss_finite, scale = state->run.scale_last;
    if (!(loss > 0))
        return 0;
    const int exponent = OF_ONE - (int)floor(log2(loss));
    return exponent <= MOST && ldexp(1, exponent) > scale ? exponent : 0;
}

// Of a loss that is not small at this scale fp16 need not be the cause.
static void tell_all(RunState *state, const StepReport *report) {
    Run *run = &state->run;
    const ZeroLayers *zeros = &state->zeros;
    const bool has_no_loss = state->loss_began_anew && !(state->loss_finite > 0); // or it is 0
    int dead = 0;
    for (int i = 0; i < zeros->count; i++) {
        dead += is_dead(&zeros->layers[i]);
        if (zeros->layers[i].is_alive)
            return;
    }
    if (dead == 0 || policy_preset(run->engine->policy)->low != FORMAT_FP16 || has_no_loss ||
        !is_from_start(state) || has_had_gradients(state) ||
        tell_overflow(state, report, "all layers", STEPS))
        return;
    char scale[48] = "a larger first scale";
    const int exponent = fitting_exponent(state);
    if (exponent > 0)
        snprintf(scale, sizeof scale, "--loss-scale 2^%d", exponent);
    char loss[48] = "";
    if (state->loss_finite > 0)
        snprintf(loss, sizeof loss, " (%.3g)", state->loss_finite);
    run_diagnose(run, DIAGNOSIS_ZERO_GRADIENTS, "",
                 "all gradients of all layers have been zero in all %lld steps: nothing is learnt; "
                 "scale %s is too small for them in fp16, or the loss%s does not depend on the "
                 "parameters: a larger loss, %s, or -p bf16",
                 (long long)run->step, shortest_of_float(run->scale_last).text, loss, scale);
}

// ---- of some ------------------------------------------------------------------------------------

// Where none learns the loss itself is at fault.
static void tell(RunState *state, const StepReport *report) {
    Run *run = &state->run;
    const ZeroLayers *zeros = &state->zeros;
    char names[160], causes[EVENT_TEXT_SIZE];
    int alive = 0, last = 0, steps = STEPS;
    for (int i = 1; i < zeros->count; i++) {
        alive += zeros->layers[i].is_alive;
        if (!is_dead(&zeros->layers[i]))
            continue;
        last = i;
        steps = zeros->layers[i].steps < steps ? zeros->layers[i].steps : steps;
    }
    if (alive == 0)
        tell_all(state, report);
    if (last == 0 || alive == 0)
        return;
    const int count = name_dead(run, zeros, names, sizeof names);
    if (tell_overflow(state, report, names, steps))
        return;
    Phrase text = phrase_begin(causes, sizeof causes);
    add_causes(state, count, &text);
    run_diagnose(run, DIAGNOSIS_ZERO_GRADIENTS, policy_layer(run->engine->policy, last)->name,
                 "all gradients of %s have been zero for %d steps, before they were rounded: "
                 "nothing is learnt there; %s",
                 names, steps, causes);
}

// Of fp16 at a scale that does not move, that is told.
static bool is_told_elsewhere(const Run *run, const StepNote *note) {
    return policy_preset(run->engine->policy)->low == FORMAT_FP16 &&
           !run_scale_moves(note->scaler ? &note->rule : NULL);
}

void run_check_zeros(RunState *state, const StepReport *report, unsigned applied) {
    Run *run = &state->run;
    const int64_t at = run->step % EVERY - FIRST_STEP;
    ZeroLayers *zeros = &state->zeros;
    if (run->is_silent || at < 0 || at >= STEPS || is_told_elsewhere(run, report->note) ||
        (at == 0 && !begin(zeros, policy_layer_count(run->engine->policy))))
        return;
    for (int i = 0; i < report->note->optimizer_count; i++)
        if (applied >> i & 1)
            add_step(state, report, i);
    count_step(zeros, report->note->step);
    if (at == STEPS - 1)
        tell(state, report);
}
