// What optimizers refuse, each by name: options that cannot work, gradients that come too late,
// graphs from before a step.
#include "tests/training.h"

static void refuse_options(OptimizerOptions options, Tensor *weight, const char *part) {
    OptimizerGroup group = {&weight, 1, 1, options.weight_decay};
    REFUSED(optimizer_new(engine, &options, &group, 1, &error), part);
}

static void an_epsilon_that_vanishes_is_refused(void) {
    Tensor *half = parameter_in(FORMAT_FP16, "fc1.weight", 2, (float[]){1, 1});
    Tensor *full = parameter("fc2.weight", 2, (float[]){1, 1});
    OptimizerOptions options = options_of(OPTIMIZER_ADAM, 0.1);
    refuse_options(options, half, "eps 1e-08 rounds to 0 in fp16");
    CHECK_CONTAINS(error.text, "fc1.weight");
    CHECK_CONTAINS(error.text, "1e-4");
    options.epsilon = 1e-46;
    refuse_options(options, full, "rounds to 0 in fp32");
    options.epsilon = 1e-4; // the value that the message names
    Optimizer *optimizer = optimizer_over(&options, &half, 1);
    CHECK_INT(optimizer_moment(optimizer, 0, 1)->view.format, FORMAT_FP16);
    gradient_set(half, (float[]){0.5f, 0});
    DONE(optimizer_step(optimizer, &error));
    CHECK_NEAR(value_of(half, 0), 0.9, 2e-3);
    CHECK_NEAR(value_of(half, 1), 1, 0);
    optimizer_free(optimizer);
    optimizer = sgd(half, 0.1); // a rule without epsilon does not mind
    optimizer_free(optimizer);
    tensor_release(half);
    tensor_release(full);
}

static void what_cannot_work_is_refused_by_name(void) {
    Tensor *weight = parameter("fc.weight", 1, (float[]){1});
    Tensor *computed = op_two(engine, OP_mul, weight, weight, NULL, &error);
    OptimizerOptions options = options_of(OPTIMIZER_ADAM, -1);
    refuse_options(options, weight, "Adam: lr is -1");
    options.schedule.rate = 0.1;
    options.beta2 = 1;
    refuse_options(options, weight, "beta2 is 1");
    options = options_of(OPTIMIZER_SGD, 0.1);
    options.weight_decay = INFINITY;
    refuse_options(options, weight, "weight_decay is inf");
    options.weight_decay = 0;
    options.nesterov = true;
    refuse_options(options, weight, "set momentum too");
    options.nesterov = false;
    refuse_options(options, computed, "computed from other tensors");
    Tensor *twice[] = {weight, weight};
    OptimizerGroup group = {twice, 2, 1, 0};
    REFUSED(optimizer_new(engine, &options, &group, 1, &error), "fc.weight was given twice");
    group = (OptimizerGroup){twice, 1, NAN, 0};
    REFUSED(optimizer_new(engine, &options, &group, 1, &error), "lr of group 1");
    REFUSED(optimizer_new(engine, &options, &group, 0, &error),
            "no parameters; pass model:parameters(), of a model that has some: a class's layers "
            "are what its init puts into self");
    Optimizer *optimizer = sgd(weight, 0.1);
    REFUSED(optimizer_step(optimizer, &error), "no gradient was recorded: call :backward()");
    optimizer_free(optimizer);
    tensor_release(computed);
    tensor_release(weight);
}

static void a_gradient_that_comes_after_unscaling_is_refused(void) {
    Tensor *weights[] = {parameter("a", 1, (float[]){0}), parameter("b", 1, (float[]){0})};
    OptimizerOptions options = options_of(OPTIMIZER_SGD, 1);
    Optimizer *optimizer = optimizer_over(&options, weights, 2);
    gradient_set(weights[0], (float[]){1});
    DONE(gradients_scan(optimizer_gradients(optimizer), NULL, &error));
    gradient_set(weights[1], (float[]){1});
    REFUSED(optimizer_step(optimizer, &error), "1 gradients were unscaled and 2 are there now");
    optimizer_free(optimizer);
    tensor_release(weights[0]);
    tensor_release(weights[1]);
}

static void a_schedule_of_no_known_kind_is_refused(void) {
    Tensor *weight = parameter("w", 1, (float[]){1});
    OptimizerOptions options = options_of(OPTIMIZER_SGD, 1);
    Optimizer *optimizer = optimizer_over(&options, &weight, 1);
    OptimizerGroup group = {&weight, 1, 1, 0};
    ScheduleKind kind;
    options.schedule.kind = (ScheduleKind)SCHEDULE_KINDS;
    REFUSED(optimizer_new(engine, &options, &group, 1, &error), "SGD: schedule.kind");
    REFUSED(optimizer_set_schedule(optimizer, &options.schedule, &error), "one of constant");
    REFUSED(schedule_kind_parse("cosin", &kind, &error),
            "schedule cosin: not known; did you mean cosine? One of constant linear_warmup "
            "cosine step");
    const char *const names[] = {"constant", "linear_warmup", "cosine", "step"};
    for (int i = 0; i < SCHEDULE_KINDS; i++) {
        DONE(schedule_kind_parse(names[i], &kind, &error));
        CHECK_INT(kind, i);
    }
    optimizer_free(optimizer);
    tensor_release(weight);
}

static void a_graph_from_before_a_step_is_refused(void) {
    Tensor *weight = parameter("w", 1, (float[]){2});
    Optimizer *optimizer = sgd(weight, 1);
    Tensor *square = op_two(engine, OP_mul, weight, weight, NULL, &error);
    gradient_set(weight, (float[]){1});
    DONE(optimizer_step(optimizer, &error));
    Tensor *seed = constant(0, 1, (float[]){1});
    REFUSED(engine_backward(engine, square, seed, NULL, &error), "was overwritten since");
    tensor_release(seed);
    tensor_release(square);
    optimizer_free(optimizer);
    tensor_release(weight);
}

int main(void) {
#define TEST(name) \
    { #name, name }
    const TrainingTest tests[] = {
        TEST(an_epsilon_that_vanishes_is_refused),
        TEST(what_cannot_work_is_refused_by_name),
        TEST(a_gradient_that_comes_after_unscaling_is_refused),
        TEST(a_schedule_of_no_known_kind_is_refused),
        TEST(a_graph_from_before_a_step_is_refused),
    };
    return training_run(tests, sizeof tests / sizeof *tests);
}
