#include "data/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "data/file.h"

enum { CODE_POINTS = 0x110000, SET_WORDS = CODE_POINTS / 64 };

static const char *const default_paths[] = {
    "/usr/share/common-licenses/GPL-1",     "/usr/share/common-licenses/GPL-2",
    "/usr/share/common-licenses/GPL-3",     "/usr/share/common-licenses/LGPL-2",
    "/usr/share/common-licenses/LGPL-2.1",  "/usr/share/common-licenses/LGPL-3",
    "/usr/share/common-licenses/GFDL-1.2",  "/usr/share/common-licenses/GFDL-1.3",
    "/usr/share/common-licenses/Apache-2.0"};

const char *const *text_default_paths(int *count) {
    *count = (int)(sizeof default_paths / sizeof default_paths[0]);
    return default_paths;
}

// ---- UTF-8 --------------------------------------------------------------------------------------

static size_t utf8_encode(uint32_t point, char out[4]) {
    size_t length = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = length - 1; i > 0; i--, point >>= 6)
        out[i] = (char)(0x80 | (point & 0x3F));
    out[0] = (char)(lead[length] | point);
    return length;
}

// ---- Reading ------------------------------------------------------------------------------------

// A walk over the characters of one part that stay in the text.
typedef struct Walk {
    const TextPart *part;
    size_t at;
} Walk;

static Walk walk_begin(const TextPart *part) {
    static const uint8_t mark[] = {0xEF, 0xBB, 0xBF};
    bool marked = part->size >= 3 && memcmp(part->bytes, mark, 3) == 0;
    return (Walk){part, marked ? 3 : 0};
}

// The next code point; false at the end of the part, or, with *length 0, where it is not UTF-8.
static bool walk_next(Walk *walk, uint32_t *point, size_t *length) {
    const uint8_t *bytes = walk->part->bytes;
    size_t size = walk->part->size;
    if (walk->at + 1 < size && bytes[walk->at] == '\r' && bytes[walk->at + 1] == '\n')
        walk->at++;
    *length = 1;
    if (walk->at >= size)
        return false;
    *length = utf8_decode(bytes + walk->at, size - walk->at, point);
    walk->at += *length;
    return *length > 0;
}

static bool looks_like_utf16(const TextPart *part) {
    return part->size >= 2 && ((part->bytes[0] == 0xFF && part->bytes[1] == 0xFE) ||
                               (part->bytes[0] == 0xFE && part->bytes[1] == 0xFF));
}

// Checks one part, counts its characters and marks those that occur.
static bool survey_part(const TextPart *part, uint64_t *occurs, int64_t *count, Error *error) {
    if (part->size == 0)
        return error_fail(error, ERROR_FAILED, FILE_PATH ": is empty; a text is expected",
                          part->name);
    if (looks_like_utf16(part))
        return error_fail(error, ERROR_FAILED,
                          FILE_PATH ": is UTF-16 by its first two bytes; convert it to UTF-8 "
                                    "(iconv -f UTF-16 -t UTF-8)",
                          part->name);
    Walk walk = walk_begin(part);
    uint32_t point = 0;
    size_t length;
    while (walk_next(&walk, &point, &length)) {
        if (point == 0)
            return error_fail(error, ERROR_FAILED,
                              FILE_PATH ": a NUL byte at offset %zu: this is not a text",
                              part->name, walk.at - 1);
        occurs[point / 64] |= UINT64_C(1) << point % 64;
        (*count)++;
    }
    if (length == 0)
        return error_fail(error, ERROR_FAILED,
                          FILE_PATH ": not UTF-8 at offset %zu (byte 0x%02x); convert it "
                                    "(iconv -t UTF-8)",
                          part->name, walk.at, part->bytes[walk.at]);
    return true;
}

// The vocabulary from the set of those that occur; fills `id_of` for the code points in it.
static bool build_vocabulary(Text *text, const uint64_t *occurs, uint16_t *id_of, Error *error) {
    int64_t distinct = 0;
    for (uint32_t i = 0; i < SET_WORDS; i++)
        distinct += __builtin_popcountll(occurs[i]);
    if (distinct > TEXT_MAX_VOCABULARY)
        return error_fail(error, ERROR_FAILED,
                          "the text has %" PRId64 " distinct characters; at most %d are supported: "
                          "take a smaller text",
                          distinct, TEXT_MAX_VOCABULARY);
    text->points = malloc((size_t)distinct * sizeof *text->points);
    if (!text->points)
        return error_fail(error, ERROR_MEMORY, "no memory for the vocabulary of a text");
    for (uint32_t i = 0; i < SET_WORDS; i++)
        for (uint64_t rest = occurs[i]; rest; rest &= rest - 1) {
            uint32_t point = i * 64 + (uint32_t)__builtin_ctzll(rest);
            id_of[point] = (uint16_t)text->vocabulary;
            text->points[text->vocabulary++] = point;
        }
    return true;
}

Text *text_parse(const TextPart *parts, int count, Error *error) {
    Text *text = calloc(1, sizeof *text);
    uint64_t *occurs = calloc(SET_WORDS, sizeof *occurs);
    uint16_t *id_of = malloc(CODE_POINTS * sizeof *id_of);
    bool done = false;
    uint64_t total = 0;
    if (!text || !occurs || !id_of) {
        error_fail(error, ERROR_MEMORY, "no memory to read a text");
        goto done;
    }
    text->references = 1;
    for (int i = 0; i < count; i++) {
        total += parts[i].size;
        if (total > TEXT_MAX_BYTES) {
            error_fail(error, ERROR_FAILED,
                       FILE_PATH ": the text is larger than %d MiB; take a part of it",
                       parts[i].name, TEXT_MAX_BYTES >> 20);
            goto done;
        }
        if (!survey_part(&parts[i], occurs, &text->count, error))
            goto done;
    }
    if (text->count == 0) {
        error_fail(error, ERROR_FAILED, "the text has no characters; name a file with some");
        goto done;
    }
    if (!build_vocabulary(text, occurs, id_of, error))
        goto done;
    text->ids = malloc((size_t)text->count * sizeof *text->ids);
    if (!text->ids) {
        error_fail(error, ERROR_MEMORY, "no memory for the %" PRId64 " characters of a text",
                   text->count);
        goto done;
    }
    uint16_t *next = text->ids;
    for (int i = 0; i < count; i++) {
        Walk walk = walk_begin(&parts[i]);
        uint32_t point;
        size_t length;
        while (walk_next(&walk, &point, &length))
            *next++ = id_of[point];
    }
    done = true;
done:
    free(occurs);
    free(id_of);
    if (!done && text) {
        text->references = 1;
        text_release(text);
    }
    return done ? text : NULL;
}

Text *text_read(const char *const *paths, int count, Error *error) {
    Text *text = NULL;
    uint64_t left = TEXT_MAX_BYTES;
    if (count < 1) {
        error_fail(error, ERROR_USAGE, "a text needs at least one file");
        return NULL;
    }
    TextPart *parts = calloc((size_t)count, sizeof *parts);
    if (!parts) {
        error_fail(error, ERROR_MEMORY, "no memory for a list of %d files", count);
        return NULL;
    }
    for (int i = 0; i < count; i++) {
        uint8_t *bytes = NULL;
        parts[i].name = paths[i];
        if (!file_read(paths[i], left, &bytes, &parts[i].size, error))
            goto done;
        parts[i].bytes = bytes;
        left -= parts[i].size;
    }
    text = text_parse(parts, count, error);

done:
    for (int i = 0; i < count; i++)
        free((void *)(uintptr_t)parts[i].bytes);
    free(parts);
    return text;
}

Text *text_hold(Text *text) {
    __atomic_add_fetch(&text->references, 1, __ATOMIC_RELAXED);
    return text;
}

void text_release(Text *text) {
    if (!text || __atomic_sub_fetch(&text->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    free(text->ids);
    free(text->points);
    free(text);
}

// ---- Use ----------------------------------------------------------------------------------------

static int32_t find_id(const Text *text, uint32_t point) {
    int32_t low = 0, high = text->vocabulary;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (text->points[middle] < point)
            low = middle + 1;
        else
            high = middle;
    }
    return low < text->vocabulary && text->points[low] == point ? low : -1;
}

bool text_encode(const Text *text, const char *utf8, size_t length, int32_t *ids, int64_t *count,
                 Error *error) {
    const uint8_t *bytes = (const uint8_t *)utf8;
    *count = 0;
    for (size_t at = 0; at < length;) {
        uint32_t point = 0;
        size_t step = utf8_decode(bytes + at, length - at, &point);
        if (step == 0)
            return error_fail(error, ERROR_FAILED, "the text is not UTF-8 at offset %zu", at);
        int32_t id = find_id(text, point);
        if (id < 0)
            return error_fail(error, ERROR_FAILED,
                              "the character U+%04" PRIX32 " at offset %zu does not occur in the "
                              "text that the vocabulary is made of",
                              point, at);
        ids[(*count)++] = id;
        at += step;
    }
    return true;
}

size_t text_decode(const Text *text, const int32_t *ids, int64_t count, char *out, size_t size) {
    size_t whole = 0, used = 0;
    bool open = size > 0;
    for (int64_t i = 0; i < count; i++) {
        char bytes[4];
        bool known = ids[i] >= 0 && ids[i] < text->vocabulary;
        size_t length = utf8_encode(known ? text->points[ids[i]] : 0xFFFD, bytes);
        open = open && used + length < size;
        if (open) {
            memcpy(out + used, bytes, length);
            used += length;
        }
        whole += length;
    }
    if (size > 0)
        out[used] = 0;
    return whole;
}

int64_t text_split(const Text *text, double fraction) {
    if (!(fraction > 0))
        return text->count;
    if (fraction >= 1)
        return 0;
    return text->count - (int64_t)((double)text->count * fraction);
}
