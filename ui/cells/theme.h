// ui/cells/theme.h: what inks and grounds look like, at every depth of colour that terminals have,
// on a dark background and on a light one. Safe for the colour-blind (after Okabe and Ito); no
// meaning hangs on colour alone. Where the colours are ours (256 of them and more) text has a
// contrast of 4.5 or more on every ground of the theme, and what is drawn has 3. Pure.
#pragma once

#include "ui/cells/frame.h"

typedef enum ColorDepth { DEPTH_MONO, DEPTH_16, DEPTH_256, DEPTH_TRUE } ColorDepth;

typedef enum Theme { THEME_DARK, THEME_LIGHT, THEMES } Theme;

typedef struct ThemeColor {
    uint32_t rgb;      // 0xRRGGBB, for true colour and for pictures
    uint8_t index_256; // of xterm's palette
    int8_t index_16;   // 0..15; -1: the terminal's own
    bool bold_in_mono, dim_in_mono;
} ThemeColor;

const ThemeColor *theme_ink(Theme theme, Ink ink);
// GROUND_PLAIN is that of pictures: a terminal keeps its own background.
const ThemeColor *theme_ground(Theme theme, Ground ground);
// The nearest of xterm's palette that every terminal of 256 colours has alike: 16 to 255.
uint8_t theme_index_256(uint32_t rgb);
// The theme that suits a background, 0xRRGGBB.
Theme theme_on(uint32_t background);
// The colour of a format or a preset, by its name: "fp16", "O2". Names that are none get INK_TEXT.
Ink theme_format_ink(const char *name);
