// A short round of each fuzz program of the data readers; the long ones run on their own.
#include "tests/fuzz/csv_target.h"
#include "tests/fuzz/idx_target.h"
#include "tests/fuzz/pictures_target.h"
#include "tests/fuzz/safetensors_target.h"
#include "tests/fuzz/text_target.h"
#include "tests/test.h"

static void check_round(FuzzOne one, FuzzSeed seed_of, const char *target) {
    uint64_t broken = fuzz_run(one, seed_of, target, 100000, 1);
    CHECK_MESSAGE(broken == 0, "execution %llu of seed 1 broke a promise",
                  (unsigned long long)broken);
}

static void mutated_idx_files_are_read_or_refused(void) {
    check_round(fuzz_idx_one, fuzz_idx_seed, "idx");
}

static void mutated_pictures_are_read_or_refused(void) {
    check_round(fuzz_pictures_one, fuzz_pictures_seed, "pictures");
}

static void mutated_tables_are_read_or_refused(void) {
    check_round(fuzz_csv_one, fuzz_csv_seed, "csv");
}

static void mutated_texts_are_read_or_refused(void) {
    check_round(fuzz_text_one, fuzz_text_seed, "text");
}

static void mutated_headers_of_safetensors_are_read_or_refused(void) {
    check_round(fuzz_safetensors_one, fuzz_safetensors_seed, "safetensors");
}

static size_t no_seed(int index, uint8_t *out) {
    (void)index, (void)out;
    return 0;
}

static void what_once_was_hard_is_kept_and_tried_first(void) {
    static const char *const targets[] = {"csv",      "idx",         "orders",
                                          "pictures", "safetensors", "text"};
    uint8_t bytes[FUZZ_MAX_SIZE];
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        FuzzInputs inputs = {.target = targets[t], .seed_of = no_seed};
        fuzz_inputs_find(&inputs);
        CHECK_MESSAGE(inputs.count >= 4, "%s: %d files", targets[t], inputs.count);
        for (int i = 0; i < inputs.count; i++)
            CHECK_MESSAGE(fuzz_input(&inputs, i, bytes) > 0, "%s: %s is empty", targets[t],
                          inputs.files[i]->d_name);
        fuzz_inputs_clear(&inputs);
    }
}

int main(void) {
    RUN_TEST(what_once_was_hard_is_kept_and_tried_first);
    RUN_TEST(mutated_idx_files_are_read_or_refused);
    RUN_TEST(mutated_pictures_are_read_or_refused);
    RUN_TEST(mutated_tables_are_read_or_refused);
    RUN_TEST(mutated_texts_are_read_or_refused);
    RUN_TEST(mutated_headers_of_safetensors_are_read_or_refused);
    return test_end();
}
