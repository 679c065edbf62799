#include "data/widen.h"

#include "base/isa.h"

// A fused multiply-add would round otherwise on the levels that have it. (gcc fuses nothing under
// -std=c17.)
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

static void widen_bytes(float *restrict out, const uint8_t *restrict in, size_t count, float scale,
                        float shift) {
    for (size_t i = 0; i < count; i++) {
        float product = (float)in[i] * scale;
        out[i] = product + shift;
    }
}

static void widen_tokens(int32_t *restrict out, const uint16_t *restrict in, size_t count) {
    for (size_t i = 0; i < count; i++)
        out[i] = in[i];
}

extern const WidenTable ISA_NAME(widen_table);
const WidenTable ISA_NAME(widen_table) = {.bytes = widen_bytes, .tokens = widen_tokens};
