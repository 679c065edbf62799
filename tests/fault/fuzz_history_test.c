// A short round of the fuzz programs of the history, longer with MPBENCH_SOAK=1; the long ones run
// on their own.
#include "tests/fuzz/history_target.h"
#include "tests/fuzz/orders_target.h"

static uint64_t count_executions(void) {
    return test_soaks() ? 100000 : 20000;
}

static void damaged_histories_are_read_or_refused(void) {
    uint64_t broken = fuzz_history_run(count_executions(), 1);
    CHECK_MESSAGE(broken == 0, "execution %llu of seed 1 broke a promise",
                  (unsigned long long)broken);
}

static void rows_of_orders_are_obeyed_or_refused(void) {
    uint64_t broken = fuzz_run(fuzz_orders_one, fuzz_orders_seed, "orders", count_executions(), 1);
    CHECK_MESSAGE(broken == 0, "execution %llu of seed 1 broke a promise",
                  (unsigned long long)broken);
}

int main(void) {
    RUN_TEST(damaged_histories_are_read_or_refused);
    RUN_TEST(rows_of_orders_are_obeyed_or_refused);
    return test_end();
}
