// number/expression.h: what people type as a number, computed in the format they ask for.
//
//     1e-4*1e-4     (1+1/3)*1e4     -2^-25     0x1.8p3     inf     nan
//
// + - * / ^ and parentheses; ^ binds tightest and from the right, so -2^2 is -4. The locale does
// not matter. Any thread.
#pragma once

#include "base/error.h"
#include "number/format.h"

// Computes `text` in `format`: every literal and the result of every operation is rounded to it
// before it is used, as a processor would that has nothing else; what stands behind ^ is computed
// in double. FORMAT_FP64 gives the double. `left_range` (NULL: unasked) says whether a step became
// infinite or 0 only because a double has no number so large or so small; a division by zero does
// not count. False: the text is not an expression; the error names the column, counted from 1.
MUST_CHECK bool expression_evaluate(const char *text, Format format, Overflow overflow,
                                    double *value, bool *left_range, Error *error);
