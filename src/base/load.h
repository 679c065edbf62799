// base/load.h: how busy other programs keep the processors. Linux counts what all of them did since
// the machine came up, and what this process did: between two looks, the rest is others'. Time that
// the machine itself was not given (a virtual machine's) is others', too. Any thread.
#pragma once

#include <stdbool.h>

typedef struct Load { // what was counted up to a moment, in seconds
    double busy;      // of all processors
    double own;       // of this process
    double at;        // clock_seconds
} Load;

// False: nobody counts here.
bool load_look(Load *load);
// How many processors others kept busy between two looks, on average. The kernel counts in ticks of
// 10 ms: looks lie a good part of a second apart.
double load_of_others(const Load *from, const Load *to);
int load_processors(void); // that there are
