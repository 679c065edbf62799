// Numbers to elements that share a scale: the loops of cpu/scale.c over number/scaled.h.
#include <assert.h>
#include <string.h>

#include "cpu/simd.h"
#include "kernel/random.h"
#include "number/scaled.h"

// So that the loops below become vectors, each for the sizes of blocks that there are.
#define ALWAYS_INLINE static inline __attribute__((always_inline))

// `from` is bf16 or fp32, and a constant where these are inlined.
ALWAYS_INLINE float number_at(Format from, const void *x, int64_t i) {
    return from == FORMAT_BF16 ? number_bf16_to_fp32(((const uint16_t *)x)[i])
                               : ((const float *)x)[i];
}
ALWAYS_INLINE int64_t bytes_of(Format format) {
    return format == FORMAT_BF16 ? 2 : 4;
}
ALWAYS_INLINE const void *row_of(Format from, const CpuScaleRows *rows, int64_t row) {
    return (const char *)rows->numbers + row * rows->stride * bytes_of(from);
}

// Calls `loop`, made for the format that the rows are in.
#define FOR_FORMAT(loop, rows, ...)               \
    do {                                          \
        if ((rows)->format == FORMAT_BF16)        \
            loop(FORMAT_BF16, rows, __VA_ARGS__); \
        else                                      \
            loop(FORMAT_FP32, rows, __VA_ARGS__); \
    } while (0)

// ---- the largest --------------------------------------------------------------------------------

// Magnitudes are ordered as their bits are; one beyond `most` does not count.
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

static float largest_of_all(Format from, const void *x, int64_t count, bool finite) {
    if (from == FORMAT_BF16)
        return largest_of_some(FORMAT_BF16, x, count, finite);
    return largest_of_some(FORMAT_FP32, x, count, finite);
}

// `width`: of rows, a constant where this is inlined.
ALWAYS_INLINE void largest_of_each(Format from, const CpuScaleRows *rows, int64_t width,
                                   float *restrict largest) {
    for (int64_t i = 0; i < rows->rows; i++)
        largest[i] = largest_of_some(from, row_of(from, rows, i), width, true);
}

ALWAYS_INLINE void largest_of_width(Format from, const CpuScaleRows *rows, float *largest) {
    switch (rows->width) {
    case 1: largest_of_each(from, rows, 1, largest); return;
    case 16: largest_of_each(from, rows, 16, largest); return;
    case 32: largest_of_each(from, rows, 32, largest); return;
    case 128: largest_of_each(from, rows, 128, largest); return;
    default: largest_of_each(from, rows, rows->width, largest);
    }
}

static void largest_of_rows(const CpuScaleRows *rows, float *largest) {
    FOR_FORMAT(largest_of_width, rows, largest);
}

// Row after row, as they lie: memory is read in long stretches.
ALWAYS_INLINE void largest_across(Format from, const CpuScaleRows *rows, float *restrict largest) {
    const int64_t width = rows->width;
    int16_t halves[CPU_SCALE_COLUMNS];
    int32_t wholes[CPU_SCALE_COLUMNS];
    assert(width <= CPU_SCALE_COLUMNS);
    if (from == FORMAT_BF16)
        memset(halves, 0, (size_t)width * sizeof *halves);
    else
        memset(wholes, 0, (size_t)width * sizeof *wholes);
    for (int64_t row = 0; row < rows->rows; row++) {
        const void *restrict x = row_of(from, rows, row);
        if (from == FORMAT_BF16)
            for (int64_t i = 0; i < width; i++)
                halves[i] = larger_half(halves[i], ((const uint16_t *)x)[i], FINITE_HALF);
        else
            for (int64_t i = 0; i < width; i++)
                wholes[i] = larger_whole(wholes[i], ((const float *)x)[i], FINITE_WHOLE);
    }
    for (int64_t i = 0; i < width; i++)
        largest[i] = from == FORMAT_BF16 ? number_bf16_to_fp32((uint16_t)halves[i])
                                         : number_fp32_of_bits((uint32_t)wholes[i]);
}

static void largest_of_columns(const CpuScaleRows *rows, float *largest) {
    FOR_FORMAT(largest_across, rows, largest);
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

ALWAYS_INLINE void better_each(Format from, const CpuScaleRows *rows, int64_t width,
                               const CpuScaleRule *rule, const float *restrict largest,
                               float *restrict to_elements, float *restrict to_numbers) {
    const NumberElement element = rule->element;
    for (int64_t i = 0; i < rows->rows; i++) {
        const void *restrict x = row_of(from, rows, i);
        const Other other = other_scale(rule, largest[i]);
        const float times_six = to_elements[i], times_four = other.scale.to_elements;
        int32_t six = 0, four = 0;
        for (int64_t k = 0; k < width; k++) {
            six += number_miss(number_at(from, x, k) * times_six, element);
            four += number_miss(number_at(from, x, k) * times_four, element);
        }
        if (number_four_is_better(other.six, other.four, six, four)) {
            to_elements[i] = other.scale.to_elements;
            to_numbers[i] = other.scale.to_numbers;
        }
    }
}

ALWAYS_INLINE void better_of_width(Format from, const CpuScaleRows *rows, const CpuScaleRule *rule,
                                   const float *largest, float *to_elements, float *to_numbers) {
    if (rows->width == 16)
        better_each(from, rows, 16, rule, largest, to_elements, to_numbers);
    else
        better_each(from, rows, rows->width, rule, largest, to_elements, to_numbers);
}

static void better_rows(const CpuScaleRule *rule, const CpuScaleRows *rows, const float *largest,
                        float *to_elements, float *to_numbers) {
    FOR_FORMAT(better_of_width, rows, rule, largest, to_elements, to_numbers);
}

enum { COLUMNS = 64 }; // at once

ALWAYS_INLINE void better_across(Format from, const CpuScaleRows *rows, const CpuScaleRule *rule,
                                 const float *restrict largest, float *restrict to_elements,
                                 float *restrict to_numbers) {
    const NumberElement element = rule->element;
    for (int64_t first = 0; first < rows->width; first += COLUMNS) {
        const int64_t left = rows->width - first, count = left < COLUMNS ? left : COLUMNS;
        float times_four[COLUMNS], worth_four[COLUMNS], scale_six[COLUMNS], scale_four[COLUMNS];
        int32_t six[COLUMNS] = {0}, four[COLUMNS] = {0};
        for (int64_t i = 0; i < count; i++) {
            const Other other = other_scale(rule, largest[first + i]);
            times_four[i] = other.scale.to_elements;
            worth_four[i] = other.scale.to_numbers;
            scale_six[i] = other.six;
            scale_four[i] = other.four;
        }
        for (int64_t row = 0; row < rows->rows; row++) {
            const void *restrict x = row_of(from, rows, row);
            for (int64_t i = 0; i < count; i++) {
                const float number = number_at(from, x, first + i);
                six[i] += number_miss(number * to_elements[first + i], element);
                four[i] += number_miss(number * times_four[i], element);
            }
        }
        for (int64_t i = 0; i < count; i++)
            if (number_four_is_better(scale_six[i], scale_four[i], six[i], four[i])) {
                to_elements[first + i] = times_four[i];
                to_numbers[first + i] = worth_four[i];
            }
    }
}

static void better_columns(const CpuScaleRule *rule, const CpuScaleRows *rows, const float *largest,
                           float *to_elements, float *to_numbers) {
    FOR_FORMAT(better_across, rows, rule, largest, to_elements, to_numbers);
}

// ---- rounding -----------------------------------------------------------------------------------

// Multiplied, a NaN is a quiet one, of which the upper half is a NaN too.
ALWAYS_INLINE void put(Format to, void *y, int64_t i, float worth) {
    if (to == FORMAT_BF16)
        ((uint16_t *)y)[i] = (uint16_t)(number_bits_of_fp32(worth) >> 16);
    else
        ((float *)y)[i] = worth;
}

// `step`: 1 where numbers have scales each, 0 where all have the first: a constant where this is
// inlined, as both formats are.
ALWAYS_INLINE void round_some(Format from, Format to, int step, NumberElement element,
                              const void *restrict x, int64_t count,
                              const float *restrict to_elements, const float *restrict to_numbers,
                              const uint32_t *restrict words, void *restrict y) {
    if (words) {
        for (int64_t i = 0; i < count; i++)
            put(to, y, i,
                number_round_to_element(number_at(from, x, i) * to_elements[i * step], element,
                                        true, random_uniform(words[i])) *
                    to_numbers[i * step]);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        put(to, y, i,
            number_round_to_element(number_at(from, x, i) * to_elements[i * step], element, false,
                                    0) *
                to_numbers[i * step]);
}

ALWAYS_INLINE void round_each(Format from, Format to, const CpuScaleRows *rows, int64_t width,
                              const CpuRounding *by, char *y) {
    for (int64_t i = 0; i < rows->rows; i++)
        round_some(from, to, 0, by->element, row_of(from, rows, i), width, by->to_elements + i,
                   by->to_numbers + i, by->words ? by->words + i * width : NULL,
                   y + i * width * bytes_of(to));
}

// Blocks of one number that lie without gaps are a row with scales each.
ALWAYS_INLINE void round_of_width(Format from, Format to, const CpuScaleRows *rows,
                                  const CpuRounding *by, char *y) {
    if (rows->width == 1 && rows->stride == 1)
        round_some(from, to, 1, by->element, rows->numbers, rows->rows, by->to_elements,
                   by->to_numbers, by->words, y);
    else if (rows->width == 16)
        round_each(from, to, rows, 16, by, y);
    else if (rows->width == 32)
        round_each(from, to, rows, 32, by, y);
    else
        round_each(from, to, rows, rows->width, by, y);
}

ALWAYS_INLINE void round_across(Format from, Format to, const CpuScaleRows *rows,
                                const CpuRounding *by, char *y, int64_t y_stride) {
    assert(!by->words || rows->rows == 1);
    for (int64_t row = 0; row < rows->rows; row++)
        round_some(from, to, 1, by->element, row_of(from, rows, row), rows->width, by->to_elements,
                   by->to_numbers, by->words, y + row * y_stride * bytes_of(to));
}

// The same of what is written.
#define TO_FORMAT(from, rows, loop, by, ...)                \
    do {                                                    \
        if ((by)->to == FORMAT_BF16)                        \
            loop(from, FORMAT_BF16, rows, by, __VA_ARGS__); \
        else                                                \
            loop(from, FORMAT_FP32, rows, by, __VA_ARGS__); \
    } while (0)

static void round_rows(const CpuRounding *by, const CpuScaleRows *rows, void *y) {
    FOR_FORMAT(TO_FORMAT, rows, round_of_width, by, y);
}

static void round_columns(const CpuRounding *by, const CpuScaleRows *rows, void *y,
                          int64_t y_stride) {
    FOR_FORMAT(TO_FORMAT, rows, round_across, by, y, y_stride);
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
    .largest = largest_of_all,
    .largest_of_rows = largest_of_rows,
    .largest_of_columns = largest_of_columns,
    .scales = choose_scales,
    .better_rows = better_rows,
    .better_columns = better_columns,
    .round_rows = round_rows,
    .round_columns = round_columns,
    .turn = turn,
    .turn_columns = turn_columns,
};
