// How fast something goes on now: after a change it is the new speed that counts.
#include "base/recent.h"

#include "tests/test.h"

typedef struct Going {
    Recent recent;
    int64_t step;
    double seconds;
} Going;

static double go(Going *going, int steps, double step_seconds) {
    double rate = 0;
    for (int i = 0; i < steps; i++) {
        going->step++;
        going->seconds += step_seconds;
        rate = recent_rate(&going->recent, going->step, going->seconds);
    }
    return rate;
}

static void a_change_of_speed_is_told_within_a_minute(void) {
    Going going = {.step = 100};
    CHECK_NEAR(go(&going, 1000, 0.1), 10, 1e-6);
    CHECK_NEAR(go(&going, 60, 1), 1, 1e-6);
    CHECK_NEAR(go(&going, 20000, 0.01), 100, 1e-4);
}

static void steps_of_a_minute_have_a_speed_too(void) {
    Going going = {.step = 0};
    CHECK_NEAR(go(&going, 3, 60), 1.0 / 60, 1e-9);
    CHECK_NEAR(go(&going, 100, 60), 1.0 / 60, 1e-9);
    CHECK_NEAR(go(&going, 20, 30), 1.0 / 30, 1e-9);
}

static void little_of_it_tells_nothing(void) {
    Going going = {.step = 0};
    CHECK_NEAR(go(&going, 5, 0.1), 0, 0);
    going = (Going){.step = 0};
    CHECK_NEAR(recent_rate(&going.recent, 7, 1000), 0, 0); // as one looked at from there on
    CHECK_NEAR(recent_rate(&going.recent, 7, 1100), 0, 0);
}

static void another_run_begins_anew(void) {
    Going going = {.step = 5000};
    (void)go(&going, 1000, 0.1);
    going.step = 10;
    CHECK_NEAR(go(&going, 2, 0.4), 0, 0);
    CHECK_NEAR(go(&going, 100, 0.4), 2.5, 1e-6);
}

int main(void) {
    RUN_TEST(a_change_of_speed_is_told_within_a_minute);
    RUN_TEST(steps_of_a_minute_have_a_speed_too);
    RUN_TEST(little_of_it_tells_nothing);
    RUN_TEST(another_run_begins_anew);
    return test_end();
}
