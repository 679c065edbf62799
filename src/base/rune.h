// base/rune.h: how many columns a character takes on a terminal. The same everywhere, whatever the
// locale says, so that a frame is laid out alike on every machine. Any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

// 0 (combining, invisible), 1 or 2. Control characters count 0: the sanitiser has made them visible
// before.
int rune_width(uint32_t rune);

// Columns of UTF-8 text; bytes that are no UTF-8 count as one column each.
int text_width(const char *text);
// How many bytes of `text` fill at most `columns`; *used, unless NULL, gets the columns they fill.
size_t text_fit(const char *text, int columns, int *used);

// Reads the rune at *text and steps over it; 0 at the end, U+FFFD for bytes that are no UTF-8.
uint32_t rune_next(const char **text);
// Writes a rune as UTF-8; returns its bytes (1..4). Not terminated.
int rune_encode(uint32_t rune, char out[4]);
