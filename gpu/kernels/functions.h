// gpu/kernels/functions.h: what the expressions of kernel/pointwise.def are made of, on a card.
#pragma once

#include "number/elementary.h"

typedef float real;

#define EXP(x)           expf(x)
#define LOG(x)           logf(x)
#define LOG1P(x)         log1pf(x)
#define TANH(x)          tanhf(x)
#define ERF(x)           erff(x)
#define SIN(x)           math_sin(x)
#define COS(x)           math_cos(x)
#define SQRT(x)          sqrtf(x)
#define ABS(x)           fabsf(x)
#define POW(x, y)        powf(x, y)
#define HALF             0.5f
#define SQRT_HALF        0.70710678118654752f
#define INVERSE_SQRT_2PI 0.39894228040143268f
