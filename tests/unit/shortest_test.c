// Numbers of fp32 in as few digits as they need.
#include "base/shortest.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "tests/test.h"

static void what_was_given_is_what_is_shown(void) {
    static const char *const given[] = {"1",     "65536", "0.1",  "1e+12", "16777216", "300000000",
                                        "3e+09", "1e-08", "-2.5", "0",     "1e+38",    "0.333"};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        float held = strtof(given[i], NULL);
        CHECK_TEXT(shortest_of_float((double)held).text, given[i]);
    }
}

static void every_text_reads_back_as_the_same_number(void) {
    for (float value = FLT_MIN; value < FLT_MAX / 2; value *= 1.7182818f) {
        Shortest shown = shortest_of_float((double)value);
        CHECK_MESSAGE(strtof(shown.text, NULL) == value, "%a is shown as %s", (double)value,
                      shown.text);
    }
}

static void powers_of_two_are_shown_whole(void) {
    CHECK_TEXT(shortest_of_float(0x1p27).text, "134217728");
    CHECK_TEXT(shortest_of_float(0x1p30).text, "1073741824");
    CHECK_TEXT(shortest_of_float(0x1p127).text, "1.7014118e+38");
}

int main(void) {
    RUN_TEST(what_was_given_is_what_is_shown);
    RUN_TEST(every_text_reads_back_as_the_same_number);
    RUN_TEST(powers_of_two_are_shown_whole);
    return test_end();
}
