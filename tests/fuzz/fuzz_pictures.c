// Throws mutated pictures at their reader: PROGRAM [EXECUTIONS [SEED]].
#include "tests/fuzz/pictures_target.h"

FUZZ_MAIN(fuzz_pictures_one, fuzz_pictures_seed, "pictures")
