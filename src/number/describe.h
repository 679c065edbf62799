// number/describe.h: one number in one format, taken apart for people to look at.
//
// It computes and prints nothing, allocates nothing; whoever shows the result formats it. Any
// thread. FORMAT_FP64 cannot be described.
#pragma once

#include <math.h>

#include "base/error.h"
#include "number/format.h"

typedef enum Rounding {
    ROUNDING_EXACT,      // the format has this very number
    ROUNDING_ROUNDED,    // to a neighbour
    ROUNDING_FLUSHED,    // to zero, though it was not zero
    ROUNDING_OVERFLOWED, // to infinity, or to NaN where there is no infinity
    ROUNDING_SATURATED,  // to the largest number, or to the end of an integer's range
    ROUNDING_LOST,       // NaN, to 0 in a format of integers
    ROUNDING_COUNT
} Rounding;

typedef struct Description {
    Format format;
    double asked;
    double value; // what the format made of it
    double error; // value - asked; 0 when either is not finite
    double step;  // from |value| to the next larger magnitude; 0 when there is none
    Rounding rounding;
    bool is_subnormal; // the value has lost some of its precision to a small exponent
    bool has_below, has_above;
    double below, above; // the neighbours of `value` in the format, infinity included
    uint32_t bits;
    char sign[2], exponent[12], mantissa[33]; // the pattern in 0 and 1; an integer is all mantissa
    char hex[12];                             // "0x7E"
} Description;

Description describe_number(Format format, double asked, Overflow overflow);

// As it is printed: printf tells the sign of what is no number, which says nothing.
static inline double describe_without_sign(double value) {
    return isnan(value) ? (double)NAN : value;
}

// "exact", "rounded", "flushed to zero", ...
const char *describe_rounding_name(Rounding rounding);

typedef struct ExpressionResult {
    Description of;    // the value that was computed in the format
    double exact;      // in double
    double error;      // value - exact; 0 when either is not finite
    const char *event; // what happened: "rounded on the way", "flushed to zero", ...
    bool is_bad;       // more than rounding
    // Where `exact` is what it is only because a double has no number so large or so small: a
    // sentence that says so, of "it"; else NULL.
    const char *beyond_double;
} ExpressionResult;

// What `text` (expression.h) comes to when every step of it is computed in `format`, which may
// differ from the exact result rounded once.
bool describe_expression(const char *text, Format format, ExpressionResult *result, Error *error);
