// The dispatcher: decide, cast, lay out, check, allocate, run, record.
#include <assert.h>
#include <string.h>

#include "ops/capture.h"
#include "ops/engine.h"
#include "ops/gradient.h"
#include "ops/inputs.h"
#include "ops/profile.h"
#include "ops/scale.h"
#include "ops/shape.h"
#include "ops/whole.h"

static bool outputs_new(Engine *engine, const KernelCall *call, const View *shapes, Format format,
                        Tensor **outputs, Error *error) {
    MemoryPurpose purpose =
        engine->walking_back && !engine->makes_again ? MEMORY_GRADIENTS : MEMORY_ACTIVATIONS;
    for (int i = 0; i < call->output_count; i++) {
        Format out = shapes[i].format == FORMAT_COUNT ? format : shapes[i].format;
        outputs[i] =
            tensor_new(engine->device, out, shapes[i].ndim, shapes[i].shape, purpose, error);
        if (!outputs[i])
            return false;
    }
    return true;
}

static bool record(Engine *engine, OpId op, const OpAttr *attr, const PreparedInputs *prepared,
                   Tensor **outputs, int output_count, Error *error) {
    if (!tape_is_enabled(engine->tape))
        return true;
    bool wanted = false;
    for (int i = 0; i < prepared->count && !wanted; i++)
        wanted = tensor_wants_grad(prepared->edge[i]);
    if (!wanted)
        return true;
    const GradientInfo *gradient = gradient_table[op];
    if (!gradient->rule) {
        if (op_table[op].precision != CLASS_INNER)
            return true; // its result is a constant to those before it
        return error_fail(error, ERROR_USAGE,
                          "%s has no derivative of its own: no second derivative "
                          "through this operation",
                          op_table[op].name);
    }
    uint32_t saves = gradient->saves(op, attr);
    TapeRecord entry = {.rule = gradient->rule,
                        .op = op,
                        .attr = attr,
                        .layer = engine->layer,
                        .input_count = prepared->count,
                        .output_count = output_count,
                        .inputs = prepared->edge,
                        .used = prepared->used,
                        .outputs = outputs};
    Tensor *saved[GRAD_MAX_SAVED];
    for (int i = 0; i < prepared->count && i < 16; i++) {
        if (!(saves & SAVE_INPUT(i)))
            continue;
        if (prepared->used[i] == prepared->edge[i] && gradient_makes_again(prepared->used[i]))
            entry.again |= 1u << entry.saved_count;
        saved[entry.saved_count++] = prepared->used[i];
    }
    for (int i = 0; i < output_count; i++)
        if (saves & SAVE_OUTPUT(i))
            saved[entry.saved_count++] = outputs[i];
    entry.saved = saved;
    return tape_record(engine->tape, &entry, error);
}

// Outside of layers, whose names are told, an error names the operation; creations are named by who
// calls them.
static bool name_op(int layer, OpId op, Error *error) {
    return layer || op_table[op].precision == CLASS_INNER || op_table[op].inputs == 0
               ? false
               : error_prefix(error, "%s", op_table[op].name);
}

static bool name_layer(const Engine *engine, int layer, Error *error) {
    return layer ? error_prefix(error, "%s", policy_layer(engine->policy, layer)->name) : false;
}

bool op_explain(void *context, const DeviceStatus *status, Error *error) {
    const ValueCheck *check = &status->check;
    value_fail(check, status->position, status->value, error);
    name_op(check->layer, (OpId)check->op, error);
    return name_layer(context, check->layer, error);
}

// Runs the kernel. What draws random numbers is told where in the step they begin; the tape keeps
// where in the whole stream, which holds in later steps too.
static bool run_kernel(Engine *engine, KernelCall *call, Error *error) {
    if (!engine_draws(call->op))
        return device_run(engine->device, call, error);
    const OpAttr *attr = call->attr;
    OpAttr placed = *attr;
    RandomAttr *random = engine_stream_of(call->op, &placed);
    *random = engine_random_of_step(engine, *random);
    call->attr = &placed;
    bool done = device_run(engine->device, call, error);
    call->attr = attr;
    return done;
}

// What a product multiplies in, where that is not what its factors are kept in: told to the kernel,
// and to the tape, whose rules go by it. The attributes to be used: those given, or `changed`.
static const OpAttr *say_compute(const OpFormats *formats, const OpAttr *attr, OpAttr *changed) {
    if (formats->compute == formats->inputs || attr->has_compute)
        return attr;
    if (attr != changed)
        *changed = *attr;
    changed->has_compute = true;
    changed->compute = formats->compute;
    return changed;
}

// Factors as elements with scales: of this call alone.
typedef struct Scaled {
    ScaledFactor factor[2];
    int count;
    OpAttr attr; // what the kernel is told
} Scaled;

static void scaled_clear(Scaled *scaled) {
    for (int i = 0; i < scaled->count; i++)
        scale_clear(&scaled->factor[i]);
}

// Has the kernel multiply what the factors' elements are worth, where that is asked for.
static bool scale_factors(Engine *engine, KernelCall *call, const PreparedInputs *prepared,
                          Scaled *scaled, Error *error) {
    if (whole_is_asked(call->attr)) {
        scaled->attr = *call->attr;
        scaled->attr.has_compute = false;
        return whole_factors(engine, call, prepared->used, &scaled->attr, error);
    }
    if (!scale_is_asked(call->attr))
        return true;
    scaled->attr = *call->attr;
    scaled->attr.has_compute = false;
    const ScaledInputs inputs = scale_inputs(call->op);
    for (int i = inputs.first; i < inputs.first + inputs.count; i++) {
        if (!prepared->used[i])
            continue;
        ScaledFactor *factor = &scaled->factor[scaled->count];
        if (!scale_factor(engine, call->op, call->attr, i, prepared->used[i], factor, error))
            return false;
        scaled->count++;
        call->input[i] = factor->worth->view;
        if (factor->times)
            scaled->attr.times[i] = factor->times->view.data;
    }
    if (scaled->count == 2 && (call->op == OP_linear || call->op == OP_matmul))
        scaled->attr.blocks = scale_blocks(&scaled->factor[0], &scaled->factor[1]);
    call->attr = &scaled->attr;
    return true;
}

// How matrix products add up, where the run asks for another way.
static const OpAttr *say_sums(const Engine *engine, OpId op, const OpAttr *attr, OpAttr *changed) {
    const Summing sums = policy_recipe(engine->policy)->sums;
    if (sums == SUMS_FP32 || (op != OP_matmul && op != OP_linear))
        return attr;
    *changed = *attr;
    changed->sums = sums;
    return changed;
}

static bool apply(Engine *engine, OpId op, Tensor *const *inputs, int input_count,
                  const OpAttr *attr, Tensor **outputs, Error *error) {
    Format first, widest;
    inputs_formats(inputs, input_count, &first, &widest);
    OpFormats formats;
    if (!policy_decide(engine->policy, engine->layer, engine->autocast, op, first, widest, &formats,
                       error))
        return false;
    if (attr->has_out_format)
        formats.output = attr->out_format;
    if (formats.compute == FORMAT_INT8 && tape_is_enabled(engine->tape))
        formats.compute = formats.inputs; // whole numbers have no gradients
    OpAttr changed;
    attr = say_compute(&formats, say_sums(engine, op, attr, &changed), &changed);
    if (scale_is_asked(attr)) // factors are rounded from what they hold, whatever it is kept in
        formats.cast_inputs = false;
    PreparedInputs prepared = {.count = 0};
    Scaled scaled = {.count = 0};
    bool done = inputs_prepare(engine, op, inputs, input_count, &formats, &prepared, error);
    if (done) {
        KernelCall call;
        View shapes[OP_MAX_OUTPUTS];
        call.op = op;
        call.layer = engine->layer;
        call.attr = attr;
        call.input_count = input_count;
        call.output_count = op_table[op].outputs;
        for (int i = 0; i < input_count; i++) {
            if (prepared.used[i])
                call.input[i] = prepared.used[i]->view;
            else
                call.input[i] = (View){.data = NULL};
        }
        done = (shape_rules[op](&call, shapes, error) || name_op(engine->layer, op, error)) &&
               outputs_new(engine, &call, shapes, formats.output, outputs, error) &&
               scale_factors(engine, &call, &prepared, &scaled, error);
        if (done) {
            for (int i = 0; i < call.output_count; i++)
                call.output[i] = outputs[i]->view;
            profile_note(engine, &call, attr);
            done = run_kernel(engine, &call, error) || name_op(engine->layer, op, error);
            if (done && engine->lookout.is_on)
                lookout_outputs(engine, &call, inputs, prepared.used, outputs);
            if (done && engine->lookout.is_on && engine->capture)
                capture_note_look(engine->capture);
            done = done && record(engine, op, attr, &prepared, outputs, call.output_count, error);
        }
    }
    scaled_clear(&scaled);
    inputs_clear(&prepared);
    return done;
}

static bool op_run(Engine *engine, OpId op, Tensor *const *inputs, int input_count,
                   const OpAttr *attr, Tensor **outputs, Error *error) {
    static const OpAttr no_attr;
    assert(op_table[op].inputs == VARIADIC || op_table[op].inputs == input_count);
    for (int i = 0; i < op_table[op].outputs; i++)
        outputs[i] = NULL;
    if (apply(engine, op, inputs, input_count, attr ? attr : &no_attr, outputs, error))
        return true;
    // Gradient rules hand in the array that is released when they fail: nothing may be left in it.
    for (int i = 0; i < op_table[op].outputs; i++) {
        tensor_release(outputs[i]);
        outputs[i] = NULL;
    }
    // Casts and copies run inside other operations: the innermost says where it was.
    return op == OP_cast ? false : name_layer(engine, engine->layer, error);
}

static bool op_profile(Engine *engine, OpId op, Tensor *const *inputs, int input_count,
                       const OpAttr *attr, Tensor **outputs, Error *error) {
    if (!engine->profile)
        return op_run(engine, op, inputs, input_count, attr, outputs, error);
    ProfileStart began = profile_begin(engine, op);
    bool done = op_run(engine, op, inputs, input_count, attr, outputs, error);
    profile_end(engine, op, inputs, input_count, began, done ? outputs[0] : NULL);
    return done;
}

// What who watches reads is no part of the step.
static void show(Engine *engine, const View *output) {
    capture_note_shown(engine, output);
    capture_pause(engine);
    engine->watch->output(engine->watch, engine, output);
    capture_end_act(engine);
}

bool op_apply(Engine *engine, OpId op, Tensor *const *inputs, int input_count, const OpAttr *attr,
              Tensor **outputs, Error *error) {
    if (!op_profile(engine, op, inputs, input_count, attr, outputs, error))
        return false;
    // Casts are another format's business.
    if (engine->watch && !engine->walking_back && op != OP_cast && outputs[0]->origin)
        show(engine, &outputs[0]->view);
    return true;
}

// ---- short forms --------------------------------------------------------------------------------

static Tensor *first_output(Engine *engine, OpId op, Tensor *const *inputs, int count,
                            const OpAttr *attr, Error *error) {
    Tensor *outputs[OP_MAX_OUTPUTS];
    if (!op_apply(engine, op, inputs, count, attr, outputs, error))
        return NULL;
    for (int i = 1; i < op_table[op].outputs; i++)
        tensor_release(outputs[i]);
    return outputs[0];
}

Tensor *op_one(Engine *engine, OpId op, Tensor *x, const OpAttr *attr, Error *error) {
    return first_output(engine, op, &x, 1, attr, error);
}

Tensor *op_two(Engine *engine, OpId op, Tensor *x, Tensor *y, const OpAttr *attr, Error *error) {
    Tensor *const inputs[] = {x, y};
    return first_output(engine, op, inputs, 2, attr, error);
}

Tensor *op_three(Engine *engine, OpId op, Tensor *x, Tensor *y, Tensor *z, const OpAttr *attr,
                 Error *error) {
    Tensor *const inputs[] = {x, y, z};
    return first_output(engine, op, inputs, 3, attr, error);
}

static Tensor *create(Engine *engine, OpId op, OpAttr *attr, int ndim, const int64_t *shape,
                      Error *error) {
    attr->create.ndim = ndim;
    if (ndim)
        memcpy(attr->create.shape, shape, (size_t)ndim * sizeof *shape);
    return first_output(engine, op, NULL, 0, attr, error);
}

Tensor *op_fill(Engine *engine, Format format, int ndim, const int64_t *shape, double value,
                Error *error) {
    OpAttr attr = {.out_format = format, .has_out_format = true};
    attr.create.a = value;
    return create(engine, OP_fill, &attr, ndim, shape, error);
}

Tensor *op_random(Engine *engine, OpId op, int ndim, const int64_t *shape, double a, double b,
                  Error *error) {
    OpAttr attr = {.out_format = FORMAT_FP32, .has_out_format = op != OP_randint};
    attr.create.a = a;
    attr.create.b = b;
    if (!view_shape_fits(ndim, shape)) {
        error_fail(error, ERROR_USAGE, "%s: a tensor of this shape is larger than any memory",
                   op_table[op].name);
        return NULL;
    }
    View view = view_dense(NULL, FORMAT_FP32, ndim, shape);
    attr.random = engine_random(engine, view_count(&view));
    return create(engine, op, &attr, ndim, shape, error);
}

Tensor *op_cast(Engine *engine, Tensor *x, Format format, Error *error) {
    OpAttr attr = {.out_format = format, .has_out_format = true};
    return op_one(engine, OP_cast, x, &attr, error);
}
