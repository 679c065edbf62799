// base/json.h: writes JSON, one value after another, to a stream. Not-a-number and the infinities
// become the strings "nan", "inf" and "-inf"; text is checked to be UTF-8 and
// escaped, with all that cannot be seen, so that no name moves a terminal. The caller
// keeps begin and end in balance; nothing here allocates or fails (the stream remembers errors).
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct JsonWriter {
    FILE *stream;
    int depth;
    bool needs_comma[32];
    bool after_key;
} JsonWriter;

void json_begin_object(JsonWriter *json);
void json_end_object(JsonWriter *json);
void json_begin_array(JsonWriter *json);
void json_end_array(JsonWriter *json);
void json_key(JsonWriter *json, const char *key);
void json_text(JsonWriter *json, const char *text); // NULL: null
void json_number(JsonWriter *json, double value);   // shortest form that reads back the same
void json_integer(JsonWriter *json, int64_t value);
void json_boolean(JsonWriter *json, bool value);
void json_null(JsonWriter *json);

// A key and its value.
void json_put_text(JsonWriter *json, const char *key, const char *text);
void json_put_number(JsonWriter *json, const char *key, double value);
void json_put_known(JsonWriter *json, const char *key, double value, bool is_known); // else null
void json_put_reading(JsonWriter *json, const char *key, double value); // NaN is unknown
void json_put_integer(JsonWriter *json, const char *key, int64_t value);
void json_put_boolean(JsonWriter *json, const char *key, bool value);
void json_put_null(JsonWriter *json, const char *key);
