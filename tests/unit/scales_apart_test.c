// Formats with a scale of all (fp8, nvfp4), which products multiply by in the end, where the
// elements alone went into them.
#include "kernel/random.h"
#include "precision/recipe.h"
#include "tests/unit/engine_fixture.h"

static void open_with(const char *device, const char *precision, const char *recipe_text) {
    Recipe recipe;
    Error error = {0};
    engine_open_on(device, precision);
    CHECK_MESSAGE(recipe_parse(recipe_text, &recipe, &error), "%s", error.text);
    policy_set_recipe(engine->policy, &recipe);
    engine->layer = policy_add_layer(engine->policy, "head", 0, NULL);
    engine->autocast.enabled = true;
}

static Tensor *random_leaf(int ndim, const int64_t *shape, uint64_t seed, double scale) {
    Tensor *tensor = NULL;
    int64_t count = 1;
    for (int i = 0; i < ndim; i++)
        count *= shape[i];
    float *host = malloc((size_t)count * sizeof *host);
    for (int64_t i = 0; host && i < count; i++)
        host[i] = (float)(scale *
                          ((double)random_uniform(random_block(seed, (uint64_t)i).word[0]) - 0.4));
    if (host)
        tensor =
            tensor_from_host(fixture_device, FORMAT_FP32, ndim, shape, host, MEMORY_DATA, NULL);
    free(host);
    return tensor ? leaf(tensor) : NULL;
}

typedef struct Product {
    OpId op;
    int64_t x[4], weight[4], bias, y[4];
    Activation activation;
    int64_t padding, stride;
} Product;

enum { MOST_NUMBERS = 40000 };

static int64_t append(const Tensor *tensor, float *numbers, int64_t at) {
    Tensor *wide =
        tensor ? tensor_copy_as((Tensor *)(uintptr_t)tensor, FORMAT_FP32, MEMORY_DATA, NULL) : NULL;
    const int64_t count = wide ? tensor_count(wide) : 0;
    CHECK(wide && at + count <= MOST_NUMBERS && tensor_read(wide, numbers + at, NULL));
    tensor_release(wide);
    return at + count;
}

// The product, and the gradients of both factors and the bias, one behind the other; how many
// numbers.
static int64_t all_of(const Product *of, const char *device, const char *precision, Format kept,
                      float numbers[MOST_NUMBERS]) {
    const int ndim = of->op == OP_linear ? 2 : 4;
    open_with(device, precision, "fp8=current");
    Tensor *x = random_leaf(ndim, of->x, 1, 3e-3), *w = random_leaf(ndim, of->weight, 2, 40);
    Tensor *bias = random_leaf(1, &of->bias, 3, 0.3), *dy = random_leaf(ndim, of->y, 4, 1e-5);
    OpAttr attr = {.has_out_format = true, .out_format = kept};
    if (of->op == OP_linear)
        attr.linear.activation = of->activation;
    else
        attr.conv = (ConvAttr){.stride = {of->stride, of->stride},
                               .padding = {of->padding, of->padding},
                               .dilation = {1, 1},
                               .groups = 1,
                               .activation = of->activation};
    if (of->op == OP_conv_transpose2d)
        memcpy(attr.conv.input, of->y + 1, sizeof attr.conv.input);
    Error error = {0};
    Tensor *y = op_three(engine, of->op, x, w, bias, &attr, &error);
    CHECK_MESSAGE(y, "%s", error.text);
    int64_t count = append(y, numbers, 0);
    if (of->activation != ACTIVATION_TANH) { // by whose last bits a gradient may be another element
        CHECK_MESSAGE(y && engine_backward(engine, y, dy, NULL, &error), "%s", error.text);
        count = append(w->grad, numbers, append(x->grad, numbers, count));
        count = append(bias->grad, numbers, count);
    }
    tensor_release(x), tensor_release(w), tensor_release(bias), tensor_release(dy);
    tensor_release(y);
    engine_close();
    return count;
}

static int64_t product_of(const int64_t shape[4]) {
    return shape[0] * shape[1] * (shape[2] ? shape[2] * shape[3] : 1);
}

// Beside the largest, and beyond a unit of bf16 where they are rounded to that.
static double off_by(const float *numbers, const float *expected, int64_t count, bool rounded) {
    double worst = 0, largest = 0;
    for (int64_t i = 0; i < count; i++) {
        double size = fabs((double)expected[i]),
               error = fabs((double)numbers[i] - (double)expected[i]);
        worst = fmax(worst, error - (rounded ? size * 0x1p-7 : 0));
        largest = fmax(largest, size);
    }
    return largest > 0 ? worst / largest : (double)INFINITY;
}

// The reference has scales of all in what elements are worth; sums, biases and what is kept differ
// by rounding alone.
static void what_is_left_apart_is_multiplied_by(void) {
    static const Product products[] = {
        {OP_linear, {5, 40}, {7, 40}, 7, {5, 7}, ACTIVATION_RELU, 0, 0},
        {OP_linear, {5, 40}, {7, 40}, 7, {5, 7}, ACTIVATION_TANH, 0, 0},
        {OP_conv2d, {2, 9, 8, 32}, {48, 3, 3, 32}, 48, {2, 9, 8, 48}, ACTIVATION_RELU, 1, 1},
        {OP_conv2d, {2, 9, 8, 32}, {48, 3, 3, 32}, 48, {2, 7, 6, 48}, ACTIVATION_TANH, 0, 1},
        {OP_conv2d, {3, 6, 6, 3}, {16, 3, 3, 3}, 16, {3, 3, 3, 16}, ACTIVATION_NONE, 1, 2},
        {OP_conv2d, {3, 4, 4, 16}, {8, 1, 1, 16}, 8, {3, 4, 4, 8}, ACTIVATION_RELU, 0, 1},
        {OP_conv_transpose2d,
         {2, 4, 4, 16},
         {16, 4, 4, 32},
         32,
         {2, 8, 8, 32},
         ACTIVATION_NONE,
         1,
         2},
    };
    static float expected[MOST_NUMBERS], numbers[MOST_NUMBERS];
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        for (int way = 0; way < 4; way++) {
            const char *precision = way % 2 ? "nvfp4" : "fp8";
            const Format kept = way / 2 ? FORMAT_FP32 : FORMAT_BF16;
            const int64_t count = all_of(&products[i], "ref", precision, kept, expected);
            CHECK_INT(all_of(&products[i], test_device_name(), precision, kept, numbers), count);
            const int64_t parts[] = {product_of(products[i].y), product_of(products[i].x),
                                     product_of(products[i].weight), products[i].bias};
            double worst = 0;
            for (int64_t part = 0, at = 0; part < 4 && at < count; at += parts[part++])
                worst = fmax(worst, off_by(numbers + at, expected + at, parts[part],
                                           part == 0 && kept == FORMAT_BF16));
            CHECK_MESSAGE(worst < 1e-5, "product %zu in %s kept in %s is off by %g", i, precision,
                          format_name(kept), worst);
        }
}

// It is no product: what it is the sum of is never rounded, whatever the format.
static void the_gradient_of_a_bias_is_a_sum_of_what_comes(void) {
    static const char *const precisions[] = {"fp8", "nvfp4", "mxfp4"};
    enum { FILTERS = 8, PLACES = 3 * 4 * 4 };
    static const int64_t x_shape[] = {3, 4, 4, 16}, w_shape[] = {FILTERS, 1, 1, 16},
                         y_shape[] = {3, 4, 4, FILTERS}, filters = FILTERS;
    for (const char *const *device = test_device_names(); *device; device++)
        for (int p = 0; p < 3; p++) {
            open_with(*device, precisions[p], "fp8=current");
            Tensor *x = random_leaf(4, x_shape, 1, 1), *w = random_leaf(4, w_shape, 2, 1);
            Tensor *bias = random_leaf(1, &filters, 3, 1), *dy = random_leaf(4, y_shape, 4, 1e-5);
            OpAttr attr = {.conv = {.stride = {1, 1}, .dilation = {1, 1}, .groups = 1}};
            float given[PLACES * FILTERS], got[FILTERS];
            Error error = {0};
            Tensor *y = op_three(engine, OP_conv2d, x, w, bias, &attr, &error);
            Tensor *low = y ? tensor_copy_as(dy, y->view.format, MEMORY_DATA, &error) : NULL;
            CHECK_MESSAGE(low && engine_backward(engine, y, low, NULL, &error), "%s", error.text);
            append(low, given, 0), append(bias->grad, got, 0);
            for (int f = 0; f < FILTERS; f++) {
                double sum = 0;
                for (int i = 0; i < PLACES; i++)
                    sum += (double)given[i * FILTERS + f];
                CHECK_NEAR((double)got[f] * 1e5, sum * 1e5, 1e-4);
            }
            tensor_release(x), tensor_release(w), tensor_release(bias), tensor_release(dy);
            tensor_release(y), tensor_release(low);
            engine_close();
        }
}

int main(void) {
    RUN_TEST(what_is_left_apart_is_multiplied_by);
    RUN_TEST(the_gradient_of_a_bias_is_a_sum_of_what_comes);
    return test_end();
}
