#include "ops/lookout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "ops/lookout_private.h"

void lookout_clear(Lookout *lookout) {
    free(lookout->forward);
    free(lookout->backward);
    free(lookout->weights);
    lookout_notes_clear(&lookout->notes);
    for (int i = 0; i < LOOKOUT_CHUNKS; i++)
        tensor_release(lookout->chunks[i]);
    *lookout = (Lookout){.is_on = false};
}

static bool can_look(const Engine *engine) {
    return engine->device->backend->multi->largest != NULL || lookout_is_late(engine);
}

bool lookout_is_late(const Engine *engine) {
    return engine->device->backend->multi->look != NULL;
}

void lookout_open(Engine *engine) {
    engine->lookout.is_open = engine->lookout.is_on = can_look(engine);
    engine->lookout.walked = OP_COUNT;
}

void lookout_end_step(Lookout *lookout) {
    lookout->step = (StepFaults){0};
    for (int i = 0; i < lookout->layers; i++)
        lookout->forward[i] = lookout->backward[i] = lookout->weights[i] = 0;
}

const FaultOrigin *lookout_origin(const Lookout *lookout, uint32_t number) {
    const FaultOrigin *origin = &lookout->origins[number % LOOKOUT_ORIGINS];
    return number != 0 && origin->number == number ? origin : NULL;
}

// ---- the usual case -----------------------------------------------------------------------------

static bool make_room(Lookout *lookout, int layer) {
    if (layer < lookout->layers)
        return true;
    const int layers = layer + 16;
    float **const kept[] = {&lookout->forward, &lookout->backward, &lookout->weights};
    for (size_t k = 0; k < sizeof kept / sizeof *kept; k++) {
        float *grown = realloc(*kept[k], (size_t)layers * sizeof *grown);
        if (!grown)
            return false;
        *kept[k] = grown;
        for (int i = lookout->layers; i < layers; i++)
            grown[i] = 0;
    }
    lookout->layers = layers;
    return true;
}

void lookout_keep(Lookout *lookout, LookoutKind kind, int layer, double value) {
    if (!make_room(lookout, layer))
        return; // a figure less
    float *kept = kind == LOOKOUT_FORWARD    ? lookout->forward
                  : kind == LOOKOUT_BACKWARD ? lookout->backward
                                             : lookout->weights;
    if ((float)value > kept[layer])
        kept[layer] = (float)value;
}

static void keep_largest(Engine *engine, double value) {
    lookout_keep(&engine->lookout, engine->walking_back ? LOOKOUT_BACKWARD : LOOKOUT_FORWARD,
                 engine->layer, value);
}

// ---- what is not finite -------------------------------------------------------------------------

// Where element i of a view lies, in row-major order.
static const void *element_of(const View *view, int64_t i) {
    int64_t offset = 0;
    for (int k = view->ndim - 1; k >= 0; k--) {
        offset += i % view->shape[k] * view->stride[k];
        i /= view->shape[k];
    }
    return (const char *)view->data + offset * (int64_t)format_table[view->format].bytes;
}

static void count_broken(const View *view, FaultOrigin *origin) {
    const int64_t count = view_count(view);
    for (int64_t i = 0; i < count; i++) {
        const double value = format_load(view->format, element_of(view, i));
        if (isfinite(value))
            continue;
        if (origin->nans + origin->infs == 0)
            origin->first = i;
        isnan(value) ? origin->nans++ : origin->infs++;
    }
}

// The largest magnitude of any view; NaN where one is.
static double largest_of(const Engine *engine, const View *view) {
    double largest = 0;
    if (!format_is_floating(view->format) || !format_is_plain(view->format))
        return 0;
    if (view_is_dense(view))
        return engine->device->backend->multi->largest(engine->device, view);
    for (int64_t i = 0; i < view_count(view) && !isnan(largest); i++) {
        const double value = fabs(format_load(view->format, element_of(view, i)));
        largest = value > largest || isnan(value) ? value : largest;
    }
    return largest;
}

bool lookout_divides(OpId op) {
    return op == OP_div || op == OP_log || op == OP_reciprocal || op == OP_rsqrt || op == OP_sqrt ||
           op == OP_pow;
}

// Whether the same call would give finite numbers in fp32.
static bool would_fit(Engine *engine, const KernelCall *call, int output) {
    if (call->output[output].format != FORMAT_FP16)
        return false;
    KernelCall wide = *call;
    Tensor *room[OP_MAX_OUTPUTS] = {NULL};
    bool done = true;
    for (int i = 0; done && i < call->output_count; i++) {
        const View *view = &call->output[i];
        const Format format = format_is_floating(view->format) ? FORMAT_FP32 : view->format;
        room[i] =
            tensor_new(engine->device, format, view->ndim, view->shape, MEMORY_WORKSPACE, NULL);
        done = room[i] != NULL;
        if (done)
            wide.output[i] = room[i]->view;
    }
    OpAttr attr = *call->attr;
    attr.out_format = FORMAT_FP32;
    wide.attr = &attr;
    DeviceTap *tap = engine->device->tap; // what is looked at is no part of the step
    engine->device->tap = NULL;
    done = done && device_run(engine->device, &wide, NULL);
    engine->device->tap = tap;
    const bool fits =
        done ? isfinite(largest_of(engine, &room[output]->view)) : !lookout_divides(call->op);
    for (int i = 0; i < call->output_count; i++)
        tensor_release(room[i]);
    return fits;
}

uint32_t lookout_add_origin(Lookout *lookout, const FaultOrigin *origin) {
    const uint32_t number = ++lookout->made;
    StepFaults *step = &lookout->step;
    FaultOrigin *added = &lookout->origins[number % LOOKOUT_ORIGINS];
    *added = *origin;
    added->number = number;
    added->divides = lookout_divides(origin->op);
    added->is_nan = origin->nans > 0;
    added->view.data = NULL;
    if (origin->is_backward && step->of_walk == 0)
        step->of_walk = number;
    if (!origin->is_backward && origin->cause == FAULT_OVERFLOWED && step->of_overflow == 0)
        step->of_overflow = number;
    return number;
}

static uint32_t origin_new(Engine *engine, OpId op, FaultCause cause, const View *view,
                           const char *weight) {
    Lookout *lookout = &engine->lookout;
    FaultOrigin origin = {.cause = cause,
                          .op = op,
                          .layer = engine->layer,
                          .is_backward = engine->walking_back,
                          .walked = lookout->walked,
                          .scales = lookout->scales,
                          .view = *view};
    count_broken(view, &origin);
    utf8_copy(origin.weight, sizeof origin.weight, weight ? weight : "");
    utf8_copy(origin.function, sizeof origin.function, lookout->function ? lookout->function : "");
    if (lookout->place && !engine->walking_back)
        lookout->place(lookout->place_context, origin.place);
    return lookout_add_origin(lookout, &origin);
}

// What an input that is not finite, and carries no number, is the origin of.
static uint32_t input_origin(Engine *engine, OpId op, Tensor *given, Tensor *used) {
    const Parameter *parameter = parameter_of(given);
    uint32_t number;
    if (parameter && given != used && isfinite(largest_of(engine, &given->view)))
        number = origin_new(engine, op, FAULT_OVERFLOWED, &used->view, parameter->name);
    else if (parameter)
        number = origin_new(engine, op, FAULT_WEIGHT, &given->view, parameter->name);
    else
        number = origin_new(engine, op, engine->walking_back ? FAULT_SUMMED : FAULT_GIVEN,
                            &used->view, NULL);
    used->storage->fault = number;
    return number;
}

void lookout_add_input(const Lookout *lookout, BrokenInputs *found, int i, double value,
                       uint32_t number) {
    found->any = true;
    found->has_nan = found->has_nan || isnan(value);
    if (number == LOOKOUT_ASKED_FOR)
        found->has_asked = true;
    else if (!lookout_origin(lookout, number))
        found->at = found->at < 0 ? i : found->at;
    else if (found->number == 0 || number < found->number)
        found->number = number;
}

static BrokenInputs look_at_inputs(const Engine *engine, const KernelCall *call,
                                   Tensor *const *inputs, Tensor *const *used) {
    BrokenInputs found = {.at = -1};
    for (int i = 0; i < call->input_count; i++) {
        const double value = used[i] ? largest_of(engine, &used[i]->view) : 0;
        if (isfinite(value))
            continue;
        const uint32_t copied = used[i]->storage->fault; // one made dense carries none
        const uint32_t carried = copied ? copied : inputs[i]->storage->fault;
        const uint32_t number = inputs[i]->parameter ? 0 : carried; // it is what is to be named
        lookout_add_input(&engine->lookout, &found, i, value, number);
    }
    return found;
}

// Of an output of the kernel that has just run.
static double largest_of_output(const Engine *engine, const KernelCall *call, int output) {
    Device *device = engine->device;
    const bool is_told = output == 0 && !(device->largest < 0);
    return is_told ? (double)device->largest
                   : device->backend->multi->largest(device, &call->output[output]);
}

bool lookout_asks_for(const KernelCall *call) {
    return call->input_count == 0 || call->op == OP_where || call->op == OP_pad;
}

bool lookout_is_asked_for(const BrokenInputs *broken, bool asks_for, double value) {
    return broken->any ? !isnan(value) || broken->has_nan : asks_for;
}

static uint32_t origin_of_output(Engine *engine, const KernelCall *call, Tensor *const *inputs,
                                 Tensor *const *used, int output, double value) {
    const BrokenInputs broken = look_at_inputs(engine, call, inputs, used);
    if (broken.number)
        return broken.number;
    if (broken.at >= 0)
        return input_origin(engine, call->op, inputs[broken.at], used[broken.at]);
    if (lookout_is_asked_for(&broken, lookout_asks_for(call), value))
        return LOOKOUT_ASKED_FOR;
    const bool fits = !broken.any && would_fit(engine, call, output);
    const uint32_t number = origin_new(engine, call->op, fits ? FAULT_OVERFLOWED : FAULT_MADE,
                                       &call->output[output], NULL);
    engine->lookout.origins[number % LOOKOUT_ORIGINS].has_asked = broken.any;
    return number;
}

void lookout_outputs(Engine *engine, const KernelCall *call, Tensor *const *inputs,
                     Tensor *const *used, Tensor *const *outputs) {
    if (lookout_is_late(engine))
        lookout_note_outputs(engine, call, inputs, used, outputs);
    if (!engine->device->backend->multi->largest) // or a replay, which computes nothing
        return;
    for (int i = 0; i < call->output_count; i++) {
        const View *view = &call->output[i];
        if (!format_is_floating(view->format) || !format_is_plain(view->format))
            continue;
        const double value = largest_of_output(engine, call, i);
        outputs[i]->storage->fault = 0;
        if (!isfinite(value))
            outputs[i]->storage->fault = origin_of_output(engine, call, inputs, used, i, value);
        else if (i == 0 && !engine->lookout.scales && !engine->makes_again)
            keep_largest(engine, value);
    }
}

bool lookout_again(Engine *engine, const KernelCall *call, bool keeps) {
    for (int i = 0; i < call->output_count; i++) {
        const View *view = &call->output[i];
        if (!format_is_floating(view->format) || !format_is_plain(view->format))
            continue;
        const double value = largest_of_output(engine, call, i);
        if (!isfinite(value))
            return false;
        if (i == 0 && keeps)
            keep_largest(engine, value);
    }
    return true;
}

void lookout_loss(Engine *engine, Tensor *loss) {
    Lookout *lookout = &engine->lookout;
    uint32_t *const of_loss = &lookout->step.of_loss;
    if (lookout_is_late(engine))
        lookout_note_loss(engine, loss);
    if (!engine->device->backend->multi->largest || *of_loss != 0 ||
        isfinite(largest_of(engine, &loss->view)))
        return;
    *of_loss = loss->storage->fault;
    if (!lookout_origin(lookout, *of_loss))
        *of_loss = origin_new(engine, OP_COUNT, FAULT_GIVEN, &loss->view, NULL);
}

uint32_t lookout_mark(const Engine *engine) {
    return lookout_is_late(engine) ? engine->lookout.looked : engine->lookout.made;
}

void lookout_keep_buffer(Lookout *lookout, uint32_t number, const char *name, bool is_buffer) {
    if (lookout->step.of_buffer != 0 || !lookout_origin(lookout, number))
        return;
    lookout->step.of_buffer = number;
    FaultOrigin *origin = &lookout->origins[number % LOOKOUT_ORIGINS];
    origin->buffer = name;
    origin->is_buffer = is_buffer;
}

void lookout_buffer(Engine *engine, const Tensor *value, const char *name, uint32_t mark) {
    const uint32_t number = value->storage->fault;
    if (lookout_is_late(engine))
        lookout_note_buffer(engine, value, name, mark);
    else if (can_look(engine))
        lookout_keep_buffer(&engine->lookout, number, name, number > mark);
}
