// How the terms of a product are added up, beside sums in double that are rounded once.
#include "number/sums.h"

#include <stdlib.h>

#include "number/format.h"
#include "tests/test.h"

static double once(double x) {
    return format_decode(FORMAT_FP16, format_encode(FORMAT_FP16, x, OVERFLOW_TO_SPECIAL));
}

// By way of fp32, to the nearest, it would become a tie, and go to the even one.
static void sums_in_fp16_are_rounded_once(void) {
    const double up = ldexp(1, -10);
    NumberSum sum = {.how = SUMS_FP16, .total = 1 + up};
    number_sum_add(&sum, (1 + up) * ldexp(1, -5) * ((1 - up) * ldexp(1, -6)));
    CHECK(number_sum_end(&sum) == 1 + up);
    srand(7);
    for (int i = 0; i < 200000; i++) {
        const double near_tie = 1 + up * (rand() % 1024) + up / 2;
        const double total = ldexp(near_tie, rand() % 30 - 14) * (rand() % 2 ? 1 : -1);
        const double term = ldexp(rand() % 3 - 1, ilogb(total) - 20 - rand() % 30);
        NumberSum next = {.how = SUMS_FP16, .total = total};
        number_sum_add(&next, term);
        CHECK_MESSAGE(number_sum_end(&next) == once(total + term), "%a + %a is %a", total, term,
                      number_sum_end(&next));
    }
}

static void sums_in_fp16_overflow_and_keep_nan(void) {
    const double terms[] = {65504, 65519.99, 65520, 1e300, (double)INFINITY, -1e39};
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) {
        NumberSum sum = {.how = SUMS_FP16};
        number_sum_add(&sum, terms[i]);
        CHECK(number_sum_end(&sum) == once(terms[i]));
    }
    NumberSum sum = {.how = SUMS_FP16};
    number_sum_add(&sum, (double)NAN);
    CHECK(isnan(number_sum_end(&sum)));
}

int main(void) {
    RUN_TEST(sums_in_fp16_are_rounded_once);
    RUN_TEST(sums_in_fp16_overflow_and_keep_nan);
    return test_end();
}
