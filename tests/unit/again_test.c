// What a node does not keep, because the node before it can make it again.
#include "tests/unit/engine_fixture.h"

enum { ROWS = 3, IN = 5, OUT = 2 };

static Tensor *matrix(int64_t rows, int64_t columns, Format format) {
    float values[ROWS * IN];
    for (int64_t i = 0; i < rows * columns; i++)
        values[i] = (float)((i * 7 + 3) % 11) / 4 - 1.25F;
    Tensor *full = tensor_from_host(fixture_device, FORMAT_FP32, 2,
                                    (const int64_t[]){rows, columns}, values, MEMORY_DATA, NULL);
    Tensor *low = tensor_copy_as(full, format, MEMORY_DATA, NULL);
    tensor_release(full);
    return leaf(low);
}

typedef struct Net { // loss = sum(gelu(x) w)
    Tensor *x, *w, *y, *product, *loss;
} Net;

static Net net_new(Format format) {
    Net net = {.x = matrix(ROWS, IN, format), .w = matrix(IN, OUT, format)};
    net.y = op_one(engine, OP_gelu, net.x, NULL, NULL);
    net.product = op_two(engine, OP_matmul, net.y, net.w, NULL, NULL);
    net.loss = op_one(engine, OP_sum, net.product, NULL, NULL);
    return net;
}

static void net_free(const Net *net) {
    Tensor *const all[] = {net->x, net->w, net->y, net->product, net->loss};
    for (int i = 0; i < 5; i++)
        tensor_release(all[i]);
}

static size_t kept(void) {
    return allocator_use(fixture_device->allocator).now[MEMORY_ACTIVATIONS];
}

static bool same_bytes(const Tensor *a, const Tensor *b) {
    char first[ROWS * IN * 4] = {0}, second[ROWS * IN * 4] = {1};
    return a && b && tensor_read(a, first, NULL) && tensor_read(b, second, NULL) &&
           memcmp(first, second, (size_t)tensor_count(a) * format_table[a->view.format].bytes) == 0;
}

// Somebody who holds the function's result has it kept; the gradients are the same without.
static void what_is_made_again_has_the_bits_of_what_was_kept(void) {
    static const Format formats[] = {FORMAT_BF16, FORMAT_FP16};
    for (int i = 0; i < 2; i++) {
        engine_open("cpu", "fp32");
        Net net = net_new(formats[i]);
        Tensor *constant = leaf(op_detach(engine, net.y, NULL));
        Tensor *product = op_two(engine, OP_matmul, constant, net.w, NULL, NULL);
        Tensor *loss = op_one(engine, OP_sum, product, NULL, NULL);
        CHECK(engine_backward(engine, loss, NULL, NULL, NULL));
        Tensor *wanted = tensor_hold(net.w->grad);
        tensor_drop_grad(net.w);
        tensor_release(loss);
        tensor_release(product);
        tensor_release(constant);

        const size_t before = kept();
        tensor_release(net.y);
        net.y = NULL;
        CHECK_MESSAGE((kept() < before) == (fixture_device->memory == 0), "%zu bytes stay of %zu",
                      kept(), before); // a card keeps it
        CHECK(engine_backward(engine, net.loss, NULL, NULL, NULL));
        CHECK(same_bytes(net.w->grad, wanted));
        CHECK(net.x->grad != NULL);
        tensor_release(wanted);
        net_free(&net);
        engine_close(); // asserts that no memory of the device is in use
    }
}

static void what_is_in_fp32_is_kept(void) {
    engine_open("cpu", "fp32");
    Net net = net_new(FORMAT_FP32);
    const size_t before = kept();
    tensor_release(net.y);
    net.y = NULL;
    CHECK_INT(kept(), before);
    net_free(&net);
    engine_close();
}

// The result was written over before it was used: nobody can make that again.
static void what_was_written_over_is_kept(void) {
    engine_open("cpu", "fp32");
    Tensor *x = matrix(ROWS, IN, FORMAT_BF16), *w = matrix(IN, OUT, FORMAT_BF16);
    Tensor *y = op_one(engine, OP_gelu, x, NULL, NULL);
    CHECK(tensor_copy_into(y, x, NULL));
    Tensor *product = op_two(engine, OP_matmul, y, w, NULL, NULL);
    Tensor *loss = op_one(engine, OP_sum, product, NULL, NULL);
    Tensor *same = op_two(engine, OP_matmul, x, w, NULL, NULL);
    Tensor *sum = op_one(engine, OP_sum, same, NULL, NULL);
    CHECK(engine_backward(engine, sum, NULL, NULL, NULL));
    Tensor *wanted = tensor_hold(w->grad);
    tensor_drop_grad(w);
    CHECK(engine_backward(engine, loss, NULL, NULL, NULL));
    CHECK(same_bytes(w->grad, wanted));
    Tensor *const all[] = {x, w, y, product, loss, same, sum, wanted};
    for (int i = 0; i < 8; i++)
        tensor_release(all[i]);
    engine_close();
}

static void what_it_would_be_made_from_may_not_change(void) {
    engine_open("cpu", "fp32");
    Net net = net_new(FORMAT_BF16);
    Error error = {0};
    Tensor *other = matrix(ROWS, IN, FORMAT_BF16);
    CHECK(tensor_copy_into(net.x, other, NULL));
    CHECK(!engine_backward(engine, net.loss, NULL, NULL, &error));
    CHECK_MESSAGE(strstr(error.text, "gelu: a tensor that its derivative needs"), "%s", error.text);
    CHECK(!net.w->grad);
    tensor_release(other);
    net_free(&net);
    engine_close();
}

static void a_graph_whose_first_half_was_walked_is_refused(void) {
    engine_open("cpu", "fp32");
    Net net = net_new(FORMAT_BF16);
    Tensor *other = op_one(engine, OP_sum, net.y, NULL, NULL);
    Error error = {0};
    CHECK(engine_backward(engine, other, NULL, NULL, NULL));
    CHECK(!engine_backward(engine, net.loss, NULL, NULL, &error));
    CHECK_MESSAGE(strstr(error.text, "was walked before"), "%s", error.text);
    tensor_release(other);
    net_free(&net);
    engine_close();
}

static void a_kept_graph_is_walked_as_often_as_one_likes(void) {
    engine_open("cpu", "fp32");
    Net net = net_new(FORMAT_BF16);
    const BackwardOptions keep = {.keep_graph = true};
    CHECK(engine_backward(engine, net.loss, NULL, &keep, NULL));
    Tensor *first = tensor_copy_as(net.w->grad, net.w->grad->view.format, MEMORY_DATA, NULL);
    tensor_drop_grad(net.w);
    CHECK(engine_backward(engine, net.loss, NULL, NULL, NULL));
    CHECK(same_bytes(net.w->grad, first));
    tensor_release(first);
    net_free(&net);
    engine_close();
}

// d/dx of sum(dloss/dw) leads through what was made again: sum over rows of gelu(x), whose slope at
// x is that of gelu.
static void a_recorded_walk_leads_back_through_it(void) {
    engine_open("cpu", "fp32");
    Net net = net_new(FORMAT_BF16);
    Tensor *gradient[1] = {NULL};
    const BackwardOptions twice = {
        .create_graph = true, .inputs = &net.w, .results = gradient, .input_count = 1};
    CHECK(engine_backward(engine, net.loss, NULL, &twice, NULL));
    Tensor *total = op_one(engine, OP_sum, gradient[0], NULL, NULL);
    CHECK(engine_backward(engine, total, NULL, NULL, NULL));
    Tensor *direct = matrix(ROWS, IN, FORMAT_BF16);
    Tensor *y = op_one(engine, OP_gelu, direct, NULL, NULL);
    Tensor *sum = op_one(engine, OP_sum, y, NULL, NULL);
    CHECK(engine_backward(engine, sum, NULL, NULL, NULL));
    float slope[ROWS * IN] = {0}, found[ROWS * IN] = {0};
    Tensor *const from[] = {direct->grad, net.x->grad};
    float *const to[] = {slope, found};
    for (int i = 0; i < 2; i++) {
        Tensor *full = from[i] ? tensor_copy_as(from[i], FORMAT_FP32, MEMORY_DATA, NULL) : NULL;
        CHECK(full && tensor_read(full, to[i], NULL));
        tensor_release(full);
    }
    for (int i = 0; i < ROWS * IN; i++)
        CHECK_NEAR(found[i], OUT * slope[i], 0.02);
    Tensor *const all[] = {gradient[0], total, direct, y, sum};
    for (int i = 0; i < 5; i++)
        tensor_release(all[i]);
    net_free(&net);
    engine_close();
}

int main(void) {
    RUN_TEST(what_is_made_again_has_the_bits_of_what_was_kept);
    RUN_TEST(what_is_in_fp32_is_kept);
    RUN_TEST(what_was_written_over_is_kept);
    RUN_TEST(what_it_would_be_made_from_may_not_change);
    RUN_TEST(a_graph_whose_first_half_was_walked_is_refused);
    RUN_TEST(a_kept_graph_is_walked_as_often_as_one_likes);
    RUN_TEST(a_recorded_walk_leads_back_through_it);
    return test_end();
}
