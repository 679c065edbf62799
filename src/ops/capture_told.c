// What a kernel of a watched step is told beside its tensors: numbers that it draws, which are
// others in every step, and addresses.
#include <string.h>

#include "ops/capture_private.h"

static bool same_stream(const RandomAttr *a, const RandomAttr *b) {
    return a->seed == b->seed && a->offset == b->offset && a->base == b->base;
}

// A walk back draws again what the way forward drew: the first call that was told so, or this one.
// One that gave no numbers has drawn none: the next began where it did, and is another draw.
static int first_drawn(const Capture *capture, const RandomAttr *stream) {
    for (int i = 0; i < capture->calls_count; i++) {
        CapturedCall *call = &capture->calls[i];
        if (call->drawn == i && view_count(&call->call.output[0]) > 0 &&
            same_stream(stream, engine_stream_of(call->call.op, &call->attr)))
            return i;
    }
    return capture->calls_count;
}

static void note_address(Capture *capture, const void *address) {
    if (address)
        capture_note_address(capture, address, 0, false);
}

// Member by member: what lies between them is any.
static void note_factor(Capture *capture, const ScaleAttr *by) {
    const int told[] = {(int)by->element, (int)by->scale, by->block,   by->lines,
                        by->first,        by->dims,       by->up,      by->best,
                        by->notes,        by->at_random,  by->hadamard};
    note_address(capture, by->delayed);
    note_address(capture, by->apart);
    capture_mix(capture, told, sizeof told);
}

int capture_note_told(Capture *capture, OpId op, const OpAttr *attr) {
    OpAttr told = *attr; // what is the same in every step
    int drawn = -1;
    RandomAttr *stream = engine_stream_of(op, &told);
    if (stream) {
        drawn = first_drawn(capture, stream);
        *stream = (RandomAttr){0};
    }
    for (int i = 0; i < 2; i++) {
        note_address(capture, told.times[i]);
        told.times[i] = NULL;
    }
    if (op == OP_scale_factor) {
        note_factor(capture, &told.factor.by);
        memset(&told.factor, 0, sizeof told.factor);
    }
    if (told.int8.steps)
        capture_note_why(capture, "it multiplies in int8");
    capture_mix(capture, &drawn, sizeof drawn);
    capture_mix(capture, &told, sizeof told);
    return drawn;
}

void capture_draw_again(Capture *capture, CapturedCall *call) {
    Engine *engine = capture->engine;
    CapturedCall *first = &capture->calls[call->drawn];
    RandomAttr *stream = engine_stream_of(call->call.op, &call->attr);
    const int64_t count = view_count(&call->call.output[0]);
    if (first != call)
        *stream = *engine_stream_of(first->call.op, &first->attr);
    else if (call->call.op == OP_scale_factor)
        *stream = engine_chances(engine, count);
    else
        *stream = engine_random_of_step(engine, engine_random(engine, count));
}
