// Where no format mends what the flight recorder tells of: updates have carried the weights away,
// or would at the next one that is applied. The rate, or the loss, is to be smaller.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/shortest.h"
#include "run/run_private.h"

// ---- the weights --------------------------------------------------------------------------------

static const float *kept_weight(const FlightRing *ring, int64_t at, int layer) {
    return ring->values + ((at % FLIGHT_STEPS) * ring->layers + layer) * (int64_t)KEPT_VALUES +
           KEPT_WEIGHT;
}

// Of one layer, or RUN_ANY_LAYER. A device that runs on its own is not waited for: what was looked
// at in the last steps is known.
static void find_kept(const FlightRing *ring, const Policy *policy, int of,
                      LargestWeight *largest) {
    const int64_t oldest = ring->count > FLIGHT_STEPS ? ring->count - FLIGHT_STEPS : 0;
    for (int64_t at = oldest; at < ring->count; at++)
        for (int layer = 0; layer < ring->layers; layer++) {
            const double value = (double)*kept_weight(ring, at, layer);
            if ((of != RUN_ANY_LAYER && layer != of) || !isfinite(value) || value <= largest->value)
                continue;
            const char *name = policy_layer(policy, layer)->name;
            largest->value = value;
            snprintf(largest->name, sizeof largest->name, "a weight%s%.40s", name[0] ? " of " : "",
                     name);
        }
}

LargestWeight run_largest_weight(const RunState *state, int of) {
    const Run *run = &state->run;
    const MultiKernels *multi = run->device->backend->multi;
    LargestWeight largest = {.value = 0};
    if (lookout_is_late(run->engine)) {
        find_kept(&state->flight, run->engine->policy, of, &largest);
        return largest;
    }
    for (int i = 0; i < run->optimizer_count; i++)
        for (int k = 0; k < optimizer_parameter_count(run->optimizers[i]); k++) {
            const Tensor *tensor = optimizer_parameter(run->optimizers[i], k);
            const Parameter *parameter = parameter_of(tensor);
            if (of != RUN_ANY_LAYER && (!parameter || parameter->layer != of))
                continue;
            const double value = view_is_dense(&tensor->view)
                                     ? (double)multi->largest(run->device, &tensor->view)
                                     : 0;
            if (!isfinite(value) || value <= largest.value)
                continue;
            largest.value = value;
            snprintf(largest.name, sizeof largest.name, "%.60s", run_name_of(tensor));
        }
    return largest;
}

// ---- the rate -----------------------------------------------------------------------------------

// The script's own parameter, by the name that they all give it.
static const RecordParameter *find_rate(const Run *run) {
    for (int i = 0; i < run->parameter_count; i++) {
        const RecordParameter *parameter = &run->parameters[i];
        if (strcmp(parameter->name, "lr") == 0 && parameter->kind == RECORD_NUMBER &&
            parameter->number > 0)
            return parameter;
    }
    return NULL;
}

// Weights beyond what trained ones are tell it, and so does a loss that had grown far beyond where
// it began while it still was finite: the product of layers grows long before each of them has.
// Of the weights those of the layer itself are the likelier cause, and others are named as what
// they are: the largest, perhaps behind it.
bool run_say_grown(const RunState *state, int layer, char *text, size_t size) {
    const LargestWeight own = layer > 0 ? run_largest_weight(state, layer) : (LargestWeight){0};
    const LargestWeight largest = run_largest_weight(state, RUN_ANY_LAYER);
    const double times = 5, last = state->loss_finite;
    const double first = fmax(state->loss_first, state->loss_before_it);
    if (state->run.applied == 0)
        return false;
    if (own.value > FORWARD_BEYOND_TRAINED)
        snprintf(text, size, "%s has grown to %.3g", own.name, own.value);
    else if (largest.value > FORWARD_BEYOND_TRAINED)
        snprintf(text, size, "weights have grown, %s most, to %.3g", largest.name, largest.value);
    else if (first > 0 && last > times * first)
        snprintf(text, size, "the loss has grown from %.3g to %.3g", first, last);
    else
        return false;
    return true;
}

bool run_mend_grown(const RunState *state, int layer, Flight *flight) {
    enum { LEAST_STEPS = 8 }; // in fewer no guess of a rate is a good one
    char grown[GROWN_SIZE];
    if (!run_say_grown(state, layer, grown, sizeof grown))
        return false;
    snprintf(flight->remedy, sizeof flight->remedy,
             "%s: a lower learning rate, or a smaller loss, from before it grew; a format that "
             "ends later only puts it off",
             grown);
    const RecordParameter *rate = find_rate(&state->run);
    if (!rate || flight->count < LEAST_STEPS)
        return true;
    // What grew slowly, for as long as a ring holds, was not far too fast. A ring that is shorter
    // may be of a run that goes on, or of a fork: what came before it stays.
    const bool is_slow = flight->count == FLIGHT_STEPS && flight->steps[0] > 1;
    flight->from = flight->steps[0] - 1;
    snprintf(flight->change, sizeof flight->change, "lr=%s",
             shortest_of_float(rate->number / (is_slow ? 10 : 100)).text);
    return true;
}

// ---- the loss -----------------------------------------------------------------------------------

// The rate of a rule that takes gradients as they are, of any size; 0: there is none. What scripts
// clip is small once gradients are finite, be it by norm or by value.
static double plain_rate(const Run *run) {
    const bool clips = run->engine->clip.count > 0;
    double rate = 0;
    if (clips)
        return 0;
    for (int i = 0; i < run->optimizer_count; i++)
        if (!optimizer_is_adaptive(run->optimizers[i]) && !optimizer_holds_norm(run->optimizers[i]))
            rate = fmax(rate, optimizer_rate(run->optimizers[i]));
    return rate;
}

bool run_mend_large(const RunState *state, double scale, Flight *flight) {
    const LargestWeight largest = run_largest_weight(state, RUN_ANY_LAYER);
    const double update = plain_rate(&state->run) * flight->limit / scale;
    if (scale > 1 || !(largest.value > 0) || !(update > 10 * largest.value))
        return false;
    snprintf(flight->remedy, sizeof flight->remedy,
             "gradients are past %.5g at a loss scale of %s: an update would be over %.3g where "
             "weights are up to %.3g, which no format mends: a smaller loss (what it is multiplied "
             "by), or a lower learning rate",
             flight->limit, shortest_of_float(scale).text, update, largest.value);
    return true;
}
