// Watching a step: what it had computed, on which memory, and whether it is the step before again.
#include "ops/capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mix.h"
#include "ops/capture_private.h"

// No step has more; who never ends one is not to fill the host's memory.
enum { MOST_CALLS = 4096 };

// ---- made and let go of -------------------------------------------------------------------------

static void act_clear(const CaptureAct *act) {
    tensor_release(act->tensor);
    if (act->release)
        act->release(act->on);
}

static void clear(Capture *capture) {
    Allocator *allocator = capture->engine->device->allocator;
    for (int i = 0; i < capture->acts_count; i++)
        act_clear(&capture->acts[i].act);
    for (int i = 0; i < capture->leaves_count; i++) {
        tensor_release(capture->leaves[i].leaf);
        tensor_release(capture->leaves[i].gradient);
    }
    for (int i = 0; i < capture->parameters_count; i++)
        tensor_release(capture->parameters[i].tensor);
    for (int i = 0; i < capture->memory_count; i++)
        if (capture->memory[i].pin)
            allocator_unpin(allocator, capture->memory[i].pin);
    capture->acts_count = capture->leaves_count = capture->parameters_count = 0;
    capture->memory_count = capture->uses_count = capture->calls_count = 0;
    capture->emptied_count = capture->shown_count = 0;
    capture->is_ready = false;
}

void capture_forget(Capture *capture) {
    clear(capture);
    capture->walked = 0;
    capture->is_spoilt = true;
    capture->mixed = 0;
}

void capture_renew(Capture *capture) {
    capture_forget(capture);
    capture->why[0] = 0;
    capture->is_large = false;
}

static void stop(Capture *capture) {
    Engine *engine = capture->engine;
    capture->is_watching = false;
    if (engine->capture == capture) {
        engine->capture = NULL;
        engine->device->tap = NULL;
    }
}

// There is no memory left. What a step under way works on cannot be done without; no other is tried
// again, which would want the same memory.
static bool let_go(MemoryHolder *holder) {
    Capture *capture = (Capture *)((char *)holder - offsetof(Capture, holder));
    if (!capture->is_ready || capture->is_computing)
        return false;
    capture_forget(capture);
    capture_note_why(capture, "it took memory that ran out");
    return true;
}

void capture_free(Capture *capture) {
    if (!capture)
        return;
    allocator_remove_holder(capture->engine->device->allocator, &capture->holder);
    stop(capture);
    clear(capture);
    free(capture->calls);
    free(capture->shown);
    free(capture->acts);
    free(capture->leaves);
    free(capture->emptied);
    free(capture->memory);
    free(capture->uses);
    free(capture->parameters);
    free(capture);
}

void capture_refuse(Engine *engine, const char *why) {
    if (engine->capture && engine->capture->acting == 0)
        capture_note_why(engine->capture, why);
}

void capture_refuse_now(Engine *engine) {
    if (engine->capture)
        engine->capture->is_spoilt = true;
}

const char *capture_refusal(const Capture *capture) {
    return capture->why;
}

bool capture_is_large(const Capture *capture) {
    return capture->is_large;
}

static bool is_on(const Capture *capture) {
    return capture->acting == 0 && !capture->why[0];
}

// ---- what the device is asked for ---------------------------------------------------------------

static void tap_ran(DeviceTap *tap, const KernelCall *call) {
    Capture *capture = (Capture *)tap;
    if (!is_on(capture))
        return;
    if (capture->is_final)
        capture_note_why(capture, "it computes after the optimizer's step");
    if (capture->calls_count == MOST_CALLS)
        capture_note_why(capture, "it has more kernels than are kept");
    if (!is_on(capture) || !GROW(capture, calls))
        return;
    CapturedCall *captured = &capture->calls[capture->calls_count];
    captured->is_looked_at = captured->is_back = captured->keeps = false;
    captured->attr = *call->attr;
    captured->call.op = call->op;
    captured->call.layer = call->layer;
    captured->call.input_count = call->input_count;
    captured->call.output_count = call->output_count;
    capture_mix(capture, &call->op, sizeof call->op);
    capture_mix(capture, &call->layer, sizeof call->layer);
    captured->drawn = capture_note_told(capture, call->op, &captured->attr);
    for (int i = 0; i < call->input_count; i++) {
        captured->call.input[i] = call->input[i];
        capture_note_view(capture, &call->input[i], i, false);
    }
    for (int i = 0; i < call->output_count; i++) {
        captured->call.output[i] = call->output[i];
        capture_note_view(capture, &call->output[i], i, true);
    }
    capture->calls_count++;
}

static void tap_moved(DeviceTap *tap, bool reads) {
    Capture *capture = (Capture *)tap;
    if (is_on(capture))
        capture_note_why(capture, reads ? "it reads a value, as :item() does"
                                        : "it makes a tensor of numbers of the script's");
}

void capture_note_parameter(Capture *capture, Tensor *parameter) {
    if (!is_on(capture))
        return;
    for (int i = 0; i < capture->parameters_count; i++)
        if (capture->parameters[i].tensor == parameter)
            return;
    if (GROW(capture, parameters))
        capture->parameters[capture->parameters_count++].tensor = tensor_hold(parameter);
}

void capture_note_look(Capture *capture) {
    const Engine *engine = capture->engine;
    if (!is_on(capture) || capture->calls_count == 0)
        return;
    CapturedCall *last = &capture->calls[capture->calls_count - 1];
    last->is_looked_at = true;
    last->is_back = engine->walking_back;
    last->keeps = !engine->lookout.scales && !engine->makes_again;
}

// What a layer gives last is all that is left of it when the step has ended.
void capture_note_shown(Engine *engine, const View *output) {
    Capture *capture = engine->capture;
    if (!capture || !is_on(capture))
        return;
    int kept = 0;
    for (int i = 0; i < capture->shown_count; i++)
        if (capture->shown[i].layer != engine->layer)
            capture->shown[kept++] = capture->shown[i];
    capture->shown_count = kept;
    capture_mix(capture, &engine->layer, sizeof engine->layer);
    if (GROW(capture, shown))
        capture->shown[capture->shown_count++] =
            (CapturedShown){*output, capture->calls_count, engine->layer};
}

// ---- what the host does -------------------------------------------------------------------------

static CapturedAct *add_act(Capture *capture, const CaptureAct *act) {
    if (!is_on(capture) || !GROW(capture, acts))
        return NULL;
    CapturedAct *added = &capture->acts[capture->acts_count++];
    *added = (CapturedAct){.act = *act, .calls = capture->calls_count};
    tensor_hold(act->tensor);
    capture->is_final = capture->is_final || act->is_final;
    capture->has_buffers = capture->has_buffers || act->is_buffer;
    capture_mix(capture, &act->does, sizeof act->does);
    if (act->release)
        capture_mix(capture, &act->told, sizeof act->told);
    else
        capture_mix(capture, &act->on, sizeof act->on);
    capture_mix(capture, &act->with, sizeof act->with);
    if (act->tensor)
        capture_note_view(capture, &act->tensor->view, 0, true);
    return added;
}

void capture_begin_act(Engine *engine, const CaptureAct *act) {
    const bool is_kept = engine->capture && add_act(engine->capture, act);
    if (!is_kept && act->release)
        act->release(act->on);
    if (engine->capture)
        engine->capture->acting++;
}

void capture_pause(Engine *engine) {
    if (engine->capture)
        engine->capture->acting++;
}

void capture_end_act(Engine *engine) {
    if (engine->capture)
        engine->capture->acting--;
}

void capture_note_emptied(Capture *capture, const Tensor *leaf) {
    if (GROW(capture, emptied))
        capture->emptied[capture->emptied_count++] = leaf;
}

static bool is_emptied(const Capture *capture, const Tensor *leaf) {
    for (int i = 0; i < capture->emptied_count; i++)
        if (capture->emptied[i] == leaf)
            return true;
    return false;
}

void capture_note_leaf(Capture *capture, Tensor *leaf, bool is_first) {
    if (!is_first)
        capture_note_why(capture, CAPTURE_ADDS);
    if (leaf->hooks)
        capture_note_why(capture, "a function of the script looks at a gradient");
    if (!is_on(capture) || !GROW(capture, leaves))
        return;
    capture->leaves[capture->leaves_count++] =
        (CapturedLeaf){tensor_hold(leaf), tensor_hold(leaf->grad), leaf->arrived, leaf->carries,
                       is_emptied(capture, leaf)};
    capture_note_view(capture, &leaf->grad->view, 0, true);
}

static bool bring_again(Capture *capture, const CaptureAct *act, void *context, Error *error) {
    Tape *tape = capture->engine->tape;
    const CapturedAct *walk = (const CapturedAct *)act; // its first member
    (void)context;
    (void)error;
    for (int i = walk->first_leaf; i < walk->end_leaf; i++) {
        const CapturedLeaf *leaf = &capture->leaves[i];
        if (leaf->leaf->grad)
            return false;                   // the script has put one there
        leaf->gradient->storage->fault = 0; // else it would have been given up
        tape_bring(tape, leaf->leaf, leaf->gradient, leaf->order, leaf->scale);
    }
    tape_pass(tape, (TapeCounts){0, walk->arrivals});
    return true;
}

// Its leaves were noted before it.
void capture_note_walk(Capture *capture, TapeCounts before) {
    const CaptureAct act = {.does = bring_again};
    CapturedAct *walk = add_act(capture, &act);
    if (!walk)
        return;
    walk->first_leaf = capture->walked;
    walk->end_leaf = capture->walked = capture->leaves_count;
    walk->arrivals = tape_counts(capture->engine->tape).arrivals - before.arrivals;
    for (int i = walk->first_leaf; i < walk->end_leaf; i++)
        capture->leaves[i].order -= before.arrivals;
}

Engine *capture_engine(const Capture *capture) {
    return capture->engine;
}

// ---- a step -------------------------------------------------------------------------------------

CapturePlace capture_place(const Engine *engine) {
    return (CapturePlace){
        engine->autocast,      engine->layer,         tape_is_enabled(engine->tape),
        engine->lookout.is_on, engine->watch != NULL, policy_changes(engine->policy)};
}

Capture *capture_new(Engine *engine) {
    const Backend *backend = engine->device->backend;
    if (backend->report || backend->end_step || backend->is_idle || engine->device->no_capture)
        return NULL;
    Capture *capture = calloc(1, sizeof *capture);
    if (!capture)
        return NULL;
    capture->engine = engine;
    capture->tap = (DeviceTap){tap_ran, tap_moved};
    capture->holder.let_go = let_go;
    allocator_add_holder(engine->device->allocator, &capture->holder);
    return capture;
}

static void take_inputs(Capture *capture) {
    const CaptureGiven *given = &capture->given;
    capture->input_count = 0;
    if (given->count > CAPTURE_MOST_INPUTS) {
        capture_note_why(capture, "it is handed more tensors than are kept");
        return;
    }
    for (int i = 0; i < given->count; i++) {
        const Tensor *input = given->inputs[i];
        if (tensor_wants_grad(input) || input->parameter)
            capture_note_why(capture, "a gradient goes to a tensor that it was handed");
        if (capture_is_state(capture, input->view.data))
            capture_note_why(capture, "it is handed weights or running statistics");
        if (capture_input_at(capture, input->view.data) >= 0)
            capture_note_why(capture, "two tensors that it was handed lie on the same memory");
        capture->inputs[capture->input_count++] = (CapturedInput){input->view, input->storage};
    }
}

void capture_begin(Capture *capture, const CaptureGiven *given) {
    Engine *engine = capture->engine;
    clear(capture);
    capture->given = *given;
    capture->place = capture_place(engine);
    capture->mixed_before = capture->mixed;
    capture->mixed = MIX_BEGIN;
    capture->is_spoilt = capture->is_final = capture->has_buffers = false;
    capture->acting = capture->walked = 0;
    capture->takings = allocator_takings(engine->device->allocator);
    capture->counts = tape_counts(engine->tape);
    take_inputs(capture);
    for (int i = 0; i < capture->input_count; i++)
        capture_note_view(capture, &capture->inputs[i].view, 0, false);
    capture->uses_count = 0; // the inputs themselves are read by nobody
    capture->is_watching = true;
    engine->capture = capture;
    engine->device->tap = &capture->tap;
}

static void settle_parameters(Capture *capture) {
    for (int i = 0; i < capture->parameters_count; i++) {
        CapturedParameter *noted = &capture->parameters[i];
        noted->data = noted->tensor->view.data;
        noted->round_to = parameter_of(noted->tensor)->round_to;
        noted->requires_grad = noted->tensor->requires_grad;
    }
}

bool capture_end(Capture *capture, bool is_well) {
    Engine *engine = capture->engine;
    const TapeCounts now = tape_counts(engine->tape);
    const CapturePlace place = capture_place(engine);
    if (!capture->is_watching)
        return false;
    stop(capture);
    const bool is_whole = is_well && !capture->why[0] && !capture->is_spoilt && capture->is_final &&
                          memcmp(&place.policy, &capture->place.policy, sizeof place.policy) == 0;
    if (!is_whole)
        capture->mixed = 0;
    capture->counts = (TapeCounts){now.nodes - capture->counts.nodes, 0};
    if (is_whole && capture->mixed == capture->mixed_before && capture_pin_memory(capture)) {
        settle_parameters(capture);
        for (int i = 0; i < capture->calls_count; i++)
            capture->calls[i].call.attr = &capture->calls[i].attr;
        capture->is_ready = true;
    } else {
        clear(capture);
    }
    return capture->is_ready;
}
