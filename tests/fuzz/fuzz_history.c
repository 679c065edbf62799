// Throws damaged history files at the store: PROGRAM [EXECUTIONS [SEED]].
#include "tests/fuzz/history_target.h"

int main(int argc, char **argv) {
    uint64_t executions = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    uint64_t broken = fuzz_history_run(executions, seed);
    if (broken || test_why[0])
        printf("not ok %s: execution %llu of seed %llu %s\n", argv[0], (unsigned long long)broken,
               (unsigned long long)seed, test_why);
    else
        printf("ok %s: %llu executions\n", argv[0], (unsigned long long)executions);
    return broken || test_why[0];
}
