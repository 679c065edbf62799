// Colours: read on every background that a theme is for, and one theme for each background.
#include <stdlib.h>

#include "../test.h"
#include "contrast.h"
#include "ui/cells/describe.h"
#include "ui/cells/theme.h"

// ---- contrast
// ------------------------------------------------------------------------------------

// Those of known colour schemes, beside the theme's own.
static const struct Background {
    Theme theme;
    uint32_t rgb;
} backgrounds[] = {
    {THEME_DARK, 0x000000},  {THEME_DARK, 0x1E1E1E},  {THEME_DARK, 0x282A36},
    {THEME_DARK, 0x002B36},  {THEME_DARK, 0x300A24},  {THEME_LIGHT, 0xFFFFFF},
    {THEME_LIGHT, 0xFDF6E3}, {THEME_LIGHT, 0xF5F5F5}, {THEME_LIGHT, 0xEEEEEE},
};

static bool is_text(int ink) {
    return ink != INK_BORDER; // which is a line, and no more
}

static void check_on(Theme theme, int ink, uint32_t color, uint32_t ground) {
    double least = is_text(ink) ? 4.5 : 3, found = contrast(color, ground);
    CHECK_MESSAGE(found >= least, "theme %d: ink %d, %06x on %06x, has a contrast of %.2f", theme,
                  ink, (unsigned)color, (unsigned)ground, found);
}

static void text_is_read_and_marks_are_seen_on_every_ground(void) {
    for (int theme = 0; theme < THEMES; theme++)
        for (int ink = 0; ink < INKS; ink++) {
            const ThemeColor *color = theme_ink((Theme)theme, (Ink)ink);
            const ThemeColor *plain = theme_ground((Theme)theme, GROUND_PLAIN);
            const ThemeColor *selected = theme_ground((Theme)theme, GROUND_SELECTED);
            CHECK(color->index_256 >= 16); // those before are not ours
            check_on((Theme)theme, ink, color->rgb, plain->rgb);
            check_on((Theme)theme, ink, rgb_of_index(color->index_256), plain->rgb);
            if (!is_text(ink))
                continue;
            check_on((Theme)theme, ink, color->rgb, selected->rgb);
            check_on((Theme)theme, ink, rgb_of_index(color->index_256),
                     rgb_of_index(selected->index_256));
        }
}

static void text_is_read_on_the_backgrounds_that_people_have(void) {
    for (size_t i = 0; i < sizeof backgrounds / sizeof *backgrounds; i++)
        for (int ink = 0; ink < INKS; ink++) {
            const ThemeColor *color = theme_ink(backgrounds[i].theme, (Ink)ink);
            if (!is_text(ink))
                continue;
            check_on(backgrounds[i].theme, ink, color->rgb, backgrounds[i].rgb);
            check_on(backgrounds[i].theme, ink, rgb_of_index(color->index_256), backgrounds[i].rgb);
        }
}

// A format is told from another at a glance: by all depths that have the colours.
static void formats_have_colours_of_their_own(void) {
    static const Ink formats[] = {INK_FP32, INK_TF32, INK_BF16, INK_FP16, INK_FP8};
    enum { COUNT = sizeof formats / sizeof *formats };
    for (int theme = 0; theme < THEMES; theme++)
        for (int i = 0; i < COUNT; i++)
            for (int j = 0; j < i; j++) {
                const ThemeColor *a = theme_ink((Theme)theme, formats[i]);
                const ThemeColor *b = theme_ink((Theme)theme, formats[j]);
                CHECK(a->rgb != b->rgb && a->index_256 != b->index_256);
                CHECK_MESSAGE(a->index_16 != b->index_16, "theme %d: %d and %d", theme, i, j);
            }
}

static void light_text_is_never_of_the_bright_sixteen(void) {
    for (int ink = 0; ink < INKS; ink++)
        CHECK(theme_ink(THEME_LIGHT, (Ink)ink)->index_16 <= 8);
}

// ---- which theme --------------------------------------------------------------------------------

static void the_background_chooses_the_theme(void) {
    for (size_t i = 0; i < sizeof backgrounds / sizeof *backgrounds; i++)
        CHECK_INT(theme_on(backgrounds[i].rgb), backgrounds[i].theme);
}

static void of_256_colours_the_nearest_is_taken(void) {
    static const struct {
        uint32_t rgb;
        int index;
    } cases[] = {{0x000000, 16},  {0xFFFFFF, 231}, {0xFF0000, 196}, {0x5F87AF, 67},
                 {0x080808, 232}, {0x808080, 244}, {0xEEEEEE, 255}, {0x7F7F82, 244}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_MESSAGE(theme_index_256(cases[i].rgb) == cases[i].index, "%06x is %d", cases[i].rgb,
                      theme_index_256(cases[i].rgb));
}

static void colorfgbg_tells_of_the_background(void) {
    static const struct {
        const char *value;
        Theme theme;
    } cases[] = {
        {"15;0", THEME_DARK},          {"0;15", THEME_LIGHT}, {"0;default;15", THEME_LIGHT},
        {"12;8", THEME_DARK},          {"0;7", THEME_LIGHT},  {"7;6", THEME_DARK},
        {"0;default", THEME_DARK},     {"", THEME_DARK},      {"15", THEME_DARK},
        {"0;99999999999", THEME_DARK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("COLORFGBG", cases[i].value, 1);
        CHECK_MESSAGE(describe_theme(THEME_DARK) == cases[i].theme, "%s", cases[i].value);
    }
    unsetenv("COLORFGBG");
    CHECK_INT(describe_theme(THEME_LIGHT), THEME_LIGHT);
}

int main(void) {
    RUN_TEST(text_is_read_and_marks_are_seen_on_every_ground);
    RUN_TEST(text_is_read_on_the_backgrounds_that_people_have);
    RUN_TEST(formats_have_colours_of_their_own);
    RUN_TEST(light_text_is_never_of_the_bright_sixteen);
    RUN_TEST(the_background_chooses_the_theme);
    RUN_TEST(colorfgbg_tells_of_the_background);
    RUN_TEST(of_256_colours_the_nearest_is_taken);
    return test_end();
}
