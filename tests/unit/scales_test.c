// Products in scaled formats as a model meets them: delayed scales, what the tape keeps, recipes.
#include "kernel/random.h"
#include "number/scaled.h"
#include "ops/delayed.h"
#include "precision/recipe.h"
#include "tests/unit/engine_fixture.h"

static int layer;

static void open_with(const char *device, const char *precision, const char *recipe_text) {
    Recipe recipe;
    Error error = {0};
    engine_open(device, precision);
    CHECK_MESSAGE(recipe_parse(recipe_text, &recipe, &error), "%s", error.text);
    policy_set_recipe(engine->policy, &recipe);
    layer = policy_add_layer(engine->policy, "head", 0, NULL);
    engine->layer = layer;
    engine->autocast.enabled = true;
}

static Tensor *filled(int64_t rows, int64_t columns, float value) {
    float host[64 * 64];
    for (int64_t i = 0; i < rows * columns; i++)
        host[i] = value;
    return tensor_from_host(fixture_device, FORMAT_FP32, 2, (int64_t[]){rows, columns}, host,
                            MEMORY_DATA, NULL);
}

static float state_of(FactorRole role, int column) {
    Tensor *state = engine->delayed.state;
    int64_t count = state ? tensor_count(state) : 0;
    float *host = malloc((size_t)(count + 1) * sizeof *host), value = NAN;
    if (state && tensor_read(state, host, NULL))
        value = host[(layer * FACTOR_ROLES + (int)role) * state->view.shape[1] + column];
    free(host);
    return value;
}

// x w' and back, with a gradient of `dy` in every element; then the step ends.
static void step(float x_value, float w_value, float dy_value) {
    Tensor *x = leaf(filled(4, 8, x_value)), *w = filled(2, 8, w_value);
    CHECK(parameter_attach(w, "head.weight", layer, false, NULL));
    Tensor *y = op_three(engine, OP_linear, x, w, NULL, NULL, NULL);
    Tensor *dy = filled(4, 2, dy_value);
    Error error = {0};
    CHECK_MESSAGE(y && engine_backward(engine, y, dy, NULL, &error), "%s", error.text);
    CHECK(engine_end_step(engine, NULL));
    tensor_release(x), tensor_release(w), tensor_release(y), tensor_release(dy);
}

// Four steps of a public test: the margin is 2 powers of two.
static void golden_delayed_scales(void) {
    static const double x[] = {448, 89.6, 49.777778, 34.461538}, w[] = {224, 74.666667, 44.8, 32},
                        dy[] = {19114.667, 8192, 5213.0909, 3822.9333};
    static const char *const devices[] = {"ref", "cpu"};
    for (int d = 0; d < 2; d++) {
        open_with(devices[d], "fp8", "margin=2");
        for (int s = 0; s < 4; s++) {
            step((float)s + 0.25f, (float)s + 0.5f, (float)s + 0.75f);
            CHECK_NEAR(state_of(FACTOR_ACTIVATION, SCALE_NOW) / x[s], 1, 1e-6);
            CHECK_NEAR(state_of(FACTOR_WEIGHT, SCALE_NOW) / w[s], 1, 1e-6);
            CHECK_NEAR(state_of(FACTOR_GRADIENT, SCALE_NOW) / dy[s], 1, 1e-6);
        }
        engine_close();
    }
}

// The largest of as many steps as are looked back upon counts, and no longer.
static void what_was_met_is_forgotten_in_time(void) {
    open_with("cpu", "fp8", "history=2");
    step(4, 1, 1);
    CHECK(state_of(FACTOR_ACTIVATION, SCALE_NOW) == 112);
    step(1, 1, 1);
    CHECK(state_of(FACTOR_ACTIVATION, SCALE_NOW) == 112);
    step(1, 1, 1);
    CHECK(state_of(FACTOR_ACTIVATION, SCALE_NOW) == 448);
    step(INFINITY, 1, 1); // stays as it is
    CHECK(state_of(FACTOR_ACTIVATION, SCALE_NOW) == 448);
    step(0, 1, 1);
    CHECK(state_of(FACTOR_ACTIVATION, SCALE_NOW) == 448);
    engine_close();
    open_with("cpu", "fp8", "amax=recent");
    step(4, 1, 1);
    step(1, 1, 1);
    CHECK(state_of(FACTOR_ACTIVATION, SCALE_NOW) == 448);
    engine_close();
}

// Room is made for the layers that there are, and for what a checkpoint has: of a program that made
// room for 64 at once, or of a model that had fewer layers by then.
static void room_is_as_large_as_the_layers_need(void) {
    static const int64_t rows[] = {FACTOR_ROLES, (int64_t)64 * FACTOR_ROLES};
    open_with("cpu", "fp8", NULL);
    step(4, 1, 1);
    const size_t row = (SCALE_HISTORY + 1024) * sizeof(float);
    CHECK_INT(delayed_bytes(engine),
              (int64_t)(2 * FACTOR_ROLES * row)); // layer 0 is outside of all
    engine_close();
    for (int i = 0; i < 2; i++) {
        open_with("cpu", "fp8", NULL);
        CHECK(delayed_make(engine, rows[i], NULL));
        step(4, 1, 1);
        CHECK(state_of(FACTOR_ACTIVATION, SCALE_NOW) == 112);
        CHECK(state_of(FACTOR_WEIGHT, SCALE_NOW) == 448);
        CHECK_INT(engine->delayed.state->view.shape[0], i == 0 ? 2 * FACTOR_ROLES : rows[1]);
        engine_close();
    }
}

// Looking at a model changes nothing of its training.
static void without_a_tape_nothing_is_noted(void) {
    open_with("cpu", "fp8", NULL);
    Tensor *x = filled(4, 8, 3), *w = filled(2, 8, 1);
    tape_set_enabled(engine->tape, false);
    Tensor *y = op_three(engine, OP_linear, x, w, NULL, NULL, NULL);
    tape_set_enabled(engine->tape, true);
    CHECK(y && state_of(FACTOR_ACTIVATION, SCALE_LARGEST) == 0);
    CHECK(engine_end_step(engine, NULL));
    CHECK(state_of(FACTOR_ACTIVATION, SCALE_NOW) == 1);
    tensor_release(x), tensor_release(w), tensor_release(y);
    engine_close();
}

// ---- recipes ------------------------------------------------------------------------------------

static void recipes_are_read_and_refused_by_name(void) {
    static const char *const refused[][2] = {
        {"fp9=current", "fp9"},
        {"fp8=late", "delayed or current or blocks"},
        {"fp8", "KEY=VALUE"},
        {"history=0", "from 1 to 4096"},
        {"margin=x", "whole number"},
        {"backward=fp16", "own or bf16, or a format of blocks"},
        {"activations=mxfp4", "own or bf16 is"},
        {"norms=yes", "own or scaled"},
        {"=", "not known"},
        {"rounding=", "nearest or random"},
        {"roundign=random", "did you mean rounding?"},
        {"histroy=4", "did you mean history?"},
        {"fp8=curent", "did you mean current?"},
        {"fp8=current,margin=1,fp8=blocks", "fp8 is there twice"},
    };
    Recipe recipe;
    Error error;
    CHECK(recipe_parse(NULL, &recipe, &error) && recipe.history == 1024);
    CHECK(recipe_parse("fp8=blocks,scales=floor,rounding=random,hadamard=on,backward=mxfp8,"
                       "history=16,margin=1,amax=recent",
                       &recipe, &error));
    CHECK(recipe.fp8 == FP8_BLOCKS && recipe.floor && recipe.at_random && recipe.hadamard);
    CHECK(recipe.backward == FORMAT_MXFP8 && recipe.history == 16 && recipe.margin == 1);
    CHECK(recipe.is_recent);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        CHECK(!recipe_parse(refused[i][0], &recipe, &error));
        CHECK_INT(error.code, ERROR_USAGE);
        CHECK_CONTAINS(error.text, refused[i][1]);
    }
}

static void a_recipe_that_no_layer_heeds_is_told_of(void) {
    static const struct {
        const char *text;
        Format format;
        const char *key; // NULL: all are heeded
    } cases[] = {
        {"", FORMAT_BF16, NULL},
        {"rounding=random", FORMAT_BF16, "rounding"},
        {"rounding=random", FORMAT_MXFP8, NULL},
        {"hadamard=on", FORMAT_MXFP8, "hadamard"},
        {"hadamard=on", FORMAT_NVFP4, NULL},
        {"scales=floor", FORMAT_NVFP4, "scales"},
        {"scales=floor,backward=mxfp8", FORMAT_NVFP4, NULL},
        {"scales=floor,backward=mxfp8", FORMAT_FP16, "scales"},
        {"margin=1", FORMAT_FP8, NULL},
        {"margin=1", FORMAT_MXFP8, "history, margin or amax"},
        {"margin=1,fp8=current", FORMAT_FP8, "history, margin or amax"},
        {"fp8=current", FORMAT_E5M2, "fp8"},
        {"sums=fp16", FORMAT_FP32, NULL},
        {"norms=scaled", FORMAT_MXFP8, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Recipe recipe;
        const char *wanted;
        CHECK(recipe_parse(cases[i].text, &recipe, NULL));
        const char *key = recipe_unheeded(&recipe, &cases[i].format, 1, true, &wanted);
        CHECK_MESSAGE(key ? cases[i].key && strcmp(key, cases[i].key) == 0 : !cases[i].key,
                      "%s in %s: %s", cases[i].text, format_name(cases[i].format),
                      key ? key : "heeded");
    }
    const char *wanted;
    Recipe recipe;
    CHECK(recipe_parse("norms=scaled", &recipe, NULL));
    CHECK_TEXT(recipe_unheeded(&recipe, &(Format){FORMAT_MXFP8}, 1, false, &wanted), "norms");
}

static void sums_are_refused_where_the_device_has_one_way(void) {
    Backend plain = *backend_list[0];
    Device device = {.backend = &plain, .label = "plain"};
    Recipe recipe;
    Error error;
    plain.sums = false;
    CHECK(recipe_parse("sums=fast14,margin=2", &recipe, NULL));
    CHECK(!recipe_check(&recipe, &device, &error));
    CHECK_INT(error.code, ERROR_UNAVAILABLE);
    CHECK_TEXT(error.text, "sums=fast14: device plain adds up in fp32 alone: leave it out, or run "
                           "on --device cpu");
    plain.sums = true;
    CHECK(recipe_check(&recipe, &device, &error));
}

static void each_factor_is_scaled_as_the_format_says(void) {
    Recipe recipe;
    CHECK(recipe_parse("fp8=blocks,rounding=random,backward=mxfp8", &recipe, NULL));
    ScaleAttr of = recipe_scale(&recipe, FORMAT_FP8, FACTOR_WEIGHT, false);
    CHECK(of.element == FORMAT_E4M3 && of.block == 128 && of.lines == 128 && !of.at_random);
    of = recipe_scale(&recipe, FORMAT_FP8, FACTOR_GRADIENT, false);
    CHECK(of.element == FORMAT_E5M2 && of.block == 128 && of.lines == 1 && of.at_random);
    of = recipe_scale(&recipe, FORMAT_NVFP4, FACTOR_ACTIVATION, false);
    CHECK(of.element == FORMAT_E2M1 && of.scale == FORMAT_E4M3 && of.block == 16);
    of = recipe_scale(&recipe, recipe_format(&recipe, FORMAT_NVFP4, FACTOR_ACTIVATION, true),
                      FACTOR_ACTIVATION, true);
    CHECK(of.element == FORMAT_E4M3 && of.scale == FORMAT_E8M0 && of.block == 32);
    of = recipe_scale(&recipe_usual, FORMAT_MXFP8, FACTOR_GRADIENT, false);
    CHECK(of.element == FORMAT_E4M3 && of.up && !of.at_random && !of.best);
    CHECK(recipe_parse("backward=mxfp8,gradients=e5m2,blocks=best", &recipe, NULL));
    CHECK(recipe_scale(&recipe, FORMAT_MXFP8, FACTOR_GRADIENT, false).element == FORMAT_E5M2);
    CHECK(recipe_scale(&recipe, FORMAT_MXFP8, FACTOR_WEIGHT, false).element == FORMAT_E4M3);
    CHECK(recipe_scale(&recipe, FORMAT_MXFP4, FACTOR_GRADIENT, false).element == FORMAT_E2M1);
    CHECK(recipe_scale(&recipe, FORMAT_NVFP4, FACTOR_WEIGHT, false).best);
    CHECK(!recipe_scale(&recipe, FORMAT_MXFP8, FACTOR_WEIGHT, false).best);
    CHECK(recipe_parse("fp8=blocks", &recipe, NULL));
    CHECK(recipe_delays(&recipe_usual, FORMAT_FP8) && !recipe_delays(&recipe, FORMAT_FP8));
    CHECK(!recipe_delays(&recipe_usual, FORMAT_E4M3));
}

// ---- products -----------------------------------------------------------------------------------

// Two numbers apart by 2^9 in one block of e4m3: the small one is below the smallest.
static void a_block_loses_what_is_too_small_beside_its_largest(void) {
    enum { DEPTH = 64 };
    open_with("cpu", "mxfp8", NULL);
    float host[DEPTH] = {0}, ones[DEPTH];
    for (int i = 0; i < DEPTH; i++)
        ones[i] = 1;
    host[0] = 448, host[1] = 0x1p-11f, host[40] = 0x1p-11f; // the last in a block of its own
    Tensor *x = leaf(tensor_from_host(fixture_device, FORMAT_FP32, 2, (int64_t[]){1, DEPTH}, host,
                                      MEMORY_DATA, NULL));
    Tensor *w = tensor_from_host(fixture_device, FORMAT_FP32, 2, (int64_t[]){1, DEPTH}, ones,
                                 MEMORY_WEIGHTS, NULL);
    OpAttr attr = {.has_out_format = true, .out_format = FORMAT_FP32};
    Tensor *y = op_three(engine, OP_linear, x, w, NULL, &attr, NULL);
    CHECK_NEAR(item(y), 448 + 0x1p-11, 0);
    // What comes back is the weight, whole: the tape kept the tensors themselves.
    CHECK(engine_backward(engine, y, NULL, NULL, NULL));
    float gradient[DEPTH];
    CHECK(x->grad && tensor_read(x->grad, gradient, NULL) && gradient[1] == 1);
    tensor_release(x), tensor_release(w), tensor_release(y);
    engine_close();
}

// Of random numbers 4,096 deep: the largest error of 576 sums, which is 0.6 to 1.1 % as they are
// drawn; what is published for cards, nearly 2 %, is of larger matrices. Chunks mend it.
static void few_digits_err_by_one_percent_and_chunks_mend_it(void) {
    enum { ROWS = 24, COLUMNS = 24, DEPTH = 4096 };
    static float a[ROWS * DEPTH], b[COLUMNS * DEPTH], y[ROWS * COLUMNS];
    static const char *const recipes[] = {"sums=fp32", "sums=split", "sums=fast14", "sums=fp16"};
    static const char *const devices[] = {"cpu", "ref"};
    double worst[2][4] = {{0}};
    open_with("cpu", "e4m3", NULL);
    const bool sums = fixture_device->backend->sums;
    engine_close();
    if (!sums) {
        SKIP("the device adds up in fp32 alone");
        return;
    }
    for (int d = 0; d < 2; d++)
        for (int r = 0; r < 3; r++) {
            const int rows = d == 0 ? ROWS : 2; // the reference takes its time
            open_with(devices[d], "e4m3", recipes[r]);
            OpAttr attr = {.has_out_format = true, .out_format = FORMAT_FP32};
            Tensor *factor[2];
            const int64_t shapes[2][2] = {{rows, DEPTH}, {COLUMNS, DEPTH}};
            float *hosts[2] = {a, b};
            for (int i = 0; i < 2; i++) {
                for (int64_t k = 0; k < shapes[i][0] * DEPTH; k += 2) {
                    RandomBlock block = random_block((uint64_t)i + 3, (uint64_t)k);
                    float pair[2];
                    random_normal(block.word, 0, 1, pair);
                    for (int p = 0; p < 2; p++) // elements as they are: their scale is 1
                        hosts[i][k + p] = number_round_to_element(
                            pair[p] * 64, number_element(FORMAT_E4M3), false, 0);
                }
                hosts[i][0] = 448;
                factor[i] = tensor_from_host(fixture_device, FORMAT_FP32, 2, shapes[i], hosts[i],
                                             MEMORY_DATA, NULL);
            }
            Tensor *product = op_three(engine, OP_linear, factor[0], factor[1], NULL, &attr, NULL);
            CHECK(product && tensor_read(product, y, NULL));
            for (int i = 0; i < rows; i++)
                for (int j = 0; j < COLUMNS; j++) {
                    double sum = 0, squares = 0;
                    for (int k = 0; k < DEPTH; k++) {
                        double term = (double)a[i * DEPTH + k] * (double)b[j * DEPTH + k];
                        sum += term;
                        squares += term * term;
                    }
                    // Beside what such a sum is like: one that cancels is no measure.
                    double error = fabs((double)y[i * COLUMNS + j] - sum) / sqrt(squares);
                    worst[d][r] = error > worst[d][r] ? error : worst[d][r];
                }
            tensor_release(factor[0]), tensor_release(factor[1]), tensor_release(product);
            engine_close();
        }
    if (getenv("MPBENCH_TEST_VERBOSE"))
        printf("# fp32 %.3g, split %.3g, fast14 %.3g\n", worst[0][0], worst[0][1], worst[0][2]);
    CHECK_MESSAGE(worst[0][2] > 0.004 && worst[0][2] < 0.013, "fast14 errs by %g", worst[0][2]);
    CHECK_MESSAGE(worst[0][1] < worst[0][2] / 8, "split errs by %g", worst[0][1]);
    CHECK(worst[0][0] < 1e-5 && worst[1][0] < 1e-6);
    CHECK(worst[1][2] <= worst[0][2]);
}

static void other_operations_stay_as_they_are(void) {
    open_with("cpu", "nvfp4", NULL);
    Tensor *x = filled(2, 4, 0.3f);
    Tensor *y = op_one(engine, OP_softmax, x, NULL, NULL);
    CHECK(y && y->view.format == FORMAT_FP32);
    CHECK(!engine->delayed.state);
    tensor_release(x), tensor_release(y);
    engine_close();
}

int main(void) {
    RUN_TEST(golden_delayed_scales);
    RUN_TEST(what_was_met_is_forgotten_in_time);
    RUN_TEST(room_is_as_large_as_the_layers_need);
    RUN_TEST(without_a_tape_nothing_is_noted);
    RUN_TEST(recipes_are_read_and_refused_by_name);
    RUN_TEST(a_recipe_that_no_layer_heeds_is_told_of);
    RUN_TEST(sums_are_refused_where_the_device_has_one_way);
    RUN_TEST(each_factor_is_scaled_as_the_format_says);
    RUN_TEST(a_block_loses_what_is_too_small_beside_its_largest);
    RUN_TEST(few_digits_err_by_one_percent_and_chunks_mend_it);
    RUN_TEST(other_operations_stay_as_they_are);
    return test_end();
}
