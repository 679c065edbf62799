// data/unpack.h: a packed file (gzip) written out whole. Any thread; nothing is kept.
#pragma once

#include <stdint.h>

#include "base/error.h"

// Makes the new file `to` (0600; one that is there is an error) from `from`, packed or plain. More
// than `most` bytes, damage and a full disk are errors, and leave no file.
bool unpack_file(const char *from, const char *to, int64_t most, Error *error) MUST_CHECK;
