// tests/emulator/tf32.h: how emulated libraries take fp32 into TF32, which no document of theirs
// states: they cut off what it has no bits for, as no kernel of ours does.
#pragma once

#include <math.h>

#include "number/inline.h"

static inline double emulated_tf32(float value) {
    uint32_t bits = number_bits_of_fp32(value) & ~UINT32_C(0x1FFF);
    return (double)(isfinite(value) ? number_fp32_of_bits(bits) : value);
}
