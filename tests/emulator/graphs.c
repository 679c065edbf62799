#include "tests/emulator/graphs.h"

#include <stdlib.h>
#include <string.h>

#include "tests/emulator/calls.h"
#include "tests/emulator/driver.h"
#include "tests/emulator/memory.h"

static uint64_t graphs_launched;

void emulator_graphs_count(EmulatorState *state) {
    state->graphs = graphs_launched;
}

static const void *this_thread(void) {
    static _Thread_local char own;
    return &own;
}

static void begin(Graph *graph, Card *card) {
    static Graph *graphs; // all that ever were
    *graph = (Graph){.card = card, .alive = true, .by = this_thread(), .next = graphs};
    graph->end = &graph->first;
    graphs = graph;
    card->graphs++;
}

static void end(Graph *graph) {
    while (graph->first) {
        Operation *operation = graph->first;
        graph->first = operation->next;
        emulator_operation_drop(operation);
    }
    graph->alive = false;
    graph->card->graphs--;
}

static void append(Graph *graph, Operation *operation) {
    operation->next = NULL;
    *graph->end = operation;
    graph->end = &operation->next;
}

// ---- while a stream captures --------------------------------------------------------------------

CUresult emulator_graph_add(Graph *graph, Operation *operation) {
    bool is_kept = !graph->is_invalid && operation->kind != OPERATION_RECORD;
    if (is_kept) // a record is no work, only a place that others may wait for
        append(graph, operation);
    else
        emulator_operation_drop(operation);
    return graph->is_invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

CUresult emulator_graph_wait(Graph *graph, Event *event) {
    if (graph->is_invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (event->captured == graph)
        return CUDA_SUCCESS; // it comes after it anyhow
    graph->is_invalid = true;
    return emulator_refuse(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                           "a stream that captures waits for an event that was not captured");
}

CUresult emulator_graphs_refuse_other_stream(void) {
    return emulator_refuse(CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
                           "a capture of more than one stream is not emulated");
}

// What threads and streams may not do meanwhile depends on how a capture was begun.
static bool is_forbidden(const Stream *capturing, const Stream *stream) {
    const Graph *graph = capturing->captures;
    if (stream == capturing)
        return true;
    if (graph->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    return graph->mode == CU_STREAM_CAPTURE_MODE_GLOBAL || graph->by == this_thread();
}

CUresult emulator_graphs_forbid(const char *what, Stream *stream) {
    bool found = false;
    for (Stream *each = NULL; (each = emulator_stream_next(each));)
        if (each->captures && is_forbidden(each, stream)) {
            each->captures->is_invalid = true;
            found = true;
        }
    return found ? emulator_refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                                   "%s while a stream captures", what)
                 : CUDA_SUCCESS;
}

CUresult emulator_graphs_forbid_default_stream(const Card *card) {
    bool found = false;
    for (Stream *each = NULL; (each = emulator_stream_next(each));)
        if (each->captures && each->card == card && each->blocking) {
            each->captures->is_invalid = true;
            found = true;
        }
    return found ? emulator_refuse(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                                   "the default stream would wait for one that captures")
                 : CUDA_SUCCESS;
}

CUresult emulated_cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
    EMULATED_CALL(cuStreamBeginCapture, NEEDS_CARD);
    Card *card = emulator_current_card();
    if (!stream)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (!emulator_stream_is_of(stream, card))
        return CUDA_ERROR_INVALID_HANDLE;
    if (stream->captures)
        return CUDA_ERROR_ILLEGAL_STATE;
    Graph *graph = malloc(sizeof *graph);
    if (!graph)
        return CUDA_ERROR_OUT_OF_MEMORY;
    begin(graph, card);
    graph->mode = mode;
    stream->captures = graph;
    return CUDA_SUCCESS;
}

// A capture ends in any case, and so it does where the setting `fail` wants an error.
CUresult emulated_cuStreamEndCapture(CUstream stream, CUgraph *graph) {
    EmulatorCall call __attribute__((cleanup(emulator_call_end))) =
        emulator_call_begin("cuStreamEndCapture", NEEDS_CARD);
    *graph = NULL;
    if (!stream || !stream->captures)
        return call.result == CUDA_SUCCESS ? CUDA_ERROR_ILLEGAL_STATE : call.result;
    Graph *captured = stream->captures;
    if (captured->by != this_thread() && captured->mode != CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    stream->captures = NULL;
    CUresult result = call.result;
    if (result == CUDA_SUCCESS && captured->is_invalid)
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (result == CUDA_SUCCESS)
        *graph = captured;
    else
        end(captured);
    return result;
}

// ---- graphs -------------------------------------------------------------------------------------

static bool copy_all(Graph *to, const Graph *from) {
    for (const Operation *each = from->first; each; each = each->next) {
        Operation *copy = emulator_operation_copy(each);
        if (!copy)
            return false;
        append(to, copy);
    }
    return true;
}

CUresult emulated_cuGraphInstantiate(CUgraphExec *made, CUgraph graph, unsigned long long flags) {
    EMULATED_CALL(cuGraphInstantiate, NEEDS_CARD);
    if (!graph || !graph->alive || flags)
        return CUDA_ERROR_INVALID_VALUE;
    FORBIDDEN_IN_CAPTURE("cuGraphInstantiate", NULL);
    CUgraphExec exec = malloc(sizeof *exec);
    if (!exec)
        return CUDA_ERROR_OUT_OF_MEMORY;
    begin(&exec->graph, graph->card);
    if (!copy_all(&exec->graph, graph)) {
        end(&exec->graph);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = exec;
    return CUDA_SUCCESS;
}

CUresult emulated_cuGraphDestroy(CUgraph graph) {
    EMULATED_CALL(cuGraphDestroy, NEEDS_CARD);
    if (!graph || !graph->alive)
        return CUDA_ERROR_INVALID_VALUE;
    end(graph);
    return CUDA_SUCCESS;
}

// Launches that are under way are finished all the same.
CUresult emulated_cuGraphExecDestroy(CUgraphExec exec) {
    EMULATED_CALL(cuGraphExecDestroy, NEEDS_CARD);
    if (!exec || !exec->graph.alive)
        return CUDA_ERROR_INVALID_VALUE;
    end(&exec->graph);
    return CUDA_SUCCESS;
}

// Memory of the host is read and written by each launch anew.
static void renew(Operation *operation) {
    if (operation->kind == OPERATION_COPY_IN)
        operation->checksum = emulator_checksum(operation->from, operation->bytes);
    if (operation->kind == OPERATION_COPY_OUT)
        memset(operation->to, EMULATOR_POISON, operation->bytes);
}

CUresult emulated_cuGraphLaunch(CUgraphExec exec, CUstream stream) {
    EMULATED_CALL(cuGraphLaunch, NEEDS_CARD);
    Card *card = emulator_current_card();
    if (!exec || !exec->graph.alive || exec->graph.card != card)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream && stream->captures)
        return emulator_refuse(CUDA_ERROR_NOT_SUPPORTED, "a graph within a graph is not emulated");
    Graph launched = {.end = &launched.first};
    if (!copy_all(&launched, &exec->graph)) {
        for (Operation *next; (next = launched.first); emulator_operation_drop(next))
            launched.first = next->next;
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    graphs_launched++;
    for (Operation *next; (next = launched.first);) {
        launched.first = next->next;
        next->next = NULL;
        renew(next);
        CUresult added = emulator_stream_add(card, stream, next);
        if (added != CUDA_SUCCESS && added != card->failure)
            return added;
    }
    return card->failure;
}
