// Layers whose gradients are nothing but zeros, step after step, while others learn: looked at over
// ten steps now and then, as one step's may be by chance.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        if (!stats || !parameter || parameter->layer <= 0 || parameter->layer >= zeros->count)
            continue;
        ZeroLayer *layer = &zeros->layers[parameter->layer];
        layer->seen_at = report->note->step;
        layer->is_alive |= stats->zeros < stats->count;
    }
}

static void count_step(ZeroLayers *zeros, int64_t step) {
    for (int i = 1; i < zeros->count; i++)
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

// Where none learns the loss itself is at fault, and where all do nothing is.
static void tell(RunState *state, const StepReport *report) {
    Run *run = &state->run;
    const ZeroLayers *zeros = &state->zeros;
    char names[160];
    int alive = 0, last = 0, steps = STEPS;
    for (int i = 1; i < zeros->count; i++) {
        alive += zeros->layers[i].is_alive;
        if (!is_dead(&zeros->layers[i]))
            continue;
        last = i;
        steps = zeros->layers[i].steps < steps ? zeros->layers[i].steps : steps;
    }
    if (last == 0 || alive == 0)
        return;
    const int count = name_dead(run, zeros, names, sizeof names);
    if (tell_overflow(state, report, names, steps))
        return;
    run_diagnose(
        run, DIAGNOSIS_ZERO_GRADIENTS, policy_layer(run->engine->policy, last)->name,
        "all gradients of %s have been zero for %d steps, before they were rounded: nothing "
        "is learnt there; if numbers overflow or vanish on the way forward, fp32 of %s "
        "mends that (--layer NAME=fp32; --twin fp32 finds which); else the loss does not depend "
        "on %s",
        names, steps, count > 1 ? "one of these layers" : "the layer", count > 1 ? "them" : "it");
}

// In full precision no format is to blame; of fp16 at a scale that does not move, that is told.
static bool is_format_in_question(const Run *run, const StepNote *note) {
    const Format low = policy_preset(run->engine->policy)->low;
    return run_is_low(low) && (low != FORMAT_FP16 || run_scale_moves(note));
}

void run_check_zeros(RunState *state, const StepReport *report, unsigned applied) {
    Run *run = &state->run;
    const int64_t at = run->step % EVERY - FIRST_STEP;
    ZeroLayers *zeros = &state->zeros;
    if (run->is_silent || at < 0 || at >= STEPS || !is_format_in_question(run, report->note) ||
        (at == 0 && !begin(zeros, policy_layer_count(run->engine->policy))))
        return;
    for (int i = 0; i < report->note->optimizer_count; i++)
        if (applied >> i & 1)
            add_step(state, report, i);
    count_step(zeros, report->note->step);
    if (at == STEPS - 1)
        tell(state, report);
}
