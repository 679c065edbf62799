#include "optim/state.h"

#include "optim/optimizer_private.h"

void optimizer_get_numbers(const Optimizer *optimizer, double numbers[OPTIMIZER_NUMBERS]) {
    Device *device = optimizer->engine->device;
    StepFlags flags;
    Progress progress;
    device_read(device, &flags, optimizer->flags, sizeof flags);
    device_read(device, &progress, optimizer->progress, sizeof progress);
    const double all[OPTIMIZER_NUMBERS] = {(double)progress.applied, (double)progress.skipped,
                                           flags.found_inf,          (double)flags.clip,
                                           flags.norm_squared,       flags.sum,
                                           (double)flags.count,      (double)flags.largest,
                                           (double)flags.norm,       optimizer_rate(optimizer)};
    for (int i = 0; i < OPTIMIZER_NUMBERS; i++)
        numbers[i] = all[i];
}

// A count from a file, which may hold anything.
static int64_t count_of(double number) {
    const double most = 0x1p53;
    return number >= -most && number <= most ? (int64_t)number : 0;
}

static uint64_t plain_count_of(double number) {
    return number > 0 ? (uint64_t)count_of(number) : 0;
}

void optimizer_set_numbers(Optimizer *optimizer, const double numbers[OPTIMIZER_NUMBERS]) {
    Device *device = optimizer->engine->device;
    optimizer_set_progress(optimizer, plain_count_of(numbers[0]), plain_count_of(numbers[1]));
    StepFlags flags = {.found_inf = numbers[2] != 0,
                       .clip = (float)numbers[3],
                       .norm_squared = numbers[4],
                       .sum = numbers[5],
                       .count = plain_count_of(numbers[6]),
                       .largest = (float)numbers[7],
                       .norm = (float)numbers[8]};
    device_write(device, optimizer->flags, &flags, sizeof flags);
}

void optimizer_get_steps(const Optimizer *optimizer, double *steps) {
    for (int i = 0; i < optimizer->count; i++) {
        uint64_t own;
        device_read(optimizer->engine->device, &own, &optimizer->steps[i], sizeof own);
        steps[i] = (double)own;
    }
}

void optimizer_set_steps(Optimizer *optimizer, const double *steps) {
    for (int i = 0; i < optimizer->count; i++) {
        uint64_t own = plain_count_of(steps[i]);
        device_write(optimizer->engine->device, &optimizer->steps[i], &own, sizeof own);
    }
}

void optimizer_get_factors(const Optimizer *optimizer, double *factors) {
    for (int i = 0; i < optimizer->group_count; i++)
        factors[i] = optimizer->groups[i].lr_factor;
}

void optimizer_set_factors(Optimizer *optimizer, const double *factors) {
    for (int i = 0; i < optimizer->group_count; i++)
        optimizer_set_factor(optimizer, i, factors[i]);
}

void scaler_get_numbers(Scaler *scaler, double numbers[SCALER_NUMBERS]) {
    ScaleState state = scaler_state(scaler);
    numbers[0] = (double)state.scale;
    numbers[1] = (double)state.good;
    numbers[2] = (double)state.hysteresis_left;
    numbers[3] = (double)state.skips_at_floor;
    numbers[4] = state.mean;
    numbers[5] = state.variance;
    numbers[6] = state.mean_weight;
    numbers[7] = state.variance_weight;
}

void scaler_set_numbers(Scaler *scaler, const double numbers[SCALER_NUMBERS]) {
    ScaleState state = {.scale = (float)numbers[0],
                        .good = count_of(numbers[1]),
                        .hysteresis_left = count_of(numbers[2]),
                        .skips_at_floor = count_of(numbers[3]),
                        .mean = numbers[4],
                        .variance = numbers[5],
                        .mean_weight = numbers[6],
                        .variance_weight = numbers[7]};
    scaler_restore(scaler, &state);
}
