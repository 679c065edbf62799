// tests/emulator/graphs.h: work that a stream captures, and graphs that are launched.
//
// A stream that captures does nothing: its operations go into a graph, a list in their order. What
// NVIDIA's documents forbid meanwhile is forbidden here, and makes the capture invalid: to wait for
// the stream, to take or give memory, to ask for events, to wait for what was not captured.
// Launching a graph puts all of it into a stream at once. Called with the driver's lock held.
#pragma once

#include "tests/emulator/control.h"
#include "tests/emulator/device.h"
#include "tests/emulator/streams.h"

// Of an operation that is new; a graph that is invalid takes none.
CUresult emulator_graph_add(Graph *graph, Operation *operation);
// The capturing stream waits for an event.
CUresult emulator_graph_wait(Graph *graph, Event *event);
// Another stream would have to become part of the capture: not emulated.
CUresult emulator_graphs_refuse_other_stream(void);

// What may not be called while this stream captures, or, NULL, while this thread does. It makes
// captures invalid; CUDA_SUCCESS where there are none.
CUresult emulator_graphs_forbid(const char *what, Stream *stream);
#define FORBIDDEN_IN_CAPTURE(what, stream)                          \
    do {                                                            \
        CUresult forbidden_ = emulator_graphs_forbid(what, stream); \
        if (forbidden_ != CUDA_SUCCESS)                             \
            return forbidden_;                                      \
    } while (0)
// The default stream waits for streams that block, which is forbidden while one captures.
CUresult emulator_graphs_forbid_default_stream(const Card *card);

// Adds what it knows to a report.
void emulator_graphs_count(EmulatorState *state);
