// Throws mutated texts at their reader: PROGRAM [EXECUTIONS [SEED]].
#include "tests/fuzz/text_target.h"

FUZZ_MAIN(fuzz_text_one, fuzz_text_seed, "text")
