#include "ui/cells/theme.h"

#include <math.h>
#include <string.h>

#include "number/format.h"

static const ThemeColor inks[THEMES][INKS] =
    {
        [THEME_DARK] =
            {
                [INK_TEXT] = {0xC5C8D0, 251, -1, false, false},
                [INK_DIM] = {0x969CAB, 247, 8, false, true},
                [INK_BRIGHT] = {0xF2F4F8, 255, 15, true, false},
                [INK_BORDER] = {0x666C7B, 242, 8, false, true},
                [INK_ACCENT] = {0x7FE7F5, 117, 14, true, false},
                [INK_FP32] = {0x56B4E9, 74, 12, false, false},
                [INK_TF32] = {0x9DB8E8, 110, 4, false, false},
                [INK_BF16] = {0x2FB98C, 36, 10, false, false},
                [INK_FP16] = {0xE69F00, 178, 11, false, false},
                [INK_FP8] = {0xD68BB5, 175, 13, false, false},
                [INK_GOOD] = {0x9CCB6B, 149, 2, false, false},
                [INK_WARN] = {0xF0CF6B, 221, 3, false, false},
                [INK_BAD] = {0xF47272, 210, 9, true, false},
            },
        // Of 16 colours none of the bright ones, which vanish on white, and as few as can be of
        // green, yellow and cyan, which many terminals have too bright.
        [THEME_LIGHT] =
            {
                [INK_TEXT] = {0x2B303A, 236, -1, false, false},
                [INK_DIM] = {0x5A606D, 241, 8, false, true},
                [INK_BRIGHT] = {0x090B0F, 16, 0, true, false},
                [INK_BORDER] = {0x868C9A, 245, 8, false, true},
                [INK_ACCENT] = {0x005F78, 24, 4, true, false},
                [INK_FP32] = {0x0A5BC4, 26, 4, false, false},
                [INK_TF32] = {0x55599F, 60, 6, false, false},
                [INK_BF16] = {0x006B4F, 23, 2, false, false},
                [INK_FP16] = {0x8A5000, 94, 5, false, false},
                [INK_FP8] = {0x99306F, 126, 3, false, false},
                [INK_GOOD] = {0x3A6414, 22, 2, false, false},
                [INK_WARN] = {0x745800, 58, 5, false, false},
                [INK_BAD] = {0xB81414, 124, 1, true, false},
            },
};

static const ThemeColor grounds[THEMES][GROUNDS] = {
    [THEME_DARK] = {[GROUND_PLAIN] = {0x12151C, 0, -1, false, false},
                    [GROUND_SELECTED] = {0x2A3040, 236, 0, false, false}},
    [THEME_LIGHT] = {[GROUND_PLAIN] = {0xFFFFFF, 231, -1, false, false},
                     [GROUND_SELECTED] = {0xDDE4F0, 254, 15, false, false}},
};

const ThemeColor *theme_ink(Theme theme, Ink ink) {
    return &inks[theme][ink];
}

const ThemeColor *theme_ground(Theme theme, Ground ground) {
    return &grounds[theme][ground];
}

Theme theme_on(uint32_t background) {
    // Lightness as it is seen: half of it is 0.18 of the light.
    const double middle = 0.18, shares[] = {0.0722, 0.7152, 0.2126};
    double light = 0;
    for (int i = 0; i < 3; i++)
        light += shares[i] * pow((background >> 8 * i & 0xFF) / 255.0, 2.2);
    return light > middle ? THEME_LIGHT : THEME_DARK;
}

// A preset has the colour of the format that its products run in.
Ink theme_format_ink(const char *name) {
    static const Ink inks_of[FORMAT_COUNT] = {
        // INK_TEXT where none is said
        [FORMAT_FP32] = INK_FP32, [FORMAT_TF32] = INK_TF32, [FORMAT_BF16] = INK_BF16,
        [FORMAT_FP16] = INK_FP16, [FORMAT_E4M3] = INK_FP8,  [FORMAT_E5M2] = INK_FP8,
        [FORMAT_E3M2] = INK_FP8,  [FORMAT_E2M3] = INK_FP8,  [FORMAT_E2M1] = INK_FP8,
#define FORMAT(...)
#define TRAINED(...)
#define UNTRAINED(...)
#define SCALED(id, ...) [FORMAT_##id] = INK_FP8,
#include "number/formats.def"
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

static int distance(uint32_t rgb, int red, int green, int blue) {
    const int r = (int)(rgb >> 16 & 0xFF) - red, g = (int)(rgb >> 8 & 0xFF) - green;
    const int b = (int)(rgb & 0xFF) - blue;
    return r * r + g * g + b * b;
}

// A cube of six steps a colour, and 24 greys.
uint8_t theme_index_256(uint32_t rgb) {
    static const int steps[6] = {0, 95, 135, 175, 215, 255};
    int at[3], mean = 0;
    for (int i = 0; i < 3; i++) {
        const int value = (int)(rgb >> (16 - 8 * i) & 0xFF);
        at[i] = value < 48 ? 0 : value < 115 ? 1 : (value - 35) / 40;
        mean += value;
    }
    mean /= 3;
    const int grey = mean < 8 ? 0 : mean > 238 ? 23 : (mean - 3) / 10;
    const int of_cube = distance(rgb, steps[at[0]], steps[at[1]], steps[at[2]]);
    const int of_grey = distance(rgb, 8 + 10 * grey, 8 + 10 * grey, 8 + 10 * grey);
    return (uint8_t)(of_grey < of_cube ? 232 + grey : 16 + 36 * at[0] + 6 * at[1] + at[2]);
}
