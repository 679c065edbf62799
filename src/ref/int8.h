// ref/int8.h: products with weights in int8. Private to ref/.
#pragma once

#include "kernel/kernel.h"

bool ref_int8_linear(const KernelCall *call);
bool ref_int8_conv2d(const KernelCall *call);
