#include "ui/keys/keys.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/rune.h"

static const KeyBinding bindings[REQUESTS] = {
#define KEY(request, first, second, where, label, text) \
    [REQUEST_##request] = {#request, first, second, where, label, text},
#include "ui/keys/keys.def"
#undef KEY
};

static const struct {
    int key;
    const char *name;
} names[] = {
    {' ', "space"},
    {'\t', "tab"},
    {'\r', "enter"},
    {KEY_CODE_ENTER, "enter"},
    {KEY_CODE_ESCAPE, "esc"},
    {KEY_CODE_BACKSPACE, "backspace"},
    {KEY_CODE_UP, "up"},
    {KEY_CODE_DOWN, "down"},
    {KEY_CODE_LEFT, "left"},
    {KEY_CODE_RIGHT, "right"},
    {KEY_CODE_PAGE_UP, "page up"},
    {KEY_CODE_PAGE_DOWN, "page down"},
    {KEY_CODE_HOME, "home"},
    {KEY_CODE_END, "end"},
    {KEY_CODE_DELETE, "delete"},
    {KEY_CODE_BACKTAB, "shift tab"},
    {KEY_CODE_F1, "F1"},
    {KEY_CODE_F2, "F2"},
    {KEY_CODE_F3, "F3"},
    {KEY_CODE_F4, "F4"},
    {KEY_CODE_F5, "F5"},
};

void keymap_init(Keymap *keymap) {
    memcpy(keymap->bindings, bindings, sizeof bindings);
}

static bool has_key(const KeyBinding *binding, int key) {
    return binding->first == key || binding->second == key;
}

Request keymap_find(const Keymap *keymap, int key, int screen) {
    if (key == KEY_CODE_NONE)
        return REQUEST_NONE;
    for (int i = REQUEST_NONE + 1; i < REQUESTS; i++) {
        const KeyBinding *binding = &keymap->bindings[i];
        if ((binding->where & screen) && has_key(binding, key))
            return (Request)i;
    }
    return REQUEST_NONE;
}

static bool is_called(const char *name, const char *lower) {
    for (; *name && *lower; name++, lower++)
        if (tolower((unsigned char)*name) != *lower)
            return false;
    return *name == *lower;
}

bool keymap_set(Keymap *keymap, const char *request, const char *key) {
    int code = key_parse(key);
    if (code == KEY_CODE_NONE)
        return false;
    for (int i = REQUEST_NONE + 1; i < REQUESTS; i++)
        if (is_called(keymap->bindings[i].name, request)) {
            keymap->bindings[i].first = code;
            return true;
        }
    return false;
}

bool keymap_clash(const Keymap *keymap, Request *given, Request *other) {
    for (int i = REQUEST_NONE + 1; i < REQUESTS; i++)
        for (int j = REQUEST_NONE + 1; j < REQUESTS; j++) {
            const KeyBinding *a = &keymap->bindings[i], *b = &keymap->bindings[j];
            if (i == j || a->first == bindings[i].first || !(a->where & b->where) ||
                !has_key(b, a->first))
                continue;
            *given = (Request)i;
            *other = (Request)j;
            return true;
        }
    return false;
}

void keymap_name(const Keymap *keymap, Request request, char *text, size_t size) {
    const char *name = keymap->bindings[request].name;
    size_t used = 0;
    for (; name[used] && used + 1 < size; used++)
        text[used] = (char)tolower((unsigned char)name[used]);
    text[used] = 0;
}

void key_describe(int key, char *text, size_t size) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].key == key) {
            snprintf(text, size, "%s", names[i].name);
            return;
        }
    if (key > 0 && key < ' ') {
        snprintf(text, size, "^%c", key + '@');
        return;
    }
    char encoded[5] = "";
    encoded[rune_encode((uint32_t)key, encoded)] = 0;
    snprintf(text, size, "%s", encoded);
}

int key_parse(const char *text) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].name, text) == 0)
            return names[i].key;
    if (text[0] == '^' && text[1] >= '@' && text[1] <= '_' && !text[2])
        return KEY_CODE_CONTROL(text[1]);
    const char *end = text;
    int rune = (int)rune_next(&end);
    return rune > ' ' && !*end ? rune : KEY_CODE_NONE;
}
