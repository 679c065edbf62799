// What skipped steps promise about running statistics, whoever trains the weights of their norms.
#include "tests/training.h"

// A forward pass in training: the statistic grows by `amount`.
static void statistic_moves(Tensor *buffer, Tensor *owner, float amount) {
    Tensor *next = constant(0, 1, (float[]){value_of(buffer, 0) + amount});
    DONE(engine_change_buffer(engine, buffer, next, owner, &error));
    tensor_release(next);
}

static void steps(Optimizer *optimizer, bool skipped) {
    optimizer_zero_grad(optimizer);
    backward(NULL, optimizer_parameter(optimizer, 0), (float[]){skipped ? NAN : 0});
    DONE(optimizer_step(optimizer, &error));
}

typedef struct Side { // one of two that are trained in turn: a weight, the statistic of its norm
    Tensor *weight, *statistic;
    Optimizer *optimizer;
} Side;

static Side side_new(const char *name) {
    Side side = {parameter(name, 1, (float[]){1}), constant(0, 1, (float[]){10}), NULL};
    side.optimizer = sgd(side.weight, 1);
    return side;
}

static void side_clear(Side *side) {
    optimizer_free(side->optimizer);
    tensor_release(side->weight);
    tensor_release(side->statistic);
}

static void a_frozen_norm_follows_the_step_that_comes_next(void) {
    Side trained = side_new("head.weight");
    Tensor *frozen = parameter("norm.weight", 1, (float[]){1});
    Tensor *statistic = constant(0, 1, (float[]){10});
    for (int owned = 0; owned < 2; owned++) { // a norm without weights, and one of a frozen layer
        Tensor *owner = owned ? frozen : NULL;
        float before = value_of(statistic, 0);
        statistic_moves(statistic, owner, NAN);
        steps(trained.optimizer, true);
        CHECK_NEAR(value_of(statistic, 0), before, 0);
        statistic_moves(statistic, owner, 1);
        steps(trained.optimizer, false);
        steps(trained.optimizer, true);
        CHECK_NEAR(value_of(statistic, 0), before + 1, 0);
        CHECK_INT(engine->change_count, 0); // nothing is kept for ever
    }
    tensor_release(frozen);
    tensor_release(statistic);
    side_clear(&trained);
}

static void a_norm_whose_optimizer_is_gone_follows_any_other(void) {
    Side trained = side_new("head.weight"), gone = side_new("body.weight");
    statistic_moves(gone.statistic, gone.weight, NAN);
    optimizer_free(gone.optimizer);
    gone.optimizer = NULL;
    steps(trained.optimizer, true);
    CHECK_NEAR(value_of(gone.statistic, 0), 10, 0);
    CHECK_INT(engine->change_count, 0);
    side_clear(&trained);
    side_clear(&gone);
}

static void a_step_takes_back_the_statistics_of_every_norm_it_ran(void) {
    Side g = side_new("G.weight"), d = side_new("D.weight");
    statistic_moves(g.statistic, g.weight, 1); // D learns from what G makes: G runs too
    statistic_moves(d.statistic, d.weight, 1);
    steps(d.optimizer, false);
    statistic_moves(g.statistic, g.weight, NAN);
    statistic_moves(d.statistic, d.weight, NAN);
    steps(d.optimizer, true);
    CHECK_NEAR(value_of(g.statistic, 0), 11, 0); // back to the last boundary, not beyond it
    CHECK_NEAR(value_of(d.statistic, 0), 11, 0);
    statistic_moves(g.statistic, g.weight, 1);
    statistic_moves(d.statistic, d.weight, 1);
    steps(g.optimizer, false);
    CHECK_NEAR(value_of(g.statistic, 0), 12, 0);
    CHECK_NEAR(value_of(d.statistic, 0), 12, 0);
    side_clear(&g);
    side_clear(&d);
}

// One pass of G serves both steps: what its own skips is taken back, though D's was applied.
static void the_optimizer_of_a_norm_has_the_last_word(void) {
    Side g = side_new("G.weight"), d = side_new("D.weight");
    statistic_moves(g.statistic, g.weight, 1);
    statistic_moves(d.statistic, d.weight, 1);
    steps(d.optimizer, false);
    CHECK_NEAR(value_of(g.statistic, 0), 11, 0);
    steps(g.optimizer, true);
    CHECK_NEAR(value_of(g.statistic, 0), 10, 0);
    CHECK_NEAR(value_of(d.statistic, 0), 11, 0);
    CHECK_INT(engine->change_count, 0);
    side_clear(&g);
    side_clear(&d);
}

int main(void) {
#define TEST(name) \
    { #name, name }
    const TrainingTest tests[] = {
        TEST(a_frozen_norm_follows_the_step_that_comes_next),
        TEST(a_norm_whose_optimizer_is_gone_follows_any_other),
        TEST(a_step_takes_back_the_statistics_of_every_norm_it_ran),
        TEST(the_optimizer_of_a_norm_has_the_last_word),
    };
    return training_run(tests, sizeof tests / sizeof *tests);
}
