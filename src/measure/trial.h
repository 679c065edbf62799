// measure/trial.h: one format's work on a device, ready to be done again and again.
//
// A Trial owns an engine, and its tensors or its network; it is freed before its device. Internal
// to measure/.
#pragma once

#include "measure/formats.h"

typedef struct Trial Trial;

// Of a task of this size.
Trial *trial_new(Device *device, FormatTask task, Format format, int64_t size,
                 Error *error) MUST_CHECK;
void trial_free(Trial *trial); // NULL is fine
// Does the work once. It may not have ended when this returns.
bool trial_do(Trial *trial, Error *error) MUST_CHECK;

bool trial_is_possible(const Device *device, FormatTask task, Format format);
// Floating-point operations of one; 0: nobody counts them.
double trial_flops(FormatTask task, int64_t size);
// Of a product that is only evaluated in its format, once it was done: what its weight takes beside
// the same in fp32; else NaN.
double trial_weight_share(const Trial *trial);
