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

// ---- what the signal handler needs --------------------------------------------------------------

enum { RESTORE_SIZE = 512, STACK_SIZE = 64 * 1024 };

static struct {
    volatile sig_atomic_t taken; // the terminal is ours now
    struct termios before;
    char restore[RESTORE_SIZE]; // bytes that leave the screen
    size_t restore_length;
    volatile sig_atomic_t end_signal;
    volatile sig_atomic_t stop_asked; // by ^Z
    volatile sig_atomic_t resized;
    SCREEN *screen;
    bool ascii, is_utf8, mouse;
    ColorDepth depth, most_depth;
    bool claims_true_color;
    Theme theme;
    int theme_asked; // as TerminalOptions
} terminal;

static const int fatal_signals[] = {SIGSEGV, SIGBUS,  SIGFPE, SIGILL,  SIGABRT,
                                    SIGQUIT, SIGTRAP, SIGSYS, SIGXCPU, SIGXFSZ};
static const int end_signals[] = {SIGINT, SIGTERM, SIGHUP};
enum {
    FATAL_SIGNALS = sizeof fatal_signals / sizeof *fatal_signals,
    END_SIGNALS = sizeof end_signals / sizeof *end_signals,
};

// Async-signal-safe.
static void give_back(void) {
    if (!terminal.taken)
        return;
    terminal.taken = 0;
    for (size_t done = 0; done < terminal.restore_length;) {
        ssize_t written =
            write(STDOUT_FILENO, terminal.restore + done, terminal.restore_length - done);
        if (written < 0 && errno != EINTR)
            break;
        done += written > 0 ? (size_t)written : 0;
    }
    tcsetattr(STDIN_FILENO, TCSANOW, &terminal.before);
}

static void on_fatal(int number) {
    give_back();
    signal(number, SIG_DFL);
    raise(number);
}

static void on_end(int number) {
    if (terminal.end_signal) // nobody listened the first time
        on_fatal(number);
    terminal.end_signal = number;
}

static void on_stop(int number) {
    (void)number;
    terminal.stop_asked = 1;
}

static void on_resize(int number) {
    (void)number;
    terminal.resized = 1;
}

// Before ncurses is opened, which then leaves them alone: it drops what comes while it draws. Where
// nobody can bring a program back, shells have the stop ignored, and so it stays.
static void catch_stop(void) {
    struct sigaction action = {.sa_handler = on_stop}, before;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGTSTP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGTSTP, &action, NULL);
    action.sa_handler = on_resize;
    sigaction(SIGWINCH, &action, NULL);
}

static void catch_signals(void) {
    static char stack[STACK_SIZE];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternate, NULL);
    struct sigaction action = {.sa_handler = on_fatal, .sa_flags = SA_ONSTACK | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < FATAL_SIGNALS; i++)
        sigaction(fatal_signals[i], &action, NULL);
    action = (struct sigaction){.sa_handler = on_end, .sa_flags = SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < END_SIGNALS; i++)
        sigaction(end_signals[i], &action, NULL);
}

static void release_signals(void) {
    for (int i = 0; i < FATAL_SIGNALS; i++)
        signal(fatal_signals[i], SIG_DFL);
    for (int i = 0; i < END_SIGNALS; i++)
        signal(end_signals[i], SIG_DFL);
    if (signal(SIGTSTP, SIG_DFL) == SIG_IGN)
        signal(SIGTSTP, SIG_IGN);
    signal(SIGWINCH, SIG_DFL);
}

static void add_restore(const char *bytes) {
    if (!bytes || bytes == (const char *)-1)
        return;
    size_t length = strlen(bytes);
    if (terminal.restore_length + length > sizeof terminal.restore)
        return;
    memcpy(terminal.restore + terminal.restore_length, bytes, length);
    terminal.restore_length += length;
}

// Colours off, cursor shown, mouse reports off, keys as they were, the other screen.
static void prepare_restore(void) {
    terminal.restore_length = 0;
    add_restore("\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l");
    static char *const capabilities[] = {"sgr0", "op", "cnorm", "rmkx", "rmcup"};
    for (size_t i = 0; i < sizeof capabilities / sizeof *capabilities; i++)
        add_restore(tigetstr(capabilities[i]));
}

// ---- taking it ----------------------------------------------------------------------------------

// What ncurses was told last, so that it hears of what changed alone.
static struct {
    Cell *cells; // NULL: everything is to be told
    int columns, rows;
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

static int color_number(const ThemeColor *color, ColorDepth depth) {
    switch (depth) {
    case DEPTH_TRUE: return (int)color->rgb;
    case DEPTH_256: return color->index_256;
    case DEPTH_16: // of eight, bright ones come by bold
        return color->index_16 < 0 ? -1 : COLORS >= 16 ? color->index_16 : color->index_16 & 7;
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

// Presses and the wheel, where reports say where they end.
static void report_mouse(bool on) {
    static const char both[] = "\x1b[?1000h\x1b[?1006h", none[] = "\x1b[?1006l\x1b[?1000l";
    const char *kind = tigetstr("kmous");
    if (kind && kind != (const char *)-1)
        putp(on ? both : none);
    fflush(stdout);
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
    if (tcgetattr(STDIN_FILENO, &terminal.before) != 0)
        return error_fail(error, ERROR_UNAVAILABLE, "the terminal does not answer: %s",
                          error_cause(errno));
    prepare_restore();
    reading_begin();
    catch_stop();
    terminal.screen = open_described();
    if (!terminal.screen)
        return error_fail(error, ERROR_UNAVAILABLE,
                          "ncurses cannot use this terminal; set TERM=xterm-256color");
    terminal.taken = 1;
    terminal.end_signal = 0;
    catch_signals();
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
    give_back(); // what a lost terminal left half done
    release_signals();
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
            attributes |= color->index_16 == 8 ? A_DIM : A_BOLD;
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

void terminal_draw(const Frame *frame, int column, int row) {
    bool is_known = make_told(frame);
    for (int y = 0; y < frame->rows; y++)
        for (int x = 0; x < frame->columns; x++) {
            const Cell *cell = frame_cell(frame, x, y);
            Cell *before = is_known ? &told.cells[y * frame->columns + x] : NULL;
            if (before && memcmp(before, cell, sizeof *cell) == 0)
                continue;
            if (before)
                *before = *cell;
            if (cell->rune)
                draw_cell(cell, x, y);
        }
    curs_set(column >= 0 ? 1 : 0);
    if (column >= 0)
        move(row, column);
    refresh(); // ncurses knows what the terminal shows, and writes what differs
}

void terminal_redraw(void) {
    forget_told();
    clearok(curscr, TRUE);
}

// ---- reading ------------------------------------------------------------------------------------

// Gives the terminal back, stands still until somebody brings it back, and takes it again.
static void stand_aside(void) {
    terminal.stop_asked = 0;
    report_mouse(false);
    endwin();
    signal(SIGTSTP, SIG_DFL);
    raise(SIGTSTP);
    catch_stop();
    terminal_redraw();
    refresh();
    report_mouse(terminal.mouse);
}

static Input take_size(void) {
    struct winsize size;
    terminal.resized = 0;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
        resizeterm(size.ws_row, size.ws_col);
    forget_told(); // ncurses cut what it had
    return (Input){.kind = INPUT_RESIZE};
}

Input terminal_read(double seconds) {
    Input input;
    if (terminal.stop_asked)
        stand_aside();
    if (terminal.resized)
        return take_size();
    if (!reading_next(seconds, &input))
        return (Input){.kind = INPUT_LOST};
    if (input.kind == INPUT_COLORS)
        terminal_set_theme(terminal.theme_asked);
    return input;
}

int terminal_ended_by(void) {
    return terminal.end_signal;
}
