// The golden traces of loss scaling and of the optimizers: some worked out by
// hand, and those of PyTorch (torch_traces.txt).
#include "tests/golden/cases.h"
#include "tests/training.h"

// ---- how the scale moves ------------------------------------------------------------------------

typedef struct Trace {
    const char *found; // a letter a step: 'x' where a gradient is not finite
    const double *scale;
    const double *good; // NULL: not looked at
} Trace;

static void follow(ScaleRule rule, Trace trace) {
    Tensor *weight = parameter("w", 2, (float[]){1, 1});
    Optimizer *optimizer = sgd(weight, 0);
    Scaler *scaler = scaler_of(rule);
    for (int i = 0; trace.found[i]; i++) {
        bool found = trace.found[i] == 'x', applied = false;
        optimizer_zero_grad(optimizer);
        backward(scaler, weight, (float[]){1e-5f, found ? INFINITY : 0});
        DONE(optimizer_step_scaled(optimizer, scaler, &error));
        DONE(scaler_update(scaler, 0, &error));
        ScaleState state = scaler_state(scaler);
        CHECK_MESSAGE((double)state.scale == (double)(float)trace.scale[i],
                      "step %d: scale is %.9g, expected %.9g", i + 1, (double)state.scale,
                      trace.scale[i]);
        if (trace.good)
            CHECK_INT(state.good, trace.good[i]);
        DONE(scaler_applied(scaler, optimizer_gradients(optimizer), &applied, &error));
        CHECK_INT(applied, !found);
    }
    optimizer_free(optimizer);
    scaler_free(scaler);
    tensor_release(weight);
}

static void scale_grows_after_its_interval(void) {
    follow(dynamic_rule(4, 2, 0.25, 2, 1),
           (Trace){"..x", (double[]){4, 8, 2}, (double[]){1, 0, 0}});
}

static void scale_grows_every_step(void) {
    follow(dynamic_rule(128, 2, 0.5, 1, 1), (Trace){"..x.", (double[]){256, 512, 256, 512}, NULL});
}

static void scale_stays_where_growth_would_overflow(void) {
    follow(dynamic_rule(1e38, 16, 0.5, 1, 1), (Trace){".", (double[]){1e38}, (double[]){0}});
}

static void hysteresis_delays_the_backing_off(void) {
    const char *pattern = "..x...xx....";
    follow(dynamic_rule(8, 2, 0.5, 2, 1),
           (Trace){pattern, (double[]){8, 16, 8, 8, 16, 16, 8, 4, 4, 8, 8, 16}, NULL});
    follow(dynamic_rule(8, 2, 0.5, 2, 2),
           (Trace){pattern, (double[]){8, 16, 16, 16, 32, 32, 32, 16, 16, 32, 32, 64}, NULL});
}

// ---- what a step does ---------------------------------------------------------------------------

static void one_step(Scaler *scaler, Optimizer *optimizer, Tensor *weight, float slope,
                     double limit) {
    float slopes[2] = {slope, slope};
    optimizer_zero_grad(optimizer);
    backward(scaler, weight, slopes);
    if (limit > 0) {
        DONE(scaler_unscale(scaler, optimizer_gradients(optimizer), &error));
        Tensor *norm = optimizer_clip_norm(engine, &weight, 1, limit, &error);
        CHECK_MESSAGE(norm, "%s", error.text);
        if (norm && isfinite(slope))
            CHECK_NEAR(value_of(norm, 0), slope, 1e-6);
        tensor_release(norm);
    }
    DONE(optimizer_step_scaled(optimizer, scaler, &error));
    DONE(scaler_update(scaler, 0, &error));
}

static void a_step_of_nan_is_skipped(void) {
    Tensor *weight = parameter("w", 2, (float[]){1, 2});
    Optimizer *optimizer = sgd(weight, 1);
    Scaler *scaler = scaler_of(dynamic_rule(2, 2, 0.5, 1, 1));
    const struct {
        float slope;
        double scale;
    } steps[] = {{2, 4}, {NAN, 2}};
    for (int i = 0; i < 2; i++) {
        one_step(scaler, optimizer, weight, steps[i].slope, 0);
        CHECK_NEAR(value_of(weight, 0), -1, 0);
        CHECK_NEAR(value_of(weight, 1), 0, 0);
        CHECK_NEAR(scaler_get(scaler), steps[i].scale, 0);
    }
    optimizer_free(optimizer);
    scaler_free(scaler);
    tensor_release(weight);
}

static void clipping_works_on_true_gradients(void) {
    Tensor *weight = parameter("w", 1, (float[]){5});
    Optimizer *optimizer = sgd(weight, 2);
    Scaler *scaler = scaler_of(dynamic_rule(2, 2, 0.5, 1, 1));
    const struct {
        float slope;
        double limit, value, scale;
    } steps[] = {{4, 2, 1, 4}, {4, 3, -5, 8}, {INFINITY, 3, -5, 4}};
    for (int i = 0; i < 3; i++) {
        one_step(scaler, optimizer, weight, steps[i].slope, steps[i].limit);
        CHECK_NEAR(value_of(weight, 0), steps[i].value, 1e-6);
        CHECK_NEAR(scaler_get(scaler), steps[i].scale, 0);
    }
    optimizer_free(optimizer);
    scaler_free(scaler);
    tensor_release(weight);
}

static double after_three_steps(OptimizerKind kind) {
    Tensor *weight = parameter("w", 1, (float[]){1});
    OptimizerOptions options = options_of(kind, 0.1);
    options.weight_decay = 0.1;
    Optimizer *optimizer = optimizer_over(&options, &weight, 1);
    for (int i = 0; i < 3; i++) {
        optimizer_zero_grad(optimizer);
        backward(NULL, weight, (float[]){0.5});
        DONE(optimizer_step(optimizer, &error));
    }
    double value = value_of(weight, 0);
    CHECK_INT(optimizer_applied(optimizer), 3);
    optimizer_free(optimizer);
    tensor_release(weight);
    return value;
}

static void adam_and_adamw_give_the_golden_numbers(void) {
    CHECK_NEAR(after_three_steps(OPTIMIZER_ADAM), 0.7001746, 1e-6);
    CHECK_NEAR(after_three_steps(OPTIMIZER_ADAMW), 0.6732890, 2e-7);
}

// ---- two linear layers --------------------------------------------------------------------------

enum { WIDTH = 8, LAYER_TENSORS = 4, BATCHES = 4 };

typedef struct TwoLayers {
    Tensor *tensor[LAYER_TENSORS]; // weight, bias, weight, bias
    Optimizer *optimizer;
} TwoLayers;

static TwoLayers two_layers(GoldenCase *golden) {
    const char *const names[] = {"weight1_start", "bias1_start", "weight2_start", "bias2_start"};
    TwoLayers model;
    for (int i = 0; i < LAYER_TENSORS; i++) {
        const CaseTensor *start = case_tensor(golden, names[i]);
        model.tensor[i] = constant(i % 2 ? 0 : WIDTH, WIDTH, start->values);
        DONE(parameter_attach(model.tensor[i], names[i], 0, i % 2, &error));
    }
    OptimizerOptions options = options_of(OPTIMIZER_SGD, case_attr(golden, "lr", 0));
    model.optimizer = optimizer_over(&options, model.tensor, LAYER_TENSORS);
    return model;
}

static void two_layers_clear(TwoLayers *model) {
    optimizer_free(model->optimizer);
    for (int i = 0; i < LAYER_TENSORS; i++)
        tensor_release(model->tensor[i]);
}

// The gradients of one batch; `poisoned`: with one that is infinite.
static void two_layers_backward(TwoLayers *model, Scaler *scaler, GoldenCase *golden, int batch,
                                bool poisoned) {
    const int at = batch * WIDTH * WIDTH;
    Tensor *x = constant(WIDTH, WIDTH, case_tensor(golden, "inputs")->values + at);
    Tensor *y = constant(WIDTH, WIDTH, case_tensor(golden, "targets")->values + at);
    Tensor **w = model->tensor;
    optimizer_zero_grad(model->optimizer);
    Tensor *hidden = op_three(engine, OP_linear, x, w[0], w[1], NULL, &error);
    Tensor *out = hidden ? op_three(engine, OP_linear, hidden, w[2], w[3], NULL, &error) : NULL;
    Tensor *losses = out ? op_two(engine, OP_mse, out, y, NULL, &error) : NULL;
    Tensor *loss = losses ? op_one(engine, OP_mean, losses, NULL, &error) : NULL;
    Tensor *scaled = loss ? engine_scale_loss(engine, scaler, loss, &error) : NULL;
    CHECK_MESSAGE(scaled, "%s", error.text);
    if (scaled)
        DONE(engine_backward(engine, scaled, NULL, NULL, &error));
    if (scaled && poisoned) {
        const float infinity = INFINITY;
        device_write(device, w[2]->grad->view.data, &infinity, sizeof infinity);
    }
    Tensor *const used[] = {x, y, hidden, out, losses, loss, scaled};
    for (size_t i = 0; i < sizeof used / sizeof *used; i++)
        tensor_release(used[i]);
}

static Scaler *scaler_of_case(GoldenCase *golden) {
    return scaler_of(dynamic_rule(case_attr(golden, "init", 0), case_attr(golden, "growth", 0),
                                  case_attr(golden, "backoff", 0),
                                  (int64_t)case_attr(golden, "interval", 0), 1));
}

static void follow_two_layers(GoldenCase *golden) {
    const char *const names[] = {"weight1_end", "bias1_end", "weight2_end", "bias2_end"};
    const CaseTensor *found = case_tensor(golden, "found"), *scale = case_tensor(golden, "scale");
    TwoLayers model = two_layers(golden), control = two_layers(golden);
    Scaler *scaler = scaler_of_case(golden), *none = scaler_named("none");
    for (int batch = 0; batch < BATCHES; batch++) {
        bool poisoned = found->values[batch] != 0;
        two_layers_backward(&model, scaler, golden, batch, poisoned);
        DONE(optimizer_step_scaled(model.optimizer, scaler, &error));
        DONE(scaler_update(scaler, 0, &error));
        CHECK_NEAR(scaler_get(scaler), scale->values[batch], 0);
        two_layers_backward(&control, none, golden, batch, poisoned);
        if (poisoned)
            continue;
        DONE(optimizer_step(control.optimizer, &error));
    }
    for (int i = 0; i < LAYER_TENSORS; i++) {
        const float *got = values_of(model.tensor[i]), *wanted = values_of(control.tensor[i]);
        const CaseTensor *end = case_tensor(golden, names[i]);
        for (int k = 0; k < end->count; k++) {
            CHECK_NEAR(got[k], wanted[k], 1e-7);
            CHECK_NEAR(got[k], end->values[k], 2e-6);
        }
    }
    OptimizerReport report = optimizer_report(model.optimizer);
    CHECK_INT(report.applied, 3);
    CHECK_INT(report.skipped, 1);
    two_layers_clear(&model);
    two_layers_clear(&control);
    scaler_free(scaler);
    scaler_free(none);
}

// ---- the peer's traces --------------------------------------------------------------------------

static void follow_scaler_case(GoldenCase *golden) {
    const CaseTensor *start = case_tensor(golden, "start"), *found = case_tensor(golden, "found");
    const CaseTensor *clip = case_tensor(golden, "clip"), *scale = case_tensor(golden, "scale");
    const CaseTensor *good = case_tensor(golden, "good");
    const CaseTensor *expected = case_tensor(golden, "parameters");
    int count = start ? start->count : 1;
    double slope = case_attr(golden, "gradient", 1e-5);
    Tensor *weight = parameter("w", count, start ? start->values : (float[]){1});
    Optimizer *optimizer = sgd(weight, case_attr(golden, "lr", 0));
    Scaler *scaler = scaler_of_case(golden);
    for (int i = 0; i < found->count; i++) {
        one_step(scaler, optimizer, weight, found->values[i] != 0 ? NAN : (float)slope,
                 clip ? (double)clip->values[i] : 0);
        ScaleState state = scaler_state(scaler);
        CHECK_MESSAGE(state.scale == scale->values[i], "%s: scale %g in step %d, expected %g",
                      golden->name, (double)state.scale, i + 1, (double)scale->values[i]);
        CHECK_INT(state.good, good->values[i]);
        const float *values = values_of(weight);
        for (int k = 0; expected && k < count; k++)
            CHECK_NEAR(values[k], expected->values[i * count + k], 3e-6);
    }
    optimizer_free(optimizer);
    scaler_free(scaler);
    tensor_release(weight);
}

static OptimizerOptions options_of_case(GoldenCase *golden) {
    static const char *const kinds[] = {"sgd", "adam", "adamw"};
    OptimizerKind kind = OPTIMIZER_SGD;
    for (int i = 0; i < 3; i++)
        if (strcmp(golden->kind, kinds[i]) == 0)
            kind = (OptimizerKind)i;
    OptimizerOptions options = options_of(kind, case_attr(golden, "lr", 0));
    options.weight_decay = case_attr(golden, "weight_decay", 0);
    options.momentum = case_attr(golden, "momentum", 0);
    options.nesterov = case_attr(golden, "nesterov", 0) != 0;
    options.beta1 = case_attr(golden, "beta1", options.beta1);
    options.beta2 = case_attr(golden, "beta2", options.beta2);
    options.epsilon = case_attr(golden, "epsilon", options.epsilon);
    return options;
}

static void follow_optimizer_case(GoldenCase *golden) {
    const CaseTensor *start = case_tensor(golden, "start");
    const CaseTensor *gradients = case_tensor(golden, "gradients");
    const CaseTensor *expected = case_tensor(golden, "parameters");
    Tensor *weight = parameter("w", start->count, start->values);
    OptimizerOptions options = options_of_case(golden);
    Optimizer *optimizer = optimizer_over(&options, &weight, 1);
    for (int at = 0; at < gradients->count; at += start->count) {
        gradient_set(weight, gradients->values + at);
        DONE(optimizer_step(optimizer, &error));
        const float *values = values_of(weight);
        for (int i = 0; i < start->count; i++)
            CHECK_MESSAGE(fabsf(values[i] - expected->values[at + i]) < 1e-6f,
                          "%s %s: value %d is %.9g, expected %.9g", golden->kind, golden->name,
                          at + i, (double)values[i], (double)expected->values[at + i]);
    }
    optimizer_free(optimizer);
    tensor_release(weight);
}

static void follows_pytorch_step_by_step(void) {
    FILE *file = fopen("tests/golden/torch_traces.txt", "r");
    CHECK_MESSAGE(file, "tests/golden/torch_traces.txt cannot be read from here");
    if (!file)
        return;
    GoldenCase golden;
    int scalers = 0, trainings = 0, optimizers = 0;
    for (; case_next(file, &golden); case_clear(&golden)) {
        if (strcmp(golden.kind, "scaler") == 0) {
            follow_scaler_case(&golden);
            scalers++;
        } else if (strcmp(golden.kind, "training") == 0) {
            follow_two_layers(&golden);
            trainings++;
        } else {
            follow_optimizer_case(&golden);
            optimizers++;
        }
        const char *left = case_unasked(&golden);
        CHECK_MESSAGE(!left, "%s %s: this test asks for nothing of the name %s", golden.kind,
                      golden.name, left);
    }
    fclose(file);
    CHECK_INT(scalers, 7);
    CHECK_INT(trainings, 1);
    CHECK_INT(optimizers, 12);
}

int main(void) {
#define TEST(name) \
    { #name, name }
    const TrainingTest tests[] = {
        TEST(scale_grows_after_its_interval),
        TEST(scale_grows_every_step),
        TEST(scale_stays_where_growth_would_overflow),
        TEST(hysteresis_delays_the_backing_off),
        TEST(a_step_of_nan_is_skipped),
        TEST(clipping_works_on_true_gradients),
        TEST(adam_and_adamw_give_the_golden_numbers),
        TEST(follows_pytorch_step_by_step),
    };
    return training_run(tests, sizeof tests / sizeof *tests);
}
