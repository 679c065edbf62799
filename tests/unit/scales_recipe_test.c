// What a recipe changes of a model: norms whose weights are rounded in blocks, factors that stay in
// bf16, and a recipe as text.
#include "ops/scale.h"
#include "precision/recipe.h"
#include "tests/unit/engine_fixture.h"

enum { ROWS = 3, WIDTH = 40 }; // a block, and a part of one

static void open_with(const char *device, const char *recipe_text_) {
    Recipe recipe;
    Error error = {0};
    engine_open(device, "mxfp8");
    CHECK_MESSAGE(recipe_parse(recipe_text_, &recipe, &error), "%s", error.text);
    policy_set_recipe(engine->policy, &recipe);
    engine->layer = policy_add_layer(engine->policy, "norm", 0, NULL);
    engine->autocast.enabled = true;
}

// ---- norms --------------------------------------------------------------------------------------

typedef struct Normed {
    float y[ROWS * WIDTH], dx[ROWS * WIDTH], dweight[WIDTH];
} Normed;

static Tensor *numbers(int ndim, const int64_t *shape, const float *host) {
    Tensor *tensor =
        tensor_from_host(fixture_device, FORMAT_FP32, ndim, shape, host, MEMORY_WEIGHTS, NULL);
    CHECK(tensor);
    return leaf(tensor);
}

// A norm of that weight and a bias of a third of it, and back.
static Normed norm(OpId op, float weight) {
    static const int64_t of_rows[] = {ROWS, WIDTH}, of_columns[] = {WIDTH};
    Normed normed = {{0}, {0}, {0}};
    float x[ROWS * WIDTH], dy[ROWS * WIDTH], weights[WIDTH], biases[WIDTH];
    for (int i = 0; i < ROWS * WIDTH; i++) {
        x[i] = sinf((float)i);
        dy[i] = cosf((float)(3 * i));
    }
    for (int i = 0; i < WIDTH; i++) {
        weights[i] = weight;
        biases[i] = weight / 3;
    }
    Tensor *inputs[] = {numbers(2, of_rows, x), numbers(1, of_columns, weights),
                        numbers(1, of_columns, biases)};
    OpAttr attr = {.norm = {.epsilon = 1e-5, .groups = 1}};
    Tensor *outputs[OP_MAX_OUTPUTS];
    Error error = {0};
    CHECK_MESSAGE(op_apply(engine, op, inputs, 3, &attr, outputs, &error), "%s", error.text);
    Tensor *seed =
        tensor_from_host(fixture_device, FORMAT_FP32, 2, of_rows, dy, MEMORY_GRADIENTS, NULL);
    CHECK_MESSAGE(engine_backward(engine, outputs[0], seed, NULL, &error), "%s", error.text);
    CHECK(tensor_read(outputs[0], normed.y, NULL) &&
          tensor_read(inputs[0]->grad, normed.dx, NULL) &&
          tensor_read(inputs[1]->grad, normed.dweight, NULL));
    for (int i = 0; i < 3; i++)
        tensor_release(inputs[i]), tensor_release(outputs[i]);
    tensor_release(seed);
    return normed;
}

static bool is_same(const float *a, const float *b, int count) {
    return memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

// 0.97 is the largest of its block: by the standard's rule the scale is 2^-9, of which 448 are
// 0.875; by the other 2^-8, and 248.3 of it are next to 256. A third of it, 0.3233, is 165.5 of
// 2^-9 and becomes 160 either way.
static void weights_of_norms_are_rounded_in_blocks(void) {
    static const char *const devices[] = {"cpu", "ref"};
    static const OpId ops[] = {OP_layer_norm, OP_group_norm};
    for (int d = 0; d < 2; d++)
        for (int o = 0; o < 2; o++) {
            const OpId op = ops[o];
            Normed of[3];
            const char *const recipes[] = {"", "norms=scaled", "norms=scaled,scales=floor"};
            for (int r = 0; r < 3; r++) {
                open_with(devices[d], recipes[r]);
                of[r] = norm(op, 0.97f);
                engine_close();
            }
            // The bias is known apart from the weight: y - bias = z weight.
            double worst[3] = {0};
            static const double weights[] = {0.97, 1, 0.875}, biases[] = {0.97 / 3, 0.3125, 0.3125};
            for (int r = 1; r < 3; r++)
                for (int i = 0; i < ROWS * WIDTH; i++) {
                    const double z = ((double)of[0].y[i] - biases[0]) / weights[0];
                    const double off = fabs(z * weights[r] + biases[r] - (double)of[r].y[i]);
                    worst[r] = off > worst[r] ? off : worst[r];
                }
            CHECK_MESSAGE(worst[1] < 1e-5 && worst[2] < 1e-5, "%s: off by %g and %g", devices[d],
                          worst[1], worst[2]);
        }
}

// The gradient of what was computed goes by the rounded weight, and reaches the weight itself.
static void gradients_pass_the_rounding_of_norms(void) {
    static const char *const devices[] = {"cpu", "ref"};
    for (int d = 0; d < 2; d++) {
        open_with(devices[d], "norms=scaled,scales=floor");
        const Normed rounded = norm(OP_layer_norm, 0.97f);
        engine_close();
        open_with(devices[d], "");
        const Normed as_if = norm(OP_layer_norm, 0.875f), exact = norm(OP_layer_norm, 0.97f);
        engine_close();
        CHECK(is_same(rounded.dx, as_if.dx, ROWS * WIDTH));
        CHECK(is_same(rounded.dweight, exact.dweight, WIDTH));
        // Without rounding on the way back it is the weight in bf16, 0.96875, that counts.
        open_with(devices[d], "norms=scaled,scales=floor,backward=bf16");
        const Normed forward_only = norm(OP_layer_norm, 0.97f);
        engine_close();
        open_with(devices[d], "");
        const Normed in_bf16 = norm(OP_layer_norm, 0.96875f);
        engine_close();
        CHECK(is_same(forward_only.y, rounded.y, ROWS * WIDTH));
        CHECK(is_same(forward_only.dx, in_bf16.dx, ROWS * WIDTH));
    }
}

static void a_norm_that_is_set_to_bf16_is_left_alone(void) {
    open_with("cpu", "norms=scaled,scales=floor");
    (void)norm(OP_layer_norm, 0.97f);
    CHECK_INT(policy_layer(engine->policy, engine->layer)->computed, FORMAT_MXFP8);
    CHECK(policy_set(engine->policy, "norm", LAYER_BF16, NULL, NULL));
    const Normed set = norm(OP_layer_norm, 0.97f);
    CHECK_INT(policy_layer(engine->policy, engine->layer)->computed, FORMAT_FP32);
    engine_close();
    open_with("cpu", "");
    const Normed usual = norm(OP_layer_norm, 0.97f);
    engine_close();
    CHECK(is_same(set.y, usual.y, ROWS * WIDTH));
}

// ---- factors that stay in bf16 ------------------------------------------------------------------

// [448, 2^-11] times [1, 1] and back from 1: what is lost of the small one, and of the weight's
// gradient, which is the input.
static void multiply(const char *recipe, double *product, double *gradient) {
    static const int64_t shape[] = {1, 2};
    open_with("cpu", recipe);
    Tensor *x = numbers(2, shape, (float[]){448, 0x1p-11f}),
           *w = numbers(2, shape, (float[]){1, 1});
    CHECK(parameter_attach(w, "head.weight", engine->layer, false, NULL));
    OpAttr attr = {.has_out_format = true, .out_format = FORMAT_FP32};
    Error error = {0};
    Tensor *y = op_three(engine, OP_linear, x, w, NULL, &attr, &error);
    float back[2] = {0, 0};
    CHECK_MESSAGE(y && engine_backward(engine, y, NULL, NULL, &error), "%s", error.text);
    CHECK(w->grad && tensor_read(w->grad, back, NULL));
    *product = item(y);
    *gradient = (double)back[1];
    tensor_release(x), tensor_release(w), tensor_release(y);
    engine_close();
}

static void factors_stay_in_bf16_where_the_recipe_says_so(void) {
    static const struct {
        const char *recipe;
        double product, gradient;
    } cases[] = {
        // The gradient's block is its batch, of one: nothing is lost there.
        {"", 448, 0x1p-11},
        {"activations=bf16", 448 + 0x1p-11, 0x1p-11},
        {"backward=bf16", 448, 0x1p-11},
        {"activations=bf16,backward=mxfp4", 448 + 0x1p-11, 0x1p-11},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double product, gradient;
        multiply(cases[i].recipe, &product, &gradient);
        CHECK_MESSAGE(product == cases[i].product && gradient == cases[i].gradient,
                      "%s: %.9g and %.9g", cases[i].recipe, product, gradient);
    }
}

// A weight's worth in nvfp4 needs fp32: an activation in bf16 is widened beside it.
static void factors_of_two_kinds_meet(void) {
    static const int64_t shape[] = {1, 16};
    float host[16];
    for (int i = 0; i < 16; i++)
        host[i] = 1.0f / 3;
    open_with("cpu", "activations=bf16");
    CHECK(policy_set(engine->policy, "norm", LAYER_NVFP4, NULL, NULL));
    Tensor *x = numbers(2, shape, host), *w = numbers(2, shape, host);
    CHECK(parameter_attach(w, "head.weight", engine->layer, false, NULL));
    OpAttr attr = {.has_out_format = true, .out_format = FORMAT_FP32};
    Error error = {0};
    Tensor *y = op_three(engine, OP_linear, x, w, NULL, &attr, &error);
    // 1/3 is the largest of its tensor, so that nvfp4 has it whole; in bf16 it is 0.333984375.
    CHECK_NEAR(item(y), 16 * 0.333984375 / 3, 1e-6);
    CHECK_MESSAGE(y && engine_backward(engine, y, NULL, NULL, &error), "%s", error.text);
    tensor_release(x), tensor_release(w), tensor_release(y);
    engine_close();
}

// Of two gradients in a block that are 2^20 apart the small one alone reaches x: elements of e4m3
// span 2^17, those of e5m2 2^31.
static void gradients_of_mxfp8_span_more_in_e5m2(void) {
    static const char *const recipes[] = {"", "gradients=e5m2"};
    static const int64_t shape[] = {1, 1}, of_w[] = {2, 1}, of_y[] = {1, 2};
    const float one = 1, weights[] = {0, 1}, gradients[] = {1, 0x1p-20f};
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < 2; i++) {
            open_with(d ? "cpu" : "ref", recipes[i]);
            Tensor *x = numbers(2, shape, &one), *w = numbers(2, of_w, weights);
            Tensor *y = op_three(engine, OP_linear, x, w, NULL, NULL, NULL);
            Tensor *dy = numbers(2, of_y, gradients);
            float dx = NAN;
            Error error = {0};
            CHECK_MESSAGE(y && engine_backward(engine, y, dy, NULL, &error), "%s", error.text);
            CHECK(tensor_read(x->grad, &dx, NULL));
            CHECK(dx == (i ? 0x1p-20f : 0));
            tensor_release(x), tensor_release(w), tensor_release(y), tensor_release(dy);
            engine_close();
        }
}

// ---- as text ------------------------------------------------------------------------------------

static void a_recipe_is_told_as_it_is_read(void) {
    static const char *const texts[] = {
        "",
        "scales=floor,norms=scaled",
        "fp8=blocks,rounding=random,hadamard=on,history=16,margin=1",
        "activations=bf16,backward=mxfp4,amax=recent,sums=fast14",
        "backward=bf16",
        "backward=mxfp8,blocks=best,gradients=e5m2"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        Recipe recipe;
        char text[RECIPE_TEXT_SIZE];
        CHECK(recipe_parse(texts[i], &recipe, NULL));
        recipe_text(&recipe, text);
        CHECK_TEXT(text, texts[i]);
    }
}

static void a_change_leaves_what_it_does_not_name(void) {
    Recipe recipe, before;
    Error error = {0};
    char text[RECIPE_TEXT_SIZE];
    CHECK(recipe_parse("norms=scaled,scales=floor", &recipe, NULL));
    CHECK(recipe_change("scales=up,backward=bf16", &recipe, NULL));
    recipe_text(&recipe, text);
    CHECK_TEXT(text, "backward=bf16,norms=scaled");
    CHECK(recipe_change("backward=own,norms=own", &recipe, NULL));
    recipe_text(&recipe, text);
    CHECK_TEXT(text, "");
    before = recipe;
    CHECK(!recipe_change("norms=scaled,scales=sideways", &recipe, &error));
    CHECK_CONTAINS(error.text, "up or floor");
    CHECK(recipe.norms == before.norms); // refused whole
}

int main(void) {
    RUN_TEST(weights_of_norms_are_rounded_in_blocks);
    RUN_TEST(gradients_pass_the_rounding_of_norms);
    RUN_TEST(a_norm_that_is_set_to_bf16_is_left_alone);
    RUN_TEST(factors_stay_in_bf16_where_the_recipe_says_so);
    RUN_TEST(factors_of_two_kinds_meet);
    RUN_TEST(gradients_of_mxfp8_span_more_in_e5m2);
    RUN_TEST(a_recipe_is_told_as_it_is_read);
    RUN_TEST(a_change_leaves_what_it_does_not_name);
    return test_end();
}
