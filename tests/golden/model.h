// tests/golden/model.h: two small models in C, trained through the engine as a script would: an
// image classifier (convolution, batch norm, pooling, dropout, linear) and a block of attention.
//
// A Model owns its device, engine, parameters, optimizer and scaler. Data and first weights come
// from a generator of their own, so that every model of a kind begins alike.
#pragma once

#include <stdint.h>

#include "ops/engine.h"
#include "ops/functions.h"
#include "ops/views.h"
#include "optim/optimizer.h"
#include "precision/scaler.h"
#include "tests/test.h"

typedef enum ModelKind { MODEL_IMAGES, MODEL_ATTENTION, MODEL_KINDS } ModelKind;

enum {
    MODEL_PARAMETERS = 12,
    MODEL_BUFFERS = 2,
    MODEL_BATCH = 8,
    MODEL_CLASSES = 5,
    MODEL_WIDTH = 8,
    MODEL_HEADS = 2,
    MODEL_TIME = 6,
    MODEL_SIDE = 6,
    MODEL_MOST = 4096 // elements of any tensor here
};

typedef struct ModelOptions {
    ModelKind kind;
    const char *device, *precision;
    int threads;
    Format format;     // of weights and data: fp32, or fp64 for derivatives
    double scale;      // of the loss; 0: 1
    const char *layer; // set to fp32 from the start; NULL: none
} ModelOptions;

typedef struct Model {
    ModelOptions options;
    Device *device;
    Engine *engine;
    Tensor *parameters[MODEL_PARAMETERS], *buffers[MODEL_BUFFERS];
    int count;
    int body, head;       // layers
    bool evaluating;      // running statistics, no dropout
    Optimizer *optimizer; // NULL in fp64
    Scaler *scaler;
} Model;

static Error error;

#define DONE(call) CHECK_MESSAGE(call, "%s: %s", #call, error.text)

// ---- numbers ------------------------------------------------------------------------------------

// In [-1, 1), scattered, a function of which and how many before.
static inline double model_number(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 40) * 0x1p-23 - 1;
}

static inline Tensor *model_tensor(Model *model, const double *values, Format format, int ndim,
                                   const int64_t *shape, MemoryPurpose purpose) {
    static float single[MODEL_MOST];
    static int32_t whole[MODEL_MOST];
    int64_t count = 1;
    for (int i = 0; i < ndim; i++)
        count *= shape[i];
    CHECK(count <= MODEL_MOST);
    for (int64_t i = 0; i < count; i++) {
        single[i] = (float)values[i];
        whole[i] = (int32_t)values[i];
    }
    const void *host = format == FORMAT_FP64   ? (const void *)values
                       : format == FORMAT_FP32 ? (const void *)single
                                               : (const void *)whole;
    Tensor *tensor = tensor_from_host(model->device, format, ndim, shape, host, purpose, &error);
    CHECK_MESSAGE(tensor, "%s", error.text);
    return tensor;
}

static inline void model_values(const Tensor *tensor, double *values) {
    static float single[MODEL_MOST];
    int64_t count = tensor_count(tensor);
    if (tensor->view.format == FORMAT_FP64) {
        DONE(tensor_read(tensor, values, &error));
        return;
    }
    CHECK_INT(tensor->view.format, FORMAT_FP32);
    DONE(tensor_read(tensor, single, &error));
    for (int64_t i = 0; i < count; i++)
        values[i] = (double)single[i];
}

// Overwrites a tensor of the model from outside, as loading a checkpoint does.
static inline void model_write(Model *model, Tensor *tensor, const double *values) {
    static float single[MODEL_MOST];
    int64_t count = tensor_count(tensor);
    bool wide = tensor->view.format == FORMAT_FP64;
    for (int64_t i = 0; i < count; i++)
        single[i] = (float)values[i];
    device_write(model->device, tensor->view.data,
                 wide ? (const void *)values : (const void *)single,
                 (size_t)count * (wide ? sizeof(double) : sizeof(float)));
    if (tensor->parameter)
        parameter_touch(tensor);
}

// ---- making -------------------------------------------------------------------------------------

static inline Tensor *model_add(Model *model, const char *name, int layer, int ndim,
                                const int64_t *shape, double centre, double spread) {
    double values[MODEL_MOST];
    uint64_t state = (uint64_t)model->count + 1;
    int64_t count = 1;
    for (int i = 0; i < ndim; i++)
        count *= shape[i];
    for (int64_t i = 0; i < count; i++)
        values[i] = centre + spread * model_number(&state);
    Tensor *tensor =
        model_tensor(model, values, model->options.format, ndim, shape, MEMORY_WEIGHTS);
    if (model->options.format == FORMAT_FP32)
        DONE(parameter_attach(tensor, name, layer, ndim == 1, &error));
    else
        tensor->requires_grad = true;
    return model->parameters[model->count++] = tensor;
}

#define SHAPE(...)                                                           \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) { \
        __VA_ARGS__                                                          \
    }

static inline void model_add_parameters(Model *model) {
    int body = model->body, head = model->head;
    if (model->options.kind == MODEL_IMAGES) {
        model_add(model, "body.conv.weight", body, SHAPE(4, 3, 3, 2), 0, 0.25);
        model_add(model, "body.conv.bias", body, SHAPE(4), 0, 0.1);
        model_add(model, "body.norm.weight", body, SHAPE(4), 1, 0.2);
        model_add(model, "body.norm.bias", body, SHAPE(4), 0, 0.2);
        model_add(model, "head.weight", head, SHAPE(MODEL_CLASSES, 36), 0, 0.2);
        model_add(model, "head.bias", head, SHAPE(MODEL_CLASSES), 0, 0.1);
        return;
    }
    model_add(model, "body.norm.weight", body, SHAPE(MODEL_WIDTH), 1, 0.2);
    model_add(model, "body.norm.bias", body, SHAPE(MODEL_WIDTH), 0, 0.2);
    model_add(model, "body.qkv.weight", body, SHAPE(3 * MODEL_WIDTH, MODEL_WIDTH), 0, 0.4);
    model_add(model, "body.qkv.bias", body, SHAPE(3 * MODEL_WIDTH), 0, 0.1);
    model_add(model, "body.out.weight", body, SHAPE(MODEL_WIDTH, MODEL_WIDTH), 0, 0.4);
    model_add(model, "body.out.bias", body, SHAPE(MODEL_WIDTH), 0, 0.1);
    model_add(model, "head.weight", head, SHAPE(MODEL_CLASSES, MODEL_WIDTH), 0, 0.4);
    model_add(model, "head.bias", head, SHAPE(MODEL_CLASSES), 0, 0.1);
}

static inline void model_add_optimizer(Model *model) {
    OptimizerOptions options = optimizer_defaults(OPTIMIZER_ADAM);
    options.schedule = (Schedule){.kind = SCHEDULE_COSINE, .rate = 0.02, .warmup = 2, .total = 40};
    OptimizerGroup group = {model->parameters, model->count, 1, 0.01};
    double scale = model->options.scale;
    ScaleRule rule = {.kind = SCALE_STATIC,
                      .init = scale > 0 ? scale : 1,
                      .growth = 2,
                      .backoff = 0.5,
                      .floor = 1,
                      .ceiling = 0x1p24,
                      .interval = 2000,
                      .hysteresis = 1};
    model->optimizer = optimizer_new(model->engine, &options, &group, 1, &error);
    CHECK_MESSAGE(model->optimizer, "%s", error.text);
    model->scaler = scaler_new(&model->engine->scalers, &rule, &error);
    CHECK_MESSAGE(model->scaler, "%s", error.text);
}

static inline void model_open(Model *model, ModelOptions options) {
    Preset preset;
    error = (Error){0};
    *model = (Model){.options = options};
    if (!device_open(options.device, options.threads, &model->device, &error) ||
        !preset_resolve(options.precision, model->device, &preset, NULL, 0, &error) ||
        !(model->engine = engine_new(model->device, &preset, 7, &error))) {
        printf("not ok model: %s\n", error.text);
        exit(1);
    }
    if (options.layer)
        DONE(policy_set(model->engine->policy, options.layer, LAYER_FP32, NULL, &error));
    model->body = policy_add_layer(model->engine->policy, "body", 0, &error);
    model->head = policy_add_layer(model->engine->policy, "head", 0, &error);
    model_add_parameters(model);
    for (int i = 0; i < MODEL_BUFFERS; i++) {
        double values[4] = {i, i, i, i}; // mean 0, variance 1
        model->buffers[i] = model_tensor(model, values, FORMAT_FP32, SHAPE(4), MEMORY_WEIGHTS);
    }
    if (options.format == FORMAT_FP32)
        model_add_optimizer(model);
}

static inline void model_close(Model *model) {
    optimizer_free(model->optimizer);
    scaler_free(model->scaler);
    for (int i = 0; i < model->count; i++)
        tensor_release(model->parameters[i]);
    for (int i = 0; i < MODEL_BUFFERS; i++)
        tensor_release(model->buffers[i]);
    engine_free(model->engine);
    device_close(model->device); // asserts that no memory of the device is in use
}

// ---- computing ----------------------------------------------------------------------------------

// The steps of a forward pass; each takes over its input. NULL goes through.
static inline Tensor *model_one(Model *model, OpId op, Tensor *x, const OpAttr *attr) {
    Tensor *y = x ? op_one(model->engine, op, x, attr, &error) : NULL;
    CHECK_MESSAGE(y, "%s: %s", op_table[op].name, error.text);
    tensor_release(x);
    return y;
}

static inline Tensor *model_three(Model *model, OpId op, Tensor *x, int parameter,
                                  const OpAttr *attr) {
    Tensor *const *p = &model->parameters[parameter];
    Tensor *y = x ? op_three(model->engine, op, x, p[0], p[1], attr, &error) : NULL;
    CHECK_MESSAGE(y, "%s: %s", op_table[op].name, error.text);
    tensor_release(x);
    return y;
}

static inline Tensor *model_reshape(Model *model, Tensor *x, int ndim, const int64_t *shape) {
    Tensor *y = x ? op_reshape(model->engine, x, ndim, shape, &error) : NULL;
    CHECK_MESSAGE(y, "reshape: %s", error.text);
    tensor_release(x);
    return y;
}

static inline Tensor *model_batch_norm(Model *model, Tensor *x) {
    Tensor **p = &model->parameters[2], *y = NULL;
    const OpAttr attr = {.norm = {.epsilon = 1e-5, .momentum = 0.1}};
    Tensor *const inputs[5] = {x, p[0], p[1], model->buffers[0], model->buffers[1]};
    if (x)
        y = op_batch_norm(model->engine, inputs, &attr, !model->evaluating, &error);
    CHECK_MESSAGE(y, "batch norm: %s", error.text);
    tensor_release(x);
    return y;
}

static inline Tensor *model_images(Model *model, Tensor *x) {
    OpAttr conv = {.conv = {.stride = {1, 1}, .padding = {1, 1}, .dilation = {1, 1}, .groups = 1}};
    OpAttr pool = {.pool = {.kernel = {2, 2}, .stride = {2, 2}}};
    model->engine->layer = model->body;
    Tensor *y = model_batch_norm(model, model_three(model, OP_conv2d, x, 0, &conv));
    y = model_one(model, OP_max_pool2d, model_one(model, OP_silu, y, NULL), &pool);
    y = model_reshape(model, y, SHAPE(-1, 36));
    Tensor *kept = y ? op_dropout(model->engine, y, 0.25, !model->evaluating, &error) : NULL;
    CHECK_MESSAGE(kept, "dropout: %s", error.text);
    tensor_release(y);
    model->engine->layer = model->head;
    return model_three(model, OP_linear, kept, 4, NULL);
}

static inline Tensor *model_attention(Model *model, Tensor *x) {
    Engine *engine = model->engine;
    OpAttr norm = {.norm = {.epsilon = 1e-5}};
    OpAttr attend = {.attention = {.scale = 0.5, .causal = true}};
    OpAttr over_time = {.reduce = {.dims = 2}};
    Tensor *parts[3] = {0}, *residual = tensor_hold(x);
    int64_t width = MODEL_WIDTH / MODEL_HEADS;
    engine->layer = model->body;
    Tensor *y = model_three(model, OP_layer_norm, x, 0, &norm);
    y = model_three(model, OP_linear, y, 2, NULL);
    y = model_reshape(model, y, SHAPE(-1, MODEL_TIME, 3, MODEL_HEADS, width));
    for (int i = 0; i < 3 && y; i++) {
        Tensor *part = op_slice(engine, y, 2, i, i + 1, &error);
        parts[i] = model_reshape(model, part, SHAPE(-1, MODEL_TIME, MODEL_HEADS, width));
    }
    tensor_release(y);
    y = op_three(engine, OP_attention, parts[0], parts[1], parts[2], &attend, &error);
    for (int i = 0; i < 3; i++)
        tensor_release(parts[i]);
    y = model_reshape(model, y, SHAPE(-1, MODEL_TIME, MODEL_WIDTH));
    y = model_three(model, OP_linear, y, 4, NULL);
    Tensor *sum = y ? op_two(engine, OP_add, y, residual, NULL, &error) : NULL;
    tensor_release(y);
    tensor_release(residual);
    y = model_one(model, OP_mean, model_one(model, OP_gelu, sum, NULL), &over_time);
    engine->layer = model->head;
    return model_three(model, OP_linear, y, 6, NULL);
}

// The mean loss over samples first .. first + count - 1 of batch number `batch`.
static inline Tensor *model_loss(Model *model, int batch, int first, int count) {
    double x[MODEL_MOST], classes[MODEL_BATCH];
    int each = model->options.kind == MODEL_IMAGES ? MODEL_SIDE * MODEL_SIDE * 2
                                                   : MODEL_TIME * MODEL_WIDTH;
    uint64_t state = 1000 + (uint64_t)batch;
    for (int i = 0; i < MODEL_BATCH * each; i++)
        x[i] = model_number(&state);
    for (int i = 0; i < MODEL_BATCH; i++)
        classes[i] = (i * 3 + batch) % MODEL_CLASSES;
    bool images = model->options.kind == MODEL_IMAGES;
    int64_t shape_images[] = {count, MODEL_SIDE, MODEL_SIDE, 2};
    int64_t shape_rows[] = {count, MODEL_TIME, MODEL_WIDTH};
    Tensor *input = model_tensor(model, x + first * each, model->options.format, images ? 4 : 3,
                                 images ? shape_images : shape_rows, MEMORY_DATA);
    Tensor *wanted = model_tensor(model, classes + first, FORMAT_INT32, SHAPE(count), MEMORY_DATA);
    Engine *engine = model->engine;
    engine->autocast.enabled = model->options.format == FORMAT_FP32;
    Tensor *y = images ? model_images(model, input) : model_attention(model, input);
    Tensor *loss = y ? op_two(engine, OP_cross_entropy, y, wanted, NULL, &error) : NULL;
    CHECK_MESSAGE(loss, "%s", error.text);
    engine->autocast.enabled = false;
    engine->layer = 0;
    tensor_release(y);
    tensor_release(wanted);
    return loss;
}

// Gradients of a part of a batch, scaled, its loss counted `weight` times.
static inline double model_backward(Model *model, int batch, int first, int count, double weight) {
    Tensor *loss = model_loss(model, batch, first, count);
    OpAttr times = {.scalar = {weight, 0}};
    double value = NAN;
    if (loss)
        DONE(tensor_item(loss, &value, &error));
    if (weight != 1)
        loss = model_one(model, OP_affine, loss, &times);
    Tensor *scaled = loss && model->scaler
                         ? engine_scale_loss(model->engine, model->scaler, loss, &error)
                         : tensor_hold(loss);
    CHECK_MESSAGE(scaled, "%s", error.text);
    if (scaled)
        DONE(engine_backward(model->engine, scaled, NULL, NULL, &error));
    tensor_release(scaled);
    tensor_release(loss);
    return value;
}

static inline void model_zero_grad(Model *model) {
    for (int i = 0; i < model->count; i++) {
        tensor_release(model->parameters[i]->grad);
        model->parameters[i]->grad = NULL;
    }
}

// One whole step on a batch; with `poison` a gradient is made infinite first. The loss.
static inline double model_step(Model *model, int batch, bool poison) {
    optimizer_zero_grad(model->optimizer);
    double loss = model_backward(model, batch, 0, MODEL_BATCH, 1);
    Tensor *victim = model->parameters[model->count / 2]->grad;
    CHECK(victim);
    if (poison && victim) {
        float infinity = INFINITY;
        device_write(model->device, victim->view.data, &infinity, sizeof infinity);
    }
    DONE(optimizer_step_scaled(model->optimizer, model->scaler, &error));
    DONE(scaler_update(model->scaler, 0, &error));
    return loss;
}

// ---- states -------------------------------------------------------------------------------------

// All that a step may change, but the gradients.
typedef struct ModelState {
    int size;
    double values[6 * MODEL_MOST];
    uint64_t applied, random_position;
    ScaleState scale;
} ModelState;

static inline int model_state_tensors(const Model *model, Tensor **tensors) {
    int n = 0;
    for (int i = 0; i < model->count; i++) {
        tensors[n++] = model->parameters[i];
        tensors[n++] = optimizer_moment(model->optimizer, i, 0);
        tensors[n++] = optimizer_moment(model->optimizer, i, 1);
    }
    for (int i = 0; i < MODEL_BUFFERS; i++)
        tensors[n++] = model->buffers[i];
    return n;
}

static inline void model_save(Model *model, ModelState *state) {
    Tensor *tensors[4 * MODEL_PARAMETERS];
    int count = model_state_tensors(model, tensors);
    memset(state, 0, sizeof *state);
    for (int i = 0; i < count; i++) {
        model_values(tensors[i], state->values + state->size);
        state->size += (int)tensor_count(tensors[i]);
    }
    state->applied = optimizer_applied(model->optimizer);
    state->random_position = model->engine->random_position;
    state->scale = scaler_state(model->scaler);
}

static inline void model_load(Model *model, const ModelState *state) {
    Tensor *tensors[4 * MODEL_PARAMETERS];
    int count = model_state_tensors(model, tensors), at = 0;
    for (int i = 0; i < count; i++) {
        model_write(model, tensors[i], state->values + at);
        at += (int)tensor_count(tensors[i]);
    }
    optimizer_set_progress(model->optimizer, state->applied, 0);
    model->engine->random_position = state->random_position;
    scaler_load(model->scaler, &state->scale);
}

// The number of the first value that differs in any bit; -1: none.
static inline int model_difference(const ModelState *a, const ModelState *b) {
    for (int i = 0; i < a->size; i++)
        if (memcmp(&a->values[i], &b->values[i], sizeof a->values[i]) != 0)
            return i;
    return a->size == b->size ? -1 : 0;
}
