#include "ui/cells/theme.h"

#include <string.h>

#include "number/format.h"

static const ThemeColor inks[INKS] = {
    [INK_TEXT] = {0xC5C8D0, 251, -1, false, false},  [INK_DIM] = {0x6B7080, 243, 8, false, true},
    [INK_BRIGHT] = {0xF2F4F8, 255, 15, true, false}, [INK_BORDER] = {0x454A58, 239, 8, false, true},
    [INK_ACCENT] = {0x7FE7F5, 117, 14, true, false}, [INK_FP32] = {0x56B4E9, 74, 12, false, false},
    [INK_TF32] = {0x9DB8E8, 110, 4, false, false},   [INK_BF16] = {0x2FB98C, 36, 10, false, false},
    [INK_FP16] = {0xE69F00, 178, 11, false, false},  [INK_FP8] = {0xCC79A7, 175, 13, false, false},
    [INK_GOOD] = {0x9CCB6B, 149, 2, false, false},   [INK_WARN] = {0xF0CF6B, 221, 3, false, false},
    [INK_BAD] = {0xEF5F5F, 203, 9, true, false},
};

static const ThemeColor grounds[GROUNDS] = {
    [GROUND_PLAIN] = {0x12151C, 0, -1, false, false},
    [GROUND_SELECTED] = {0x2A3040, 236, 0, false, false},
};

const ThemeColor *theme_ink(Ink ink) {
    return &inks[ink];
}

const ThemeColor *theme_ground(Ground ground) {
    return &grounds[ground];
}

// A preset has the colour of the format that its products run in.
Ink theme_format_ink(const char *name) {
    static const Ink inks_of[FORMAT_COUNT] = {
        // INK_TEXT where none is said
        [FORMAT_FP32] = INK_FP32, [FORMAT_TF32] = INK_TF32, [FORMAT_BF16] = INK_BF16,
        [FORMAT_FP16] = INK_FP16, [FORMAT_E4M3] = INK_FP8,  [FORMAT_E5M2] = INK_FP8,
    };
    static const struct {
        const char *name;
        Format format;
    } presets[] = {
#define PRESET(name, mode, low, ...) {name, FORMAT_##low},
#include "number/presets.def"
        {"amp", FORMAT_FP16},
    };
    Format format = format_named(name);
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
        if (strcmp(name, presets[i].name) == 0)
            format = presets[i].format;
    return format < FORMAT_COUNT ? inks_of[format] : INK_TEXT;
}
