// What became of the numbers of factors in scaled formats: true of tensors whose counts are known.
#include "ops/factors.h"

#include "number/scaled.h"
#include "tests/unit/engine_fixture.h"

enum { LAYERS = 2, DEPTH = 32 };
static FactorCounts counts[LAYERS][FACTOR_ROLES];
static FactorTable table = {.layers = LAYERS, .counts = counts};

static void open_with(const char *device, const char *precision, const char *text) {
    Recipe recipe;
    Error error = {0};
    memset(counts, 0, sizeof counts);
    engine_open(device, precision);
    CHECK_MESSAGE(recipe_parse(text, &recipe, &error), "%s", error.text);
    policy_set_recipe(engine->policy, &recipe);
    engine->layer = policy_add_layer(engine->policy, "head", 0, NULL);
    engine->autocast.enabled = true;
    engine->factors = &table;
}

// x, of rows of DEPTH numbers, by a weight of ones, as one layer does it.
static const FactorCounts *counted(const float *x, int rows) {
    float ones[DEPTH];
    for (int i = 0; i < DEPTH; i++)
        ones[i] = 1;
    Tensor *a = tensor_from_host(fixture_device, FORMAT_FP32, 2, (int64_t[]){rows, DEPTH}, x,
                                 MEMORY_DATA, NULL);
    Tensor *w = tensor_from_host(fixture_device, FORMAT_FP32, 2, (int64_t[]){1, DEPTH}, ones,
                                 MEMORY_DATA, NULL);
    Error error = {0};
    Tensor *y = op_three(engine, OP_linear, a, w, NULL, NULL, &error);
    CHECK_MESSAGE(y, "%s", error.text);
    tensor_release(a), tensor_release(w), tensor_release(y);
    return &counts[1][FACTOR_ACTIVATION];
}

// Blocks of 448 and 1, of 14, and of zeros alone: scales 1, 2^-5 and the least there is. Elements
// of e4m3 are from 2^-9 on, and normal from 2^-6 on; of `floor` 14.5 is 464 of them, and 448 the
// most.
static void what_became_of_a_constructed_tensor_is_counted(void) {
    static const char *const devices[] = {"ref", "cpu"};
    float x[3 * DEPTH] = {448, 1, 0x1p-7f, 0x1p-9f, 0x1p-11f, -0x1p-12f, [DEPTH] = 14.5f, 14, -7};
    for (int d = 0; d < 2; d++)
        for (int up = 0; up < 2; up++) {
            open_with(devices[d], "mxfp8", up ? "" : "scales=floor");
            const FactorCounts *of = counted(x, 3);
            int least = 0, middle = 0, most = 0;
            // Two weights of ones are an activation too here: what is no parameter is one.
            CHECK_INT(of->count, 4 * DEPTH);
            CHECK_INT(of->flushed, 2);
            CHECK_INT(of->subnormal, 2);
            CHECK_INT(of->saturated, up ? 0 : 1);
            CHECK_INT(of->broken, 0);
            CHECK(factors_scales(of, &least, &middle, &most));
            CHECK(least == NUMBER_SCALE_LOWEST && middle == -8 && most == 0);
            CHECK_INT(of->scales[(up ? -4 : -5) - FACTOR_LOWEST_SCALE], 1);
            engine_close();
        }
}

// In fp8 the scale of the steps before is in force: 1 in the first.
static void the_scale_in_force_is_counted_at(void) {
    const float x[DEPTH] = {1000, 448, 0x1p-8f, 0x1p-12f, NAN, INFINITY};
    open_with("cpu", "fp8", "");
    const FactorCounts *of = counted(x, 1);
    CHECK_INT(of->saturated, 1);
    CHECK_INT(of->flushed, 1);
    CHECK_INT(of->subnormal, 1);
    CHECK_INT(of->broken, 2);
    engine_close();
    open_with("cpu", "fp8", "fp8=current");
    const float finite[DEPTH] = {1000, 448, 0x1p-8f, 0x1p-12f};
    of = counted(finite, 1);
    CHECK_INT(of->saturated, 0);
    CHECK_INT(of->flushed, 1);
    engine_close();
}

// The largest of all is 6 * 448: a block of 1.5 has 0.25 in e4m3 and one of 0.001 none, so that it
// vanishes whole.
static void a_block_whose_scale_vanishes_is_flushed(void) {
    float x[DEPTH] = {2688, 1.5f, [16] = 0.001f, -0.001f};
    open_with("cpu", "nvfp4", "");
    const FactorCounts *of = counted(x, 1);
    CHECK_INT(of->flushed, 3); // 1.5 beside 2688 too
    CHECK_INT(of->scales[0 - FACTOR_LOWEST_SCALE] + of->scales[8 - FACTOR_LOWEST_SCALE], 1);
    engine_close();
}

static void nothing_is_counted_of_other_formats_or_unasked(void) {
    const float x[DEPTH] = {1, 2, 3};
    open_with("cpu", "bf16", "");
    CHECK_INT(counted(x, 1)->count, 0);
    engine_close();
    open_with("cpu", "mxfp8", "");
    engine->factors = NULL;
    CHECK_INT(counted(x, 1)->count, 0);
    engine_close();
}

int main(void) {
    RUN_TEST(what_became_of_a_constructed_tensor_is_counted);
    RUN_TEST(the_scale_in_force_is_counted_at);
    RUN_TEST(a_block_whose_scale_vanishes_is_flushed);
    RUN_TEST(nothing_is_counted_of_other_formats_or_unasked);
    return test_end();
}
