#include "number/format.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "number/inline.h"

#define INFO(id, name_, bytes_, sign, exponent, mantissa, bias_, largest_, lowest_, normal, \
             subnormal, infinity, nan_, stores_, scaled_, aliases_, trains_, untrained_)    \
    [FORMAT_##id] = {.name = name_,                                                         \
                     .aliases = aliases_,                                                   \
                     .bytes = bytes_,                                                       \
                     .sign_bits = sign,                                                     \
                     .exponent_bits = exponent,                                             \
                     .mantissa_bits = mantissa,                                             \
                     .bias = bias_,                                                         \
                     .largest = largest_,                                                   \
                     .lowest = lowest_,                                                     \
                     .smallest_normal = normal,                                             \
                     .smallest_subnormal = subnormal,                                       \
                     .has_infinity = infinity,                                              \
                     .has_nan = nan_,                                                       \
                     .trains = trains_,                                                     \
                     .untrained = untrained_,                                               \
                     .stores = stores_,                                                     \
                     SCALED_AS_##scaled_},

// The column `scaled`.
#define SCALED_AS_NONE .scaled = SCALED_NONE
#define SCALED_AS_ROW  .scaled = SCALED_ROW
#define SCALED_AS_TENSOR(element_, gradients_, scale_)                                       \
    .scaled = SCALED_TENSOR, .element = FORMAT_##element_, .gradients = FORMAT_##gradients_, \
    .scale = FORMAT_##scale_
#define SCALED_AS_BLOCK(element_, gradients_, scale_, block_)                               \
    .scaled = SCALED_BLOCK, .element = FORMAT_##element_, .gradients = FORMAT_##gradients_, \
    .scale = FORMAT_##scale_, .block = block_

const FormatInfo format_table[FORMAT_COUNT] = {
#define FORMAT(...)  INFO(__VA_ARGS__, false, NULL)
#define TRAINED(...) INFO(__VA_ARGS__, true, NULL)
#define UNTRAINED(id, name, bytes, sign, exponent, mantissa, bias, largest, lowest, normal,   \
                  subnormal, infinity, nan, stores, scaled, aliases, why)                     \
    INFO(id, name, bytes, sign, exponent, mantissa, bias, largest, lowest, normal, subnormal, \
         infinity, nan, stores, scaled, aliases, false, why)
#include "number/formats.def"
};

const char *format_name(Format format) {
    return format < FORMAT_COUNT ? format_table[format].name : "?";
}

// Whether a word is one of a list with blanks between them.
static bool is_listed(const char *word, const char *list) {
    size_t length = strlen(word);
    while (length > 0 && *list) {
        size_t next = strcspn(list, " ");
        if (next == length && memcmp(list, word, length) == 0)
            return true;
        list += next + strspn(list + next, " ");
    }
    return false;
}

Format format_named(const char *name) {
    int i = 0;
    while (i < FORMAT_COUNT && strcmp(name, format_table[i].name) != 0 &&
           !is_listed(name, format_table[i].aliases))
        i++;
    return (Format)i;
}

const char *format_usual_name(const char *name) {
    Format format = format_named(name);
    return format_trains(format) ? format_name(format) : name;
}

bool format_is_floating(Format format) {
    return format < FORMAT_COUNT && format_table[format].exponent_bits > 0;
}

Format format_kept(Format format) {
    return format_table[format].stores ? format : FORMAT_FP32;
}

bool format_trains(Format format) {
    return format < FORMAT_COUNT && format_table[format].trains;
}

bool format_multiplies(Format format) {
    return format_is_floating(format) && format_table[format].untrained &&
           !format_is_scaled(format);
}

bool format_is_scaled(Format format) {
    return format < FORMAT_COUNT && format_table[format].scaled >= SCALED_TENSOR;
}

bool format_is_plain(Format format) {
    return format < FORMAT_COUNT &&
           (!format_is_scaled(format) || format_table[format].element == format);
}

bool format_is_shown(Format format) {
    return format != FORMAT_FP64 && format_is_plain(format) &&
           (format_is_floating(format) || format_table[format].scaled != SCALED_NONE);
}

bool format_is_offered(Format format) {
    return format_trains(format) || // int8 is for evaluation alone
           (format_is_floating(format) && format_table[format].untrained);
}

int format_pick(Format formats[FORMAT_COUNT], bool (*wanted)(Format format)) {
    int count = 0;
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (wanted((Format)i))
            formats[count++] = (Format)i;
    return count;
}

const char *format_list(char text[FORMAT_LIST_SIZE], bool (*wanted)(Format format),
                        const char *between, const char *last) {
    Format formats[FORMAT_COUNT];
    int count = format_pick(formats, wanted);
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < count && used < FORMAT_LIST_SIZE; i++)
        used += (size_t)snprintf(text + used, FORMAT_LIST_SIZE - used, "%s%s",
                                 i == 0           ? ""
                                 : i == count - 1 ? last
                                                  : between,
                                 format_name(formats[i]));
    return text;
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

// 2^exponent, for an exponent from -1022 to 1023, by the bits of a double: a number that is rounded
// to a format needs two, and ldexp is slower.
static double power_of_two(int exponent) {
    assert(exponent >= -1022 && exponent <= 1023);
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
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

// Patterns of infinity and NaN, without the sign. A format without infinity has one NaN: all ones,
// which is the largest number of one that has no NaN either.
static uint32_t infinity_pattern(const FormatInfo *info) {
    return low_bits(info->exponent_bits) << info->mantissa_bits;
}

static uint32_t nan_pattern(const FormatInfo *info) {
    return info->has_infinity ? infinity_pattern(info) | (1u << (info->mantissa_bits - 1))
                              : low_bits(info->exponent_bits + info->mantissa_bits);
}

static uint32_t overflow_pattern(const FormatInfo *info, Overflow overflow) {
    bool is_fp8 = info->bytes == 1 && info->has_nan;
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
    double steps = nearest_whole(magnitude * power_of_two(info->mantissa_bits - exponent));
    if (steps * power_of_two(exponent - info->mantissa_bits) > info->largest)
        return overflow_pattern(info, overflow);
    // A normal number counts 2^mantissa_bits steps or more, which is the 1 that is not written, so
    // the field starts one lower; what rounds up to the next binade carries into it.
    return ((uint32_t)(exponent + info->bias - 1) << info->mantissa_bits) + (uint32_t)steps;
}

// A power of two, by its exponent alone.
static uint32_t encode_power(const FormatInfo *info, double value, Overflow overflow) {
    if (isnan(value) || value < 0)
        return nan_pattern(info);
    if (value <= info->smallest_normal)
        return 0;
    if (isinf(value) || value >= 1.5 * info->largest)
        return overflow_pattern(info, overflow);
    int exponent;
    double part = frexp(value, &exponent); // in [0.5, 1)
    return (uint32_t)(exponent - (part < 0.75 ? 1 : 0) + info->bias);
}

uint32_t format_encode(Format format, double value, Overflow overflow) {
    assert(format_is_plain(format) && format != FORMAT_FP64);
    const FormatInfo *info = &format_table[format];
    if (!format_is_floating(format))
        return encode_integer(info, value);
    if (info->mantissa_bits == 0)
        return encode_power(info, value, overflow);
    uint32_t sign = signbit(value) ? 1u << (info->exponent_bits + info->mantissa_bits) : 0;
    return sign | encode_magnitude(info, fabs(value), overflow);
}

static double decode_integer(const FormatInfo *info, uint32_t bits) {
    int width = (int)(8 * info->bytes);
    uint32_t used = bits & low_bits(width);
    bool negative = info->lowest < 0 && used >> (width - 1);
    return (double)used - (negative ? power_of_two(width) : 0);
}

double format_decode(Format format, uint32_t bits) {
    assert(format_is_plain(format) && format != FORMAT_FP64);
    const FormatInfo *info = &format_table[format];
    if (!format_is_floating(format))
        return decode_integer(info, bits);
    if (info->mantissa_bits == 0)
        return (bits & 0xFF) == nan_pattern(info) ? (double)NAN
                                                  : power_of_two((int)(bits & 0xFF) - info->bias);
    uint32_t field = (bits >> info->mantissa_bits) & low_bits(info->exponent_bits);
    uint32_t mantissa = bits & low_bits(info->mantissa_bits);
    uint32_t magnitude = bits & low_bits(info->exponent_bits + info->mantissa_bits);
    double value;
    if (info->has_infinity && field == low_bits(info->exponent_bits))
        value = mantissa ? (double)NAN : (double)INFINITY;
    else if (!info->has_infinity && info->has_nan && magnitude == nan_pattern(info))
        value = (double)NAN;
    else if (field == 0)
        value = mantissa * info->smallest_subnormal;
    else
        value = (double)(mantissa + (1u << info->mantissa_bits)) *
                power_of_two((int)field - info->bias - info->mantissa_bits);
    bool negative = bits >> (info->exponent_bits + info->mantissa_bits) & 1;
    return negative ? -value : value;
}

double format_round(Format format, double value, Overflow overflow) {
    return format == FORMAT_FP64 ? value
                                 : format_decode(format, format_encode(format, value, overflow));
}

double format_load(Format format, const void *element) {
    double wide;
    uint16_t half;
    uint32_t bits = 0;
    if (format == FORMAT_FP64) {
        memcpy(&wide, element, sizeof wide);
        return wide;
    }
    switch (format_table[format].bytes) {
    case 4: memcpy(&bits, element, 4); break;
    case 2:
        memcpy(&half, element, 2);
        bits = half;
        break;
    default: bits = *(const uint8_t *)element; break;
    }
    if (format == FORMAT_TF32)
        format = FORMAT_FP32; // it is kept so
    return format == FORMAT_FP32 ? number_fp32_to_fp64(number_fp32_of_bits(bits))
                                 : format_decode(format, bits);
}

void format_store(Format format, void *element, double value, Overflow overflow) {
    if (format == FORMAT_TF32) { // kept as fp32
        value = format_round(format, value, overflow);
        format = FORMAT_FP32;
    }
    if (format == FORMAT_FP64) {
        memcpy(element, &value, sizeof value);
        return;
    }
    uint32_t bits = format == FORMAT_FP32 ? number_bits_of_fp32(number_fp64_to_fp32(value))
                                          : format_encode(format, value, overflow);
    switch (format_table[format].bytes) {
    case 4: memcpy(element, &bits, 4); break;
    case 2: memcpy(element, &(uint16_t){(uint16_t)bits}, 2); break;
    default: *(uint8_t *)element = (uint8_t)bits; break;
    }
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
    if (info->sign_bits == 0) // no zero either, and neighbours are patterns
        return format_decode(format, format_encode(format, nearest, OVERFLOW_SATURATES) - 1);
    if (nearest == 0)
        return info->smallest_subnormal > 0 ? -info->smallest_subnormal : -info->smallest_normal;
    // A sign, and a magnitude: not the largest of the negative ones, which is below every limit.
    uint32_t bits = format_encode(format, nearest, OVERFLOW_SATURATES);
    return format_decode(format, nearest > 0 ? bits - 1 : bits + 1);
}
