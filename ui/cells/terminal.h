// ui/cells/terminal.h: the one room that touches the terminal, through ncurses: takes it, draws
// frames, reads keys and the mouse, gives it back.
//
// Whatever ends the program, the terminal is given back as it was (signals.h). There is one
// terminal a program; the main thread calls.
#pragma once

#include "ui/cells/frame.h"
#include "ui/cells/input.h"
#include "ui/cells/theme.h"

typedef enum TerminalCharacters {
    CHARACTERS_AUTO, // by the locale
    CHARACTERS_UTF8,
    CHARACTERS_ASCII
} TerminalCharacters;

typedef struct TerminalOptions {
    TerminalCharacters characters;
    int depth; // a ColorDepth; -1: what the terminal has (and NO_COLOR)
    int theme; // a Theme; -1: what suits its background, as far as it is known
    bool mouse;
} TerminalOptions;

// Fails, with what to do, where there is no terminal, TERM is unset, unknown or dumb.
bool terminal_open(const TerminalOptions *options, Error *error) MUST_CHECK;
void terminal_close(void);

void terminal_size(int *columns, int *rows);
bool terminal_is_ascii(void);
ColorDepth terminal_depth(void);
void terminal_set_depth(int depth); // as TerminalOptions; not beyond what it has
void terminal_set_theme(int theme);
void terminal_set_characters(TerminalCharacters characters); // UTF-8 only where it began so
void terminal_set_mouse(bool on);

// Brings the frame to the terminal, writing only what changed; the text cursor stands at (column,
// row), or is hidden when column is negative.
void terminal_draw(const Frame *frame, int column, int row);
void terminal_redraw(void); // all of it, next time
// The next key, click or resize within `seconds`. What the terminal answers is never a key.
Input terminal_read(double seconds);
// Puts text on the clipboard, by OSC 52, where the terminal takes that. Cut at 64 KiB.
void terminal_copy(const char *text);
// A signal asked for the end (SIGTERM, SIGHUP, SIGINT): its number, or 0.
int terminal_ended_by(void);
