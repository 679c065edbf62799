// base/whole.h: whole numbers as people type them: 60000, 6e4. Pure.
#pragma once

#include <stdint.h>

#include "base/error.h"

// Of all of `text`, within [least, most], which lie within 2^53 of zero. ERROR_USAGE says what is
// wanted, and leaves it to the caller to say of what.
bool whole_parse(const char *text, int64_t least, int64_t most, int64_t *number,
                 Error *error) MUST_CHECK;
