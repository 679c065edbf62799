// base/whole.h: whole numbers as people type them: 60000, 6e4, 1.5e3; to the digit, and nothing
// else (no 0x10, no blanks). Everything that reads one from people reads it here. Pure.
#pragma once

#include <stdint.h>

#include "base/error.h"

// The most that a double holds as written, as it does all below: of what other programs read.
#define WHOLE_MOST (INT64_C(1) << 53)

// A number from a file, which may hold anything: 0 where it is none, or past WHOLE_MOST.
static inline int64_t whole_of(double number) {
    return number >= -(double)WHOLE_MOST && number <= (double)WHOLE_MOST ? (int64_t)number : 0;
}

// Of all of `text`, within [least, most]. ERROR_USAGE says what is wanted, and leaves it to the
// caller to say of what.
bool whole_parse(const char *text, int64_t least, int64_t most, int64_t *number,
                 Error *error) MUST_CHECK;
