// What the few steps a second that are measured show.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "run/run_private.h"

enum { SAMPLES = 20 }; // before anything is said of times

// ---- values -------------------------------------------------------------------------------------

void run_check_activations(RunState *state, int layer, double largest) {
    const double end_of_fp16 = format_table[FORMAT_FP16].largest, near = 0.9;
    const char *name = policy_layer(state->run.engine->policy, layer)->name;
    char grown[GROWN_SIZE], remedy[GROWN_SIZE + 64];
    if (!(largest >= near * end_of_fp16) || !isfinite(largest))
        return;
    if (run_say_grown(state, layer, grown, sizeof grown))
        snprintf(remedy, sizeof remedy, "%s: lower the learning rate", grown);
    else
        snprintf(remedy, sizeof remedy, "use --layer %.60s=bf16", name);
    run_diagnose(&state->run, DIAGNOSIS_NEAR_OVERFLOW, name,
                 "%.60s gives values up to %.0f, and fp16 ends at %.0f: %s", name, largest,
                 end_of_fp16, remedy);
}

// Where the flight recorder tells of it too, both say the same.
static void tell_overflow(RunState *state, int number, const char *where) {
    Run *run = &state->run;
    const char *layer = policy_layer(run->engine->policy, number)->name;
    char grown[GROWN_SIZE], remedy[GROWN_SIZE + 64] = "";
    if (run_say_grown(state, number, grown, sizeof grown))
        snprintf(remedy, sizeof remedy, "%s: lower the learning rate, or ", grown);
    else if (layer[0])
        snprintf(remedy, sizeof remedy, "use --layer %.60s=bf16, or ", layer);
    run_diagnose(
        run, DIAGNOSIS_FORWARD_OVERFLOW, layer,
        "%s gives values past %.0f, where fp16 ends, and so the loss is not finite: %skeep its "
        "inputs and weights smaller",
        where, format_table[FORMAT_FP16].largest, remedy);
}

static void tell_weight(RunState *state, const char *layer, const char *weight) {
    Run *run = &state->run;
    char remedy[RECORD_TEXT_SIZE];
    Phrase text = phrase_begin(remedy, sizeof remedy);
    const int64_t step = state->flight.is_told ? state->flight.told_step : run->step;
    if (run_is_inherited(run, step))
        run_add_inherited(&text, run);
    else
        phrase_add(&text, "begin again from a checkpoint of before, with a lower learning rate");
    run_diagnose(run, DIAGNOSIS_WEIGHTS_NOT_FINITE, layer,
                 "%.60s is not finite, and so will be every loss: no step mends it; %s", weight,
                 remedy);
}

void run_check_fault(RunState *state, const ForwardFault *fault) {
    Run *run = &state->run;
    const char *layer = policy_layer(run->engine->policy, fault->layer)->name;
    const char *op = op_table[fault->op].name;
    char where[96], cause[96];
    if (layer[0])
        snprintf(where, sizeof where, "%.60s", layer);
    else
        snprintf(where, sizeof where, "%s, outside of every layer,", op);
    switch (fault->cause) {
    case FORWARD_SOUND: return;
    case FORWARD_OVERFLOWED: tell_overflow(state, fault->layer, where); return;
    case FORWARD_GREW:
        run_diagnose(run, DIAGNOSIS_WEIGHTS_GREW, layer,
                     "%.60s has grown to %.3g, and so %s gives values past %.0f, where fp16 ends: "
                     "lower the learning rate",
                     fault->weight, fault->weight_largest, where,
                     format_table[FORMAT_FP16].largest);
        return;
    case FORWARD_MADE:
        if (fault->divides)
            snprintf(cause, sizeof cause,
                     "a division by 0 or a logarithm of 0, from which its inputs are to be kept");
        else if (fault->is_nan)
            snprintf(cause, sizeof cause, "%s", run_what_makes_nan);
        else
            snprintf(cause, sizeof cause, "more than %s holds: lower the learning rate",
                     format_name(fault->format));
        run_diagnose(run, DIAGNOSIS_OPERATION_NOT_FINITE, layer,
                     "%s in %.60s gives inf or nan of finite values, and so the loss: %s", op,
                     layer[0] ? layer : "the script, outside of every layer,", cause);
        return;
    case FORWARD_WEIGHT: tell_weight(state, layer, fault->weight); return;
    case FORWARD_GIVEN:
        run_diagnose(
            run, DIAGNOSIS_DATA_NOT_FINITE, layer,
            "what %s is given is not finite already, which is no overflow: look for nan and "
            "inf in the data, and in what the script makes of it",
            where);
    }
}

void run_check_statistics(RunState *state, int layer) {
    const char *name = policy_layer(state->run.engine->policy, layer)->name;
    run_diagnose(&state->run, DIAGNOSIS_POISONED_STATISTICS, name,
                 "the running statistics of %.60s are not finite after step %lld, though it was "
                 "applied, and so will be every evaluation: call model:eval() before data that "
                 "belongs to no step, and begin again from a checkpoint of before",
                 name[0] ? name : "a batch norm", (long long)state->run.step);
}

void run_check_buffer(RunState *state, const FaultOrigin *origin) {
    Run *run = &state->run;
    const char *name = policy_layer(run->engine->policy, origin->layer)->name;
    const char *format = format_name(origin->view.format);
    if (origin->cause != FAULT_OVERFLOWED || !name[0]) {
        run_check_statistics(state, origin->layer);
        return;
    }
    run_diagnose(run, DIAGNOSIS_POISONED_STATISTICS, name,
                 "%s of %.60s is more than %s holds after step %lld, and stays inf: training does "
                 "without it, every evaluation computes with it; --layer %.60s=bf16, or "
                 "--keep-fp32 with batch_norm",
                 origin->buffer, name, format, (long long)run->step, name);
}

// ---- time ---------------------------------------------------------------------------------------

// From where on something is said.
static const struct {
    double cast_share;        // with less, a format that halves the rest still gains by a quarter
    double operation_seconds; // what it takes to begin and end an operation of the processor
    double product_work;  // multiplications a multiprocessor: cards of 8.0 to 9.0 do them in 1 to 3
                          // us by tensor cores, which is what it takes to begin and end a kernel
    double product_share; // of all multiplications: with less, most of the work is in large ones
} no_gain = {
    .cast_share = 0.4, .operation_seconds = 5e-6, .product_work = 4e6, .product_share = 0.5};

void run_check_casts(RunState *state) {
    const RunSampler *sampler = &state->sampler;
    double share = run_cast_share(&state->run);
    if (sampler->count < SAMPLES || !(share > no_gain.cast_share))
        return;
    double samples = (double)sampler->count;
    run_diagnose(&state->run, DIAGNOSIS_CASTING, "",
                 "%.0f %% of the time of steps goes into casts between formats (%.0f a step, which "
                 "move %.1f MiB): too much to gain from low precision; keep layers that follow "
                 "each other in one format, take larger batches, or -p fp32",
                 100 * share, (double)sampler->casts / samples,
                 (double)sampler->cast_bytes / samples / (1 << 20));
}

double run_least_product(const Device *device) {
    return no_gain.product_work * device->multiprocessors;
}

static void check_products(RunState *state) {
    Run *run = &state->run;
    const ProfileProducts *products = &state->sampler.products;
    const char *layer = policy_layer(run->engine->policy, products->layer)->name;
    if (!(products->small > no_gain.product_share * products->all))
        return;
    int multiprocessors = run->device->multiprocessors;
    run_diagnose(run, DIAGNOSIS_SMALL_KERNELS, layer,
                 "products of under %.0f million multiplications do %.0f %% of the work in low "
                 "formats, the largest %.3g million in %.60s: too small to fill the card's %d "
                 "multiprocessors, so that low formats cannot gain; take larger batches or layers, "
                 "or -p fp32",
                 products->least / 1e6, 100 * products->small / products->all,
                 products->largest / 1e6, layer[0] ? layer : "the script", multiprocessors);
}

static void check_operations(RunState *state) {
    const RunSampler *sampler = &state->sampler;
    Format low = policy_preset(state->run.engine->policy)->low;
    if (sampler->count < SAMPLES || sampler->operations == 0 || !run_is_low(low))
        return;
    double each = sampler->op_seconds / (double)sampler->operations;
    if (each >= no_gain.operation_seconds)
        return;
    run_diagnose(&state->run, DIAGNOSIS_SMALL_KERNELS, "",
                 "the %.0f operations of a step take %.1f us each in the mean, most of it to begin "
                 "and end them: too small to gain from %s; take larger batches or layers, or -p "
                 "fp32",
                 (double)sampler->operations / (double)sampler->count, 1e6 * each,
                 format_name(low));
}

// A sampled step is not captured: on a card its times are those of launches one by one, which say
// nothing of how large the kernels are.
void run_check_kernels(RunState *state) {
    if (state->run.device->multiprocessors > 0)
        check_products(state);
    else
        check_operations(state);
}

// ---- updates ------------------------------------------------------------------------------------

static bool is_lost(const Tensor *tensor, const ParameterMove *move) {
    // Where all but one in a hundred weights stay as they are.
    const double worth_saying = 0.1;
    if (!run_is_low(tensor->view.format) || !(move->before_squared > 0))
        return false;
    double spacing = ldexp(1, -format_table[tensor->view.format].mantissa_bits);
    return sqrt(move->change_squared / move->before_squared) < worth_saying * spacing;
}

static void tell_lost(Run *run, const Tensor *tensor, const ParameterMove *move) {
    run_diagnose(run, DIAGNOSIS_LOST_UPDATES, run_layer_of(run, tensor),
                 "the last update moved %.60s by %.2g of its size: %s keeps nothing under 1/%d of "
                 "a weight, so nearly all of it was lost; keep fp32 masters, set stochastic = "
                 "true, or raise the learning rate",
                 run_name_of(tensor), sqrt(move->change_squared / move->before_squared),
                 format_name(tensor->view.format),
                 2 << format_table[tensor->view.format].mantissa_bits);
}

// Late in a schedule updates are meant to be small.
static bool is_at_full_rate(const RunState *state, const StepReport *report, int i) {
    const double part = 0.1;
    const Optimizer *optimizer = state->run.optimizers[i];
    double largest = fmax(report->note->optimizers[i].rate, state->watched[i].largest_rate);
    uint64_t applied = run_reported(report, i).applied;
    return applied > 0 && optimizer_rate_after(optimizer, -1, applied - 1) >= part * largest;
}

void run_check_moves(RunState *state, const StepReport *report, int i, const ParameterMove *moves) {
    const Optimizer *optimizer = state->run.optimizers[i];
    if (optimizer_is_stochastic(optimizer)) // lost one by one, but not in the mean
        return;
    if (!is_at_full_rate(state, report, i))
        return;
    for (int k = 0; k < optimizer_parameter_count(optimizer); k++) {
        const Tensor *tensor = optimizer_parameter(optimizer, k);
        if (!is_lost(tensor, &moves[k]))
            continue;
        GradStats room;
        const GradStats *stats = run_reported_stats(report, i, k, &room);
        if (stats && stats->sum > 0) // else there was nothing to lose
            tell_lost(&state->run, tensor, &moves[k]);
    }
}
