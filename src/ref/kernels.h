// ref/kernels.h: the reference device's kernels, one an operation of ops.def, and its functions
// over all tensors of a model. Private to ref/; the world sees `ref_backend` alone.
//
// Each computes in double, in the most obvious order, and rounds once when it stores. Inputs may
// have any strides and any floating format. One thread, the caller's; done when the call returns.
#pragma once

#include "kernel/kernel.h"
#include "kernel/multi.h"

// A kernel's head: most need neither scratch nor a way to fail.
#define REF_KERNEL(name)                                                            \
    bool ref_##name(__attribute__((unused)) Device *device, const KernelCall *call, \
                    __attribute__((unused)) Error *error)

#define OP(name, ...) KERNEL_SIGNATURE(ref, name);
#include "kernel/ops.def"

// What may be fused behind a product.
double ref_activate(Activation activation, double x);

bool ref_scan(Device *device, ScanPlan *plan, const ScaleState *scale, StepFlags *flags,
              Error *error);
bool ref_clip_norm(Device *device, double limit, StepFlags *flags, Error *error);
bool ref_clip_value(Device *device, ScanPlan *plan, float limit, Error *error);
bool ref_multiply(Device *device, ScanPlan *plan, const float *factor, Error *error);
bool ref_scale_update(Device *device, const ScaleRule *rule, ScaleState *state,
                      const StepFlags *const *flags, int count, Error *error);
bool ref_update(Device *device, const UpdateRule *rule, UpdatePlan *plan, const StepFlags *flags,
                Progress *progress, Error *error);
double ref_largest(Device *device, const View *view);
bool ref_restore(Device *device, PairPlan *plan, const StepFlags *flags, Error *error);
bool ref_average(Device *device, PairPlan *plan, double decay, const StepFlags *flags,
                 Error *error);
