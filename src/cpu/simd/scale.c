// Numbers to elements that share a scale: the loops of cpu/scale.c over number/scaled.h.
#include "cpu/simd.h"
#include "kernel/random.h"
#include "number/scaled.h"

static inline uint32_t magnitude_of(float x) {
    return number_bits_of_fp32(x) & NUMBER_MAGNITUDE_;
}

// Magnitudes are ordered as their bits are.
static float largest_finite(const float *restrict x, int64_t count) {
    int32_t largest = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t magnitude = magnitude_of(x[i]);
        int32_t finite = (int32_t)number_select_(magnitude, NUMBER_INFINITY_, magnitude, 0);
        largest = finite > largest ? finite : largest;
    }
    return number_fp32_of_bits((uint32_t)largest);
}

static float largest_of_all(const float *restrict x, int64_t count) {
    int32_t largest = 0;
    for (int64_t i = 0; i < count; i++) {
        int32_t magnitude = (int32_t)magnitude_of(x[i]);
        largest = magnitude > largest ? magnitude : largest;
    }
    return number_fp32_of_bits((uint32_t)largest);
}

static void largest_each(float *restrict largest, const float *restrict x, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        uint32_t magnitude = magnitude_of(x[i]), before = number_bits_of_fp32(largest[i]);
        uint32_t finite = number_select_(magnitude, NUMBER_INFINITY_, magnitude, 0);
        largest[i] = number_fp32_of_bits(number_select_(before, finite, finite, before));
    }
}

static void round_all(float *restrict x, int64_t count, NumberElement element, NumberScale scale,
                      const uint32_t *restrict words) {
    if (words) {
        for (int64_t i = 0; i < count; i++)
            x[i] = number_round_to_element(x[i] * scale.to_elements, element, true,
                                           random_uniform(words[i])) *
                   scale.to_numbers;
        return;
    }
    for (int64_t i = 0; i < count; i++)
        x[i] =
            number_round_to_element(x[i] * scale.to_elements, element, false, 0) * scale.to_numbers;
}

static void round_each(float *restrict x, int64_t count, NumberElement element,
                       const float *restrict to_elements, const float *restrict to_numbers,
                       const uint32_t *restrict words) {
    if (words) {
        for (int64_t i = 0; i < count; i++)
            x[i] = number_round_to_element(x[i] * to_elements[i], element, true,
                                           random_uniform(words[i])) *
                   to_numbers[i];
        return;
    }
    for (int64_t i = 0; i < count; i++)
        x[i] = number_round_to_element(x[i] * to_elements[i], element, false, 0) * to_numbers[i];
}

extern const CpuScale ISA_NAME(cpu_scale);
const CpuScale ISA_NAME(cpu_scale) = {
    .largest = largest_finite,
    .largest_of_all = largest_of_all,
    .largest_each = largest_each,
    .round = round_all,
    .round_each = round_each,
};
