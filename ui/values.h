// ui/values.h: figures as the screen writes them, alike everywhere. Pure.
//
// Each writes into text[VALUE_SIZE] and returns it; what is unknown (NaN, INT64_MIN) is a dash.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { VALUE_SIZE = 32 };

const char *value_count(char *text, int64_t count);      // 1,240
const char *value_short(char *text, double count);       // 14.2k
const char *value_number(char *text, double value);      // 0.2841; nan and inf as words
const char *value_bytes(char *text, int64_t bytes);      // 61 MB
const char *value_duration(char *text, double seconds);  // 0:03, 1:02:09
const char *value_age(char *text, int64_t milliseconds); // 5 s, 3 min, 2 h, 4 d
const char *value_share(char *text, double share);       // 4.1%
