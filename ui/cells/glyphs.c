#include "ui/cells/glyphs.h"

#include <stddef.h>

typedef struct Replacement {
    uint32_t rune;
    char ascii;
} Replacement;

static const Replacement table[] = {
    {GLYPH_HORIZONTAL, '-'},
    {GLYPH_VERTICAL, '|'},
    {GLYPH_TOP_LEFT, '+'},
    {GLYPH_TOP_RIGHT, '+'},
    {GLYPH_BOTTOM_RIGHT, '+'},
    {GLYPH_BOTTOM_LEFT, '+'},
    {GLYPH_BAR, '='},
    {GLYPH_ELLIPSIS, '~'},
    {GLYPH_CURSOR, '>'},
    {GLYPH_SELECTED, '*'},
    {GLYPH_LIVE, 'o'},
    {GLYPH_CROSS, 'x'},
    {GLYPH_DOT, '.'},
    {GLYPH_LEFT, '<'},
    {GLYPH_RIGHT, '>'},
    {GLYPH_ARROW, '>'},
    {GLYPH_DASH, '-'},
    {GLYPH_SHADE, '.'},
    {GLYPH_SHADE + 1, ':'},
    {GLYPH_SHADE + 2, '%'},
    {0x2212, '-'},
    {0x2014, '-'},
    {0x00B1, '~'},
    {0x2265, '>'},
    {0x2264, '<'},
    {0x0394, 'd'},
    {0x2018, '\''},
    {0x2019, '\''},
    {0x201C, '"'},
    {0x201D, '"'},
};

static uint32_t of_braille(uint32_t dots) {
    // Which rows have a dot, from the top: the character whose ink lies there.
    enum { UPPER = 0x1B, LOWER = 0xE4 };
    if (dots == 0)
        return ' ';
    if (!(dots & LOWER))
        return '\'';
    return dots & UPPER ? ':' : '.';
}

uint32_t glyph_ascii(uint32_t rune) {
    static const char heights[] = "__.-=+*#";
    if (rune < 0x7F)
        return rune;
    if (rune >= GLYPH_BRAILLE && rune <= GLYPH_BRAILLE + 0xFF)
        return of_braille(rune - GLYPH_BRAILLE);
    if (rune >= GLYPH_BLOCK && rune <= GLYPH_BLOCK_FULL)
        return (uint32_t)heights[rune - GLYPH_BLOCK];
    if (rune > GLYPH_BLOCK_FULL && rune <= GLYPH_PART)
        return rune <= 0x258C ? '#' : '|';
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].rune == rune)
            return (uint32_t)table[i].ascii;
    return '?';
}
