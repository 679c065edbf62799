// What several seeds say: Student's t against printed tables; intervals, Welch's test and pairs of
// a seed by hand.
#include "compare/statistics.h"
#include "tests/test.h"

static void quantiles_are_those_of_the_tables(void) {
    static const struct {
        double probability, freedom, value;
    } rows[] = {{0.975, 1, 12.7062047},   {0.975, 2, 4.30265273},       {0.975, 3, 3.18244631},
                {0.975, 5, 2.57058184},   {0.975, 10, 2.22813885},      {0.975, 30, 2.04227246},
                {0.975, 120, 1.97993041}, {0.995, 4, 4.60409487},       {0.95, 7, 1.89457861},
                {0.9, 5, 1.47588405},     {0.975, INFINITY, 1.95996398}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double t = student_quantile(rows[i].probability, rows[i].freedom);
        CHECK_MESSAGE(fabs(t - rows[i].value) < 1e-7, "t(%g, %g) is %.9g, expected %.9g",
                      rows[i].probability, rows[i].freedom, t, rows[i].value);
        double mirrored = student_quantile(1 - rows[i].probability, rows[i].freedom);
        CHECK_NEAR(mirrored, -rows[i].value, 1e-6);
    }
    CHECK(isnan(student_quantile(1, 3)));
    CHECK(isnan(student_quantile(0.5, 0)));
}

static void an_interval_is_that_of_the_mean(void) {
    const double values[] = {0.910, 0.912, 0.908};
    Statistic of = statistic_of(values, 3);
    CHECK_INT(of.count, 3);
    CHECK_NEAR(of.mean, 0.910, 1e-15);
    CHECK_NEAR(of.deviation, 0.002, 1e-15);
    CHECK_NEAR(of.interval, 4.30265273 * 0.002 / sqrt(3), 1e-10);
}

static void equal_values_have_no_scatter_whatever_they_round_to(void) {
    const double values[] = {0.1, 0.1, 0.1}; // whose sum is not three times as much
    Statistic of = statistic_of(values, 3);
    char text[STATISTIC_TEXT_SIZE];
    CHECK_NEAR(of.mean, 0.1, 0);
    CHECK_NEAR(of.interval, 0, 0);
    CHECK_TEXT(statistic_text(text, &of, true), "0.1000");
}

static void one_value_has_no_interval_and_none_no_mean(void) {
    const double values[] = {3, NAN, INFINITY};
    Statistic one = statistic_of(values, 3), none = statistic_of(values + 1, 2);
    CHECK_INT(one.count, 1);
    CHECK_INT(one.not_finite, 2);
    CHECK_NEAR(one.mean, 3, 0);
    CHECK(isnan(one.interval) && isnan(one.deviation));
    CHECK_INT(none.count, 0);
    CHECK(isnan(none.mean));
}

static void seeds_decide_what_is_noise(void) {
    const double a[] = {10, 12, 14}, b[] = {11, 13, 14}, c[] = {30, 31, 33};
    Statistic of_a = statistic_of(a, 3), of_b = statistic_of(b, 3), of_c = statistic_of(c, 3);
    Contrast near = statistic_contrast(&of_a, &of_b), far = statistic_contrast(&of_a, &of_c);
    CHECK_INT(near.likeness, LIKENESS_SAME);
    CHECK_INT(far.likeness, LIKENESS_DIFFERENT);
    CHECK_NEAR(far.delta, 31 + 1.0 / 3 - 12, 1e-12);
    // Welch by hand: variances 4 and 7/3, each over 3.
    double va = 4.0 / 3, vc = 7.0 / 9,
           freedom = (va + vc) * (va + vc) / (va * va / 2 + vc * vc / 2);
    CHECK_NEAR(far.interval, student_quantile(0.975, freedom) * sqrt(va + vc), 1e-12);
}

static void large_values_are_told_apart_as_small_ones_are(void) {
    static const double sizes[] = {1, 1e78, 1e150, 1e-150};
    for (int i = 0; i < 4; i++) {
        double size = sizes[i];
        const double a[] = {10 * size, 12 * size, 14 * size};
        const double b[] = {11 * size, 13 * size, 14 * size};
        Statistic of_a = statistic_of(a, 3), of_b = statistic_of(b, 3);
        Contrast contrast = statistic_contrast(&of_a, &of_b);
        CHECK_INT(contrast.likeness, LIKENESS_SAME);
        CHECK_NEAR(contrast.interval / size, 4.14668365, 1e-6);
    }
    const double a[] = {1e200, 1.2e200, 1.4e200}, b[] = {1, 2, 3};
    Statistic of_a = statistic_of(a, 3), of_b = statistic_of(b, 3);
    CHECK_INT(statistic_contrast(&of_b, &of_a).likeness, LIKENESS_UNKNOWN);
}

static void one_seed_tells_nothing(void) {
    const double a[] = {1}, b[] = {2, 3};
    Statistic of_a = statistic_of(a, 1), of_b = statistic_of(b, 2);
    Contrast contrast = statistic_contrast(&of_a, &of_b);
    CHECK_INT(contrast.likeness, LIKENESS_UNKNOWN);
    CHECK_NEAR(contrast.delta, 1.5, 0);
    CHECK(isnan(contrast.interval));
}

static void equal_numbers_without_scatter_are_the_same(void) {
    const double a[] = {1, 1}, b[] = {1, 1}, c[] = {2, 2};
    Statistic of_a = statistic_of(a, 2), of_b = statistic_of(b, 2), of_c = statistic_of(c, 2);
    CHECK_INT(statistic_contrast(&of_a, &of_b).likeness, LIKENESS_SAME);
    CHECK_INT(statistic_contrast(&of_a, &of_c).likeness, LIKENESS_DIFFERENT);
}

static Sample sample_of(const int64_t *seeds, const double *values, int count) {
    Sample sample;
    sample.count = 0;
    for (int i = 0; i < count; i++)
        sample_add(&sample, seeds[i], values[i]);
    return sample;
}

// Seeds that scatter by 0.1, and a difference that scatters by a hundredth of that.
static void pairs_of_a_seed_see_what_welch_does_not(void) {
    const int64_t seeds[] = {1, 2, 3}, turned[] = {3, 1, 2};
    const double a[] = {0.5, 0.6, 0.7}, b[] = {0.713, 0.511, 0.612}; // b: of 3, 1, 2
    Sample of_a = sample_of(seeds, a, 3), of_b = sample_of(turned, b, 3);
    Contrast contrast = statistic_contrast_samples(&of_a, &of_b);
    // By hand: 0.011, 0.012 and 0.013, whose mean is 0.012 and whose deviation 0.001.
    CHECK_INT(contrast.pairs, 3);
    CHECK_NEAR(contrast.delta, 0.012, 1e-15);
    CHECK_NEAR(contrast.interval, 4.30265273 * 0.001 / sqrt(3), 1e-10);
    CHECK_INT(contrast.likeness, LIKENESS_DIFFERENT);
    Statistic alone_a = statistic_of(a, 3), alone_b = statistic_of(b, 3);
    Contrast welch = statistic_contrast(&alone_a, &alone_b);
    CHECK_INT(welch.likeness, LIKENESS_SAME);
    CHECK_INT(welch.pairs, 0);
    CHECK(welch.interval > 50 * contrast.interval);
}

static void check_is_welch(const Sample *a, const Sample *b) {
    Statistic of_a = statistic_of(a->values, a->count), of_b = statistic_of(b->values, b->count);
    Contrast contrast = statistic_contrast_samples(a, b), welch = statistic_contrast(&of_a, &of_b);
    CHECK_INT(contrast.pairs, 0);
    CHECK_INT(contrast.likeness, welch.likeness);
    CHECK(contrast.delta == welch.delta || (isnan(contrast.delta) && isnan(welch.delta)));
    CHECK(contrast.interval == welch.interval || isnan(welch.interval));
}

static void seeds_that_only_one_side_has_make_it_welchs(void) {
    const int64_t seeds[] = {1, 2, 3}, others[] = {2, 3, 4};
    const double a[] = {0.5, 0.6, 0.7}, b[] = {0.61, 0.712, 0.8};
    Sample of_a = sample_of(seeds, a, 3), fewer = sample_of(seeds + 1, b, 2);
    Sample partly = sample_of(others, b, 3), one = sample_of(seeds, b, 1);
    check_is_welch(&of_a, &fewer);
    check_is_welch(&fewer, &of_a);
    check_is_welch(&of_a, &partly);
    check_is_welch(&one, &one); // of one pair no scatter is known
    Statistic pairs = statistic_of_pairs(&of_a, &partly);
    CHECK_INT(pairs.count, 2); // of seeds 2 and 3: 0.01 and 0.012
    CHECK_NEAR(pairs.mean, 0.011, 1e-15);
    CHECK_NEAR(pairs.interval, 12.7062047 * sqrt(2e-6) / sqrt(2), 1e-9);
}

static void a_seed_that_diverged_leaves_the_pairs_of_the_others(void) {
    const int64_t seeds[] = {1, 2, 3};
    const double a[] = {0.5, 0.6, 0.7};
    static const double ends[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        const double b[] = {0.511, ends[i], 0.713}, lost[] = {0.511, ends[i], ends[i]};
        Sample of_a = sample_of(seeds, a, 3), of_b = sample_of(seeds, b, 3);
        Contrast contrast = statistic_contrast_samples(&of_a, &of_b);
        CHECK_INT(contrast.pairs, 2);
        CHECK_NEAR(contrast.delta, 0.012, 1e-15); // and not the mean of two less that of three
        CHECK_INT(statistic_of_pairs(&of_a, &of_b).not_finite, 1);
        Sample of_lost = sample_of(seeds, lost, 3);
        check_is_welch(&of_a, &of_lost);
        check_is_welch(&of_b, &of_lost);
    }
}

// In binary 0.61 - 0.6 is not 0.71 - 0.7: that is no scatter.
static void pairs_that_all_differ_alike_tell_nothing_of_chance(void) {
    const int64_t seeds[] = {1, 2, 3};
    const double a[] = {0.5, 0.6, 0.7}, b[] = {0.51, 0.61, 0.71};
    Sample of_a = sample_of(seeds, a, 3), of_b = sample_of(seeds, b, 3);
    CHECK_NEAR(statistic_of_pairs(&of_a, &of_b).interval, 0, 0);
    check_is_welch(&of_a, &of_b);
    CHECK_INT(statistic_contrast_samples(&of_a, &of_b).likeness, LIKENESS_SAME);
    Contrast tie = statistic_contrast_samples(&of_a, &of_a);
    CHECK_INT(tie.pairs, 3); // no seed moved at all
    CHECK_NEAR(tie.delta, 0, 0);
    CHECK_NEAR(tie.interval, 0, 0);
    CHECK_INT(tie.likeness, LIKENESS_SAME);
    const double ones[] = {1, 1, 1}, twos[] = {2, 2, 2}; // seeds change nothing here
    Sample of_ones = sample_of(seeds, ones, 3), of_twos = sample_of(seeds, twos, 3);
    check_is_welch(&of_ones, &of_twos);
    CHECK_INT(statistic_contrast_samples(&of_ones, &of_twos).likeness, LIKENESS_DIFFERENT);
}

static void two_pairs_leave_a_wide_interval(void) {
    const int64_t seeds[] = {7, 8};
    const double a[] = {1, 3}, b[] = {2, 4.5}, huge[] = {1e200, -1e200};
    Sample of_a = sample_of(seeds, a, 2), of_b = sample_of(seeds, b, 2);
    Contrast contrast = statistic_contrast_samples(&of_a, &of_b);
    CHECK_INT(contrast.pairs, 2); // 1 and 1.5: the deviation is sqrt(1 / 8)
    CHECK_NEAR(contrast.interval, 12.7062047 * 0.25, 1e-7);
    CHECK_INT(contrast.likeness, LIKENESS_SAME);
    Sample of_huge = sample_of(seeds, huge, 2);
    check_is_welch(&of_a, &of_huge); // squares overflow: nothing is known
}

static void numbers_have_the_digits_that_they_are_good_for(void) {
    static const struct {
        Statistic of;
        const char *text;
    } rows[] = {
        {{.count = 3, .mean = 0.9104, .interval = 0.0023}, "0.9104 +- 0.0023"},
        {{.count = 3, .mean = 1003.4, .interval = 25}, "1003 +- 25"},
        {{.count = 3, .mean = 4e-7, .interval = 1e-8}, "4e-07 +- 1e-08"},
        {{.count = 3, .mean = -0.00333, .interval = 0.74}, "0.00 +- 0.74"},
        {{.count = 3, .mean = 0.00002, .interval = 0.0028}, "0.0000 +- 0.0028"},
        {{.count = 2, .mean = 42, .interval = 0}, "42.00"},
        {{.count = 1, .mean = 0.91, .interval = NAN}, "0.9100"},
        {{.count = 0, .not_finite = 1, .mean = NAN}, "not finite"},
        {{.count = 0, .mean = NAN}, "unknown"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[STATISTIC_TEXT_SIZE];
        CHECK_TEXT(statistic_text(text, &rows[i].of, true), rows[i].text);
    }
}

int main(void) {
    RUN_TEST(numbers_have_the_digits_that_they_are_good_for);
    RUN_TEST(quantiles_are_those_of_the_tables);
    RUN_TEST(an_interval_is_that_of_the_mean);
    RUN_TEST(equal_values_have_no_scatter_whatever_they_round_to);
    RUN_TEST(one_value_has_no_interval_and_none_no_mean);
    RUN_TEST(seeds_decide_what_is_noise);
    RUN_TEST(large_values_are_told_apart_as_small_ones_are);
    RUN_TEST(one_seed_tells_nothing);
    RUN_TEST(equal_numbers_without_scatter_are_the_same);
    RUN_TEST(pairs_of_a_seed_see_what_welch_does_not);
    RUN_TEST(seeds_that_only_one_side_has_make_it_welchs);
    RUN_TEST(a_seed_that_diverged_leaves_the_pairs_of_the_others);
    RUN_TEST(pairs_that_all_differ_alike_tell_nothing_of_chance);
    RUN_TEST(two_pairs_leave_a_wide_interval);
    return test_end();
}
