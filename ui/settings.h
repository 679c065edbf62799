// ui/settings.h: what the user set: read from config.lua's like, written by the program. One table
// gives names, values, the page in the program and the file.
//
// The file has one `name = value` a line (numbers, words in quotes, true or false; -- begins a
// comment): a piece of Lua, read here without Lua. What it does not know it keeps and names.
#pragma once

#include <stdbool.h>

#include "base/error.h"

typedef struct Settings {
    int characters; // 0 auto, 1 utf8, 2 ascii
    int colors;     // 0 auto, 1 true, 2 256, 3 16, 4 mono
    bool mouse;
    int frames;       // a second, at most
    double smoothing; // of curves, 0 .. 0.99
    bool log_axis;
    double co2_grams; // a kWh; 0: not said
    char keys[1024];  // "scrub_back=[ pause=P": other keys, as keymap_set takes them
} Settings;

void settings_init(Settings *settings);
// A missing file is no error. Unknown names and values are: one line with the nearest known.
bool settings_read(Settings *settings, const char *path, Error *error) MUST_CHECK;
bool settings_write(const Settings *settings, const char *path, Error *error) MUST_CHECK;

// The table, for the page in the program.
int settings_count(void);
const char *settings_name(int i);
const char *settings_about(int i);
void settings_describe(const Settings *settings, int i, char *text, int size);
// The next or previous value of a choice, a step up or down of a number.
void settings_turn(Settings *settings, int i, int by);
bool settings_set(Settings *settings, const char *name, const char *value, Error *error) MUST_CHECK;
