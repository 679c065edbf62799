// data/text.h: a text as a sequence of small numbers, for models of characters.
//
// The text is UTF-8 from one or several files, one after the other. Line ends CR LF become LF and a
// byte-order mark at a file's start is dropped; nothing else is changed. The vocabulary is the set
// of code points that occur, in order of value, so that the same text always gets the same ids.
//
// A Text never changes once made, is reference counted, and may be read, held and released from
// any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    TEXT_MAX_BYTES = 256 << 20,
    TEXT_MAX_VOCABULARY = 65536, // ids fit 16 bits
};

typedef struct Text {
    int references; // atomic
    int64_t count;
    uint16_t *ids;
    int32_t vocabulary;
    uint32_t *points; // the code point of each id, ascending
} Text;

// One part of a text that is already in memory; `name` begins the errors about it.
typedef struct TextPart {
    const char *name;
    const uint8_t *bytes;
    size_t size;
} TextPart;

// Both return one reference, or NULL.
Text *text_read(const char *const *paths, int count, Error *error) MUST_CHECK;
Text *text_parse(const TextPart *parts, int count, Error *error) MUST_CHECK;

Text *text_hold(Text *text);   // one more reference
void text_release(Text *text); // one less; NULL is fine

// The ids of a piece of UTF-8 into `ids`, which has room for `length` of them; a character that the
// vocabulary lacks is an error that names it.
bool text_encode(const Text *text, const char *utf8, size_t length, int32_t *ids, int64_t *count,
                 Error *error) MUST_CHECK;
// The UTF-8 of some ids into `out`: at most size bytes with the terminating zero, whole characters
// only. Returns the length of the whole without the zero. Ids outside the vocabulary become U+FFFD.
size_t text_decode(const Text *text, const int32_t *ids, int64_t count, char *out, size_t size);

// Where the part for tests begins when it is the last `fraction` of the text.
int64_t text_split(const Text *text, double fraction);

// A corpus that every Debian has: the texts of the common licences, about 200 kB of English. The
// list and its strings are constants; `*count` says how many.
const char *const *text_default_paths(int *count);
