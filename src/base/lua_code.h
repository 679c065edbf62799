// base/lua_code.h: what of a Lua text is code: two texts that differ in comments, blank lines and
// indents alone are one. Tells nothing of whether Lua takes the text, and runs nothing. Any thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/hash.h"

// Writes the code to `code`, which has room for `length` bytes: one space for each stretch of
// blanks and comments, none at either end, all else as it stands. Returns how many bytes it is.
size_t lua_code(const char *text, size_t length, char *code);

// The SHA-256 of that. False: no memory.
bool lua_code_hash(const char *text, size_t length, char hex[HASH_HEX_SIZE]);
