// The flight recorder: a ring of what the last steps were like, layer by layer, and the first
// number that is not finite and should be (ops/lookout.h). A step that is skipped because the loss
// scale was too large is none: such is how a scale is found.
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
    const MultiKernels *multi = run->device->backend->multi;
    const Tensor *tensor = optimizer_parameter(optimizer, ring->parameter++);
    const Parameter *parameter = parameter_of(tensor);
    if (!parameter || parameter->layer >= ring->layers || !view_is_dense(&tensor->view))
        return;
    float *row = row_of(ring, ring->count, parameter->layer);
    row[KEPT_WEIGHT] = (float)multi->largest(run->device, &tensor->view);
}

static float known(const Lookout *lookout, const float *largest, int layer) {
    return layer < lookout->layers && largest[layer] > 0 ? largest[layer] : NAN;
}

// What was looked at in the step.
static void keep_looks(FlightRing *ring, const Lookout *lookout, int64_t at) {
    const FaultOrigin *overflow = lookout_origin(lookout, lookout->step.of_overflow);
    ring->overflowed[at % FLIGHT_STEPS] = overflow ? overflow->layer : -1;
    if (overflow && ring->overflowed_from == 0)
        ring->overflowed_from = ring->step[at % FLIGHT_STEPS];
    for (int layer = 0; layer < ring->layers; layer++) {
        float *row = row_of(ring, at, layer);
        row[KEPT_ACTIVATION] = known(lookout, lookout->forward, layer);
        row[KEPT_GRADIENT] = known(lookout, lookout->backward, layer);
        row[KEPT_WEIGHT] = known(lookout, lookout->weights, layer);
        row[KEPT_NEAR] = row[KEPT_SCALE] = NAN;
    }
}

static void keep_step(RunState *state, int64_t step) {
    FlightRing *ring = &state->flight;
    const Engine *engine = state->run.engine;
    if (!make_room(ring, policy_layer_count(engine->policy)))
        return; // a page less
    const int at = (int)(ring->count % FLIGHT_STEPS);
    ring->step[at] = step;
    ring->scale[at] = (double)NAN;
    keep_looks(ring, &engine->lookout, ring->count);
    if (engine->lookout.is_open && !lookout_is_late(engine))
        keep_weight(state);
    ring->count++;
}

bool run_note_flight(RunState *state, StepNote *note, Error *error) {
    Engine *engine = state->run.engine;
    note->faults = engine->lookout.step;
    if (!state->run.is_silent)
        keep_step(state, note->step);
    lookout_end_step(&engine->lookout);
    return lookout_report(engine, state->reports, &note->looks, error);
}

void run_settle_flight(RunState *state, StepNote *note, int place) {
    Engine *engine = state->run.engine;
    const int64_t at = run_flight_at(&state->flight, note->step);
    if (!lookout_is_late(engine))
        return;
    lookout_settle(engine, state->reports, place, &note->looks);
    note->faults = engine->lookout.step;
    if (at >= 0)
        keep_looks(&state->flight, &engine->lookout, at);
    lookout_end_step(&engine->lookout);
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
static void add_gradients(RunState *state, const StepReport *report, int64_t at,
                          double scale_before) {
    FlightRing *ring = &state->flight;
    GradStats room;
    ring->scale[at % FLIGHT_STEPS] = scale_before;
    for (int i = 0; i < report->note->optimizer_count; i++) {
        const Optimizer *optimizer = state->run.optimizers[i];
        const GradientNote *notes = report->note->optimizers[i].gradients.each;
        const double scale = run_scale_of(state, report, i).before;
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
            row[KEPT_SCALE] = (float)scale;
        }
    }
}

// ---- what is amiss ------------------------------------------------------------------------------

typedef struct BrokenGradient { // the first that came, on the way back, of those not finite
    const Tensor *tensor;       // NULL: none
    uint64_t arrived;
    uint32_t fault;  // see GradientNote
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
                                         notes[k].fault, has_spread};
        }
    }
    return first;
}

// Where a gradient that was not finite before any rounding came from.
static const FaultOrigin *origin_of(const Engine *engine, const BrokenGradient *broken,
                                    const StepNote *note) {
    const Lookout *lookout = &engine->lookout;
    const uint32_t number = lookout_number(engine, &note->looks, broken->fault);
    if (!broken->has_spread)
        return NULL;
    const FaultOrigin *origin = lookout_origin(lookout, number);
    return origin ? origin : lookout_origin(lookout, note->faults.of_walk);
}

// Whether a smaller scale would have done, and the rule makes it smaller.
static bool is_for_the_scale(const StepScale *scale, const FaultOrigin *origin) {
    const ScaleKind kind = scale->rule ? scale->rule->kind : SCALE_NONE;
    const bool falls = kind != SCALE_NONE && kind != SCALE_STATIC &&
                       scale->before > (kind == SCALE_DYNAMIC ? fmax(scale->rule->floor, 0) : 1);
    const bool overflows = origin && origin->is_backward &&
                           (origin->cause == FAULT_OVERFLOWED || origin->cause == FAULT_SUMMED);
    return falls && (!origin || origin->scales || overflows);
}

// Of the optimizer that skipped the step, else of the one that marks the steps.
static StepScale scale_in(const RunState *state, const StepReport *report, double before,
                          bool was_skipped) {
    const StepNote *note = report->note;
    if (was_skipped)
        return run_scale_of(state, report, state->waiting.optimizer);
    return note->scaler ? (StepScale){&note->rule, run_reported_scale(report), before, false}
                        : (StepScale){.before = 1};
}

void run_fly(RunState *state, const StepReport *report, double scale_before, bool was_skipped) {
    const StepNote *note = report->note;
    const Lookout *lookout = &state->run.engine->lookout;
    const int64_t at = run_flight_at(&state->flight, note->step);
    if (state->run.is_silent || state->flight.is_told)
        return;
    const StepScale scale = scale_in(state, report, scale_before, was_skipped);
    if (at >= 0)
        add_gradients(state, report, at, note->scaler ? scale_before : 1);
    const FaultOrigin *origin = lookout_origin(lookout, note->faults.of_loss);
    BrokenGradient broken = {.tensor = NULL};
    if (!origin && was_skipped && lookout->is_open) {
        broken = find_gradient(state, report);
        if (broken.tensor)
            origin = origin_of(state->run.engine, &broken, note);
    }
    // What overflows on the way forward and is divided by makes a nan on the way back.
    const FaultOrigin *first = lookout_origin(lookout, note->faults.of_overflow);
    if (origin && origin->is_backward && origin->is_nan && first && at >= 0 &&
        !is_for_the_scale(&scale, origin)) {
        run_tell_vanished(state, first, was_skipped);
        return;
    }
    const FaultOrigin *kept = was_skipped ? NULL : lookout_origin(lookout, note->faults.of_buffer);
    if (kept) // where the step is skipped it is taken back
        run_check_buffer(state, kept);
    if (!origin)
        origin = kept;
    if ((origin || broken.tensor) && !is_for_the_scale(&scale, origin))
        run_tell_flight(state, origin, broken.tensor, &scale, was_skipped);
}
