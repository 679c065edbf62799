// A run of a model of one weight, for tests of what a run does with its steps: loss = weight * x,
// whose gradient is x.
#pragma once

#include "run/recorder.h"
#include "run/run.h"
#include "tests/test.h"

typedef struct Model {
    RunOptions options;
    Run *run;
    Recorder *recorder; // NULL: none
    Tensor *weight;
    Optimizer *optimizer;
    Scaler *scaler;
} Model;

static Model model;
static Error error;

static inline Tensor *number(double value) {
    int64_t one = 1;
    float narrow = (float)value;
    return tensor_from_host(model.run->device, FORMAT_FP32, 1, &one, &narrow, MEMORY_DATA, &error);
}

// The run that the options ask for, not configured yet. All that has been made lies in `model`,
// also where it fails; model_close takes it.
static inline bool model_open(const RunOptions *options) {
    model = (Model){.options = *options};
    error = (Error){0};
    run_request_stop(0);
    return (model.run = run_new(&model.options, &error)) != NULL;
}

// Of a run that is configured: the weight in a layer "fc", SGD, and the scaler of the run.
static inline bool model_build(void) {
    Run *run = model.run;
    int layer = policy_add_layer(run->engine->policy, "fc", 0, &error);
    OptimizerOptions options = optimizer_defaults(OPTIMIZER_SGD);
    options.schedule.rate = 1e-3;
    OptimizerGroup group = {&model.weight, 1, 1, 0};
    if (layer <= 0 || !(model.weight = number(0.5)) ||
        !parameter_attach(model.weight, "fc.weight", layer, false, &error) ||
        !(model.optimizer = optimizer_new(run->engine, &options, &group, 1, &error)) ||
        !(model.scaler = scaler_new(&run->engine->scalers, &run->scale_rule, &error)))
        return false;
    run_add_optimizer(run, model.optimizer);
    run->scaler = model.scaler;
    return true;
}

// Ends the test program where there is no model.
static inline void model_must(bool done) {
    if (done)
        return;
    printf("not ok begin: %s\n", error.text);
    exit(1);
}

static inline void model_close(void) {
    optimizer_free(model.optimizer);
    scaler_free(model.scaler);
    tensor_release(model.weight);
    recorder_free(model.recorder);
    run_free(model.run);
}

// One step with gradient x, whose loss is logged before its end or after; false where the run says
// that going on is pointless.
static inline bool model_step(double x, bool logs_first, bool *stop) {
    Engine *engine = model.run->engine;
    Tensor *input = number(x), *loss = NULL, *scaled = NULL;
    optimizer_zero_grad(model.optimizer);
    BackwardOptions options = {0};
    bool done = input && (loss = op_two(engine, OP_mul, model.weight, input, NULL, &error)) &&
                (scaled = engine_scale_loss(engine, model.scaler, loss, &error)) &&
                engine_backward(engine, scaled, NULL, &options, &error) &&
                optimizer_step_scaled(model.optimizer, model.scaler, &error) &&
                scaler_update(model.scaler, 0, &error) &&
                (!logs_first || run_log(model.run, "loss", loss, &error)) &&
                run_step_ended(model.run, stop, &error) &&
                (logs_first || run_log(model.run, "loss", loss, &error));
    tensor_release(input);
    tensor_release(loss);
    tensor_release(scaled);
    return done;
}
