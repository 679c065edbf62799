// base/utf8.h: reads text as UTF-8, strictly, and cuts it at whole characters. Nothing here
// allocates or fails. Any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Reads one code point; returns its length in bytes, or 0 when the bytes are not one (cut, a form
// that is too long, a surrogate, beyond U+10FFFF). `left` is at least 1.
size_t utf8_decode(const unsigned char *bytes, size_t left, uint32_t *point);

// Copies text into out[size], cut at a whole character where it is too long.
void utf8_copy(char *out, size_t size, const char *text);
// The first `length` bytes of it; it may overlap `out`.
void utf8_copy_part(char *out, size_t size, const char *text, size_t length);
