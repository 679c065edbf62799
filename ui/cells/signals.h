// ui/cells/signals.h: signals while the terminal is ours. Whatever ends the program, the terminal
// is given back as it was: on a fatal signal a handler on a stack of its own writes the bytes that
// leave the screen and restores the line's settings, then raises the signal again. What asks for an
// end, a stop or another size is noted, and the screen sees to it when it reads.
//
// There is one terminal a program; the main thread calls.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Keeps how the line is set and which bytes leave the screen, which must stay where they are;
// false: the line does not answer.
bool signals_keep(const char *bytes, size_t length);
// Of stops and sizes: before ncurses is opened, which then leaves them alone, and after each stop.
void signals_catch_stops(void);
void signals_catch_ends(void); // from here on what ends the program gives the terminal back
void signals_release(void);    // gives back what is not yet, and is what it was before

bool signals_take_stop(void); // ^Z was pressed since the last call
bool signals_take_size(void); // the terminal has another size since the last call
int signals_end(void);        // the number of one that asked for the end (SIGTERM, ..), or 0
