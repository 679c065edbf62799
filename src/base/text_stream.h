// base/text_stream.h: a stream whose text stays in memory. Unlike open_memstream's it never loses a
// part without a word where memory runs out. The thread that opened it.
#pragma once

#include <stdio.h>

#include "base/error.h"

typedef struct TextStream {
    FILE *stream; // to write to
    char *text;   // once it is closed
    size_t size, room;
} TextStream;

// The TextStream stays where it is until it is closed. False: no memory, and nothing to close.
bool text_stream_open(TextStream *out) MUST_CHECK;
// What was written since it was opened or last taken from, until the next write. NULL: memory ran
// out somewhere, now or before.
const char *text_stream_take(TextStream *out);
// The text and the zero behind it are the caller's to free. False: memory ran out somewhere, and
// there is no text.
bool text_stream_close(TextStream *out) MUST_CHECK;
