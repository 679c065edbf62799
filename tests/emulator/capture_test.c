// gpu/capture.h over the emulated card: which steps become graphs, that a graph does what the calls
// asked for and nothing else, and what becomes of each failure.
#include "gpu/capture.h"

#include "gpu/gpu.h"
#include "kernel/allocator.h"
#include "tests/emulator/fixture.h"

static Gpu gpu;
static Device device;
static float *x, *y;
static size_t accounted; // of the inbox

// In place of gpu/device.c.
bool gpu_has_failed(const Gpu *of, Error *error) {
    if (error)
        *error = of->failure;
    return false;
}
bool gpu_check(Gpu *of, CUresult result, const char *what, Error *error) {
    if (result == CUDA_SUCCESS)
        return true;
    if (of->failure.code == ERROR_NONE)
        (void)error_fail(&of->failure, ERROR_FAILED, "%s: %d", what, (int)result);
    return gpu_has_failed(of, error);
}
CUresult gpu_enter(const Gpu *of) {
    return driver->cuCtxSetCurrent(of->context);
}
// In place of kernel/allocator.c.
void allocator_account_own(Allocator *allocator, size_t was, size_t bytes, MemoryPurpose purpose) {
    (void)allocator;
    CHECK_INT(purpose, MEMORY_WORKSPACE);
    CHECK_INT(accounted, was);
    accounted = bytes;
}

// ---- works --------------------------------------------------------------------------------------

typedef struct Planted {
    char kernel[16];
    PlantedArguments arguments;
} Planted;

static CUresult put_kernel(Gpu *of, const void *what) {
    Planted planted;
    memcpy(&planted, what, sizeof planted);
    return launch_as(planted.kernel, BLOCKS, THREADS, 0, of->stream, planted.arguments);
}

static CUresult call(GpuPut put, const char *kernel, const float *from, float *to, float value) {
    Planted planted;
    memset(&planted, 0, sizeof planted);
    snprintf(planted.kernel, sizeof planted.kernel, "%s", kernel);
    planted.arguments.x = from;
    planted.arguments.y = to;
    planted.arguments.count = COUNT;
    planted.arguments.value = value;
    return gpu_put(&gpu, put, kernel, &planted, sizeof planted);
}
static void fill(float *memory, float value) {
    CHECK_INT(call(put_kernel, "fill", NULL, memory, value), CUDA_SUCCESS);
}
static void add_one(const float *from, float *to) {
    CHECK_INT(call(put_kernel, "add_one", from, to, 0), CUDA_SUCCESS);
}
// What the host sends goes by pageable memory here, which may be used again at once.
static void send(float *to, float value) {
    float host[COUNT];
    for (int i = 0; i < COUNT; i++)
        host[i] = value;
    write_floats(gpu_put_sent(&gpu, to, sizeof host), host, COUNT, gpu.stream);
}
static float look(const float *memory) {
    float value = -1;
    gpu_put_apart(&gpu);
    read_floats(&value, memory, 1, gpu.stream);
    return value;
}
static uint64_t end_step(void) {
    uint64_t captured = device.captured;
    gpu_end_step(&device);
    return device.captured - captured;
}

// A count goes on in x from step to step, by way of y.
static void count(void) {
    add_one(x, y);
    add_one(y, x);
}
// Steps that count, of which so many are the first to be the same.
static void count_steps(int steps) {
    for (int i = 0; i < steps; i++) {
        count();
        end_step();
    }
}

static void begin(const char *settings) {
    Error error;
    emulator_control.set(settings);
    gpu = (Gpu){.device = &device, .driver = driver, .context = context};
    device = (Device){.state = &gpu, .memory = 1 << 30};
    accounted = 0;
    CHECK_INT(driver->cuStreamCreate(&gpu.stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK(gpu_open_capture(&gpu, &error));
    x = card_floats(COUNT);
    y = card_floats(COUNT);
    CHECK_INT(driver->cuMemsetD8Async(address_of(x), 0, COUNT * sizeof *x, gpu.stream),
              CUDA_SUCCESS);
    gpu_end_step(&device);
}

static void end(void) {
    CHECK_MESSAGE(gpu.failure.code == ERROR_NONE, "%s", gpu.failure.text);
    gpu_close_capture(&gpu);
    card_free(x);
    card_free(y);
    CHECK_INT(driver->cuStreamDestroy(gpu.stream), CUDA_SUCCESS);
    CHECK_INT(card_state().graphs_left, 0);
    emulator_control.set("");
}

// ---- what becomes a graph -----------------------------------------------------------------------

static void step_that_came_twice_is_a_graph_from_then_on(void) {
    for (int c = 0; c < CONDUCTS; c++) {
        begin(conducts[c]);
        uint64_t graphs = card_state().graphs;
        for (int step = 1; step <= 6; step++) {
            count();
            CHECK_INT(end_step(), step > 2);
            CHECK_NEAR(look(x), 2 * step, 0);
        }
        CHECK_INT(card_state().graphs - graphs, 4);
        CHECK_INT(device.steps, 7);
        end();
    }
}

static void nothing_is_put_before_a_step_of_graphs_ends(void) {
    begin("streams=eager");
    count_steps(2);
    uint64_t kernels = card_state().kernels;
    count();
    CHECK_INT(card_state().kernels - kernels, 0);
    end_step();
    CHECK_INT(card_state().kernels - kernels, 2);
    end();
}

// Memory that a step leaves to the next makes every other step the same.
static void steps_that_take_turns_are_graphs_too(void) {
    begin("");
    for (int step = 0; step < 12; step++) {
        fill(step % 3 ? x : y, (float)(step % 3));
        add_one(x, y);
        CHECK_INT(end_step(), step >= 6);
        CHECK_NEAR(look(y), step == 0 ? 1 : step % 3 ? step % 3 + 1 : 3, 0);
    }
    end();
}

static void step_that_stays_away_for_long_is_forgotten(void) {
    enum { MANY = 20 };
    begin("");
    count_steps(3);
    CHECK_INT(device.captured, 1);
    for (int i = 0; i < MANY; i++) {
        fill(x, (float)i);
        CHECK_INT(end_step(), 0);
    }
    count();
    CHECK_INT(end_step(), 0);
    CHECK_NEAR(look(x), MANY + 1, 0);
    end();
}

static void steps_of_nothing_are_no_graphs(void) {
    begin("");
    for (int i = 0; i < 5; i++)
        CHECK_INT(end_step(), 0);
    count_steps(4);
    CHECK_INT(device.captured, 2);
    CHECK_INT(end_step(), 0);
    CHECK_NEAR(look(x), 8, 0);
    end();
}

static void nothing_is_captured_where_it_is_not_wanted(void) {
    begin("");
    device.no_capture = true;
    count_steps(5);
    CHECK_INT(device.captured, 0);
    CHECK_NEAR(look(x), 10, 0);
    end();
}

// Who never ends a step keeps nothing of it.
static void step_without_end_is_not_remembered(void) {
    begin("streams=eager");
    for (int round = 0; round < 3; round++) {
        static char large[1 << 16];
        for (int i = 0; i < 300; i++) {
            Planted planted = {.kernel = "fill", .arguments = {.y = y, .count = 1}};
            memcpy(large, &planted, sizeof planted);
            CHECK_INT(gpu_put(&gpu, put_kernel, "fill", large, sizeof large), CUDA_SUCCESS);
        }
        CHECK_INT(end_step(), 0);
    }
    end();
}

// ---- steps that turn out otherwise --------------------------------------------------------------

static void what_was_held_back_comes_before_what_differs(void) {
    for (int c = 0; c < CONDUCTS; c++) {
        begin(conducts[c]);
        count_steps(3);
        add_one(x, y);
        fill(x, 100); // not add_one(y, x)
        add_one(x, y);
        CHECK_INT(end_step(), 0);
        CHECK_NEAR(look(y), 101, 0);
        CHECK_NEAR(look(x), 100, 0);
        count();
        CHECK_INT(end_step(), 1);
        CHECK_NEAR(look(x), 102, 0);
        end();
    }
}

static void step_may_be_shorter_or_longer_than_the_one_before(void) {
    begin("");
    count_steps(3);
    add_one(x, y);
    CHECK_INT(end_step(), 0);
    CHECK_NEAR(look(y), 7, 0);
    count();
    count();
    CHECK_INT(end_step(), 0);
    CHECK_NEAR(look(x), 10, 0);
    for (int i = 0; i < 3; i++) { // each of the three is known by now, or will be
        add_one(x, y);
        CHECK_INT(end_step(), i > 0);
        count();
        count();
        CHECK_INT(end_step(), i > 0);
        count();
        CHECK_INT(end_step(), 1);
    }
    CHECK_NEAR(look(x), 28, 0);
    end();
}

static void waiting_in_a_step_loses_nothing_and_captures_nothing(void) {
    begin("");
    for (int step = 1; step <= 6; step++) {
        add_one(x, y);
        CHECK_NEAR(look(y), 2 * step - 1, 0);
        add_one(y, x);
        CHECK_INT(end_step(), 0);
    }
    count_steps(2);
    add_one(x, y);
    CHECK_NEAR(look(y), 17, 0);
    add_one(y, x);
    CHECK_INT(end_step(), 0);
    count();
    CHECK_INT(end_step(), 1);
    CHECK_NEAR(look(x), 20, 0);
    end();
}

static void what_is_forgotten_is_captured_anew(void) {
    begin("");
    count_steps(3);
    add_one(x, y);
    gpu_forget_steps(&gpu);
    CHECK_INT(card_state().graphs_left, 0);
    add_one(y, x);
    CHECK_INT(end_step(), 0);
    for (int i = 0; i < 4; i++) {
        count();
        CHECK_INT(end_step(), i > 1);
    }
    CHECK_NEAR(look(x), 16, 0);
    end();
}

// ---- numbers ------------------------------------------------------------------------------------

static void number_that_changes_is_never_frozen(void) {
    begin("");
    for (int step = 0; step < 12; step++) {
        fill(x, (float)(step / 4));
        add_one(x, y);
        CHECK_INT(end_step(), step % 4 > 1);
        CHECK_NEAR(look(y), step / 4 + 1, 0);
    }
    end();
}

// The test of these tests: a work that hides a number from who compares it is frozen, and the
// result tells.
static float hidden;
static CUresult put_hidden(Gpu *of, const void *what) {
    Planted planted;
    memcpy(&planted, what, sizeof planted);
    planted.arguments.value = hidden;
    return put_kernel(of, &planted);
}

static void number_that_is_hidden_is_frozen_and_found(void) {
    begin("");
    int wrong = 0;
    for (int step = 0; step < 5; step++) {
        hidden = (float)step;
        CHECK_INT(call(put_hidden, "fill", NULL, y, 0), CUDA_SUCCESS);
        end_step();
        wrong += look(y) != hidden;
    }
    CHECK_INT(wrong, 3);
    end();
}

// ---- what the host sends ------------------------------------------------------------------------

// Memory is used before it is sent to, as that of a tensor that was given back meanwhile is.
static void send_step(int step) {
    fill(x, 1000);
    add_one(x, y);
    send(x, (float)step);
    add_one(x, y);
    send(x, (float)step + 10);
}

static void what_is_sent_is_that_of_each_step_in_its_turn(void) {
    for (int c = 0; c < CONDUCTS; c++) {
        begin(conducts[c]);
        for (int step = 0; step < 6; step++) {
            send_step(step);
            CHECK_INT(end_step(), step > 1);
            CHECK_NEAR(look(y), step + 1, 0);
            CHECK_NEAR(look(x), step + 10, 0);
        }
        end();
    }
}

static void what_was_sent_to_a_step_that_turns_out_otherwise_arrives(void) {
    for (int c = 0; c < CONDUCTS; c++) {
        begin(conducts[c]);
        for (int step = 0; step < 3; step++) {
            send_step(step);
            end_step();
        }
        fill(x, 1000);
        add_one(x, y);
        CHECK_NEAR(look(y), 1001, 0);
        for (int at = 0; at < 2; at++) {
            fill(x, 1000);
            add_one(x, y);
            send(x, 50);
            if (at == 0)
                send(y, 60); // not add_one
            CHECK_INT(end_step(), 0);
            CHECK_NEAR(look(x), 50, 0);
            CHECK_NEAR(look(y), at == 0 ? 60 : 1001, 0);
        }
        end();
    }
}

enum {
    LEAST = 1 << 16, // bytes of the inbox
    SENT = (COUNT * (int)sizeof(float) + 255) / 256 * 256,
    MANY = LEAST / SENT + 1
};

static void steps_that_send_more_take_a_larger_inbox(void) {
    begin("");
    for (int step = 0; step < 12; step++) {
        bool is_larger = step / 3 % 2;
        send(x, (float)step);
        for (int i = 1; is_larger && i < MANY; i++)
            send(y, (float)step);
        bool was_captured = end_step();
        CHECK_NEAR(look(x), step, 0);
        CHECK(!is_larger || look(y) == (float)step);
        CHECK_INT(was_captured, step == 2 || step == 5 || step >= 7);
        CHECK_INT(device.waits, step >= 4); // for what went by the smaller one
        CHECK_INT(accounted, step < 4 ? LEAST : MANY * SENT);
    }
    end();
}

// To the first belongs all that was sent before it, a data set say. No later one asks for memory.
static void inbox_is_taken_as_the_second_step_ends(void) {
    begin("");
    device.steps = 0;
    send(x, 1);
    end_step();
    CHECK_INT(accounted, 0);
    send(x, 2);
    CHECK_NEAR(look(x), 2, 0); // no step to be captured
    end_step();
    CHECK_INT(accounted, LEAST);
    end();
}

static void card_without_memory_for_the_inbox_goes_on_without(void) {
    begin("memory=64K");
    for (int step = 0; step < 5; step++) {
        send(x, (float)step);
        CHECK_INT(end_step(), 0);
        CHECK_NEAR(look(x), step, 0);
    }
    end();
}

// ---- failures -----------------------------------------------------------------------------------

static void graph_that_cannot_be_had_is_done_without(void) {
    static const char *const functions[] = {"cuStreamBeginCapture", "cuStreamEndCapture",
                                            "cuGraphInstantiate", "cuGraphLaunch"};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        for (int nth = 1; nth < 3; nth++) {
            char settings[60];
            begin("");
            snprintf(settings, sizeof settings, "fail=%s/%d:2", functions[i], nth);
            emulator_control.set(settings);
            count_steps(8);
            CHECK_NEAR(look(x), 16, 0);
            // Who fails at the first is not asked again; a graph that fails later worked until
            // then.
            bool launches = i == 3;
            CHECK_INT(device.captured, nth == 1 ? 0 : launches ? 1 : 6);
            end();
        }
}

static CUresult put_waiting(Gpu *of, const void *what) {
    CUresult result = put_kernel(of, what);
    return result == CUDA_SUCCESS ? driver->cuStreamSynchronize(of->stream) : result;
}

// As a library may that takes memory or waits.
static void work_that_cannot_be_captured_goes_on_as_it_is(void) {
    begin("");
    for (int step = 1; step < 6; step++) {
        CHECK_INT(call(put_waiting, "add_one", x, y, 0), CUDA_SUCCESS);
        add_one(y, x);
        CHECK_INT(end_step(), 0);
        CHECK_NEAR(look(x), 2 * step, 0);
    }
    end();
}

static CUresult put_nothing(Gpu *of, const void *what) {
    (void)of, (void)what;
    return CUDA_ERROR_NOT_SUPPORTED;
}

static void work_that_is_refused_is_told_at_once_and_keeps_nothing(void) {
    begin("");
    for (int step = 0; step < 4; step++) {
        count();
        CHECK_INT(call(put_nothing, "nothing", x, y, 0), CUDA_ERROR_NOT_SUPPORTED);
        CHECK_INT(end_step(), 0);
    }
    CHECK_NEAR(look(x), 8, 0);
    end();
}

// As a library that takes a work for the first so many times.
static int patience;
static CUresult put_tiring(Gpu *of, const void *what) {
    if (patience-- > 0)
        return put_kernel(of, what);
    (void)error_fail(&of->refusal, ERROR_UNAVAILABLE, "it is tired");
    return CUDA_ERROR_NOT_SUPPORTED;
}

static void refusal_of_what_was_held_back_is_told_in_words_of_the_library(void) {
    enum { TWO_STEPS_AND_A_GRAPH = 3 };
    begin("");
    patience = TWO_STEPS_AND_A_GRAPH;
    for (int step = 0; step < 2; step++) {
        CHECK_INT(call(put_tiring, "add_one", x, y, 0), CUDA_SUCCESS);
        end_step();
    }
    CHECK_INT(call(put_tiring, "add_one", x, y, 0), CUDA_SUCCESS);
    CHECK_INT(gpu.failure.code, ERROR_NONE);
    gpu_put_apart(&gpu);
    CHECK_INT(gpu.failure.code, ERROR_FAILED);
    CHECK_CONTAINS(gpu.failure.text, "add_one refuses");
    CHECK_CONTAINS(gpu.failure.text, "it is tired");
    CHECK_CONTAINS(gpu.failure.text, "--no-capture");
    CHECK_INT(end_step(), 0);
    gpu.failure = (Error){0};
    end();
}

static void failure_of_what_was_held_back_is_kept(void) {
    begin("");
    count_steps(3);
    emulator_control.set("fail=cuLaunchKernel/2:1");
    count();
    CHECK_INT(gpu.failure.code, ERROR_NONE);
    gpu_put_apart(&gpu);
    CHECK_CONTAINS(gpu.failure.text, "add_one: 1");
    CHECK_INT(end_step(), 0);
    gpu.failure = (Error){0};
    end();
}

int main(void) {
    if (!start_card()) {
        printf("not ok capture_test: the emulated card does not start\n");
        return 1;
    }
    RUN_TEST(step_that_came_twice_is_a_graph_from_then_on);
    RUN_TEST(nothing_is_put_before_a_step_of_graphs_ends);
    RUN_TEST(steps_that_take_turns_are_graphs_too);
    RUN_TEST(step_that_stays_away_for_long_is_forgotten);
    RUN_TEST(steps_of_nothing_are_no_graphs);
    RUN_TEST(nothing_is_captured_where_it_is_not_wanted);
    RUN_TEST(step_without_end_is_not_remembered);
    RUN_TEST(what_was_held_back_comes_before_what_differs);
    RUN_TEST(step_may_be_shorter_or_longer_than_the_one_before);
    RUN_TEST(waiting_in_a_step_loses_nothing_and_captures_nothing);
    RUN_TEST(what_is_forgotten_is_captured_anew);
    RUN_TEST(number_that_changes_is_never_frozen);
    RUN_TEST(number_that_is_hidden_is_frozen_and_found);
    RUN_TEST(what_is_sent_is_that_of_each_step_in_its_turn);
    RUN_TEST(what_was_sent_to_a_step_that_turns_out_otherwise_arrives);
    RUN_TEST(steps_that_send_more_take_a_larger_inbox);
    RUN_TEST(inbox_is_taken_as_the_second_step_ends);
    RUN_TEST(card_without_memory_for_the_inbox_goes_on_without);
    RUN_TEST(graph_that_cannot_be_had_is_done_without);
    RUN_TEST(work_that_cannot_be_captured_goes_on_as_it_is);
    RUN_TEST(work_that_is_refused_is_told_at_once_and_keeps_nothing);
    RUN_TEST(refusal_of_what_was_held_back_is_told_in_words_of_the_library);
    RUN_TEST(failure_of_what_was_held_back_is_kept);
    return test_end();
}
