// cli/print/text.h: numbers as people read them. Each writes into the caller's buffer and returns
// it.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { TEXT_SIZE = 32 };

const char *text_count(char text[TEXT_SIZE], int64_t count); // 1,240
const char *text_bytes(char text[TEXT_SIZE], double bytes);  // 61.2 MiB
// To so many significant digits; "nan", "inf", "-inf".
const char *text_number(char text[TEXT_SIZE], double value, int digits);
// "other programs kept 1.6 of 2 processors busy meanwhile" of what load_of_others (base/load.h)
// says;
// "" where that is too little to be told, or NaN: unknown.
enum { TEXT_LOAD_SIZE = 80 };
const char *text_load(char text[TEXT_LOAD_SIZE], double others);
const char *text_duration(char text[TEXT_SIZE], double seconds); // 1:12, 2:03:04
