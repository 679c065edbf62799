// tests/test.h: what a test program needs, and no more.
//
// A test program is a main that calls TEST(name) { ... } blocks through test_run and ends with
// `return test_end();`. It prints one line a test: "ok NAME", "not ok NAME: why" or
// "skip NAME: why"; tests/run.sh adds the lines of all programs up.
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int test_failures;
static char test_why[2048]; // the first failure of the current test
static char test_skip[256];

#define CHECK_(condition, ...)                                                              \
    do {                                                                                    \
        if (!(condition) && !test_why[0]) {                                                 \
            int used_ = snprintf(test_why, sizeof test_why, "%s:%d: ", __FILE__, __LINE__); \
            snprintf(test_why + used_, sizeof test_why - (size_t)used_, __VA_ARGS__);       \
        }                                                                                   \
    } while (0)
#define CHECK(condition)              CHECK_(condition, "%s", #condition)
#define CHECK_MESSAGE(condition, ...) CHECK_(condition, __VA_ARGS__)
#define CHECK_INT(actual, expected)                                                            \
    CHECK_((long long)(actual) == (long long)(expected), "%s is %lld, expected %lld", #actual, \
           (long long)(actual), (long long)(expected))
#define CHECK_NEAR(actual, expected, tolerance)                                \
    CHECK_(fabs((double)(actual) - (double)(expected)) <= (double)(tolerance), \
           "%s is %.9g, expected %.9g", #actual, (double)(actual), (double)(expected))
#define CHECK_TEXT(actual, expected)                                                        \
    CHECK_(strcmp(actual, expected) == 0, "%s is \"%s\", expected \"%s\"", #actual, actual, \
           expected)
#define CHECK_CONTAINS(actual, part) \
    CHECK_(strstr(actual, part) != NULL, "%s is \"%s\", which lacks \"%s\"", #actual, actual, part)
#define SKIP(...) snprintf(test_skip, sizeof test_skip, __VA_ARGS__)

// What every limit of time is multiplied by: 1, or MPBENCH_TEST_PATIENCE where all takes longer,
// as under sanitizers.
static inline double test_patience(void) {
    const char *text = getenv("MPBENCH_TEST_PATIENCE");
    double patience = text ? atof(text) : 1;
    return patience > 1 ? patience : 1;
}

// Whether there is time to try more: MPBENCH_SOAK is set.
static inline bool test_soaks(void) {
    return getenv("MPBENCH_SOAK") != NULL;
}

static inline void test_run(const char *name, void (*body)(void)) {
    test_why[0] = test_skip[0] = 0;
    body();
    if (test_why[0]) {
        printf("not ok %s: %s\n", name, test_why);
        test_failures++;
    } else if (test_skip[0]) {
        printf("skip %s: %s\n", name, test_skip);
    } else {
        printf("ok %s\n", name);
    }
    fflush(stdout);
}

#define RUN_TEST(function) test_run(#function, function)

static inline int test_end(void) {
    return test_failures ? 1 : 0;
}
