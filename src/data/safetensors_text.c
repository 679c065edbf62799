#include "data/safetensors_text.h"

#include <string.h>

#include "base/utf8.h"
#include "data/file.h"

bool safe_text_fail(const SafeText *text, const char *what) {
    return error_fail(text->error, ERROR_FAILED,
                      FILE_PATH ": header, byte %zu: %s; the file is damaged or no safetensors",
                      text->shown, text->at, what);
}

static void skip_space(SafeText *text) {
    while (text->at < text->size && text->bytes[text->at] &&
           strchr(" \t\r\n", text->bytes[text->at]))
        text->at++;
}

bool safe_text_accept(SafeText *text, char wanted) {
    skip_space(text);
    if (text->at == text->size || text->bytes[text->at] != wanted)
        return false;
    text->at++;
    return true;
}

bool safe_text_expect(SafeText *text, char wanted) {
    char what[24] = "'?' expected";
    what[1] = wanted;
    return safe_text_accept(text, wanted) || safe_text_fail(text, what);
}

static bool hex_digits(SafeText *text, uint32_t *value) {
    *value = 0;
    if (text->size - text->at < 4)
        return safe_text_fail(text, "the text ends inside an escape");
    for (int i = 0; i < 4; i++) {
        char c = text->bytes[text->at];
        uint32_t digit;
        if (c >= '0' && c <= '9')
            digit = (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (uint32_t)(c - 'a') + 10;
        else if (c >= 'A' && c <= 'F')
            digit = (uint32_t)(c - 'A') + 10;
        else
            return safe_text_fail(text, "a hexadecimal digit expected in an escape");
        *value = *value << 4 | digit;
        text->at++;
    }
    return true;
}

static char *put_point(char *out, uint32_t point) {
    if (point < 0x80) {
        *out++ = (char)point;
    } else if (point < 0x800) {
        *out++ = (char)(0xC0 | point >> 6);
        *out++ = (char)(0x80 | (point & 0x3F));
    } else if (point < 0x10000) {
        *out++ = (char)(0xE0 | point >> 12);
        *out++ = (char)(0x80 | (point >> 6 & 0x3F));
        *out++ = (char)(0x80 | (point & 0x3F));
    } else {
        *out++ = (char)(0xF0 | point >> 18);
        *out++ = (char)(0x80 | (point >> 12 & 0x3F));
        *out++ = (char)(0x80 | (point >> 6 & 0x3F));
        *out++ = (char)(0x80 | (point & 0x3F));
    }
    return out;
}

// After "\u": one code point, from a pair of surrogates where it takes two.
static bool unicode_escape(SafeText *text, char **out) {
    uint32_t point, low;
    if (!hex_digits(text, &point))
        return false;
    if (point >= 0xD800 && point < 0xDC00) {
        bool paired = text->size - text->at >= 6 && text->bytes[text->at] == '\\' &&
                      text->bytes[text->at + 1] == 'u';
        if (!paired)
            return safe_text_fail(text, "half of a surrogate pair");
        text->at += 2;
        if (!hex_digits(text, &low))
            return false;
        if (low < 0xDC00 || low >= 0xE000)
            return safe_text_fail(text, "half of a surrogate pair");
        point = 0x10000 + ((point - 0xD800) << 10 | (low - 0xDC00));
    } else if (point >= 0xDC00 && point < 0xE000) {
        return safe_text_fail(text, "half of a surrogate pair");
    }
    if (point == 0)
        return safe_text_fail(text, "a name with the character 0");
    *out = put_point(*out, point);
    return true;
}

static bool simple_escape(SafeText *text, char **out) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (text->at == text->size)
        return safe_text_fail(text, "the text ends inside an escape");
    char c = text->bytes[text->at];
    const char *found = c ? strchr(from, c) : NULL;
    if (c == 'u') {
        text->at++;
        return unicode_escape(text, out);
    }
    if (!found)
        return safe_text_fail(text, "an escape that JSON does not have");
    text->at++;
    *(*out)++ = to[found - from];
    return true;
}

bool safe_text_string(SafeText *text, const char **string) {
    if (!safe_text_accept(text, '"'))
        return safe_text_fail(text, "a string expected");
    char *out = text->bytes + text->at;
    *string = out;
    while (text->at < text->size) {
        unsigned char c = (unsigned char)text->bytes[text->at];
        if (c == '"') {
            text->at++;
            *out = 0;
            return true;
        }
        if (c < 0x20)
            return safe_text_fail(text, "a control character inside a string");
        if (c == '\\') {
            text->at++;
            if (!simple_escape(text, &out))
                return false;
            continue;
        }
        uint32_t point;
        const unsigned char *bytes = (const unsigned char *)text->bytes + text->at;
        size_t length = utf8_decode(bytes, text->size - text->at, &point);
        if (length == 0)
            return safe_text_fail(text, "a string that is not UTF-8");
        memmove(out, bytes, length);
        out += length;
        text->at += length;
    }
    return safe_text_fail(text, "the text ends inside a string");
}

static bool parse_whole(SafeText *text, int64_t *number) {
    skip_space(text);
    size_t start = text->at;
    int64_t value = 0;
    while (text->at < text->size) {
        char c = text->bytes[text->at];
        if (c < '0' || c > '9')
            break;
        if (__builtin_mul_overflow(value, (int64_t)10, &value) ||
            __builtin_add_overflow(value, (int64_t)(c - '0'), &value))
            return safe_text_fail(text, "a number past 2^63");
        text->at++;
    }
    size_t digits = text->at - start;
    if (digits == 0)
        return safe_text_fail(text, "a whole number of at least 0 expected");
    if (digits > 1 && text->bytes[start] == '0')
        return safe_text_fail(text, "a number that begins with 0");
    *number = value;
    return true;
}

bool safe_text_numbers(SafeText *text, int64_t *numbers, int most, int *count) {
    *count = 0;
    if (!safe_text_expect(text, '['))
        return false;
    if (safe_text_accept(text, ']'))
        return true;
    do {
        if (*count == most)
            return safe_text_fail(text, "a longer list of numbers than possible");
        if (!parse_whole(text, &numbers[(*count)++]))
            return false;
    } while (safe_text_accept(text, ','));
    return safe_text_expect(text, ']');
}

bool safe_text_is_over(SafeText *text) {
    skip_space(text);
    return text->at == text->size;
}
