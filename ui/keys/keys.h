// ui/keys/keys.h: from keys to what they ask for. One table (keys.def) gives requests, keys, the
// row of keys at the foot of a screen and the help. Pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { // beside the characters; above all code points
    KEY_CODE_NONE = 0,
    KEY_CODE_BACKSPACE = 0x7F,
    KEY_CODE_ESCAPE = 0x1B,
    KEY_CODE_UP = 0x200000,
    KEY_CODE_DOWN,
    KEY_CODE_LEFT,
    KEY_CODE_RIGHT,
    KEY_CODE_PAGE_UP,
    KEY_CODE_PAGE_DOWN,
    KEY_CODE_HOME,
    KEY_CODE_END,
    KEY_CODE_DELETE,
    KEY_CODE_ENTER,
    KEY_CODE_BACKTAB,
    KEY_CODE_F1,
    KEY_CODE_F2,
    KEY_CODE_F3,
    KEY_CODE_F4,
    KEY_CODE_F5,
};
#define KEY_CODE_CONTROL(letter) ((letter)&0x1F)

// 1 << ScreenId
enum { ON_HOME = 1, ON_LIVE = 2, ON_COMPARE = 4, ON_FORMATS = 8, ON_SCAN = 16, ON_ALL = 31 };

typedef enum Request {
    REQUEST_NONE,
#define KEY(request, first, second, where, label, text) REQUEST_##request,
#include "ui/keys/keys.def"
#undef KEY
    REQUESTS
} Request;

typedef struct KeyBinding {
    const char *name; // "SCRUB_BACK"
    int first, second;
    int where;
    const char *label, *text;
} KeyBinding;

// A keymap is a table of all requests that starts as keys.def has it.
typedef struct Keymap {
    KeyBinding bindings[REQUESTS];
} Keymap;

void keymap_init(Keymap *keymap);
// What a key asks for on a screen (ON_...); REQUEST_NONE: nothing.
Request keymap_find(const Keymap *keymap, int key, int screen);
// Gives a request another first key, by names; false when one of them is unknown. Two may share a
// key until all are given, so that they can be exchanged.
bool keymap_set(Keymap *keymap, const char *request, const char *key);
// The first request that was given a key which another has on a screen of its own, and that other
// one; false: there is none.
bool keymap_clash(const Keymap *keymap, Request *given, Request *other);
// As settings have it: "scrub_back".
void keymap_name(const Keymap *keymap, Request request, char *text, size_t size);
// "space", "^L", "tab", "F1", "x".
void key_describe(int key, char *text, size_t size);
int key_parse(const char *text); // KEY_CODE_NONE: no such key
