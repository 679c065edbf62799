// gpu/capture.h over the emulated card: what the host sends to steps that are held back, and what
// becomes of each failure and refusal.
#include "tests/emulator/capture_fixture.h"

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

// As a library that refuses one call of a work, or all from one on.
static int refuses_from, refuses_until, asked;
static CUresult put_tiring(Gpu *of, const void *what) {
    asked++;
    if (asked < refuses_from || asked > refuses_until)
        return put_kernel(of, what);
    (void)error_fail(&of->refusal, ERROR_UNAVAILABLE, "it is tired");
    return CUDA_ERROR_NOT_SUPPORTED;
}

// Works of our own that come in its place go the same way as others.
static bool able;
static bool add_instead(Device *of, const void *told, Error *error) {
    CHECK(of == &device);
    CHECK(takes_anew); // what is free may be read by what is still held back
    return able ? gpu_put(&gpu, put_kernel, "add_one", told, sizeof(Planted)) == CUDA_SUCCESS
                : error_fail(error, ERROR_FAILED, "nor can we");
}

// x goes to y by the library, and back by our own kernel.
static void step_by_library(int covers) {
    const Planted there = planted("add_one", x, y, 0);
    const GpuInstead instead = {add_instead, &there, sizeof there, covers};
    CHECK_INT(gpu_put_or(&gpu, put_tiring, &instead, "library", &there, sizeof there),
              CUDA_SUCCESS);
    add_one(y, x);
}

static void begin_with_library(int from, int until) {
    begin("");
    asked = 0;
    refuses_from = from;
    refuses_until = until;
    able = true;
}

enum { TWO_STEPS_AND_A_GRAPH = 3, FOR_EVER = 1000 };

static void what_a_library_refuses_after_it_was_held_back_is_done_instead(void) {
    for (int covers = 0; covers < 2; covers++) {
        begin_with_library(TWO_STEPS_AND_A_GRAPH + 1, FOR_EVER);
        for (int step = 0; step < 3; step++) {
            step_by_library(covers);
            CHECK_INT(end_step(), step == 2);
        }
        CHECK_TEXT(device.remark, "");
        step_by_library(covers);
        CHECK_NEAR(look(y), 7, 0);
        CHECK(!takes_anew);
        CHECK_NEAR(look(x), covers ? 6 : 8, 0); // what it covers is left out
        CHECK_CONTAINS(device.remark, "library refuses now");
        CHECK_CONTAINS(device.remark, "it is tired");
        CHECK_INT(end_step(), 0);
        end();
    }
}

static void refusal_is_told_once(void) {
    begin_with_library(TWO_STEPS_AND_A_GRAPH + 1, FOR_EVER);
    for (int step = 0; step < 3; step++) {
        step_by_library(0);
        end_step();
    }
    for (int step = 4; step < 7; step++) {
        step_by_library(0);
        CHECK_NEAR(look(x), 2 * step, 0);
        CHECK_INT(device.remark[0] != 0, step == 4);
        device.remark[0] = 0;
        end_step();
    }
    end();
}

static void what_is_refused_and_cannot_be_done_instead_ends_the_run(void) {
    begin_with_library(TWO_STEPS_AND_A_GRAPH + 1, FOR_EVER);
    for (int step = 0; step < 3; step++) {
        step_by_library(0);
        end_step();
    }
    able = false;
    step_by_library(0);
    CHECK_INT(gpu.failure.code, ERROR_NONE);
    gpu_put_apart(&gpu);
    CHECK_TEXT(gpu.failure.text, "nor can we");
    CHECK_INT(end_step(), 0);
    gpu.failure = (Error){0};
    end();
}

// Its step goes on as it is, and is not tried again.
static void library_that_does_not_let_itself_be_captured_is_done_without(void) {
    begin_with_library(TWO_STEPS_AND_A_GRAPH, TWO_STEPS_AND_A_GRAPH);
    for (int step = 1; step < 6; step++) {
        step_by_library(0);
        CHECK_INT(end_step(), 0);
        CHECK_NEAR(look(x), 2 * step, 0);
        CHECK_INT(device.remark[0] != 0, step == 2);
        if (step == 2)
            CHECK_CONTAINS(device.remark, "library does not let itself be captured");
        device.remark[0] = 0;
    }
    CHECK_INT(asked, 6);
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
        printf("not ok capture_refused_test: the emulated card does not start\n");
        return 1;
    }
    RUN_TEST(what_is_sent_is_that_of_each_step_in_its_turn);
    RUN_TEST(what_was_sent_to_a_step_that_turns_out_otherwise_arrives);
    RUN_TEST(steps_that_send_more_take_a_larger_inbox);
    RUN_TEST(inbox_is_taken_as_the_second_step_ends);
    RUN_TEST(card_without_memory_for_the_inbox_goes_on_without);
    RUN_TEST(graph_that_cannot_be_had_is_done_without);
    RUN_TEST(work_that_cannot_be_captured_goes_on_as_it_is);
    RUN_TEST(work_that_is_refused_is_told_at_once_and_keeps_nothing);
    RUN_TEST(what_a_library_refuses_after_it_was_held_back_is_done_instead);
    RUN_TEST(refusal_is_told_once);
    RUN_TEST(what_is_refused_and_cannot_be_done_instead_ends_the_run);
    RUN_TEST(library_that_does_not_let_itself_be_captured_is_done_without);
    RUN_TEST(failure_of_what_was_held_back_is_kept);
    return test_end();
}
