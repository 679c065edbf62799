// base/sanitize.h: makes text from outside fit to be shown on a terminal.
//
// Every string that came from outside (a script's message, a layer's name, a file's path, an error
// of a library) passes here before a terminal, a log or a report gets it. What would move the
// cursor, colour, reorder, hide or forge text becomes visible ASCII: control characters "\n" or
// "\x1b", bidirectional overrides, zero-width and other invisible characters "\u{202e}", bytes that
// are not UTF-8 "\xff". Everything else, of any language, passes unchanged; what has passed once
// passes again unchanged. Nothing here allocates or fails. Any thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Whether a character cannot be seen, or changes how its neighbours are seen.
bool sanitize_is_unseen(uint32_t code);

// One line: line ends and tabs are made visible too. Writes at most size bytes with the
// terminating zero, never a part of a character or of an escape, and returns the length of the
// whole (without the zero), so that a result >= size says that it was cut. `out` may be NULL when
// size is 0; it must not overlap text.
size_t sanitize_line(char *out, size_t size, const char *text, size_t length);

// The same for text of several lines: '\n' and '\t' pass.
size_t sanitize_text(char *out, size_t size, const char *text, size_t length);
