// Replays: which step is shown when, at which pace, and that they come to an end.
#include "ui/live/pace.h"

#include "tests/test.h"

static const ReplayRun usual = {.first = 1, .last = 601, .rate = 10}; // a minute of its own

static void a_whole_run_takes_a_minute_at_most(void) {
    static const struct {
        int64_t last;
        double rate, pace;
    } cases[] = {
        {601, 10, 1},        {602, 10, 2},        {1201, 10, 2},   {301, 10, 0.5},
        {61, 10, 0.1},       {1000000, 100, 200}, {2, 1e6, 0.001}, // the slowest there is
        {INT64_MAX, 1, 1e5},                                       // and the fastest
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ReplayRun run = {.first = 1, .last = cases[i].last, .rate = cases[i].rate};
        Replay replay = {.is_on = false};
        replay_begin(&replay, &run, 1);
        CHECK_NEAR(replay_pace(&replay), cases[i].pace, 0);
    }
}

static void steps_follow_the_time_at_every_pace(void) {
    Replay replay = {.is_on = false};
    replay_begin(&replay, &usual, 1);
    CHECK_INT(replay_advance(&replay, &usual, 0), 1);
    for (int i = 0; i < 99; i++) // parts of a step add up: 10 steps a second
        replay_advance(&replay, &usual, 0.0101);
    CHECK_INT(replay_advance(&replay, &usual, 0.0101), 11);
    CHECK(replay_change_pace(&replay, 1));
    CHECK_INT(replay_advance(&replay, &usual, 1), 31);
    CHECK(replay_change_pace(&replay, -1) && replay_change_pace(&replay, -1));
    CHECK_INT(replay_advance(&replay, &usual, 1), 36);
    CHECK_INT(replay_advance(&replay, &usual, -5), 36); // clocks that go back move nothing
    int paces = 0;
    while (replay_change_pace(&replay, 1))
        paces++;
    CHECK_NEAR(replay_pace(&replay), 1e5, 0);
    CHECK(paces > 10);
    while (replay_change_pace(&replay, -1))
        ;
    CHECK_NEAR(replay_pace(&replay), 1e-3, 0);
}

static void a_pause_holds_the_step(void) {
    Replay replay = {.is_on = false};
    replay_begin(&replay, &usual, 100);
    replay.is_paused = true;
    CHECK_INT(replay_advance(&replay, &usual, 1000), 100);
    CHECK(replay.is_on);
    replay.is_paused = false;
    CHECK_INT(replay_advance(&replay, &usual, 1), 110);
}

static void the_last_step_ends_it_and_the_pace_stays(void) {
    Replay replay = {.is_on = false};
    replay_begin(&replay, &usual, 590);
    replay_change_pace(&replay, 1);
    CHECK_INT(replay_advance(&replay, &usual, 0.1), 592);
    CHECK(replay.is_on);
    CHECK_INT(replay_advance(&replay, &usual, 1e9), 601);
    CHECK(!replay.is_on);
    replay_begin(&replay, &usual, 1);
    CHECK_NEAR(replay_pace(&replay), 2, 0);
    CHECK_INT(replay_advance(&replay, &usual, 1), 21);
    ReplayRun cut = {.first = 50, .last = 60, .rate = 10}; // its first steps went meanwhile
    CHECK_INT(replay_advance(&replay, &cut, 0), 50);
}

int main(void) {
    RUN_TEST(a_whole_run_takes_a_minute_at_most);
    RUN_TEST(steps_follow_the_time_at_every_pace);
    RUN_TEST(a_pause_holds_the_step);
    RUN_TEST(the_last_step_ends_it_and_the_pace_stays);
    return test_end();
}
