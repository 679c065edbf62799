// lua/script.h: the text of a script, read from a file with care and known by its hash.
//
// A Script is the caller's; script_clear gives back what script_read or script_set put in. Reading
// never waits (a FIFO or a device is refused, not opened for good) and never takes more than the
// cap. Any thread. Nothing here knows Lua.
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "base/hash.h"

enum { SCRIPT_LARGEST = 16 << 20 }; // bytes

typedef struct Script {
    char *name; // the path as it was given
    char *text; // `length` bytes and a zero
    size_t length;
    char hash[HASH_HEX_SIZE]; // SHA-256 of the text
} Script;

// Both fill a Script; on failure it is left empty. `path` is read, `shown` is the name it gets.
MUST_CHECK bool script_read(Script *script, const char *path, const char *shown, Error *error);
MUST_CHECK bool script_set(Script *script, const char *name, const char *text, size_t length,
                           Error *error);
void script_clear(Script *script);
// Whether a path is the folder's or that of something below, as they are written.
bool script_lies_below(const char *folder, const char *path);
