// Expressions computed in a format, and numbers taken apart for `mpbench formats`.
#include "number/describe.h"
#include "number/expression.h"

#include <locale.h>

#include "tests/test.h"

static double evaluate(const char *text, Format format) {
    double value = -12345;
    Error error = {0};
    bool done = expression_evaluate(text, format, OVERFLOW_SATURATES, &value, NULL, &error);
    CHECK_MESSAGE(done, "%s: %s", text, error.text);
    return value;
}

static void arithmetic_in_double(void) {
    CHECK(evaluate("1e-4*1e-4", FORMAT_FP64) == 1e-4 * 1e-4);
    CHECK(evaluate("2^-25", FORMAT_FP64) == 0x1p-25);
    CHECK(evaluate(" ( 1 + 1/3 ) * 1e4 ", FORMAT_FP64) == (1 + 1.0 / 3) * 1e4);
    CHECK(evaluate("-2^2", FORMAT_FP64) == -4);
    CHECK(evaluate("2^3^2", FORMAT_FP64) == 512);
    CHECK(evaluate("10-4-3", FORMAT_FP64) == 3);
    CHECK(evaluate("16/4/2", FORMAT_FP64) == 2);
    CHECK(evaluate("2+3*4", FORMAT_FP64) == 14);
    CHECK(evaluate("2*-3--1", FORMAT_FP64) == -5);
    CHECK(evaluate("+.5", FORMAT_FP64) == 0.5);
    CHECK(evaluate("0x1.8p3", FORMAT_FP64) == 12);
    CHECK(evaluate("0xff", FORMAT_FP64) == 255);
    CHECK(isinf(evaluate("inf", FORMAT_FP64)));
    CHECK(evaluate("-infinity", FORMAT_FP64) < 0);
    CHECK(isnan(evaluate("nan", FORMAT_FP64)));
    CHECK(isnan(evaluate("inf-inf", FORMAT_FP64)));
    CHECK(signbit(evaluate("-0", FORMAT_FP64)));
}

static void every_operation_is_rounded(void) {
    CHECK(evaluate("1e-4*1e-4", FORMAT_FP16) == 0);
    CHECK(evaluate("0.0001*0.0001", FORMAT_FP16) == 0);
    CHECK(evaluate("0.0001*0.0001", FORMAT_BF16) != 0);
    CHECK(evaluate("0.1", FORMAT_FP32) == (double)0.1f);
    CHECK(evaluate("2^-25", FORMAT_FP16) == 0);
    CHECK(evaluate("2^-24", FORMAT_FP16) == 0x1p-24);
    CHECK(evaluate("2^-24", FORMAT_E8M0) == 0x1p-24); // which has no -24
    CHECK(evaluate("2^24", FORMAT_E8M0) == 0x1p24);
    // 2048 + 1 is lost each time; added up first it is not.
    CHECK(evaluate("2048+1+1", FORMAT_FP16) == 2048);
    CHECK(evaluate("2048+(1+1)", FORMAT_FP16) == 2050);
    CHECK(evaluate("2049-2048", FORMAT_FP16) == 0); // the literal is rounded already
    CHECK(isinf(evaluate("300*300", FORMAT_FP16)));
    CHECK(isinf(evaluate("300*300/300", FORMAT_FP16)));
    CHECK(evaluate("300*300/300", FORMAT_FP32) == 300);
    CHECK(evaluate("400+400", FORMAT_E4M3) == 448);
    CHECK(evaluate("1/3", FORMAT_BF16) == format_round(FORMAT_BF16, 1.0 / 3, OVERFLOW_SATURATES));
    CHECK(evaluate("100+100", FORMAT_INT8) == 127);
    double value;
    CHECK(expression_evaluate("400+400", FORMAT_E4M3, OVERFLOW_TO_SPECIAL, &value, NULL, NULL));
    CHECK(isnan(value));
}

static void check_error(const char *text, const char *part) {
    double value;
    Error error = {0};
    bool done = expression_evaluate(text, FORMAT_FP32, OVERFLOW_SATURATES, &value, NULL, &error);
    CHECK_MESSAGE(!done, "%s was accepted", text);
    CHECK_INT(error.code, ERROR_USAGE);
    CHECK_CONTAINS(error.text, part);
}

static void errors_name_the_column(void) {
    check_error("", "column 1: expected a number");
    check_error("1+", "column 3: expected a number, 'inf', 'nan' or '(', found the end");
    check_error("1 + * 2", "column 5: expected a number, 'inf', 'nan' or '(', found '*'");
    check_error("(1+2", "column 5: expected an operator or ')', found the end");
    check_error("1 2", "column 3: expected an operator, found '2'");
    check_error("1e", "column 2: expected an operator, found 'e'");
    check_error("0x", "column 2");
    check_error("2^", "column 3");
    check_error("infx", "column 1");
    check_error("1\x1b[2J", "found byte 0x1B");
    check_error("1,5", "column 2");
}

static void nesting_is_limited(void) {
    static char text[200001];
    const char openers[] = {'(', '-'};
    for (int i = 0; i < 2; i++) {
        memset(text, openers[i], sizeof text - 1);
        check_error(text, "nested deeper than");
    }
    for (size_t i = 0; i + 1 < sizeof text; i += 2)
        memcpy(text + i, "2^", 2);
    check_error(text, "nested deeper than");
    // What is long but flat is not nested.
    for (size_t i = 0; i + 1 < sizeof text; i += 2)
        memcpy(text + i, "1+", 2);
    text[2001] = 0;
    CHECK(evaluate(text, FORMAT_FP64) == 1001);
    CHECK(evaluate("((((((((((((((((((((1))))))))))))))))))))", FORMAT_FP64) == 1);
}

static void the_locale_does_not_matter(void) {
    // Few machines have a locale with a comma installed; where one is, it must change nothing.
    const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "C.UTF-8", "C"};
    size_t i = 0;
    while (i + 1 < sizeof names / sizeof names[0] && !setlocale(LC_ALL, names[i]))
        i++;
    CHECK(evaluate("1.5*2", FORMAT_FP64) == 3);
    setlocale(LC_ALL, "C");
}

static void descriptions_show_what_rounding_did(void) {
    static const struct {
        Format format;
        double asked;
        Overflow overflow;
        Rounding rounding;
        double value;
        const char *hex;
    } rows[] = {
        {FORMAT_FP16, 1.5, 0, ROUNDING_EXACT, 1.5, "0x3E00"},
        {FORMAT_FP16, 0.1, 0, ROUNDING_ROUNDED, 0x1.998p-4, "0x2E66"},
        {FORMAT_FP16, 1e-8, 0, ROUNDING_FLUSHED, 0, "0x0000"},
        {FORMAT_FP16, 65519, 0, ROUNDING_ROUNDED, 65504, "0x7BFF"},
        {FORMAT_FP16, 1e5, 0, ROUNDING_OVERFLOWED, (double)INFINITY, "0x7C00"},
        {FORMAT_FP16, (double)INFINITY, 0, ROUNDING_EXACT, (double)INFINITY, "0x7C00"},
        {FORMAT_E4M3, 464, 0, ROUNDING_ROUNDED, 448, "0x7E"},
        {FORMAT_E4M3, 1e5, 0, ROUNDING_SATURATED, 448, "0x7E"},
        {FORMAT_E4M3, (double)-INFINITY, 0, ROUNDING_SATURATED, -448, "0xFE"},
        {FORMAT_E5M2, 1e5, OVERFLOW_TO_SPECIAL, ROUNDING_OVERFLOWED, (double)INFINITY, "0x7C"},
        {FORMAT_TF32, 0x1p-127, 0, ROUNDING_FLUSHED, 0, "0x00000"},
        {FORMAT_FP32, 1, 0, ROUNDING_EXACT, 1, "0x3F800000"},
        {FORMAT_INT8, -3, 0, ROUNDING_EXACT, -3, "0xFD"},
        {FORMAT_INT8, 0.25, 0, ROUNDING_FLUSHED, 0, "0x00"},
        {FORMAT_INT8, -128, 0, ROUNDING_SATURATED, -127, "0x81"},
        {FORMAT_INT8, (double)NAN, 0, ROUNDING_LOST, 0, "0x00"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Description got = describe_number(rows[i].format, rows[i].asked, rows[i].overflow);
        CHECK_MESSAGE(got.rounding == rows[i].rounding && got.value == rows[i].value,
                      "%s of %g: %s, %g", format_name(rows[i].format), rows[i].asked,
                      describe_rounding_name(got.rounding), got.value);
        CHECK_TEXT(got.hex, rows[i].hex);
    }
    Description lost = describe_number(FORMAT_E4M3, 464.01, OVERFLOW_TO_SPECIAL);
    CHECK(lost.rounding == ROUNDING_OVERFLOWED && isnan(lost.value));
    Description none = describe_number(FORMAT_BF16, (double)NAN, 0);
    CHECK(none.rounding == ROUNDING_EXACT && !none.has_above && !none.has_below);
}

static void descriptions_split_the_bits(void) {
    Description number = describe_number(FORMAT_FP16, -6, 0);
    CHECK_TEXT(number.sign, "1");
    CHECK_TEXT(number.exponent, "10001");
    CHECK_TEXT(number.mantissa, "1000000000");
    CHECK(number.error == 0 && !number.is_subnormal);
    number = describe_number(FORMAT_FP16, 0x1.8p-24, 0);
    CHECK(number.is_subnormal && number.error == 0x1p-25);
    CHECK_TEXT(number.exponent, "00000");
    number = describe_number(FORMAT_TF32, 1, 0);
    CHECK_INT(strlen(number.mantissa), 10);
    number = describe_number(FORMAT_INT32, -1, 0);
    CHECK_TEXT(number.sign, "");
    CHECK_INT(strlen(number.mantissa), 32);
}

// Walking from neighbour to neighbour meets every number of the format, in order, and no other.
static void neighbours_are_the_next_patterns(void) {
    static const struct {
        Format format;
        int finite; // how many values from the lowest to the largest, 0 counted once
    } rows[] = {{FORMAT_E4M3, 253},   {FORMAT_E5M2, 247}, {FORMAT_FP16, 63487},
                {FORMAT_BF16, 65279}, {FORMAT_INT8, 255}, {FORMAT_UINT8, 256}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Format format = rows[i].format;
        const FormatInfo *info = &format_table[format];
        int count = 1;
        Description at = describe_number(format, info->lowest, 0);
        CHECK(at.has_below == info->has_infinity && (!at.has_below || isinf(at.below)));
        while (at.has_above && isfinite(at.above) && count < 0x10000) {
            Description next = describe_number(format, at.above, 0);
            CHECK_MESSAGE(next.rounding == ROUNDING_EXACT && next.value > at.value &&
                              next.has_below && next.below == at.value,
                          "%s: above %a", format_name(format), at.value);
            at = next;
            count++;
        }
        CHECK(at.value == info->largest && at.has_above == info->has_infinity);
        CHECK_INT(count, rows[i].finite);
    }
    Description zero = describe_number(FORMAT_TF32, 0, 0);
    CHECK(zero.above == 0x1p-126 && zero.below == -0x1p-126);
    CHECK(describe_number(FORMAT_TF32, 0x1p-126, 0).below == 0);
    CHECK(describe_number(FORMAT_FP16, (double)INFINITY, 0).below == 65504);
    CHECK(describe_number(FORMAT_FP16, 1, 0).step == 0x1p-10);
}

// The scales of blocks are powers of two, with neither sign nor 0.
static void a_scale_has_no_zero_and_no_sign(void) {
    const Description least = describe_number(FORMAT_E8M0, 0x1p-127, OVERFLOW_SATURATES);
    CHECK(!least.has_below && least.has_above && least.above == 0x1p-126);
    const Description negative = describe_number(FORMAT_E8M0, -3, OVERFLOW_SATURATES);
    CHECK(isnan(negative.value) && negative.rounding == ROUNDING_LOST);
}

static void what_a_double_cannot_hold_is_not_exact(void) {
    static const struct {
        const char *text, *event;
    } cases[] = {{"1e400", "overflowed"},
                 {"-1e300*1e300", "overflowed"},
                 {"inf", "exact"},
                 {"1/0", "exact"},
                 {"65504", "exact"},
                 {"65504*2", "overflowed"},
                 {"1e400/1", "overflowed"},
                 {"1e-400", "flushed to zero"},
                 {"-1e-200*1e-200", "flushed to zero"},
                 {"2^-1100", "flushed to zero"},
                 {"1e-200/1e200", "flushed to zero"},
                 {"1/1e400", "flushed to zero"},
                 {"0", "exact"},
                 {"0e-400", "exact"},
                 {"1-1", "exact"},
                 {"0*1e-300", "exact"},
                 {"0^2", "exact"},
                 {"0^-1", "exact"},
                 {"1/inf", "exact"},
                 {"1e-200*1e-200+1", "exact"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ExpressionResult result;
        Error error = {0};
        CHECK(describe_expression(cases[i].text, FORMAT_FP16, &result, &error));
        CHECK_MESSAGE(strcmp(result.event, cases[i].event) == 0, "%s: %s", cases[i].text,
                      result.event);
    }
}

int main(void) {
    RUN_TEST(arithmetic_in_double);
    RUN_TEST(every_operation_is_rounded);
    RUN_TEST(errors_name_the_column);
    RUN_TEST(nesting_is_limited);
    RUN_TEST(the_locale_does_not_matter);
    RUN_TEST(descriptions_show_what_rounding_did);
    RUN_TEST(descriptions_split_the_bits);
    RUN_TEST(neighbours_are_the_next_patterns);
    RUN_TEST(a_scale_has_no_zero_and_no_sign);
    RUN_TEST(what_a_double_cannot_hold_is_not_exact);
    return test_end();
}
