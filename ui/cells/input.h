// ui/cells/input.h: from the bytes that a terminal sends to keys, clicks and answers.
//
// Bytes come in pieces, cut anywhere and with any pause between them. What a report of the mouse or
// an answer is made of is never read as keys, however it was cut, and keys among it are never lost.
// What begins like a report and goes on as none is keys again. Pure: the caller reads the bytes and
// tells the time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum InputKind {
    INPUT_NONE, // the time was over
    INPUT_KEY,
    INPUT_MOUSE,
    INPUT_RESIZE,
    INPUT_COLORS, // the terminal said what it looks like: draw anew
    INPUT_LOST,   // the terminal is gone: end
} InputKind;

typedef enum MouseAction {
    MOUSE_PRESS,
    MOUSE_DOUBLE, // the second of two
    MOUSE_WHEEL_UP,
    MOUSE_WHEEL_DOWN
} MouseAction;

typedef struct Input {
    InputKind kind;
    int key; // keys.h
    MouseAction action;
    int column, row; // of the mouse
} Input;

enum { INPUT_MOST_KEYS = 48, INPUT_KEY_SIZE = 16, INPUT_BYTES = 1024 };

typedef struct InputReader {
    struct InputSequence {
        char bytes[INPUT_KEY_SIZE];
        int key;
    } keys[INPUT_MOST_KEYS];
    int key_count;
    bool is_asked;       // for its background, and then what it is: the last answer ends it
    bool has_background; // it came
    uint32_t background; // 0xRRGGBB
    unsigned char bytes[INPUT_BYTES];
    size_t used;
    double came;       // when the last of them came, in seconds
    double escaped;    // when an Escape was told that may have been the begin of something; 0: none
    bool is_continued; // the bytes go on with what that Escape began
} InputReader;

// Empty, with the keys that terminals have in common; those of this terminal are added.
void input_init(InputReader *reader);
void input_add_key(InputReader *reader, const char *sequence, int key);
// How many bytes there is room for.
size_t input_room(const InputReader *reader);
void input_feed(InputReader *reader, const void *bytes, size_t count, double now);
// False: there is nothing whole yet, and input_wait says how long to wait for more bytes.
bool input_next(InputReader *reader, double now, Input *input);
// Seconds after which input_next takes what there is for what it is; negative: only bytes help.
double input_wait(const InputReader *reader, double now);
