// The flight recorder: a ring of what the last steps were like, layer by layer, and the first
// number that is not finite and should be. Where the device can be asked (ops/lookout.h) that is
// found in the step itself. A step that is skipped because the loss scale was too large is none:
// such is how a scale is found.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run/run_private.h"

// ---- the ring -----------------------------------------------------------------------------------

void run_free_flight(RunState *state) {
    free(state->flight.values);
    state->flight = (FlightRing){.values = NULL};
}

static bool make_room(FlightRing *ring, int layers) {
    if (layers <= ring->layers)
        return true;
    free(ring->values);
    ring->values =
        malloc((size_t)FLIGHT_STEPS * (size_t)layers * KEPT_VALUES * sizeof *ring->values);
    ring->layers = ring->values ? layers : 0;
    ring->count = 0;
    return ring->values != NULL;
}

static float *row_of(const FlightRing *ring, int64_t at, int layer) {
    return ring->values + ((at % FLIGHT_STEPS) * ring->layers + layer) * (int64_t)KEPT_VALUES;
}

int64_t run_flight_at(const FlightRing *ring, int64_t step) {
    for (int64_t at = ring->count - 1; at >= 0 && at > ring->count - 1 - FLIGHT_STEPS; at--)
        if (ring->step[at % FLIGHT_STEPS] == step)
            return at;
    return -1;
}

// One parameter a step, by turns: all of them would cost what an optimizer does.
static void keep_weight(RunState *state) {
    const Run *run = &state->run;
    FlightRing *ring = &state->flight;
    if (run->optimizer_count == 0)
        return;
    if (ring->optimizer >= run->optimizer_count)
        ring->optimizer = ring->parameter = 0;
    const Optimizer *optimizer = run->optimizers[ring->optimizer];
    if (ring->parameter >= optimizer_parameter_count(optimizer)) {
        ring->optimizer++;
        ring->parameter = 0;
        return;
    }
    const Tensor *tensor = optimizer_parameter(optimizer, ring->parameter++);
    const Parameter *parameter = parameter_of(tensor);
    if (!parameter || parameter->layer >= ring->layers || !view_is_dense(&tensor->view))
        return;
    float *row = row_of(ring, ring->count, parameter->layer);
    row[KEPT_WEIGHT] = (float)run->device->backend->multi->largest(run->device, &tensor->view);
}

static void keep_step(RunState *state, int64_t step) {
    FlightRing *ring = &state->flight;
    const Engine *engine = state->run.engine;
    const Lookout *lookout = &engine->lookout;
    if (!make_room(ring, policy_layer_count(engine->policy)))
        return; // a page less
    const int at = (int)(ring->count % FLIGHT_STEPS);
    ring->step[at] = step;
    ring->scale[at] = (double)NAN;
    for (int layer = 0; layer < ring->layers; layer++) {
        float *row = row_of(ring, at, layer);
        const float forward = layer < lookout->layers ? lookout->forward[layer] : 0;
        const float backward = layer < lookout->layers ? lookout->backward[layer] : 0;
        row[KEPT_ACTIVATION] = forward > 0 ? forward : NAN;
        row[KEPT_GRADIENT] = backward > 0 ? backward : NAN;
        row[KEPT_WEIGHT] = row[KEPT_NEAR] = NAN;
    }
    if (lookout->is_open)
        keep_weight(state);
    ring->count++;
}

void run_note_flight(RunState *state, StepNote *note) {
    Lookout *lookout = &state->run.engine->lookout;
    note->of_loss = lookout->of_loss;
    note->of_walk = lookout->of_walk;
    note->of_buffer = lookout->of_buffer;
    note->of_overflow = lookout->of_overflow;
    if (!state->run.is_silent)
        keep_step(state, note->step);
    lookout_end_step(lookout);
}

// Gradients that are at most a factor of 2 from where the format ends, at this scale.
static uint64_t count_near(const GradStats *stats, Format format, double scale) {
    uint64_t near = 0;
    const int end = ilogb(format_table[format].largest / scale) - EXPONENT_LOWEST;
    for (int i = end > 0 ? end : 0; i < EXPONENT_BINS; i++)
        near += stats->exponents[i];
    return near;
}

// What is counted of gradients comes with the report.
static void add_gradients(RunState *state, const StepReport *report, int64_t at, double scale) {
    FlightRing *ring = &state->flight;
    GradStats room;
    ring->scale[at % FLIGHT_STEPS] = scale;
    for (int i = 0; i < report->note->optimizer_count; i++) {
        const Optimizer *optimizer = state->run.optimizers[i];
        const GradientNote *notes = report->note->optimizers[i].gradients.each;
        for (int k = 0; k < optimizer_parameter_count(optimizer); k++) {
            const GradStats *stats = run_reported_stats(report, i, k, &room);
            const Parameter *parameter = parameter_of(optimizer_parameter(optimizer, k));
            if (!stats || !parameter || stats->count == 0 || parameter->layer >= ring->layers)
                continue;
            float *row = row_of(ring, at, parameter->layer);
            const bool is_broken = stats->nans + stats->infs + stats->overflowed > 0;
            const float largest = is_broken ? INFINITY : (float)((double)stats->largest * scale);
            const float near =
                (float)((double)count_near(stats, notes[k].round_to, scale) / (double)stats->count);
            row[KEPT_GRADIENT] = fmaxf(row[KEPT_GRADIENT], largest); // either may be NaN
            row[KEPT_NEAR] = fmaxf(row[KEPT_NEAR], near);
        }
    }
}

// ---- what is amiss ------------------------------------------------------------------------------

typedef struct BrokenGradient { // the first that came, on the way back, of those not finite
    const Tensor *tensor;       // NULL: none
    uint64_t arrived;
    bool has_spread; // it was not finite before it was rounded
} BrokenGradient;

static BrokenGradient find_gradient(const RunState *state, const StepReport *report) {
    BrokenGradient first = {.tensor = NULL};
    GradStats room;
    for (int i = 0; i < report->note->optimizer_count; i++) {
        const Optimizer *optimizer = state->run.optimizers[i];
        const GradientNote *notes = report->note->optimizers[i].gradients.each;
        for (int k = 0; k < optimizer_parameter_count(optimizer); k++) {
            const GradStats *stats = run_reported_stats(report, i, k, &room);
            if (!stats || stats->nans + stats->infs + stats->overflowed == 0)
                continue;
            const bool has_spread = stats->nans + stats->infs > 0;
            const bool is_nearer = notes[k].arrived < first.arrived;
            if (!first.tensor || (has_spread && !first.has_spread) ||
                (has_spread == first.has_spread && is_nearer))
                first = (BrokenGradient){optimizer_parameter(optimizer, k), notes[k].arrived,
                                         has_spread};
        }
    }
    return first;
}

// Where a gradient that was not finite before any rounding came from.
static const FaultOrigin *origin_of(const Lookout *lookout, const BrokenGradient *broken,
                                    uint32_t of_walk) {
    const FaultOrigin *origin = NULL;
    if (!broken->has_spread)
        return NULL;
    if (broken->tensor->grad)
        origin = lookout_origin(lookout, broken->tensor->grad->storage->fault);
    return origin ? origin : lookout_origin(lookout, of_walk);
}

// Whether a smaller scale would have done, and the rule makes it smaller.
static bool is_for_the_scale(const StepNote *note, const FaultOrigin *origin, double scale) {
    const ScaleKind kind = note->scaler ? note->rule.kind : SCALE_NONE;
    const bool falls = kind != SCALE_NONE && kind != SCALE_STATIC &&
                       scale > (kind == SCALE_DYNAMIC ? fmax(note->rule.floor, 0) : 1);
    const bool overflows = origin && origin->is_backward &&
                           (origin->cause == FAULT_OVERFLOWED || origin->cause == FAULT_SUMMED);
    return falls && (!origin || origin->scales || overflows);
}

void run_fly(RunState *state, const StepReport *report, double scale, bool was_skipped) {
    const StepNote *note = report->note;
    const Lookout *lookout = &state->run.engine->lookout;
    const int64_t at = run_flight_at(&state->flight, note->step);
    if (state->run.is_silent || state->flight.is_told)
        return;
    if (!note->scaler)
        scale = 1;
    if (at >= 0)
        add_gradients(state, report, at, scale);
    const FaultOrigin *origin = lookout_origin(lookout, note->of_loss);
    BrokenGradient broken = {.tensor = NULL};
    if (!origin && was_skipped && lookout->is_open) {
        broken = find_gradient(state, report);
        if (broken.tensor)
            origin = origin_of(lookout, &broken, note->of_walk);
    }
    const FaultOrigin *kept = was_skipped ? NULL : lookout_origin(lookout, note->of_buffer);
    if (kept) // where the step is skipped it is taken back
        run_check_buffer(state, kept);
    if (!origin)
        origin = kept;
    if ((origin || broken.tensor) && !is_for_the_scale(note, origin, scale))
        run_tell_flight(state, origin, broken.tensor, scale, was_skipped);
}

void run_fly_late(RunState *state, const ForwardFault *fault) {
    static const FaultCause causes[] = {[FORWARD_OVERFLOWED] = FAULT_OVERFLOWED,
                                        [FORWARD_MADE] = FAULT_MADE,
                                        [FORWARD_WEIGHT] = FAULT_WEIGHT,
                                        [FORWARD_GIVEN] = FAULT_GIVEN};
    if (state->run.engine->lookout.is_open || state->run.is_silent)
        return;
    FaultOrigin origin = {.cause = causes[fault->cause],
                          .op = fault->op,
                          .layer = fault->layer,
                          .walked = OP_COUNT,
                          .divides = fault->divides,
                          .is_nan = fault->is_nan,
                          .view = {.format = fault->format},
                          .nans = -1,
                          .infs = -1};
    utf8_copy(origin.weight, sizeof origin.weight, fault->weight);
    run_tell_flight(state, &origin, NULL, state->run.scale_last, false);
}
