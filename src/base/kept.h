// base/kept.h: figures that were found at a cost and are kept for later programs of the same user.
//
// They lie in $XDG_CACHE_HOME/mpbench, else ~/.cache/mpbench, a file a subject and a line a figure:
// what it is, its value, what it is of ("pairs 2.0 0.1.0 AMD EPYC"). A cache: where it cannot be
// read or written the figure is found again, and nobody is told. Any process may write at once;
// lines are appended whole. Any thread.
#pragma once

#include <stdbool.h>

// The figure that was kept last; false: there is none. Whether it can be believed its reader knows.
bool kept_read(const char *subject, const char *what, const char *of, double *figure);
// In tenths.
void kept_write(const char *subject, const char *what, const char *of, double figure);
