// gpu/multi.h: what runs over all tensors of a model at once, for the files of this room that share
// it out. The contract is kernel/multi.h's.
#pragma once

#include "gpu/kernels/arguments.h"
#include "kernel/multi.h"

bool gpu_multi_scan(Device *device, ScanPlan *plan, const ScaleState *scale, StepFlags *flags,
                    Error *error);
bool gpu_multi_clip_value(Device *device, ScanPlan *plan, float limit, Error *error);
bool gpu_multi_multiply(Device *device, ScanPlan *plan, const float *factor, Error *error);
bool gpu_multi_update(Device *device, const UpdateRule *rule, UpdatePlan *plan,
                      const StepFlags *flags, Progress *progress, Error *error);

bool gpu_look_begin(Device *device, LookFound *found, int count, Error *error);
bool gpu_look(Device *device, const View *view, LookFound *found, Error *error);

// A dense view as a kernel of many tensors takes it.
Span gpu_span(const View *view);
// Whether eight neighbours of it come and go by 16 bytes, or it is absent.
bool gpu_lies_wide(const View *view);
