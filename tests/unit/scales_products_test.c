// Products in scaled formats are those of what the factors are worth, whatever the operation, the
// depth and the way in which scales are chosen.
#include "kernel/random.h"
#include "ops/scale.h"
#include "precision/recipe.h"
#include "tests/unit/engine_fixture.h"

enum { ROWS = 17, COLUMNS = 19, DEEPEST = 4096, SIDE = 2 }; // enough for whole numbers

// A convolution sees SIDE x SIDE pixels where the depth divides, else one; its images are one row
// of outputs, with ROWS of them.
typedef struct Geometry {
    int64_t side, width, channels;
} Geometry;

static Geometry geometry_of(int depth) {
    const int64_t side = depth % (SIDE * SIDE) == 0 ? SIDE : 1;
    return (Geometry){side, ROWS + side - 1, depth / (side * side)};
}

static void shapes_of(OpId op, int depth, int *ndim, int64_t a[4], int64_t b[4]) {
    const Geometry of = geometry_of(depth);
    const int64_t shapes[][2][4] = {
        {{ROWS, depth}, {COLUMNS, depth}},
        {{ROWS, depth}, {depth, COLUMNS}},
        {{1, of.side, of.width, of.channels}, {COLUMNS, of.side, of.side, of.channels}}};
    const int which = op == OP_linear ? 0 : op == OP_matmul ? 1 : 2;
    *ndim = op == OP_conv2d ? 4 : 2;
    memcpy(a, shapes[which][0], sizeof shapes[which][0]);
    memcpy(b, shapes[which][1], sizeof shapes[which][1]);
}

// Where term k of result (i, j) has its factors.
static int64_t place_in_a(OpId op, int depth, int64_t i, int64_t k) {
    const Geometry of = geometry_of(depth);
    if (op != OP_conv2d)
        return i * depth + k;
    const int64_t row = k / (of.side * of.channels), rest = k % (of.side * of.channels);
    return (row * of.width + i) * of.channels + rest;
}

static int64_t place_in_b(OpId op, int depth, int64_t j, int64_t k) {
    return op == OP_matmul ? k * COLUMNS + j : j * depth + k;
}

// Seven powers of two, of both signs.
static Tensor *factor_new(int ndim, const int64_t *shape, uint64_t seed) {
    static float host[ROWS * 2 * DEEPEST];
    int64_t count = 1;
    for (int i = 0; i < ndim; i++)
        count *= shape[i];
    for (int64_t k = 0; k < count; k++)
        host[k] = ldexpf(2 * random_uniform(random_block(seed, (uint64_t)k).word[0]) - 1,
                         (int)(random_block(seed + 9, (uint64_t)k).word[0] % 7));
    return tensor_from_host(fixture_device, FORMAT_FP32, ndim, shape, host, MEMORY_DATA, NULL);
}

// What a factor is worth by the scales in force.
static void read_worth(OpId op, Format format, int i, Tensor *factor, float *numbers) {
    const OpAttr as = {.has_compute = true, .compute = format};
    Error error = {0};
    ScaledFactor made;
    const bool done = scale_factor(engine, op, &as, i, factor, &made, &error);
    Tensor *wide = done ? tensor_copy_as(made.worth, FORMAT_FP32, MEMORY_DATA, &error) : NULL;
    float times = 1;
    CHECK_MESSAGE(wide && tensor_read(wide, numbers, &error), "%s", error.text);
    CHECK(!made.times || tensor_read(made.times, &times, NULL));
    for (int64_t k = 0; k < tensor_count(factor); k++)
        numbers[k] *= times;
    tensor_release(wide), scale_clear(&made);
}

// Sums in fp32 err by one unit a term at most, those of a card's tiles, which cut off, by two; and
// scales with more digits than bf16 has by one more each.
static void check_product(OpId op, const char *name, Format format, int depth, Tensor *a,
                          Tensor *b) {
    static float left[ROWS * 2 * DEEPEST], right[COLUMNS * DEEPEST], y[ROWS * COLUMNS];
    const double each = strcmp(fixture_device->backend->name, "gpu") == 0 ? 2 : 1;
    OpAttr attr = {.has_out_format = true, .out_format = FORMAT_FP32};
    if (op == OP_conv2d)
        attr.conv = (ConvAttr){.stride = {1, 1}, .dilation = {1, 1}, .groups = 1};
    read_worth(op, format, 0, a, left);
    read_worth(op, format, 1, b, right);
    Error error = {0};
    Tensor *product = op == OP_matmul ? op_two(engine, op, a, b, &attr, &error)
                                      : op_three(engine, op, a, b, NULL, &attr, &error);
    CHECK_MESSAGE(product && tensor_read(product, y, &error), "%s", error.text);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            double sum = 0, magnitude = 0;
            for (int k = 0; k < depth; k++) {
                const double term = (double)left[place_in_a(op, depth, i, k)] *
                                    (double)right[place_in_b(op, depth, j, k)];
                sum += term;
                magnitude += fabs(term);
            }
            const double off = fabs((double)y[i * COLUMNS + j] - sum);
            CHECK_MESSAGE(off <= magnitude * (each * depth + 2) * 0x1p-24,
                          "%s in %s, depth %d: %.9g, exactly %.9g", op_table[op].name, name, depth,
                          (double)y[i * COLUMNS + j], sum);
            CHECK_MESSAGE(magnitude > 0, "%s in %s, depth %d: of nothing", op_table[op].name, name,
                          depth);
        }
    tensor_release(product);
}

// Of scales that follow the steps before the first step has 1, and the next what that has met.
static void check_format(Format format, const char *recipe_text) {
    static const OpId ops[] = {OP_linear, OP_matmul, OP_conv2d};
    static const int depths[] = {1, 33, 1000, DEEPEST};
    const int depth_count = test_device_is_emulated() ? 3 : 4; // the last takes it minutes
    char name[64];
    Recipe recipe;
    snprintf(name, sizeof name, "%s, %s", format_name(format), recipe_text);
    CHECK(recipe_parse(recipe_text, &recipe, NULL));
    engine_open("cpu", format_name(format));
    policy_set_recipe(engine->policy, &recipe);
    engine->layer = policy_add_layer(engine->policy, "head", 0, NULL);
    engine->autocast.enabled = true;
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++)
        for (int d = 0; d < depth_count; d++) {
            int ndim;
            int64_t a_shape[4], b_shape[4];
            shapes_of(ops[o], depths[d], &ndim, a_shape, b_shape);
            Tensor *a = factor_new(ndim, a_shape, 1), *b = factor_new(ndim, b_shape, 2);
            CHECK(parameter_attach(b, "head.weight", engine->layer, false, NULL));
            for (int step = 0; step < (recipe_delays(&recipe, format) ? 2 : 1); step++) {
                check_product(ops[o], name, format, depths[d], a, b);
                CHECK(engine_end_step(engine, NULL));
            }
            tensor_release(a), tensor_release(b);
        }
    engine_close();
}

static void products_are_those_of_what_factors_are_worth(void) {
    Format formats[FORMAT_COUNT];
    const int count = format_pick(formats, format_is_scaled);
    for (int f = 0; f < count; f++) {
        check_format(formats[f], "fp8=current");
        if (format_table[formats[f]].block > 0) {
            check_format(formats[f], "scales=floor");
            check_format(formats[f], "blocks=best");
            check_format(formats[f], "activations=bf16");
        }
        if (!recipe_delays(&recipe_usual, formats[f]))
            continue;
        check_format(formats[f], "fp8=delayed");
        check_format(formats[f], "fp8=delayed,margin=1");
        check_format(formats[f], "fp8=blocks");
    }
}

int main(void) {
    RUN_TEST(products_are_those_of_what_factors_are_worth);
    return test_end();
}
