// Watching a step: what it had computed, on which memory, and whether it is the step before again.
#include "ops/capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mix.h"
#include "ops/capture_private.h"

// No step has more; who never ends one is not to fill the host's memory.
enum { MOST_CALLS = 4096 };
// What is held between two steps lies beside what those need that are called. A step that works on
// more than this computes for so long that the script beside it is nothing.
#define MOST_BYTES ((size_t)4 << 20)

// ---- made and let go of -------------------------------------------------------------------------

static void clear(Capture *capture) {
    Allocator *allocator = capture->engine->device->allocator;
    for (int i = 0; i < capture->acts_count; i++)
        tensor_release(capture->acts[i].act.tensor);
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
}

static void stop(Capture *capture) {
    Engine *engine = capture->engine;
    capture->is_watching = false;
    if (engine->capture == capture) {
        engine->capture = NULL;
        engine->device->tap = NULL;
    }
}

void capture_free(Capture *capture) {
    if (!capture)
        return;
    stop(capture);
    clear(capture);
    free(capture->calls);
    free(capture->acts);
    free(capture->leaves);
    free(capture->memory);
    free(capture->uses);
    free(capture->parameters);
    free(capture);
}

static void spoil(Capture *capture) {
    capture->is_spoilt = true;
}

static void refuse(Capture *capture, const char *why) {
    if (!capture->why[0])
        snprintf(capture->why, sizeof capture->why, "%s", why);
}

void capture_refuse(Engine *engine, const char *why) {
    if (engine->capture && engine->capture->acting == 0)
        refuse(engine->capture, why);
}

void capture_refuse_now(Engine *engine) {
    if (engine->capture)
        spoil(engine->capture);
}

const char *capture_refusal(const Capture *capture) {
    return capture->why;
}

// Room for one more in a list; false: there is none, and the step is no more than watched.
static bool grow(Capture *capture, void **items, int count, int *room, size_t size) {
    if (count < *room)
        return true;
    int wanted = *room ? *room * 2 : 32;
    void *larger = realloc(*items, (size_t)wanted * size);
    if (!larger) {
        refuse(capture, "there is no memory to keep it");
        return false;
    }
    *items = larger;
    *room = wanted;
    return true;
}

#define GROW(capture, name)                                                                    \
    grow(capture, (void **)&(capture)->name, (capture)->name##_count, &(capture)->name##_room, \
         sizeof *(capture)->name)

static bool is_on(const Capture *capture) {
    return capture->acting == 0 && !capture->why[0];
}

// ---- memory -------------------------------------------------------------------------------------

static void mix(Capture *capture, const void *data, size_t size) {
    capture->mixed = mix_bytes(capture->mixed, data, size);
}

static const CapturedMemory *memory_known(const Capture *capture, const MemoryPlace *place) {
    for (int i = capture->memory_count - 1; i >= 0; i--)
        if (capture->memory[i].memory == place->memory &&
            capture->memory[i].number == place->number)
            return &capture->memory[i];
    return NULL;
}

static bool may_be_read(const Capture *capture, const MemoryPlace *place) {
    const bool is_kept = place->purpose == MEMORY_WEIGHTS || place->purpose == MEMORY_MASTERS ||
                         place->purpose == MEMORY_OPTIMIZER;
    return is_kept || capture->given.is_state(capture->given.context, place->memory);
}

static const CapturedMemory *memory_of(Capture *capture, const MemoryPlace *place) {
    const CapturedMemory *known = memory_known(capture, place);
    if (known)
        return known;
    const bool is_outside = place->number <= capture->takings;
    if (is_outside && !may_be_read(capture, place)) {
        refuse(capture, "it reads a tensor from outside: hand it to run:step behind the function");
        return NULL;
    }
    if (!GROW(capture, memory))
        return NULL;
    capture->memory[capture->memory_count] =
        (CapturedMemory){place->memory, place->number, is_outside, NULL};
    return &capture->memory[capture->memory_count++];
}

static int input_at(const Capture *capture, const void *address) {
    for (int i = 0; i < capture->input_count; i++) {
        const Storage *storage = capture->inputs[i].storage;
        if ((uintptr_t)address - (uintptr_t)storage->data < storage->bytes)
            return i;
    }
    return -1;
}

// Which input of the step, or which memory as it came up, an address lies in; and where.
static void note_address(Capture *capture, const void *address, int at, bool is_output) {
    MemoryPlace place;
    const int input = input_at(capture, address);
    if (input >= 0) {
        const ptrdiff_t offset =
            (const char *)address - (const char *)capture->inputs[input].view.data;
        if (is_output)
            refuse(capture, "it writes over a tensor that it was handed");
        else if (GROW(capture, uses))
            capture->uses[capture->uses_count++] =
                (InputUse){capture->calls_count, at, input, offset};
        mix(capture, &input, sizeof input);
        mix(capture, &offset, sizeof offset);
        return;
    }
    if (!allocator_locate(capture->engine->device->allocator, address, &place)) {
        refuse(capture, "it reads memory that is not the device's");
        return;
    }
    const CapturedMemory *memory = memory_of(capture, &place);
    if (!memory)
        return;
    const uint64_t which =
        memory->is_outside ? memory->number : (uint64_t)(memory - capture->memory) + 1;
    const ptrdiff_t offset = (const char *)address - (const char *)memory->memory;
    mix(capture, &memory->is_outside, sizeof memory->is_outside);
    mix(capture, &which, sizeof which);
    mix(capture, &offset, sizeof offset);
}

static void note_view(Capture *capture, const View *view, int at, bool is_output) {
    const size_t size = (size_t)view->ndim * sizeof *view->shape;
    mix(capture, &view->format, sizeof view->format);
    mix(capture, &view->ndim, sizeof view->ndim);
    mix(capture, view->shape, size);
    mix(capture, view->stride, size);
    if (view->data)
        note_address(capture, view->data, at, is_output);
}

// ---- what the device is asked for ---------------------------------------------------------------

// What it is told lies in device memory that is another one, or holds another number, in the next.
static bool is_told_more(const KernelCall *call) {
    const OpAttr *attr = call->attr;
    return call->op == OP_dropout || call->op == OP_uniform || call->op == OP_normal ||
           call->op == OP_randint || call->op == OP_scale_factor || call->op == OP_scale_history ||
           attr->times[0] || attr->times[1] || attr->int8.steps;
}

static void tap_ran(DeviceTap *tap, const KernelCall *call) {
    Capture *capture = (Capture *)tap;
    if (!is_on(capture))
        return;
    if (is_told_more(call))
        refuse(capture, call->op == OP_scale_factor || call->op == OP_scale_history ||
                                call->attr->times[0] || call->attr->times[1]
                            ? "it multiplies in a scaled format"
                            : "it draws random numbers");
    if (capture->is_final)
        refuse(capture, "it computes after the optimizer's step");
    if (capture->calls_count == MOST_CALLS)
        refuse(capture, "it has more kernels than are kept");
    if (!is_on(capture) || !GROW(capture, calls))
        return;
    CapturedCall *captured = &capture->calls[capture->calls_count];
    captured->is_looked_at = captured->is_back = captured->keeps = false;
    captured->attr = *call->attr;
    captured->call.op = call->op;
    captured->call.layer = call->layer;
    captured->call.input_count = call->input_count;
    captured->call.output_count = call->output_count;
    mix(capture, &call->op, sizeof call->op);
    mix(capture, &call->layer, sizeof call->layer);
    mix(capture, &captured->attr, sizeof captured->attr);
    for (int i = 0; i < call->input_count; i++) {
        captured->call.input[i] = call->input[i];
        note_view(capture, &call->input[i], i, false);
    }
    for (int i = 0; i < call->output_count; i++) {
        captured->call.output[i] = call->output[i];
        note_view(capture, &call->output[i], i, true);
    }
    capture->calls_count++;
}

static void tap_moved(DeviceTap *tap, bool reads) {
    Capture *capture = (Capture *)tap;
    if (is_on(capture))
        refuse(capture, reads ? "it reads a value, as :item() does"
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

// ---- what the host does -------------------------------------------------------------------------

static CapturedAct *add_act(Capture *capture, const CaptureAct *act) {
    if (!is_on(capture) || !GROW(capture, acts))
        return NULL;
    CapturedAct *added = &capture->acts[capture->acts_count++];
    *added = (CapturedAct){.act = *act, .calls = capture->calls_count};
    tensor_hold(act->tensor);
    capture->is_final = capture->is_final || act->is_final;
    capture->has_buffers = capture->has_buffers || act->is_buffer;
    mix(capture, &act->does, sizeof act->does);
    mix(capture, &act->on, sizeof act->on);
    mix(capture, &act->with, sizeof act->with);
    if (act->tensor)
        note_view(capture, &act->tensor->view, 0, true);
    return added;
}

void capture_begin_act(Engine *engine, const CaptureAct *act) {
    if (!engine->capture)
        return;
    add_act(engine->capture, act);
    engine->capture->acting++;
}

void capture_end_act(Engine *engine) {
    if (engine->capture)
        engine->capture->acting--;
}

void capture_note_leaf(Capture *capture, Tensor *leaf, bool is_first) {
    if (!is_first)
        refuse(capture, "it adds gradients to those that are there");
    if (leaf->hooks)
        refuse(capture, "a function of the script looks at a gradient");
    if (!is_on(capture) || !GROW(capture, leaves))
        return;
    capture->leaves[capture->leaves_count++] =
        (CapturedLeaf){tensor_hold(leaf), tensor_hold(leaf->grad), leaf->arrived, leaf->carries};
    note_view(capture, &leaf->grad->view, 0, true);
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
    return (CapturePlace){engine->autocast, engine->layer, tape_is_enabled(engine->tape),
                          engine->lookout.is_on, policy_changes(engine->policy)};
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
    return capture;
}

static void take_inputs(Capture *capture) {
    const CaptureGiven *given = &capture->given;
    capture->input_count = 0;
    if (given->count > CAPTURE_MOST_INPUTS) {
        refuse(capture, "it is handed more tensors than are kept");
        return;
    }
    for (int i = 0; i < given->count; i++) {
        const Tensor *input = given->inputs[i];
        if (tensor_wants_grad(input) || input->parameter)
            refuse(capture, "a gradient goes to a tensor that it was handed");
        if (input_at(capture, input->view.data) >= 0)
            refuse(capture, "two tensors that it was handed lie on the same memory");
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
        note_view(capture, &capture->inputs[i].view, 0, false);
    capture->uses_count = 0; // the inputs themselves are read by nobody
    capture->is_watching = true;
    engine->capture = capture;
    engine->device->tap = &capture->tap;
}

// Where it lies at the end is where the next step finds it: memory that somebody else has got since
// is not the step's any more.
static bool pin_memory(Capture *capture) {
    Allocator *allocator = capture->engine->device->allocator;
    size_t bytes = 0;
    for (int i = 0; i < capture->memory_count; i++) {
        CapturedMemory *memory = &capture->memory[i];
        MemoryPlace place;
        bool is_later = false; // the same memory, taken again within the step
        for (int k = i + 1; k < capture->memory_count && !is_later; k++)
            is_later = capture->memory[k].memory == memory->memory;
        if (is_later)
            continue;
        if (!allocator_locate(allocator, memory->memory, &place) ||
            (place.in_use && place.number != memory->number) ||
            (memory->is_outside && !place.in_use))
            return false;
        memory->pin = allocator_pin(allocator, memory->memory);
        bytes += memory->is_outside ? 0 : place.bytes;
    }
    if (bytes > MOST_BYTES)
        refuse(capture, "it is so large that calling it costs next to nothing");
    return bytes <= MOST_BYTES;
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
    if (is_whole && capture->mixed == capture->mixed_before && pin_memory(capture)) {
        settle_parameters(capture);
        for (int i = 0; i < capture->calls_count; i++)
            capture->calls[i].call.attr = &capture->calls[i].attr;
        capture->is_ready = true;
    } else {
        clear(capture);
    }
    return capture->is_ready;
}
