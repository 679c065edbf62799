// What a kernel gets of an operation's inputs: cast, laid out, and on a device that computes in it.
#include "ops/inputs.h"

#include "ops/capture.h"

static Format wider(Format a, Format b) {
    if (a == b)
        return a;
    if (a == FORMAT_FP64 || b == FORMAT_FP64)
        return FORMAT_FP64;
    return FORMAT_FP32; // fp16 and bf16 hold nothing of each other: what holds both is fp32
}

void inputs_formats(Tensor *const *inputs, int count, Format *first, Format *widest) {
    *first = *widest = FORMAT_COUNT;
    for (int i = 0; i < count; i++) {
        if (!inputs[i] || !format_is_floating(inputs[i]->view.format) || inputs[i]->is_number)
            continue;
        Format format = inputs[i]->view.format;
        if (*first == FORMAT_COUNT)
            *first = *widest = format;
        else
            *widest = wider(*widest, format);
    }
    if (*first == FORMAT_COUNT)
        *first = *widest = FORMAT_FP32;
}

// A vector (a bias) need not match its factors: kernels read it in its own format.
static bool is_factor(OpId op, int input) {
    return !((op == OP_linear || op == OP_conv2d || op == OP_conv_transpose2d) && input == 2);
}

// input as the kernel is to get it: low where the class says so. A new reference.
static Tensor *input_in_format(Engine *engine, Tensor *input, Format format, Error *error) {
    if (input->view.format == format)
        return tensor_hold(input);
    if (input->parameter)
        return tensor_hold(parameter_in_format(input, format, error));
    return op_cast(engine, input, format, error);
}

static bool layout_fits(OpLayout layout, const View *view) {
    int n = view->ndim;
    switch (layout) {
    case LAYOUT_STRIDED:
    case LAYOUT_IN_PLACE: return true;
    case LAYOUT_DENSE: return view_is_dense(view);
    case LAYOUT_ROWS: return n == 0 || view->stride[n - 1] == 1 || view->shape[n - 1] == 1;
    case LAYOUT_MATRIX: return n < 2 || view->stride[n - 1] == 1 || view->stride[n - 2] == 1;
    }
    return false;
}

void inputs_clear(PreparedInputs *prepared) {
    for (int i = 0; i < prepared->count; i++) {
        tensor_release(prepared->edge[i]);
        tensor_release(prepared->used[i]);
    }
}

// What a device only stores, its kernels are not handed.
static bool is_computed_in(const Device *device, OpId op, Format format, Error *error) {
    if (!format_is_floating(format) || device->backend->supports(device, op, format))
        return true;
    return error_fail(error, ERROR_USAGE,
                      "%s: device %s does not compute in %s: convert with :to \"fp32\", or run on "
                      "--device ref",
                      op_table[op].name, device->backend->name, format_name(format));
}

// By what a weight's copy is made: under another policy it may be others that ask for one.
static void note_taker(const Engine *engine, Parameter *parameter, OpId op) {
    const bool is_product = op_table[op].precision == CLASS_LOW;
    if (parameter->is_factor && !is_product)
        return;
    parameter->taker = op;
    parameter->taken_in = engine->layer;
    parameter->taken_region = engine->autocast;
}

// What gradients of a weight, or of a bias, are rounded to. Those of a norm that was low, and is so
// no more, are as the weight is kept; what a product takes too is as the product has it.
static void note_rounding(Parameter *parameter, OpId op, const OpFormats *formats, Format own) {
    const bool is_product = op_table[op].precision == CLASS_LOW;
    if (formats->cast_inputs || is_product)
        parameter->round_to = formats->inputs;
    else if (!parameter->is_factor && keep_is_layer(keep_kind(op)))
        parameter->round_to = own;
    parameter->is_factor |= is_product;
}

bool inputs_prepare(Engine *engine, OpId op, Tensor *const *inputs, int count,
                    const OpFormats *formats, PreparedInputs *prepared, Error *error) {
    OpLayout layout = op_table[op].layout;
    // Gradients are rounded to what the forward pass computed in that they come from.
    bool trains = tape_is_enabled(engine->tape) && !engine->walking_back;
    if (trains && engine->layer > 0)
        policy_note_computed(engine->policy, engine->layer, engine->autocast, op, formats);
    for (int i = 0; i < count; i++) {
        Tensor *input = inputs[i];
        prepared->edge[i] = prepared->used[i] = NULL;
        prepared->count = i + 1;
        if (!input)
            continue;
        if (!tensor_check_readable(input, error))
            return false;
        if (engine->capture && input->parameter)
            capture_note_parameter(engine->capture, input);
        Tensor *used;
        if (formats->cast_inputs && !input->is_number && is_factor(op, i) &&
            format_is_floating(input->view.format)) {
            used = input_in_format(engine, input, formats->inputs, error);
            if (!used)
                return false;
            // The low copy of a parameter is an alias of its master.
            prepared->edge[i] = tensor_hold(input->parameter ? input : used);
        } else {
            used = tensor_hold(input);
            prepared->edge[i] = tensor_hold(input);
        }
        prepared->used[i] = used;
        if (!is_computed_in(engine->device, op, used->view.format, error))
            return false;
        if (trains && input->parameter && is_factor(op, i))
            note_taker(engine, parameter_of(input), op);
        if (trains && input->parameter)
            note_rounding(parameter_of(input), op, formats, input->view.format);
        if (!layout_fits(layout, &used->view)) {
            Tensor *dense = tensor_copy_as(used, used->view.format, MEMORY_ACTIVATIONS, error);
            if (!dense)
                return false;
            tensor_release(used);
            prepared->used[i] = dense;
        }
    }
    return true;
}
