// ui/cells/reading.h: the terminal's side of standard input: waits for bytes, and has them read as
// keys, clicks and answers (input.h). Asks the terminal what its background is. One terminal a
// program; main thread, while terminal.c has it.
#pragma once

#include "ui/cells/input.h"

// Forgets what came before, and learns the keys of the description that ncurses has loaded.
void reading_begin(void);
// Asks, and waits a moment; an answer that comes later is an input (INPUT_COLORS).
void reading_ask_background(void);
bool reading_background(uint32_t *rgb); // false: it was not told
// Takes what was asked for and has not come yet, which nobody else is to read.
void reading_end(void);
// *input is INPUT_NONE when the time is over, or a signal came. False: the terminal is gone.
bool reading_next(double seconds, Input *input);
