// tests/training.h: a small training in C, for the tests of optimizers and scalers: a device, an
// engine, parameters, losses whose gradients are known. One device is open at a time.
#pragma once

#include <stdint.h>

#include "ops/engine.h"
#include "ops/views.h"
#include "optim/optimizer.h"
#include "precision/scaler.h"
#include "tests/device.h"
#include "tests/test.h"

static Device *device;
static Engine *engine;
static Error error;

#define DONE(call) CHECK_MESSAGE(call, "%s: %s", #call, error.text)
// The call is refused in words that hold `part`.
#define REFUSED(call, part)                                  \
    do {                                                     \
        error = (Error){0};                                  \
        CHECK_MESSAGE(!(call), "%s was let through", #call); \
        CHECK_CONTAINS(error.text, part);                    \
    } while (0)

static inline bool training_begin(const char *device_name) {
    char why[160];
    Preset preset;
    error = (Error){0};
    return device_open(device_name, 2, &device, &error) &&
           preset_resolve("fp32", NULL, &preset, why, sizeof why, &error) &&
           (engine = engine_new(device, &preset, 1, &error)) != NULL;
}

static inline void training_end(void) {
    engine_free(engine);
    device_close(device);
}

// Runs every test of a list on each device.
typedef struct TrainingTest {
    const char *name;
    void (*body)(void);
} TrainingTest;

static inline int training_run(const TrainingTest *tests, size_t count) {
    const char *const *devices = test_device_names();
    for (size_t d = 0; devices[d]; d++)
        for (size_t i = 0; i < count; i++) {
            char name[128];
            snprintf(name, sizeof name, "%s_on_%s", tests[i].name, devices[d]);
            if (!training_begin(devices[d])) {
                printf("not ok %s: %s\n", name, error.text);
                return 1;
            }
            test_run(name, tests[i].body);
            training_end();
        }
    return test_end();
}

// ---- tensors ------------------------------------------------------------------------------------

static inline Tensor *constant(int64_t rows, int64_t columns, const float *values) {
    int64_t shape[2] = {rows, columns};
    bool vector = rows == 0; // a vector of `columns`
    Tensor *tensor = tensor_from_host(device, FORMAT_FP32, vector ? 1 : 2,
                                      vector ? shape + 1 : shape, values, MEMORY_DATA, &error);
    CHECK(tensor);
    return tensor;
}

// A vector that is trained, in any floating format.
static inline Tensor *parameter_in(Format format, const char *name, int count,
                                   const float *values) {
    int64_t shape[1] = {count};
    Tensor *tensor = constant(0, count, values);
    if (format != FORMAT_FP32) {
        Tensor *low = op_cast(engine, tensor, format, &error);
        tensor_release(tensor);
        tensor = low;
    }
    CHECK(tensor && tensor_count(tensor) == shape[0]);
    DONE(parameter_attach(tensor, name, 0, false, &error));
    return tensor;
}

static inline Tensor *parameter(const char *name, int count, const float *values) {
    return parameter_in(FORMAT_FP32, name, count, values);
}

// Puts a gradient in place, as a walk back would have.
static inline void gradient_set(Tensor *tensor, const float *values) {
    tensor_drop_grad(tensor);
    tensor->carries = GRAD_OF_ANY;
    tensor->grad = tensor_from_host(device, FORMAT_FP32, tensor->view.ndim, tensor->view.shape,
                                    values, MEMORY_GRADIENTS, &error);
    CHECK(tensor->grad);
}

// ---- what a step left ---------------------------------------------------------------------------

// The report of an optimizer, now; `take` copies from it.
static inline void with_report(const Optimizer *optimizer,
                               void (*take)(const OptimizerNote *note, const Reports *reports,
                                            int place, int count, void *target),
                               void *target) {
    OptimizerNote note = {.rate = 0};
    Reports *reports = reports_new(device, &error);
    int place = reports_begin(reports);
    DONE(optimizer_add_report(optimizer, reports, &note, &error));
    DONE(reports_post(reports, &error));
    CHECK_INT(reports_take(reports, true), place);
    take(&note, reports, place, optimizer_parameter_count(optimizer), target);
    reports_done(reports, place);
    reports_free(reports);
    optimizer_note_clear(&note);
}

static inline void take_stats(const OptimizerNote *note, const Reports *reports, int place,
                              int count, void *target) {
    GradStats *stats = target, room;
    for (int i = 0; i < count; i++) {
        const GradStats *one = gradients_reported_stats(&note->gradients, reports, place, i, &room);
        stats[i] = one ? *one : (GradStats){.count = 0};
    }
}

// One a parameter in order, all zero for one that had no gradient.
static inline void read_stats(const Optimizer *optimizer, GradStats *stats) {
    with_report(optimizer, take_stats, stats);
}

static inline void take_moves(const OptimizerNote *note, const Reports *reports, int place,
                              int count, void *target) {
    const ParameterMove *moves = optimizer_reported_moves(note, reports, place);
    CHECK(moves);
    if (moves)
        memcpy(target, moves, (size_t)count * sizeof *moves);
}

static inline void read_moves(const Optimizer *optimizer, ParameterMove *moves) {
    with_report(optimizer, take_moves, moves);
}

// ---- values of tensors --------------------------------------------------------------------------

enum { MOST_VALUES = 4096 };

// The values of a tensor in any format, good until the next call but one.
static inline const float *values_of(const Tensor *tensor) {
    static float ring[2][MOST_VALUES];
    static int turn;
    float *values = ring[turn = !turn];
    Tensor *wide = op_cast(engine, (Tensor *)tensor, FORMAT_FP32, &error);
    CHECK(wide && tensor_count(wide) <= MOST_VALUES);
    if (wide && !tensor_read(wide, values, &error))
        CHECK(false);
    tensor_release(wide);
    return values;
}

static inline float value_of(const Tensor *tensor, int i) {
    return values_of(tensor)[i];
}

// A loss whose gradient by the parameter is `slopes`: the sum of their products.
static inline Tensor *slope_loss(Tensor *tensor, const float *slopes) {
    Tensor *factors = constant(0, tensor_count(tensor), slopes);
    Tensor *products = op_two(engine, OP_mul, tensor, factors, NULL, &error);
    Tensor *loss = products ? op_one(engine, OP_sum, products, NULL, &error) : NULL;
    CHECK_MESSAGE(loss, "%s", error.text);
    tensor_release(factors);
    tensor_release(products);
    return loss;
}

// scale(loss):backward(), of a loss with these slopes. Without a scaler: loss:backward().
static inline void backward(Scaler *scaler, Tensor *tensor, const float *slopes) {
    Tensor *loss = slope_loss(tensor, slopes);
    Tensor *scaled = scaler ? engine_scale_loss(engine, scaler, loss, &error) : tensor_hold(loss);
    CHECK_MESSAGE(scaled, "%s", error.text);
    if (scaled)
        DONE(engine_backward(engine, scaled, NULL, NULL, &error));
    tensor_release(scaled);
    tensor_release(loss);
}

// ---- optimizers and scalers ---------------------------------------------------------------------

static inline OptimizerOptions options_of(OptimizerKind kind, double rate) {
    OptimizerOptions options = optimizer_defaults(kind);
    options.schedule.rate = rate;
    options.weight_decay = 0;
    return options;
}

static inline Optimizer *optimizer_over(const OptimizerOptions *options, Tensor *const *parameters,
                                        int count) {
    OptimizerGroup group = {parameters, count, 1, options->weight_decay};
    Optimizer *optimizer = optimizer_new(engine, options, &group, 1, &error);
    CHECK_MESSAGE(optimizer, "%s", error.text);
    return optimizer;
}

static inline Optimizer *sgd(Tensor *tensor, double rate) {
    OptimizerOptions options = options_of(OPTIMIZER_SGD, rate);
    return optimizer_over(&options, &tensor, 1);
}

static inline Scaler *scaler_of(ScaleRule rule) {
    Scaler *scaler = scaler_new(&engine->scalers, &rule, &error);
    CHECK_MESSAGE(scaler, "%s", error.text);
    return scaler;
}

static inline Scaler *scaler_named(const char *text) {
    ScaleRule rule = {0};
    DONE(scale_rule_parse(text, &rule, &error));
    return scaler_of(rule);
}

static inline ScaleRule dynamic_rule(double init, double growth, double backoff, int64_t interval,
                                     int64_t hysteresis) {
    return (ScaleRule){SCALE_DYNAMIC, init, growth, backoff, 1e-6, 0x1.fp127, interval, hysteresis};
}
