// What is measured on a few steps a second only: the time of layers and casts, how far updates move
// weights, how large activations in fp16 become. And the energy, once a second.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/stops.h"
#include "run/recorder_private.h"
#include "run/run_private.h"

static const double sample_interval = 0.2, energy_interval = 1;
static const int64_t warm_steps = 3;  // before all are sampled: they make what others find made
static const double look_price = 300; // looking at activations takes 1/300 of the time at most

void run_sample_energy(Run *run) {
    RunState *state = run_state(run);
    double now = clock_seconds();
    if (now < state->next_energy && run->ended == 0)
        return;
    state->next_energy = now + energy_interval;
    run_look_at_energy(state);
}

void run_look_at_energy(RunState *state) {
    const int stops = stops_count();
    const bool counts = state->waits == 0 && stops == state->stops_of_energy;
    state->stops_of_energy = stops;
    (counts ? energy_sample : energy_leave_out)(&state->energy);
    (counts ? vitals_sample : vitals_leave_out)(&state->vitals);
}

double run_joules(const RunState *state) {
    return state->vitals.device ? state->vitals.joules : state->energy.joules;
}

void run_set_joules(RunState *state, double joules) {
    *(state->vitals.device ? &state->vitals.joules : &state->energy.joules) = joules;
}

double run_cast_share(const Run *run) {
    const RunSampler *sampler = &((const RunState *)run)->sampler;
    return sampler->total_seconds > 0 ? sampler->cast_seconds / sampler->total_seconds
                                      : (double)NAN;
}

double run_layers_share(const Run *run) {
    const RunSampler *sampler = &((const RunState *)run)->sampler;
    return sampler->total_seconds > 0 ? sampler->layer_seconds / sampler->total_seconds
                                      : (double)NAN;
}

bool run_profile(const Run *run, RunProfile *profile) {
    const RunSampler *sampler = &((const RunState *)run)->sampler;
    *profile = (RunProfile){.steps = sampler->count,
                            .seconds = sampler->total_seconds,
                            .late_steps = sampler->late_count,
                            .late_seconds = sampler->late_seconds,
                            .parts = &sampler->parts};
    return sampler->count > 0 && sampler->parts.layers > 0;
}

void run_free_sampler(RunState *state) {
    free(state->sampler.seconds);
    free(state->sampler.largest);
    free(state->sampler.moved);
    free(state->sampler.spans);
    parts_clear(&state->sampler.step);
    parts_clear(&state->sampler.parts);
    parts_clear(&state->sampler.late);
    tensor_release(state->sampler.found);
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

// What is found of values has its place on the device; without it there is nothing to look with.
static bool take_place(RunState *state) {
    const int64_t shape[1] = {2 * RUN_MOST_LOOKS};
    RunSampler *sampler = &state->sampler;
    if (!sampler->found)
        sampler->found =
            tensor_new(state->run.device, FORMAT_FP32, 1, shape, MEMORY_WORKSPACE, NULL);
    return sampler->found != NULL;
}

// How far updates move weights is left out where only time counts.
static bool measure_moves(Run *run) {
    bool done = true;
    for (int i = 0; i < run->optimizer_count && !run->options->profiles; i++)
        done = done && optimizer_measure(run->optimizers[i], NULL);
    return done;
}

static bool is_time(const RunState *state, double now) {
    const Run *run = &state->run;
    if (run->options->profiles)
        return run->step >= warm_steps;
    return now >= state->sampler.next;
}

void run_begin_sample(RunState *state, double now) {
    Run *run = &state->run;
    RunSampler *sampler = &state->sampler;
    bool profiles = run->options->profiles;
    if (now >= state->next_energy)
        run_sample_energy(run);
    if (run_begin_factors(state, now) || run->engine->factors || run->engine->profile ||
        sampler->under_way || !is_time(state, now))
        return;
    int layers = policy_layer_count(run->engine->policy);
    sampler->next = now + sample_interval;
    if (!make_room(sampler, layers) || !take_place(state) ||
        (profiles &&
         (!parts_make_room(&sampler->step, layers) || !parts_make_room(&sampler->parts, layers) ||
          !parts_make_room(&sampler->late, layers))))
        return; // no sample this time
    if (run->device->backend->clock && !sampler->spans)
        sampler->spans = malloc(RUN_MOST_SPANS * sizeof *sampler->spans); // else the whole alone
    if (!measure_moves(run))
        return;
    for (int i = 0; i < layers; i++) {
        sampler->seconds[i] = 0;
        sampler->largest[i] = 0;
        sampler->moved[i] = (ParameterMove){0, 0};
    }
    sampler->profile = (EngineProfile){.layers = layers,
                                       .seconds = sampler->seconds,
                                       .found = profiles ? NULL : sampler->found,
                                       .looks = sampler->looks,
                                       .look_room = RUN_MOST_LOOKS,
                                       .looks_at_outputs = !profiles && now >= sampler->next_look,
                                       .parts = profiles ? &sampler->step : NULL,
                                       .spans = sampler->spans,
                                       .span_room = sampler->spans ? RUN_MOST_SPANS : 0,
                                       .products = {.least = run_least_product(run->device)},
                                       .seeks = sampler->seeks};
    sampler->seeks = false;
    profile_open(run->engine, &sampler->profile);
    sampler->began = run_clock(run);
}

bool run_end_sample(RunState *state) {
    Run *run = &state->run;
    RunSampler *sampler = &state->sampler;
    const EngineProfile *profile = &sampler->profile;
    if (run->engine->profile != profile)
        return false;
    profile_close(run->engine);
    sampler->under_way = true;
    sampler->seconds_of_host = run_clock(run) - sampler->began - profile->look_seconds;
    if (profile->looks_at_outputs)
        sampler->next_look =
            clock_seconds() + fmax(sample_interval, look_price * profile->look_seconds);
    return true;
}

bool run_add_sample(RunState *state, int *piece, Error *error) {
    const RunSampler *sampler = &state->sampler;
    size_t bytes = 2 * sizeof(float) * (size_t)sampler->profile.look_count;
    return reports_add(state->reports, sampler->found->view.data, bytes, piece, error);
}

// ---- a sample that is reported ------------------------------------------------------------------

static void add_moves(RunState *state, const StepReport *report, int i) {
    RunSampler *sampler = &state->sampler;
    const Optimizer *optimizer = state->run.optimizers[i];
    const ParameterMove *moves =
        optimizer_reported_moves(&report->note->optimizers[i], report->reports, report->place);
    if (!moves)
        return;
    run_check_moves(state, report, i, moves);
    for (int k = 0; k < optimizer_parameter_count(optimizer); k++) {
        const Parameter *parameter = parameter_of(optimizer_parameter(optimizer, k));
        if (!parameter || parameter->layer >= sampler->profile.layers ||
            isnan(moves[k].change_squared))
            continue;
        ParameterMove *sum = &sampler->moved[parameter->layer];
        sum->change_squared += moves[k].change_squared;
        sum->before_squared += moves[k].before_squared;
    }
}

// The layer whose running statistics became not finite first; -1: none did.
static int add_looks(RunSampler *sampler, const StepReport *report) {
    const float *found = reports_piece(report->reports, report->place, report->note->found);
    int poisoned = -1;
    for (int i = 0; i < sampler->profile.look_count; i++, found += 2) {
        const ProfileLook *look = &sampler->looks[i];
        if (look->is_statistic && poisoned < 0 && !isfinite(found[0]))
            poisoned = look->layer;
        if (look->is_statistic)
            continue;
        float largest = fmaxf(fabsf(found[0]), fabsf(found[1])); // leaves NaN out: the loss tells
        if (largest > sampler->largest[look->layer])
            sampler->largest[look->layer] = largest;
    }
    return poisoned;
}

static int by_length(const void *a, const void *b) {
    const double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

// A step that took far longer than those before: something else had the processor, or the script
// does more in it now and then.
static bool is_late(RunSampler *sampler, double seconds) {
    enum { KNOWN = 4 };
    const double far = 3;
    double sorted[RUN_RECENT_STEPS];
    const int count =
        sampler->recent_count < RUN_RECENT_STEPS ? sampler->recent_count : RUN_RECENT_STEPS;
    memcpy(sorted, sampler->recent, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, by_length);
    sampler->recent[sampler->recent_count++ % RUN_RECENT_STEPS] = seconds;
    return count >= KNOWN && seconds > far * sorted[count / 2];
}

// Of the profile's steps; more than a tenth that are late are usual, and part of it.
static bool keep_apart(RunSampler *sampler, double seconds) {
    enum { FEW = 3, TENTH = 10 };
    if (sampler->late_is_usual || !is_late(sampler, seconds))
        return false;
    parts_add(&sampler->late, &sampler->step);
    sampler->late_seconds += seconds;
    sampler->late_count++;
    if (sampler->late_count <= FEW + sampler->count / TENTH)
        return true;
    sampler->late_is_usual = true;
    parts_add(&sampler->parts, &sampler->late);
    sampler->count += sampler->late_count;
    sampler->total_seconds += sampler->late_seconds;
    sampler->late_count = 0;
    sampler->late_seconds = 0;
    return true;
}

static void add_times(const Run *run, RunSampler *sampler) {
    EngineProfile *profile = &sampler->profile;
    profile_settle(run->engine, profile);
    const double seconds =
        isnan(profile->whole_seconds) ? sampler->seconds_of_host : profile->whole_seconds;
    if (profile->parts && keep_apart(sampler, seconds))
        return;
    if (profile->parts)
        parts_add(&sampler->parts, &sampler->step);
    sampler->count++;
    sampler->total_seconds += seconds;
    sampler->cast_seconds += profile->cast_seconds;
    sampler->operations += profile->operations;
    sampler->casts += profile->casts;
    sampler->cast_bytes += profile->cast_bytes;
    sampler->products = profile->products;
    for (int layer = 0; layer < profile->layers; layer++) {
        sampler->op_seconds += profile->seconds[layer];
        sampler->layer_seconds += layer > 0 ? profile->seconds[layer] : 0;
    }
}

void run_look_at_sample(RunState *state, const StepReport *report, unsigned applied) {
    Run *run = &state->run;
    RunSampler *sampler = &state->sampler;
    const EngineProfile *profile = &sampler->profile;
    sampler->under_way = false;
    add_times(run, sampler);
    for (int i = 0; i < report->note->optimizer_count; i++)
        if (applied >> i & 1)
            add_moves(state, report, i);
    int poisoned = add_looks(sampler, report);
    for (int layer = 1; layer < profile->layers; layer++) {
        const ParameterMove *moved = &sampler->moved[layer];
        double ratio = moved->before_squared > 0
                           ? sqrt(moved->change_squared / moved->before_squared)
                           : (double)NAN;
        if (run->recorder && (profile->seconds[layer] > 0 || !isnan(ratio)))
            recorder_profile(run->recorder, layer - 1, profile->seconds[layer], ratio);
        if (profile->looks_at_outputs)
            run_check_activations(state, layer, (double)sampler->largest[layer]);
    }
    if (profile->fault.cause != FORWARD_SOUND)
        run_check_fault(state, &profile->fault);
    if (poisoned >= 0 && applied != 0) // else it was taken back
        run_check_statistics(state, poisoned);
    run_check_casts(state);
    run_check_kernels(state);
    run_check_norms(state);
}

void run_drop_sample(RunState *state) {
    run_drop_factors(state);
    if (state->run.engine->profile != &state->sampler.profile)
        return;
    state->run.engine->profile = NULL;
    parts_forget(&state->sampler.step);
}
