// data/safetensors_text.h: pieces of JSON in the header of a safetensors file, read strictly, one
// after another. A file may hold anything: whatever is not as it should be fails, and says at which
// byte. For safetensors_header.c alone.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct SafeText {
    char *bytes; // strings are unescaped in it
    size_t size, at;
    const char *shown; // the file, for messages
    Error *error;
} SafeText;

bool safe_text_fail(const SafeText *text, const char *what); // always false
// Takes the character if it comes next, after space.
bool safe_text_accept(SafeText *text, char wanted);
bool safe_text_expect(SafeText *text, char wanted) MUST_CHECK;
// A string, unescaped where it lies: that never makes it longer. Ended by a zero.
bool safe_text_string(SafeText *text, const char **string) MUST_CHECK;
// [a, b, ..], at most `most` whole numbers.
bool safe_text_numbers(SafeText *text, int64_t *numbers, int most, int *count) MUST_CHECK;
bool safe_text_is_over(SafeText *text); // nothing follows but space
