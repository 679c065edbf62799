#include "base/lua_code.h"

#include <stdlib.h>
#include <string.h>

typedef struct Reader {
    const char *text;
    size_t at, length;
} Reader;

static bool is_at(const Reader *reader, char c) {
    return reader->at < reader->length && reader->text[reader->at] == c;
}

static bool ends_line(const Reader *reader) {
    return is_at(reader, '\n') || is_at(reader, '\r');
}

static bool is_blank(const Reader *reader) {
    return reader->at < reader->length && strchr(" \t\n\v\f\r", reader->text[reader->at]) &&
           reader->text[reader->at];
}

// Past "[==[ .. ]==]", if that begins here, or to the end of the text if it never ends.
static bool skip_long_bracket(Reader *reader) {
    Reader ahead = *reader;
    size_t level = 0;
    if (!is_at(&ahead, '['))
        return false;
    for (ahead.at++; is_at(&ahead, '='); ahead.at++)
        level++;
    if (!is_at(&ahead, '['))
        return false;
    while (++ahead.at < ahead.length) {
        if (!is_at(&ahead, ']'))
            continue;
        Reader end = ahead;
        size_t signs = 0;
        for (end.at++; is_at(&end, '='); end.at++)
            signs++;
        if (signs == level && is_at(&end, ']')) {
            reader->at = end.at + 1;
            return true;
        }
    }
    reader->at = reader->length;
    return true;
}

static void skip_quoted(Reader *reader) {
    const char quote = reader->text[reader->at++];
    while (reader->at < reader->length && !is_at(reader, quote))
        reader->at += is_at(reader, '\\') ? 2 : 1;
    reader->at = reader->at < reader->length ? reader->at + 1 : reader->length;
}

static bool skip_comment(Reader *reader) {
    if (!is_at(reader, '-') || reader->at + 1 == reader->length ||
        reader->text[reader->at + 1] != '-')
        return false;
    reader->at += 2;
    if (!skip_long_bracket(reader))
        while (reader->at < reader->length && !ends_line(reader))
            reader->at++;
    return true;
}

static void skip_token(Reader *reader) {
    if (is_at(reader, '"') || is_at(reader, '\''))
        skip_quoted(reader);
    else if (!skip_long_bracket(reader))
        reader->at++;
}

size_t lua_code(const char *text, size_t length, char *code) {
    Reader reader = {text, 0, length};
    size_t used = 0;
    bool is_apart = false;
    while (reader.at < length) {
        if (is_blank(&reader)) {
            reader.at++;
            is_apart = true;
            continue;
        }
        if (skip_comment(&reader)) {
            is_apart = true;
            continue;
        }
        const size_t begin = reader.at;
        if (is_apart && used > 0)
            code[used++] = ' ';
        is_apart = false;
        skip_token(&reader);
        memcpy(code + used, text + begin, reader.at - begin);
        used += reader.at - begin;
    }
    return used;
}

bool lua_code_hash(const char *text, size_t length, char hex[HASH_HEX_SIZE]) {
    char *code = malloc(length + 1);
    if (!code)
        return false;
    sha256_hex(hex, code, lua_code(text, length, code));
    free(code);
    return true;
}
