#define _GNU_SOURCE // fopencookie
#include "base/text_stream.h"

#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

// 0 marks the stream as failed, and that stays.
static ssize_t keep(void *context, const char *bytes, size_t size) {
    TextStream *out = context;
    size_t needed = out->size + size + 1;
    if (needed > out->room) {
        size_t room = needed < 512 ? 1024 : 2 * needed;
        char *text = realloc(out->text, room);
        if (!text)
            return 0;
        out->text = text;
        out->room = room;
    }
    memcpy(out->text + out->size, bytes, size);
    out->size += size;
    out->text[out->size] = 0;
    return (ssize_t)size;
}

bool text_stream_open(TextStream *out) {
    *out = (TextStream){.text = NULL};
    out->stream = fopencookie(out, "w", (cookie_io_functions_t){.write = keep});
    return out->stream != NULL;
}

const char *text_stream_take(TextStream *out) {
    if (fflush(out->stream) != 0 || ferror(out->stream))
        return NULL;
    const char *text = out->size > 0 ? out->text : "";
    out->size = 0;
    return text;
}

bool text_stream_close(TextStream *out) {
    bool whole = fflush(out->stream) == 0 && !ferror(out->stream);
    whole = fclose(out->stream) == 0 && whole;
    out->stream = NULL;
    if (whole && !out->text) // nothing was written
        out->text = calloc(1, 1);
    if (whole && out->text) {
        out->text[out->size] = 0; // what was taken is no part of it
        return true;
    }
    free(out->text);
    out->text = NULL;
    return false;
}
