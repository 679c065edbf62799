#include "ops/profile.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"

double profile_begin(Engine *engine) {
    engine->profile->depth++;
    return clock_seconds();
}

// The running means after this batch: few values, of which one that is not finite spoils the sum.
static void check_statistics(Engine *engine, EngineProfile *profile, Tensor *means) {
    double value;
    double began = clock_seconds();
    bool recording = tape_set_enabled(engine->tape, false);
    engine->profile = NULL;
    Tensor *sum = op_one(engine, OP_sum, means, NULL, NULL);
    engine->profile = profile;
    tape_set_enabled(engine->tape, recording);
    if (sum && tensor_item(sum, &value, NULL) && !isfinite(value))
        profile->poisoned = engine->layer;
    tensor_release(sum);
    profile->look_seconds += clock_seconds() - began;
}

// The largest (or smallest) value of a tensor, outside of the graph and of the profile.
static double extreme_of(Engine *engine, OpId op, Tensor *tensor) {
    double value = 0;
    Tensor *found = op_one(engine, op, tensor, NULL, NULL);
    if (!found || !tensor_item(found, &value, NULL))
        value = 0; // a look less
    tensor_release(found);
    return value;
}

static void look(Engine *engine, EngineProfile *profile, Tensor *output) {
    double began = clock_seconds();
    bool recording = tape_set_enabled(engine->tape, false);
    engine->profile = NULL;
    double high = fabs(extreme_of(engine, OP_max, output));
    double low = fabs(extreme_of(engine, OP_min, output));
    engine->profile = profile;
    tape_set_enabled(engine->tape, recording);
    double largest = fmax(high, low); // leaves NaN out: the loss tells of those
    if (largest > (double)profile->largest[engine->layer])
        profile->largest[engine->layer] = (float)largest;
    profile->look_seconds += clock_seconds() - began;
}

// ---- faults -------------------------------------------------------------------------------------

static bool is_finite(Engine *engine, Tensor *tensor) {
    return tensor_count(tensor) == 0 || !format_is_floating(tensor->view.format) ||
           (isfinite(extreme_of(engine, OP_max, tensor)) &&
            isfinite(extreme_of(engine, OP_min, tensor)));
}

// Of these fp16 is not to blame: they give no number in any format.
static bool divides(OpId op) {
    return op == OP_div || op == OP_log || op == OP_reciprocal || op == OP_rsqrt || op == OP_sqrt ||
           op == OP_pow;
}

static ForwardFault fault_of(Engine *engine, OpId op, Tensor *const *inputs, int input_count,
                             Format format) {
    ForwardFault fault = {
        .op = op, .layer = engine->layer, .divides = divides(op), .format = format};
    fault.cause = format == FORMAT_FP16 && !divides(op) ? FORWARD_OVERFLOWED : FORWARD_MADE;
    for (int i = 0; i < input_count; i++) {
        if (!inputs[i] || is_finite(engine, inputs[i]))
            continue;
        const Parameter *parameter = parameter_of(inputs[i]);
        fault.cause = parameter ? FORWARD_WEIGHT : FORWARD_GIVEN;
        if (parameter)
            snprintf(fault.weight, sizeof fault.weight, "%s", parameter->name);
        break;
    }
    return fault;
}

static void seek(Engine *engine, EngineProfile *profile, OpId op, Tensor *const *inputs,
                 int input_count, Tensor *output) {
    double began = clock_seconds();
    bool recording = tape_set_enabled(engine->tape, false);
    engine->profile = NULL;
    if (!is_finite(engine, output))
        profile->fault = fault_of(engine, op, inputs, input_count, output->view.format);
    engine->profile = profile;
    tape_set_enabled(engine->tape, recording);
    profile->look_seconds += clock_seconds() - began;
}

// -1e9 in a mask is meant to be infinite.
static bool may_be_infinite(OpId op) {
    return op == OP_fill || op == OP_where;
}

void profile_end(Engine *engine, OpId op, Tensor *const *inputs, int input_count, double began,
                 Tensor *output) {
    EngineProfile *profile = engine->profile;
    double seconds = clock_seconds() - began;
    bool is_known = engine->layer < profile->layers;
    if (op == OP_cast)
        profile->cast_seconds += seconds;
    if (--profile->depth == 0 && is_known) {
        profile->seconds[engine->layer] += seconds;
        profile->operations++;
    }
    if (op == OP_batch_norm_track && output && profile->poisoned < 0)
        check_statistics(engine, profile, output);
    if (profile->depth == 0 && is_known && profile->largest && output && !engine->walking_back &&
        output->view.format == FORMAT_FP16 && tensor_count(output) > 0)
        look(engine, profile, output);
    if (profile->depth == 0 && profile->seeks && profile->fault.cause == FORWARD_SOUND && output &&
        !engine->walking_back && !may_be_infinite(op))
        seek(engine, profile, op, inputs, input_count, output);
}
