// number/sums.h: how the terms of a product are added up: as tensor cores do that keep few digits,
// in chunks that are promoted to fp32, or in fp16.
//
// Exact but for what the way of summing drops: terms come and sums are kept in double, which has
// the digits of products of two numbers of up to 24 bits. The same steps on every device. Any
// thread.
#pragma once

#include <math.h>
#include <stdbool.h>

#include "number/inline.h"

typedef enum Summing {
    SUMS_FP32,   // what devices do unasked; the reference in double
    SUMS_SPLIT,  // as FAST14, 128 terms at a time, whose sums are added in fp32
    SUMS_FAST14, // 32 terms and the sum so far at a time: of each the 14 bits below the highest of
                 // all, the rest cut off, as a card's products of 8 bits do
    SUMS_FP16,   // rounded to fp16 at each term
    SUMS_COUNT
} Summing;

enum { SUMS_TOGETHER = 32, SUMS_CHUNK = 128, SUMS_BITS = 14 };

typedef struct NumberSum {
    Summing how;
    double total, chunk; // chunk: of SUMS_SPLIT, since it was promoted
    double term[SUMS_TOGETHER];
    int waiting, in_chunk;
} NumberSum;

// What remains of `x` in steps of 2^exponent, cut off towards zero.
static inline double number_cut_off(double x, int exponent) {
    return ldexp(trunc(ldexp(x, -exponent)), exponent);
}

static inline void number_sum_together(NumberSum *sum) {
    double *into = sum->how == SUMS_SPLIT ? &sum->chunk : &sum->total;
    double largest = fabs(*into), result;
    for (int i = 0; i < sum->waiting; i++)
        largest = fmax(largest, fabs(sum->term[i]));
    int lowest = largest > 0 && isfinite(largest) ? ilogb(largest) - (SUMS_BITS - 1) : 0;
    bool is_exact = !(largest > 0 && isfinite(largest)); // or not a number at all
    result = is_exact ? *into : number_cut_off(*into, lowest);
    for (int i = 0; i < sum->waiting; i++)
        result += is_exact ? sum->term[i] : number_cut_off(sum->term[i], lowest);
    *into = result;
    sum->waiting = 0;
}

static inline void number_sum_promote(NumberSum *sum) {
    sum->total = (double)(float)(sum->total + sum->chunk);
    sum->chunk = 0;
    sum->in_chunk = 0;
}

// fp32's neighbour towards zero, with its last bit set where that is not the number itself: what is
// rounded again, to fewer digits, is then rounded as the number would be.
static inline float number_fp32_for_rounding(double x) {
    const float nearest = (float)x;
    if ((double)nearest == x || !(fabs(x) < 0x1p127))
        return nearest;
    const uint32_t bits = number_bits_of_fp32(nearest);
    return number_fp32_of_bits((fabs((double)nearest) > fabs(x) ? bits - 1 : bits) | 1);
}

static inline void number_sum_add(NumberSum *sum, double term) {
    if (sum->how == SUMS_FP32) {
        sum->total += term;
    } else if (sum->how == SUMS_FP16) {
        const float next = number_fp32_for_rounding(sum->total + term);
        sum->total = (double)number_fp16_to_fp32(number_fp32_to_fp16(next));
    } else {
        sum->term[sum->waiting++] = term;
        if (sum->waiting == SUMS_TOGETHER)
            number_sum_together(sum);
        if (sum->how == SUMS_SPLIT && ++sum->in_chunk == SUMS_CHUNK)
            number_sum_promote(sum);
    }
}

static inline double number_sum_end(NumberSum *sum) {
    if (sum->waiting > 0)
        number_sum_together(sum);
    if (sum->how == SUMS_SPLIT)
        number_sum_promote(sum);
    return sum->total;
}
