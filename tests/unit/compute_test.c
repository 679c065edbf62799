// Products that multiply in another format than their factors are kept in: tf32 of fp32.
#include <math.h>

#include "kernel/random.h"
#include "number/inline.h"
#include "tests/unit/engine_fixture.h"

enum { MOST = 512 };

static void draw(float *values, int64_t count, uint64_t seed) {
    for (int64_t i = 0; i < count; i++)
        values[i] = 2 * random_uniform(random_block(seed, (uint64_t)i).word[0]) - 1;
}

static const OpAttr conv = {.conv = {.stride = {1, 1},
                                     .padding = {1, 1},
                                     .dilation = {1, 1},
                                     .groups = 1,
                                     .input = {4, 4},
                                     .kernel = {3, 3}}};
static const OpAttr none;

typedef struct Product {
    OpId op;
    const OpAttr *attr;
    int inputs, factors; // how many; a bias is none
    int ndim[3];
    int64_t shape[3][4];
} Product;

static const Product products[] = {
    {OP_matmul, &none, 2, 2, {2, 2}, {{3, 5}, {5, 4}}},
    {OP_linear, &none, 3, 2, {2, 2, 1}, {{3, 5}, {4, 5}, {4}}},
    {OP_conv2d, &conv, 3, 2, {4, 4, 1}, {{1, 4, 4, 2}, {3, 3, 3, 2}, {3}}},
    {OP_conv2d_backward_input, &conv, 2, 2, {4, 4}, {{1, 4, 4, 3}, {3, 3, 3, 2}}},
    {OP_conv2d_backward_weight, &conv, 2, 2, {4, 4}, {{1, 4, 4, 2}, {1, 4, 4, 3}}},
    {OP_conv_transpose2d, &conv, 3, 2, {4, 4, 1}, {{1, 4, 4, 3}, {3, 3, 3, 2}, {2}}},
};

// The first output of a product whose factors are rounded before, or as they are multiplied.
static int64_t output_of(const Product *product, bool before, bool within, Format format,
                         float *values) {
    Tensor *inputs[3] = {NULL}, *outputs[OP_MAX_OUTPUTS] = {NULL};
    OpAttr attr = *product->attr;
    attr.has_compute = within;
    attr.compute = FORMAT_TF32;
    attr.has_out_format = true;
    attr.out_format = FORMAT_FP32;
    for (int i = 0; i < product->inputs; i++) {
        float drawn[MOST];
        int64_t count = 1;
        for (int d = 0; d < product->ndim[i]; d++)
            count *= product->shape[i][d];
        draw(drawn, count, (uint64_t)i + 1);
        for (int64_t k = 0; before && i < product->factors && k < count; k++)
            drawn[k] = number_fp32_through_tf32(drawn[k]);
        Tensor *wide = tensor_from_host(fixture_device, FORMAT_FP32, product->ndim[i],
                                        product->shape[i], drawn, MEMORY_DATA, NULL);
        inputs[i] = tensor_copy_as(wide, format, MEMORY_DATA, NULL);
        tensor_release(wide);
    }
    Error error = {0};
    CHECK_MESSAGE(op_apply(engine, product->op, inputs, product->inputs, &attr, outputs, &error),
                  "%s", error.text);
    int64_t count = outputs[0] ? tensor_count(outputs[0]) : 0;
    CHECK(count > 0 && count <= MOST && tensor_read(outputs[0], values, NULL));
    for (int i = 0; i < 3; i++)
        tensor_release(inputs[i]);
    for (int i = 0; i < OP_MAX_OUTPUTS; i++)
        tensor_release(outputs[i]);
    return count;
}

// The reference sums in double in one order, other devices in fp32 in orders of their own.
static double unless_ref(double tolerance) {
    return fixture_device->backend->supports(fixture_device, OP_matmul, FORMAT_FP64) ? 0
                                                                                     : tolerance;
}

static void factors_are_rounded_on(const char *device) {
    engine_open(device, "fp32");
    const double tolerance = unless_ref(4e-6); // rounding the factors moves results by 1e-4
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        float full[MOST], before[MOST], within[MOST];
        const char *name = op_table[products[i].op].name;
        int64_t count = output_of(&products[i], false, false, FORMAT_FP32, full), differ = 0;
        output_of(&products[i], true, false, FORMAT_FP32, before);
        output_of(&products[i], false, true, FORMAT_FP32, within);
        for (int64_t k = 0; k < count; k++) {
            CHECK_MESSAGE(fabs((double)within[k] - (double)before[k]) <= tolerance,
                          "%s[%d] is %.9g, expected %.9g", name, (int)k, (double)within[k],
                          (double)before[k]);
            differ += fabs((double)within[k] - (double)full[k]) > 4 * tolerance;
        }
        CHECK_MESSAGE(differ > 0, "%s: nothing was rounded", name);
    }
    engine_close();
}

static void factors_are_rounded_as_they_are_multiplied(void) {
    factors_are_rounded_on("ref");
    factors_are_rounded_on("cpu");
}

static void fewer_bits_are_multiplied_on(const char *device) {
    engine_open(device, "fp32");
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        float plain[MOST], within[MOST];
        int64_t count = output_of(&products[i], false, false, FORMAT_BF16, plain);
        output_of(&products[i], false, true, FORMAT_BF16, within);
        CHECK(memcmp(plain, within, (size_t)count * sizeof *plain) == 0);
    }
    engine_close();
}

static void factors_in_fewer_bits_are_multiplied_as_they_are(void) {
    fewer_bits_are_multiplied_on("ref");
    fewer_bits_are_multiplied_on("cpu");
}

static Tensor *image(const float *values) { // one head of depth 1 over two places in time
    return tensor_from_host(fixture_device, FORMAT_FP32, 4, (int64_t[]){1, 2, 1, 1}, values,
                            MEMORY_DATA, NULL);
}

static void shares_are_factors_on(const char *device) {
    const float q[] = {1, 1}, k[] = {0.7f, 0}, v[] = {1, 3};
    float y[2], gradient[2];
    engine_open(device, "fp32");
    Tensor *inputs[] = {image(q), image(k), leaf(image(v))};
    Tensor *outputs[OP_MAX_OUTPUTS] = {NULL};
    OpAttr attr = {.has_compute = true, .compute = FORMAT_TF32};
    attr.attention.scale = 1;
    CHECK(op_apply(engine, OP_attention, inputs, 3, &attr, outputs, NULL));
    double score = (double)number_fp32_through_tf32(0.7f), sum = exp(score) + 1;
    double share[] = {format_round(FORMAT_TF32, exp(score) / sum, OVERFLOW_SATURATES),
                      format_round(FORMAT_TF32, 1 / sum, OVERFLOW_SATURATES)};
    CHECK(tensor_read(outputs[0], y, NULL));
    // Others round what is not yet divided by the sum.
    const double tolerance = 1e-7 + unless_ref(0x1p-10);
    CHECK_NEAR(y[0], share[0] + 3 * share[1], tolerance);
    Tensor *total = op_one(engine, OP_sum, outputs[0], NULL, NULL);
    CHECK(engine_backward(engine, total, NULL, NULL, NULL));
    CHECK(inputs[2]->grad && tensor_read(inputs[2]->grad, gradient, NULL));
    for (int i = 0; i < 2; i++)
        CHECK_NEAR(gradient[i], 2 * share[i], 2 * tolerance);
    for (int i = 0; i < 3; i++)
        tensor_release(inputs[i]);
    tensor_release(outputs[0]), tensor_release(outputs[1]), tensor_release(total);
    engine_close();
}

static void the_shares_of_attention_are_factors_too(void) {
    shares_are_factors_on("ref");
    shares_are_factors_on("cpu");
}

// y = x w' in a layer that multiplies in tf32, and back when the layer multiplies in fp32 again.
static void a_layer_multiplies_in_tf32_on(const char *device) {
    const float one = 1 + 0x1p-12f, more = 1 + 0x1p-10f + 0x1p-12f; // tf32 lacks the 2^-12
    engine_open(device, "fp32");
    int layer = policy_add_layer(engine->policy, "head", 0, NULL);
    policy_set_layer(engine->policy, layer, LAYER_TF32);
    engine->layer = layer;
    engine->autocast.enabled = true;
    Tensor *x = leaf(tensor_from_host(fixture_device, FORMAT_FP32, 2, (int64_t[]){1, 1}, &one,
                                      MEMORY_DATA, NULL));
    Tensor *w = tensor_from_host(fixture_device, FORMAT_FP32, 2, (int64_t[]){1, 1}, &more,
                                 MEMORY_WEIGHTS, NULL);
    CHECK(parameter_attach(w, "head.weight", layer, false, NULL));
    Tensor *y = op_three(engine, OP_linear, x, w, NULL, NULL, NULL);
    CHECK(y && y->view.format == FORMAT_FP32);
    CHECK_NEAR(item(y), 1 + 0x1p-10, 0);
    CHECK_INT(policy_layer(engine->policy, layer)->computed, FORMAT_TF32);
    CHECK_INT(parameter_of(w)->round_to, FORMAT_FP32); // gradients lie in fp32
    policy_set_layer(engine->policy, layer, LAYER_FP32);
    CHECK(engine_backward(engine, y, NULL, NULL, NULL));
    CHECK_NEAR(item(x->grad), 1 + 0x1p-10, 0);
    CHECK_NEAR(item(w->grad), 1, 0);
    Tensor *full = op_three(engine, OP_linear, x, w, NULL, NULL, NULL);
    CHECK(item(full) != item(y));
    tensor_release(x), tensor_release(w), tensor_release(y), tensor_release(full);
    engine_close();
}

static void a_layer_multiplies_in_tf32_forth_and_back(void) {
    a_layer_multiplies_in_tf32_on("ref");
    a_layer_multiplies_in_tf32_on("cpu");
}

static bool keeps_to_what_trains(const Device *device, OpId op, Format format) {
    (void)device, (void)op;
    return format_trains(format);
}

// Every device there is can: so this one is told that it cannot.
static void a_device_that_cannot_says_so(void) {
    Error error = {0};
    engine_open("cpu", "fp32");
    const Backend *own = fixture_device->backend;
    Backend less = *own;
    less.supports = keeps_to_what_trains;
    fixture_device->backend = &less;
    int layer = policy_add_layer(engine->policy, "head", 0, NULL);
    policy_set_layer(engine->policy, layer, LAYER_TF32);
    engine->layer = layer;
    engine->autocast.enabled = true;
    Tensor *x = op_fill(engine, FORMAT_FP32, 2, (int64_t[]){2, 2}, 1, NULL);
    CHECK(!op_two(engine, OP_matmul, x, x, NULL, &error));
    CHECK_CONTAINS(error.text, "does not multiply in tf32: set the layer to fp32, or run on "
                               "--device ref");
    CHECK_CONTAINS(error.text, "head: device ");
    Tensor *y = op_one(engine, OP_relu, x, NULL, &error); // no product
    CHECK_MESSAGE(y, "%s", error.text);
    OpAttr attr = {.has_compute = true, .compute = FORMAT_TF32};
    Tensor *const inputs[] = {x, x};
    Tensor *asked = NULL;
    engine->layer = 0;
    CHECK(!op_apply(engine, OP_matmul, inputs, 2, &attr, &asked, &error));
    CHECK_CONTAINS(error.text, "matmul: device ");
    CHECK_CONTAINS(error.text, " does not multiply in tf32");
    tensor_release(x), tensor_release(y);
    fixture_device->backend = own;
    engine_close();
}

int main(void) {
    RUN_TEST(factors_are_rounded_as_they_are_multiplied);
    RUN_TEST(factors_in_fewer_bits_are_multiplied_as_they_are);
    RUN_TEST(the_shares_of_attention_are_factors_too);
    RUN_TEST(a_layer_multiplies_in_tf32_forth_and_back);
    RUN_TEST(a_device_that_cannot_says_so);
    return test_end();
}
