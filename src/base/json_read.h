// base/json_read.h: reads JSON that this program wrote in another process: a tree of values.
//
// A JsonTree owns what it holds, texts included; values point into it. Text is taken as UTF-8 as it
// stands, and escapes are undone; it is shown only through the sanitiser. Nested no deeper than
// what base/json.h writes. Any thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef enum JsonKind {
    JSON_NULL,
    JSON_BOOLEAN,
    JSON_NUMBER,
    JSON_TEXT,
    JSON_ARRAY,
    JSON_OBJECT
} JsonKind;

typedef struct JsonValue {
    JsonKind kind;
    const char *key;  // of a member of an object; else NULL
    const char *text; // of a text; else ""
    double number;    // of a number; 1 of true; else 0
    int count;        // of what is in an array or object
    int first, next;  // places in the tree: of the first within, of the next beside; 0: none
} JsonValue;

typedef struct JsonTree {
    JsonValue *values; // [0] is the whole
    int count, room;
    char *texts;
} JsonTree;

// One value and nothing behind it but blanks. False: it is something else, or there is no memory;
// the tree is empty then.
bool json_read(const char *text, JsonTree *tree, Error *error) MUST_CHECK;
void json_tree_clear(JsonTree *tree); // {0} is fine

// What is in an array or object, one after another: NULL behind the last, and where it is neither.
const JsonValue *json_first(const JsonTree *tree, const JsonValue *value);
const JsonValue *json_next(const JsonTree *tree, const JsonValue *value);
// The member of that name; NULL: there is none. `value` may be NULL.
const JsonValue *json_member(const JsonTree *tree, const JsonValue *value, const char *key);
// Of the member of that name: its text, "" where it is none; its number, `otherwise` where it is
// none.
const char *json_member_text(const JsonTree *tree, const JsonValue *value, const char *key);
double json_member_number(const JsonTree *tree, const JsonValue *value, const char *key,
                          double otherwise);
