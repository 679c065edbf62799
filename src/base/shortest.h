// base/shortest.h: numbers that fp32 holds, in as few digits as tell them from their neighbours: a
// loss scale of 1e12 is 999999995904 in fp32, and is shown as 1e+12. Pure; any thread.
#pragma once

typedef struct Shortest {
    char text[24];
} Shortest;

// Whole numbers in full where that takes no more room, and below 1e9 always.
Shortest shortest_of_float(double value);
