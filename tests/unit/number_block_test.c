// Blocks of numbers, as `mpbench formats --block` shows them, against the rules as they are
// written.
#include "number/block.h"

#include <math.h>

#include "tests/test.h"

static BlockDescription of;

static void as(Format format, const double *numbers, int count, bool up) {
    block_describe(format, numbers, count, up, &of);
}

static void golden_blocks(void) {
    as(FORMAT_MXFP8, (double[]){449, 1}, 2, false);
    CHECK(of.number[0].scale == 1 && of.number[0].worth == 448 && of.number[0].is_saturated);
    CHECK_INT(of.saturated, 1);
    as(FORMAT_MXFP8, (double[]){449, 1}, 2, true);
    CHECK(of.number[0].scale == 2 && of.number[0].worth == 448 && of.saturated == 0);
    as(FORMAT_MXFP8, (double[]){1}, 1, false);
    CHECK(of.number[0].scale == 0x1p-8 && of.number[0].element == 256);
    as(FORMAT_MXFP4, (double[]){7, 0.2}, 2, false);
    CHECK(of.number[0].worth == 6 && of.number[1].is_flushed && of.flushed == 1);
    as(FORMAT_MXFP4, (double[]){8}, 1, false);
    CHECK(of.number[0].scale == 2 && of.number[0].element == 4);
    double numbers[32] = {3};
    numbers[16] = 2688; // the next block
    as(FORMAT_NVFP4, numbers, 32, true);
    CHECK(of.tensor == 1 && of.number[0].scale == 0.5 && of.number[0].element == 6);
    CHECK(of.number[16].worth == 2688 && of.number[17].worth == 0);
}

static void blocks_scale_by_themselves_and_tensors_as_one(void) {
    double numbers[64];
    for (int i = 0; i < 64; i++)
        numbers[i] = i < 32 ? 1000 : 0.001;
    as(FORMAT_MXFP8, numbers, 64, true);
    CHECK(of.flushed == 0 && of.number[0].scale > of.number[63].scale);
    as(FORMAT_FP8, numbers, 64, true);
    CHECK_INT(of.flushed, 32);
    CHECK(of.number[0].scale == of.number[63].scale);
}

static void the_largest_is_not_saturated_by_its_own_scale(void) {
    for (int i = 60; i < 70; i++) {
        const double numbers[] = {i / 10.0, 1};
        static const Format formats[] = {FORMAT_FP8, FORMAT_E4M3, FORMAT_E5M2};
        for (int f = 0; f < 3; f++) {
            as(formats[f], numbers, 2, true);
            CHECK_MESSAGE(of.saturated == 0, "%g in %s", numbers[0], format_name(formats[f]));
        }
    }
}

static void what_is_not_finite_stays(void) {
    as(FORMAT_MXFP6, (double[]){1, (double)NAN, (double)INFINITY}, 3, true);
    CHECK(of.number[0].worth == 1);
    CHECK(isnan(of.number[1].worth) && isinf(of.number[2].worth));
    as(FORMAT_NVFP4, (double[]){0, 0}, 2, true);
    CHECK(of.number[0].worth == 0 && of.root_mean_square == 0);
}

// As in a product: the scale of a whole tensor is then 1, and what is small goes to 0.
static void an_infinite_number_takes_the_scale_of_its_tensor(void) {
    as(FORMAT_FP8, (double[]){5e-4, (double)INFINITY}, 2, true);
    CHECK(of.number[0].scale == 1 && of.number[0].worth == 0 && isinf(of.number[1].worth));
}

static void tiny_numbers_stay_finite(void) {
    static const Format formats[] = {FORMAT_FP8, FORMAT_MXFP8, FORMAT_NVFP4, FORMAT_MXFP4};
    double numbers[32] = {1e-33};
    numbers[16] = 5e-39;
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        as(formats[f], numbers, 32, true);
        CHECK(of.number[16].worth >= 0 && of.number[16].worth <= 1e-38 && of.number[17].worth == 0);
        as(formats[f], (double[]){1e-40, 0, -1e-46}, 3, true);
        CHECK(fabs(of.number[0].worth) <= 2e-40 && of.number[1].worth == 0);
    }
}

int main(void) {
    RUN_TEST(golden_blocks);
    RUN_TEST(blocks_scale_by_themselves_and_tensors_as_one);
    RUN_TEST(the_largest_is_not_saturated_by_its_own_scale);
    RUN_TEST(what_is_not_finite_stays);
    RUN_TEST(an_infinite_number_takes_the_scale_of_its_tensor);
    RUN_TEST(tiny_numbers_stay_finite);
    return test_end();
}
