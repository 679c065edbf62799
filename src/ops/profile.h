// ops/profile.h: the clock round operations, while an engine has a profile. Private to this folder.
#pragma once

#include "ops/engine.h"

// When an operation begins, in clock_seconds.
double profile_begin(Engine *engine);
// It is over; `output` is its first, NULL where it failed.
void profile_end(Engine *engine, OpId op, Tensor *const *inputs, int input_count, double began,
                 Tensor *output);
