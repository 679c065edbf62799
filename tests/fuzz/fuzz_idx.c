// Throws mutated IDX files at their reader: PROGRAM [EXECUTIONS [SEED]].
#include "tests/fuzz/idx_target.h"

FUZZ_MAIN(fuzz_idx_one, fuzz_idx_seed, "idx")
