// ui/keys/settings.h: what the user set: read from a file, changed in the program, written back.
// One table gives names, values, the page in the program and the file.
//
// The file is a piece of Lua that is read here without Lua: one `name = value` a line, where a
// value is a number, a word in quotes, true or false; -- begins a comment. Other keys are settings
// too: `key.scrub_back = "("`. Pure, but for reading and writing the file.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "ui/keys/keys.h"

typedef struct Settings {
    int characters;      // a TerminalCharacters: auto, utf8, ascii
    int colors;          // auto, true, 256, 16, mono
    int theme;           // auto, dark, light
    int mouse, log_axis; // 0 or 1
    int frames;          // a second, at most
    double smoothing;    // of curves, 0 .. 0.99
    double co2;          // grams a kWh; 0: not said
} Settings;

void settings_init(Settings *settings);
// A missing file is no error. A line that cannot be understood is: file:line, and the nearest name;
// and so is a key that two requests have on one screen.
bool settings_read(Settings *settings, Keymap *keymap, const char *path, Error *error) MUST_CHECK;
// Atomic; makes the folder. Keys that are not those of keys.def are written too.
bool settings_write(const Settings *settings, const Keymap *keymap, const char *path,
                    Error *error) MUST_CHECK;

// The table, for the page in the program.
int settings_count(void);
const char *settings_name(int i);
int settings_find(const char *name); // -1: none is called that
const char *settings_about(int i);
const char *settings_label(int i); // of the page
// As in the file, and in words for the page.
void settings_describe(const Settings *settings, int i, char *text, size_t size);
void settings_word(const Settings *settings, int i, char *text, size_t size);
// The next (by 1) or previous (by -1) value of a choice, a step up or down of a number.
void settings_turn(Settings *settings, int i, int by);
bool settings_set(Settings *settings, const char *name, const char *value, Error *error) MUST_CHECK;
