// gpu/capture.h over the emulated card: which steps become graphs, and that a graph does what the
// calls asked for and nothing else.
#include "tests/emulator/capture_fixture.h"

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
    return test_end();
}
