// Numbers to elements that share a scale: the loops of cpu/scale.c over number/scaled.h.
#include <string.h>

#include "cpu/simd.h"
#include "kernel/random.h"
#include "number/scaled.h"

// So that the loops below become vectors, each for the sizes of blocks that there are.
#define ALWAYS_INLINE static inline __attribute__((always_inline))

// Number i of those that lie at x, which is `from` what the loops below are made for: bf16 or fp32.
ALWAYS_INLINE float number_at(Format from, const void *x, int64_t i) {
    return from == FORMAT_BF16 ? number_bf16_to_fp32(((const uint16_t *)x)[i])
                               : ((const float *)x)[i];
}
ALWAYS_INLINE const void *numbers_behind(Format from, const void *x, int64_t count) {
    return (const char *)x + count * (from == FORMAT_BF16 ? 2 : 4);
}

// ---- the largest --------------------------------------------------------------------------------

// Magnitudes are ordered as their bits are; `most` of these counts, what is beyond it does not.
ALWAYS_INLINE int16_t larger_half(int16_t largest, uint16_t x, int16_t most) {
    const int16_t magnitude = (int16_t)(x & 0x7FFF);
    const int16_t counted = magnitude > most ? 0 : magnitude;
    return counted > largest ? counted : largest;
}

ALWAYS_INLINE int32_t larger_whole(int32_t largest, float x, int32_t most) {
    const int32_t magnitude = (int32_t)(number_bits_of_fp32(x) & NUMBER_MAGNITUDE_);
    const int32_t counted = magnitude > most ? 0 : magnitude;
    return counted > largest ? counted : largest;
}

enum { ANY_HALF = 0x7FFF, FINITE_HALF = 0x7F7F, ANY_WHOLE = INT32_MAX, FINITE_WHOLE = 0x7F7FFFFF };

ALWAYS_INLINE float largest_of_some(Format from, const void *restrict x, int64_t count,
                                    bool finite) {
    if (from == FORMAT_BF16) {
        int16_t largest = 0;
        for (int64_t i = 0; i < count; i++)
            largest =
                larger_half(largest, ((const uint16_t *)x)[i], finite ? FINITE_HALF : ANY_HALF);
        return number_bf16_to_fp32((uint16_t)largest);
    }
    int32_t largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = larger_whole(largest, ((const float *)x)[i], finite ? FINITE_WHOLE : ANY_WHOLE);
    return number_fp32_of_bits((uint32_t)largest);
}

static float largest(Format from, const void *x, int64_t count, bool finite) {
    if (from == FORMAT_BF16)
        return largest_of_some(FORMAT_BF16, x, count, finite);
    return largest_of_some(FORMAT_FP32, x, count, finite);
}

ALWAYS_INLINE void largest_of_each(Format from, const void *restrict x, int64_t blocks,
                                   int64_t block, float *restrict largest) {
    for (int64_t i = 0; i < blocks; i++)
        largest[i] = largest_of_some(from, numbers_behind(from, x, i * block), block, true);
}

ALWAYS_INLINE void largest_of_size(Format from, const void *x, int64_t blocks, int64_t block,
                                   float *largest) {
    switch (block) {
    case 1: largest_of_each(from, x, blocks, 1, largest); return;
    case 16: largest_of_each(from, x, blocks, 16, largest); return;
    case 32: largest_of_each(from, x, blocks, 32, largest); return;
    case 128: largest_of_each(from, x, blocks, 128, largest); return;
    default: largest_of_each(from, x, blocks, block, largest);
    }
}

static void largest_of_blocks(Format from, const void *x, int64_t blocks, int64_t block,
                              float *largest) {
    if (from == FORMAT_BF16)
        largest_of_size(FORMAT_BF16, x, blocks, block, largest);
    else
        largest_of_size(FORMAT_FP32, x, blocks, block, largest);
}

// Row after row, as they lie: memory is read in long stretches.
static void largest_of_columns(Format from, const void *restrict x, int64_t stride, int64_t rows,
                               int64_t width, float *restrict largest) {
    if (from == FORMAT_BF16) {
        int16_t halves[CPU_SCALE_COLUMNS];
        memset(halves, 0, (size_t)width * sizeof *halves);
        for (int64_t row = 0; row < rows; row++)
            for (int64_t i = 0; i < width; i++)
                halves[i] =
                    larger_half(halves[i], ((const uint16_t *)x)[row * stride + i], FINITE_HALF);
        for (int64_t i = 0; i < width; i++)
            largest[i] = number_bf16_to_fp32((uint16_t)halves[i]);
        return;
    }
    int32_t wholes[CPU_SCALE_COLUMNS];
    memset(wholes, 0, (size_t)width * sizeof *wholes);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < width; i++)
            wholes[i] = larger_whole(wholes[i], ((const float *)x)[row * stride + i], FINITE_WHOLE);
    for (int64_t i = 0; i < width; i++)
        largest[i] = number_fp32_of_bits((uint32_t)wholes[i]);
}

// ---- scales -------------------------------------------------------------------------------------

#define EACH_SCALE(scale_of)                \
    for (int64_t i = 0; i < count; i++) {   \
        const NumberScale scale = scale_of; \
        to_elements[i] = scale.to_elements; \
        to_numbers[i] = scale.to_numbers;   \
    }

static void choose_scales(const CpuScaleRule *rule, const float *restrict largest, int64_t count,
                          float *restrict to_elements, float *restrict to_numbers) {
    const NumberElement element = rule->element;
    const bool up = rule->up;
    const float tensor = rule->tensor;
    if (rule->scale == FORMAT_E8M0)
        EACH_SCALE(number_scale_of_power(largest[i], element, up))
    else if (rule->scale == FORMAT_E4M3 && rule->apart)
        EACH_SCALE(number_scale_apart(largest[i], element, tensor))
    else if (rule->scale == FORMAT_E4M3)
        EACH_SCALE(number_scale_in_tensor(largest[i], element, tensor))
    else
        EACH_SCALE(number_scale_of_largest(largest[i], element))
}

// What 4 in place of 6 makes of a block.
typedef struct Other {
    NumberScale scale;
    float six, four; // the scales below that of all
} Other;

ALWAYS_INLINE Other other_scale(const CpuScaleRule *rule, float largest) {
    const NumberElement four = number_element_of_four(rule->element);
    const float tensor = rule->tensor;
    Other other = {.scale = rule->apart ? number_scale_apart(largest, four, tensor)
                                        : number_scale_in_tensor(largest, four, tensor),
                   .six = number_scale_below_tensor(largest, rule->element, tensor),
                   .four = number_scale_below_tensor(largest, four, tensor)};
    return other;
}

ALWAYS_INLINE void better_each(const CpuScaleRule *rule, Format from, const void *restrict x,
                               int64_t blocks, int64_t block, const float *restrict largest,
                               float *restrict to_elements, float *restrict to_numbers) {
    const NumberElement element = rule->element;
    for (int64_t i = 0; i < blocks; i++, x = numbers_behind(from, x, block)) {
        const Other other = other_scale(rule, largest[i]);
        const float times_six = to_elements[i], times_four = other.scale.to_elements;
        int32_t six = 0, four = 0;
        for (int64_t k = 0; k < block; k++) {
            six += number_miss(number_at(from, x, k) * times_six, element);
            four += number_miss(number_at(from, x, k) * times_four, element);
        }
        if (number_four_is_better(other.six, other.four, six, four)) {
            to_elements[i] = other.scale.to_elements;
            to_numbers[i] = other.scale.to_numbers;
        }
    }
}

static void better_blocks(const CpuScaleRule *rule, Format from, const void *x, int64_t blocks,
                          int64_t block, const float *largest, float *to_elements,
                          float *to_numbers) {
    if (block == 16 && from == FORMAT_BF16)
        better_each(rule, FORMAT_BF16, x, blocks, 16, largest, to_elements, to_numbers);
    else if (block == 16)
        better_each(rule, FORMAT_FP32, x, blocks, 16, largest, to_elements, to_numbers);
    else
        better_each(rule, from, x, blocks, block, largest, to_elements, to_numbers);
}

enum { COLUMNS = 64 }; // at once

ALWAYS_INLINE void better_some(const CpuScaleRule *rule, Format from, const void *restrict x,
                               int64_t stride, int64_t rows, int64_t count,
                               const float *restrict largest, float *restrict to_elements,
                               float *restrict to_numbers) {
    const NumberElement element = rule->element;
    float times_four[COLUMNS], worth_four[COLUMNS], scale_six[COLUMNS], scale_four[COLUMNS];
    int32_t six[COLUMNS] = {0}, four[COLUMNS] = {0};
    for (int64_t i = 0; i < count; i++) {
        const Other other = other_scale(rule, largest[i]);
        times_four[i] = other.scale.to_elements;
        worth_four[i] = other.scale.to_numbers;
        scale_six[i] = other.six;
        scale_four[i] = other.four;
    }
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < count; i++) {
            const float number = number_at(from, x, row * stride + i);
            six[i] += number_miss(number * to_elements[i], element);
            four[i] += number_miss(number * times_four[i], element);
        }
    for (int64_t i = 0; i < count; i++)
        if (number_four_is_better(scale_six[i], scale_four[i], six[i], four[i])) {
            to_elements[i] = times_four[i];
            to_numbers[i] = worth_four[i];
        }
}

static void better_columns(const CpuScaleRule *rule, Format from, const void *x, int64_t stride,
                           int64_t rows, int64_t width, const float *largest, float *to_elements,
                           float *to_numbers) {
    for (int64_t i = 0; i < width; i += COLUMNS) {
        const int64_t count = width - i < COLUMNS ? width - i : COLUMNS;
        const void *some = numbers_behind(from, x, i);
        if (from == FORMAT_BF16)
            better_some(rule, FORMAT_BF16, some, stride, rows, count, largest + i, to_elements + i,
                        to_numbers + i);
        else
            better_some(rule, FORMAT_FP32, some, stride, rows, count, largest + i, to_elements + i,
                        to_numbers + i);
    }
}

// ---- rounding -----------------------------------------------------------------------------------

// Multiplied, a NaN is a quiet one, of which the upper half is a NaN too.
ALWAYS_INLINE void put(Format to, void *y, int64_t i, float worth) {
    if (to == FORMAT_BF16)
        ((uint16_t *)y)[i] = (uint16_t)(number_bits_of_fp32(worth) >> 16);
    else
        ((float *)y)[i] = worth;
}

// The formats are constants where this is inlined, and so is whether numbers have scales each, or
// all the first.
ALWAYS_INLINE void round_some(Format from, Format to, bool each, const CpuRounding *by,
                              const void *restrict x, int64_t count,
                              const float *restrict to_elements, const float *restrict to_numbers,
                              const uint32_t *restrict words, void *restrict y) {
    const NumberElement element = by->element;
    if (words) {
        for (int64_t i = 0; i < count; i++)
            put(to, y, i,
                number_round_to_element(number_at(from, x, i) * to_elements[each ? i : 0], element,
                                        true, random_uniform(words[i])) *
                    to_numbers[each ? i : 0]);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        put(to, y, i,
            number_round_to_element(number_at(from, x, i) * to_elements[each ? i : 0], element,
                                    false, 0) *
                to_numbers[each ? i : 0]);
}

ALWAYS_INLINE void round_each(Format from, Format to, const CpuRounding *by, const void *x,
                              int64_t blocks, int64_t block, void *y) {
    for (int64_t i = 0; i < blocks; i++)
        round_some(from, to, false, by, numbers_behind(from, x, i * block), block,
                   by->to_elements + i, by->to_numbers + i,
                   by->words ? by->words + i * block : NULL,
                   (void *)(uintptr_t)numbers_behind(to, y, i * block));
}

ALWAYS_INLINE void round_of_size(Format from, Format to, const CpuRounding *by, const void *x,
                                 int64_t blocks, int64_t block, void *y) {
    switch (block) {
    case 1:
        round_some(from, to, true, by, x, blocks, by->to_elements, by->to_numbers, by->words, y);
        return;
    case 16: round_each(from, to, by, x, blocks, 16, y); return;
    case 32: round_each(from, to, by, x, blocks, 32, y); return;
    default: round_each(from, to, by, x, blocks, block, y);
    }
}

ALWAYS_INLINE void round_rows(Format from, Format to, const CpuRounding *by, const void *x,
                              int64_t x_stride, int64_t rows, int64_t width, void *y,
                              int64_t y_stride) {
    for (int64_t row = 0; row < rows; row++)
        round_some(from, to, true, by, numbers_behind(from, x, row * x_stride), width,
                   by->to_elements, by->to_numbers, by->words,
                   (void *)(uintptr_t)numbers_behind(to, y, row * y_stride));
}

// Calls `loop` made for the formats that `by` has.
#define FOR_FORMATS(loop, by, ...)                                \
    do {                                                          \
        if ((by)->from == FORMAT_BF16 && (by)->to == FORMAT_BF16) \
            loop(FORMAT_BF16, FORMAT_BF16, by, __VA_ARGS__);      \
        else if ((by)->from == FORMAT_BF16)                       \
            loop(FORMAT_BF16, FORMAT_FP32, by, __VA_ARGS__);      \
        else if ((by)->to == FORMAT_BF16)                         \
            loop(FORMAT_FP32, FORMAT_BF16, by, __VA_ARGS__);      \
        else                                                      \
            loop(FORMAT_FP32, FORMAT_FP32, by, __VA_ARGS__);      \
    } while (0)

static void round_blocks(const CpuRounding *by, const void *x, int64_t blocks, int64_t block,
                         void *y) {
    FOR_FORMATS(round_of_size, by, x, blocks, block, y);
}

static void round_columns(const CpuRounding *by, const void *x, int64_t x_stride, int64_t rows,
                          int64_t width, void *y, int64_t y_stride) {
    FOR_FORMATS(round_rows, by, x, x_stride, rows, width, y, y_stride);
}

// ---- turning ------------------------------------------------------------------------------------

typedef float Sixteen __attribute__((vector_size(64)));
typedef int32_t SixteenBits __attribute__((vector_size(64)));
typedef float LooseSixteen __attribute__((vector_size(64), aligned(4), may_alias));

#define SIXTEEN(of)                                                                               \
    of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7), of(8), of(9), of(10), of(11), of(12), \
        of(13), of(14), of(15)
// Low ones become low + high, high ones low - high, of those that change places.
#define BUTTERFLY(x, place, sign)                    \
    (__builtin_shufflevector(x, x, SIXTEEN(place)) + \
     (Sixteen)((SixteenBits)(x) ^ (SixteenBits){SIXTEEN(sign)}))
#define SIGN_WHERE(bits) ((bits) ? INT32_MIN : 0)
#define FIRST_SIGN(i)    SIGN_WHERE(NUMBER_HADAMARD_SIGNS >> (i)&1)
#define PLACE_1(i)       ((i) ^ 1)
#define PLACE_2(i)       ((i) ^ 2)
#define PLACE_4(i)       ((i) ^ 4)
#define PLACE_8(i)       ((i) ^ 8)
#define SIGN_1(i)        SIGN_WHERE((i)&1)
#define SIGN_2(i)        SIGN_WHERE((i)&2)
#define SIGN_4(i)        SIGN_WHERE((i)&4)
#define SIGN_8(i)        SIGN_WHERE((i)&8)

static void turn(float *x, int64_t sixteens) {
    for (int64_t i = 0; i < sixteens; i++, x += NUMBER_HADAMARD) {
        Sixteen all = *(const LooseSixteen *)x;
        all = (Sixteen)((SixteenBits)all ^ (SixteenBits){SIXTEEN(FIRST_SIGN)});
        all = BUTTERFLY(all, PLACE_1, SIGN_1);
        all = BUTTERFLY(all, PLACE_2, SIGN_2);
        all = BUTTERFLY(all, PLACE_4, SIGN_4);
        all = BUTTERFLY(all, PLACE_8, SIGN_8);
        *(LooseSixteen *)x = all * 0.25f;
    }
}

static void turn_columns(float *restrict x, int64_t width) {
    for (int i = 0; i < NUMBER_HADAMARD; i++)
        if (NUMBER_HADAMARD_SIGNS >> i & 1)
            for (int64_t c = 0; c < width; c++)
                x[i * width + c] = -x[i * width + c];
    for (int apart = 1; apart < NUMBER_HADAMARD; apart *= 2)
        for (int i = 0; i < NUMBER_HADAMARD; i++) {
            if (i & apart)
                continue;
            const float quarter = 2 * apart == NUMBER_HADAMARD ? 0.25f : 1;
            float *restrict a = x + i * width, *restrict b = x + (i + apart) * width;
            for (int64_t c = 0; c < width; c++) {
                const float low = a[c], high = b[c];
                a[c] = (low + high) * quarter;
                b[c] = (low - high) * quarter;
            }
        }
}

extern const CpuScale ISA_NAME(cpu_scale);
const CpuScale ISA_NAME(cpu_scale) = {
    .largest = largest,
    .largest_of_blocks = largest_of_blocks,
    .largest_of_columns = largest_of_columns,
    .scales = choose_scales,
    .better_blocks = better_blocks,
    .better_columns = better_columns,
    .round_blocks = round_blocks,
    .round_columns = round_columns,
    .turn = turn,
    .turn_columns = turn_columns,
};
