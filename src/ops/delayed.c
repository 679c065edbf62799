#include "ops/delayed.h"

#include <stdlib.h>

#include "ops/capture.h"
#include "ops/engine.h"

// Rows that nothing was noted in: their scale is 1.
static Tensor *rows_new(Engine *engine, int64_t rows, int64_t width, Error *error) {
    const int64_t shape[] = {rows, width};
    float *host = calloc((size_t)(rows * width), sizeof *host);
    if (!host) {
        error_fail(error, ERROR_MEMORY, "no memory for the scales of layers");
        return NULL;
    }
    for (int64_t i = 0; i < rows; i++)
        host[i * width + SCALE_NOW] = 1;
    Tensor *state =
        tensor_from_host(engine->device, FORMAT_FP32, 2, shape, host, MEMORY_OPTIMIZER, error);
    free(host);
    return state;
}

static int64_t rows_wanted(const Engine *engine) {
    return (int64_t)policy_layer_count(engine->policy) * FACTOR_ROLES;
}

int64_t delayed_width(const Engine *engine) {
    return SCALE_HISTORY + policy_recipe(engine->policy)->history;
}

size_t delayed_bytes(const Engine *engine) {
    const Tensor *state = engine->delayed.state;
    const int64_t rows = state ? state->view.shape[0] : rows_wanted(engine);
    const int64_t width = state ? state->view.shape[1] : delayed_width(engine);
    return (size_t)(rows * width) * sizeof(float);
}

// What there was stays as it is.
static bool keep_rows(Tensor *state, const Tensor *had, Error *error) {
    View kept = state->view;
    kept.shape[0] = had->view.shape[0];
    Tensor *part = tensor_view(state, &kept, error);
    bool done = part && tensor_copy_into(part, had, error);
    tensor_release(part);
    return done;
}

static bool grow(Engine *engine, Error *error) {
    Delayed *delayed = &engine->delayed;
    const int64_t wanted = rows_wanted(engine);
    if (delayed->state && wanted <= delayed->state->view.shape[0])
        return true;
    const int64_t width = delayed->state ? delayed->state->view.shape[1] : delayed_width(engine);
    Tensor *state = rows_new(engine, wanted, width, error);
    if (!state || (delayed->state && !keep_rows(state, delayed->state, error))) {
        tensor_release(state);
        return false;
    }
    tensor_release(delayed->state);
    delayed->state = state;
    return true;
}

bool delayed_make(Engine *engine, int64_t rows, Error *error) {
    delayed_clear(&engine->delayed);
    engine->delayed.state = rows_new(engine, rows, delayed_width(engine), error);
    return engine->delayed.state != NULL;
}

float *delayed_scale(Engine *engine, int layer, FactorRole role, Error *error) {
    const int64_t row = (int64_t)layer * FACTOR_ROLES + role;
    capture_pause(engine); // once in all steps
    const bool done = grow(engine, error);
    capture_end_act(engine);
    if (!done)
        return NULL;
    Tensor *state = engine->delayed.state;
    tensor_written(state);
    return (float *)state->view.data + row * state->view.shape[1];
}

bool delayed_end_step(Engine *engine, Error *error) {
    Tensor *state = engine->delayed.state;
    if (!state)
        return true;
    const Recipe *recipe = policy_recipe(engine->policy);
    const FormatInfo *fp8 = &format_table[FORMAT_FP8];
    OpAttr attr = {.out_format = FORMAT_FP32, .has_out_format = true};
    attr.history = (HistoryAttr){.is_recent = recipe->is_recent, .roles = FACTOR_ROLES};
    for (int role = 0; role < FACTOR_ROLES; role++) {
        Format element = role == FACTOR_GRADIENT ? fp8->gradients : fp8->element;
        attr.history.largest[role] =
            (float)(format_table[element].largest / (double)(1 << recipe->margin));
    }
    KernelCall call = {.op = OP_scale_history, .input_count = 1, .output_count = 1, .attr = &attr};
    call.input[0] = call.output[0] = state->view;
    tensor_written(state);
    return device_run(engine->device, &call, error);
}

void delayed_clear(Delayed *delayed) {
    tensor_release(delayed->state);
    delayed->state = NULL;
}
