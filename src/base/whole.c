#include "base/whole.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct Decimal { // digits, with the point behind `whole` of them
    bool is_negative;
    const char *before, *after; // the digits on both sides of the point that was typed
    size_t before_count, after_count;
    long whole; // it lies behind so many of them; beyond their ends there are zeros
} Decimal;

static const char *take_digits(const char *text, const char **digits, size_t *count) {
    *digits = text;
    *count = strspn(text, "0123456789");
    return text + *count;
}

// 60000, -1, 6e4, 1.5E+3.
static bool read_decimal(const char *text, Decimal *decimal) {
    const long most = 1000000; // of an exponent: more changes nothing
    long exponent = 0;
    *decimal = (Decimal){.is_negative = *text == '-', .after = ""};
    text += *text == '-' || *text == '+';
    text = take_digits(text, &decimal->before, &decimal->before_count);
    if (*text == '.')
        text = take_digits(text + 1, &decimal->after, &decimal->after_count);
    if (decimal->before_count + decimal->after_count == 0)
        return false;
    if (*text == 'e' || *text == 'E') {
        const char *digits = text + 1 + (text[1] == '-' || text[1] == '+');
        char *end;
        if (!isdigit((unsigned char)*digits))
            return false;
        exponent = strtol(text + 1, &end, 10);
        text = end;
    }
    exponent = exponent > most ? most : exponent < -most ? -most : exponent;
    decimal->whole = (long)decimal->before_count + exponent;
    return *text == 0;
}

static unsigned digit_at(const Decimal *decimal, long at) {
    size_t i = (size_t)at, before = decimal->before_count;
    if (i < before)
        return (unsigned)(decimal->before[i] - '0');
    return i - before < decimal->after_count ? (unsigned)(decimal->after[i - before] - '0') : 0;
}

// UINT64_MAX stands for all that is larger. False: something is left behind the point.
static bool read_value(const Decimal *decimal, uint64_t *value) {
    long count = (long)(decimal->before_count + decimal->after_count);
    *value = 0;
    for (long i = 0; i < decimal->whole && (i < count || *value > 0) && *value < UINT64_MAX; i++) {
        unsigned digit = digit_at(decimal, i);
        *value = *value > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *value * 10 + digit;
    }
    for (long i = decimal->whole > 0 ? decimal->whole : 0; i < count; i++)
        if (digit_at(decimal, i) != 0)
            return false;
    return true;
}

bool whole_parse(const char *text, int64_t least, int64_t most, int64_t *number, Error *error) {
    Decimal decimal;
    uint64_t value;
    if (!read_decimal(text, &decimal) || !read_value(&decimal, &value))
        return error_fail(error, ERROR_USAGE, "a whole number is wanted");
    const uint64_t furthest = (uint64_t)INT64_MAX + decimal.is_negative;
    bool is_there = value <= furthest;
    int64_t parsed = (int64_t)(decimal.is_negative ? 0 - value : value);
    if (!decimal.is_negative && (!is_there || parsed > most))
        return error_fail(error, ERROR_USAGE, "too large: up to %" PRId64 " is possible", most);
    if (!is_there || parsed < least || parsed > most)
        return error_fail(error, ERROR_USAGE, "from %" PRId64 " to %" PRId64 " is possible", least,
                          most);
    *number = parsed;
    return true;
}
