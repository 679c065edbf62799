// cpu/gains.h: which of this processor's instructions pay, measured once and kept.
//
// That a processor has an instruction does not say that it is fast: products of bf16 in pairs take
// half of fp32's time on one kind and twice that on another. So large products are timed for a few
// milliseconds, and the figure is kept by the processor's name for later programs (base/kept.h has
// the file). Any thread; the first call measures on its own.
#pragma once

#include <stdbool.h>

#include "number/format.h"

// How many times as fast as in fp32 large products of bf16 in pairs are, in halves; 0: this
// processor, or the level that MPBENCH_ISA names, has no instruction for them.
double cpu_gain_of_pairs(void);

// The same of bf16 and fp16 on tiles; 1: there are none, and of other formats.
double cpu_gain_of_tiles(Format format);

// The same of products of elements with scales, where these are multiplied as whole numbers
// (cpu/gemm_way.h), what rounding numbers to them takes left out; 1: of formats that are not, and
// where there are tiles.
double cpu_gain_of_elements(Format format);

// Whether so much is worth another way of rounding.
static inline bool cpu_gain_pays(double gain) {
    return gain > 1;
}
