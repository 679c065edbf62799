// cli/print/terminal.h: what an output stream can show: its width, and colours where they are
// wanted.
//
// A Terminal is the caller's and holds no resource. Styles are escapes or empty strings, so that
// the same printing serves a terminal, a pipe and a file.
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "cli/cli.h"
#include "number/format.h"

typedef struct Terminal {
    FILE *stream;
    bool is_terminal, has_color;
} Terminal;

typedef enum Style { STYLE_NONE, STYLE_STRONG, STYLE_DIM, STYLE_BAD, STYLE_COUNT } Style;

// --color beats NO_COLOR, which beats what the stream is.
Terminal terminal_of(FILE *stream, ColorChoice choice);
int terminal_width(const Terminal *terminal); // columns; no terminal: 0

// What begins a style (STYLE_NONE ends all), or a format's own colour, the same everywhere.
const char *terminal_style(const Terminal *terminal, Style style);
const char *terminal_format_color(const Terminal *terminal, Format format);
