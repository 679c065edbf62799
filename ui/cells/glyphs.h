// ui/cells/glyphs.h: the characters that panels draw with, and what stands for them where the
// terminal has ASCII alone. Drawing uses the names; area_put translates for a frame that is ASCII.
#pragma once

#include <stdint.h>

enum {
    GLYPH_HORIZONTAL = 0x2500,
    GLYPH_VERTICAL = 0x2502,
    GLYPH_TOP_LEFT = 0x256D,
    GLYPH_TOP_RIGHT = 0x256E,
    GLYPH_BOTTOM_RIGHT = 0x256F,
    GLYPH_BOTTOM_LEFT = 0x2570,
    GLYPH_BAR = 0x2501, // a thick line: progress, ranges
    GLYPH_ELLIPSIS = 0x2026,
    GLYPH_CURSOR = 0x25B8,   // the line that keys act on
    GLYPH_SELECTED = 0x25C6, // chosen for comparing
    GLYPH_LIVE = 0x25CF,
    GLYPH_CROSS = 0x00D7, // a skipped step
    GLYPH_DOT = 0x00B7,
    GLYPH_LEFT = 0x2039,
    GLYPH_RIGHT = 0x203A,
    GLYPH_ARROW = 0x2192,
    GLYPH_DASH = 0x2013,  // unknown
    GLYPH_BLOCK = 0x2581, // the first of eight heights, up to 0x2588
    GLYPH_BLOCK_FULL = 0x2588,
    GLYPH_HALF = 0x2580,    // the upper one
    GLYPH_PART = 0x258F,    // the first of eight widths, down to 0x2588
    GLYPH_SHADE = 0x2591,   // the first of three, then GLYPH_BLOCK_FULL
    GLYPH_BRAILLE = 0x2800, // and 8 bits of dots
};

// The nearest character that is ASCII.
uint32_t glyph_ascii(uint32_t rune);
