// Numbers to elements that share a scale: the loops of cpu/scale.c over number/scaled.h.
#include "cpu/simd.h"
#include "kernel/random.h"
#include "number/scaled.h"

// So that the loops below become vectors, each for the sizes of blocks that there are.
#define ALWAYS_INLINE static inline __attribute__((always_inline))

ALWAYS_INLINE uint32_t magnitude_of(float x) {
    return number_bits_of_fp32(x) & NUMBER_MAGNITUDE_;
}

// Magnitudes are ordered as their bits are.
ALWAYS_INLINE int32_t larger_finite(int32_t largest, float x) {
    const uint32_t magnitude = magnitude_of(x);
    const int32_t finite = (int32_t)number_select_(magnitude, NUMBER_INFINITY_, magnitude, 0);
    return finite > largest ? finite : largest;
}

ALWAYS_INLINE float largest_of_some(const float *restrict x, int64_t count) {
    int32_t largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = larger_finite(largest, x[i]);
    return number_fp32_of_bits((uint32_t)largest);
}

static float largest_finite(const float *restrict x, int64_t count) {
    return largest_of_some(x, count);
}

static float largest_of_all(const float *restrict x, int64_t count) {
    int32_t largest = 0;
    for (int64_t i = 0; i < count; i++) {
        int32_t magnitude = (int32_t)magnitude_of(x[i]);
        largest = magnitude > largest ? magnitude : largest;
    }
    return number_fp32_of_bits((uint32_t)largest);
}

static float largest_of_bf16(const uint16_t *restrict x, int64_t count, bool finite) {
    const int16_t most = finite ? 0x7F7F : 0x7FFF;
    int16_t largest = 0;
    for (int64_t i = 0; i < count; i++) {
        const int16_t magnitude = (int16_t)(x[i] & 0x7FFF);
        const int16_t counted = magnitude > most ? 0 : magnitude;
        largest = counted > largest ? counted : largest;
    }
    return number_bf16_to_fp32((uint16_t)largest);
}

// ---- the largest of each block ------------------------------------------------------------------

ALWAYS_INLINE void each_block(const float *restrict x, int64_t blocks, int64_t block,
                              float *restrict largest) {
    for (int64_t i = 0; i < blocks; i++)
        largest[i] = largest_of_some(x + i * block, block);
}

static void largest_of_blocks(const float *restrict x, int64_t blocks, int64_t block,
                              float *restrict largest) {
    switch (block) {
    case 1: each_block(x, blocks, 1, largest); return;
    case 16: each_block(x, blocks, 16, largest); return;
    case 32: each_block(x, blocks, 32, largest); return;
    case 128: each_block(x, blocks, 128, largest); return;
    default: each_block(x, blocks, block, largest);
    }
}

static void largest_of_columns(const float *restrict x, int64_t rows, int64_t width,
                               float *restrict largest) {
    for (int64_t i = 0; i < width; i++)
        largest[i] = 0;
    for (int64_t row = 0; row < rows; row++, x += width)
        for (int64_t i = 0; i < width; i++)
            largest[i] = number_fp32_of_bits(
                (uint32_t)larger_finite((int32_t)number_bits_of_fp32(largest[i]), x[i]));
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

ALWAYS_INLINE void better_each(const CpuScaleRule *rule, const float *restrict x, int64_t blocks,
                               int64_t block, const float *restrict largest,
                               float *restrict to_elements, float *restrict to_numbers) {
    const NumberElement element = rule->element;
    for (int64_t i = 0; i < blocks; i++, x += block) {
        const Other other = other_scale(rule, largest[i]);
        const float times_six = to_elements[i], times_four = other.scale.to_elements;
        int32_t six = 0, four = 0;
        for (int64_t k = 0; k < block; k++) {
            six += number_miss(x[k] * times_six, element);
            four += number_miss(x[k] * times_four, element);
        }
        if (number_four_is_better(other.six, other.four, six, four)) {
            to_elements[i] = other.scale.to_elements;
            to_numbers[i] = other.scale.to_numbers;
        }
    }
}

static void better_blocks(const CpuScaleRule *rule, const float *restrict x, int64_t blocks,
                          int64_t block, const float *restrict largest, float *restrict to_elements,
                          float *restrict to_numbers) {
    if (block == 16)
        better_each(rule, x, blocks, 16, largest, to_elements, to_numbers);
    else
        better_each(rule, x, blocks, block, largest, to_elements, to_numbers);
}

enum { COLUMNS = 64 }; // at once

static void better_columns(const CpuScaleRule *rule, const float *restrict x, int64_t rows,
                           int64_t width, const float *restrict largest,
                           float *restrict to_elements, float *restrict to_numbers) {
    const NumberElement element = rule->element;
    for (int64_t first = 0; first < width; first += COLUMNS) {
        const int64_t count = width - first < COLUMNS ? width - first : COLUMNS;
        float times_four[COLUMNS], worth_four[COLUMNS], scale_six[COLUMNS], scale_four[COLUMNS];
        int32_t six[COLUMNS] = {0}, four[COLUMNS] = {0};
        for (int64_t i = 0; i < count; i++) {
            const Other other = other_scale(rule, largest[first + i]);
            times_four[i] = other.scale.to_elements;
            worth_four[i] = other.scale.to_numbers;
            scale_six[i] = other.six;
            scale_four[i] = other.four;
        }
        for (int64_t row = 0; row < rows; row++)
            for (int64_t i = 0; i < count; i++) {
                const float number = x[row * width + first + i];
                six[i] += number_miss(number * to_elements[first + i], element);
                four[i] += number_miss(number * times_four[i], element);
            }
        for (int64_t i = 0; i < count; i++)
            if (number_four_is_better(scale_six[i], scale_four[i], six[i], four[i])) {
                to_elements[first + i] = times_four[i];
                to_numbers[first + i] = worth_four[i];
            }
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

ALWAYS_INLINE void round_some(const float *restrict x, int64_t count, NumberElement element,
                              float to_elements, float to_numbers, const uint32_t *restrict words,
                              Format to, void *restrict y) {
    if (words) {
        for (int64_t i = 0; i < count; i++)
            put(to, y, i,
                number_round_to_element(x[i] * to_elements, element, true,
                                        random_uniform(words[i])) *
                    to_numbers);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        put(to, y, i, number_round_to_element(x[i] * to_elements, element, false, 0) * to_numbers);
}

static void round_all(const float *x, int64_t count, NumberElement element, NumberScale scale,
                      const uint32_t *words, Format to, void *y) {
    if (to == FORMAT_BF16)
        round_some(x, count, element, scale.to_elements, scale.to_numbers, words, FORMAT_BF16, y);
    else
        round_some(x, count, element, scale.to_elements, scale.to_numbers, words, FORMAT_FP32, y);
}

ALWAYS_INLINE void round_apart(const float *restrict x, int64_t count, NumberElement element,
                               const float *restrict to_elements, const float *restrict to_numbers,
                               const uint32_t *restrict words, Format to, void *restrict y) {
    if (words) {
        for (int64_t i = 0; i < count; i++)
            put(to, y, i,
                number_round_to_element(x[i] * to_elements[i], element, true,
                                        random_uniform(words[i])) *
                    to_numbers[i]);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        put(to, y, i,
            number_round_to_element(x[i] * to_elements[i], element, false, 0) * to_numbers[i]);
}

static void round_row(const float *x, int64_t count, NumberElement element,
                      const float *to_elements, const float *to_numbers, const uint32_t *words,
                      Format to, void *y) {
    if (to == FORMAT_BF16)
        round_apart(x, count, element, to_elements, to_numbers, words, FORMAT_BF16, y);
    else
        round_apart(x, count, element, to_elements, to_numbers, words, FORMAT_FP32, y);
}

ALWAYS_INLINE void round_each(const float *x, int64_t blocks, int64_t block, NumberElement element,
                              const float *to_elements, const float *to_numbers,
                              const uint32_t *words, Format to, void *y) {
    const int64_t bytes = to == FORMAT_BF16 ? 2 : 4;
    for (int64_t i = 0; i < blocks; i++)
        round_some(x + i * block, block, element, to_elements[i], to_numbers[i],
                   words ? words + i * block : NULL, to, (char *)y + i * block * bytes);
}

ALWAYS_INLINE void round_of_size(const float *x, int64_t blocks, int64_t block,
                                 NumberElement element, const float *to_elements,
                                 const float *to_numbers, const uint32_t *words, Format to,
                                 void *y) {
    switch (block) {
    case 1: round_apart(x, blocks, element, to_elements, to_numbers, words, to, y); return;
    case 16: round_each(x, blocks, 16, element, to_elements, to_numbers, words, to, y); return;
    case 32: round_each(x, blocks, 32, element, to_elements, to_numbers, words, to, y); return;
    default: round_each(x, blocks, block, element, to_elements, to_numbers, words, to, y);
    }
}

static void round_blocks(const float *x, int64_t blocks, int64_t block, NumberElement element,
                         const float *to_elements, const float *to_numbers, const uint32_t *words,
                         Format to, void *y) {
    if (to == FORMAT_BF16)
        round_of_size(x, blocks, block, element, to_elements, to_numbers, words, FORMAT_BF16, y);
    else
        round_of_size(x, blocks, block, element, to_elements, to_numbers, words, FORMAT_FP32, y);
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
    .largest = largest_finite,
    .largest_of_all = largest_of_all,
    .largest_of_bf16 = largest_of_bf16,
    .largest_of_blocks = largest_of_blocks,
    .largest_of_columns = largest_of_columns,
    .scales = choose_scales,
    .better_blocks = better_blocks,
    .better_columns = better_columns,
    .round = round_all,
    .round_blocks = round_blocks,
    .round_row = round_row,
    .turn = turn,
    .turn_columns = turn_columns,
};
