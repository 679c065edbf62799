#define _XOPEN_SOURCE          700 // wide characters of ncurses
#define _XOPEN_SOURCE_EXTENDED 1
#define NCURSES_WIDECHAR       1

#include "ui/cells/terminal.h"

#include <curses.h>
#include <term.h>
#undef columns // a macro of term.h, and a word of ours
#undef lines

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "ui/cells/describe.h"
#include "ui/cells/reading.h"
#include "ui/cells/signals.h"

static struct {
    SCREEN *screen;
    bool ascii, is_utf8, mouse;
    bool takes_modes; // of later days, or passes over what it does not know
    ColorDepth depth, most_depth;
    bool claims_true_color;
    Theme theme;
    int theme_asked; // as TerminalOptions
} terminal;

// What comes between these is shown at once, not line by line, by terminals that know it.
static const char hold_picture[] = "\x1b[?2026h", show_picture[] = "\x1b[?2026l";

// ---- taking it ----------------------------------------------------------------------------------

// What ncurses was told last, so that it hears of what changed alone.
static struct {
    Cell *cells; // NULL: everything is to be told
    int columns, rows;
    int cursor_column, cursor_row;
} told;

static void forget_told(void) {
    free(told.cells);
    told.cells = NULL;
}

static ColorDepth depth_there_is(void) {
    if (!has_colors())
        return DEPTH_MONO;
    if (tigetflag("RGB") > 0) // by its own description, or by ours
        return DEPTH_TRUE;
    return COLORS >= 256 ? DEPTH_256 : COLORS >= 16 || COLORS == 8 ? DEPTH_16 : DEPTH_MONO;
}

enum { GREY = 8 }; // of 16 colours

static int color_number(const ThemeColor *color, ColorDepth depth) {
    switch (depth) {
    case DEPTH_TRUE: return (int)color->rgb;
    case DEPTH_256: return color->index_256;
    case DEPTH_16:
        if (COLORS >= 16 || color->index_16 < 0)
            return color->index_16;
        // Of eight, bright ones come by bold. Grey would be black: it is the usual one, dimmed.
        return color->index_16 == GREY ? -1 : color->index_16 & 7;
    case DEPTH_MONO: break;
    }
    return -1;
}

static int pair_of(int ink, int ground) {
    return 1 + ink + INKS * ground;
}

static void make_pairs(void) {
    if (terminal.depth == DEPTH_MONO)
        return;
    for (int ground = 0; ground < GROUNDS; ground++)
        for (int ink = 0; ink < INKS; ink++) {
            int back =
                ground == GROUND_PLAIN
                    ? -1
                    : color_number(theme_ground(terminal.theme, (Ground)ground), terminal.depth);
            init_extended_pair(pair_of(ink, ground),
                               color_number(theme_ink(terminal.theme, (Ink)ink), terminal.depth),
                               back);
        }
}

void terminal_set_depth(int depth) {
    const char *no_color = getenv("NO_COLOR");
    if (depth < 0)
        depth = no_color && no_color[0] != '\0' ? DEPTH_MONO
                : terminal.claims_true_color    ? DEPTH_TRUE
                                                : DEPTH_256;
    terminal.depth =
        (ColorDepth)depth < terminal.most_depth ? (ColorDepth)depth : terminal.most_depth;
    make_pairs();
    terminal_redraw();
}

void terminal_set_theme(int theme) {
    uint32_t background;
    terminal.theme_asked = theme;
    terminal.theme = theme >= 0                        ? (Theme)theme
                     : reading_background(&background) ? theme_on(background)
                                                       : describe_theme(THEME_DARK);
    make_pairs();
    terminal_redraw();
}

static void write_mode(const char *bytes) {
    if (terminal.takes_modes)
        putp(bytes);
    fflush(stdout); // ncurses has a buffer of its own
}

// Presses and the wheel, where reports say where they end.
static void report_mouse(bool on) {
    write_mode(on ? "\x1b[?1000h\x1b[?1006h" : "\x1b[?1006l\x1b[?1000l");
}

void terminal_set_mouse(bool on) {
    terminal.mouse = on;
    report_mouse(on);
}

void terminal_set_characters(TerminalCharacters characters) {
    terminal.ascii = characters == CHARACTERS_ASCII || !terminal.is_utf8;
}

static bool check_terminal(Error *error) {
    const char *kind = getenv("TERM");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return error_fail(error, ERROR_UNAVAILABLE,
                          "the screen needs a terminal: standard input and output are none; "
                          "`mpbench ls` and `mpbench show` print the same as text");
    if (!kind || !kind[0] || strcmp(kind, "dumb") == 0)
        return error_fail(error, ERROR_UNAVAILABLE,
                          "the screen needs a terminal that can move its cursor, and TERM is %s; "
                          "set TERM (xterm-256color fits most), or use `mpbench ls`",
                          kind && kind[0] ? kind : "not set");
    int status;
    if (setupterm(NULL, STDOUT_FILENO, &status) != OK)
        return error_fail(error, ERROR_UNAVAILABLE,
                          "the terminal \"%.40s\" is not known here; set TERM=xterm-256color, or "
                          "install its description (package ncurses-term)",
                          kind);
    return true;
}

static const char *capability(const char *name) { // NULL: it has none
    const char *bytes = tigetstr(name);
    return bytes && bytes != (const char *)-1 ? bytes : NULL;
}

static struct { // what gives the terminal back; signals.c borrows it
    char bytes[512];
    size_t length;
} leaving;

static int add_leaving(int byte) {
    if (leaving.length < sizeof leaving.bytes)
        leaving.bytes[leaving.length++] = (char)byte;
    return byte;
}

// A picture that is held is shown; mouse reports off, colours off, cursor shown, keys as they were,
// the other screen. A terminal that has no other one keeps what it shows, and the prompt of the
// shell comes below it. The signs of delays in descriptions are for tputs alone.
static bool keep_leaving(void) {
    static const char *const names[] = {"sgr0", "op", "cnorm", "rmkx", "rmcup"};
    leaving.length = 0;
    if (terminal.takes_modes)
        tputs(show_picture, 1, add_leaving);
    tputs("\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l", 1, add_leaving);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (capability(names[i]))
            tputs(capability(names[i]), 1, add_leaving);
    if (!capability("rmcup"))
        tputs("\r\n", 1, add_leaving);
    return signals_keep(leaving.bytes, leaving.length);
}

// With all colours that it may have; which of them are used is settled later.
static SCREEN *open_described(void) {
    const char *own = getenv("TERMINFO");
    char *before = own ? strdup(own) : NULL, *description = describe_with_colors();
    SCREEN *screen = NULL;
    terminal.claims_true_color = describe_has_true_color();
    del_curterm(cur_term); // that of check_terminal; newterm makes its own
    if (description && setenv("TERMINFO", description, 1) == 0)
        screen = newterm(NULL, stdout, stdin);
    if (before)
        setenv("TERMINFO", before, 1);
    else
        unsetenv("TERMINFO");
    free(before);
    free(description);
    return screen ? screen : newterm(NULL, stdout, stdin);
}

bool terminal_open(const TerminalOptions *options, Error *error) {
    if (!check_terminal(error))
        return false;
    setlocale(LC_CTYPE, "");
    terminal.is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    if (options->characters == CHARACTERS_UTF8 && !terminal.is_utf8)
        terminal.is_utf8 = setlocale(LC_CTYPE, "C.UTF-8") != NULL; // ncurses writes what it has
    terminal_set_characters(options->characters);
    terminal.takes_modes = capability("kmous");
    if (!keep_leaving())
        return error_fail(error, ERROR_UNAVAILABLE, "the terminal does not answer: %s",
                          error_cause(errno));
    reading_begin();
    signals_catch_stops();
    terminal.screen = open_described();
    if (!terminal.screen)
        return error_fail(error, ERROR_UNAVAILABLE,
                          "ncurses cannot use this terminal; set TERM=xterm-256color");
    signals_catch_ends();
    cbreak();
    noecho();
    nonl();               // Enter is a carriage return
    typeahead(-1);        // a picture is drawn whole, whatever waits to be read
    keypad(stdscr, TRUE); // the terminal sends keys as its description says; we read them
    curs_set(0);
    terminal.most_depth = DEPTH_MONO;
    if (has_colors() && start_color() == OK) {
        use_default_colors();
        terminal.most_depth = depth_there_is();
    }
    terminal_set_depth(options->depth);
    terminal_set_mouse(options->mouse);
    if (terminal.depth > DEPTH_MONO)
        reading_ask_background();
    terminal_set_theme(options->theme);
    return true;
}

void terminal_close(void) {
    if (!terminal.screen)
        return;
    reading_end();
    forget_told();
    endwin();
    delscreen(terminal.screen);
    terminal.screen = NULL;
    signals_release();
}

// ---- drawing ------------------------------------------------------------------------------------

void terminal_size(int *columns, int *rows) {
    getmaxyx(stdscr, *rows, *columns);
}

bool terminal_is_ascii(void) {
    return terminal.ascii;
}

ColorDepth terminal_depth(void) {
    return terminal.depth;
}

static attr_t attributes_of(Style style) {
    attr_t attributes = style.reverse ? A_REVERSE : A_NORMAL;
    const ThemeColor *color = theme_ink(terminal.theme, (Ink)style.ink);
    if (style.bold)
        attributes |= A_BOLD;
    if (terminal.depth == DEPTH_MONO) {
        if (color->bold_in_mono)
            attributes |= A_BOLD;
        if (color->dim_in_mono)
            attributes |= A_DIM;
        if (style.ground == GROUND_SELECTED)
            attributes |= A_REVERSE;
    } else if (terminal.depth == DEPTH_16) {
        if (COLORS < 16 && color->index_16 >= 8)
            attributes |= color->index_16 == GREY ? A_DIM : A_BOLD;
        if (style.ground == GROUND_SELECTED)
            attributes |= A_REVERSE;
    }
    return attributes;
}

// ncurses has so many pairs of colours: the last bits of each, which nobody sees, are left out.
static int painted_pair(const Cell *cell) {
    const uint32_t seen = 0xF8F8F8, rounding = 0x040404;
    const uint32_t colors[2] = {cell->front, cell->back};
    int numbers[2];
    for (int i = 0; i < 2; i++)
        numbers[i] = terminal.depth == DEPTH_TRUE ? (int)((colors[i] & seen) | rounding)
                                                  : theme_index_256(colors[i]);
    int pair = alloc_pair(numbers[0], numbers[1]);
    return pair > 0 ? pair : 0;
}

static void draw_cell(const Cell *cell, int column, int row) {
    wchar_t text[2] = {(wchar_t)cell->rune, 0};
    int pair = terminal.depth == DEPTH_MONO ? 0
               : cell->style.ground == GROUND_PAINTED
                   ? painted_pair(cell)
                   : pair_of(cell->style.ink, cell->style.ground);
    cchar_t character;
    setcchar(&character, text, attributes_of(cell->style), (short)pair, &pair);
    mvadd_wch(row, column, &character);
}

static bool make_told(const Frame *frame) {
    if (told.cells && told.columns == frame->columns && told.rows == frame->rows)
        return true;
    forget_told();
    told.cells = calloc((size_t)frame->columns * (size_t)frame->rows, sizeof *told.cells);
    told.columns = frame->columns;
    told.rows = frame->rows;
    return told.cells != NULL;
}

// Whether any cell is another than before.
static bool tell_cells(const Frame *frame) {
    bool is_known = make_told(frame), differs = !is_known;
    for (int y = 0; y < frame->rows; y++)
        for (int x = 0; x < frame->columns; x++) {
            const Cell *cell = frame_cell(frame, x, y);
            Cell *before = is_known ? &told.cells[y * frame->columns + x] : NULL;
            if (before && memcmp(before, cell, sizeof *cell) == 0)
                continue;
            differs = true;
            if (before)
                *before = *cell;
            if (cell->rune)
                draw_cell(cell, x, y);
        }
    return differs;
}

static void show(void) {
    write_mode(hold_picture);
    refresh(); // ncurses knows what the terminal shows, and writes what differs
    write_mode(show_picture);
}

void terminal_draw(const Frame *frame, int column, int row) {
    bool differs = tell_cells(frame);
    differs |= column != told.cursor_column || row != told.cursor_row;
    if (!differs)
        return;
    told.cursor_column = column;
    told.cursor_row = row;
    curs_set(column >= 0 ? 1 : 0);
    if (column >= 0)
        move(row, column);
    show();
}

void terminal_redraw(void) {
    forget_told();
    clearok(curscr, TRUE);
}

// ---- reading ------------------------------------------------------------------------------------

// Gives the terminal back, stands still until somebody brings it back, and takes it again.
static void stand_aside(void) {
    report_mouse(false);
    endwin();
    signal(SIGTSTP, SIG_DFL);
    raise(SIGTSTP);
    signals_catch_stops();
    terminal_redraw();
    show();
    report_mouse(terminal.mouse);
}

static Input take_size(void) {
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
        resizeterm(size.ws_row, size.ws_col);
    forget_told(); // ncurses cut what it had
    return (Input){.kind = INPUT_RESIZE};
}

Input terminal_read(double seconds) {
    Input input;
    if (signals_take_stop())
        stand_aside();
    if (signals_take_size())
        return take_size();
    if (!reading_next(seconds, &input))
        return (Input){.kind = INPUT_LOST};
    if (input.kind == INPUT_COLORS)
        terminal_set_theme(terminal.theme_asked);
    return input;
}

int terminal_ended_by(void) {
    return signals_end();
}
