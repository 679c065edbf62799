// Streams, events and launches.
#include <stdlib.h>
#include <string.h>

#include "tests/emulator/calls.h"
#include "tests/emulator/driver.h"
#include "tests/emulator/graphs.h"
#include "tests/emulator/settings.h"
#include "tests/emulator/streams.h"

// ---- streams ------------------------------------------------------------------------------------

CUresult emulated_cuStreamCreate(CUstream *stream, unsigned flags) {
    EMULATED_CALL(cuStreamCreate, NEEDS_CARD);
    if (flags != CU_STREAM_DEFAULT && flags != CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    Card *card = emulator_current_card();
    *stream = emulator_stream_new(card, flags == CU_STREAM_DEFAULT);
    if (!*stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    card->streams++;
    return CUDA_SUCCESS;
}

// What is in it is still done, sooner or later.
CUresult emulated_cuStreamDestroy(CUstream stream) {
    EMULATED_CALL(cuStreamDestroy, NEEDS_CARD);
    if (!stream || !emulator_stream_is_of(stream, emulator_current_card()))
        return CUDA_ERROR_INVALID_HANDLE;
    stream->alive = false;
    stream->card->streams--;
    return CUDA_SUCCESS;
}

CUresult emulated_cuStreamSynchronize(CUstream stream) {
    EMULATED_CALL(cuStreamSynchronize, NEEDS_CARD);
    FORBIDDEN_IN_CAPTURE("cuStreamSynchronize", stream);
    return emulator_stream_wait(emulator_current_card(), stream);
}

CUresult emulated_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    EMULATED_CALL(cuStreamWaitEvent, NEEDS_CARD);
    if (!event || !event->alive || flags)
        return event && event->alive ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    if (stream && stream->captures)
        return emulator_graph_wait(stream->captures, event);
    if (event->captured)
        return emulator_graphs_refuse_other_stream();
    if (!event->stream)
        return CUDA_SUCCESS; // as one that was never recorded promises nothing
    Operation *wait = emulator_operation_new(OPERATION_WAIT, 0);
    if (!wait)
        return CUDA_ERROR_OUT_OF_MEMORY;
    wait->awaited = event->stream;
    wait->number = event->number;
    return emulator_stream_add(emulator_current_card(), stream, wait);
}

// ---- events -------------------------------------------------------------------------------------

CUresult emulated_cuEventCreate(CUevent *event, unsigned flags) {
    EMULATED_CALL(cuEventCreate, NEEDS_CARD);
    if (flags & ~(unsigned)(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_VALUE;
    static Event *events; // all that ever were
    Event *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    Card *card = emulator_current_card();
    made->card = card;
    made->alive = true;
    made->timed = !(flags & CU_EVENT_DISABLE_TIMING);
    made->next = events;
    *event = events = made;
    card->events++;
    return CUDA_SUCCESS;
}

static bool is_event(CUevent event) {
    return event && event->alive;
}
static bool has_happened(const Event *event) {
    return !event->stream || event->stream->done >= event->number;
}

CUresult emulated_cuEventDestroy(CUevent event) {
    EMULATED_CALL(cuEventDestroy, NEEDS_CARD);
    if (!is_event(event))
        return CUDA_ERROR_INVALID_HANDLE;
    event->alive = false;
    event->card->events--;
    return CUDA_SUCCESS;
}

CUresult emulated_cuEventRecord(CUevent event, CUstream stream) {
    EMULATED_CALL(cuEventRecord, NEEDS_CARD);
    Card *card = emulator_current_card();
    if (!is_event(event) || event->card != card)
        return CUDA_ERROR_INVALID_HANDLE;
    Operation *record = emulator_operation_new(OPERATION_RECORD, 0);
    if (!record)
        return CUDA_ERROR_OUT_OF_MEMORY;
    record->event = event;
    if (stream && stream->captures)
        event->captured = stream->captures;
    return emulator_stream_add(card, stream, record);
}

CUresult emulated_cuEventSynchronize(CUevent event) {
    EMULATED_CALL(cuEventSynchronize, NEEDS_CARD);
    if (!is_event(event))
        return CUDA_ERROR_INVALID_HANDLE;
    if (event->captured)
        return CUDA_ERROR_CAPTURED_EVENT;
    FORBIDDEN_IN_CAPTURE("cuEventSynchronize", NULL);
    if (event->stream)
        emulator_stream_run(event->stream, event->number);
    emulator_streams_waited(event->card);
    return event->card->failure;
}

// Who asks again and again is answered in the end: each question lets one operation happen.
CUresult emulated_cuEventQuery(CUevent event) {
    EMULATED_CALL(cuEventQuery, NEEDS_CARD);
    if (!is_event(event))
        return CUDA_ERROR_INVALID_HANDLE;
    if (event->captured)
        return CUDA_ERROR_CAPTURED_EVENT;
    FORBIDDEN_IN_CAPTURE("cuEventQuery", NULL);
    if (has_happened(event))
        return CUDA_SUCCESS;
    emulator_stream_advance(event->stream);
    return event->card->failure != CUDA_SUCCESS ? event->card->failure : CUDA_ERROR_NOT_READY;
}

CUresult emulated_cuEventElapsedTime(float *passed, CUevent from, CUevent to) {
    EMULATED_CALL(cuEventElapsedTime, NEEDS_CARD);
    if (!is_event(from) || !is_event(to) || !from->timed || !to->timed || !from->stream ||
        !to->stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!has_happened(from) || !has_happened(to))
        return CUDA_ERROR_NOT_READY;
    *passed = (float)(to->time - from->time);
    return CUDA_SUCCESS;
}

// ---- launches -----------------------------------------------------------------------------------

// What a card refuses at the call, and what the house does not want.
static const char *wrong_with(const Function *function, EmulatorSize grid, EmulatorSize block,
                              unsigned shared) {
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    if (!grid.x || !grid.y || !grid.z || grid.x > INT32_MAX || grid.y > 65535 || grid.z > 65535)
        return "a grid of that size";
    if (!threads || threads > 1024 || block.z > 64)
        return "a block of that size";
    if (threads > function->kernel->threads)
        return "more threads a block than its launch bounds";
    if (threads % 32)
        return "a block that is no multiple of 32 threads";
    if (shared > function->dynamic_shared)
        return "more shared memory than it was allowed";
    return NULL;
}

CUresult emulated_cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                 unsigned grid_z, unsigned block_x, unsigned block_y,
                                 unsigned block_z, unsigned shared, CUstream stream,
                                 void **arguments, void **extra) {
    EMULATED_CALL(cuLaunchKernel, NEEDS_CARD);
    Card *card = emulator_current_card();
    if (!function || function->module->card != card)
        return CUDA_ERROR_INVALID_HANDLE;
    EmulatorSize grid = {grid_x, grid_y, grid_z}, block = {block_x, block_y, block_z};
    const char *wrong = wrong_with(function, grid, block, shared);
    if (wrong || !arguments || extra)
        return emulator_refuse(CUDA_ERROR_INVALID_VALUE, "launch of %s: %s", function->kernel->name,
                               wrong ? wrong : "arguments of another kind");
    size_t bytes = function->kernel->bytes;
    Operation *launch = emulator_operation_new(OPERATION_LAUNCH, bytes);
    if (!launch)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(launch->copy, arguments[0], bytes); // they are taken at the call
    launch->launch = (EmulatorLaunch){function->kernel, launch->copy, grid, block, shared};
    return emulator_stream_add(card, stream, launch);
}
