// The tape: what is recorded, how gradients add up, how graphs live and die.
#include "kernel/allocator.h"
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
// The product's gradient has arrived at a leaf when the square is found to be lost.
static void a_walk_that_fails_leaves_gradients_as_they_were(void) {
    engine_open("ref", "fp32");
    const float values[2] = {1, 2}, sevens[2] = {7, 7};
    for (int had_one = 0; had_one < 2; had_one++) {
        Tensor *first = leaf(vector(2, values)), *second = leaf(vector(2, values));
        Tensor *inner = op_one(engine, OP_neg, second, NULL, NULL);
        Tensor *square = op_one(engine, OP_square, inner, NULL, NULL);
        Tensor *product = op_two(engine, OP_mul, square, first, NULL, NULL);
        Tensor *loss = op_one(engine, OP_sum, product, NULL, NULL);
        Tensor *other = vector(2, sevens);
        Error error = {0};
        if (had_one)
            CHECK(tape_set_gradient(engine->tape, first, other, &error));
        CHECK(tensor_copy_into(inner, other, &error));
        CHECK(!engine_backward(engine, loss, NULL, NULL, &error));
        CHECK_MESSAGE(strstr(error.text, "was overwritten since"), "%s", error.text);
        CHECK((first->grad != NULL) == had_one);
        float kept[2] = {7, 7};
        if (first->grad)
            CHECK(tensor_read(first->grad, kept, &error));
        CHECK_NEAR(kept[1], 7, 0);
        CHECK(!second->grad);
        Tensor *const all[] = {first, second, inner, square, product, loss, other};
        for (int i = 0; i < 7; i++)
            tensor_release(all[i]);
    }
    engine_close();
}

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
    CHECK_CONTAINS(error.text, "keep it with t:backward(nil, { keep_graph = true })");
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

// Whatever calls a kernel that has no derivative, where one is asked for, is told.
static void a_missing_derivative_is_refused_by_name(void) {
    engine_open("ref", "fp32");
    Error error = {0};
    Tensor *x = leaf(vector(2, (float[]){1, 2}));
    CHECK(!op_two(engine, OP_softmax_backward, x, x, NULL, &error));
    CHECK_CONTAINS(error.text, "softmax_backward");
    CHECK_CONTAINS(error.text, "no second derivative");
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

// A norm that was low, by what --keep-fp32 does not keep, and goes back; a weight that a product
// takes too is as the product has it.
static void gradients_of_a_norm_that_was_low_are_rounded_no_more(void) {
    const Keep nothing = {.is_given = true};
    engine_open("ref", "fp32");
    const float values[2] = {1, 2};
    const int norm = policy_add_layer(engine->policy, "norm", 0, NULL);
    Tensor *x = tensor_from_host(fixture_device, FORMAT_FP32, 2, (int64_t[]){1, 2}, values,
                                 MEMORY_DATA, NULL);
    Tensor *weight = vector(2, values);
    CHECK(parameter_attach(weight, "norm.weight", norm, true, NULL));
    policy_set_keep(engine->policy, &nothing);
    engine->autocast.enabled = true;
    engine->layer = norm;
    for (int low = 1; low >= 0; low--) {
        Tensor *outputs[OP_MAX_OUTPUTS] = {NULL};
        policy_set_layer(engine->policy, norm, low ? LAYER_BF16 : LAYER_AUTO);
        const OpAttr attr = {.norm = {.epsilon = 1e-5}};
        CHECK(op_apply(engine, OP_layer_norm, (Tensor *[]){x, weight, NULL}, 3, &attr, outputs,
                       NULL));
        CHECK_INT(outputs[0]->view.format, low ? FORMAT_BF16 : FORMAT_FP32);
        CHECK_INT(parameter_of(weight)->round_to, low ? FORMAT_BF16 : FORMAT_FP32);
        for (int i = 0; i < 3; i++)
            tensor_release(outputs[i]);
    }
    tensor_release(x);
    tensor_release(weight);
    engine_close();
}

// ---- derivatives of derivatives -----------------------------------------------------------------

// The derivative of y by x, recorded; NULL where it was refused.
static Tensor *derivative(Tensor *y, Tensor *x, Error *error) {
    Tensor *result = NULL;
    BackwardOptions options = {
        .create_graph = true, .inputs = &x, .results = &result, .input_count = 1};
    if (engine_backward(engine, y, NULL, &options, error))
        return result;
    tensor_release(result);
    return NULL;
}

static Tensor *sum_of(Tensor *x) {
    return op_one(engine, OP_sum, x, NULL, NULL);
}

// A quotient's derivative needs the quotient: what it saved must lead back, however often.
static void derivatives_of_a_quotient_go_on_and_on(void) {
    engine_open("ref", "fp32");
    Tensor *x = leaf(number(2)), *one = number(1);
    Tensor *y[4] = {op_two(engine, OP_div, one, x, NULL, NULL)};
    const double expected[4] = {1.0 / 2, -1.0 / 4, 2.0 / 8, -6.0 / 16};
    for (int i = 1; i < 4; i++) {
        Error error = {0};
        y[i] = y[i - 1] ? derivative(y[i - 1], x, &error) : NULL;
        CHECK_MESSAGE(y[i], "derivative %d: %s", i, error.text);
        CHECK_NEAR(item(y[i]), expected[i], 1e-6);
    }
    for (int i = 0; i < 4; i++)
        tensor_release(y[i]);
    tensor_release(one);
    tensor_release(x);
    engine_close();
}

static void lines_and_means_have_second_derivatives(void) {
    engine_open("ref", "fp32");
    Error error = {0};
    Tensor *x = leaf(vector(2, (float[]){2, 3}));
    OpAttr line = {.has_out_format = false};
    line.scalar.a = 3;
    line.scalar.b = 1;
    Tensor *a = op_one(engine, OP_affine, x, &line, NULL),
           *b = op_one(engine, OP_neg, x, NULL, NULL);
    Tensor *product = op_two(engine, OP_mul, a, b, NULL, NULL); // -3 x² - x
    Tensor *y = op_one(engine, OP_mean, product, NULL, NULL);
    Tensor *first = derivative(y, x, &error);
    CHECK_MESSAGE(first, "%s", error.text);
    Tensor *total = first ? sum_of(first) : NULL;
    CHECK_NEAR(item(total), (-6 * 2 - 1 - 6 * 3 - 1) / 2.0, 1e-6);
    Tensor *second = total ? derivative(total, x, &error) : NULL;
    CHECK_MESSAGE(second, "%s", error.text);
    float values[2] = {0};
    CHECK(second && tensor_read(second, values, NULL));
    CHECK_NEAR(values[0], -3, 1e-6);
    CHECK_NEAR(values[1], -3, 1e-6);
    Tensor *const all[] = {x, a, b, product, y, first, total, second};
    for (int i = 0; i < 8; i++)
        tensor_release(all[i]);
    engine_close();
}

// y = x w', L = sum y². With e all ones: the sum of dL/dw = 2 y'x is 2 y'x e, whose derivatives are
// 2 (x e) w + 2 y e' by x and 2 (x e)' x by w; that of dL/dx = 2 y w is 2 (e'y) (w e), whose
// derivatives are 2 (w e) e w and 2 (w e) e'x + 2 (e'y) e'.
static void check_second_derivatives(bool low, bool turned, bool by_x) {
    engine_open("ref", low ? "bf16" : "fp32");
    Error error = {0};
    const float rows[4] = {1, 2, 3, 5}, columns[4] = {1, 3, 2, 5}, weights[2] = {2, -1};
    Tensor *x = leaf(tensor_from_host(fixture_device, FORMAT_FP32, 2, (int64_t[]){2, 2},
                                      turned ? columns : rows, MEMORY_DATA, NULL));
    Tensor *w = tensor_from_host(fixture_device, FORMAT_FP32, 2, (int64_t[]){1, 2}, weights,
                                 MEMORY_WEIGHTS, NULL);
    CHECK(parameter_attach(w, "w", 0, false, NULL));
    Tensor *given = turned ? op_transpose(engine, x, 0, 1, NULL) : tensor_hold(x);
    engine->autocast.enabled = low;
    Tensor *y = op_three(engine, OP_linear, given, w, NULL, NULL, NULL);
    engine->autocast.enabled = false;
    CHECK_INT(y->view.format, low ? FORMAT_BF16 : FORMAT_FP32);
    Tensor *squares = op_two(engine, OP_mul, y, y, NULL, NULL), *loss = sum_of(squares);
    Tensor *first = derivative(loss, by_x ? x : w, &error);
    CHECK_MESSAGE(first, "%s", error.text);
    Tensor *total = first ? sum_of(first) : NULL;
    CHECK_NEAR(item(total), by_x ? 2 : 16, 1e-6);
    CHECK_MESSAGE(total && engine_backward(engine, total, NULL, NULL, &error), "%s", error.text);
    float dx[4] = {NAN}, dw[2] = {NAN};
    CHECK(x->grad && tensor_read(x->grad, dx, NULL));
    CHECK(w->grad && tensor_read(w->grad, dw, NULL));
    const float expected_dx[2][4] = {{12, -6, 34, -14}, {4, -2, 4, -2}};
    const float expected_dw[2][2] = {{54, 92}, {10, 16}};
    for (int i = 0; i < 4; i++) {
        int at = turned ? i % 2 * 2 + i / 2 : i;
        CHECK_NEAR(dx[at], expected_dx[by_x][i], 1e-6);
    }
    for (int i = 0; i < 2; i++)
        CHECK_NEAR(dw[i], expected_dw[by_x][i], 1e-6);
    Tensor *const all[] = {x, w, given, y, squares, loss, first, total};
    for (int i = 0; i < 8; i++)
        tensor_release(all[i]);
    engine_close();
}

static void second_derivatives_go_through_what_products_read(void) {
    for (int i = 0; i < 8; i++) // low copies, copies made dense, both
        check_second_derivatives(i & 1, i & 2, i & 4);
}

enum { SIDE = 64, ARRAY = SIDE * SIDE * (int)sizeof(float) };

// SIDE rows of SIDE numbers, all ones; of a convolution as many pixels, or filters of one tap.
static Tensor *ones_of(OpId op, bool is_weight) {
    static float ones[SIDE * SIDE];
    const int64_t plain[] = {SIDE, SIDE}, image[] = {1, 8, SIDE / 8, SIDE},
                  filters[] = {SIDE, 1, 1, SIDE};
    for (int i = 0; i < SIDE * SIDE; i++)
        ones[i] = 1;
    const int64_t *shape = op != OP_conv2d ? plain : is_weight ? filters : image;
    return tensor_from_host(fixture_device, FORMAT_FP32, op == OP_conv2d ? 4 : 2, shape, ones,
                            MEMORY_DATA, NULL);
}

// Two products, one behind the other, of which layers have RELU behind them.
static Tensor *loss_of_two(OpId op, Tensor *w[2]) {
    OpAttr attr = {.linear.activation = ACTIVATION_RELU};
    if (op == OP_conv2d)
        attr.conv = (ConvAttr){
            .stride = {1, 1}, .dilation = {1, 1}, .groups = 1, .activation = ACTIVATION_RELU};
    Tensor *held = ones_of(op, false);
    for (int i = 0; i < 2; i++) {
        w[i] = leaf(ones_of(op, true));
        Tensor *y = op == OP_matmul ? op_two(engine, op, held, w[i], NULL, NULL)
                                    : op_three(engine, op, held, w[i], NULL, &attr, NULL);
        CHECK(y);
        tensor_release(held);
        held = y;
    }
    Tensor *loss = op_one(engine, OP_sum, held, NULL, NULL);
    tensor_release(held);
    return loss;
}

// How much a walk holds at once beyond what the graph does.
static size_t held_by_walk(OpId op, bool keeps) {
    Error error = {0};
    Tensor *w[2], *loss = loss_of_two(op, w);
    Allocator *allocator = fixture_device->allocator;
    const size_t before = allocator_use(allocator).total_now;
    allocator_forget_peaks(allocator);
    const BackwardOptions options = {.keep_graph = keeps};
    CHECK_MESSAGE(engine_backward(engine, loss, NULL, &options, &error), "%s", error.text);
    const size_t more = allocator_use(allocator).total_peak - before;
    CHECK(engine_backward(engine, loss, NULL, NULL, &error) == keeps);
    tensor_release(loss);
    tensor_release(w[0]), tensor_release(w[1]);
    return more;
}

// Of a product its first factor is given back once it was read; of a layer with RELU behind it the
// gradient that came and its output, too.
static void a_walk_gives_back_what_it_has_read(void) {
    static const struct {
        OpId op;
        int less; // arrays held at once, than where the graph is kept
    } rows[] = {{OP_linear, 2}, {OP_matmul, 1}, {OP_conv2d, 2}};
    engine_open("ref", "fp32");
    for (int i = 0; i < 3; i++) {
        const size_t kept = held_by_walk(rows[i].op, true), given = held_by_walk(rows[i].op, false);
        CHECK_MESSAGE(given + (size_t)rows[i].less * ARRAY <= kept,
                      "%s: %zu bytes beyond what the graph holds, %zu where it is kept",
                      op_table[rows[i].op].name, given, kept);
    }
    engine_close();
}

int main(void) {
    RUN_TEST(gradients_of_a_sum_of_products);
    RUN_TEST(gradients_accumulate_over_walks);
    RUN_TEST(a_walk_that_fails_leaves_gradients_as_they_were);
    RUN_TEST(gradients_of_leaves_share_no_memory);
    RUN_TEST(a_deep_graph_dies_without_recursion);
    RUN_TEST(a_second_walk_needs_the_graph_kept);
    RUN_TEST(nothing_is_recorded_while_recording_is_off);
    RUN_TEST(a_detached_tensor_has_no_history);
    RUN_TEST(the_walk_back_can_be_differentiated);
    RUN_TEST(a_missing_derivative_is_refused_by_name);
    RUN_TEST(a_loss_of_many_elements_needs_a_gradient_to_start_with);
    RUN_TEST(weights_get_fp32_gradients_through_low_copies);
    RUN_TEST(a_pass_without_gradients_leaves_their_rounding_alone);
    RUN_TEST(gradients_of_a_norm_that_was_low_are_rounded_no_more);
    RUN_TEST(derivatives_of_a_quotient_go_on_and_on);
    RUN_TEST(lines_and_means_have_second_derivatives);
    RUN_TEST(second_derivatives_go_through_what_products_read);
    RUN_TEST(a_walk_gives_back_what_it_has_read);
    return test_end();
}
