// ui/outside.h: draws and formats what came from outside and what may be unknown, alike on all
// screens. Pure.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ui/frame.h"

// Text from the history: sanitised, at most `width` columns. Returns the column after it.
int area_outside(Area area, int column, int row, int width, Style style, const char *text);

enum { VALUE_SIZE = 32 };

// Each writes into text[VALUE_SIZE] and returns it; unknown (NaN, RECORD_UNKNOWN) is a dash.
const char *value_count(char *text, int64_t count);      // 1,240
const char *value_short(char *text, double count);       // 14.2k
const char *value_number(char *text, double value);      // 0.2841; nan and inf as words
const char *value_bytes(char *text, int64_t bytes);      // 61 MB
const char *value_duration(char *text, double seconds);  // 0:03, 1:02:09
const char *value_age(char *text, int64_t milliseconds); // 5 s, 3 min, 2 h, 4 d
const char *value_share(char *text, double share);       // 4.1%
