// Parts of tensors: what they show, and how gradients find the way back.
#include "tests/unit/engine_fixture.h"

enum { ROWS = 2, COLUMNS = 12 };

static Tensor *matrix(void) {
    float values[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = (float)i;
    const int64_t shape[] = {ROWS, COLUMNS};
    return leaf(tensor_from_host(fixture_device, FORMAT_FP32, 2, shape, values, MEMORY_DATA, NULL));
}

// The sum of k * part k over the parts that are `used`, a mask.
static Tensor *weighted_sum(Tensor **parts, int count, unsigned used) {
    Tensor *total = number(0);
    for (int k = 0; k < count; k++) {
        if (!(used & (1u << k)))
            continue;
        Tensor *weight = number((float)(k + 1)),
               *sum = op_one(engine, OP_sum, parts[k], NULL, NULL);
        Tensor *product = op_two(engine, OP_mul, sum, weight, NULL, NULL);
        Tensor *next = op_two(engine, OP_add, total, product, NULL, NULL);
        tensor_release(weight);
        tensor_release(sum);
        tensor_release(product);
        tensor_release(total);
        total = next;
    }
    return total;
}

static void check_parts(int count, unsigned used) {
    Error error = {0};
    Tensor *x = matrix(), *parts[COLUMNS];
    int width = COLUMNS / count;
    CHECK_MESSAGE(op_chunk(engine, x, 1, count, parts, &error), "%s", error.text);
    for (int k = 0; k < count; k++) {
        float shown[ROWS * COLUMNS];
        CHECK(parts[k]->view.ndim == 2 && parts[k]->view.shape[1] == width);
        CHECK(tensor_read(parts[k], shown, &error));
        for (int i = 0; i < ROWS * width; i++)
            CHECK_NEAR(shown[i], i / width * COLUMNS + k * width + i % width, 0);
    }
    Tensor *total = weighted_sum(parts, count, used);
    CHECK_MESSAGE(engine_backward(engine, total, NULL, NULL, &error), "%s", error.text);
    float gradient[ROWS * COLUMNS];
    CHECK(tensor_read(x->grad, gradient, &error));
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        int k = i % COLUMNS / width;
        CHECK_NEAR(gradient[i], used & (1u << k) ? k + 1 : 0, 0);
    }
    tensor_release(total);
    for (int k = 0; k < count; k++)
        tensor_release(parts[k]);
    tensor_release(x);
}

static void parts_of_any_number_give_back_their_gradients(void) {
    engine_open("cpu", "fp32");
    check_parts(1, 1);
    check_parts(2, 3);
    check_parts(3, 7);
    check_parts(12, 0xFFF); // more than one entry of the tape takes
    engine_close();
}

static void parts_that_nothing_read_count_as_zeros(void) {
    engine_open("cpu", "fp32");
    check_parts(3, 1);
    check_parts(3, 4);
    check_parts(4, 9);
    engine_close();
}

static void parts_keep_the_format_of_the_whole(void) {
    static const Format formats[] = {FORMAT_BF16, FORMAT_FP16};
    engine_open("cpu", "fp32");
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        Tensor *full = matrix(), *parts[3];
        Tensor *x = op_cast(engine, full, formats[f], NULL);
        CHECK(x && op_chunk(engine, x, 1, 3, parts, NULL));
        Tensor *total = weighted_sum(parts, 3, 5), *first = NULL;
        BackwardOptions options = {.inputs = &x, .input_count = 1, .results = &first};
        CHECK(engine_backward(engine, total, NULL, &options, NULL));
        CHECK(parts[0]->view.format == formats[f] && first && first->view.format == formats[f]);
        Tensor *wide = op_cast(engine, first, FORMAT_FP32, NULL);
        float gradient[ROWS * COLUMNS];
        CHECK(tensor_read(wide, gradient, NULL));
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            int k = i % COLUMNS / 4;
            CHECK_NEAR(gradient[i], k == 1 ? 0 : k + 1, 0);
        }
        Tensor *made[] = {wide, first, total, parts[0], parts[1], parts[2], x, full};
        for (size_t i = 0; i < sizeof made / sizeof *made; i++)
            tensor_release(made[i]);
    }
    engine_close();
}

static void parts_have_second_derivatives(void) {
    engine_open("ref", "fp32");
    Tensor *x = matrix(), *parts[2];
    CHECK(op_chunk(engine, x, 1, 2, parts, NULL));
    Tensor *product = op_two(engine, OP_mul, parts[0], parts[1], NULL, NULL);
    Tensor *sum = op_one(engine, OP_sum, product, NULL, NULL), *first = NULL;
    BackwardOptions options = {
        .create_graph = true, .inputs = &x, .input_count = 1, .results = &first};
    CHECK(engine_backward(engine, sum, NULL, &options, NULL));
    Tensor *squares = op_one(engine, OP_square, first, NULL, NULL);
    Tensor *total = op_one(engine, OP_sum, squares, NULL, NULL);
    CHECK(engine_backward(engine, total, NULL, NULL, NULL));
    float gradient[ROWS * COLUMNS]; // of the sum of squares of x itself
    CHECK(x->grad && tensor_read(x->grad, gradient, NULL));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        CHECK_NEAR(gradient[i], 2 * i, 0);
    Tensor *made[] = {total, squares, first, sum, product, parts[0], parts[1], x};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        tensor_release(made[i]);
    engine_close();
}

static void parts_that_are_unequal_are_refused(void) {
    engine_open("ref", "fp32");
    Error error = {0};
    Tensor *x = matrix(), *parts[5];
    CHECK(!op_chunk(engine, x, 1, 5, parts, &error));
    CHECK_CONTAINS(error.text, "equal parts");
    CHECK(!op_chunk(engine, x, 2, 2, parts, &error));
    CHECK_CONTAINS(error.text, "no such dimension");
    tensor_release(x);
    engine_close();
}

int main(void) {
    RUN_TEST(parts_of_any_number_give_back_their_gradients);
    RUN_TEST(parts_that_nothing_read_count_as_zeros);
    RUN_TEST(parts_keep_the_format_of_the_whole);
    RUN_TEST(parts_have_second_derivatives);
    RUN_TEST(parts_that_are_unequal_are_refused);
    return test_end();
}
