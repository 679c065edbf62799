// cpu/pointwise_whole.h: what point-wise kernels do where nothing but whole numbers meets: fp32
// would lose the digits past 2^24. Private to cpu/pointwise.c, whose work these are tasks of.
#pragma once

#include "cpu/pointwise.h"

// Whether inputs `first` and the next are whole numbers, and so the output.
bool pointwise_is_whole(const Pointwise *work, int first);

// Results modulo 2^32, and of uint8 modulo 2^8.
void pointwise_whole_binary(void *context, int64_t begin, int64_t end, int thread);
void pointwise_whole_compare(void *context, int64_t begin, int64_t end, int thread);
void pointwise_whole_where(void *context, int64_t begin, int64_t end, int thread);
