// The reference device's products, norms, rows and pools against values that can be checked by
// hand.
#include "tests/unit/ref_arrays.h"

// ---- products -----------------------------------------------------------------------------------

static void matmul_multiplies_batches_by_one_matrix_and_through_strides(void) {
    View a = array_of(FORMAT_FP32, SHAPE(2, 2, 2), VALUES(1, 2, 3, 4, 5, 6, 7, 8));
    View b = array_of(FORMAT_BF16, SHAPE(2, 2), VALUES(1, 2, 3, 4));
    View y = array(FORMAT_FP64, SHAPE(2, 2, 2));
    CHECK(RUN(matmul, NULL, IN(a, b), y));
    CHECK_VALUES(y, 0, 7, 10, 15, 22, 23, 34, 31, 46);
    b.stride[0] = 1; // transposed
    b.stride[1] = 2;
    CHECK(RUN(matmul, NULL, IN(a, b), y));
    CHECK_VALUES(y, 0, 5, 11, 11, 25, 17, 39, 23, 53);
}

static void linear_adds_the_bias_before_the_activation_and_rounds_once(void) {
    View x = array_of(FORMAT_FP32, SHAPE(1, 2), VALUES(1, 2));
    View w = array_of(FORMAT_FP32, SHAPE(3, 2), VALUES(1, 1, -1, -1, 2, 1024));
    View bias = array_of(FORMAT_FP32, SHAPE(3), VALUES(0.5, 1, 1));
    View y = array(FORMAT_FP16, SHAPE(1, 3));
    OpAttr attr = {.linear.activation = ACTIVATION_RELU};
    CHECK(RUN(linear, &attr, IN(x, w, bias), y));
    CHECK_VALUES(y, 0, 3.5, 0, 2052); // 2051 lies between 2050 and 2052: the even one
    CHECK(RUN(linear, NULL, IN(x, w, absent), y));
    CHECK_VALUES(y, 0, 3, -3, 2050);
}

static void conv2d_pads_strides_and_groups(void) {
    View x = array_of(FORMAT_FP32, SHAPE(1, 2, 2, 2), VALUES(1, 10, 2, 20, 3, 30, 4, 40));
    View w = array_of(FORMAT_FP32, SHAPE(2, 2, 2, 1), VALUES(1, 2, 3, 4, 1, 1, 1, 1));
    View bias = array_of(FORMAT_FP32, SHAPE(2), VALUES(0, 5));
    View y = array(FORMAT_FP64, SHAPE(1, 2, 2, 2));
    OpAttr attr = {
        .conv = {
            .stride = {2, 2}, .padding = {1, 1}, .dilation = {1, 1}, .groups = 2, .input = {2, 2}}};
    CHECK(RUN(conv2d, &attr, IN(x, w, bias), y));
    // Each output sees one pixel, at another corner of the window.
    CHECK_VALUES(y, 0, 4, 15, 6, 25, 6, 35, 4, 45);
    attr.conv.padding[0] = attr.conv.padding[1] = 0;
    View one = array(FORMAT_FP64, SHAPE(1, 1, 1, 2));
    CHECK(RUN(conv2d, &attr, IN(x, w, absent), one));
    CHECK_VALUES(one, 0, 1 + 4 + 9 + 16, 100);
    View row = array_of(FORMAT_FP32, SHAPE(1, 1, 5, 1), VALUES(1, 2, 3, 4, 5));
    View pair = array_of(FORMAT_FP32, SHAPE(1, 1, 2, 1), VALUES(1, 10));
    View apart = array(FORMAT_FP64, SHAPE(1, 1, 3, 1));
    OpAttr dilated = {.conv = {.stride = {1, 1}, .dilation = {1, 2}, .groups = 1}};
    CHECK(RUN(conv2d, &dilated, IN(row, pair, absent), apart));
    CHECK_VALUES(apart, 0, 31, 42, 53);
}

// dot(dy, f(x)) changes with x as dot(dx, .) says, since both products are linear.
static void conv2d_gradients_are_the_transposes(void) {
    OpAttr attr = {
        .conv = {
            .stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}, .groups = 2, .input = {4, 5}}};
    View x = array(FORMAT_FP64, SHAPE(2, 4, 5, 2)), dx = array(FORMAT_FP64, SHAPE(2, 4, 5, 2));
    View w = array(FORMAT_FP64, SHAPE(4, 3, 2, 1)), dw = array(FORMAT_FP64, SHAPE(4, 3, 2, 1));
    View y = array(FORMAT_FP64, SHAPE(2, 2, 3, 4)), dy = array(FORMAT_FP64, SHAPE(2, 2, 3, 4));
    View dbias = array(FORMAT_FP64, SHAPE(4));
    for (int64_t i = 0; i < view_count(&x); i++)
        set(&x, i, sin((double)i));
    for (int64_t i = 0; i < view_count(&w); i++)
        set(&w, i, cos((double)i));
    for (int64_t i = 0; i < view_count(&dy); i++)
        set(&dy, i, sin(1 + 3 * (double)i));
    CHECK(RUN(conv2d, &attr, IN(x, w, absent), y));
    CHECK(RUN(conv2d_backward_input, &attr, IN(dy, w), dx));
    CHECK(RUN(conv2d_backward_weight, &attr, IN(x, dy), dw, dbias));
    double by_y = 0, by_x = 0, by_w = 0, first_filter = 0;
    for (int64_t i = 0; i < view_count(&y); i++) {
        by_y += at(&y, i) * at(&dy, i);
        first_filter += i % 4 == 0 ? at(&dy, i) : 0;
    }
    for (int64_t i = 0; i < view_count(&x); i++)
        by_x += at(&x, i) * at(&dx, i);
    for (int64_t i = 0; i < view_count(&w); i++)
        by_w += at(&w, i) * at(&dw, i);
    CHECK(fabs(by_y) > 0.1);
    CHECK_NEAR(by_x, by_y, 1e-12);
    CHECK_NEAR(by_w, by_y, 1e-12);
    CHECK_NEAR(at(&dbias, 0), first_filter, 1e-12);
    CHECK(RUN(conv2d_backward_weight, &attr, IN(x, dy), dw, absent));
}

static void attention_averages_the_values_it_may_see(void) {
    View q = array_of(FORMAT_FP32, SHAPE(1, 2, 1, 1), VALUES(0, 1));
    View k = array_of(FORMAT_FP32, SHAPE(1, 2, 1, 1), VALUES(0, log(3)));
    View v = array_of(FORMAT_FP32, SHAPE(1, 2, 1, 1), VALUES(4, 8));
    View y = array(FORMAT_FP64, SHAPE(1, 2, 1, 1)), sums = array(FORMAT_FP32, SHAPE(2, 1, 1, 2));
    OpAttr attr = {.attention = {.scale = 1}};
    CHECK(RUN(attention, &attr, IN(q, k, v), y, sums));
    CHECK_VALUES(y, 1e-6, 6, 7); // weights 1:1, then 1:3
    CHECK_VALUES(sums, 1e-6, 0, log(3), log(2), log(4.0 / 3));
    attr.attention.causal = true;
    CHECK(RUN(attention, &attr, IN(q, k, v), y, sums));
    CHECK_VALUES(y, 1e-6, 4, 7);
    CHECK_VALUES(sums, 1e-6, 0, log(3), 0, log(4.0 / 3));
}

static void attention_gradients_match_differences(void) {
    OpAttr attr = {.attention = {.scale = 0.7, .causal = true}};
    View in[3], d[3], dy = array(FORMAT_FP64, SHAPE(1, 3, 2, 2));
    View y = array(FORMAT_FP64, SHAPE(1, 3, 2, 2)), sums = array(FORMAT_FP64, SHAPE(2, 1, 2, 3));
    for (int k = 0; k < 3; k++) {
        in[k] = array(FORMAT_FP64, SHAPE(1, 3, 2, 2));
        d[k] = array(FORMAT_FP64, SHAPE(1, 3, 2, 2));
        for (int i = 0; i < 12; i++)
            set(&in[k], i, sin(1 + i + 12 * k));
    }
    for (int i = 0; i < 12; i++)
        set(&dy, i, cos(5 * i));
    CHECK(RUN(attention, &attr, IN(in[0], in[1], in[2]), y, sums));
    CHECK(RUN(attention_backward, &attr, IN(dy, in[0], in[1], in[2], y, sums), d[0], d[1], d[2]));
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 12; i++) {
            double change = 0, value = at(&in[k], i), step = 1e-5;
            for (int side = -1; side <= 1; side += 2) {
                set(&in[k], i, value + side * step);
                CHECK(RUN(attention, &attr, IN(in[0], in[1], in[2]), y, sums));
                for (int j = 0; j < 12; j++)
                    change += side * at(&y, j) * at(&dy, j);
            }
            set(&in[k], i, value);
            CHECK_NEAR(at(&d[k], i), change / (2 * step), 1e-8);
        }
}

// ---- normalisation ------------------------------------------------------------------------------

static void norms_take_their_own_means(void) {
    OpAttr attr = {.norm = {.epsilon = 0, .groups = 2, .momentum = 0.5, .count = 2}};
    View x = array_of(FORMAT_FP32, SHAPE(2, 4), VALUES(1, 3, 10, 30, 5, 5.5, 20, 10));
    View y = array(FORMAT_FP64, SHAPE(2, 4));
    View mean4 = array(FORMAT_FP32, SHAPE(4)), inverse4 = array(FORMAT_FP32, SHAPE(4));
    View weight = array_of(FORMAT_FP32, SHAPE(4), VALUES(1, 1, 2, 1));
    View bias = array_of(FORMAT_FP32, SHAPE(4), VALUES(0, 0, 7, 0));
    CHECK(RUN(batch_norm, &attr, IN(x, weight, bias), y, mean4, inverse4));
    CHECK_VALUES(mean4, 1e-6, 3, 4.25, 15, 20);
    CHECK_VALUES(inverse4, 1e-6, 0.5, 0.8, 0.2, 0.1);
    CHECK_VALUES(y, 1e-12, -1, -1, 5, 1, 1, 1, 9, -1);
    View old = array_of(FORMAT_FP32, SHAPE(4), VALUES(1, 0, 0, 0));
    View new_mean = array(FORMAT_FP32, SHAPE(4)), new_variance = array(FORMAT_FP32, SHAPE(4));
    CHECK(RUN(batch_norm_track, &attr, IN(old, old, mean4, inverse4), new_mean, new_variance));
    CHECK_VALUES(new_mean, 1e-6, 2, 2.125, 7.5, 10);
    CHECK_VALUES(new_variance, 1e-4, 4.5, 1.5625, 25, 100); // 2/1 times the biased variance
    CHECK(RUN(batch_norm_infer, &attr, IN(x, absent, bias, new_mean, new_variance), y));
    CHECK_NEAR(at(&y, 2), (10 - 7.5) / 5 + 7, 1e-6);

    View mean2 = array(FORMAT_FP32, SHAPE(2)), inverse2 = array(FORMAT_FP32, SHAPE(2));
    CHECK(RUN(layer_norm, &attr, IN(x, absent, absent), y, mean2, inverse2));
    CHECK_VALUES(mean2, 1e-6, 11, 10.125);
    CHECK_NEAR(at(&inverse2, 0), 1 / sqrt((100 + 64 + 1 + 361) / 4.0), 1e-7);
    CHECK_NEAR(at(&y, 3), 19 / sqrt(131.5), 1e-12);

    View means = array(FORMAT_FP32, SHAPE(2, 2)), inverses = array(FORMAT_FP32, SHAPE(2, 2));
    CHECK(RUN(group_norm, &attr, IN(x, weight, bias), y, means, inverses));
    CHECK_VALUES(means, 1e-6, 2, 20, 5.25, 15);
    CHECK_VALUES(y, 1e-9, -1, 1, 5, 1, -1, 1, 9, -1);
}

static void check_norm_gradient(OpId forward, OpId backward, int mean_ndim, const int64_t *shape,
                                bool weighted) {
    OpAttr attr = {.norm = {.epsilon = 0.1, .groups = 2}};
    View x = array(FORMAT_FP64, SHAPE(2, 3, 4)), dx = array(FORMAT_FP64, SHAPE(2, 3, 4));
    View y = array(FORMAT_FP64, SHAPE(2, 3, 4)), dy = array(FORMAT_FP64, SHAPE(2, 3, 4));
    View weight = weighted ? array_of(FORMAT_FP64, SHAPE(4), VALUES(1, 2, 0.5, -1)) : absent;
    View dweight = weighted ? array(FORMAT_FP64, SHAPE(4)) : absent;
    View dbias = weighted ? array(FORMAT_FP64, SHAPE(4)) : absent;
    View mean = array(FORMAT_FP64, mean_ndim, shape),
         inverse = array(FORMAT_FP64, mean_ndim, shape);
    for (int i = 0; i < 24; i++) {
        set(&x, i, sin(1 + i));
        set(&dy, i, cos(3 * i));
    }
    CHECK(run_op(forward, &attr, IN(x, weight, absent), IN(y, mean, inverse)));
    CHECK(run_op(backward, &attr, IN(dy, x, weight, mean, inverse), IN(dx, dweight, dbias)));
    for (int i = 0; i < 24 + (weighted ? 4 : 0); i++) {
        View *view = i < 24 ? &x : &weight, *gradient = i < 24 ? &dx : &dweight;
        double change = 0, value = at(view, i % 24), step = 1e-5;
        for (int side = -1; side <= 1; side += 2) {
            set(view, i % 24, value + side * step);
            CHECK(run_op(forward, &attr, IN(x, weight, absent), IN(y, mean, inverse)));
            for (int j = 0; j < 24; j++)
                change += side * at(&y, j) * at(&dy, j);
        }
        set(view, i % 24, value);
        CHECK_NEAR(at(gradient, i % 24), change / (2 * step), 1e-8);
    }
    if (weighted)
        CHECK_NEAR(at(&dbias, 1), cos(3) + cos(15) + cos(27) + cos(39) + cos(51) + cos(63), 1e-12);
}

static void norm_gradients_match_differences(void) {
    check_norm_gradient(OP_batch_norm, OP_batch_norm_backward, SHAPE(4), true);
    check_norm_gradient(OP_layer_norm, OP_layer_norm_backward, SHAPE(2, 3), true);
    check_norm_gradient(OP_layer_norm, OP_layer_norm_backward, SHAPE(2, 3), false);
    check_norm_gradient(OP_group_norm, OP_group_norm_backward, SHAPE(2, 2), true);
}

// ---- rows ---------------------------------------------------------------------------------------

static void softmax_holds_for_large_inputs(void) {
    View x = array_of(FORMAT_FP32, SHAPE(2, 2), VALUES(0, log(3), 60000, 60000));
    View y = array(FORMAT_FP64, SHAPE(2, 2)), dx = array(FORMAT_FP64, SHAPE(2, 2));
    View dy = array_of(FORMAT_FP64, SHAPE(2, 2), VALUES(1, 0, 2, 4));
    CHECK(RUN(softmax, NULL, IN(x), y));
    CHECK_VALUES(y, 1e-7, 0.25, 0.75, 0.5, 0.5);
    CHECK(RUN(softmax_backward, NULL, IN(dy, y), dx));
    CHECK_VALUES(dx, 1e-7, 0.1875, -0.1875, -0.5, 0.5);
    CHECK(RUN(log_softmax, NULL, IN(x), y));
    CHECK_VALUES(y, 1e-7, log(0.25), log(0.75), -log(2), -log(2));
    CHECK(RUN(log_softmax_backward, NULL, IN(dy, y), dx));
    CHECK_VALUES(dx, 1e-6, 0.75, -0.75, -1, 1);
}

static void cross_entropy_leaves_out_class_minus_one(void) {
    View x = array_of(FORMAT_FP32, SHAPE(3, 2), VALUES(0, 0, 5, 6, 0, log(3)));
    View classes = array_of(FORMAT_INT32, SHAPE(3), VALUES(0, -1, 1));
    View loss = array(FORMAT_FP64, 0, NULL), sums = array(FORMAT_FP64, SHAPE(2, 3));
    View dx = array(FORMAT_FP64, SHAPE(3, 2)), dloss = number(4);
    CHECK(RUN(cross_entropy, NULL, IN(x, classes), loss, sums));
    CHECK_NEAR(at(&loss, 0), (log(2) + log(4.0 / 3)) / 2, 1e-7);
    CHECK(RUN(cross_entropy_backward, NULL, IN(dloss, x, sums, classes), dx));
    CHECK_VALUES(dx, 1e-6, -1, 1, 0, 0, 0.5, -0.5);
    for (int i = 0; i < 3; i++)
        set(&classes, i, -1);
    CHECK(RUN(cross_entropy, NULL, IN(x, classes), loss, sums));
    CHECK_VALUES(loss, 0, NAN); // no mean
    CHECK(RUN(cross_entropy_backward, NULL, IN(dloss, x, sums, classes), dx));
    CHECK_VALUES(dx, 0, 0, 0, 0, 0, 0, 0);
}

static void a_class_out_of_range_is_named(void) {
    View x = array_of(FORMAT_FP32, SHAPE(2, 2), VALUES(0, 0, 0, 0));
    View classes = array_of(FORMAT_INT32, SHAPE(2), VALUES(0, 2));
    View loss = array(FORMAT_FP32, 0, NULL), sums = array(FORMAT_FP32, SHAPE(2, 2));
    CHECK(!RUN(cross_entropy, NULL, IN(x, classes), loss, sums));
    CHECK_TEXT(last_error.text, "class 2 at row 2: the logits have 2 classes");
    set(&classes, 1, -2);
    CHECK(!RUN(accuracy, NULL, IN(x, classes), loss));
    CHECK_TEXT(last_error.text, "class -2 at row 2: the logits have 2 classes");
}

static void accuracy_takes_the_first_of_equals_and_no_nan(void) {
    View x = array_of(FORMAT_FP32, SHAPE(4, 2), VALUES(1, 1, 1, 1, 2, NAN, 0, 3));
    View classes = array_of(FORMAT_INT32, SHAPE(4), VALUES(0, 1, 0, 1));
    View share = array(FORMAT_FP32, 0, NULL);
    CHECK(RUN(accuracy, NULL, IN(x, classes), share));
    CHECK_VALUES(share, 0, 0.5);
    set(&classes, 1, -1); // left out: two of three
    CHECK(RUN(accuracy, NULL, IN(x, classes), share));
    CHECK_NEAR(at(&share, 0), 2 / 3.0, 1e-7);
}

static void order_is_falling_with_nan_first(void) {
    View x = array_of(FORMAT_FP32, SHAPE(2, 4), VALUES(1, 5, 5, 3, 7, 9, NAN, 8));
    View best = array(FORMAT_INT32, SHAPE(2));
    View values = array(FORMAT_FP32, SHAPE(2, 3)), indices = array(FORMAT_INT32, SHAPE(2, 3));
    CHECK(RUN(argmax, NULL, IN(x), best));
    CHECK_VALUES(best, 0, 1, 2);
    CHECK(RUN(topk, NULL, IN(x), values, indices));
    CHECK_VALUES(values, 0, 5, 5, 3, NAN, 9, 8);
    CHECK_VALUES(indices, 0, 1, 2, 3, 2, 1, 3);
}

// ---- pooling ------------------------------------------------------------------------------------

static void max_pool_remembers_the_first_largest(void) {
    OpAttr attr = {
        .pool = {.kernel = {2, 2}, .stride = {2, 2}, .padding = {1, 1}, .input = {3, 3}}};
    View x = array_of(FORMAT_FP32, SHAPE(1, 3, 3, 1), VALUES(-1, -2, -2, -3, 4, 4, -5, 4, NAN));
    View y = array(FORMAT_FP32, SHAPE(1, 2, 2, 1)), where = array(FORMAT_UINT8, SHAPE(1, 2, 2, 1));
    View dx = array(FORMAT_FP32, SHAPE(1, 3, 3, 1));
    View dy = array_of(FORMAT_FP32, SHAPE(1, 2, 2, 1), VALUES(1, 2, 3, 4));
    CHECK(RUN(max_pool2d, &attr, IN(x), y, where));
    CHECK_VALUES(y, 0, -1, -2, -3, NAN);
    CHECK_VALUES(where, 0, 3, 2, 1, 3); // row of the window times 2, plus column
    CHECK(RUN(max_pool2d_backward, &attr, IN(dy, where), dx));
    CHECK_VALUES(dx, 0, 1, 2, 0, 3, 0, 0, 0, 0, 4);
    set(&x, 8, 0);
    CHECK(RUN(max_pool2d, &attr, IN(x), y, where));
    CHECK_NEAR(at(&where, 3), 0, 0); // three fours: the first
}

static void avg_pool_counts_padding(void) {
    OpAttr attr = {
        .pool = {.kernel = {2, 2}, .stride = {1, 1}, .padding = {1, 0}, .input = {1, 2}}};
    View x = array_of(FORMAT_FP32, SHAPE(1, 1, 2, 1), VALUES(2, 6));
    View y = array(FORMAT_FP32, SHAPE(1, 2, 1, 1)), dx = array(FORMAT_FP32, SHAPE(1, 1, 2, 1));
    CHECK(RUN(avg_pool2d, &attr, IN(x), y));
    CHECK_VALUES(y, 0, 2, 2);
    CHECK(RUN(avg_pool2d_backward, &attr, IN(y), dx));
    CHECK_VALUES(dx, 0, 1, 1);
}

static void every_operation_has_its_kernel(void) {
    for (int op = 0; op < OP_COUNT; op++)
        CHECK_MESSAGE(ref_backend.kernels[op] != NULL, "operation %d has none", op);
    CHECK(ref_backend.supports(&device, OP_matmul, FORMAT_FP64));
    CHECK(!ref_backend.supports(&device, OP_matmul, FORMAT_INT32));
    Device second = {0};
    Error error;
    CHECK(!ref_backend.open(&second, 1, 0, &error));
    CHECK_INT(error.code, ERROR_UNAVAILABLE);
}

int main(void) {
    if (!ref_test_begin())
        return 1;
    RUN_TEST(matmul_multiplies_batches_by_one_matrix_and_through_strides);
    RUN_TEST(linear_adds_the_bias_before_the_activation_and_rounds_once);
    RUN_TEST(conv2d_pads_strides_and_groups);
    RUN_TEST(conv2d_gradients_are_the_transposes);
    RUN_TEST(attention_averages_the_values_it_may_see);
    RUN_TEST(attention_gradients_match_differences);
    RUN_TEST(norms_take_their_own_means);
    RUN_TEST(norm_gradients_match_differences);
    RUN_TEST(softmax_holds_for_large_inputs);
    RUN_TEST(cross_entropy_leaves_out_class_minus_one);
    RUN_TEST(a_class_out_of_range_is_named);
    RUN_TEST(accuracy_takes_the_first_of_equals_and_no_nan);
    RUN_TEST(order_is_falling_with_nan_first);
    RUN_TEST(max_pool_remembers_the_first_largest);
    RUN_TEST(avg_pool_counts_padding);
    RUN_TEST(every_operation_has_its_kernel);
    return ref_test_end();
}
