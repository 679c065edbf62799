// number/format.h: the formats in which numbers are kept and computed.
//
// One enumeration names them all; `format_table` says what each is made of. Everything is rounded
// to nearest, ties to even. The scalar routes here are the reference: slow, through double,
// obvious. number/convert.h has the fast routes over arrays, bit-identical to these. Any thread,
// also one that flushes denormals: but take care there that the double comes from format_decode or
// from a widening in number/inline.h, since the processor's own fp32-to-double conversion then
// loses subnormals.
//
// Integers clamp to their range and turn NaN into 0; int8 uses -127..127 and its scale is the
// caller's affair. tf32 has no subnormals: magnitudes below 2^-126 become 0.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum Format {
    FORMAT_FP64, // the reference device's own; not offered to users as a precision
    FORMAT_FP32,
    FORMAT_TF32, // a way to compute with fp32 tensors, never a way to store them
    FORMAT_BF16,
    FORMAT_FP16,
    FORMAT_E4M3,
    FORMAT_E5M2,
    FORMAT_INT8,  // with a scale
    FORMAT_INT32, // classes and tokens
    FORMAT_UINT8, // images as they come, masks
    FORMAT_COUNT
} Format;

typedef struct FormatInfo {
    const char *name;
    size_t bytes;                                // of one stored element
    int sign_bits, exponent_bits, mantissa_bits; // 0/0/0: not a floating format
    int bias;
    double largest; // largest finite
    double lowest;  // -largest, but for the integers
    double smallest_normal;
    double smallest_subnormal; // 0: it has none
    bool has_infinity, has_nan;
} FormatInfo;

extern const FormatInfo format_table[FORMAT_COUNT];

// FP8 clamps what is too large to the largest finite value, or lets it become inf/NaN. The other
// formats have one mode only.
typedef enum Overflow { OVERFLOW_SATURATES, OVERFLOW_TO_SPECIAL } Overflow;

const char *format_name(Format format);
// Finds a format by its name ("fp16", "e4m3"); FORMAT_COUNT when there is none.
Format format_named(const char *name);
bool format_is_floating(Format format);

// How many bits a pattern has: 19 in tf32, though it is stored in the upper part of an fp32.
int format_bits(Format format);

// The bit pattern of `value` (integers: two's complement), and the value of a pattern. Not for
// FP64.
uint32_t format_encode(Format format, double value, Overflow overflow);
double format_decode(Format format, uint32_t bits);
// decode(encode(value)); FP64 gives the value back.
double format_round(Format format, double value, Overflow overflow);
// The largest finite number of a floating format that is less than `limit`, which is no NaN;
// -INFINITY, also where the format has none, when no number is.
double format_below(Format format, double limit);
