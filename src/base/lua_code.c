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

// ---- what it requires ---------------------------------------------------------------------------

static void skip_blanks(Reader *reader) {
    while (reader->at < reader->length && (is_blank(reader) || skip_comment(reader)))
        reader->at += is_blank(reader);
}

static bool is_of_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (unsigned char)c >= 0x80;
}

static size_t skip_name(Reader *reader) {
    const size_t begin = reader->at;
    while (reader->at < reader->length && is_of_name(reader->text[reader->at]))
        reader->at++;
    return reader->at - begin;
}

// Reads a text as it stands, of no escapes and on one line.
static bool read_text(Reader *reader, char name[LUA_REQUIRED_SIZE]) {
    const bool is_quoted = is_at(reader, '"') || is_at(reader, '\'');
    const char last = is_at(reader, '[') ? ']' : is_quoted ? reader->text[reader->at] : 0;
    const size_t around = is_quoted ? 1 : 2, begin = reader->at + around;
    if (is_quoted)
        skip_quoted(reader);
    else if (!skip_long_bracket(reader))
        return false;
    if (reader->text[reader->at - 1] != last) // it never ends
        return false;
    const size_t end = reader->at - around, length = end > begin ? end - begin : 0;
    if (length == 0 || length >= LUA_REQUIRED_SIZE)
        return false;
    memcpy(name, reader->text + begin, length);
    name[length] = 0;
    return strlen(name) == length && !strpbrk(name, "\\\r\n=[]");
}

// What follows the word.
static bool read_required(Reader *reader, char name[LUA_REQUIRED_SIZE]) {
    skip_blanks(reader);
    if (is_at(reader, '(')) {
        reader->at++;
        skip_blanks(reader);
    }
    return read_text(reader, name);
}

bool lua_code_required(const char *text, size_t length, size_t *at, char name[LUA_REQUIRED_SIZE]) {
    static const char word[] = "require";
    Reader reader = {text, *at, length};
    bool is_field = false; // behind a '.', but not behind the ".." that joins texts, or a ':'
    for (skip_blanks(&reader); reader.at < length; skip_blanks(&reader)) {
        const size_t begin = reader.at, count = skip_name(&reader);
        if (count == 0) {
            const char c = text[begin];
            is_field = (c == '.' || c == ':') && (begin == 0 || text[begin - 1] != c);
            skip_token(&reader);
            continue;
        }
        const bool is_word =
            !is_field && count == sizeof word - 1 && memcmp(text + begin, word, count) == 0;
        is_field = false;
        if (is_word && read_required(&reader, name)) {
            *at = reader.at;
            return true;
        }
    }
    *at = length;
    return false;
}

// ---- the hash -----------------------------------------------------------------------------------

bool lua_code_hash(const char *text, size_t length, char hex[HASH_HEX_SIZE]) {
    char *code = malloc(length + 1);
    if (!code)
        return false;
    sha256_hex(hex, code, lua_code(text, length, code));
    free(code);
    return true;
}
