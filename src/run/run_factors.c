// What becomes of the numbers that layers in scaled formats multiply, counted in a step now and
// then: gradients of weights, which the device counts in every step, are rounded to what tensors
// are kept in, and tell nothing of such scales.
//
// Counting reads every factor back to the host, and makes its step longer: that step is timed for
// nothing else, and the next comes when this one's price is a small part of what passed.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run/recorder_private.h"
#include "run/run_private.h"

static const double least_interval = 0.2; // seconds
static const double price = 300;          // counting takes 1/300 of the time at most
static const double share_of_run = 64;    // a run of whatever length has a few hundred such steps

static bool has_scaled_layer(const Policy *policy) {
    for (int i = 1; i < policy_layer_count(policy); i++) {
        const PolicyLayer *layer = policy_layer(policy, i);
        if (layer->knows_computed && format_is_scaled(layer->computed))
            return true;
    }
    return false;
}

static bool make_room(FactorSampler *sampler, int layers) {
    if (layers > sampler->room) {
        void *counts =
            realloc(sampler->table.counts, (size_t)layers * sizeof *sampler->table.counts);
        if (!counts)
            return false;
        sampler->table.counts = counts;
        sampler->room = layers;
    }
    memset(sampler->table.counts, 0, (size_t)layers * sizeof *sampler->table.counts);
    sampler->table.layers = layers;
    sampler->table.seconds = 0;
    return true;
}

bool run_begin_factors(RunState *state, double now) {
    Run *run = &state->run;
    FactorSampler *sampler = &state->factors;
    if (now < sampler->next || sampler->under_way || !run->recorder || run->engine->factors ||
        run->options->profiles)
        return false;
    sampler->next = now + least_interval;
    if (!has_scaled_layer(run->engine->policy) ||
        !make_room(sampler, policy_layer_count(run->engine->policy)))
        return false;
    run->engine->factors = &sampler->table;
    return true;
}

void run_drop_factors(RunState *state) {
    if (state->run.engine->factors == &state->factors.table)
        state->run.engine->factors = NULL;
}

bool run_end_factors(RunState *state, double now) {
    FactorSampler *sampler = &state->factors;
    if (state->run.engine->factors != &sampler->table)
        return false;
    run_drop_factors(state);
    state->watch_seconds += sampler->table.seconds;
    sampler->next = now + fmax(fmax(least_interval, price * sampler->table.seconds),
                               run_clock_at(state, now) / share_of_run);
    sampler->under_way = true;
    return true;
}

void run_look_at_factors(RunState *state, int64_t step) {
    static const char *const roles[FACTOR_ROLES] = {[FACTOR_ACTIVATION] = "activation",
                                                    [FACTOR_WEIGHT] = "weight",
                                                    [FACTOR_GRADIENT] = "gradient"};
    const Run *run = &state->run;
    FactorSampler *sampler = &state->factors;
    sampler->under_way = false;
    for (int i = 1; i < sampler->table.layers; i++)
        for (int role = 0; role < FACTOR_ROLES; role++) {
            const FactorCounts *counts = &sampler->table.counts[i][role];
            if (counts->count == 0)
                continue;
            LayerFactors row = {.step = step,
                                .layer = i - 1,
                                .count = counts->count,
                                .flushed = counts->flushed,
                                .subnormal = counts->subnormal,
                                .saturated = counts->saturated,
                                .broken = counts->broken};
            row.has_scales = factors_scales(counts, &row.least, &row.middle, &row.most);
            utf8_copy(row.role, sizeof row.role, roles[role]);
            utf8_copy(row.precision, sizeof row.precision,
                      format_name(policy_layer(run->engine->policy, i)->computed));
            recorder_factors(run->recorder, &row);
        }
}

void run_free_factors(RunState *state) {
    free(state->factors.table.counts);
}
