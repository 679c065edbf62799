// Which update ends a step, for scripts of several scalers: letters stand for scalers, A leads, and
// a dot follows each that ends a step.
#include "run/step_end.h"
#include "tests/test.h"

static char told[128];

// What is told of updates in this order; a small letter: that one is gone.
static const char *ends_of(StepEnd *end, const char *updates) {
    static const char scalers['Z' - 'A' + 1];
    char *out = told;
    for (const char *at = updates; *at; at++) {
        if (*at == ' ')
            continue;
        if (*at >= 'a') {
            step_end_forget(end, &scalers[*at - 'a']);
            continue;
        }
        *out++ = *at;
        if (step_end_updated(end, &scalers[*at - 'A'], *at == 'A'))
            *out++ = '.';
    }
    *out = 0;
    return told;
}

static void check(const char *updates, const char *expected) {
    StepEnd end = {.leader_ends = false};
    const char *ends = ends_of(&end, updates);
    CHECK_TEXT(ends, expected);
}

static void one_scaler_ends_each_step(void) {
    check("A A A", "A.A.A.");
}

static void two_in_every_iteration_end_it_with_the_second(void) {
    // The first iterations cannot know.
    check("AB AB AB AB", "A.BA.BAB.AB.");
    check("ABC ABC ABC ABC", "A.BCA.BCABC.ABC.");
}

static void one_before_the_leader_leaves_the_end_to_it(void) {
    check("BA BA BA", "B.ABA.BA."); // once the leader has come
}

static void one_that_is_updated_now_and_then_ends_nothing(void) {
    check("AB A AB A A AB", "A.BA.A.BA.A.A.B");
}

static void one_that_stops_coming_gives_the_end_back(void) {
    check("AB AB AB A A A", "A.BA.BAB.AA.A.");
}

static void a_leader_out_of_use_is_replaced(void) {
    check("B B B", "B.B.B.");
    check("BC BC BC BC BC", "B.CB.CB.CBC.BC.");
}

static void what_is_gone_is_waited_for_no_more(void) {
    check("AB AB AB b A A", "A.BA.BAB.A.A.");
}

static void a_run_that_began_by_the_leader_goes_on_so(void) {
    StepEnd end = {.leader_ends = true};
    const char *ends = ends_of(&end, "AB AB AB AB");
    CHECK_TEXT(ends, "A.BA.BA.BA.B");
}

int main(void) {
    RUN_TEST(one_scaler_ends_each_step);
    RUN_TEST(two_in_every_iteration_end_it_with_the_second);
    RUN_TEST(one_before_the_leader_leaves_the_end_to_it);
    RUN_TEST(one_that_is_updated_now_and_then_ends_nothing);
    RUN_TEST(one_that_stops_coming_gives_the_end_back);
    RUN_TEST(a_leader_out_of_use_is_replaced);
    RUN_TEST(what_is_gone_is_waited_for_no_more);
    RUN_TEST(a_run_that_began_by_the_leader_goes_on_so);
    return test_end();
}
