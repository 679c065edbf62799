// ops/profile.h: the clock round operations, while an engine has a profile. Private to this folder.
#pragma once

#include "ops/engine.h"

ProfileStart profile_begin(Engine *engine, OpId op);
// A kernel is about to be called, for an operation with these attributes; also of what runs within
// another operation.
void profile_note(Engine *engine, const KernelCall *call, const OpAttr *attr);
// It is over; `output` is its first, NULL where it failed.
void profile_end(Engine *engine, OpId op, Tensor *const *inputs, int input_count,
                 ProfileStart began, Tensor *output);
