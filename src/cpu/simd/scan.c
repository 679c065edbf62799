// The one pass over the gradients: rounds, counts, checks and unscales.
//
// A block is read from memory once. Its exponents are left as bytes in the nearest cache, where
// they are counted.
#include <string.h>

#include "cpu/simd.h"
#include "cpu/simd/exponents.h"
#include "cpu/simd/math.h"

enum { CHUNK = 1024, BLOCK = 16 * CHUNK };
_Static_assert((int)BLOCK <= (int)EXPONENTS_AT_ONCE, "counts that fit");

// ---- the pass -----------------------------------------------------------------------------------

enum { MAGNITUDE = 0x7FFFFFFF, INFINITE = 0x7F800000 };

// What one chunk gives. `seen` before rounding and unscaled, `stored` as it is left behind.
typedef struct Chunk {
    int64_t zeros, nans, infinities, flushed, subnormal, overflowed, not_finite;
    double seen_sum, seen_squares, stored_sum, stored_squares;
    float seen_largest, stored_largest;
} Chunk;

static inline int32_t magnitude_of(float value) {
    return (int32_t)(number_bits_of_fp32(value) & MAGNITUDE);
}

typedef struct Range { // of magnitudes
    int32_t smallest, largest;
} Range;

static Range range_of(const float *restrict x, int64_t count) {
    int32_t smallest = MAGNITUDE, largest = 0;
#pragma omp simd reduction(max : largest) reduction(min : smallest)
    for (int64_t i = 0; i < count; i++) {
        int32_t magnitude = magnitude_of(x[i]);
        smallest = magnitude < smallest ? magnitude : smallest;
        largest = magnitude > largest ? magnitude : largest;
    }
    return (Range){smallest, largest};
}

// Rounds a chunk to a format that has few numbers.
static void round_chunk(Format format, const float *restrict x, float *restrict rounded,
                        int64_t count) {
    int64_t i = 0;
    if (format == FORMAT_FP16) {
        for (; i + NUMBER_BLOCK <= count; i += NUMBER_BLOCK) {
            uint16_t block[NUMBER_BLOCK];
            number_fp32_block_to_fp16(x + i, block);
            number_fp16_block_to_fp32(block, rounded + i);
        }
        for (; i < count; i++)
            rounded[i] = number_fp16_to_fp32(number_fp32_to_fp16(x[i]));
    } else if (format == FORMAT_BF16) {
        for (; i < count; i++)
            rounded[i] = number_fp32_through_bf16(x[i]);
    } else if (format == FORMAT_TF32) {
        for (; i < count; i++)
            rounded[i] = number_fp32_through_tf32(x[i]);
    } else if (format == FORMAT_E4M3) {
        for (; i < count; i++)
            rounded[i] = number_e4m3_to_fp32(number_fp32_to_e4m3_special(x[i]));
    } else if (format == FORMAT_E5M2) {
        for (; i < count; i++)
            rounded[i] = number_e5m2_to_fp32(number_fp32_to_e5m2_special(x[i]));
    } else {
        memcpy(rounded, x, (size_t)count * sizeof *x);
    }
}

// ---- chunks of ordinary numbers: finite, as large as fp32 can square, not overflowing -----------

// Whether there is anything to count that is zero or subnormal, before or after: mostly there is
// not, and `counts` is false. `rounds_here`: to bf16, of finite numbers, in the same loop.
MATH_INLINE Chunk scan_ordinary(bool counts, bool rounds_here, float *restrict gradient,
                                const float *restrict rounded, int64_t count, float inverse,
                                int32_t smallest_normal, int32_t *restrict magnitude) {
    int32_t zeros = 0, vanished = 0, too_small = 0;
    float sum = 0, squares = 0, stored_sum = 0, stored_squares = 0;
#pragma omp simd reduction(+ : zeros, vanished, too_small, sum, squares, stored_sum, stored_squares)
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = number_bits_of_fp32(gradient[i]);
        uint32_t even = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000;
        float kept = rounds_here ? number_fp32_of_bits(even) : rounded[i];
        float product = kept * inverse, stored = fabsf(product);
        float value = fabsf(gradient[i] * inverse);
        if (counts) {
            zeros += (bits & MAGNITUDE) == 0;
            vanished += magnitude_of(kept) == 0;
            too_small += magnitude_of(kept) < smallest_normal;
        }
        sum += value;
        squares = math_fma(value, value, squares);
        stored_sum += stored;
        stored_squares = math_fma(stored, stored, stored_squares);
        magnitude[i] = magnitude_of(value);
        gradient[i] = product;
    }
    return (Chunk){.zeros = zeros,
                   .flushed = vanished - zeros,
                   .subnormal = too_small - vanished,
                   .seen_sum = (double)sum,
                   .seen_squares = (double)squares,
                   .stored_sum = (double)stored_sum,
                   .stored_squares = (double)stored_squares};
}

// Nothing is rounded: what is stored is what is seen.
MATH_INLINE Chunk scan_plain(bool counts, float *restrict gradient, int64_t count, float inverse,
                             int32_t smallest_normal, int32_t *restrict magnitude) {
    int32_t zeros = 0, too_small = 0;
    float sum = 0, squares = 0;
#pragma omp simd reduction(+ : zeros, too_small, sum, squares)
    for (int64_t i = 0; i < count; i++) {
        float product = gradient[i] * inverse, value = fabsf(product);
        if (counts) {
            zeros += magnitude_of(gradient[i]) == 0;
            too_small += magnitude_of(gradient[i]) < smallest_normal;
        }
        sum += value;
        squares = math_fma(value, value, squares);
        magnitude[i] = magnitude_of(value);
        gradient[i] = product;
    }
    return (Chunk){.zeros = zeros,
                   .subnormal = too_small - zeros,
                   .seen_sum = (double)sum,
                   .seen_squares = (double)squares,
                   .stored_sum = (double)sum,
                   .stored_squares = (double)squares};
}

// ---- all other chunks, one number at a time -----------------------------------------------------

static void add_value(double value, double *sum, double *squares, float *largest) {
    *sum += value;
    *squares += value * value;
    *largest = (float)value > *largest ? (float)value : *largest;
}

static Chunk scan_wild(float *restrict gradient, const float *restrict rounded, int64_t count,
                       float inverse, int32_t smallest_normal, int32_t *restrict magnitude) {
    Chunk chunk = {0};
    for (int64_t i = 0; i < count; i++) {
        int32_t own = magnitude_of(gradient[i]), kept = magnitude_of(rounded[i]);
        float product = rounded[i] * inverse;
        double value = fabs((double)gradient[i] * (double)inverse);
        chunk.zeros += own == 0;
        chunk.nans += own > INFINITE;
        chunk.infinities += own == INFINITE;
        chunk.not_finite += kept >= INFINITE;
        magnitude[i] = 0;
        if (own < INFINITE) {
            chunk.flushed += own > 0 && kept == 0;
            chunk.subnormal += kept > 0 && kept < smallest_normal;
            chunk.overflowed += kept >= INFINITE;
            magnitude[i] = magnitude_of((float)value);
            add_value(value, &chunk.seen_sum, &chunk.seen_squares, &chunk.seen_largest);
        }
        if (magnitude_of(product) < INFINITE)
            add_value(fabs((double)product), &chunk.stored_sum, &chunk.stored_squares,
                      &chunk.stored_largest);
        gradient[i] = product;
    }
    return chunk;
}

// ---- one chunk after another --------------------------------------------------------------------

// Whether fp32 can hold the squares of these, the largest of which has this magnitude, and the
// format the numbers themselves.
static bool is_ordinary(int32_t largest, float inverse, Format format) {
    float scaled = number_fp32_of_bits((uint32_t)largest), value = scaled * inverse;
    return largest == 0 || (largest < INFINITE && (double)scaled <= format_table[format].largest &&
                            value < 1e15f && value > 1e-12f);
}

static void add_chunk(CpuScan *scan, const Chunk *chunk) {
    GradStats *stats = scan->stats;
    stats->zeros += (uint64_t)chunk->zeros;
    stats->nans += (uint64_t)chunk->nans;
    stats->infs += (uint64_t)chunk->infinities;
    stats->flushed += (uint64_t)chunk->flushed;
    stats->subnormal += (uint64_t)chunk->subnormal;
    stats->overflowed += (uint64_t)chunk->overflowed;
    stats->sum += chunk->seen_sum;
    stats->sum_squares += chunk->seen_squares;
    if (chunk->seen_largest > stats->largest)
        stats->largest = chunk->seen_largest;
    scan->found_inf |= chunk->not_finite > 0;
    scan->not_finite += (uint64_t)chunk->not_finite;
    scan->stored_sum += chunk->stored_sum;
    scan->stored_squares += chunk->stored_squares;
    if (chunk->stored_largest > scan->stored_largest)
        scan->stored_largest = chunk->stored_largest;
}

static Chunk scan_any(float *gradient, int64_t count, const CpuScan *scan, int32_t *magnitude) {
    _Alignas(64) float rounded[CHUNK];
    Format format = scan->round_to;
    float inverse = scan->inverse, normal = (float)format_table[format].smallest_normal;
    int32_t smallest_normal = magnitude_of(normal);
    Range range = range_of(gradient, count);
    bool ordinary = is_ordinary(range.largest, inverse, format);
    bool counts = range.smallest < smallest_normal;
    if (!ordinary || (format != FORMAT_FP32 && format != FORMAT_BF16))
        round_chunk(format, gradient, rounded, count);
    if (!ordinary)
        return scan_wild(gradient, rounded, count, inverse, smallest_normal, magnitude);
    float largest = number_fp32_of_bits((uint32_t)range.largest), stored = largest;
    if (format != FORMAT_FP32) // roundings never change which is the largest
        round_chunk(format, &largest, &stored, 1);
    Chunk chunk;
    if (format == FORMAT_FP32)
        chunk = counts ? scan_plain(true, gradient, count, inverse, smallest_normal, magnitude)
                       : scan_plain(false, gradient, count, inverse, smallest_normal, magnitude);
    else if (format != FORMAT_BF16)
        chunk = scan_ordinary(true, false, gradient, rounded, count, inverse, smallest_normal,
                              magnitude);
    else if (counts)
        chunk = scan_ordinary(true, true, gradient, rounded, count, inverse, smallest_normal,
                              magnitude);
    else
        chunk = scan_ordinary(false, true, gradient, rounded, count, inverse, smallest_normal,
                              magnitude);
    chunk.seen_largest = largest * inverse;
    chunk.stored_largest = stored * inverse;
    return chunk;
}

static void scan_chunk(float *gradient, int64_t count, CpuScan *scan, uint8_t *exponent,
                       uint8_t *largest_exponent) {
    _Alignas(64) int32_t magnitude[CHUNK]; // of the unscaled values
    Chunk chunk = scan_any(gradient, count, scan, magnitude);
    // By itself, as the loops above would be cut for bytes, into more than the registers hold.
    for (int64_t i = 0; i < count; i++)
        exponent[i] = (uint8_t)(magnitude[i] >> 23);
    add_chunk(scan, &chunk);
    uint8_t top = (uint8_t)(magnitude_of(chunk.seen_largest) >> 23);
    *largest_exponent = top > *largest_exponent ? top : *largest_exponent;
}

// The exponent that bin 0 begins with, and the one past the last bin.
enum { LOWEST = 127 + EXPONENT_LOWEST, BEYOND = LOWEST + EXPONENT_BINS };

// `rest` numbers are too small even for an exponent.
static void add_bins(uint64_t *restrict bins, const uint32_t *restrict counts, uint64_t rest) {
    uint32_t below = 0, above = 0;
    for (int e = 1; e < LOWEST; e++)
        below += counts[e];
    for (int e = BEYOND; e < EXPONENTS; e++)
        above += counts[e];
    for (int bin = 0; bin < EXPONENT_BINS; bin++)
        bins[bin] += counts[LOWEST + bin];
    bins[0] += below + rest;
    bins[EXPONENT_BINS - 1] += above;
}

static void scan_gradient(float *gradient, int64_t count, CpuScan *scan) {
    _Alignas(64) uint8_t exponent[BLOCK];
    GradStats *stats = scan->stats;
    for (int64_t start = 0; start < count; start += BLOCK) {
        int64_t size = count - start < BLOCK ? count - start : BLOCK;
        uint8_t largest = 0;
        uint64_t left_out = stats->zeros + stats->nans + stats->infs;
        for (int64_t at = 0; at < size; at += CHUNK)
            scan_chunk(gradient + start + at, size - at < CHUNK ? size - at : CHUNK, scan,
                       exponent + at, &largest);
        uint32_t counts[EXPONENTS] = {0};
        exponents_count(exponent, size, largest, counts);
        left_out = stats->zeros + stats->nans + stats->infs - left_out;
        uint64_t counted = 0;
        for (int e = 1; e < EXPONENTS; e++)
            counted += counts[e];
        add_bins(stats->exponents, counts, (uint64_t)size - left_out - counted);
        stats->count += (uint64_t)size;
    }
}

// ---- the largest --------------------------------------------------------------------------------

// Four at once: each waits for its own last comparison, not for that of the one beside it.
#define LARGEST(name, type, mask)                                                            \
    static type name(const type *restrict bits, int64_t count) {                             \
        const int64_t part = count / 4;                                                      \
        type a = 0, b = 0, c = 0, d = 0;                                                     \
        _Pragma("omp simd reduction(max : a, b, c, d)") for (int64_t i = 0; i < part; i++) { \
            const type of_a = bits[i] & (type)(mask), of_b = bits[part + i] & (type)(mask);  \
            const type of_c = bits[2 * part + i] & (type)(mask);                             \
            const type of_d = bits[3 * part + i] & (type)(mask);                             \
            a = of_a > a ? of_a : a;                                                         \
            b = of_b > b ? of_b : b;                                                         \
            c = of_c > c ? of_c : c;                                                         \
            d = of_d > d ? of_d : d;                                                         \
        }                                                                                    \
        for (int64_t i = 4 * part; i < count; i++) {                                         \
            const type rest = bits[i] & (type)(mask);                                        \
            a = rest > a ? rest : a;                                                         \
        }                                                                                    \
        a = a > b ? a : b;                                                                   \
        c = c > d ? c : d;                                                                   \
        return a > c ? a : c;                                                                \
    }
LARGEST(largest_of_16, uint16_t, 0x7FFF)
LARGEST(largest_of_32, uint32_t, 0x7FFFFFFF)

extern const CpuScanTable ISA_NAME(cpu_scan);
const CpuScanTable ISA_NAME(cpu_scan) = {
    .scan = scan_gradient, .largest_of_16 = largest_of_16, .largest_of_32 = largest_of_32};
