// base/nearest.h: "did you mean": the known name nearest to one that was mistyped.
//
// A Nearest is the caller's and lives on its stack; it borrows the names offered to it, which must
// outlive it. Letters that differ only in case, neighbours swapped, and a missing or doubled '_'
// count little; a name that is short for what was wanted is near too, and one that ends in it as a
// word, or with a number.
// Nothing here allocates or fails. Any thread.
#pragma once

#include <stddef.h>

typedef struct Nearest {
    const char *wanted;
    const char *best; // NULL while nothing near enough has been offered
    unsigned cost;    // of best
} Nearest;

void nearest_begin(Nearest *nearest, const char *wanted);
void nearest_offer(Nearest *nearest, const char *candidate);
// The same of names that come in no order to rely on: of equals the last in the alphabet is kept,
// as fc2 for fc3 where there is fc1 too.
void nearest_offer_unordered(Nearest *nearest, const char *candidate);

// The same over a table: the nearest of `count` names, or NULL when none is near enough. Of equals
// the first wins.
const char *nearest_name(const char *wanted, const char *const *names, size_t count);
