// optim/state.h: the inside of optimizers and averages, for checkpoints alone.
//
// What is in device memory and decides later steps. Tensors are borrowed. Reading waits for the
// device. What the host keeps beside it (the order of calls) is not here: a replay of the script
// makes that again. A scaler's is in precision/scaler.h.
#pragma once

#include "optim/optimizer.h"

enum { OPTIMIZER_NUMBERS = 10 };

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

// The i-th of an average: what it averages, the average, and the weights that stand aside while the
// averages are in their place (else NULL). False past the last.
bool weight_average_at(const WeightAverage *average, int i, Tensor **parameter, Tensor **mean,
                       Tensor **aside);
