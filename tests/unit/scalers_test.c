// Gradients of several walks and of several losses: each rounded to its layer's format, divided by
// its own scale and checked for its own scaler before it joins the others.
#include <math.h>

#include "tests/training.h"

static Tensor *weight_in_fp16(const char *name, int count, const float *values) {
    Tensor *weight = parameter(name, count, values);
    parameter_of(weight)->round_to = FORMAT_FP16;
    return weight;
}

// ---- several walks ------------------------------------------------------------------------------

static void a_sum_does_not_overflow_where_its_parts_do_not(void) {
    const char *const scales[] = {"none", "1", "64"};
    for (int i = 0; i < 3; i++) {
        float scale = i == 2 ? 64 : 1;
        Tensor *weight = weight_in_fp16("fc.weight", 1, (float[]){0});
        Optimizer *optimizer = sgd(weight, 1);
        Scaler *scaler = scaler_named(scales[i]);
        for (int part = 0; part < 3; part++)
            backward(scaler, weight, (float[]){32768 / scale});
        DONE(optimizer_step_scaled(optimizer, scaler, &error));
        CHECK_INT(optimizer_report(optimizer).skipped, 0);
        CHECK_NEAR(value_of(weight, 0), -3 * 32768 / (double)scale, 0);
        DONE(scaler_update(scaler, 0, &error));
        optimizer_free(optimizer);
        scaler_free(scaler);
        tensor_release(weight);
    }
}

static void each_part_is_rounded_by_itself(void) {
    const float more = 1 + 0x1p-11f; // halfway to what fp16 holds next: the even one is below
    Tensor *weight = weight_in_fp16("fc.weight", 2, (float[]){0, 0});
    OptimizerOptions options = options_of(OPTIMIZER_SGD, 1);
    for (int full = 0; full < 2; full++) {
        options.full_gradients = full;
        Optimizer *optimizer = optimizer_over(&options, &weight, 1);
        optimizer_zero_grad(optimizer);
        for (int part = 0; part < 4; part++)
            backward(NULL, weight, (float[]){more, 0x1p-26f});
        DONE(gradients_scan(optimizer_gradients(optimizer), NULL, &error));
        CHECK_NEAR(value_of(weight->grad, 0), full ? 4 * more : 4, 0);
        CHECK_NEAR(value_of(weight->grad, 1), full ? 0x1p-24 : 0, 0);
        GradStats stats;
        read_stats(optimizer, &stats);
        CHECK_INT(stats.count, 2);
        CHECK_INT(stats.flushed, full ? 0 : 1);
        CHECK_INT(stats.zeros, 0);
        optimizer_free(optimizer);
    }
    tensor_release(weight);
}

static void a_part_that_overflows_skips_the_step_and_is_counted_so(void) {
    Tensor *weight = weight_in_fp16("fc.weight", 2, (float[]){1, 1});
    Optimizer *optimizer = sgd(weight, 1);
    Scaler *scaler = scaler_named("dynamic");
    for (int part = 0; part < 3; part++)
        backward(scaler, weight, (float[]){part == 1 ? 2 : 0.5f, 0.25f});
    DONE(optimizer_step_scaled(optimizer, scaler, &error));
    GradStats stats;
    read_stats(optimizer, &stats);
    CHECK_INT(stats.overflowed, 1);
    CHECK_INT(stats.infs + stats.nans, 0);
    CHECK_INT(optimizer_report(optimizer).skipped, 1);
    CHECK_NEAR(value_of(weight, 1), 1, 0);
    DONE(scaler_update(scaler, 0, &error));
    CHECK_NEAR(scaler_get(scaler), 32768, 0);
    optimizer_free(optimizer);
    scaler_free(scaler);
    tensor_release(weight);
}

static void a_walk_that_fails_leaves_what_was_there(void) {
    Tensor *weight = parameter("fc.weight", 1, (float[]){1});
    Optimizer *optimizer = sgd(weight, 1);
    Scaler *a = scaler_named("16"), *b = scaler_named("4");
    backward(a, weight, (float[]){2});
    Tensor *first = slope_loss(weight, (float[]){3}), *second = slope_loss(weight, (float[]){5});
    Tensor *x = engine_scale_loss(engine, a, first, &error),
           *y = engine_scale_loss(engine, b, second, &error);
    Tensor *both = op_two(engine, OP_add, x, y, NULL, &error);
    REFUSED(engine_backward(engine, both, NULL, NULL, &error), "call backward on each");
    CHECK_NEAR(value_of(weight->grad, 0), 32, 0);
    DONE(optimizer_step_scaled(optimizer, a, &error));
    CHECK_NEAR(value_of(weight, 0), -1, 0);
    tensor_release(first);
    tensor_release(second);
    tensor_release(x);
    tensor_release(y);
    tensor_release(both);
    optimizer_free(optimizer);
    scaler_free(a);
    scaler_free(b);
    tensor_release(weight);
}

// ---- a loss each --------------------------------------------------------------------------------

typedef struct Pair { // two losses on `both`, one on each of the others
    Tensor *weight[3];
    Optimizer *optimizer;
    Scaler *a, *b;
} Pair;

static Pair pair_new(void) {
    static const char *const names[] = {"only_a", "both", "only_b"};
    Pair pair;
    for (int i = 0; i < 3; i++)
        pair.weight[i] = parameter(names[i], 1, (float[]){0});
    OptimizerOptions options = options_of(OPTIMIZER_SGD, 1);
    pair.optimizer = optimizer_over(&options, pair.weight, 3);
    pair.a = scaler_of(dynamic_rule(1024, 2, 0.5, 100, 1));
    pair.b = scaler_of(dynamic_rule(16, 2, 0.5, 100, 1));
    return pair;
}

static void pair_clear(Pair *pair) {
    optimizer_free(pair->optimizer);
    scaler_free(pair->a);
    scaler_free(pair->b);
    for (int i = 0; i < 3; i++)
        tensor_release(pair->weight[i]);
}

static void backward_a(Pair *pair, float slope) {
    backward(pair->a, pair->weight[0], &slope);
    backward(pair->a, pair->weight[1], &slope);
}

static void backward_b(Pair *pair, float slope) {
    backward(pair->b, pair->weight[1], &slope);
    backward(pair->b, pair->weight[2], &slope);
}

// Each way to write an iteration; `x` and `y` are the slopes of the losses.
static void one_step(Pair *pair, float x, float y) {
    backward_a(pair, x);
    backward_b(pair, y);
    DONE(optimizer_step_scaled(pair->optimizer, pair->a, &error));
}

static void other_step(Pair *pair, float x, float y) {
    backward_b(pair, y);
    backward_a(pair, x);
    DONE(optimizer_step_scaled(pair->optimizer, pair->a, &error));
}

static void both_unscaled_first(Pair *pair, float x, float y) {
    backward_a(pair, x);
    backward_b(pair, y);
    DONE(scaler_unscale(pair->a, optimizer_gradients(pair->optimizer), &error));
    REFUSED(optimizer_clip_norm(engine, pair->weight, 3, 1000, &error), "applied at scale 16");
    DONE(scaler_unscale(pair->b, optimizer_gradients(pair->optimizer), &error));
    CHECK_NEAR(value_of(pair->weight[1]->grad, 0), (double)x + (double)y, 0);
    Tensor *norm = optimizer_clip_norm(engine, pair->weight, 3, 1000, &error);
    CHECK(norm);
    tensor_release(norm);
    DONE(optimizer_step_scaled(pair->optimizer, pair->b, &error));
}

static void unscaled_in_turn(Pair *pair, float x, float y) {
    backward_a(pair, x);
    DONE(scaler_unscale(pair->a, optimizer_gradients(pair->optimizer), &error));
    backward_b(pair, y);
    DONE(scaler_unscale(pair->b, optimizer_gradients(pair->optimizer), &error));
    DONE(optimizer_step(pair->optimizer, &error));
}

static void unscaled_in_turn_and_stepped(Pair *pair, float x, float y) {
    backward_a(pair, x);
    DONE(scaler_unscale(pair->a, optimizer_gradients(pair->optimizer), &error));
    backward_b(pair, y);
    DONE(optimizer_step_scaled(pair->optimizer, pair->a, &error));
}

static void (*const ways[])(Pair *pair, float x, float y) = {
    one_step, other_step, both_unscaled_first, unscaled_in_turn, unscaled_in_turn_and_stepped};

static void each_loss_is_divided_by_its_own_scale(void) {
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        Pair pair = pair_new();
        for (int turn = 0; turn < 3; turn++) {
            optimizer_zero_grad(pair.optimizer);
            ways[way](&pair, 2, 3);
            REFUSED(optimizer_step_scaled(pair.optimizer, pair.b, &error), "step: called twice");
            DONE(scaler_update(pair.a, 0, &error));
            DONE(scaler_update(pair.b, 0, &error));
            CHECK_NEAR(value_of(pair.weight[0], 0), -2 * (turn + 1), 0);
            CHECK_NEAR(value_of(pair.weight[1], 0), -5 * (turn + 1), 0);
            CHECK_NEAR(value_of(pair.weight[2], 0), -3 * (turn + 1), 0);
            DONE(scaler_set(pair.a, turn == 0 ? 4 : 256, &error));
        }
        pair_clear(&pair);
    }
}

static void an_overflow_of_one_loss_backs_its_own_scaler_off(void) {
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++)
        for (int bad = 0; bad < 2; bad++) {
            Pair pair = pair_new();
            if (ways[way] == both_unscaled_first) { // asks for the sum, which is none here
                pair_clear(&pair);
                continue;
            }
            ways[way](&pair, bad == 0 ? INFINITY : 2, bad == 1 ? INFINITY : 3);
            DONE(scaler_update(pair.a, 0, &error));
            DONE(scaler_update(pair.b, 0, &error));
            CHECK_NEAR(scaler_get(pair.a), bad == 0 ? 512 : 1024, 0);
            CHECK_NEAR(scaler_get(pair.b), bad == 1 ? 8 : 16, 0);
            for (int i = 0; i < 3; i++)
                CHECK_NEAR(value_of(pair.weight[i], 0), 0, 0);
            CHECK_INT(optimizer_report(pair.optimizer).skipped, 1);
            pair_clear(&pair);
        }
}

static void a_loss_that_no_scaler_scaled_joins_as_it_is(void) {
    Pair pair = pair_new();
    backward_a(&pair, 2);
    backward(NULL, pair.weight[1], (float[]){7});
    backward(NULL, pair.weight[2], (float[]){7});
    DONE(optimizer_step_scaled(pair.optimizer, pair.a, &error));
    CHECK_NEAR(value_of(pair.weight[0], 0), -2, 0);
    CHECK_NEAR(value_of(pair.weight[1], 0), -9, 0);
    CHECK_NEAR(value_of(pair.weight[2], 0), -7, 0);
    pair_clear(&pair);
}

static void parts_of_several_scalers_are_rounded_at_their_own_scales(void) {
    Pair pair = pair_new();
    parameter_of(pair.weight[1])->round_to = FORMAT_FP16;
    for (int part = 0; part < 2; part++) { // lost at 16, kept at 1024
        backward(pair.a, pair.weight[1], (float[]){0x1p-33f});
        backward(pair.b, pair.weight[1], (float[]){0x1p-33f});
    }
    DONE(optimizer_step_scaled(pair.optimizer, pair.b, &error));
    CHECK_NEAR(value_of(pair.weight[1], 0), -0x1p-32, 0);
    pair_clear(&pair);
}

// ---- refusals -----------------------------------------------------------------------------------

static void a_step_on_gradients_that_are_still_scaled_is_refused(void) {
    Tensor *weight = parameter("fc.weight", 1, (float[]){0});
    Optimizer *optimizer = sgd(weight, 1);
    Scaler *scaler = scaler_named("64"), *one = scaler_named("1");
    backward(scaler, weight, (float[]){1});
    REFUSED(optimizer_step(optimizer, &error),
            "step: the gradient of fc.weight is not unscaled yet: it is 64 times the true one; "
            "call scaler:step(optimizer)");
    CHECK_NEAR(value_of(weight, 0), 0, 0);
    DONE(optimizer_step_scaled(optimizer, scaler, &error));
    CHECK_NEAR(value_of(weight, 0), -1, 0);
    optimizer_zero_grad(optimizer);
    backward(one, weight, (float[]){1}); // it is the true one
    DONE(optimizer_step(optimizer, &error));
    optimizer_zero_grad(optimizer);
    Scaler *gone = scaler_named("8");
    backward(gone, weight, (float[]){1});
    Tensor *scaled = engine_scale_loss(engine, one, weight, &error);
    CHECK(scaled);
    tensor_release(scaled);
    scaler_free(gone);
    REFUSED(optimizer_step_scaled(optimizer, one, &error), "the scale of a scaler that is gone");
    optimizer_free(optimizer);
    scaler_free(scaler);
    scaler_free(one);
    tensor_release(weight);
}

static void what_comes_out_of_turn_is_refused(void) {
    Pair pair = pair_new();
    backward_a(&pair, 2);
    backward_b(&pair, 3);
    DONE(scaler_unscale(pair.a, optimizer_gradients(pair.optimizer), &error));
    backward_a(&pair, 2);
    REFUSED(optimizer_step_scaled(pair.optimizer, pair.a, &error), "were added after unscale");
    pair_clear(&pair);
    pair = pair_new();
    for (int turn = 0; turn < 2; turn++) { // b is never updated
        optimizer_zero_grad(pair.optimizer);
        backward_a(&pair, 2);
        backward_b(&pair, 3);
        if (turn == 0) {
            DONE(optimizer_step_scaled(pair.optimizer, pair.a, &error));
            DONE(scaler_update(pair.a, 0, &error));
        } else {
            REFUSED(
                optimizer_step_scaled(pair.optimizer, pair.a, &error),
                "step: called twice for SGD over 3 parameters, before in step 1, without update");
        }
    }
    pair_clear(&pair);
}

static void a_parameter_of_two_optimizers_is_refused_by_name(void) {
    Tensor *weight = parameter("fc.weight", 1, (float[]){0});
    Optimizer *first = sgd(weight, 1), *second = sgd(weight, 1);
    Scaler *scaler = scaler_named("64"), *none = scaler_named("none");
    Scaler *const scalers[] = {scaler, none};
    for (int i = 0; i < 2; i++) {
        optimizer_zero_grad(first);
        backward(scalers[i], weight, (float[]){1});
        DONE(scaler_unscale(scalers[i], optimizer_gradients(first), &error));
        REFUSED(scaler_unscale(scalers[i], optimizer_gradients(second), &error),
                "unscale: fc.weight is in two optimizers, SGD over 1 parameter and SGD over 1");
        REFUSED(optimizer_step_scaled(second, scalers[i], &error),
                "step: fc.weight is in two optimizers");
        DONE(optimizer_step_scaled(first, scalers[i], &error));
        DONE(scaler_update(scalers[i], 0, &error));
    }
    optimizer_zero_grad(first); // one after the other, in iterations of their own
    backward(scaler, weight, (float[]){1});
    DONE(optimizer_step_scaled(second, scaler, &error));
    CHECK_NEAR(value_of(weight, 0), -3, 0);
    optimizer_free(first);
    optimizer_free(second);
    scaler_free(scaler);
    scaler_free(none);
    tensor_release(weight);
}

#define TEST(name) \
    { #name, name }

int main(void) {
    static const TrainingTest tests[] = {
        TEST(a_sum_does_not_overflow_where_its_parts_do_not),
        TEST(each_part_is_rounded_by_itself),
        TEST(a_part_that_overflows_skips_the_step_and_is_counted_so),
        TEST(a_walk_that_fails_leaves_what_was_there),
        TEST(each_loss_is_divided_by_its_own_scale),
        TEST(an_overflow_of_one_loss_backs_its_own_scaler_off),
        TEST(a_loss_that_no_scaler_scaled_joins_as_it_is),
        TEST(parts_of_several_scalers_are_rounded_at_their_own_scales),
        TEST(a_step_on_gradients_that_are_still_scaled_is_refused),
        TEST(what_comes_out_of_turn_is_refused),
        TEST(a_parameter_of_two_optimizers_is_refused_by_name),
    };
    return training_run(tests, sizeof tests / sizeof *tests);
}
