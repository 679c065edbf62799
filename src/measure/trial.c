#include "measure/trial.h"

#include <math.h>
#include <stdlib.h>

#include "ops/views.h"
#include "optim/optimizer.h"
#include "precision/policy.h"

enum {
    IMAGE = 32, // rows and columns of what is convolved
    CHANNELS = 64,
    WINDOW = 3,
    STEP_IMAGE = 16, // the same of the network
    STEP_CHANNELS = 32,
    HIDDEN = 64,
    CLASSES = 10,
};

enum { WEIGHTS = 4, LAYERS = WEIGHTS };

typedef struct Network { // two convolutions, of which the second halves the image, and two layers
    Tensor *x, *classes, *weights[WEIGHTS];
    Optimizer *optimizer;
    Scaler *scaler;
    int layers[LAYERS];
} Network;

struct Trial {
    Engine *engine;
    bool trains;
    OpId op; // of a product alone
    Tensor *factors[2];
    Network network; // of a training
};

// ---- tensors ------------------------------------------------------------------------------------

// Numbers from -limit to limit, in a format that tensors are kept in.
static Tensor *draw(Engine *engine, Format format, int ndim, const int64_t *shape, double limit,
                    Error *error) {
    Tensor *drawn = op_random(engine, OP_uniform, ndim, shape, -limit, limit, error);
    Tensor *cast = drawn ? op_cast(engine, drawn, format, error) : NULL;
    tensor_release(drawn);
    return cast;
}

// ---- a product alone ----------------------------------------------------------------------------

// Whole numbers are met by products of a layer alone.
static OpId op_of(FormatTask task, Format format) {
    return task == FORMAT_CONVOLUTION ? OP_conv2d : format == FORMAT_INT8 ? OP_linear : OP_matmul;
}

static const ConvAttr window_attr = {
    .stride = {1, 1}, .padding = {1, 1}, .dilation = {1, 1}, .groups = 1};

// In a network such factors come from other operations, so they lie there in the format already,
// or in fp32 where none is kept in it: then what rounds and scales them is part of the work.
// What is only evaluated in multiplies by weights, which lie in it from the first time on.
static bool prepare_product(Trial *trial, FormatTask task, Format format, int64_t size,
                            Error *error) {
    const int64_t matrix[2] = {size, size}, window[4] = {CHANNELS, WINDOW, WINDOW, CHANNELS},
                  images[4] = {size, IMAGE, IMAGE, CHANNELS};
    const bool is_matrix = task == FORMAT_PRODUCT;
    const Format kept = format_kept(format);
    const int ndim = is_matrix ? 2 : 4;
    Engine *engine = trial->engine;
    const bool is_evaluated = !precision_trains_on(engine->device, format);
    trial->op = op_of(task, format);
    if (is_evaluated)
        tape_set_enabled(engine->tape, false);
    return (trial->factors[0] = draw(engine, kept, ndim, is_matrix ? matrix : images, 1, error)) &&
           (trial->factors[1] = draw(engine, kept, ndim, is_matrix ? matrix : window, 1, error)) &&
           (!is_evaluated || parameter_attach(trial->factors[1], "weight", 0, false, error));
}

static bool multiply(Trial *trial, Error *error) {
    Engine *engine = trial->engine;
    Tensor **factors = trial->factors;
    const OpAttr attr = {.conv = window_attr};
    engine->autocast = (AutocastRegion){.enabled = true};
    Tensor *product = trial->op == OP_matmul
                          ? op_two(engine, OP_matmul, factors[0], factors[1], NULL, error)
                          : op_three(engine, trial->op, factors[0], factors[1], NULL,
                                     trial->op == OP_conv2d ? &attr : NULL, error);
    engine->autocast = (AutocastRegion){0};
    tensor_release(product);
    return product != NULL;
}

// ---- a training ---------------------------------------------------------------------------------

static const char *const layer_names[LAYERS] = {"conv1", "conv2", "hidden", "head"};

static const struct {
    int ndim;
    int64_t shape[4];
} weight_table[WEIGHTS] = {
    {4, {STEP_CHANNELS, WINDOW, WINDOW, STEP_CHANNELS}},
    {4, {2 * STEP_CHANNELS, WINDOW, WINDOW, STEP_CHANNELS}},
    {2, {HIDDEN, STEP_IMAGE *STEP_IMAGE / 4 * 2 * STEP_CHANNELS}},
    {2, {CLASSES, HIDDEN}},
};

static bool add_weight(Engine *engine, Network *network, int i, Error *error) {
    Tensor *weight =
        draw(engine, FORMAT_FP32, weight_table[i].ndim, weight_table[i].shape, 0.05, error);
    network->weights[i] = weight;
    network->layers[i] = policy_add_layer(engine->policy, layer_names[i], 0, error);
    if (!weight || network->layers[i] < 0)
        return false;
    weight->requires_grad = true;
    return parameter_attach(weight, layer_names[i], network->layers[i], false, error);
}

static bool add_optimizer(Engine *engine, Network *network, Error *error) {
    OptimizerOptions options = optimizer_defaults(OPTIMIZER_ADAM);
    options.schedule.rate = 1e-4;
    const OptimizerGroup group = {.parameters = network->weights, .count = WEIGHTS, .lr_factor = 1};
    ScaleRule rule;
    return scale_rule_parse(policy_preset(engine->policy)->loss_scale, &rule, error) &&
           (network->optimizer = optimizer_new(engine, &options, &group, 1, error)) &&
           (network->scaler = scaler_new(&engine->scalers, &rule, error));
}

static bool prepare_training(Trial *trial, int64_t size, Error *error) {
    const int64_t images[4] = {size, STEP_IMAGE, STEP_IMAGE, STEP_CHANNELS};
    Network *network = &trial->network;
    trial->trains = true;
    if (!(network->x = draw(trial->engine, FORMAT_FP32, 4, images, 1, error)) ||
        !(network->classes = op_random(trial->engine, OP_randint, 1, images, 0, CLASSES, error)))
        return false;
    for (int i = 0; i < WEIGHTS; i++)
        if (!add_weight(trial->engine, network, i, error))
            return false;
    return add_optimizer(trial->engine, network, error);
}

// The next layer's result in place of what it is given, which is released.
static Tensor *pass_layer(Trial *trial, int i, Tensor *x, Error *error) {
    Engine *engine = trial->engine;
    OpAttr attr = {0};
    OpId op = OP_linear;
    if (weight_table[i].ndim == 4) {
        op = OP_conv2d;
        attr.conv = window_attr;
        attr.conv.stride[0] = attr.conv.stride[1] = i + 1;
        attr.conv.activation = ACTIVATION_RELU;
    } else if (i + 1 < LAYERS) {
        attr.linear.activation = ACTIVATION_RELU;
    }
    engine->layer = trial->network.layers[i];
    Tensor *y = x ? op_three(engine, op, x, trial->network.weights[i], NULL, &attr, error) : NULL;
    engine->layer = 0;
    tensor_release(x);
    return y;
}

static Tensor *flatten(Engine *engine, Tensor *x, Error *error) {
    const int64_t shape[2] = {x ? x->view.shape[0] : 0, -1};
    Tensor *flat = x ? op_reshape(engine, x, 2, shape, error) : NULL;
    tensor_release(x);
    return flat;
}

static Tensor *forward(Trial *trial, Error *error) {
    Engine *engine = trial->engine;
    engine->autocast = (AutocastRegion){.enabled = true};
    Tensor *x = tensor_hold(trial->network.x);
    for (int i = 0; i < LAYERS; i++) {
        x = pass_layer(trial, i, x, error);
        if (i == 1)
            x = flatten(engine, x, error);
    }
    Tensor *loss =
        x ? op_two(engine, OP_cross_entropy, x, trial->network.classes, NULL, error) : NULL;
    tensor_release(x);
    engine->autocast = (AutocastRegion){0};
    return loss;
}

static bool train(Trial *trial, Error *error) {
    Engine *engine = trial->engine;
    Network *network = &trial->network;
    optimizer_zero_grad(network->optimizer);
    Tensor *loss = forward(trial, error);
    Tensor *scaled = loss ? engine_scale_loss(engine, network->scaler, loss, error) : NULL;
    const bool done = scaled && engine_backward(engine, scaled, NULL, NULL, error) &&
                      optimizer_step_scaled(network->optimizer, network->scaler, error) &&
                      scaler_update(network->scaler, 0, error) && engine_end_step(engine, error);
    tensor_release(scaled);
    tensor_release(loss);
    return done;
}

// ---- both ---------------------------------------------------------------------------------------

bool trial_is_possible(const Device *device, FormatTask task, Format format) {
    const Backend *backend = device->backend;
    const OpId op = op_of(task, format);
    return (task == FORMAT_STEP ? precision_trains_on : precision_evaluates_on)(device, format) &&
           backend->kernels[op] && backend->supports(device, op, format);
}

double trial_flops(FormatTask task, int64_t size) {
    const double n = (double)size;
    return task == FORMAT_PRODUCT ? 2 * n * n * n
           : task == FORMAT_CONVOLUTION
               ? 2 * n * IMAGE * IMAGE * CHANNELS * WINDOW * WINDOW * CHANNELS
               : 0;
}

Trial *trial_new(Device *device, FormatTask task, Format format, int64_t size, Error *error) {
    Trial *trial = calloc(1, sizeof *trial);
    if (!trial) {
        error_fail(error, ERROR_MEMORY, "no memory for what is measured");
        return NULL;
    }
    Preset preset;
    if (preset_resolve_evaluated(format_name(format), device, &preset, error) &&
        (trial->engine = engine_new(device, &preset, 1, error)) &&
        (task == FORMAT_STEP ? prepare_training(trial, size, error)
                             : prepare_product(trial, task, format, size, error)))
        return trial;
    trial_free(trial);
    return NULL;
}

void trial_free(Trial *trial) {
    if (!trial)
        return;
    tensor_release(trial->factors[0]);
    tensor_release(trial->factors[1]);
    Network *network = &trial->network;
    scaler_free(network->scaler);
    optimizer_free(network->optimizer);
    for (int i = 0; i < WEIGHTS; i++)
        tensor_release(network->weights[i]);
    tensor_release(network->classes);
    tensor_release(network->x);
    engine_free(trial->engine);
    free(trial);
}

bool trial_do(Trial *trial, Error *error) {
    return trial->trains ? train(trial, error) : multiply(trial, error);
}

static double bytes_of(const Tensor *tensor) {
    return (double)tensor_count(tensor) * (double)format_table[tensor->view.format].bytes;
}

double trial_weight_share(const Trial *trial) {
    const Parameter *parameter = trial->factors[1] ? parameter_of(trial->factors[1]) : NULL;
    return parameter && parameter->whole
               ? (bytes_of(parameter->whole) + bytes_of(parameter->steps)) /
                     bytes_of(trial->factors[1])
               : (double)NAN;
}
