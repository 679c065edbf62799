// kernel/random.h: random numbers as a function of (seed, position), the same on every device and
// for any number of threads: Philox 4x32 with 10 rounds (Salmon et al., 2011).
//
// Element i of an operation that begins at `offset` uses word (i % 4) of block (offset + i / 4).
// Everything is inline and portable, so that each backend compiles the same function: what the CPU
// makes of a seed, a card makes to the bit (the reference computes in double, and is close).
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/kernel_inline.h"
#include "number/elementary.h"
#include "number/format.h"

typedef struct RandomBlock {
    uint32_t word[4];
} RandomBlock;

KERNEL_INLINE RandomBlock random_block(uint64_t seed, uint64_t position) {
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    uint32_t c0 = (uint32_t)position, c1 = (uint32_t)(position >> 32), c2 = 0, c3 = 0;
    for (int round = 0; round < 10; round++) {
        uint64_t product0 = (uint64_t)0xD2511F53u * c0, product1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t high0 = (uint32_t)(product0 >> 32), high1 = (uint32_t)(product1 >> 32);
        c0 = high1 ^ c1 ^ key0;
        c1 = (uint32_t)product1;
        c2 = high0 ^ c3 ^ key1;
        c3 = (uint32_t)product0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    RandomBlock block = {{c0, c1, c2, c3}};
    return block;
}

// How many blocks `count` elements take: what the offset of the next use moves by.
KERNEL_INLINE uint64_t random_blocks(int64_t count) {
    return (uint64_t)((count + 3) / 4);
}

// In [0, 1), with 24 bits: exact in fp32, so equal on every device. Signed on the way, since few
// processors convert unsigned numbers.
ELEMENTARY_INLINE float random_uniform(uint32_t word) {
    return (float)(int32_t)(word >> 8) * 0x1p-24f;
}

// In [low, low + range), and never more than `last` (random_uniform_last): rounding in fp32 could
// reach the end.
ELEMENTARY_INLINE float random_uniform_in(uint32_t word, double low, double range, float last) {
    const double above = range * (double)random_uniform(word); // no compiler may fuse it
    const float value = (float)(low + above);
    return value < last ? value : last;
}

// Box-Muller: two words give two independent normal numbers, a cosine and a sine.
ELEMENTARY_INLINE void random_normal(const uint32_t word[2], float mean, float deviation,
                                     float normal[2]) {
    const float radius = sqrtf(-2.0f * math_log(1.0f - random_uniform(word[0])));
    float cosine, sine;
    math_cos_sin(random_uniform(word[1]), &cosine, &sine);
    normal[0] = math_fma(deviation, radius * cosine, mean);
    normal[1] = math_fma(deviation, radius * sine, mean);
}

// A whole number in [low, low + range).
ELEMENTARY_INLINE int32_t random_whole(uint32_t word, int64_t low, uint64_t range) {
    return (int32_t)(low + (int64_t)(word * range >> 32));
}

// Whether dropout sets an element to zero.
ELEMENTARY_INLINE bool random_drops(uint32_t word, float probability) {
    return random_uniform(word) < probability;
}

// The largest that a number in [low, high) may be in a format: the next would be rounded to `high`.
// Where the format has none in between it is `low`, rounded as any number is.
static inline double random_uniform_last(Format format, double low, double high) {
    double last = format_below(format, high);
    return last > low ? last : low;
}
