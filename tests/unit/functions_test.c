// Functions of several operations, as a caller in C has them.
#include "ops/functions.h"

#include "ops/views.h"
#include "tests/unit/engine_fixture.h"

static Tensor *whole(Format format, int64_t n, const void *values) {
    return tensor_from_host(fixture_device, format, 1, &n, values, MEMORY_DATA, NULL);
}

static Tensor *matrix(int64_t rows, int64_t columns, const float *values) {
    return tensor_from_host(fixture_device, FORMAT_FP32, 2, (int64_t[]){rows, columns}, values,
                            MEMORY_DATA, NULL);
}

static void check_floats(const Tensor *tensor, int64_t count, const float *expected) {
    float values[64];
    CHECK(tensor && tensor_count(tensor) == count && tensor->view.format == FORMAT_FP32);
    if (!tensor || tensor_count(tensor) != count || !tensor_read(tensor, values, NULL))
        return;
    for (int64_t i = 0; i < count; i++)
        CHECK_NEAR(values[i], expected[i], 1e-6);
}

static void whole_numbers_count_from_zero(void) {
    Error error = {0};
    int32_t values[3] = {-1, -1, -1};
    engine_open("cpu", "fp32");
    Tensor *numbers = op_arange(engine, 3, &error), *nothing = op_arange(engine, 0, &error);
    CHECK(numbers && numbers->view.format == FORMAT_INT32 && tensor_read(numbers, values, NULL));
    CHECK(values[0] == 0 && values[1] == 1 && values[2] == 2);
    CHECK(nothing && tensor_count(nothing) == 0);
    CHECK(!op_arange(engine, -1, &error));
    CHECK_TEXT(error.text, "arange: n is -1: from 0 to 2147483647 is possible");
    tensor_release(numbers), tensor_release(nothing);
    engine_close();
}

static void the_negative_of_whole_numbers_is_whole(void) {
    const int32_t values[] = {3, -7, 0};
    int32_t negative[3] = {0};
    engine_open("cpu", "fp32");
    Tensor *x = whole(FORMAT_INT32, 3, values), *y = op_negative(engine, x, NULL);
    CHECK(y && y->view.format == FORMAT_INT32 && tensor_read(y, negative, NULL));
    CHECK(negative[0] == -3 && negative[1] == 7 && negative[2] == 0);
    Tensor *half = number(0.5f), *minus = op_negative(engine, half, NULL);
    CHECK_NEAR(item(minus), -0.5, 0);
    tensor_release(x), tensor_release(y), tensor_release(half), tensor_release(minus);
    engine_close();
}

static void a_number_takes_part_as_it_is_and_is_compared_as_it_would_be_kept(void) {
    static const struct {
        OpId op;
        Format beside;
        double value;
        bool is_whole;
        Format format;
        double becomes;
    } cases[] = {
        {OP_mul, FORMAT_FP16, 0.1, false, FORMAT_FP32, (double)0.1f},
        {OP_equal, FORMAT_FP16, 0.1, false, FORMAT_FP32, 0x1.998p-4},
        {OP_equal, FORMAT_FP16, 1e6, false, FORMAT_FP32, 1e6}, // past its end: it equals nothing
        {OP_add, FORMAT_UINT8, 3, true, FORMAT_UINT8, 3},
        {OP_add, FORMAT_UINT8, 300, true, FORMAT_INT32, 300},
        {OP_add, FORMAT_UINT8, 3, false, FORMAT_FP32, 3},
        {OP_equal, FORMAT_INT32, 3, false, FORMAT_INT32, 3},
        {OP_add, FORMAT_INT32, 0x1p40, true, FORMAT_FP32, 0x1p40},
    };
    engine_open("cpu", "fp32");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Tensor *other = op_fill(engine, cases[i].beside, 0, NULL, 1, NULL);
        Tensor *made =
            op_number_beside(engine, cases[i].op, cases[i].value, cases[i].is_whole, other, NULL);
        CHECK_MESSAGE(made && made->is_number && made->view.format == cases[i].format &&
                          item(made) == cases[i].becomes,
                      "case %d: %s %.9g", (int)i, made ? format_name(made->view.format) : "none",
                      item(made));
        tensor_release(other), tensor_release(made);
    }
    engine_close();
}

static void rows_are_found_along_any_dimension(void) {
    const float values[] = {0, 0, logf(2), 2 * logf(2)};
    engine_open("cpu", "fp32");
    Tensor *x = leaf(matrix(2, 2, values));
    Tensor *down = op_along(engine, OP_softmax, x, 0, NULL);
    Tensor *across = op_along(engine, OP_softmax, x, 1, NULL);
    check_floats(down, 4, (float[]){1 / 3.0f, 0.2f, 2 / 3.0f, 0.8f});
    check_floats(across, 4, (float[]){0.5f, 0.5f, 1 / 3.0f, 2 / 3.0f});
    tensor_release(x), tensor_release(down), tensor_release(across);
    engine_close();
}

static void more_tensors_than_a_call_takes_are_joined_in_order(void) {
    enum { MANY = 2 * OP_MAX_INPUTS + 3 };
    float expected[MANY];
    Tensor *parts[MANY];
    engine_open("cpu", "fp32");
    for (int i = 0; i < MANY; i++) {
        expected[i] = (float)i;
        parts[i] = leaf(vector(1, &expected[i]));
    }
    Tensor *joined = op_cat(engine, parts, MANY, 0, NULL);
    check_floats(joined, MANY, expected);
    Tensor *sum = op_one(engine, OP_sum, joined, NULL, NULL);
    CHECK(engine_backward(engine, sum, NULL, NULL, NULL));
    for (int i = 0; i < MANY; i++)
        CHECK(parts[i]->grad && item(parts[i]->grad) == 1);
    Tensor *one = op_cat(engine, parts, 1, 0, NULL);
    CHECK(one == parts[0]);
    Error error = {0};
    Tensor *table = matrix(1, 2, expected), *pair[] = {parts[0], table};
    CHECK(!op_cat(engine, pair, 2, 0, &error));
    CHECK_CONTAINS(error.text, "cat: ");
    for (int i = 0; i < MANY; i++)
        tensor_release(parts[i]);
    tensor_release(one), tensor_release(table), tensor_release(joined), tensor_release(sum);
    engine_close();
}

static void dropout_takes_no_random_numbers_where_it_drops_nothing(void) {
    Error error = {0};
    engine_open("cpu", "fp32");
    Tensor *x = vector(4, (float[]){1, 2, 3, 4});
    uint64_t before = engine->random_position;
    Tensor *same = op_dropout(engine, x, 0.5, false, &error);
    Tensor *all = op_dropout(engine, x, 0, true, &error);
    CHECK(same == x && all == x && engine->random_position == before);
    Tensor *some = op_dropout(engine, x, 0.5, true, &error);
    CHECK(some && some != x && engine->random_position > before);
    CHECK(!op_dropout(engine, x, 1, false, &error));
    CHECK_TEXT(error.text, "dropout: p is 1: from 0 to below 1 is possible");
    tensor_release(x), tensor_release(same), tensor_release(all), tensor_release(some);
    engine_close();
}

static void batch_norm_moves_its_statistics_as_it_trains_alone(void) {
    const OpAttr attr = {.norm = {.epsilon = 0, .momentum = 0.5}};
    Error error = {0};
    engine_open("cpu", "fp32");
    Tensor *x = matrix(4, 1, (float[]){1, 1, 3, 3});
    Tensor *mean = vector(1, (float[]){0}), *variance = vector(1, (float[]){1});
    Tensor *const inputs[5] = {x, NULL, NULL, mean, variance}, *const own[5] = {x};
    Tensor *trained = op_batch_norm(engine, inputs, &attr, true, &error);
    check_floats(trained, 4, (float[]){-1, -1, 1, 1});
    CHECK_NEAR(item(mean), 1, 1e-6);                     // half of the batch's 2
    CHECK_NEAR(item(variance), 0.5 + 0.5 * 4 / 3, 1e-6); // unbiased
    CHECK_INT(engine->change_count, 2);                  // a skipped step can take them back
    Tensor *applied = op_batch_norm(engine, inputs, &attr, false, &error);
    const float deviation = sqrtf(0.5f + 2 / 3.0f);
    check_floats(applied, 4, (float[]){0, 0, 2 / deviation, 2 / deviation});
    CHECK_INT(engine->change_count, 2);
    Tensor *without = op_batch_norm(engine, own, &attr, true, &error);
    check_floats(without, 4, (float[]){-1, -1, 1, 1});
    CHECK(!op_batch_norm(engine, own, &attr, false, &error));
    CHECK_TEXT(error.text, "batch_norm: evaluation needs running statistics");
    tensor_release(x), tensor_release(mean), tensor_release(variance);
    tensor_release(trained), tensor_release(applied), tensor_release(without);
    engine_close();
}

static void a_transposed_convolution_works_out_its_size(void) {
    OpAttr attr = {.conv = {.stride = {2, 1}, .dilation = {1, 1}, .groups = 1}};
    const int64_t none[2] = {0, 0}, row[2] = {1, 0}, much[2] = {0, 1};
    Error error = {0};
    engine_open("cpu", "fp32");
    Tensor *x = op_fill(engine, FORMAT_FP32, 4, (int64_t[]){1, 2, 3, 1}, 1, NULL);
    Tensor *weight = op_fill(engine, FORMAT_FP32, 4, (int64_t[]){1, 3, 2, 1}, 1, NULL);
    Tensor *bias = vector(1, (float[]){10});
    Tensor *const inputs[3] = {x, weight, bias};
    Tensor *y = op_conv_transpose2d(engine, inputs, &attr, none, &error);
    Tensor *wider = op_conv_transpose2d(engine, inputs, &attr, row, &error);
    check_floats(y, 20, (float[]){11, 12, 12, 11, 11, 12, 12, 11, 12, 14,
                                  14, 12, 11, 12, 12, 11, 11, 12, 12, 11});
    CHECK(wider && wider->view.shape[1] == 6 && wider->view.shape[2] == 4);
    CHECK(!op_conv_transpose2d(engine, inputs, &attr, much, &error));
    CHECK_TEXT(error.text, "conv_transpose2d: output_padding width is 1: from 0 to below the "
                           "stride is possible");
    tensor_release(x), tensor_release(weight), tensor_release(bias);
    tensor_release(y), tensor_release(wider);
    engine_close();
}

static void scores_are_scaled_by_the_root_of_the_depth(void) {
    engine_open("cpu", "fp32");
    Tensor *q = op_fill(engine, FORMAT_FP32, 4, (int64_t[]){1, 2, 1, 16}, 0, NULL);
    CHECK_NEAR(op_attention_scale(q), 0.25, 0);
    tensor_release(q);
    engine_close();
}

static void a_part_lacks_the_dimension_that_it_was_taken_along(void) {
    engine_open("cpu", "fp32");
    Tensor *x = matrix(2, 3, (float[]){1, 2, 3, 4, 5, 6}), *part = op_part(engine, x, 1, NULL);
    check_floats(part, 3, (float[]){4, 5, 6});
    CHECK(part && part->view.ndim == 1);
    CHECK(!op_part(engine, x, 2, NULL));
    tensor_release(x), tensor_release(part);
    engine_close();
}

int main(void) {
    RUN_TEST(whole_numbers_count_from_zero);
    RUN_TEST(the_negative_of_whole_numbers_is_whole);
    RUN_TEST(a_number_takes_part_as_it_is_and_is_compared_as_it_would_be_kept);
    RUN_TEST(rows_are_found_along_any_dimension);
    RUN_TEST(more_tensors_than_a_call_takes_are_joined_in_order);
    RUN_TEST(dropout_takes_no_random_numbers_where_it_drops_nothing);
    RUN_TEST(batch_norm_moves_its_statistics_as_it_trains_alone);
    RUN_TEST(a_transposed_convolution_works_out_its_size);
    RUN_TEST(scores_are_scaled_by_the_root_of_the_depth);
    RUN_TEST(a_part_lacks_the_dimension_that_it_was_taken_along);
    return test_end();
}
