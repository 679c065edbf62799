// gpu/dnn_trust.h: whether a plan of cuDNN gives what our own kernel gives.
//
// Its first results are held against our own, for which the host waits. Those of a convolution
// twice: as they are, and of operands among which NaN and infinities were planted. There are
// engines that give 0 for them, and an overflow would end there without a word. From the thread
// that drives the device.
#pragma once

#include "gpu/dnn/plans.h"
#include "kernel/kernel.h"

typedef struct DnnTrial {
    DnnPlan *plan;
    const KernelCall *call; // the plan has computed it
    Kernel own;
    // The plan computes this call, which is as the other one but for its operands.
    bool (*again)(Device *device, const KernelCall *call, const void *told, Error *error);
    const void *told;
} DnnTrial;

typedef enum DnnTrust {
    DNN_BELIEVED,  // the results stay: later ones are to be the same bits
    DNN_REFUTED,   // they are others than ours
    DNN_NOT_TRIED, // there is no memory for it, and no result stays; twice, and the plan is refused
    DNN_FAILED     // the card did: error
} DnnTrust;

// Keeps in the plan whether it is trusted from now on. What is all zero proves nothing, and the
// next result is looked at too.
DnnTrust dnn_try(Device *device, const DnnTrial *trial, Error *error) MUST_CHECK;
