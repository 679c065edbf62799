// base/stops.h: Ctrl-Z at a moment when nobody waits for us.
//
// A process that is stopped while it holds the lock of a file stops all others that want it, for as
// long as its user likes. So the signal of the terminal's (SIGTSTP) takes effect between such
// stretches: those who hold a lock say so, a few microseconds to milliseconds at a time. SIGSTOP
// cannot be put off. Any thread; nothing here allocates or fails.
#pragma once

#include <stdbool.h>

// From here on. Leaves it alone where whoever started us ignores it.
void stops_put_off(void);

// Around all that is held against others; nests, over all threads. May stop the process before it
// begins, or after it ends, and returns once that goes on.
void stops_hold(void);
void stops_let(void);
// Whether stops_let will stop the process: who has others to stop with it does so in between.
bool stops_are_wanted(void);
