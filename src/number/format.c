#include "number/format.h"

#include <assert.h>
#include <math.h>
#include <string.h>

const FormatInfo format_table[FORMAT_COUNT] = {
    [FORMAT_FP64] = {.name = "fp64",
                     .bytes = 8,
                     .sign_bits = 1,
                     .exponent_bits = 11,
                     .mantissa_bits = 52,
                     .bias = 1023,
                     .largest = 0x1.fffffffffffffp1023,
                     .lowest = -0x1.fffffffffffffp1023,
                     .smallest_normal = 0x1p-1022,
                     .smallest_subnormal = 0x1p-1074,
                     .has_infinity = true,
                     .has_nan = true},
    [FORMAT_FP32] = {.name = "fp32",
                     .bytes = 4,
                     .sign_bits = 1,
                     .exponent_bits = 8,
                     .mantissa_bits = 23,
                     .bias = 127,
                     .largest = 0x1.fffffep127,
                     .lowest = -0x1.fffffep127,
                     .smallest_normal = 0x1p-126,
                     .smallest_subnormal = 0x1p-149,
                     .has_infinity = true,
                     .has_nan = true},
    [FORMAT_TF32] = {.name = "tf32",
                     .bytes = 4,
                     .sign_bits = 1,
                     .exponent_bits = 8,
                     .mantissa_bits = 10,
                     .bias = 127,
                     .largest = 0x1.ffcp127,
                     .lowest = -0x1.ffcp127,
                     .smallest_normal = 0x1p-126,
                     .smallest_subnormal = 0,
                     .has_infinity = true,
                     .has_nan = true},
    [FORMAT_BF16] = {.name = "bf16",
                     .bytes = 2,
                     .sign_bits = 1,
                     .exponent_bits = 8,
                     .mantissa_bits = 7,
                     .bias = 127,
                     .largest = 0x1.fep127,
                     .lowest = -0x1.fep127,
                     .smallest_normal = 0x1p-126,
                     .smallest_subnormal = 0x1p-133,
                     .has_infinity = true,
                     .has_nan = true},
    [FORMAT_FP16] = {.name = "fp16",
                     .bytes = 2,
                     .sign_bits = 1,
                     .exponent_bits = 5,
                     .mantissa_bits = 10,
                     .bias = 15,
                     .largest = 65504,
                     .lowest = -65504,
                     .smallest_normal = 0x1p-14,
                     .smallest_subnormal = 0x1p-24,
                     .has_infinity = true,
                     .has_nan = true},
    [FORMAT_E4M3] = {.name = "e4m3",
                     .bytes = 1,
                     .sign_bits = 1,
                     .exponent_bits = 4,
                     .mantissa_bits = 3,
                     .bias = 7,
                     .largest = 448,
                     .lowest = -448,
                     .smallest_normal = 0x1p-6,
                     .smallest_subnormal = 0x1p-9,
                     .has_infinity = false,
                     .has_nan = true},
    [FORMAT_E5M2] = {.name = "e5m2",
                     .bytes = 1,
                     .sign_bits = 1,
                     .exponent_bits = 5,
                     .mantissa_bits = 2,
                     .bias = 15,
                     .largest = 57344,
                     .lowest = -57344,
                     .smallest_normal = 0x1p-14,
                     .smallest_subnormal = 0x1p-16,
                     .has_infinity = true,
                     .has_nan = true},
    [FORMAT_INT8] = {.name = "int8", .bytes = 1, .largest = 127, .lowest = -127},
    [FORMAT_INT32] = {.name = "int32", .bytes = 4, .largest = 2147483647, .lowest = -2147483648.0},
    [FORMAT_UINT8] = {.name = "uint8", .bytes = 1, .largest = 255, .lowest = 0},
};

const char *format_name(Format format) {
    return format < FORMAT_COUNT ? format_table[format].name : "?";
}

Format format_named(const char *name) {
    int i = 0;
    while (i < FORMAT_COUNT && strcmp(name, format_table[i].name) != 0)
        i++;
    return (Format)i;
}

bool format_is_floating(Format format) {
    return format < FORMAT_COUNT && format_table[format].exponent_bits > 0;
}

int format_bits(Format format) {
    const FormatInfo *info = &format_table[format];
    return info->exponent_bits ? info->sign_bits + info->exponent_bits + info->mantissa_bits
                               : (int)(8 * info->bytes);
}

// The whole number nearest to a magnitude; the even one of two.
static double nearest_whole(double magnitude) {
    double whole = floor(magnitude);
    double rest = magnitude - whole;
    bool up = rest > 0.5 || (rest == 0.5 && fmod(whole, 2) != 0);
    return up ? whole + 1 : whole;
}

static uint32_t low_bits(int count) {
    return (uint32_t)((UINT64_C(1) << count) - 1);
}

static uint32_t encode_integer(const FormatInfo *info, double value) {
    if (isnan(value))
        return 0;
    double whole = copysign(nearest_whole(fmin(fabs(value), 0x1p40)), value);
    whole = fmax(info->lowest, fmin(info->largest, whole));
    return (uint32_t)(int64_t)whole & low_bits((int)(8 * info->bytes));
}

// Patterns of infinity and NaN, without the sign. A format without infinity has one NaN: all ones.
static uint32_t infinity_pattern(const FormatInfo *info) {
    return low_bits(info->exponent_bits) << info->mantissa_bits;
}

static uint32_t nan_pattern(const FormatInfo *info) {
    return info->has_infinity ? infinity_pattern(info) | (1u << (info->mantissa_bits - 1))
                              : low_bits(info->exponent_bits + info->mantissa_bits);
}

static uint32_t overflow_pattern(const FormatInfo *info, Overflow overflow) {
    bool is_fp8 = info->bytes == 1;
    if (is_fp8 && overflow == OVERFLOW_SATURATES)
        return (info->has_infinity ? infinity_pattern(info) : nan_pattern(info)) - 1;
    return info->has_infinity ? infinity_pattern(info) : nan_pattern(info);
}

static uint32_t encode_magnitude(const FormatInfo *info, double magnitude, Overflow overflow) {
    if (isnan(magnitude))
        return nan_pattern(info);
    if (isinf(magnitude))
        return overflow_pattern(info, overflow);
    if (magnitude == 0 || (info->smallest_subnormal == 0 && magnitude < info->smallest_normal))
        return 0;
    int exponent; // of the binade, but subnormals share the steps of the first one
    frexp(magnitude, &exponent);
    exponent -= 1;
    if (exponent < 1 - info->bias)
        exponent = 1 - info->bias;
    double steps = nearest_whole(ldexp(magnitude, info->mantissa_bits - exponent));
    if (ldexp(steps, exponent - info->mantissa_bits) > info->largest)
        return overflow_pattern(info, overflow);
    // A normal number counts 2^mantissa_bits steps or more, which is the 1 that is not written, so
    // the field starts one lower; what rounds up to the next binade carries into it.
    return ((uint32_t)(exponent + info->bias - 1) << info->mantissa_bits) + (uint32_t)steps;
}

uint32_t format_encode(Format format, double value, Overflow overflow) {
    assert(format < FORMAT_COUNT && format != FORMAT_FP64);
    const FormatInfo *info = &format_table[format];
    if (!format_is_floating(format))
        return encode_integer(info, value);
    uint32_t sign = signbit(value) ? 1u << (info->exponent_bits + info->mantissa_bits) : 0;
    return sign | encode_magnitude(info, fabs(value), overflow);
}

static double decode_integer(const FormatInfo *info, uint32_t bits) {
    int width = (int)(8 * info->bytes);
    uint32_t used = bits & low_bits(width);
    bool negative = info->lowest < 0 && used >> (width - 1);
    return (double)used - (negative ? ldexp(1, width) : 0);
}

double format_decode(Format format, uint32_t bits) {
    assert(format < FORMAT_COUNT && format != FORMAT_FP64);
    const FormatInfo *info = &format_table[format];
    if (!format_is_floating(format))
        return decode_integer(info, bits);
    uint32_t field = (bits >> info->mantissa_bits) & low_bits(info->exponent_bits);
    uint32_t mantissa = bits & low_bits(info->mantissa_bits);
    uint32_t magnitude = bits & low_bits(info->exponent_bits + info->mantissa_bits);
    double value;
    if (info->has_infinity && field == low_bits(info->exponent_bits))
        value = mantissa ? (double)NAN : (double)INFINITY;
    else if (!info->has_infinity && magnitude == nan_pattern(info))
        value = (double)NAN;
    else if (field == 0)
        value = mantissa * info->smallest_subnormal;
    else
        value = ldexp((double)(mantissa + (1u << info->mantissa_bits)),
                      (int)field - info->bias - info->mantissa_bits);
    bool negative = bits >> (info->exponent_bits + info->mantissa_bits) & 1;
    return negative ? -value : value;
}

double format_round(Format format, double value, Overflow overflow) {
    return format == FORMAT_FP64 ? value
                                 : format_decode(format, format_encode(format, value, overflow));
}

double format_below(Format format, double limit) {
    assert(format_is_floating(format));
    const FormatInfo *info = &format_table[format];
    if (limit <= info->lowest)
        return -(double)INFINITY;
    if (limit > info->largest)
        return info->largest;
    if (format == FORMAT_FP64)
        return nextafter(limit, -(double)INFINITY);
    double nearest = format_round(format, limit, OVERFLOW_SATURATES);
    if (nearest < limit)
        return nearest;
    if (nearest == 0)
        return info->smallest_subnormal > 0 ? -info->smallest_subnormal : -info->smallest_normal;
    // A sign, and a magnitude: not the largest of the negative ones, which is below every limit.
    uint32_t bits = format_encode(format, nearest, OVERFLOW_SATURATES);
    return format_decode(format, nearest > 0 ? bits - 1 : bits + 1);
}
