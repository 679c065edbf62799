// base/mix.h: bytes as one number, to find or to compare what they say in little time (FNV-1a).
//
// Nothing that guards against a hand that means harm: base/hash.h has what does.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MIX_BEGIN UINT64_C(0xCBF29CE484222325)

static inline uint64_t mix_bytes(uint64_t mixed, const void *data, size_t size) {
    for (const unsigned char *at = data, *end = at + size; at < end; at++)
        mixed = (mixed ^ *at) * UINT64_C(0x100000001B3);
    return mixed;
}
