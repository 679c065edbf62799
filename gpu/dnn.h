// gpu/dnn.h: operations that cuDNN may do in place of our own kernels.
//
// Each is offered to cuDNN first (gpu/dnn/plans.h). What it does not take (a shape, a format, an
// address, or there is no library) our own kernel does: that is no error. The first result of every
// graph is held against our own kernel's, which waits for the card, once; of the library's engines
// that one is used whose result is ours, of convolutions also that of what is no number. From the
// thread that drives the device.
#pragma once

#include "gpu/gpu.h"

// Our own kernels of these operations, whose kernels of the table are in gpu/dnn.c.
KERNEL_SIGNATURE(gpu_own, conv2d);
KERNEL_SIGNATURE(gpu_own, conv2d_backward_input);
// Either gradient may be asked for without the other, whose data is NULL then.
KERNEL_SIGNATURE(gpu_own, conv2d_backward_weight);
KERNEL_SIGNATURE(gpu_own, conv_transpose2d);
// Behind a convolution that took the padding for zeros: where these made NaN of another factor that
// is not finite, the sums are made anew of what is there.
KERNEL_SIGNATURE(gpu_repair, conv2d);
KERNEL_SIGNATURE(gpu_repair, conv2d_backward_input);
KERNEL_SIGNATURE(gpu_repair, conv2d_backward_weight);
KERNEL_SIGNATURE(gpu_repair, conv_transpose2d);
KERNEL_SIGNATURE(gpu_own, attention);
KERNEL_SIGNATURE(gpu_own, attention_backward);

// Gives back what was opened at the first offer.
void gpu_close_dnn(Gpu *gpu);
