// Where two trainings part: in their bits, and beyond their noise.
#include "compare/private.h"
#include "tests/test.h"
#include "tests/unit/compare_fixture.h"

static void trainings_part_where_the_curves_do(void) {
    Planted runs[] = {six[0], six[0]};
    runs[1].name = "b";
    runs[1].precision = "bf16";
    runs[1].seed = 7; // other noise about the same curve
    Comparison *comparison = compare_planted(runs, 2, COMPARE_BY_STEP);
    CHECK_INT(comparison->groups[1].divergence.different, 1);
    CHECK_INT(comparison->groups[1].divergence.parted, -1);
    compare_free(comparison);
    runs[1].end = 0.6; // ends above: apart as soon as that is more than the noise
    comparison = compare_planted(runs, 2, COMPARE_BY_STEP);
    int64_t parted = comparison->groups[1].divergence.parted;
    CHECK_MESSAGE(parted > 1 && parted < 100, "parted at %lld", (long long)parted);
    CHECK(comparison->groups[1].divergence.is_parted_at_end);
    CHECK_NEAR(comparison->groups[1].loss_contrast.delta, 0.4, 0.02);
    compare_free(comparison);
}

// Of so many seeds, of which the second side's lie higher from step 2 on, those of the first seed
// from `first` on.
static CompareDivergence divergence_of_seeds(int seeds, int first) {
    RunRecord *runs = calloc((size_t)seeds * 2, sizeof *runs);
    CompareCurve *curves = calloc((size_t)seeds * 2, sizeof *curves);
    Error error;
    for (int i = 0; i < seeds * 2; i++) {
        Planted planted = six[0];
        planted.seed = 1 + i / 2;
        planted.precision = i % 2 ? "bf16" : "fp32";
        runs[i] = planted_record(&planted);
        curves[i] = planted_curve(&planted);
        for (int k = i == 1 ? first - 1 : 1; k < PLANTED_STEPS && i % 2; k++)
            curves[i].points[k].mean += 0.3;
    }
    CompareOptions options = {.grams_per_kwh = NAN};
    Comparison *comparison = compare_records(runs, curves, seeds * 2, &options, &error);
    CHECK_INT(comparison->groups[1].member_count, seeds);
    const CompareDivergence divergence = comparison->groups[1].divergence;
    compare_free(comparison);
    CHECK(divergence.is_parted_at_end);
    CHECK_INT(divergence.different, first);
    return divergence;
}

static void no_training_parts_before_its_bits_do(void) {
    for (int seeds = 1; seeds <= 3; seeds++)
        CHECK_INT(divergence_of_seeds(seeds, 2).parted, 2);
}

static void seeds_part_though_the_first_two_are_the_same_for_long(void) {
    const int64_t parted = divergence_of_seeds(8, 300).parted;
    CHECK_MESSAGE(parted > 0 && parted < 100, "parted at %lld", (long long)parted);
}

static void seeds_are_the_noise_where_there_are_several(void) {
    Planted runs[6];
    memcpy(runs, six, sizeof runs);
    Comparison *comparison = compare_planted(runs, 6, COMPARE_BY_STEP);
    CHECK_INT(comparison->groups[1].divergence.parted, -1);
    compare_free(comparison);
    for (int i = 1; i < 6; i += 2)
        runs[i].end = 0.8;
    comparison = compare_planted(runs, 6, COMPARE_BY_STEP);
    CHECK(comparison->groups[1].divergence.parted > 0);
    CHECK_INT(comparison->groups[1].loss_contrast.likeness, LIKENESS_DIFFERENT);
    compare_free(comparison);
}

static void seeds_that_are_not_finite_are_told_on_either_side(void) {
    const double inf = INFINITY;
    Planted runs[] = {{"a", "fp32", 1, 0.5, 50, 0.1, 0.9, 0.01, 0},
                      {"b", "fp32", 2, inf, 50, 0.1, 0.9, 0.01, 0},
                      {"c", "fp32", 3, inf, 50, 0.1, 0.9, 0.01, 0},
                      {"d", "fp16", 1, 0.5, 50, 0.1, 0.9, 0.01, 0},
                      {"e", "fp16", 2, inf, 50, 0.1, 0.9, 0.01, 0}};
    Comparison *comparison = compare_planted(runs, 5, COMPARE_BY_STEP);
    CHECK_CONTAINS(comparison->verdicts[0], "0.5000 (1 of 2 seeds not finite) against "
                                            "0.5000 (2 of 3 seeds not finite)");
    compare_free(comparison);
    comparison = compare_planted(runs, 3, COMPARE_BY_STEP);
    CHECK_CONTAINS(comparison->verdicts[0], "accuracy 0.5000 (2 of 3 seeds not finite).");
    compare_free(comparison);
}

static void a_loss_that_ends_not_finite_parts(void) {
    RunRecord *runs = calloc(2, sizeof *runs);
    CompareCurve *curves = calloc(2, sizeof *curves);
    Error error;
    for (int i = 0; i < 2; i++) {
        runs[i] = planted_record(&six[0]);
        curves[i] = planted_curve(&six[0]);
    }
    for (int i = 200; i < PLANTED_STEPS; i++)
        curves[1].points[i] = (SeriesPoint){.step = i + 1, .width = 1, .nans = 1};
    CompareOptions options = {.grams_per_kwh = NAN};
    Comparison *comparison = compare_records(runs, curves, 2, &options, &error);
    const CompareDivergence *divergence = &comparison->groups[1].divergence;
    CHECK_INT(divergence->different, 201);
    CHECK_MESSAGE(divergence->parted > 190 && divergence->parted < 215, "parted at %lld",
                  (long long)divergence->parted);
    CHECK_INT(comparison->groups[1].loss.not_finite, 1);
    compare_free(comparison);
}

// Two runs whose losses are `one` and `other` at their first `count` steps.
static CompareDivergence divergence_of(const double *one, const double *other, int count) {
    const double *const losses[] = {one, other};
    RunRecord *runs = calloc(2, sizeof *runs);
    CompareCurve *curves = calloc(2, sizeof *curves);
    Planted planted[] = {six[0], six[1]};
    Error error;
    for (int i = 0; i < 2; i++) {
        planted[i].steps = count;
        runs[i] = planted_record(&planted[i]);
        curves[i] = planted_curve(&planted[i]);
        for (int k = 0; k < count; k++) {
            const double loss = losses[i][k];
            const bool is_finite = isfinite(loss);
            curves[i].points[k] = (SeriesPoint){.step = k + 1,
                                                .width = 1,
                                                .count = is_finite,
                                                .nans = isnan(loss),
                                                .infs = isinf(loss),
                                                .first = loss,
                                                .last = loss,
                                                .min = loss,
                                                .mean = loss,
                                                .max = loss};
        }
    }
    CompareOptions options = {.grams_per_kwh = NAN};
    Comparison *comparison = compare_records(runs, curves, 2, &options, &error);
    const CompareDivergence divergence = comparison->groups[1].divergence;
    compare_free(comparison);
    return divergence;
}

// Its growth is what such a loss scatters by, in each window anew.
static void a_loss_that_grows_by_the_step_parts_where_it_does(void) {
    enum { MOST = 48 };
    static const struct {
        double growth;
        int first, steps; // the first step at which it is other
    } cases[] = {{100, 2, 13}, {100, 2, 40}, {5, 3, 40}, {3, 20, 48}, {1e6, 40, 48}, {100, 3, 5}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        double well[MOST], badly[MOST];
        for (int k = 0; k < cases[c].steps; k++) {
            const int past = k + 2 - cases[c].first;
            well[k] = planted_loss(&six[0], k + 1);
            badly[k] = past > 0 ? well[k] * pow(cases[c].growth, past) : well[k];
        }
        for (int turn = 0; turn < 2; turn++) {
            const CompareDivergence found =
                divergence_of(turn ? badly : well, turn ? well : badly, cases[c].steps);
            const int64_t late = found.parted - cases[c].first;
            CHECK_INT(found.different, cases[c].first);
            CHECK_MESSAGE(late >= 0 && late <= (cases[c].growth > 10 ? 0 : 3),
                          "growth %g from step %d: parted at %lld", cases[c].growth, cases[c].first,
                          (long long)found.parted);
            CHECK(found.is_parted_at_end);
        }
    }
}

// However few steps both have: a run that is not finite ends soon.
static void a_loss_that_never_was_finite_parts_at_once(void) {
    static const int lengths[] = {1, 3, 4, 7, 12};
    double never[12], well[12];
    for (int k = 0; k < 12; k++) {
        never[k] = NAN;
        well[k] = planted_loss(&six[0], k + 1);
    }
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const CompareDivergence found = divergence_of(never, well, lengths[i]);
        CHECK_INT(found.parted, 1);
        CHECK(found.is_parted_at_end);
        CHECK_INT(divergence_of(never, never, lengths[i]).parted, -1);
    }
}

int main(void) {
    RUN_TEST(trainings_part_where_the_curves_do);
    RUN_TEST(no_training_parts_before_its_bits_do);
    RUN_TEST(seeds_part_though_the_first_two_are_the_same_for_long);
    RUN_TEST(seeds_are_the_noise_where_there_are_several);
    RUN_TEST(seeds_that_are_not_finite_are_told_on_either_side);
    RUN_TEST(a_loss_that_ends_not_finite_parts);
    RUN_TEST(a_loss_that_grows_by_the_step_parts_where_it_does);
    RUN_TEST(a_loss_that_never_was_finite_parts_at_once);
    return test_end();
}
