#include "base/shortest.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Shortest shortest_of_float(double value) {
    enum { MOST_DIGITS = 9 }; // with which every fp32 number reads back as itself
    const double always_whole = 1e9;
    Shortest shortest, whole;
    for (int digits = 1; digits <= MOST_DIGITS; digits++) {
        snprintf(shortest.text, sizeof shortest.text, "%.*g", digits, value);
        if (strtof(shortest.text, NULL) == (float)value)
            break;
    }
    if (!isfinite(value) || value != trunc(value))
        return shortest;
    int length = snprintf(whole.text, sizeof whole.text, "%.0f", value);
    bool is_short = fabs(value) < always_whole || (size_t)length <= strlen(shortest.text);
    return is_short && length < (int)sizeof whole.text ? whole : shortest;
}
