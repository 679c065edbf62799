#include "ops/whole.h"

#include <stdlib.h>

#include "kernel/int8.h"

// Adds what the weight is to multiply to what it has multiplied before.
static bool note(Parameter *parameter, const Tensor *x, Error *error) {
    if (!parameter->calibration)
        parameter->calibration = calibration_new();
    const int64_t count = tensor_count(x);
    float *values = malloc(((size_t)count + 1) * sizeof *values);
    if (!values || !parameter->calibration) {
        free(values);
        return error_fail(error, ERROR_MEMORY, "no memory to calibrate %s", parameter->name);
    }
    bool done = tensor_read(x, values, error);
    if (done && !calibration_add(parameter->calibration, values, count))
        done = error_fail(error, ERROR_FAILED,
                          "%s: what it multiplies is not finite, which int8 cannot hold: evaluate "
                          "it in fp32, --layer LAYER=fp32",
                          parameter->name);
    free(values);
    parameter->step = 0;
    return done;
}

// In fp32, as calibration reads it.
static bool note_in_fp32(Engine *engine, Parameter *parameter, Tensor *x, Error *error) {
    if (x->view.format == FORMAT_FP32)
        return note(parameter, x, error);
    Tensor *wide = op_cast(engine, x, FORMAT_FP32, error);
    bool done = wide && note(parameter, wide, error);
    tensor_release(wide);
    return done;
}

static bool check_depth(const Parameter *parameter, const Tensor *weight, Error *error) {
    const int64_t rows = weight->view.shape[0];
    const int64_t depth = rows > 0 ? tensor_count(weight) / rows : 0;
    return depth <= INT8_MOST_DEPTH ||
           error_fail(error, ERROR_FAILED,
                      "%s: sums of %lld products may not fit into the 32 bits that int8 adds up "
                      "in (up to %d do): evaluate it in fp32, --layer LAYER=fp32",
                      parameter->name, (long long)depth, INT8_MOST_DEPTH);
}

bool whole_factors(Engine *engine, KernelCall *call, Tensor *const *used, OpAttr *attr,
                   Error *error) {
    Tensor *x = used[0], *weight = used[1], *whole, *steps;
    Parameter *parameter = parameter_of(weight);
    call->attr = attr;
    if (!parameter || weight->view.format != FORMAT_FP32 || !view_is_dense(&weight->view))
        return true;
    if (!check_depth(parameter, weight, error) ||
        (engine->calibrates && !note_in_fp32(engine, parameter, x, error)))
        return false;
    if (engine->calibrates)
        return true;
    // What calibration has not met is scaled by the first that it meets.
    if (!parameter->calibration && !note_in_fp32(engine, parameter, x, error))
        return false;
    if (parameter->step == 0)
        parameter->step = calibration_step(parameter->calibration, engine->by_largest);
    if (!parameter_in_int8(weight, &whole, &steps, error))
        return false;
    call->input[1].data = whole->view.data;
    call->input[1].format = FORMAT_INT8;
    attr->int8 = (Int8Attr){.step = parameter->step, .steps = steps->view.data};
    return true;
}
