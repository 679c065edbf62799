// base/phrase.h: a sentence that is put together of parts, in a text of fixed size. What does not
// fit is cut at a whole character, and nothing is added behind it. Nothing here allocates or fails.
// Any thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct Phrase {
    char *text; // the caller's
    size_t size, used;
    bool is_cut;
} Phrase;

// Empties the text, of which there is room for `size` bytes, at least 1.
Phrase phrase_begin(char *text, size_t size);
__attribute__((format(printf, 2, 3))) void phrase_add(Phrase *phrase, const char *format, ...);
// What stands before one of `count` items: nothing before the first, ", ", and `last` before the
// last, such as " and ".
void phrase_add_joint(Phrase *phrase, int index, int count, const char *last);
// One word of a command, as a shell reads it: in quotes where it must be.
void phrase_add_word(Phrase *phrase, const char *word);
