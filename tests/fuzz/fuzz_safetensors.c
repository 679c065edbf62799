// Throws mutated headers at the reader of safetensors: PROGRAM [EXECUTIONS [SEED]].
#include "tests/fuzz/safetensors_target.h"

FUZZ_MAIN(fuzz_safetensors_one, fuzz_safetensors_seed, "safetensors")
