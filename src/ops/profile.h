// ops/profile.h: the clock round operations, while an engine has a profile. Private to this folder.
#pragma once

#include "ops/engine.h"

typedef struct ProfileStart { // when an operation began
    double seconds;           // clock_seconds
    int span;                 // of the device's clock; -1: none
} ProfileStart;

ProfileStart profile_begin(Engine *engine, OpId op);
// It is over; `output` is its first, NULL where it failed.
void profile_end(Engine *engine, OpId op, Tensor *const *inputs, int input_count,
                 ProfileStart began, Tensor *output);
