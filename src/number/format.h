// number/format.h: the formats in which numbers are kept and computed.
//
// One enumeration names them all; `format_table` says what each is made of and good for; both
// expand from number/formats.def. Everything is rounded to nearest, ties to even. The scalar routes
// here are the reference: slow, through double, obvious. number/convert.h has the fast routes over
// arrays, bit-identical to these. Any thread, also one that flushes denormals: but take care there
// that the double comes from format_decode or from a widening in number/inline.h, since the
// processor's own fp32-to-double conversion then loses subnormals.
//
// Integers clamp to their range and turn NaN into 0; int8 uses -127..127 and its scale is the
// caller's affair. tf32 has no subnormals: magnitudes below 2^-126 become 0. Elements of blocks
// that have no NaN (e3m2, e2m3, e2m1) turn it into their largest, as hardware does; e8m0 has powers
// of two alone: below its smallest all is that, and a negative number is its NaN.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum Format {
#define FORMAT(id, ...) FORMAT_##id,
#include "number/formats.def"
    FORMAT_COUNT
} Format;

typedef enum FormatScaling { SCALED_NONE, SCALED_ROW, SCALED_TENSOR, SCALED_BLOCK } FormatScaling;

typedef struct FormatInfo {
    const char *name;
    const char *aliases;                         // what other tools call it, with blanks between
    size_t bytes;                                // of one stored element
    int sign_bits, exponent_bits, mantissa_bits; // 0/0/0: not a floating format
    int bias;
    double largest; // largest finite
    double lowest;  // -largest, but for the integers
    double smallest_normal;
    double smallest_subnormal; // 0: it has none
    bool has_infinity, has_nan;
    bool trains;           // a layer can be set to it
    const char *untrained; // why not, of one that could be elsewhere; else NULL
    bool stores;           // a tensor can be kept in it
    FormatScaling scaled;  // what shares a scale that goes with it
    // Of factors of products, SCALED_TENSOR and SCALED_BLOCK: what they are made of, forward and
    // in gradients, what their scales are kept in, and how many share one; 0: all.
    Format element, gradients, scale;
    int block;
} FormatInfo;

extern const FormatInfo format_table[FORMAT_COUNT];

// FP8 clamps what is too large to the largest finite value, or lets it become inf/NaN. The other
// formats have one mode only.
typedef enum Overflow { OVERFLOW_SATURATES, OVERFLOW_TO_SPECIAL } Overflow;

const char *format_name(Format format);
// Finds a format by its name or an alias ("fp16", "half"); FORMAT_COUNT when there is none.
Format format_named(const char *name);

// The name of the format that trains where `name` is an alias of it ("half": "fp16"); any other
// name as it is.
const char *format_usual_name(const char *name);

// What formats are chosen by.
bool format_is_floating(Format format);
bool format_trains(Format format);     // a layer can be set to it, on every device
bool format_multiplies(Format format); // a way to multiply what is kept in another: tf32
bool format_is_shown(Format format);   // people look at its numbers: not fp64, and no plain integer
bool format_is_scaled(Format format);  // products scale what they round to it: e4m3, mxfp8
// It is numbers by themselves, which have bits and conversions: not a way to scale others, as
// mxfp8.
bool format_is_plain(Format format);
bool format_is_offered(Format format); // a layer can be set to it, and it is named to who asks

// What tensors that are computed with in `format` are kept in: itself, or fp32 where it keeps none.
Format format_kept(Format format);

// The formats that are wanted, in the table's order; how many.
int format_pick(Format formats[FORMAT_COUNT], bool (*wanted)(Format format));

enum { FORMAT_LIST_SIZE = 256 }; // more than all names take
// The names of the formats that are wanted, in that order, with `between` between them and
// `last` before the last: ("fp32", "bf16" or "fp16"). Returns `text`.
const char *format_list(char text[FORMAT_LIST_SIZE], bool (*wanted)(Format format),
                        const char *between, const char *last);

// How many bits a pattern has: 19 in tf32, though it is stored in the upper part of an fp32.
int format_bits(Format format);

// The bit pattern of `value` (integers: two's complement), and the value of a pattern. Not for
// FP64.
uint32_t format_encode(Format format, double value, Overflow overflow);
double format_decode(Format format, uint32_t bits);
// decode(encode(value)); FP64 gives the value back.
double format_round(Format format, double value, Overflow overflow);
// One element as tensors keep it, at any address, with all its digits; and back, rounded once.
// Whole numbers of any size and fp64 too: what people read and write goes here, arrays go faster by
// number/convert.h.
double format_load(Format format, const void *element);
void format_store(Format format, void *element, double value, Overflow overflow);
// The largest finite number of a floating format that is less than `limit`, which is no NaN;
// -INFINITY, also where the format has none, when no number is.
double format_below(Format format, double limit);
