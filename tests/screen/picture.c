// picture COLUMNS ROWS KEYS [ARGUMENT...]: runs the program on a terminal of that size, types the
// keys (a part, then what is waited for, in turns, separated by '|'), and prints what is seen as an
// SVG in the theme's own colours: dots, blocks and lines as shapes, so that no font decides how
// they look. KEYS that begin with "text:" print the screen as text, with "light:" it stands on
// white.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rune.h"
#include "tests/screen/shown.h"
#include "ui/cells/glyphs.h"
#include "ui/cells/theme.h"

enum { CELL_WIDTH = 9, CELL_HEIGHT = 18, MARGIN = 10, BASELINE = 13, COLORS = 256 };

static const Shown *shown;
static Theme theme;

static VTermScreenCell cell_at(int column, int row) {
    VTermScreenCell cell = {.chars = {0}};
    vterm_screen_get_cell(shown->screen, (VTermPos){.row = row, .col = column}, &cell);
    return cell;
}

static uint32_t rune_at(int column, int row) {
    VTermScreenCell cell = cell_at(column, row);
    return cell.chars[0] == 0 || cell.chars[0] == (uint32_t)-1 ? ' ' : cell.chars[0];
}

static Ink ink_of(const VTermScreenCell *cell) {
    for (int ink = 0; ink < INKS; ink++)
        if (VTERM_COLOR_IS_INDEXED(&cell->fg) &&
            cell->fg.indexed.idx == theme_ink(theme, (Ink)ink)->index_256)
            return (Ink)ink;
    return INK_TEXT;
}

static bool is_shape(uint32_t rune) {
    return (rune >= 0x2500 && rune < 0x25A0) || (rune >= 0x2800 && rune < 0x2900) ||
           rune == GLYPH_LIVE || rune == GLYPH_SELECTED || rune == GLYPH_CURSOR;
}

// ---- shapes: pieces of one path an ink ----------------------------------------------------------

static void put_dots(uint32_t rune, double x, double y) {
    static const int bits[4][2] = {{0, 3}, {1, 4}, {2, 5}, {6, 7}};
    for (int row = 0; row < 4; row++)
        for (int column = 0; column < 2; column++)
            if (rune >> bits[row][column] & 1)
                printf("M%g %gh.01", x + CELL_WIDTH * (column + 0.5) / 2,
                       y + CELL_HEIGHT * (row + 0.5) / 4);
}

static void put_rectangle(double x, double y, double width, double height) {
    printf("M%g %gh%gv%gh%gz", x, y, width, height, -width);
}

static void put_block(uint32_t rune, double x, double y) {
    if (rune <= GLYPH_BLOCK_FULL) {
        double height = CELL_HEIGHT * (double)(rune - GLYPH_BLOCK + 1) / 8;
        put_rectangle(x + 0.5, y + CELL_HEIGHT - height, CELL_WIDTH - 1, height);
    } else if (rune <= GLYPH_PART) {
        put_rectangle(x, y + 5, CELL_WIDTH * (double)(GLYPH_PART + 1 - rune) / 8, CELL_HEIGHT - 10);
    } else {
        put_rectangle(x, y, CELL_WIDTH, CELL_HEIGHT); // shades, by their opacity
    }
}

static void put_line(uint32_t rune, double x, double y) {
    double left = x, right = x + CELL_WIDTH, top = y, bottom = y + CELL_HEIGHT;
    double middle = x + CELL_WIDTH / 2.0, half = y + CELL_HEIGHT / 2.0, r = 4;
    switch (rune) {
    case GLYPH_HORIZONTAL: printf("M%g %gH%g", left, half, right); break;
    case GLYPH_VERTICAL: printf("M%g %gV%g", middle, top, bottom); break;
    case GLYPH_TOP_LEFT:
        printf("M%g %gH%gQ%g %g %g %gV%g", right, half, middle + r, middle, half, middle, half + r,
               bottom);
        break;
    case GLYPH_TOP_RIGHT:
        printf("M%g %gH%gQ%g %g %g %gV%g", left, half, middle - r, middle, half, middle, half + r,
               bottom);
        break;
    case GLYPH_BOTTOM_RIGHT:
        printf("M%g %gH%gQ%g %g %g %gV%g", left, half, middle - r, middle, half, middle, half - r,
               top);
        break;
    case GLYPH_BOTTOM_LEFT:
        printf("M%g %gH%gQ%g %g %g %gV%g", right, half, middle + r, middle, half, middle, half - r,
               top);
        break;
    default: break;
    }
}

static void put_sign(uint32_t rune, double x, double y) {
    double middle = x + CELL_WIDTH / 2.0, half = y + CELL_HEIGHT / 2.0;
    if (rune == GLYPH_CURSOR)
        printf("M%g %gl6 4l-6 4z", x + 1, half - 4);
    else if (rune == GLYPH_SELECTED)
        printf("M%g %gl4 4l-4 4l-4 -4z", middle, half - 4);
    else
        printf("M%g %ga3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z", middle - 3.5, half);
}

static bool is_dots(uint32_t rune) {
    return rune >= 0x2800 && rune < 0x2900;
}
static bool is_line(uint32_t rune) {
    return (rune >= 0x2500 && rune < 0x2580) && rune != GLYPH_BAR;
}
static bool is_bar(uint32_t rune) {
    return rune == GLYPH_BAR;
}
static bool is_shade(uint32_t rune) {
    return rune >= GLYPH_SHADE && rune < GLYPH_SHADE + 3;
}
static bool is_block(uint32_t rune) {
    return rune >= 0x2580 && rune < 0x25A0 && !is_shade(rune);
}
static bool is_sign(uint32_t rune) {
    return rune == GLYPH_LIVE || rune == GLYPH_SELECTED || rune == GLYPH_CURSOR;
}
static void put_bar(uint32_t rune, double x, double y) {
    (void)rune;
    put_rectangle(x, y + CELL_HEIGHT / 2.0 - 1.5, CELL_WIDTH, 3);
}

static const struct Shape {
    bool (*is)(uint32_t rune);
    void (*put)(uint32_t rune, double x, double y);
    const char *style; // of the path, with the colour for %1
    bool is_stroke;
} shapes[] = {
    {is_line, put_line, "fill='none' stroke-width='1.2'", true},
    {is_dots, put_dots, "fill='none' stroke-width='2.6' stroke-linecap='round'", true},
    {is_bar, put_bar, "", false},
    {is_block, put_block, "", false},
    {is_shade, put_block, "fill-opacity='.35'", false},
    {is_sign, put_sign, "", false},
};

static void print_shapes(const struct Shape *shape, Ink ink) {
    bool any = false;
    for (int row = 0; row < shown->rows; row++)
        for (int column = 0; column < shown->columns; column++) {
            VTermScreenCell cell = cell_at(column, row);
            uint32_t rune = rune_at(column, row);
            if (!shape->is(rune) || ink_of(&cell) != ink)
                continue;
            if (!any)
                printf("<path %s='#%06x' %s d='", shape->is_stroke ? "stroke" : "fill",
                       theme_ink(theme, ink)->rgb, shape->style);
            any = true;
            shape->put(rune, MARGIN + column * CELL_WIDTH, MARGIN + row * CELL_HEIGHT);
        }
    if (any)
        printf("'/>\n");
}

// ---- text and grounds ---------------------------------------------------------------------------

static void print_rune(uint32_t rune) {
    char bytes[5];
    bytes[rune_encode(rune, bytes)] = 0;
    printf("%s", rune == '&' ? "&amp;" : rune == '<' ? "&lt;" : bytes);
}

static bool is_same(const VTermScreenCell *a, const VTermScreenCell *b) {
    return ink_of(a) == ink_of(b) && a->attrs.bold == b->attrs.bold;
}

static bool is_text(int column, int row) {
    return column < shown->columns && rune_at(column, row) != ' ' &&
           !is_shape(rune_at(column, row));
}

// Runs of one ink, ended by two spaces; as wide as their cells, whatever the font.
static void print_text(int row) {
    for (int column = 0; column < shown->columns; column++) {
        if (!is_text(column, row))
            continue;
        VTermScreenCell first = cell_at(column, row);
        int end = column;
        for (int next = column; next < shown->columns; next++) {
            VTermScreenCell cell = cell_at(next, row);
            if (is_text(next, row) && is_same(&cell, &first))
                end = next + 1;
            else if (rune_at(next, row) != ' ' || next > end)
                break;
        }
        printf("<text x='%d' y='%d' fill='#%06x'%s textLength='%d' lengthAdjust="
               "'spacingAndGlyphs'>",
               MARGIN + column * CELL_WIDTH, MARGIN + row * CELL_HEIGHT + BASELINE,
               theme_ink(theme, ink_of(&first))->rgb, first.attrs.bold ? " font-weight='bold'" : "",
               (end - column) * CELL_WIDTH);
        for (; column < end; column++)
            print_rune(rune_at(column, row));
        printf("</text>\n");
        column--;
    }
}

static void print_grounds(int row) {
    for (int column = 0; column < shown->columns; column++) {
        int end = column;
        while (end < shown->columns) {
            VTermScreenCell cell = cell_at(end, row);
            if (VTERM_COLOR_IS_DEFAULT_BG(&cell.bg))
                break;
            end++;
        }
        if (end > column)
            printf("<rect x='%d' y='%d' width='%d' height='%d' fill='#%06x'/>\n",
                   MARGIN + column * CELL_WIDTH, MARGIN + row * CELL_HEIGHT,
                   (end - column) * CELL_WIDTH, CELL_HEIGHT,
                   theme_ground(theme, GROUND_SELECTED)->rgb);
        column = end;
    }
}

static void print_picture(void) {
    int width = 2 * MARGIN + shown->columns * CELL_WIDTH;
    int height = 2 * MARGIN + shown->rows * CELL_HEIGHT;
    printf("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' width='%d' height='%d' "
           "xml:space='preserve' font-size='14' font-family='ui-monospace, \"JetBrains Mono\", "
           "Menlo, Consolas, \"DejaVu Sans Mono\", monospace'>\n",
           width, height, width, height);
    printf("<rect width='%d' height='%d' rx='8' fill='#%06x'/>\n", width, height,
           theme_ground(theme, GROUND_PLAIN)->rgb);
    for (int row = 0; row < shown->rows; row++)
        print_grounds(row);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int ink = 0; ink < INKS; ink++)
            print_shapes(&shapes[i], (Ink)ink);
    for (int row = 0; row < shown->rows; row++)
        print_text(row);
    printf("</svg>\n");
}

// ---- driving it ---------------------------------------------------------------------------------

static bool type_script(Shown *screen, char *script) {
    bool is_keys = true;
    for (char *part = strtok(script, "|"); part; part = strtok(NULL, "|"), is_keys = !is_keys) {
        if (is_keys) {
            shown_type(screen, strcmp(part, "_") == 0 ? "" : part);
        } else if (shown_wait(screen, part, true, 20) < 0) {
            fprintf(stderr, "picture: \"%s\" did not appear\n%s", part, shown_text(screen));
            return false;
        }
    }
    shown_settle(screen);
    return true;
}

int main(int count, char **arguments) {
    const char *environment[] = {"MPBENCH_SCREEN_CLOCK=" SCREEN_CLOCK, SCREEN_NO_CONFIG, NULL,
                                 NULL};
    static Shown screen;
    if (count < 4) {
        fprintf(stderr, "picture COLUMNS ROWS KEYS [ARGUMENT...]\n");
        return 2;
    }
    bool as_text = strncmp(arguments[3], "text:", 5) == 0;
    bool is_light = strncmp(arguments[3], "light:", 6) == 0;
    if (is_light)
        environment[2] = "BACKGROUND=ffff/ffff/ffff";
    theme = is_light ? THEME_LIGHT : THEME_DARK;
    shown_start(&screen, atoi(arguments[1]), atoi(arguments[2]), environment,
                (const char *const *)arguments + 4);
    shown = &screen;
    bool done = type_script(&screen, arguments[3] + (as_text ? 5 : is_light ? 6 : 0));
    if (as_text)
        fputs(shown_text(&screen), stdout);
    else if (done)
        print_picture();
    shown_type(&screen, "q");
    shown_wait_end(&screen, 2);
    shown_free(&screen);
    return done ? 0 : 1;
}
