// A captured step computed again.
#include <string.h>

#include "ops/capture_private.h"

static bool same_view(const View *a, const View *b) {
    const size_t size = (size_t)a->ndim * sizeof *a->shape;
    return a->format == b->format && a->ndim == b->ndim && memcmp(a->shape, b->shape, size) == 0 &&
           memcmp(a->stride, b->stride, size) == 0;
}

static bool same_place(const CapturePlace *a, const CapturePlace *b) {
    return a->autocast.enabled == b->autocast.enabled && a->autocast.given == b->autocast.given &&
           a->autocast.format == b->autocast.format &&
           a->autocast.unscaled == b->autocast.unscaled && a->layer == b->layer &&
           a->records == b->records && a->looks == b->looks;
}

static bool inputs_fit(const Capture *capture, Tensor *const *inputs, int count) {
    if (count != capture->input_count)
        return false;
    for (int i = 0; i < count; i++) {
        if (!same_view(&inputs[i]->view, &capture->inputs[i].view) || inputs[i]->parameter ||
            tensor_wants_grad(inputs[i]) || !tensor_check_readable(inputs[i], &(Error){0}))
            return false;
        for (int k = 0; k < i; k++)
            if (inputs[k]->storage == inputs[i]->storage)
                return false;
    }
    return true;
}

static bool outside_is_there(const Capture *capture) {
    for (int i = 0; i < capture->memory_count; i++)
        if (capture->memory[i].is_outside && !allocator_in_use(capture->memory[i].pin))
            return false;
    for (int i = 0; i < capture->leaves_count; i++)
        if (capture->leaves[i].leaf->hooks || !capture->leaves[i].leaf->requires_grad)
            return false;
    for (int i = 0; i < capture->parameters_count; i++) {
        const CapturedParameter *noted = &capture->parameters[i];
        if (noted->tensor->view.data != noted->data ||
            noted->tensor->requires_grad != noted->requires_grad || noted->tensor->hooks)
            return false;
    }
    return true;
}

bool capture_has_gradient(const Capture *capture, const Tensor *leaf) {
    for (int i = 0; capture->is_ready && i < capture->leaves_count; i++)
        if (capture->leaves[i].gradient == leaf->grad)
            return true;
    return false;
}

// Gradients that are there are added to, where the step does not drop them itself; what was
// captured would write over them.
static bool adds_gradients(const Capture *capture) {
    for (int i = 0; i < capture->leaves_count; i++) {
        const CapturedLeaf *captured = &capture->leaves[i];
        if (!captured->is_emptied && (captured->leaf->grad || captured->leaf->apart))
            return true;
    }
    return false;
}

CaptureFit capture_fits(const Capture *capture, Tensor *const *inputs, int count) {
    const Engine *engine = capture->engine;
    const CapturePlace place = capture_place(engine);
    if (engine->profile || engine->factors || engine->calibrates || engine->walking_back ||
        device_is_idle(engine->device))
        return CAPTURE_OTHER;
    if (!capture->is_ready || place.policy != capture->place.policy ||
        place.shows != capture->place.shows || !outside_is_there(capture))
        return CAPTURE_STALE;
    if ((capture->has_buffers && engine->change_count > 0) ||
        !same_place(&place, &capture->place) || !inputs_fit(capture, inputs, count) ||
        adds_gradients(capture))
        return CAPTURE_OTHER;
    return CAPTURE_FITS;
}

void capture_start(Capture *capture, Tensor *const *inputs) {
    bool has_moved = false;
    capture->is_computing = true;
    capture->draws = (CapturedDraws){capture->engine->random_position, capture->engine->chances};
    for (int i = 0; i < capture->input_count; i++) {
        has_moved = has_moved || capture->inputs[i].view.data != inputs[i]->view.data;
        capture->inputs[i].view.data = inputs[i]->view.data;
    }
    for (int i = 0; i < capture->parameters_count; i++) { // as the calls of the script do
        const CapturedParameter *noted = &capture->parameters[i];
        parameter_of(noted->tensor)->round_to = noted->round_to;
    }
    for (int i = 0; has_moved && i < capture->uses_count; i++) {
        const InputUse *use = &capture->uses[i];
        capture->calls[use->call].call.input[use->at].data =
            (char *)capture->inputs[use->input].view.data + use->offset;
    }
}

bool capture_computes(const Capture *capture, int i) {
    const int begin = i > 0 ? capture->acts[i - 1].calls : 0;
    return (i < capture->acts_count ? capture->acts[i].calls : capture->calls_count) > begin;
}

int capture_act_count(const Capture *capture) {
    return capture->acts_count;
}

const CaptureAct *capture_act(const Capture *capture, int i) {
    return &capture->acts[i].act;
}

static bool compute(Capture *capture, CapturedCall *captured) {
    Engine *engine = capture->engine;
    Error error;
    if (captured->drawn >= 0)
        capture_draw_again(capture, captured);
    if (!device_run(engine->device, &captured->call, &error))
        return false; // the script, which runs into it too, is told where
    if (!captured->is_looked_at)
        return true;
    engine->layer = captured->call.layer;
    engine->walking_back = captured->is_back;
    return lookout_again(engine, &captured->call, captured->keeps);
}

// What call `calls` was the last before. Returns the next that is to be shown.
static int show(Capture *capture, int next, int calls) {
    Engine *engine = capture->engine;
    for (; next < capture->shown_count && capture->shown[next].calls <= calls; next++) {
        const CapturedShown *shown = &capture->shown[next];
        engine->layer = shown->layer;
        if (shown->calls == calls)
            engine->watch->output(engine->watch, engine, &shown->view);
    }
    return next;
}

bool capture_compute(Capture *capture, int i) {
    Engine *engine = capture->engine;
    const int layer = engine->layer;
    const int begin = i > 0 ? capture->acts[i - 1].calls : 0;
    const int end = i < capture->acts_count ? capture->acts[i].calls : capture->calls_count;
    bool done = true;
    for (int k = begin, next = 0; done && k < end; k++) {
        done = compute(capture, &capture->calls[k]);
        if (done && engine->watch)
            next = show(capture, next, k + 1);
    }
    engine->layer = layer;
    engine->walking_back = false;
    return done;
}

void capture_leave(Capture *capture) {
    capture->is_computing = false;
}

void capture_finish(Capture *capture) {
    capture->is_computing = false;
    tape_pass(capture->engine->tape, capture->counts);
}

bool capture_take_back(Capture *capture, Error *error) {
    capture->engine->random_position = capture->draws.position;
    capture->engine->chances = capture->draws.chances;
    capture->is_computing = false;
    for (int i = 0; i < capture->leaves_count; i++)
        if (capture->leaves[i].leaf->grad == capture->leaves[i].gradient)
            tensor_drop_grad(capture->leaves[i].leaf);
    return !capture->has_buffers || engine_undo_buffers(capture->engine, error);
}
