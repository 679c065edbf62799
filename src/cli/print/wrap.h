// cli/print/wrap.h: a line of text in pieces that fit the terminal.
#pragma once

#include <stdio.h>

// Prints `text`, which stands at `column`, without a line end. What passes `width` columns (0:
// there is no end) goes on in lines that begin at `hang`; a word longer than such a line is broken.
// Escapes of style take no columns; what came from outside is sanitised in it already.
void wrap_print(FILE *out, const char *text, int width, int column, int hang);
// The same of text without style in which there may be names from outside: sanitises it.
void wrap_print_outside(FILE *out, const char *text, int width, int column, int hang);
