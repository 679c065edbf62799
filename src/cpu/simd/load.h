// cpu/simd/load.h: one element of a storage format that is a constant where these are inlined, so
// that a loop over them becomes vectors. For the files of this folder only.
#pragma once

#include "cpu/simd/math.h"
#include "number/format.h"

MATH_INLINE float load_element(Format format, const void *data, int64_t i) {
    if (format == FORMAT_BF16)
        return number_bf16_to_fp32(((const uint16_t *)data)[i]);
    if (format == FORMAT_FP16)
        return number_fp16_to_fp32(((const uint16_t *)data)[i]);
    return ((const float *)data)[i];
}

MATH_INLINE void store_element(Format format, void *data, int64_t i, float value) {
    if (format == FORMAT_BF16)
        ((uint16_t *)data)[i] = number_fp32_to_bf16(value);
    else if (format == FORMAT_FP16)
        ((uint16_t *)data)[i] = number_fp32_to_fp16(value);
    else
        ((float *)data)[i] = value;
}

MATH_INLINE const void *load_offset(Format format, const void *data, int64_t elements) {
    return (const char *)data + elements * (format == FORMAT_FP32 ? 4 : 2);
}

MATH_INLINE void *store_offset(Format format, void *data, int64_t elements) {
    return (char *)data + elements * (format == FORMAT_FP32 ? 4 : 2);
}

// Calls `function` with the format as a constant: function(FORMAT_..., arguments).
#define FORMAT_SPLIT(format, function, ...)     \
    do {                                        \
        if ((format) == FORMAT_BF16)            \
            function(FORMAT_BF16, __VA_ARGS__); \
        else if ((format) == FORMAT_FP16)       \
            function(FORMAT_FP16, __VA_ARGS__); \
        else                                    \
            function(FORMAT_FP32, __VA_ARGS__); \
    } while (0)
