// optim/state.h: the inside of optimizers, scalers and averages, for checkpoints alone.
//
// What is in device memory and decides later steps. Tensors are borrowed. Reading waits for the
// device. What the host keeps beside it (the order of calls, windows of accumulation) is not here:
// a replay of the script makes that again.
#pragma once

#include "optim/optimizer.h"
#include "optim/scaler.h"

enum { OPTIMIZER_NUMBERS = 10, SCALER_NUMBERS = 8 };

// applied, skipped, found_inf, clip, norm², sum, count, largest, norm; the base rate last.
void optimizer_get_numbers(const Optimizer *optimizer, double numbers[OPTIMIZER_NUMBERS]);
// All but the rate.
void optimizer_set_numbers(Optimizer *optimizer, const double numbers[OPTIMIZER_NUMBERS]);

// Each parameter's own count of updates. Those of checkpoints that lack them are all the
// optimizer's, as it was when they were written: setting the numbers above sets them so.
void optimizer_get_steps(const Optimizer *optimizer, double *steps);
void optimizer_set_steps(Optimizer *optimizer, const double *steps);
// Each group's share of the base rate.
void optimizer_get_factors(const Optimizer *optimizer, double *factors);
void optimizer_set_factors(Optimizer *optimizer, const double *factors);

// scale, good, hysteresis_left, skips_at_floor, mean, variance, mean_weight, variance_weight.
void scaler_get_numbers(Scaler *scaler, double numbers[SCALER_NUMBERS]);
void scaler_set_numbers(Scaler *scaler, const double numbers[SCALER_NUMBERS]);
// Scales that open windows of accumulation keep, and what an update that is still to come goes by:
// the i-th, NULL for one that keeps none. False past the last.
bool scaler_kept_scale(const Scaler *scaler, int i, Tensor **kept);

// The i-th of an average: what it averages, the average, and the weights that stand aside while the
// averages are in their place (else NULL). False past the last.
bool weight_average_at(const WeightAverage *average, int i, Tensor **parameter, Tensor **mean,
                       Tensor **aside);
