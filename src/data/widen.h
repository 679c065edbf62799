// data/widen.h: small numbers as they are kept, into the wide ones that training takes. One table
// per level of vector instructions, all with the same results to the bit. Any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct WidenTable {
    // out[i] = in[i] * scale + shift, the product rounded before the sum
    void (*bytes)(float *out, const uint8_t *in, size_t count, float scale, float shift);
    void (*tokens)(int32_t *out, const uint16_t *in, size_t count);
} WidenTable;

// The table for this processor.
const WidenTable *widen_table(void);
