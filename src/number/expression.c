#include "number/expression.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// The text comes from outside: a limit on its nesting keeps the recursion off the end of the stack.
enum { DEEPEST_NESTING = 100 };

typedef struct Parser {
    const char *text; // from the start, for the column
    const char *at;
    Format format;
    Overflow overflow;
    int nesting;
    bool left_range; // of double, at some step
    locale_t locale; // "C": a number has a point whatever the user's language writes
    Error *error;
} Parser;

static void skip_blanks(Parser *parser) {
    while (*parser->at == ' ' || *parser->at == '\t')
        parser->at++;
}

// Takes the character if it comes next.
static bool accept(Parser *parser, char wanted) {
    skip_blanks(parser);
    if (*parser->at != wanted)
        return false;
    parser->at++;
    return true;
}

static bool fail_here(Parser *parser, const char *expected) {
    skip_blanks(parser);
    int column = (int)(parser->at - parser->text) + 1;
    unsigned char found = (unsigned char)*parser->at;
    if (found == 0)
        return error_fail(parser->error, ERROR_USAGE, "column %d: expected %s, found the end",
                          column, expected);
    if (found < 0x20 || found > 0x7E)
        return error_fail(parser->error, ERROR_USAGE, "column %d: expected %s, found byte 0x%02X",
                          column, expected, found);
    return error_fail(parser->error, ERROR_USAGE, "column %d: expected %s, found '%c'", column,
                      expected, found);
}

static double rounded(const Parser *parser, double value) {
    return format_round(parser->format, value, parser->overflow);
}

// The result of two numbers. `is_limit`: where it is 0 or infinite, it is so by its nature.
static double result_of(Parser *parser, double left, double right, double result, bool is_limit) {
    bool is_finite = isfinite(left) && isfinite(right);
    parser->left_range |= is_finite && !is_limit && (result == 0 || isinf(result));
    return rounded(parser, result);
}

static bool parse_sum(Parser *parser, double *value);
static bool parse_signed(Parser *parser, double *value);

static bool enter(Parser *parser) {
    if (++parser->nesting <= DEEPEST_NESTING)
        return true;
    return error_fail(parser->error, ERROR_USAGE,
                      "column %d: nested deeper than %d: write it with fewer parentheses and signs",
                      (int)(parser->at - parser->text) + 1, DEEPEST_NESTING);
}

static bool parse_word(Parser *parser, double *value) {
    static const struct {
        const char *word;
        double value;
    } words[] = {{"inf", (double)INFINITY}, {"infinity", (double)INFINITY}, {"nan", (double)NAN}};
    size_t length = 0;
    while (isalnum((unsigned char)parser->at[length]))
        length++;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i].word) == length && strncmp(parser->at, words[i].word, length) == 0) {
            parser->at += length;
            *value = rounded(parser, words[i].value);
            return true;
        }
    return fail_here(parser, "a number, 'inf', 'nan' or '('");
}

static bool parse_operand(Parser *parser, double *value) {
    if (accept(parser, '(')) {
        if (!enter(parser) || !parse_sum(parser, value))
            return false;
        parser->nesting--;
        return accept(parser, ')') || fail_here(parser, "an operator or ')'");
    }
    bool is_digit = isdigit((unsigned char)parser->at[0]) ||
                    (parser->at[0] == '.' && isdigit((unsigned char)parser->at[1]));
    if (!is_digit)
        return parse_word(parser, value);
    char *end;
    locale_t before = uselocale(parser->locale);
    errno = 0;
    double literal = strtod(parser->at, &end);
    parser->left_range |= errno == ERANGE && (literal == 0 || isinf(literal));
    uselocale(before);
    *value = rounded(parser, literal);
    parser->at = end;
    return true;
}

static bool parse_power(Parser *parser, double *value) {
    if (!parse_operand(parser, value))
        return false;
    if (!accept(parser, '^'))
        return true;
    double exponent;
    const Format format = parser->format;
    parser->format = FORMAT_FP64; // it counts factors, and is no number of the format
    const bool is_read = parse_signed(parser, &exponent);
    parser->format = format;
    if (!is_read)
        return false;
    *value = result_of(parser, *value, exponent, pow(*value, exponent), *value == 0);
    return true;
}

static bool parse_signed(Parser *parser, double *value) {
    if (!enter(parser))
        return false;
    bool done;
    if (accept(parser, '-')) {
        done = parse_signed(parser, value);
        if (done)
            *value = rounded(parser, -*value);
    } else if (accept(parser, '+')) {
        done = parse_signed(parser, value);
    } else {
        done = parse_power(parser, value);
    }
    parser->nesting--;
    return done;
}

static bool parse_product(Parser *parser, double *value) {
    if (!parse_signed(parser, value))
        return false;
    for (;;) {
        bool divides = false;
        if (!accept(parser, '*') && !(divides = accept(parser, '/')))
            return true;
        double right;
        if (!parse_signed(parser, &right))
            return false;
        double result = divides ? *value / right : *value * right;
        *value = result_of(parser, *value, right, result, *value == 0 || right == 0);
    }
}

static bool parse_sum(Parser *parser, double *value) {
    if (!parse_product(parser, value))
        return false;
    for (;;) {
        bool subtracts = false;
        if (!accept(parser, '+') && !(subtracts = accept(parser, '-')))
            return true;
        double right;
        if (!parse_product(parser, &right))
            return false;
        double result = subtracts ? *value - right : *value + right;
        *value = result_of(parser, *value, right, result, result == 0);
    }
}

bool expression_evaluate(const char *text, Format format, Overflow overflow, double *value,
                         bool *left_range, Error *error) {
    Parser parser = {.text = text,
                     .at = text,
                     .format = format,
                     .overflow = overflow,
                     .locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0),
                     .error = error};
    if (parser.locale == (locale_t)0)
        return error_fail(error, ERROR_MEMORY, "no memory to read a number");
    bool done = parse_sum(&parser, value);
    if (done && (skip_blanks(&parser), *parser.at))
        done = fail_here(&parser, "an operator");
    freelocale(parser.locale);
    if (left_range)
        *left_range = parser.left_range;
    return done;
}
