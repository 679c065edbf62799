// base/lua_code.h: what of a Lua text is code: two texts that differ in comments, blank lines and
// indents alone are one; and what it requires. Tells nothing of whether Lua takes the text, and
// runs nothing. Any thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/hash.h"

// Writes the code to `code`, which has room for `length` bytes: one space for each stretch of
// blanks and comments, none at either end, all else as it stands. Returns how many bytes it is.
size_t lua_code(const char *text, size_t length, char *code);

// The SHA-256 of that. False: no memory.
bool lua_code_hash(const char *text, size_t length, char hex[HASH_HEX_SIZE]);

// The next module that a text requires by a name that stands there, `require "parts.net"`, from
// *at on, which moves past it. False: there is none.
enum { LUA_REQUIRED_SIZE = 256 };
bool lua_code_required(const char *text, size_t length, size_t *at, char name[LUA_REQUIRED_SIZE]);
