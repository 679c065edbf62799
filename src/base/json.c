#include "base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sanitize.h"
#include "base/utf8.h"

enum { MOST_DEPTH = sizeof((JsonWriter *)0)->needs_comma / sizeof(bool) };

// What stands before a value: nothing after a key, a comma between values.
static void begin_value(JsonWriter *json) {
    if (json->after_key)
        json->after_key = false;
    else if (json->needs_comma[json->depth])
        putc(',', json->stream);
    json->needs_comma[json->depth] = true;
}

static void open_level(JsonWriter *json, char bracket) {
    begin_value(json);
    assert(json->depth + 1 < MOST_DEPTH);
    json->needs_comma[++json->depth] = false;
    putc(bracket, json->stream);
}

static void close_level(JsonWriter *json, char bracket) {
    assert(json->depth > 0 && !json->after_key);
    json->depth--;
    putc(bracket, json->stream);
}

void json_begin_object(JsonWriter *json) {
    open_level(json, '{');
}

void json_end_object(JsonWriter *json) {
    close_level(json, '}');
}

void json_begin_array(JsonWriter *json) {
    open_level(json, '[');
}

void json_end_array(JsonWriter *json) {
    close_level(json, ']');
}

// Beyond 16 bits a pair of surrogates.
static void write_escape(FILE *stream, uint32_t point) {
    if (point > 0xFFFF) {
        point -= 0x10000;
        fprintf(stream, "\\u%04x", 0xD800 | (unsigned)(point >> 10));
        point = 0xDC00 | (point & 0x3FF);
    }
    fprintf(stream, "\\u%04x", (unsigned)point);
}

static void write_text(FILE *stream, const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    size_t left = strlen(text);
    putc('"', stream);
    while (left > 0) {
        uint32_t point = 0;
        size_t length = utf8_decode(at, left, &point);
        if (length == 0) {
            fputs("\xEF\xBF\xBD", stream); // U+FFFD for each byte that belongs to nothing
            length = 1;
        } else if (point == '"' || point == '\\') {
            fprintf(stream, "\\%c", (int)point);
        } else if (point == '\n' || point == '\t') {
            fputs(point == '\n' ? "\\n" : "\\t", stream);
        } else if (sanitize_is_unseen(point)) { // it may come to a terminal
            write_escape(stream, point);
        } else {
            fwrite(at, 1, length, stream);
        }
        at += length;
        left -= length;
    }
    putc('"', stream);
}

void json_key(JsonWriter *json, const char *key) {
    assert(!json->after_key);
    begin_value(json);
    write_text(json->stream, key);
    putc(':', json->stream);
    json->after_key = true;
}

void json_text(JsonWriter *json, const char *text) {
    if (!text) {
        json_null(json);
        return;
    }
    begin_value(json);
    write_text(json->stream, text);
}

// The C library writes the user's decimal separator, which may be several bytes; JSON has a point.
static void write_with_point(FILE *stream, const char *digits) {
    bool in_separator = false;
    for (; *digits; digits++) {
        bool is_separator = !strchr("0123456789+-e", *digits);
        if (!is_separator)
            putc(*digits, stream);
        else if (!in_separator)
            putc('.', stream);
        in_separator = is_separator;
    }
}

void json_number(JsonWriter *json, double value) {
    const double last_whole = 1e15; // beyond, an exponent is shorter
    begin_value(json);
    if (isnan(value) || isinf(value)) {
        fputs(isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"", json->stream);
        return;
    }
    char digits[40];
    if (value == trunc(value) && fabs(value) < last_whole) {
        fprintf(json->stream, "%.0f", value);
        return;
    }
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    write_with_point(json->stream, digits);
}

void json_integer(JsonWriter *json, int64_t value) {
    begin_value(json);
    fprintf(json->stream, "%" PRId64, value);
}

void json_boolean(JsonWriter *json, bool value) {
    begin_value(json);
    fputs(value ? "true" : "false", json->stream);
}

void json_null(JsonWriter *json) {
    begin_value(json);
    fputs("null", json->stream);
}

void json_put_text(JsonWriter *json, const char *key, const char *text) {
    json_key(json, key);
    json_text(json, text);
}

void json_put_number(JsonWriter *json, const char *key, double value) {
    json_key(json, key);
    json_number(json, value);
}

void json_put_integer(JsonWriter *json, const char *key, int64_t value) {
    json_key(json, key);
    json_integer(json, value);
}

void json_put_boolean(JsonWriter *json, const char *key, bool value) {
    json_key(json, key);
    json_boolean(json, value);
}

void json_put_null(JsonWriter *json, const char *key) {
    json_key(json, key);
    json_null(json);
}

void json_put_known(JsonWriter *json, const char *key, double value, bool is_known) {
    if (is_known)
        json_put_number(json, key, value);
    else
        json_put_null(json, key);
}

void json_put_reading(JsonWriter *json, const char *key, double value) {
    json_put_known(json, key, value, !isnan(value));
}
