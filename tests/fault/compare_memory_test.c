// Comparing runs when the Nth allocation fails, N = 1, 2, ... until none does: a clean error, and
// nothing is left behind.
#include "tests/test.h"
#include "tests/unit/compare_fixture.h"

#if defined(__SANITIZE_ADDRESS__) || !defined(__GLIBC__)
enum { CAN_FAIL = false };
static long fail_after, live;
#else
// The C library's own, behind its public names.
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void __libc_free(void *block);

enum { CAN_FAIL = true };
static long fail_after, live; // 0: none fails; blocks that are held

static bool fails_now(void) {
    return fail_after > 0 && --fail_after == 0;
}

void *malloc(size_t size) {
    void *block = fails_now() ? NULL : __libc_malloc(size);
    live += block != NULL;
    return block;
}

void *calloc(size_t count, size_t size) {
    void *block = fails_now() ? NULL : __libc_calloc(count, size);
    live += block != NULL;
    return block;
}

void *realloc(void *old, size_t size) {
    void *block = fails_now() ? NULL : __libc_realloc(old, size);
    live += block != NULL && old == NULL;
    return block;
}

void free(void *block) {
    live -= block != NULL;
    __libc_free(block);
}
#endif

static const Planted runs_planted[] = {{"a1", "fp32", 1, 0.91, 50, 0.1, 0.2, 0.05, 0},
                                       {"b1", "bf16", 1, 0.90, 90, 0.1, 0.3, 0.05, 0},
                                       {"a2", "fp32", 2, 0.92, 51, 0.1, 0.2, 0.05, 0},
                                       {"b2", "bf16", 2, 0.91, 91, 0.1, 0.3, 0.05, 0},
                                       {"c", "fp16", 1, 0.92, 51, 0.2, 0.2, 0.05, 99}};

enum { RUNS = sizeof runs_planted / sizeof *runs_planted };

static void the_nth_allocation_that_fails_is_a_clean_error(void) {
    const CompareOptions options = {.grams_per_kwh = 400};
    if (!CAN_FAIL) {
        SKIP("allocations are the sanitizer's");
        return;
    }
    enum { MOST = 2000 };
    int failures = 0;
    bool done = false;
    for (int n = 1; n <= MOST && !done && !test_why[0]; n++) {
        Error error = {.code = ERROR_NONE};
        long before = live;
        RunRecord *runs = calloc(RUNS, sizeof *runs);
        CompareCurve *curves = calloc(RUNS, sizeof *curves);
        for (int i = 0; i < RUNS; i++) {
            runs[i] = planted_record(&runs_planted[i]);
            curves[i] = planted_curve(&runs_planted[i]);
        }
        fail_after = n;
        Comparison *comparison = compare_records(runs, curves, RUNS, &options, &error);
        done = fail_after > 0; // nothing failed
        fail_after = 0;
        if (done)
            CHECK_MESSAGE(comparison != NULL, "it failed without a failure: %s", error.text);
        else
            CHECK_MESSAGE(!comparison && error.code == ERROR_MEMORY, "allocation %d: %s", n,
                          comparison ? "it went unnoticed" : error.text);
        failures += !done;
        compare_free(comparison);
        CHECK_MESSAGE(live == before, "allocation %d: %ld blocks are left", n, live - before);
    }
    CHECK(done);
    CHECK_MESSAGE(failures > 20, "%d allocations only", failures);
}

int main(void) {
    RUN_TEST(the_nth_allocation_that_fails_is_a_clean_error);
    return test_end();
}
