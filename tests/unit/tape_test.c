// The tape: what is recorded, how gradients add up, how graphs live and die.
#include "tests/unit/engine_fixture.h"

static void gradients_of_a_sum_of_products(void) {
    engine_open("ref", "fp32");
    Tensor *x = leaf(number(3)), *y = leaf(number(4));
    Tensor *xy = op_two(engine, OP_mul, x, y, NULL, NULL);
    Tensor *z = op_two(engine, OP_add, xy, x, NULL, NULL); // xy + x
    CHECK(engine_backward(engine, z, NULL, NULL, NULL));
    CHECK_NEAR(item(x->grad), 5, 0);
    CHECK_NEAR(item(y->grad), 3, 0);
    tensor_release(xy);
    tensor_release(z);
    tensor_release(x);
    tensor_release(y);
    engine_close(); // asserts that no memory of the device is in use
}

static void gradients_accumulate_over_walks(void) {
    engine_open("ref", "fp32");
    Tensor *x = leaf(number(2));
    for (int i = 1; i <= 3; i++) {
        Tensor *y = op_one(engine, OP_square, x, NULL, NULL);
        CHECK(engine_backward(engine, y, NULL, NULL, NULL));
        CHECK_NEAR(item(x->grad), 4 * i, 0);
        tensor_release(y);
    }
    tensor_release(x);
    engine_close();
}

// Both inputs of an addition get the same tensor as their gradient; adding to one later must not
// change the other.
static void gradients_of_leaves_share_no_memory(void) {
    engine_open("ref", "fp32");
    Tensor *x = leaf(number(1)), *y = leaf(number(1));
    Tensor *sum = op_two(engine, OP_add, x, y, NULL, NULL);
    CHECK(engine_backward(engine, sum, NULL, NULL, NULL));
    Tensor *twice = op_two(engine, OP_add, x, x, NULL, NULL);
    CHECK(engine_backward(engine, twice, NULL, NULL, NULL));
    CHECK_NEAR(item(x->grad), 3, 0);
    CHECK_NEAR(item(y->grad), 1, 0);
    tensor_release(sum);
    tensor_release(twice);
    tensor_release(x);
    tensor_release(y);
    engine_close();
}

static void a_deep_graph_dies_without_recursion(void) {
    engine_open("ref", "fp32");
    Tensor *x = leaf(number(1));
    Tensor *y = tensor_hold(x);
    for (int i = 0; i < 300000; i++) {
        Tensor *next = op_one(engine, OP_neg, y, NULL, NULL);
        tensor_release(y);
        y = next;
    }
    tensor_release(y);
    tensor_release(x);
    engine_close();
}

static void a_second_walk_needs_the_graph_kept(void) {
    engine_open("ref", "fp32");
    Error error = {0};
    Tensor *x = leaf(number(3));
    Tensor *y = op_one(engine, OP_square, x, NULL, NULL);
    BackwardOptions keep = {.keep_graph = true};
    CHECK(engine_backward(engine, y, NULL, &keep, &error));
    CHECK(engine_backward(engine, y, NULL, NULL, &error));
    CHECK_NEAR(item(x->grad), 12, 0);
    CHECK(!engine_backward(engine, y, NULL, NULL, &error));
    CHECK_CONTAINS(error.text, "walked before");
    tensor_release(y);
    tensor_release(x);
    engine_close();
}

static void nothing_is_recorded_while_recording_is_off(void) {
    engine_open("ref", "fp32");
    Error error = {0};
    Tensor *x = leaf(number(3));
    CHECK(tape_set_enabled(engine->tape, false));
    Tensor *y = op_one(engine, OP_square, x, NULL, NULL);
    tape_set_enabled(engine->tape, true);
    CHECK(!tensor_wants_grad(y));
    CHECK(!engine_backward(engine, y, NULL, NULL, &error));
    CHECK_CONTAINS(error.text, "no_grad");
    tensor_release(y);
    tensor_release(x);
    engine_close();
}

static void a_detached_tensor_has_no_history(void) {
    engine_open("ref", "fp32");
    Tensor *x = leaf(number(3));
    Tensor *y = op_one(engine, OP_square, x, NULL, NULL);
    Tensor *cut = op_detach(engine, y, NULL);
    Tensor *z = op_two(engine, OP_mul, cut, x, NULL, NULL); // 9 x
    CHECK(engine_backward(engine, z, NULL, NULL, NULL));
    CHECK_NEAR(item(x->grad), 9, 0);
    tensor_release(z);
    tensor_release(cut);
    tensor_release(y);
    tensor_release(x);
    engine_close();
}

static void the_walk_back_can_be_differentiated(void) {
    engine_open("ref", "fp32");
    Error error = {0};
    Tensor *x = leaf(number(2));
    Tensor *square = op_two(engine, OP_mul, x, x, NULL, NULL);
    Tensor *cube = op_two(engine, OP_mul, square, x, NULL, NULL);
    Tensor *first = NULL;
    BackwardOptions options = {
        .create_graph = true, .inputs = &x, .results = &first, .input_count = 1};
    CHECK_MESSAGE(engine_backward(engine, cube, NULL, &options, &error), "%s", error.text);
    CHECK_NEAR(item(first), 12, 0); // 3 x²
    CHECK_MESSAGE(engine_backward(engine, first, NULL, NULL, &error), "%s", error.text);
    CHECK_NEAR(item(x->grad), 12, 0); // 6 x
    tensor_release(first);
    tensor_release(cube);
    tensor_release(square);
    tensor_release(x);
    engine_close();
}

static void a_missing_second_derivative_is_refused_by_name(void) {
    engine_open("ref", "fp32");
    Error error = {0};
    Tensor *x = leaf(number(2)), *first = NULL;
    Tensor *y = op_one(engine, OP_exp, x, NULL, NULL);
    BackwardOptions options = {
        .create_graph = true, .inputs = &x, .results = &first, .input_count = 1};
    CHECK(!engine_backward(engine, y, NULL, &options, &error));
    CHECK_CONTAINS(error.text, "exp_backward");
    tensor_release(first);
    tensor_release(y);
    tensor_release(x);
    engine_close();
}

static void a_loss_of_many_elements_needs_a_gradient_to_start_with(void) {
    engine_open("ref", "fp32");
    Error error = {0};
    Tensor *x = leaf(vector(2, (float[]){1, 2}));
    Tensor *y = op_one(engine, OP_square, x, NULL, NULL);
    CHECK(!engine_backward(engine, y, NULL, NULL, &error));
    CHECK_CONTAINS(error.text, "[2] fp32");
    Tensor *seed = vector(2, (float[]){1, 10});
    CHECK(engine_backward(engine, y, seed, NULL, &error));
    float gradient[2] = {0};
    CHECK(tensor_read(x->grad, gradient, NULL));
    CHECK_NEAR(gradient[0], 2, 0);
    CHECK_NEAR(gradient[1], 40, 0);
    tensor_release(seed);
    tensor_release(y);
    tensor_release(x);
    engine_close();
}

// A linear layer in bf16 under autocast: the gradient of the master comes in fp32, that of the
// input in the input's format, and the low copy is no node between them.
static void weights_get_fp32_gradients_through_low_copies(void) {
    engine_open("ref", "bf16");
    Error error = {0};
    float values[6] = {1, 2, 3, 4, 5, 6};
    Tensor *x = leaf(tensor_from_host(fixture_device, FORMAT_FP32, 2, (int64_t[]){1, 3}, values,
                                      MEMORY_DATA, NULL));
    Tensor *w = tensor_from_host(fixture_device, FORMAT_FP32, 2, (int64_t[]){2, 3}, values,
                                 MEMORY_WEIGHTS, NULL);
    CHECK(parameter_attach(w, "w", 0, false, NULL));
    engine->autocast.enabled = true;
    Tensor *bias = vector(2, (float[]){0, 0});
    CHECK(parameter_attach(bias, "bias", 0, true, NULL));
    // Made once while gradients are off: the copy must not cut the graph made later.
    tape_set_enabled(engine->tape, false);
    tensor_release(op_three(engine, OP_linear, x, w, NULL, NULL, NULL));
    tape_set_enabled(engine->tape, true);
    Tensor *y = op_three(engine, OP_linear, x, w, bias, NULL, &error);
    CHECK_INT(y->view.format, FORMAT_BF16);
    Tensor *loss = op_one(engine, OP_sum, y, NULL, &error);
    CHECK_INT(loss->view.format, FORMAT_FP32);
    CHECK_MESSAGE(engine_backward(engine, loss, NULL, NULL, &error), "%s", error.text);
    CHECK(w->grad && w->grad->view.format == FORMAT_FP32);
    CHECK(x->grad && x->grad->view.format == FORMAT_FP32);
    CHECK_INT(parameter_of(w)->round_to, FORMAT_BF16);
    CHECK_INT(parameter_of(bias)->round_to, FORMAT_BF16);
    CHECK(bias->grad && bias->grad->view.format == FORMAT_FP32);
    float gradient[6] = {0};
    CHECK(tensor_read(w->grad, gradient, NULL));
    CHECK_NEAR(gradient[4], 2, 0);
    tensor_release(loss);
    tensor_release(y);
    tensor_release(x);
    tensor_release(w);
    tensor_release(bias);
    engine_close();
}

// What a weight's gradients are rounded to is what the pass that they come from computed in.
static void a_pass_without_gradients_leaves_their_rounding_alone(void) {
    engine_open("ref", "bf16");
    float values[2] = {1, 2};
    Tensor *x = tensor_from_host(fixture_device, FORMAT_FP32, 2, (int64_t[]){1, 2}, values,
                                 MEMORY_DATA, NULL);
    Tensor *w = tensor_from_host(fixture_device, FORMAT_FP32, 2, (int64_t[]){1, 2}, values,
                                 MEMORY_WEIGHTS, NULL);
    Tensor *bias = vector(1, values);
    CHECK(parameter_attach(w, "w", 0, false, NULL));
    CHECK(parameter_attach(bias, "bias", 0, true, NULL));
    for (int low = 1; low >= 0; low--) { // trained in bf16, looked at in fp32
        engine->autocast.enabled = low;
        tape_set_enabled(engine->tape, low);
        Tensor *y = op_three(engine, OP_linear, x, w, bias, NULL, NULL);
        CHECK_INT(y->view.format, low ? FORMAT_BF16 : FORMAT_FP32);
        CHECK_INT(parameter_of(w)->round_to, FORMAT_BF16);
        CHECK_INT(parameter_of(bias)->round_to, FORMAT_BF16);
        tensor_release(y);
    }
    tensor_release(x);
    tensor_release(w);
    tensor_release(bias);
    engine_close();
}

int main(void) {
    RUN_TEST(gradients_of_a_sum_of_products);
    RUN_TEST(gradients_accumulate_over_walks);
    RUN_TEST(gradients_of_leaves_share_no_memory);
    RUN_TEST(a_deep_graph_dies_without_recursion);
    RUN_TEST(a_second_walk_needs_the_graph_kept);
    RUN_TEST(nothing_is_recorded_while_recording_is_off);
    RUN_TEST(a_detached_tensor_has_no_history);
    RUN_TEST(the_walk_back_can_be_differentiated);
    RUN_TEST(a_missing_second_derivative_is_refused_by_name);
    RUN_TEST(a_loss_of_many_elements_needs_a_gradient_to_start_with);
    RUN_TEST(weights_get_fp32_gradients_through_low_copies);
    RUN_TEST(a_pass_without_gradients_leaves_their_rounding_alone);
    return test_end();
}
