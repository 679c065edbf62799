// How sure the time of a step is: from the steps' own times, whose neighbours are alike.
#include <math.h>
#include <stdlib.h>

#include "compare/pace.h"
#include "tests/test.h"

enum { STEPS = 1000, TRIALS = 400 };

static double chance(void) { // mean 0, deviation 1, near enough to normal
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += rand() / (double)RAND_MAX;
    return sum;
}

// Times of steps: `mean` seconds, each `scatter` of it from the next, which keeps `memory` of it.
static void fill(SeriesPoint *points, int count, double mean, double scatter, double memory) {
    double state = chance();
    for (int i = 0; i < count; i++) {
        double seconds = mean * (1 + scatter * state);
        points[i] = (SeriesPoint){.step = i + 1, .width = 1, .count = 1, .mean = seconds};
        state = memory * state + sqrt(1 - memory * memory) * chance();
    }
    points[0].mean = 30 * mean; // the first step is slow
}

static SeriesPoint points[STEPS];

static void intervals_hold_the_true_mean_as_often_as_they_promise(void) {
    static const struct {
        double memory, least; // of those that hold it
    } cases[] = {{0, 0.92}, {0.5, 0.90}, {0.9, 0.88}, {0.97, 0.80}};
    srand(3);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        int held = 0;
        for (int trial = 0; trial < TRIALS; trial++) {
            fill(points, STEPS, 0.02, 0.1, cases[c].memory);
            Pace pace = pace_of(points, STEPS);
            held += fabs(pace.seconds - 0.02) <= pace.interval;
        }
        CHECK_MESSAGE(held >= cases[c].least * TRIALS, "memory %g: %d of %d", cases[c].memory, held,
                      TRIALS);
    }
}

// Two runs of one speed: hardly ever are they told apart; of two speeds, always.
static void equal_speeds_meet_and_others_do_not(void) {
    int apart = 0, met = 0;
    srand(5);
    for (int trial = 0; trial < TRIALS; trial++) {
        fill(points, STEPS, 0.02, 0.1, 0.9);
        Pace a = pace_of(points, STEPS);
        fill(points, STEPS, 0.02, 0.1, 0.9);
        Pace b = pace_of(points, STEPS);
        fill(points, STEPS, 0.01, 0.1, 0.9);
        Pace fast = pace_of(points, STEPS);
        PaceRatio same = pace_ratio(&a, &b), faster = pace_ratio(&a, &fast);
        apart += !(same.low <= 1 && same.high >= 1);
        met += faster.low <= 1;
        CHECK(faster.low < 2.2 && faster.high > 1.8);
    }
    CHECK_MESSAGE(apart <= 0.05 * TRIALS, "%d of %d were told apart", apart, TRIALS);
    CHECK_INT(met, 0);
}

// A moment in which another program had the machine makes the mean less sure.
static void a_slow_moment_widens_the_interval(void) {
    srand(9);
    fill(points, STEPS, 0.02, 0.02, 0);
    Pace calm = pace_of(points, STEPS);
    for (int i = 400; i < 600; i++)
        points[i].mean *= 3;
    Pace disturbed = pace_of(points, STEPS);
    CHECK(disturbed.interval > 10 * calm.interval);
    PaceRatio ratio = pace_ratio(&calm, &disturbed);
    CHECK_MESSAGE(ratio.low <= 1 && ratio.high >= 1, "%g to %g", ratio.low, ratio.high);
}

static void the_first_step_is_left_out(void) {
    srand(1);
    fill(points, STEPS, 0.02, 0, 0);
    Pace pace = pace_of(points, STEPS);
    CHECK_NEAR(pace.seconds, 0.02, 1e-12);
    CHECK_NEAR(pace.interval, 0, 1e-12);
}

static void points_that_were_summed_up_say_the_same(void) {
    enum { WIDTH = 8 };
    SeriesPoint sums[STEPS / WIDTH] = {{.step = 0}};
    srand(2);
    fill(points, STEPS, 0.02, 0.1, 0);
    points[0].mean = 0.02;
    for (int i = 0; i < STEPS; i++) {
        SeriesPoint *sum = &sums[i / WIDTH];
        sum->step = i / WIDTH * WIDTH;
        sum->width = WIDTH;
        sum->count++;
        sum->mean += points[i].mean / WIDTH;
    }
    Pace each = pace_of(points, STEPS), all = pace_of(sums, STEPS / WIDTH);
    CHECK_NEAR(all.seconds, each.seconds, 1e-4 * each.seconds);
    CHECK_MESSAGE(all.interval > 0.3 * each.interval && all.interval < 3 * each.interval,
                  "%g and %g", all.interval, each.interval);
}

static void few_steps_tell_nothing(void) {
    fill(points, 12, 0.02, 0.1, 0);
    Pace none = pace_of(points, 12), nothing = pace_of(NULL, 0);
    CHECK(isnan(none.seconds) && isnan(none.interval) && isnan(nothing.seconds));
    PaceRatio ratio = pace_ratio(&none, &none);
    CHECK(isnan(ratio.low) && isnan(ratio.high));
    fill(points, 20, 0.02, 0.1, 0); // and so few, that they are as good as nothing, no nonsense
    Pace few = pace_of(points, 20);
    CHECK(few.interval > 0 && isfinite(few.interval));
}

static void values_that_are_no_times_are_left_out(void) {
    srand(4);
    fill(points, STEPS, 0.02, 0, 0);
    points[10].mean = NAN;
    points[11] = (SeriesPoint){.step = 12, .width = 1, .nans = 1, .mean = NAN};
    Pace pace = pace_of(points, STEPS);
    CHECK_NEAR(pace.seconds, 0.02, 1e-12);
}

static void runs_that_disagree_are_less_sure_than_each(void) {
    Pace runs[] = {{1, 0.01, 8}, {1.2, 0.01, 8}, {0.9, 0.01, 8}},
         alike[] = {{1, 0.1, 8}, {1, 0.1, 8}};
    CHECK(pace_of_all(runs, 3).interval > 0.2);
    CHECK_NEAR(pace_of_all(runs, 1).interval, 0.01, 1e-12);
    CHECK(pace_of_all(alike, 2).interval > 0.06);
}

int main(void) {
    RUN_TEST(intervals_hold_the_true_mean_as_often_as_they_promise);
    RUN_TEST(equal_speeds_meet_and_others_do_not);
    RUN_TEST(a_slow_moment_widens_the_interval);
    RUN_TEST(the_first_step_is_left_out);
    RUN_TEST(points_that_were_summed_up_say_the_same);
    RUN_TEST(few_steps_tell_nothing);
    RUN_TEST(values_that_are_no_times_are_left_out);
    RUN_TEST(runs_that_disagree_are_less_sure_than_each);
    return test_end();
}
