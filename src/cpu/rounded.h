// cpu/rounded.h: factors of products that are multiplied in fewer digits than they are kept in
// (OpAttr.compute: TF32 of fp32). No processor has such products: what they would give is made of
// rounded copies, multiplied and summed as fp32 is.
//
// Private to this folder. Copies are memory of the device's, held for the call alone.
#pragma once

#include "kernel/kernel.h"

// Whether the operation is a product, whose factors are rounded where the call says so.
bool rounded_serves(OpId op);

typedef struct Rounded {
    KernelCall call; // as it was given, with copies in the place of factors that are rounded
    void *memory;    // theirs; NULL: there are none
} Rounded;

bool rounded_begin(Device *device, const KernelCall *call, Rounded *rounded,
                   Error *error) MUST_CHECK;
void rounded_end(Device *device, Rounded *rounded);

// Has a kernel compute that call.
bool rounded_run(Device *device, const KernelCall *call, Kernel kernel, Error *error) MUST_CHECK;
