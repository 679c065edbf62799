// base/stops.h: Ctrl-Z at a moment when nobody waits for us.
//
// A process that is stopped while it holds the lock of a file stops all others that want it, for as
// long as its user likes. So the signal of the terminal's (SIGTSTP) takes effect between such
// stretches: those who hold a lock say so, a few microseconds to milliseconds at a time. Who has
// other processes to stop first holds it off for as long as there are any, and looks whether it is
// wanted. SIGSTOP cannot be put off. Any thread; nothing here allocates or fails.
#pragma once

#include <stdbool.h>

// From here on. Leaves it alone where whoever started us ignores it.
void stops_put_off(void);

// Around all that is held against others; nests. Whoever held lets go, on the same thread. The
// outermost of a thread may stop the process before it begins, or after it ends, and returns once
// that goes on.
void stops_hold(void);
void stops_let(void);
// Whether the process will stop once nobody holds anything.
bool stops_are_wanted(void);
// The process was told to go on: a stop that waits for somebody to let go is none any more. Whoever
// has a handler of SIGCONT of their own calls it there.
void stops_forget(void);

// clock_seconds, but for the time that the process was stopped so.
double stops_clock(void);
int stops_count(void); // how often it was
