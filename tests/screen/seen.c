// What a person sees on a terminal of shown.h: its text, its colours, and whether it is as before.
#include <stdio.h>
#include <string.h>

#include "base/rune.h"
#include "tests/screen/shown.h"
#include "ui/cells/theme.h"

static VTermScreenCell cell_at(const Shown *shown, int column, int row) {
    VTermScreenCell cell = {.chars = {0}};
    vterm_screen_get_cell(shown->screen, (VTermPos){.row = row, .col = column}, &cell);
    return cell;
}

static void end_line(char *text, size_t *used, size_t start) {
    while (*used > start && text[*used - 1] == ' ')
        --*used;
    text[(*used)++] = '\n';
}

const char *shown_text(const Shown *shown) {
    static char text[SHOWN_TEXT_SIZE];
    size_t used = 0;
    for (int row = 0; row < shown->rows; row++) {
        size_t start = used;
        for (int column = 0; column < shown->columns && used + 16 < sizeof text; column++) {
            VTermScreenCell cell = cell_at(shown, column, row);
            if (cell.chars[0] == (uint32_t)-1) // the right half of a wide character
                continue;
            used += (size_t)rune_encode(cell.chars[0] ? cell.chars[0] : ' ', text + used);
        }
        end_line(text, &used, start);
    }
    text[used] = 0;
    return text;
}

// At any depth: the first 16 of 256 colours are none of the theme's at that depth.
static bool is_color(const VTermColor *color, const ThemeColor *theme) {
    if (VTERM_COLOR_IS_INDEXED(color))
        return color->indexed.idx == theme->index_256 || color->indexed.idx == theme->index_16;
    return color->rgb.red == theme->rgb >> 16 && color->rgb.green == (theme->rgb >> 8 & 0xFF) &&
           color->rgb.blue == (theme->rgb & 0xFF);
}

bool shown_is_light(const Shown *shown) {
    return shown->background && strcmp(shown->background, "8000") > 0;
}

static char letter_of(const Shown *shown, const VTermScreenCell *cell) {
    static const char letters[INKS] = {
        [INK_TEXT] = 't',   [INK_DIM] = 'd',  [INK_BRIGHT] = 'h', [INK_BORDER] = 'o',
        [INK_ACCENT] = 'a', [INK_FP32] = 'f', [INK_TF32] = 'x',   [INK_BF16] = 'b',
        [INK_FP16] = 's',   [INK_FP8] = 'e',  [INK_GOOD] = 'g',   [INK_WARN] = 'w',
        [INK_BAD] = 'r'};
    Theme theme = shown_is_light(shown) ? THEME_LIGHT : THEME_DARK;
    char letter = '?';
    if (VTERM_COLOR_IS_DEFAULT_FG(&cell->fg))
        letter = 'n';
    for (int ink = 0; letter == '?' && ink < INKS; ink++)
        if (is_color(&cell->fg, theme_ink(theme, (Ink)ink)))
            letter = letters[ink];
    return cell->attrs.bold && letter != '?' ? (char)(letter - 'a' + 'A') : letter;
}

static bool is_blank(const VTermScreenCell *cell) {
    return cell->chars[0] == 0 || cell->chars[0] == ' ' || cell->chars[0] == (uint32_t)-1;
}

const char *shown_inks(const Shown *shown) {
    static char text[SHOWN_TEXT_SIZE];
    size_t used = 0;
    for (int row = 0; row < shown->rows; row++) {
        size_t start = used;
        for (int column = 0; column < shown->columns && used + 2 < sizeof text; column++) {
            VTermScreenCell cell = cell_at(shown, column, row);
            text[used++] = is_blank(&cell) ? ' ' : letter_of(shown, &cell);
        }
        end_line(text, &used, start);
    }
    for (int row = 0; row < shown->rows; row++) {
        for (int column = 0, from; column < shown->columns && used + 64 < sizeof text; column++) {
            VTermScreenCell cell = cell_at(shown, column, row);
            for (from = column; column < shown->columns; column++) {
                VTermScreenCell next = cell_at(shown, column, row);
                if (VTERM_COLOR_IS_DEFAULT_BG(&next.bg) && !next.attrs.reverse)
                    break;
                cell = next;
            }
            if (column > from)
                used +=
                    (size_t)snprintf(text + used, sizeof text - used, "ground %d: %d-%d %s\n", row,
                                     from, column - 1, cell.attrs.reverse ? "reverse" : "selected");
        }
    }
    text[used] = 0;
    return text;
}

bool shown_is_given_back(const Shown *shown, char *why, size_t size) {
    struct termios now;
    const struct termios *before = &shown->before;
    bool same = tcgetattr(shown->other_side, &now) == 0 && now.c_iflag == before->c_iflag &&
                now.c_oflag == before->c_oflag && now.c_cflag == before->c_cflag &&
                now.c_lflag == before->c_lflag &&
                memcmp(now.c_cc, before->c_cc, sizeof now.c_cc) == 0;
    snprintf(why, size, "%s%s%s%s%s", same ? "" : "the line's settings differ; ",
             shown->is_alternate ? "the alternate screen is left on; " : "",
             shown->shows_cursor ? "" : "the cursor is hidden; ",
             shown->has_mouse ? "the mouse is reported; " : "",
             shown->is_held ? "a picture is held; " : "");
    return why[0] == 0;
}
