// ui/cells/theme.h: what inks and grounds look like, at every depth of colour that terminals have.
// Safe for the colour-blind (after Okabe and Ito); no meaning hangs on colour alone. Pure.
#pragma once

#include "ui/cells/frame.h"

typedef enum ColorDepth { DEPTH_MONO, DEPTH_16, DEPTH_256, DEPTH_TRUE } ColorDepth;

typedef struct ThemeColor {
    uint32_t rgb;      // 0xRRGGBB, for true colour and for pictures
    uint8_t index_256; // of xterm's palette
    int8_t index_16;   // 0..15; -1: the terminal's own
    bool bold_in_mono, dim_in_mono;
} ThemeColor;

const ThemeColor *theme_ink(Ink ink);
const ThemeColor *theme_ground(Ground ground);
// The colour of a format or a preset, by its name: "fp16", "O2". Names that are none get INK_TEXT.
Ink theme_format_ink(const char *name);
