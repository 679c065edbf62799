// Whether the loss of one of two trainings of a seed stays above that of the other.
#include "compare/private.h"
#include "tests/test.h"
#include "tests/unit/compare_fixture.h"

enum { MOST = 1024 };

// Between -1 and 1, of no order.
static double chance(int64_t at) {
    uint64_t x = (uint64_t)at * 0x9e3779b97f4a7c15u;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 32;
    return 2 * ((double)(x >> 11) / 0x1p53) - 1;
}

// What both have: it falls, and goes up and down with the batches.
static void fill_common(double *losses, int count) {
    for (int i = 0; i < count; i++)
        losses[i] = 2.5 + 2 * exp(-i / 40.0) + 0.3 * chance(i + 5000);
}

static CompareCurve curve_of(const double *losses, int count, int width) {
    CompareCurve curve = {.points = calloc((size_t)(count / width + 1), sizeof(SeriesPoint))};
    for (int i = 0; i + width <= count; i += width) {
        double sum = 0;
        for (int k = 0; k < width; k++)
            sum += losses[i + k];
        curve.points[curve.count++] = (SeriesPoint){.step = i + 1,
                                                    .width = width,
                                                    .count = width,
                                                    .first = losses[i],
                                                    .last = losses[i + width - 1],
                                                    .min = sum / width,
                                                    .mean = sum / width,
                                                    .max = sum / width};
    }
    return curve;
}

static CompareDivergence divergence_of(CompareCurve a, CompareCurve b, int64_t seed) {
    const Planted planted[] = {six[0], six[1]};
    RunRecord *runs = planted_records(planted, 2);
    CompareCurve *curves = calloc(2, sizeof *curves);
    Error error;
    curves[0] = a, curves[1] = b;
    runs[1].seed = seed;
    CompareOptions options = {.grams_per_kwh = NAN};
    Comparison *comparison = compare_records(runs, curves, 2, &options, &error);
    const CompareDivergence divergence = comparison->sides[1].divergence;
    compare_free(comparison);
    return divergence;
}

// The difference at each step from `from` on, less than `to`.
static CompareDivergence of_offset(int count, int from, int to, double offset, double scatter,
                                   int64_t seed) {
    double one[MOST], other[MOST];
    fill_common(one, count);
    for (int i = 0; i < count; i++) {
        const bool is_within = i + 1 >= from && i + 1 < to;
        other[i] = one[i] + (is_within ? offset : 0) + scatter * chance(i);
    }
    return divergence_of(curve_of(one, count, 1), curve_of(other, count, 1), seed);
}

// Far less than the loss goes up and down by, but at every step.
static void a_loss_that_stays_above_parts(void) {
    const CompareDivergence above = of_offset(100, 1, MOST, 0.075, 0.025, 1);
    CHECK_INT(above.parted, 1);
    CHECK(above.is_parted_at_end);
    const CompareDivergence below = of_offset(200, 1, MOST, -0.075, 0.025, 1);
    CHECK_INT(below.parted, 1);
    CHECK(below.is_parted_at_end);
    CHECK_INT(of_offset(400, 1, MOST, 0.02, 0, 1).parted, -1); // less than 1 %
    CHECK_INT(of_offset(40, 1, MOST, 0.075, 0.025, 1).parted, -1);
}

static void the_step_from_which_it_does_is_found(void) {
    static const int begins[] = {41, 97, 150, 201, 222};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        const CompareDivergence found = of_offset(300, begins[i], MOST, 0.1, 0.02, 1);
        CHECK_MESSAGE(llabs(found.parted - begins[i]) <= 3, "from step %d: parted at %lld",
                      begins[i], (long long)found.parted);
        CHECK(found.is_parted_at_end);
    }
    const CompareDivergence found = of_offset(300, 41, 161, 0.1, 0.02, 1);
    CHECK(found.parted >= 38 && found.parted <= 44);
    CHECK(!found.is_parted_at_end);
}

// A slower start and a better end: apart all the time, though not on one side.
static void a_loss_that_changes_sides_is_apart_at_the_end(void) {
    double one[MOST], other[MOST];
    fill_common(one, 400);
    for (int i = 0; i < 400; i++)
        other[i] = one[i] + (i < 120 ? 0.1 : -0.1) + 0.02 * chance(i);
    const CompareDivergence found =
        divergence_of(curve_of(one, 400, 1), curve_of(other, 400, 1), 1);
    CHECK_INT(found.parted, 1);
    CHECK(found.is_parted_at_end);
}

static void other_seeds_are_no_pair(void) {
    CHECK_INT(of_offset(400, 1, MOST, 0.075, 0.025, 2).parted, -1);
}

// Trainings of other bits: the difference is on either side for a while.
static void trainings_that_wander_about_each_other_do_not_part(void) {
    for (int draw = 0; draw < 40; draw++) {
        double one[MOST], other[MOST], difference = 0;
        const int count = 100 + 20 * draw;
        fill_common(one, count);
        for (int i = 0; i < count; i++) {
            difference = 0.9 * difference + 0.03 * chance(MOST * (draw + 7) + i);
            other[i] = one[i] + difference + 0.02 * chance(MOST * (draw + 70) + i);
        }
        const CompareDivergence found =
            divergence_of(curve_of(one, count, 1), curve_of(other, count, 1), 1);
        CHECK_MESSAGE(found.parted < 0, "draw %d of %d steps: parted at %lld", draw, count,
                      (long long)found.parted);
    }
}

// Of a fast run the history keeps sums of steps; of the same steps the other may have each.
static void sums_of_steps_are_held_against_the_same_steps(void) {
    double one[MOST], other[MOST];
    fill_common(one, MOST);
    for (int i = 0; i < MOST; i++)
        other[i] = one[i] + 0.075 + 0.025 * chance(i);
    static const int widths[][2] = {{8, 8}, {8, 1}, {1, 8}};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        CompareOffset found;
        CompareCurve a = curve_of(one, MOST, widths[i][0]), b = curve_of(other, MOST, widths[i][1]);
        CHECK(compare_find_offset(&a, &b, &found));
        CHECK_INT(found.since, 1);
        CHECK(found.is_at_end);
        free(a.points);
        free(b.points);
    }
}

static void steps_that_are_not_finite_are_left_out(void) {
    double one[MOST], other[MOST];
    fill_common(one, 200);
    for (int i = 0; i < 200; i++)
        other[i] = one[i] + 0.075 + 0.025 * chance(i);
    CompareCurve a = curve_of(one, 200, 1), b = curve_of(other, 200, 1);
    for (int i = 0; i < 200; i += 10)
        b.points[i] = (SeriesPoint){.step = i + 1, .width = 1, .infs = 1, .mean = NAN};
    CompareOffset found;
    CHECK(compare_find_offset(&a, &b, &found));
    CHECK(found.since > 0 && found.is_at_end);
    b.count = 0;
    CHECK(compare_find_offset(&a, &b, &found));
    CHECK_INT(found.since, -1);
    free(a.points);
    free(b.points);
}

int main(void) {
    RUN_TEST(a_loss_that_stays_above_parts);
    RUN_TEST(the_step_from_which_it_does_is_found);
    RUN_TEST(a_loss_that_changes_sides_is_apart_at_the_end);
    RUN_TEST(other_seeds_are_no_pair);
    RUN_TEST(trainings_that_wander_about_each_other_do_not_part);
    RUN_TEST(sums_of_steps_are_held_against_the_same_steps);
    RUN_TEST(steps_that_are_not_finite_are_left_out);
    return test_end();
}
