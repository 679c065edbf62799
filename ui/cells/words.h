// ui/cells/words.h: readings in words, alike on all screens. What is unknown (NaN, INT64_MIN) is a
// dash. Pure.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct Word { // lives as long as the expression that made it
    char text[32];
} Word;

Word word_count(int64_t value);              // "1,240"
Word word_short(double count);               // "14.2k"
Word word_number(double value);              // "0.2841"; NaN is a value: "nan"
Word word_power(double value, int decimals); // "8.4e-4"
Word word_reading(double value);             // the same; NaN is unknown
Word word_rate(double a_second);             // "63.4"; what is not above 0 is unknown
Word word_share(double share);               // "4.1 %"
Word word_bytes(int64_t bytes);              // "61 MiB", as the commands have it
Word word_scale(double scale);               // "2^15", "1126.4", "0.0305"
Word word_rule(const char *rule);            // of a loss scale: "dynamic", "2^15" of "32768"
Word word_time(double seconds);              // "0:03", "1:02:09", "66 d 16 h"
Word word_age(int64_t milliseconds);         // "5 s", "3 min", "2 h", "4 d"

// The text in so many columns: of what is longer the middle is left out.
void word_shorten(char *out, size_t size, const char *text, int width);
// A sentence of the history as screens write it: "scale 65536 -> 32768" as "scale 2^16 → 2^15". For
// sentences of ours alone, not for what a script or its user wrote; names in quotes stay.
void word_rewrite(char *out, size_t size, const char *text);
