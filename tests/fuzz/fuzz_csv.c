// Throws mutated tables at their reader: PROGRAM [EXECUTIONS [SEED]].
#include "tests/fuzz/csv_target.h"

FUZZ_MAIN(fuzz_csv_one, fuzz_csv_seed, "csv")
