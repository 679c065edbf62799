// Throws rows at the table of orders, and what can be claimed at a run: PROGRAM [EXECUTIONS
// [SEED]].
#include "tests/fuzz/orders_target.h"

FUZZ_MAIN(fuzz_orders_one, fuzz_orders_seed, "orders")
