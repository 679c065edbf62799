// A short round of each fuzz program of the data readers; the long ones run on their own.
#include "tests/fuzz/idx_target.h"
#include "tests/fuzz/safetensors_target.h"
#include "tests/fuzz/text_target.h"
#include "tests/test.h"

static void check_round(FuzzOne one, FuzzSeed seed_of) {
    uint64_t broken = fuzz_run(one, seed_of, 100000, 1);
    CHECK_MESSAGE(broken == 0, "execution %llu of seed 1 broke a promise",
                  (unsigned long long)broken);
}

static void mutated_idx_files_are_read_or_refused(void) {
    check_round(fuzz_idx_one, fuzz_idx_seed);
}

static void mutated_texts_are_read_or_refused(void) {
    check_round(fuzz_text_one, fuzz_text_seed);
}

static void mutated_headers_of_safetensors_are_read_or_refused(void) {
    check_round(fuzz_safetensors_one, fuzz_safetensors_seed);
}

int main(void) {
    RUN_TEST(mutated_idx_files_are_read_or_refused);
    RUN_TEST(mutated_texts_are_read_or_refused);
    RUN_TEST(mutated_headers_of_safetensors_are_read_or_refused);
    return test_end();
}
