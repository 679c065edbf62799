#include "cli/print/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/load.h"

const char *text_count(char text[TEXT_SIZE], int64_t count) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRId64, count);
    int used = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0 && digits[i - 1] != '-')
            text[used++] = ',';
        text[used++] = digits[i];
    }
    text[used] = 0;
    return text;
}

const char *text_bytes(char text[TEXT_SIZE], double bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    while (bytes >= 1024 && unit + 1 < sizeof units / sizeof *units) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, TEXT_SIZE, bytes < 10 && unit > 0 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return text;
}

const char *text_number(char text[TEXT_SIZE], double value, int digits) {
    // The C library writes the signs of NaN and of zero, which mean nothing.
    snprintf(text, TEXT_SIZE, "%.*g", digits, isnan(value) ? fabs(value) : value + 0.0);
    return text;
}

const char *text_duration(char text[TEXT_SIZE], double seconds) {
    const double longest = 1e9; // thirty years
    if (!(seconds >= 0 && seconds < longest)) {
        snprintf(text, TEXT_SIZE, "?");
        return text;
    }
    int64_t whole = (int64_t)ceil(seconds);
    int64_t hours = whole / 3600, minutes = whole / 60 % 60, rest = whole % 60;
    if (hours > 0)
        snprintf(text, TEXT_SIZE, "%" PRId64 ":%02d:%02d", hours, (int)minutes, (int)rest);
    else
        snprintf(text, TEXT_SIZE, "%d:%02d", (int)minutes, (int)rest);
    return text;
}

const char *text_load(char text[TEXT_LOAD_SIZE], double others) {
    const double worth_telling = 0.1; // of a processor
    text[0] = 0;
    if (others >= worth_telling)
        snprintf(text, TEXT_LOAD_SIZE, "other programs kept %.1f of %d processors busy meanwhile",
                 others, load_processors());
    return text;
}
