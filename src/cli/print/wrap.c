#include "cli/print/wrap.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/rune.h"
#include "base/sanitize.h"

enum { LEAST_ROOM = 16 }; // of a line that is gone on with

// How many of `length` bytes fill at most `columns`; *used gets the columns they fill.
static size_t fit(const char *text, size_t length, int columns, int *used) {
    const char *at = text;
    *used = 0;
    while (at < text + length) {
        const char *next = at;
        if (*at == '\x1b') {
            at += strcspn(at, "m");
            at += *at == 'm';
            continue;
        }
        int width = rune_width(rune_next(&next));
        if (*used + width > columns)
            break;
        *used += width;
        at = next;
    }
    return (size_t)(at - text);
}

void wrap_print(FILE *out, const char *text, int width, int column, int hang) {
    int at = column, used;
    if (width <= 0)
        width = INT32_MAX;
    if (hang > width - LEAST_ROOM)
        hang = 0;
    while (*text) {
        int gap = (int)strspn(text, " ");
        text += gap;
        size_t length = strcspn(text, " ");
        fit(text, length, INT32_MAX, &used);
        bool is_broken = used > width - hang && at + gap < width; // wherever it begins
        if (at + gap + used <= width || is_broken || at + gap <= hang) {
            fprintf(out, "%*s", gap, "");
            at += gap;
        } else if (*text) {
            fprintf(out, "\n%*s", hang, "");
            at = hang;
        }
        while (length > 0) {
            size_t part = fit(text, length, width - at, &used);
            if (part == 0 && at == hang) // a character wider than the line
                part = length;
            fprintf(out, "%.*s", (int)part, text);
            at += used;
            text += part;
            length -= part;
            if (length > 0)
                fprintf(out, "\n%*s", hang, "");
            if (length > 0)
                at = hang;
        }
    }
}

void wrap_print_outside(FILE *out, const char *text, int width, int column, int hang) {
    const size_t length = strlen(text), size = sanitize_line(NULL, 0, text, length) + 1;
    char *clean = malloc(size), part[256];
    sanitize_line(clean ? clean : part, clean ? size : sizeof part, text, length);
    wrap_print(out, clean ? clean : part, width, column, hang);
    free(clean);
}
