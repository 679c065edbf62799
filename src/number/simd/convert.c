// The array routes of number/convert.h at one instruction level: plain loops over number/inline.h
// that the compiler vectorises.
#include <string.h>

#include "number/convert.h"
#include "number/inline.h"

// A loop over `type` elements to fp32, from fp32, or through a format and back.
#define TO_FP32(name, type, expression)                                                 \
    static void name(const void *restrict from, float *restrict target, size_t count) { \
        const type *restrict source = from;                                             \
        for (size_t i = 0; i < count; i++)                                              \
            target[i] = expression(source[i]);                                          \
    }
#define FROM_FP32(name, type, expression)                                             \
    static void name(const float *restrict source, void *restrict to, size_t count) { \
        type *restrict target = to;                                                   \
        for (size_t i = 0; i < count; i++)                                            \
            target[i] = expression(source[i]);                                        \
    }
#define ROUND(name, expression)                              \
    static void name(float *restrict values, size_t count) { \
        for (size_t i = 0; i < count; i++)                   \
            values[i] = expression(values[i]);               \
    }
#define THROUGH_E4M3_SATURATING(x) number_e4m3_to_fp32(number_fp32_to_e4m3_saturating(x))
#define THROUGH_E4M3_SPECIAL(x)    number_e4m3_to_fp32(number_fp32_to_e4m3_special(x))
#define THROUGH_E5M2_SATURATING(x) number_e5m2_to_fp32(number_fp32_to_e5m2_saturating(x))
#define THROUGH_E5M2_SPECIAL(x)    number_e5m2_to_fp32(number_fp32_to_e5m2_special(x))
#define THROUGH_E3M2(x)            number_e3m2_to_fp32(number_fp32_to_e3m2(x))
#define THROUGH_E2M3(x)            number_e2m3_to_fp32(number_fp32_to_e2m3(x))
#define THROUGH_E2M1(x)            number_e2m1_to_fp32(number_fp32_to_e2m1(x))
#define THROUGH_E8M0_SATURATING(x) number_e8m0_to_fp32(number_fp32_to_e8m0_saturating(x))
#define THROUGH_E8M0_SPECIAL(x)    number_e8m0_to_fp32(number_fp32_to_e8m0_special(x))
// An integer has one zero. Without traps gcc takes the way to int32 and back for a plain
// truncation, which keeps the sign of -0; so zeros are told apart before.
#define THROUGH_INT8(x)  (float)number_fp32_to_int8(x)
#define THROUGH_UINT8(x) (float)number_fp32_to_uint8(x)
#define THROUGH_INT32(x) (rintf(x) == 0 ? 0.0f : (float)number_fp32_to_int32(x))

TO_FP32(fp64_to_fp32, double, number_fp64_to_fp32)
TO_FP32(bf16_to_fp32, uint16_t, number_bf16_to_fp32)
TO_FP32(e4m3_to_fp32, uint8_t, number_e4m3_to_fp32)
TO_FP32(e5m2_to_fp32, uint8_t, number_e5m2_to_fp32)
TO_FP32(e3m2_to_fp32, uint8_t, number_e3m2_to_fp32)
TO_FP32(e2m3_to_fp32, uint8_t, number_e2m3_to_fp32)
TO_FP32(e2m1_to_fp32, uint8_t, number_e2m1_to_fp32)
TO_FP32(e8m0_to_fp32, uint8_t, number_e8m0_to_fp32)
TO_FP32(int8_to_fp32, int8_t, (float))
TO_FP32(uint8_to_fp32, uint8_t, (float))
TO_FP32(int32_to_fp32, int32_t, (float))

FROM_FP32(fp32_to_fp64, double, number_fp32_to_fp64)
FROM_FP32(fp32_to_tf32, float, number_fp32_through_tf32)
FROM_FP32(fp32_to_bf16, uint16_t, number_fp32_to_bf16)
FROM_FP32(fp32_to_e4m3_saturating, uint8_t, number_fp32_to_e4m3_saturating)
FROM_FP32(fp32_to_e4m3_special, uint8_t, number_fp32_to_e4m3_special)
FROM_FP32(fp32_to_e5m2_saturating, uint8_t, number_fp32_to_e5m2_saturating)
FROM_FP32(fp32_to_e5m2_special, uint8_t, number_fp32_to_e5m2_special)
FROM_FP32(fp32_to_e3m2, uint8_t, number_fp32_to_e3m2)
FROM_FP32(fp32_to_e2m3, uint8_t, number_fp32_to_e2m3)
FROM_FP32(fp32_to_e2m1, uint8_t, number_fp32_to_e2m1)
FROM_FP32(fp32_to_e8m0_saturating, uint8_t, number_fp32_to_e8m0_saturating)
FROM_FP32(fp32_to_e8m0_special, uint8_t, number_fp32_to_e8m0_special)
FROM_FP32(fp32_to_int8, int8_t, number_fp32_to_int8)
FROM_FP32(fp32_to_uint8, uint8_t, number_fp32_to_uint8)
FROM_FP32(fp32_to_int32, int32_t, number_fp32_to_int32)

ROUND(round_to_tf32, number_fp32_through_tf32)
ROUND(round_to_bf16, number_fp32_through_bf16)
ROUND(round_to_e4m3_saturating, THROUGH_E4M3_SATURATING)
ROUND(round_to_e4m3_special, THROUGH_E4M3_SPECIAL)
ROUND(round_to_e5m2_saturating, THROUGH_E5M2_SATURATING)
ROUND(round_to_e5m2_special, THROUGH_E5M2_SPECIAL)
ROUND(round_to_e3m2, THROUGH_E3M2)
ROUND(round_to_e2m3, THROUGH_E2M3)
ROUND(round_to_e2m1, THROUGH_E2M1)
ROUND(round_to_e8m0_saturating, THROUGH_E8M0_SATURATING)
ROUND(round_to_e8m0_special, THROUGH_E8M0_SPECIAL)
ROUND(round_to_int8, THROUGH_INT8)
ROUND(round_to_uint8, THROUGH_UINT8)
ROUND(round_to_int32, THROUGH_INT32)

static void copy_to_fp32(const void *source, float *target, size_t count) {
    if (count)
        memcpy(target, source, count * sizeof *target);
}

static void copy_from_fp32(const float *source, void *target, size_t count) {
    if (count)
        memcpy(target, source, count * sizeof *source);
}

// Every fp32 value is one of fp32 and of fp64.
static void round_to_itself(float *values, size_t count) {
    (void)values;
    (void)count;
}

// fp16 goes by blocks, for which the levels from AVX2 up have instructions.
static void fp16_to_fp32(const void *restrict from, float *restrict target, size_t count) {
    const uint16_t *restrict source = from;
    size_t i = 0;
    for (; i + NUMBER_BLOCK <= count; i += NUMBER_BLOCK)
        number_fp16_block_to_fp32(source + i, target + i);
    for (; i < count; i++)
        target[i] = number_fp16_to_fp32(source[i]);
}

static void fp32_to_fp16(const float *restrict source, void *restrict to, size_t count) {
    uint16_t *restrict target = to;
    size_t i = 0;
    for (; i + NUMBER_BLOCK <= count; i += NUMBER_BLOCK)
        number_fp32_block_to_fp16(source + i, target + i);
    for (; i < count; i++)
        target[i] = number_fp32_to_fp16(source[i]);
}

static void round_to_fp16(float *restrict values, size_t count) {
    uint16_t block[NUMBER_BLOCK];
    size_t i = 0;
    for (; i + NUMBER_BLOCK <= count; i += NUMBER_BLOCK) {
        number_fp32_block_to_fp16(values + i, block);
        number_fp16_block_to_fp32(block, values + i);
    }
    for (; i < count; i++)
        values[i] = number_fp16_to_fp32(number_fp32_to_fp16(values[i]));
}

extern const ConvertTable ISA_NAME(convert_table);
const ConvertTable ISA_NAME(convert_table) = {
    .to_fp32 = {[FORMAT_FP64] = fp64_to_fp32,
                [FORMAT_FP32] = copy_to_fp32,
                [FORMAT_TF32] = copy_to_fp32,
                [FORMAT_BF16] = bf16_to_fp32,
                [FORMAT_FP16] = fp16_to_fp32,
                [FORMAT_E4M3] = e4m3_to_fp32,
                [FORMAT_E5M2] = e5m2_to_fp32,
                [FORMAT_E3M2] = e3m2_to_fp32,
                [FORMAT_E2M3] = e2m3_to_fp32,
                [FORMAT_E2M1] = e2m1_to_fp32,
                [FORMAT_E8M0] = e8m0_to_fp32,
                [FORMAT_INT8] = int8_to_fp32,
                [FORMAT_INT32] = int32_to_fp32,
                [FORMAT_UINT8] = uint8_to_fp32},
    // Both modes of Overflow, in the order of the enumeration.
    .from_fp32 = {[FORMAT_FP64] = {fp32_to_fp64, fp32_to_fp64},
                  [FORMAT_FP32] = {copy_from_fp32, copy_from_fp32},
                  [FORMAT_TF32] = {fp32_to_tf32, fp32_to_tf32},
                  [FORMAT_BF16] = {fp32_to_bf16, fp32_to_bf16},
                  [FORMAT_FP16] = {fp32_to_fp16, fp32_to_fp16},
                  [FORMAT_E4M3] = {fp32_to_e4m3_saturating, fp32_to_e4m3_special},
                  [FORMAT_E5M2] = {fp32_to_e5m2_saturating, fp32_to_e5m2_special},
                  [FORMAT_E3M2] = {fp32_to_e3m2, fp32_to_e3m2},
                  [FORMAT_E2M3] = {fp32_to_e2m3, fp32_to_e2m3},
                  [FORMAT_E2M1] = {fp32_to_e2m1, fp32_to_e2m1},
                  [FORMAT_E8M0] = {fp32_to_e8m0_saturating, fp32_to_e8m0_special},
                  [FORMAT_INT8] = {fp32_to_int8, fp32_to_int8},
                  [FORMAT_INT32] = {fp32_to_int32, fp32_to_int32},
                  [FORMAT_UINT8] = {fp32_to_uint8, fp32_to_uint8}},
    .round = {[FORMAT_FP64] = {round_to_itself, round_to_itself},
              [FORMAT_FP32] = {round_to_itself, round_to_itself},
              [FORMAT_TF32] = {round_to_tf32, round_to_tf32},
              [FORMAT_BF16] = {round_to_bf16, round_to_bf16},
              [FORMAT_FP16] = {round_to_fp16, round_to_fp16},
              [FORMAT_E4M3] = {round_to_e4m3_saturating, round_to_e4m3_special},
              [FORMAT_E5M2] = {round_to_e5m2_saturating, round_to_e5m2_special},
              [FORMAT_E3M2] = {round_to_e3m2, round_to_e3m2},
              [FORMAT_E2M3] = {round_to_e2m3, round_to_e2m3},
              [FORMAT_E2M1] = {round_to_e2m1, round_to_e2m1},
              [FORMAT_E8M0] = {round_to_e8m0_saturating, round_to_e8m0_special},
              [FORMAT_INT8] = {round_to_int8, round_to_int8},
              [FORMAT_INT32] = {round_to_int32, round_to_int32},
              [FORMAT_UINT8] = {round_to_uint8, round_to_uint8}},
};
