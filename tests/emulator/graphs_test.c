// Capture on the emulated card: a graph does what its stream was told, each time anew, and what the
// documents forbid while a stream captures is refused and spoils the capture.
#include <pthread.h>

#include "tests/emulator/fixture.h"

static CUstream stream;
static float *x, *y;

static void begin(CUstreamCaptureMode mode) {
    CHECK_INT(driver->cuStreamBeginCapture(stream, mode), CUDA_SUCCESS);
}
static CUgraph end(void) {
    CUgraph graph = NULL;
    CHECK_INT(driver->cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    CHECK(graph);
    return graph;
}
static CUgraphExec made_of(CUgraph graph) {
    CUgraphExec made = NULL;
    CHECK_INT(driver->cuGraphInstantiate(&made, graph, 0), CUDA_SUCCESS);
    CHECK_INT(driver->cuGraphDestroy(graph), CUDA_SUCCESS);
    return made;
}
// y = x + 1, x = y
static CUgraphExec adding_graph(void) {
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    launch("add_one", stream, (PlantedArguments){x, y, COUNT, 0});
    CHECK_INT(driver->cuMemcpyDtoDAsync(address_of(x), address_of(y), COUNT * sizeof *x, stream),
              CUDA_SUCCESS);
    return made_of(end());
}
static float first(const float *memory) {
    float value = -1;
    read_floats(&value, memory, 1, stream);
    return value;
}
static void zero(void) {
    CHECK_INT(driver->cuMemsetD8Async(address_of(x), 0, COUNT * sizeof *x, stream), CUDA_SUCCESS);
}

// ---- what it is for -----------------------------------------------------------------------------

static void nothing_happens_while_a_stream_captures(void) {
    zero();
    uint64_t kernels = card_state().kernels;
    CUgraphExec graph = adding_graph();
    CHECK_NEAR(first(x), 0, 0);
    CHECK_INT(card_state().kernels - kernels, 0);
    driver->cuGraphExecDestroy(graph);
}

static void graph_does_it_at_each_launch_in_its_place_in_the_stream(void) {
    for (int c = 0; c < CONDUCTS; c++) {
        emulator_control.set(conducts[c]);
        CUgraphExec graph = adding_graph();
        zero();
        uint64_t graphs = card_state().graphs;
        for (int i = 0; i < 3; i++)
            CHECK_INT(driver->cuGraphLaunch(graph, stream), CUDA_SUCCESS);
        launch("add_one", stream, (PlantedArguments){x, y, COUNT, 0});
        CHECK_INT(driver->cuGraphExecDestroy(graph), CUDA_SUCCESS); // what is under way goes on
        CHECK_NEAR(first(x), 3, 0);
        CHECK_NEAR(first(y), 4, 0);
        CHECK_INT(card_state().graphs - graphs, 3);
    }
    emulator_control.set("");
}

// The number that a kernel is given is that of the capture, whatever it would be now; what lies in
// memory is read anew. That is how a number freezes into a graph.
static void arguments_are_taken_at_the_capture_and_memory_at_the_launch(void) {
    PlantedArguments arguments = {.y = y, .count = COUNT, .value = 5};
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    launch("fill", stream, arguments);
    arguments.value = 6;
    CUgraphExec graph = made_of(end());
    CHECK_INT(driver->cuGraphLaunch(graph, stream), CUDA_SUCCESS);
    CHECK_NEAR(first(y), 5, 0);
    driver->cuGraphExecDestroy(graph);
}

static void pinned_memory_is_read_anew_by_each_launch(void) {
    void *pinned = NULL;
    CHECK_INT(driver->cuMemHostAlloc(&pinned, COUNT * sizeof(float), 0), CUDA_SUCCESS);
    float *batch = pinned;
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    write_floats(x, batch, COUNT, stream);
    CUgraphExec graph = made_of(end());
    for (int i = 1; i < 3; i++) {
        batch[0] = (float)i;
        CHECK_INT(driver->cuGraphLaunch(graph, stream), CUDA_SUCCESS);
        CHECK_NEAR(first(x), i, 0);
    }
    driver->cuGraphExecDestroy(graph);
    CHECK_INT(driver->cuMemFreeHost(pinned), CUDA_SUCCESS);
}

static int change_what_a_graph_reads(const void *argument) {
    (void)argument;
    emulator_control.set("streams=lazy");
    void *pinned = NULL;
    driver->cuMemHostAlloc(&pinned, COUNT * sizeof(float), 0);
    driver->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    driver->cuMemcpyHtoDAsync(address_of(x), pinned, COUNT * sizeof(float), stream);
    CUgraph graph;
    driver->cuStreamEndCapture(stream, &graph);
    CUgraphExec made = made_of(graph);
    driver->cuGraphLaunch(made, stream);
    *(float *)pinned = 1;
    return (int)driver->cuStreamSynchronize(stream);
}

static void pinned_memory_of_a_graph_under_way_must_be_left_alone(void) {
    Outcome outcome = try_apart(change_what_a_graph_reads, NULL);
    CHECK_INT(outcome.result, CUDA_ERROR_LAUNCH_FAILED);
    CHECK_CONTAINS(outcome.said, "pinned memory was changed");
}

// ---- what is forbidden --------------------------------------------------------------------------

typedef CUresult (*Forbidden)(void);

static CUresult wait_for_it(void) {
    return driver->cuStreamSynchronize(stream);
}
static CUresult take_memory(void) {
    CUdeviceptr memory;
    return driver->cuMemAlloc(&memory, 16);
}
static CUresult give_memory(void) {
    return driver->cuMemFree(address_of(y));
}
static CUresult take_pinned_memory(void) {
    void *memory;
    return driver->cuMemHostAlloc(&memory, 16, 0);
}
static CUevent early;
static CUresult ask_for_an_event(void) {
    return driver->cuEventQuery(early);
}
static CUresult wait_for_an_event(void) {
    return driver->cuEventSynchronize(early);
}
static CUresult copy_from_pageable_memory(void) {
    float host[4] = {0};
    return driver->cuMemcpyHtoDAsync(address_of(x), host, sizeof host, stream);
}
static CUresult copy_into_pageable_memory(void) {
    float host[4];
    return driver->cuMemcpyDtoHAsync(host, address_of(x), sizeof host, stream);
}

static int forbidden_in_capture(const void *argument) {
    Forbidden forbidden;
    memcpy(&forbidden, argument, sizeof forbidden);
    CUgraph graph = NULL;
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    launch("fill", stream, (PlantedArguments){.y = y, .count = COUNT});
    if (forbidden() != CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
        return 1;
    if (launch_as("fill", 1, 32, 0, stream, (PlantedArguments){.y = y}) !=
        CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
        return 2;
    if (driver->cuStreamEndCapture(stream, &graph) != CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
        graph)
        return 3;
    return (int)driver->cuStreamSynchronize(stream); // it works again
}

static void what_is_forbidden_spoils_the_capture(void) {
    static const Forbidden all[] = {wait_for_it,
                                    take_memory,
                                    give_memory,
                                    take_pinned_memory,
                                    ask_for_an_event,
                                    wait_for_an_event,
                                    copy_from_pageable_memory,
                                    copy_into_pageable_memory};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        Outcome outcome = try_apart(forbidden_in_capture, &all[i]);
        CHECK_MESSAGE(!outcome.died && outcome.result == 0, "%zu: %d: %s", i, outcome.result,
                      outcome.said);
        CHECK_CONTAINS(outcome.said, "while a stream captures");
    }
}

static void relaxed_capture_forbids_the_stream_alone(void) {
    CUdeviceptr memory;
    CUgraph graph;
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    CHECK_INT(driver->cuMemAlloc(&memory, 16), CUDA_SUCCESS);
    CHECK_INT(driver->cuMemFree(memory), CUDA_SUCCESS);
    CHECK_INT(driver->cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_INT(driver->cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void *work_on_another_thread(void *results) {
    CUdeviceptr memory;
    CUgraph graph;
    CUresult *result = results;
    driver->cuCtxSetCurrent(context);
    result[0] = driver->cuMemAlloc(&memory, 16);
    if (result[0] == CUDA_SUCCESS)
        driver->cuMemFree(memory);
    result[1] = driver->cuStreamEndCapture(stream, &graph);
    return NULL;
}

static void other_threads_are_disturbed_by_a_global_capture_alone(void) {
    const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                         CU_STREAM_CAPTURE_MODE_GLOBAL};
    for (int i = 0; i < 2; i++) {
        CUresult results[2];
        CUgraph graph = NULL;
        pthread_t other;
        begin(modes[i]);
        CHECK_INT(pthread_create(&other, NULL, work_on_another_thread, results), 0);
        pthread_join(other, NULL);
        CHECK_INT(results[0], i ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS);
        CHECK_INT(results[1], CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
        CHECK_INT(driver->cuStreamEndCapture(stream, &graph),
                  i ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
        if (graph)
            driver->cuGraphDestroy(graph);
    }
}

static void event_of_a_capture_says_nothing_of_work(void) {
    CUevent event;
    CHECK_INT(driver->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    CHECK_INT(driver->cuEventRecord(event, stream), CUDA_SUCCESS);
    CHECK_INT(driver->cuStreamWaitEvent(stream, event, 0), CUDA_SUCCESS);
    CHECK_INT(driver->cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
    CHECK_INT(driver->cuEventSynchronize(event), CUDA_ERROR_CAPTURED_EVENT);
    driver->cuGraphDestroy(end());
    CHECK_INT(driver->cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
    CHECK_INT(driver->cuEventRecord(event, stream), CUDA_SUCCESS);
    CHECK_INT(driver->cuEventSynchronize(event), CUDA_SUCCESS);
    driver->cuEventDestroy(event);
}

static void work_that_was_not_captured_is_not_waited_for(void) {
    CUgraph graph;
    CHECK_INT(driver->cuEventRecord(early, stream), CUDA_SUCCESS);
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    CHECK_INT(driver->cuStreamWaitEvent(stream, early, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    CHECK_INT(driver->cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void default_stream_captures_nothing_and_is_not_to_wait_for_captures(void) {
    CUstream blocking, own = stream;
    CUgraph graph;
    CHECK_INT(driver->cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_RELAXED),
              CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_INT(driver->cuStreamCreate(&blocking, CU_STREAM_DEFAULT), CUDA_SUCCESS);
    stream = blocking;
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    CHECK_INT(launch_as("fill", 1, 32, 0, NULL, (PlantedArguments){.y = y}),
              CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    CHECK_INT(driver->cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    stream = own;
    driver->cuStreamDestroy(blocking);
}

static void what_does_not_begin_does_not_end(void) {
    CUgraph graph;
    CHECK_INT(driver->cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    CHECK_INT(driver->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
              CUDA_ERROR_ILLEGAL_STATE);
    graph = end();
    CUgraphExec made = made_of(graph);
    CHECK_INT(driver->cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE); // it was
    CHECK_INT(driver->cuGraphExecDestroy(made), CUDA_SUCCESS);
    CHECK_INT(driver->cuGraphLaunch(made, stream), CUDA_ERROR_INVALID_VALUE);
}

// ---- on demand ----------------------------------------------------------------------------------

static void capture_that_is_made_to_fail_has_ended(void) {
    CUgraph graph;
    emulator_control.set("fail=cuStreamEndCapture/1:2");
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    CHECK_INT(driver->cuStreamEndCapture(stream, &graph), CUDA_ERROR_OUT_OF_MEMORY);
    emulator_control.set("");
    zero();
    CHECK_NEAR(first(x), 0, 0);
}

static void graphs_are_counted(void) {
    uint64_t before = card_state().graphs_left;
    CUgraphExec graph = adding_graph();
    CHECK_INT(card_state().graphs_left - before, 1);
    driver->cuGraphExecDestroy(graph);
    CHECK_INT(card_state().graphs_left, before);
}

int main(void) {
    if (!start_card()) {
        printf("not ok graphs_test: the emulated card does not start\n");
        return 1;
    }
    emulator_control.set("");
    x = card_floats(COUNT);
    y = card_floats(COUNT);
    CHECK_INT(driver->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_INT(driver->cuEventCreate(&early, 0), CUDA_SUCCESS);
    RUN_TEST(nothing_happens_while_a_stream_captures);
    RUN_TEST(graph_does_it_at_each_launch_in_its_place_in_the_stream);
    RUN_TEST(arguments_are_taken_at_the_capture_and_memory_at_the_launch);
    RUN_TEST(pinned_memory_is_read_anew_by_each_launch);
    RUN_TEST(pinned_memory_of_a_graph_under_way_must_be_left_alone);
    RUN_TEST(what_is_forbidden_spoils_the_capture);
    RUN_TEST(relaxed_capture_forbids_the_stream_alone);
    RUN_TEST(other_threads_are_disturbed_by_a_global_capture_alone);
    RUN_TEST(event_of_a_capture_says_nothing_of_work);
    RUN_TEST(work_that_was_not_captured_is_not_waited_for);
    RUN_TEST(default_stream_captures_nothing_and_is_not_to_wait_for_captures);
    RUN_TEST(what_does_not_begin_does_not_end);
    RUN_TEST(capture_that_is_made_to_fail_has_ended);
    RUN_TEST(graphs_are_counted);
    return test_end();
}
