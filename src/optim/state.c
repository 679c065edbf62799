#include "optim/state.h"

#include "base/whole.h"
#include "optim/optimizer_private.h"

void optimizer_get_numbers(const Optimizer *optimizer, double numbers[OPTIMIZER_NUMBERS]) {
    Device *device = optimizer->engine->device;
    StepFlags flags;
    Progress progress;
    device_read(device, &flags, optimizer->gradients->flags, sizeof flags);
    device_read(device, &progress, optimizer->progress, sizeof progress);
    const double all[OPTIMIZER_NUMBERS] = {(double)progress.applied, (double)progress.skipped,
                                           flags.found_inf,          (double)flags.clip,
                                           flags.norm_squared,       flags.sum,
                                           (double)flags.count,      (double)flags.largest,
                                           (double)flags.norm,       optimizer_rate(optimizer)};
    for (int i = 0; i < OPTIMIZER_NUMBERS; i++)
        numbers[i] = all[i];
}

static uint64_t count_of(double number) {
    return number > 0 ? (uint64_t)whole_of(number) : 0;
}

void optimizer_set_numbers(Optimizer *optimizer, const double numbers[OPTIMIZER_NUMBERS]) {
    Device *device = optimizer->engine->device;
    optimizer_set_progress(optimizer, count_of(numbers[0]), count_of(numbers[1]));
    StepFlags flags = {.found_inf = numbers[2] != 0,
                       .clip = (float)numbers[3],
                       .norm_squared = numbers[4],
                       .sum = numbers[5],
                       .count = count_of(numbers[6]),
                       .largest = (float)numbers[7],
                       .norm = (float)numbers[8]};
    device_write(device, optimizer->gradients->flags, &flags, sizeof flags);
}

void optimizer_get_steps(const Optimizer *optimizer, double *steps) {
    for (int i = 0; i < optimizer->gradients->count; i++) {
        uint64_t own;
        device_read(optimizer->engine->device, &own, &optimizer->steps[i], sizeof own);
        steps[i] = (double)own;
    }
}

void optimizer_set_steps(Optimizer *optimizer, const double *steps) {
    for (int i = 0; i < optimizer->gradients->count; i++) {
        uint64_t own = count_of(steps[i]);
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
