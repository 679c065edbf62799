#include "base/sanitize.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

typedef struct Range {
    uint32_t first, last;
} Range;

// Characters that cannot be seen or that change how their neighbours are seen, in order.
static const Range unseen[] = {
    {0x0000, 0x001f},   // C0 controls
    {0x007f, 0x009f},   // DEL, C1 controls
    {0x00ad, 0x00ad},   // soft hyphen
    {0x034f, 0x034f},   // combining grapheme joiner
    {0x061c, 0x061c},   // Arabic letter mark
    {0x115f, 0x1160},   // Hangul fillers
    {0x17b4, 0x17b5},   // Khmer inherent vowels
    {0x180b, 0x180f},   // Mongolian variation selectors
    {0x200b, 0x200f},   // zero width, direction marks
    {0x2028, 0x202e},   // line and paragraph separators, embeddings and overrides
    {0x2060, 0x206f},   // word joiner, invisible operators, isolates
    {0x3164, 0x3164},   // Hangul filler
    {0xd800, 0xdfff},   // surrogates: not characters
    {0xfdd0, 0xfdef},   // not characters
    {0xfe00, 0xfe0f},   // variation selectors
    {0xfeff, 0xfeff},   // byte order mark
    {0xffa0, 0xffa0},   // Hangul filler
    {0xfff0, 0xfffb},   // interlinear annotation
    {0xfffe, 0xffff},   // not characters
    {0x1bca0, 0x1bca3}, // shorthand format controls
    {0x1d173, 0x1d17a}, // musical format controls
    {0xe0000, 0xe0fff}, // tags, more variation selectors
};

bool sanitize_is_unseen(uint32_t code) {
    size_t low = 0, high = sizeof unseen / sizeof unseen[0];
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (code > unseen[middle].last)
            low = middle + 1;
        else if (code < unseen[middle].first)
            high = middle;
        else
            return true;
    }
    return (code & 0xfffe) == 0xfffe; // the last two of every plane are not characters
}

// Writes the visible form of an unseen character.
static size_t show(char *out, size_t size, uint32_t code) {
    const char *named = code == '\n' ? "\\n" : code == '\t' ? "\\t" : code == '\r' ? "\\r" : NULL;
    int length = named ? snprintf(out, size, "%s", named)
                       : snprintf(out, size, code < 0x80 ? "\\x%02x" : "\\u{%x}", (unsigned)code);
    return (size_t)length;
}

static size_t sanitize(char *out, size_t size, const char *text, size_t length, bool lines) {
    const unsigned char *next = (const unsigned char *)text, *end = next + length;
    size_t total = 0;
    bool open = size > 0; // there is room still: once something does not fit, nothing more goes in
    size_t kept = 0;
    while (next < end) {
        uint32_t code = 0;
        size_t taken = utf8_decode(next, (size_t)(end - next), &code);
        char visible[16];
        const char *piece = (const char *)next;
        size_t piece_length = taken;
        if (taken == 0) {
            taken = 1;
            piece_length = (size_t)snprintf(visible, sizeof visible, "\\x%02x", *next);
            piece = visible;
        } else if (sanitize_is_unseen(code) && !(lines && (code == '\n' || code == '\t'))) {
            piece_length = show(visible, sizeof visible, code);
            piece = visible;
        }
        open = open && kept + piece_length < size;
        if (open) {
            memcpy(out + kept, piece, piece_length);
            kept += piece_length;
        }
        total += piece_length;
        next += taken;
    }
    if (size > 0)
        out[kept] = 0;
    return total;
}

size_t sanitize_line(char *out, size_t size, const char *text, size_t length) {
    return sanitize(out, size, text, length, false);
}

size_t sanitize_text(char *out, size_t size, const char *text, size_t length) {
    return sanitize(out, size, text, length, true);
}
