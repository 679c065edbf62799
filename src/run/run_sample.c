// What is measured on a few steps a second only: the time of layers and casts, how far updates move
// weights, how large activations in fp16 become. And the energy, once a second.
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "run/recorder_private.h"
#include "run/run_private.h"

static const double sample_interval = 0.2, energy_interval = 1;
static const double look_price = 300; // looking at activations takes 1/300 of the time at most

void run_sample_energy(Run *run) {
    RunState *state = run_state(run);
    double now = clock_seconds();
    if (now < state->next_energy && run->ended == 0)
        return;
    state->next_energy = now + energy_interval;
    energy_sample(&state->energy);
}

double run_cast_share(const Run *run) {
    const RunSampler *sampler = &((const RunState *)run)->sampler;
    return sampler->total_seconds > 0 ? sampler->cast_seconds / sampler->total_seconds
                                      : (double)NAN;
}

void run_free_sampler(RunState *state) {
    free(state->sampler.seconds);
    free(state->sampler.largest);
    free(state->sampler.moved);
    free(state->sampler.moves);
}

// Room for so many layers; false: no sample this time.
static bool make_room(RunSampler *sampler, int layers) {
    if (layers <= sampler->layers)
        return true;
    double *seconds = realloc(sampler->seconds, (size_t)layers * sizeof *seconds);
    if (seconds)
        sampler->seconds = seconds;
    float *largest = realloc(sampler->largest, (size_t)layers * sizeof *largest);
    if (largest)
        sampler->largest = largest;
    ParameterMove *moved = realloc(sampler->moved, (size_t)layers * sizeof *moved);
    if (moved)
        sampler->moved = moved;
    if (!seconds || !largest || !moved)
        return false;
    sampler->layers = layers;
    return true;
}

void run_sample_soon(RunState *state) {
    enum { MOST = 5 };
    RunSampler *sampler = &state->sampler;
    if (sampler->looks_for_fault == MOST)
        return;
    sampler->looks_for_fault++;
    sampler->seeks = true;
    sampler->next = sampler->next_look = 0;
}

static void begin_sample(RunState *state, double now) {
    Run *run = &state->run;
    RunSampler *sampler = &state->sampler;
    int layers = policy_layer_count(run->engine->policy);
    sampler->next = now + sample_interval;
    if (!make_room(sampler, layers))
        return;
    bool looks = now >= sampler->next_look;
    for (int i = 0; i < layers; i++) {
        sampler->seconds[i] = 0;
        sampler->largest[i] = 0;
        sampler->moved[i] = (ParameterMove){0, 0};
    }
    sampler->profile = (EngineProfile){.layers = layers,
                                       .seconds = sampler->seconds,
                                       .largest = looks ? sampler->largest : NULL,
                                       .seeks = sampler->seeks,
                                       .poisoned = -1};
    for (int i = 0; i < run->optimizer_count; i++)
        if (!optimizer_measure(run->optimizers[i], NULL))
            return; // no sample this time
    run->engine->profile = &sampler->profile;
    sampler->began = run_clock(run);
}

static void add_moves(RunState *state, Optimizer *optimizer) {
    RunSampler *sampler = &state->sampler;
    int count = optimizer_parameter_count(optimizer);
    if (count > sampler->move_count) {
        ParameterMove *moves = realloc(sampler->moves, (size_t)count * sizeof *moves);
        if (!moves)
            return;
        sampler->moves = moves;
        sampler->move_count = count;
    }
    optimizer_read_moves(optimizer, sampler->moves);
    run_check_moves(state, optimizer, sampler->moves);
    for (int i = 0; i < count; i++) {
        const Parameter *parameter = parameter_of(optimizer_parameter(optimizer, i));
        if (!parameter || parameter->layer >= sampler->profile.layers ||
            isnan(sampler->moves[i].change_squared))
            continue;
        ParameterMove *sum = &sampler->moved[parameter->layer];
        sum->change_squared += sampler->moves[i].change_squared;
        sum->before_squared += sampler->moves[i].before_squared;
    }
}

static void end_sample(RunState *state, double now, unsigned applied) {
    Run *run = &state->run;
    RunSampler *sampler = &state->sampler;
    const EngineProfile *profile = &sampler->profile;
    run->engine->profile = NULL;
    sampler->count++;
    sampler->total_seconds += run_clock(run) - sampler->began - profile->look_seconds;
    sampler->cast_seconds += profile->cast_seconds;
    sampler->operations += profile->operations;
    for (int layer = 0; layer < profile->layers; layer++)
        sampler->op_seconds += profile->seconds[layer];
    if (profile->largest)
        sampler->next_look = now + fmax(sample_interval, look_price * profile->look_seconds);
    for (int i = 0; i < run->optimizer_count; i++)
        if (applied >> i & 1)
            add_moves(state, run->optimizers[i]);
    for (int layer = 1; layer < profile->layers; layer++) {
        const ParameterMove *moved = &sampler->moved[layer];
        double ratio = moved->before_squared > 0
                           ? sqrt(moved->change_squared / moved->before_squared)
                           : (double)NAN;
        if (run->recorder && (profile->seconds[layer] > 0 || !isnan(ratio)))
            recorder_profile(run->recorder, layer - 1, profile->seconds[layer], ratio);
        if (profile->largest)
            run_check_activations(state, layer, (double)profile->largest[layer]);
    }
    sampler->seeks = false;
    if (profile->fault.cause != FORWARD_SOUND)
        run_check_fault(state, &profile->fault);
    if (profile->poisoned >= 0 && applied != 0) // else it was taken back
        run_check_statistics(state, profile->poisoned);
    run_check_casts(state);
    run_check_kernels(state);
}

void run_drop_sample(RunState *state) {
    if (state->run.engine->profile == &state->sampler.profile)
        state->run.engine->profile = NULL;
}

void run_sample_step(RunState *state, unsigned applied) {
    double now = clock_seconds();
    if (now >= state->next_energy)
        run_sample_energy(&state->run);
    if (state->run.engine->profile == &state->sampler.profile)
        end_sample(state, now, applied);
    else if (now >= state->sampler.next)
        begin_sample(state, now);
}
