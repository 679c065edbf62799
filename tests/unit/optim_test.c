// What optimizers, clipping and averages promise, on every device.
#include "kernel/random.h"
#include "tests/training.h"

// ---- scaled gradients ---------------------------------------------------------------------------

enum { WIDE = 64 };

static void ragged(float *values, int count, uint64_t seed) {
    for (int i = 0; i < count; i++)
        values[i] = random_uniform(random_block(seed, (uint64_t)i).word[0]) - 0.37f;
}

static void powers_of_two_leave_unscaled_gradients_bit_equal(void) {
    float start[WIDE], slopes[WIDE], plain[WIDE];
    ragged(start, WIDE, 1);
    ragged(slopes, WIDE, 2);
    Tensor *weight = parameter("w", WIDE, start);
    Optimizer *optimizer = sgd(weight, 0.1);
    const char *const scales[] = {"none", "1", "2", "1024", "65536", "16777216"};
    for (size_t k = 0; k < sizeof scales / sizeof *scales; k++) {
        Scaler *scaler = scaler_named(scales[k]);
        optimizer_zero_grad(optimizer);
        backward(scaler, weight, slopes);
        DONE(scaler_unscale(scaler, optimizer_gradients(optimizer), &error));
        const float *gradient = values_of(weight->grad);
        if (k == 0)
            memcpy(plain, gradient, sizeof plain);
        CHECK_MESSAGE(memcmp(plain, gradient, sizeof plain) == 0, "scale %s", scales[k]);
        CHECK(memcmp(plain, slopes, sizeof plain) == 0);
        scaler_free(scaler);
    }
    optimizer_free(optimizer);
    tensor_release(weight);
}

static void gradients_are_rounded_to_the_layers_format_unless_full(void) {
    Tensor *weight = parameter("w", 3, (float[]){1, 1, 1});
    const float slopes[] = {1.0f + 0x1p-12f, 0x1p-30f, 3};
    parameter_of(weight)->round_to = FORMAT_FP16;
    for (int full = 0; full < 2; full++) {
        OptimizerOptions options = options_of(OPTIMIZER_SGD, 0.1);
        options.full_gradients = full != 0;
        Optimizer *optimizer = optimizer_over(&options, &weight, 1);
        GradStats stats;
        gradient_set(weight, slopes);
        DONE(gradients_scan(optimizer_gradients(optimizer), NULL, &error));
        const float *gradient = values_of(weight->grad);
        CHECK_NEAR(gradient[0], full ? slopes[0] : 1, 0);
        CHECK_NEAR(gradient[1], full ? slopes[1] : 0, 0);
        read_stats(optimizer, &stats);
        CHECK_INT(stats.count, 3);
        CHECK_INT(stats.flushed, !full);
        CHECK_INT(stats.exponents[0 - EXPONENT_LOWEST], 1);
        CHECK_INT(stats.exponents[1 - EXPONENT_LOWEST], 1);
        optimizer_free(optimizer);
    }
    tensor_release(weight);
}

// ---- skipped steps ------------------------------------------------------------------------------

typedef struct Snapshot { // floats only: there is no padding to compare
    float value[2], first[2], second[2], low[2], buffer, applied;
} Snapshot;

static Snapshot snapshot(Optimizer *optimizer, const Tensor *buffer) {
    Snapshot shot = {0};
    Tensor *weight = optimizer_parameter(optimizer, 0);
    memcpy(shot.value, values_of(weight), sizeof shot.value);
    memcpy(shot.first, values_of(optimizer_moment(optimizer, 0, 0)), sizeof shot.first);
    memcpy(shot.second, values_of(optimizer_moment(optimizer, 0, 1)), sizeof shot.second);
    memcpy(shot.low, values_of(parameter_of(weight)->low), sizeof shot.low);
    shot.buffer = value_of(buffer, 0);
    shot.applied = (float)optimizer_applied(optimizer);
    return shot;
}

static void poisoned_step(Optimizer *optimizer, Tensor *buffer, bool poisoned) {
    Tensor *weight = optimizer_parameter(optimizer, 0);
    Tensor *next = constant(0, 1, (float[]){value_of(buffer, 0) + 1});
    DONE(engine_change_buffer(engine, buffer, next, weight, &error));
    tensor_release(next);
    optimizer_zero_grad(optimizer);
    backward(NULL, weight, (float[]){0.25f, poisoned ? NAN : -3});
    DONE(optimizer_step(optimizer, &error));
}

static void a_poisoned_gradient_leaves_everything_bit_identical(void) {
    Tensor *weight = parameter("head.weight", 2, (float[]){0.3f, -0.7f});
    Tensor *buffer = constant(0, 1, (float[]){10});
    OptimizerOptions options = options_of(OPTIMIZER_ADAM, 0.1);
    options.schedule = (Schedule){.kind = SCHEDULE_COSINE, .rate = 0.1, .warmup = 2, .total = 9};
    Optimizer *optimizer = optimizer_over(&options, &weight, 1);
    const Tensor *low = parameter_in_format(weight, FORMAT_BF16, &error);
    for (int i = 0; i < 3; i++)
        poisoned_step(optimizer, buffer, false);
    Snapshot before = snapshot(optimizer, buffer);
    poisoned_step(optimizer, buffer, true);
    Snapshot after = snapshot(optimizer, buffer);
    CHECK(memcmp(&before, &after, sizeof before) == 0);
    CHECK_NEAR(after.buffer, 13, 0);
    OptimizerReport report = optimizer_report(optimizer);
    CHECK(report.found_inf);
    CHECK_INT(report.applied, 3);
    CHECK_INT(report.skipped, 1);
    // The next one goes on as if nothing had been: the fourth step of a control.
    poisoned_step(optimizer, buffer, false);
    Snapshot next = snapshot(optimizer, buffer);
    Tensor *control = parameter("control", 2, (float[]){0.3f, -0.7f});
    Optimizer *other = optimizer_over(&options, &control, 1);
    CHECK(parameter_in_format(control, FORMAT_BF16, &error));
    for (int i = 0; i < 4; i++) {
        optimizer_zero_grad(other);
        backward(NULL, control, (float[]){0.25f, -3});
        DONE(optimizer_step(other, &error));
    }
    CHECK(memcmp(next.value, values_of(control), sizeof next.value) == 0);
    CHECK(memcmp(next.second, values_of(optimizer_moment(other, 0, 1)), sizeof next.second) == 0);
    // The low copy was rewritten where it lies.
    CHECK(parameter_of(weight)->low == low);
    for (int i = 0; i < 2; i++)
        CHECK_NEAR(next.low[i], format_round(FORMAT_BF16, next.value[i], OVERFLOW_SATURATES), 0);
    optimizer_free(optimizer);
    optimizer_free(other);
    tensor_release(weight);
    tensor_release(control);
    tensor_release(buffer);
}

// ---- rules --------------------------------------------------------------------------------------

static void groups_have_their_own_rate_and_decay(void) {
    Tensor *weights[3];
    for (int i = 0; i < 3; i++)
        weights[i] = parameter("w", 1, (float[]){2});
    OptimizerOptions options = options_of(OPTIMIZER_SGD, 0.1);
    const OptimizerGroup groups[] = {{weights, 1, 1, 0.5}, {weights + 1, 2, 0.25, 0}};
    Optimizer *optimizer = optimizer_new(engine, &options, groups, 2, &error);
    CHECK_INT(optimizer_parameter_count(optimizer), 3);
    for (int i = 0; i < 2; i++) // the third has no gradient
        gradient_set(weights[i], (float[]){1});
    DONE(optimizer_step(optimizer, &error));
    CHECK_NEAR(value_of(weights[0], 0), 2 - 0.1 * (1 + 0.5 * 2), 1e-6);
    CHECK_NEAR(value_of(weights[1], 0), 2 - 0.025, 1e-6);
    CHECK_NEAR(value_of(weights[2], 0), 2, 0);
    gradient_set(weights[2], (float[]){4}); // the set of gradients grows
    DONE(optimizer_step(optimizer, &error));
    CHECK_NEAR(value_of(weights[1], 0), 2 - 2 * 0.025, 1e-6);
    CHECK_NEAR(value_of(weights[2], 0), 2 - 0.025 * 4, 1e-6);
    GradStats stats[3];
    tensor_release(weights[0]->grad); // and shrinks
    weights[0]->grad = NULL;
    DONE(optimizer_step(optimizer, &error));
    CHECK_NEAR(value_of(weights[2], 0), 2 - 2 * 0.025 * 4, 1e-6);
    read_stats(optimizer, stats);
    CHECK_INT(stats[0].count, 0);
    CHECK_INT(stats[1].count, 1);
    CHECK_NEAR(stats[2].largest, 4, 0);
    optimizer_free(optimizer);
    for (int i = 0; i < 3; i++)
        tensor_release(weights[i]);
}

static void lamb_trusts_by_tensor(void) {
    Tensor *weight = parameter("w", 2, (float[]){3, 4});
    OptimizerOptions options = options_of(OPTIMIZER_LAMB, 0.1);
    options.weight_decay = 0.5;
    Optimizer *optimizer = optimizer_over(&options, &weight, 1);
    gradient_set(weight, (float[]){30, -40}); // brought to norm 1, which its signs do not feel
    DONE(optimizer_step(optimizer, &error));
    // u = sign(g) + p / 2 = (2.5, 1); r = 5 / sqrt(7.25)
    double step = 0.1 * 5 / sqrt(7.25);
    CHECK_NEAR(value_of(weight, 0), 3 - step * 2.5, 1e-5);
    CHECK_NEAR(value_of(weight, 1), 4 - step * 1, 1e-5);
    CHECK_NEAR(value_of(optimizer_moment(optimizer, 0, 0), 0), 0.1 * 0.6, 1e-6);
    optimizer_free(optimizer);
    tensor_release(weight);
}

// How far a step moves a weight whose gradient is 1, after so many applied ones.
static double rate_after(Optimizer *optimizer, uint64_t applied) {
    Tensor *weight = optimizer_parameter(optimizer, 0);
    optimizer_set_progress(optimizer, applied, 0);
    gradient_set(weight, (float[]){1});
    double before = value_of(weight, 0);
    DONE(optimizer_step(optimizer, &error));
    CHECK_INT(optimizer_applied(optimizer), applied + 1);
    return before - value_of(weight, 0);
}

static void schedules_follow_the_applied_steps(void) {
    const struct {
        Schedule schedule;
        uint64_t applied;
        double rate;
    } cases[] = {
        {{.kind = SCHEDULE_CONSTANT}, 1000, 0.5},
        {{.kind = SCHEDULE_LINEAR_WARMUP, .warmup = 4, .total = 12}, 0, 0},
        {{.kind = SCHEDULE_LINEAR_WARMUP, .start = 0.5, .warmup = 4, .total = 12}, 0, 0.25},
        {{.kind = SCHEDULE_LINEAR_WARMUP, .start = 0.5, .warmup = 4, .total = 12}, 1, 0.3125},
        {{.kind = SCHEDULE_LINEAR_WARMUP, .warmup = 4, .total = 12}, 3, 0.375},
        {{.kind = SCHEDULE_LINEAR_WARMUP, .warmup = 4, .total = 12}, 4, 0.5},
        {{.kind = SCHEDULE_LINEAR_WARMUP, .warmup = 4, .total = 12}, 8, 0.25},
        {{.kind = SCHEDULE_LINEAR_WARMUP, .warmup = 4, .total = 12}, 12, 0},
        {{.kind = SCHEDULE_COSINE, .start = 0.5, .warmup = 2, .total = 10, .floor = 0.1}, 0, 0.25},
        {{.kind = SCHEDULE_COSINE, .warmup = 2, .total = 10, .floor = 0.1}, 6, 0.3},
        {{.kind = SCHEDULE_COSINE, .warmup = 2, .total = 10, .floor = 0.1}, 99, 0.1},
        {{.kind = SCHEDULE_STEP, .every = 3, .factor = 0.5}, 2, 0.5},
        {{.kind = SCHEDULE_STEP, .every = 3, .factor = 0.5}, 7, 0.125},
    };
    Tensor *weight = parameter("w", 1, (float[]){0});
    Optimizer *optimizer = sgd(weight, 0.5);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        DONE(optimizer_set_schedule(optimizer, &cases[i].schedule, &error));
        CHECK_NEAR(rate_after(optimizer, cases[i].applied), cases[i].rate, 1e-6);
    }
    DONE(optimizer_set_rate(optimizer, 0.25, &error));
    CHECK_NEAR(rate_after(optimizer, 7), 0.0625, 1e-6);
    CHECK_NEAR(optimizer_rate(optimizer), 0.25, 0);
    REFUSED(optimizer_set_rate(optimizer, NAN, &error), "lr is nan");
    const Schedule never = {.kind = SCHEDULE_STEP, .every = 0, .factor = 1};
    REFUSED(optimizer_set_schedule(optimizer, &never, &error), "schedule.every is 0");
    optimizer_free(optimizer);
    tensor_release(weight);
}

static void stochastic_rounding_is_unbiased_and_seeded(void) {
    enum { COUNT = 2048 };
    static float ones[COUNT], slopes[COUNT];
    double mean[3];
    for (int i = 0; i < COUNT; i++) {
        ones[i] = -1;
        slopes[i] = 0x1p-9f; // a quarter of bf16's step above 1
    }
    for (int run = 0; run < 3; run++) { // to nearest, then with two seeds
        engine_seed(engine, (uint64_t)run);
        Tensor *weight = parameter_in(FORMAT_BF16, "w", COUNT, ones);
        OptimizerOptions options = options_of(OPTIMIZER_SGD, 1);
        options.stochastic = run > 0;
        Optimizer *optimizer = optimizer_over(&options, &weight, 1);
        double moved[2] = {0, 0};
        for (int step = 0; step < 2; step++) {
            gradient_set(weight, slopes);
            DONE(optimizer_step(optimizer, &error));
            const float *values = values_of(weight);
            for (int i = 0; i < COUNT; i++)
                moved[step] += (-1 - (double)values[i]) / 0x1p-7 / COUNT;
        }
        mean[run] = moved[0];
        // Four standard deviations: sqrt(.25 * .75 / 2048) each.
        CHECK_NEAR(moved[0], run ? 0.25 : 0, run ? 0.04 : 0);
        CHECK_NEAR(moved[1], run ? 0.5 : 0, run ? 0.06 : 0);
        optimizer_free(optimizer);
        tensor_release(weight);
    }
    CHECK(mean[1] != mean[2]);
}

// ---- clipping and averages ----------------------------------------------------------------------

static void clipping_bounds_the_norm_or_each_value(void) {
    Tensor *weights[] = {parameter("a", 1, (float[]){0}), parameter("b", 2, (float[]){0, 0}),
                         parameter("c", 1, (float[]){0})};
    gradient_set(weights[0], (float[]){2});
    gradient_set(weights[1], (float[]){-4, 4}); // norm 6 in all
    Tensor *norm = optimizer_clip_norm(engine, weights, 3, 3, &error);
    CHECK_INT(norm->view.ndim, 0);
    CHECK_NEAR(value_of(norm, 0), 6, 1e-6);
    CHECK_NEAR(value_of(weights[0]->grad, 0), 1, 1e-6);
    CHECK_NEAR(value_of(weights[1]->grad, 0), -2, 1e-6);
    CHECK(!weights[2]->grad);
    tensor_release(norm);
    norm = optimizer_clip_norm(engine, weights, 3, 100, &error);
    CHECK_NEAR(value_of(norm, 0), 3, 1e-6);
    CHECK_NEAR(value_of(weights[1]->grad, 1), 2, 1e-6);
    tensor_release(norm);
    DONE(optimizer_clip_value(engine, weights, 3, 1.5, &error));
    CHECK_NEAR(value_of(weights[0]->grad, 0), 1, 1e-6);
    CHECK_NEAR(value_of(weights[1]->grad, 0), -1.5, 0);
    CHECK_NEAR(value_of(weights[1]->grad, 1), 1.5, 0);
    REFUSED(optimizer_clip_norm(engine, weights, 3, 0, &error), "limit is 0");
    REFUSED(optimizer_clip_value(engine, weights + 2, 1, 1, &error), "no gradient was recorded");
    for (int i = 0; i < 3; i++)
        tensor_release(weights[i]);
}

static void averages_follow_and_are_exchanged(void) {
    const Format formats[] = {FORMAT_FP32, FORMAT_FP16};
    for (int f = 0; f < 2; f++) {
        Tensor *weight = parameter_in(formats[f], "w", 1, (float[]){0});
        Optimizer *optimizer = sgd(weight, 1);
        WeightAverage *average = weight_average_new(engine, &weight, 1, 0.75, &error);
        const float slopes[] = {-1, -1, NAN};
        for (int i = 0; i < 3; i++) { // the last is skipped: it counts for nothing
            gradient_set(weight, slopes + i);
            DONE(optimizer_step(optimizer, &error));
            DONE(weight_average_update(average, optimizer_flags(optimizer), &error));
        }
        double expected = 0.75 * (0.25 * 1) + 0.25 * 2;
        if (formats[f] == FORMAT_FP32)
            CHECK(parameter_in_format(weight, FORMAT_BF16, &error));
        for (int turn = 0; turn < 2; turn++) {
            CHECK_NEAR(value_of(weight, 0), 2, 0);
            DONE(weight_average_swap(average, &error));
            CHECK_NEAR(value_of(weight, 0), expected, 1e-6);
            CHECK(!parameter_of(weight)->low); // what was made of the weight is of no use now
            REFUSED(weight_average_update(average, NULL, &error), "swap");
            DONE(weight_average_swap(average, &error));
        }
        CHECK_NEAR(value_of(weight, 0), 2, 0);
        weight_average_free(average);
        optimizer_free(optimizer);
        tensor_release(weight);
    }
    REFUSED(weight_average_new(engine, NULL, 0, 1, &error), "decay is 1");
}

// ---- cost ---------------------------------------------------------------------------------------

static void steady_steps_ask_nothing_of_the_system(void) {
    Tensor *weights[4];
    for (int i = 0; i < 4; i++)
        weights[i] = parameter("w", 3, (float[]){1, 2, 3});
    OptimizerOptions options = options_of(OPTIMIZER_ADAMW, 1e-3);
    Optimizer *optimizer = optimizer_over(&options, weights, 4);
    Scaler *scaler = scaler_named("dynamic");
    uint64_t calls = 0;
    for (int step = 0; step < 6; step++) {
        optimizer_zero_grad(optimizer);
        for (int i = 0; i < 4; i++)
            backward(scaler, weights[i], (float[]){1, -1, 2});
        DONE(scaler_unscale(scaler, optimizer_gradients(optimizer), &error));
        tensor_release(optimizer_clip_norm(engine, weights, 4, 1, &error));
        DONE(optimizer_step_scaled(optimizer, scaler, &error));
        DONE(scaler_update(scaler, 0, &error));
        if (step == 1)
            calls = allocator_use(device->allocator).system_calls;
    }
    CHECK_INT(allocator_use(device->allocator).system_calls, calls);
    CHECK_INT(optimizer_applied(optimizer), 6);
    optimizer_free(optimizer);
    scaler_free(scaler);
    for (int i = 0; i < 4; i++)
        tensor_release(weights[i]);
}

static void gradients_with_gaps_are_made_dense(void) {
    Tensor *weight = constant(2, 3, (float[]){0, 0, 0, 0, 0, 0});
    DONE(parameter_attach(weight, "w", 0, false, &error));
    Optimizer *optimizer = sgd(weight, 1);
    Tensor *turned = constant(3, 2, (float[]){1, 4, 2, 5, 3, 6});
    weight->grad = op_transpose(engine, turned, 0, 1, &error);
    tensor_release(turned);
    DONE(optimizer_step(optimizer, &error));
    const float *values = values_of(weight);
    for (int i = 0; i < 6; i++)
        CHECK_NEAR(values[i], -(i + 1), 0);
    optimizer_free(optimizer);
    tensor_release(weight);
}

int main(void) {
#define TEST(name) \
    { #name, name }
    const TrainingTest tests[] = {
        TEST(powers_of_two_leave_unscaled_gradients_bit_equal),
        TEST(gradients_are_rounded_to_the_layers_format_unless_full),
        TEST(a_poisoned_gradient_leaves_everything_bit_identical),
        TEST(groups_have_their_own_rate_and_decay),
        TEST(lamb_trusts_by_tensor),
        TEST(schedules_follow_the_applied_steps),
        TEST(stochastic_rounding_is_unbiased_and_seeded),
        TEST(clipping_bounds_the_norm_or_each_value),
        TEST(averages_follow_and_are_exchanged),
        TEST(steady_steps_ask_nothing_of_the_system),
        TEST(gradients_with_gaps_are_made_dense),
    };
    return training_run(tests, sizeof tests / sizeof *tests);
}
