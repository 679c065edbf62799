// Runs side by side: groups, labels, what differs, ratios, and what curves stand over.
#include "compare/private.h"
#include "tests/test.h"
#include "tests/unit/compare_fixture.h"

static void runs_that_differ_in_seed_alone_are_one_group(void) {
    Comparison *comparison = compare_planted(six, 6, COMPARE_BY_STEP);
    CHECK_INT(comparison->group_count, 2);
    CHECK_INT(comparison->groups[0].member_count, 3);
    CHECK_INT(comparison->groups[0].members[2], 4);
    CHECK_INT(comparison->groups[1].members[0], 1);
    CHECK_TEXT(comparison->groups[0].label, "fp32");
    CHECK_TEXT(comparison->groups[1].label, "bf16");
    CHECK_NEAR(comparison->groups[1].speedup, 90.0 / 50, 1e-12);
    CHECK_NEAR(comparison->groups[1].memory_ratio, 0.62, 1e-12);
    CHECK(isnan(comparison->groups[1].energy_ratio) && isnan(comparison->groups[1].co2_ratio));
    compare_free(comparison);
}

// The screen gives runs in the order in which they happened to start.
static void fp32_is_the_baseline_where_it_is_preferred(void) {
    Error error;
    Planted planted[] = {six[1], six[0], six[2]};
    for (int prefers = 0; prefers < 2; prefers++) {
        RunRecord *runs = calloc(3, sizeof *runs);
        CompareCurve *curves = calloc(3, sizeof *curves);
        for (int i = 0; i < 3; i++) {
            runs[i] = planted_record(&planted[i]);
            curves[i] = planted_curve(&planted[i]);
        }
        double last = curves[1].points[399].mean;
        CompareOptions options = {.grams_per_kwh = NAN, .prefers_fp32 = prefers};
        Comparison *comparison = compare_records(runs, curves, 3, &options, &error);
        CHECK_TEXT(comparison->groups[0].label, prefers ? "fp32" : "bf16");
        CHECK_TEXT(comparison->runs[0].name, prefers ? "a1" : "b1");
        CHECK_TEXT(comparison->runs[1].name, prefers ? "b1" : "a1");
        CHECK_NEAR(comparison->losses[prefers ? 0 : 1].points[399].mean, last, 0);
        compare_free(comparison);
    }
}

// A profile is a run, too, and of fp32 as often as not.
static void what_has_no_losses_is_no_baseline_beside_what_has(void) {
    static const struct {
        bool has_losses[3]; // of bf16, a profile in fp32, and fp32
        const char *first;
    } cases[] = {{{true, false, true}, "a1"},
                 {{true, false, false}, "b1"},
                 {{false, false, true}, "a1"},
                 {{false, false, false}, "profile"}};
    static const int planted[] = {1, 0, 0};
    for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
        Error error;
        RunRecord *runs = calloc(3, sizeof *runs);
        CompareCurve *curves = calloc(3, sizeof *curves);
        for (int i = 0; i < 3; i++) {
            runs[i] = planted_record(&six[planted[i]]);
            if (cases[at].has_losses[i])
                curves[i] = planted_curve(&six[planted[i]]);
        }
        snprintf(runs[1].name, sizeof runs[1].name, "profile");
        CompareOptions options = {.grams_per_kwh = NAN, .prefers_fp32 = true};
        Comparison *comparison = compare_records(runs, curves, 3, &options, &error);
        CHECK_TEXT(comparison->runs[0].name, cases[at].first);
        compare_free(comparison);
    }
}

// Eight times the batch at a third of the steps trains faster, not slower.
static void speed_is_told_by_samples_where_both_count_them(void) {
    RunRecord *runs = calloc(2, sizeof *runs);
    for (int i = 0; i < 2; i++)
        runs[i] = planted_record(&six[0]);
    runs[1].steps_per_s = 15;
    runs[1].samples_per_s = 8 * 32 * 15;
    Error error;
    CompareOptions options = {.axis = COMPARE_BY_STEP, .grams_per_kwh = NAN};
    Comparison *comparison = compare_records(runs, NULL, 2, &options, &error);
    CHECK_NEAR(comparison->sides[1].speedup, 8 * 15.0 / 50, 1e-12);
    CHECK_CONTAINS(comparison->verdicts[0], "2.4 times as fast");
    compare_free(comparison);
    runs = calloc(2, sizeof *runs);
    for (int i = 0; i < 2; i++)
        runs[i] = planted_record(&six[0]);
    runs[1].steps_per_s = 25;
    runs[1].samples_per_s = NAN;
    comparison = compare_records(runs, NULL, 2, &options, &error);
    CHECK_NEAR(comparison->sides[1].speedup, 0.5, 1e-12);
    compare_free(comparison);
}

// Before its first step a run has shown nothing of what it will need.
static void memory_is_unknown_before_the_first_step(void) {
    RunRecord *runs = calloc(2, sizeof *runs);
    for (int i = 0; i < 2; i++)
        runs[i] = planted_record(&six[0]);
    runs[1].status = RUN_RUNNING;
    runs[1].step = 0;
    runs[1].memory.peak = 3;
    Error error;
    CompareOptions options = {.axis = COMPARE_BY_STEP, .grams_per_kwh = NAN};
    Comparison *comparison = compare_records(runs, NULL, 2, &options, &error);
    CHECK(isnan(comparison->sides[1].memory.mean));
    CHECK(!strstr(comparison->verdicts[0], "memory"));
    compare_free(comparison);
}

static void the_same_seed_again_is_a_group_of_its_own(void) {
    Planted runs[] = {six[0], six[0]};
    runs[1].name = "again";
    Comparison *comparison = compare_planted(runs, 2, COMPARE_BY_STEP);
    CHECK_INT(comparison->group_count, 2);
    CHECK_INT(comparison->difference_count, 0);
    CHECK_TEXT(comparison->groups[1].label, "again");
    CHECK(comparison->groups[1].divergence.is_known);
    CHECK_INT(comparison->groups[1].divergence.different, -1);
    CHECK_INT(comparison->groups[1].divergence.parted, -1);
    CHECK_CONTAINS(comparison->verdicts[0], "the same to the bit");
    compare_free(comparison);
}

static void losses_that_are_not_finite_are_not_called_the_same(void) {
    Planted runs[] = {six[0], six[0]};
    runs[0].end = runs[1].end = NAN;
    runs[1].name = "again";
    Comparison *comparison = compare_planted(runs, 2, COMPARE_BY_STEP);
    CHECK_CONTAINS(comparison->verdicts[0], "its loss is not finite in the end, nor is that of");
    CHECK(!strstr(comparison->verdicts[0], "to the bit"));
    compare_free(comparison);
}

// Of 400 steps the last 40, 361 to 400.
static void the_last_tenth_is_a_tenth(void) {
    static const CompareAxis axes[] = {COMPARE_BY_STEP, COMPARE_BY_EPOCH, COMPARE_BY_SAMPLES};
    Planted runs[] = {six[0], six[1]};
    double sum = 0;
    for (int step = 361; step <= 400; step++)
        sum += planted_loss(&runs[1], step);
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        Comparison *comparison = compare_planted(runs, 2, axes[i]);
        CHECK_NEAR(comparison->sides[1].loss.mean, sum / 40, 1e-12);
        compare_free(comparison);
    }
}

static void only_what_differs_is_listed(void) {
    Planted runs[] = {six[0], six[0]};
    runs[1].name = "b";
    runs[1].lr = 0.01;
    Comparison *comparison = compare_planted(runs, 2, COMPARE_BY_STEP);
    CHECK_INT(comparison->difference_count, 1);
    CHECK_TEXT(comparison->differences[0].name, "lr");
    CHECK_TEXT(comparison->differences[0].values[0], "0.1");
    CHECK_TEXT(comparison->differences[0].values[1], "0.01");
    CHECK_TEXT(comparison->groups[1].label, "lr=0.01");
    compare_free(comparison);
}

static void a_label_says_no_more_than_it_must(void) {
    Planted runs[] = {six[0], six[1], six[1]};
    runs[2].name = "c";
    runs[2].lr = 0.01;
    Comparison *comparison = compare_planted(runs, 3, COMPARE_BY_STEP);
    CHECK_TEXT(comparison->groups[0].label, "fp32");
    CHECK_TEXT(comparison->groups[1].label, "bf16, lr=0.1");
    CHECK_TEXT(comparison->groups[2].label, "bf16, lr=0.01");
    compare_free(comparison);
}

static void layers_that_somebody_set_are_differences(void) {
    RunRecord *runs = calloc(2, sizeof *runs);
    RecordLayer layers[] = {{.name = "head", .parent = -1, .precision = "fp16", .set = "auto"},
                            {.name = "foot", .parent = -1, .precision = "fp16", .set = "auto"}};
    Error error;
    for (int i = 0; i < 2; i++) {
        runs[i] = planted_record(&six[i]);
        snprintf(runs[i].precision, sizeof runs[i].precision, "fp16");
        snprintf(layers[0].set, sizeof layers[0].set, "%s", i ? "fp32" : "auto");
        CHECK(record_set_layers(&runs[i], layers, 2, &error));
    }
    CompareOptions options = {.grams_per_kwh = NAN};
    Comparison *comparison = compare_records(runs, NULL, 2, &options, &error);
    CHECK_INT(comparison->group_count, 2);
    CHECK_TEXT(comparison->groups[0].label, "fp16");
    CHECK_TEXT(comparison->groups[1].label, "fp16 head=fp32");
    CHECK_TEXT(comparison->differences[0].values[0], "");
    compare_free(comparison);
}

static void a_run_of_a_policy_is_called_by_how_many_layers_it_sets(void) {
    Error error = {0};
    RunRecord *runs = calloc(2, sizeof *runs);
    const RecordLayer layers[] = {
        {.name = "conv", .parent = -1, .precision = "fp16", .set = "fp16"},
        {.name = "mix", .parent = -1, .precision = "fp16", .set = "fp16"},
        {.name = "head", .parent = -1, .precision = "fp32", .set = "auto"}};
    CHECK(runs);
    for (int i = 0; i < 2; i++) {
        runs[i] = planted_record(&six[0]);
        snprintf(runs[i].precision, sizeof runs[i].precision, "%s", i ? "fp32" : "fp16");
        CHECK(record_set_layers(&runs[i], layers, i == 1 ? 3 : 0, &error));
    }
    CompareOptions options = {.grams_per_kwh = NAN};
    Comparison *comparison = compare_records(runs, NULL, 2, &options, &error);
    CHECK_MESSAGE(comparison, "%s", error.text);
    CHECK_TEXT(comparison->groups[0].label, "fp16");
    CHECK_TEXT(comparison->groups[1].label, "fp32 +2 layers");
    compare_free(comparison);
}

// A fork of which every layer was set computes in that, whatever it began as.
static void a_run_is_called_by_what_all_its_layers_are_set_to(void) {
    Error error = {0};
    RunRecord *runs = calloc(2, sizeof *runs);
    const RecordLayer layers[] = {
        {.name = "body", .parent = -1, .precision = "fp32", .set = "fp32"},
        {.name = "body.fc", .parent = 0, .precision = "fp32", .set = "auto"}};
    CHECK(runs);
    for (int i = 0; i < 2; i++) {
        runs[i] = planted_record(&six[0]);
        snprintf(runs[i].precision, sizeof runs[i].precision, "fp8");
        CHECK(record_set_layers(&runs[i], layers, i == 1 ? 2 : 0, &error));
    }
    CompareOptions options = {.grams_per_kwh = NAN};
    Comparison *comparison = compare_records(runs, NULL, 2, &options, &error);
    CHECK_MESSAGE(comparison, "%s", error.text);
    CHECK_TEXT(comparison->groups[0].label, "fp8");
    CHECK_TEXT(comparison->groups[1].label, "fp8, all layers fp32");
    compare_free(comparison);
}

// A switch has no value of its own.
static void a_switch_that_one_run_had_is_a_difference(void) {
    Error error = {0};
    RunRecord *runs = calloc(2, sizeof *runs);
    const RecordOption typed = {.name = "no-capture"};
    CHECK(runs);
    for (int i = 0; i < 2; i++) {
        runs[i] = planted_record(&six[0]);
        snprintf(runs[i].precision, sizeof runs[i].precision, "fp8");
        CHECK(record_set_options(&runs[i], &typed, i, &error));
    }
    CompareOptions options = {.grams_per_kwh = NAN};
    Comparison *comparison = compare_records(runs, NULL, 2, &options, &error);
    CHECK_MESSAGE(comparison, "%s", error.text);
    CHECK_INT(comparison->difference_count, 1);
    CHECK_TEXT(comparison->differences[0].name, "no-capture");
    CHECK_TEXT(comparison->groups[0].label, "fp8");
    CHECK_TEXT(comparison->groups[1].label, "no-capture=yes");
    compare_free(comparison);
}

static void curves_stand_over_the_axis_that_is_asked_for(void) {
    Planted runs[] = {six[0], six[1]};
    enum { CELLS = 10 };
    double values[2 * CELLS], last;
    Comparison *comparison = compare_planted(runs, 2, COMPARE_BY_SECONDS);
    compare_align(comparison, CELLS, values, &last);
    CHECK_NEAR(last, PLANTED_STEPS / 50.0, 1e-9);
    CHECK(isfinite(values[CELLS - 1]));
    CHECK(isnan(values[2 * CELLS - 1])); // the faster one ended before
    CHECK(values[CELLS] < values[0]);    // and came further in the first cell
    // At the same time the faster one is further: the loss is taken where both came.
    CHECK(comparison->groups[1].loss_contrast.delta < 0);
    compare_free(comparison);
    static const struct {
        CompareAxis axis;
        double last;
    } axes[] = {{COMPARE_BY_STEP, 400}, {COMPARE_BY_EPOCH, 2}, {COMPARE_BY_SAMPLES, 12800}};
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        comparison = compare_planted(runs, 2, axes[i].axis);
        compare_align(comparison, CELLS, values, &last);
        CHECK_NEAR(last, axes[i].last, 1e-9);
        CHECK_NEAR(values[0], values[CELLS], 1e-9);
        compare_free(comparison);
    }
}

static void an_axis_has_its_name(void) {
    CompareAxis axis;
    CHECK(compare_axis_parse("seconds", &axis) && axis == COMPARE_BY_SECONDS);
    CHECK(!compare_axis_parse("hours", &axis));
    for (int i = 0; i < COMPARE_AXES; i++)
        CHECK(compare_axis_parse(compare_axis_name((CompareAxis)i), &axis) && (int)axis == i);
}

int main(void) {
    RUN_TEST(runs_that_differ_in_seed_alone_are_one_group);
    RUN_TEST(fp32_is_the_baseline_where_it_is_preferred);
    RUN_TEST(what_has_no_losses_is_no_baseline_beside_what_has);
    RUN_TEST(speed_is_told_by_samples_where_both_count_them);
    RUN_TEST(memory_is_unknown_before_the_first_step);
    RUN_TEST(the_same_seed_again_is_a_group_of_its_own);
    RUN_TEST(losses_that_are_not_finite_are_not_called_the_same);
    RUN_TEST(the_last_tenth_is_a_tenth);
    RUN_TEST(only_what_differs_is_listed);
    RUN_TEST(a_label_says_no_more_than_it_must);
    RUN_TEST(layers_that_somebody_set_are_differences);
    RUN_TEST(a_run_of_a_policy_is_called_by_how_many_layers_it_sets);
    RUN_TEST(a_run_is_called_by_what_all_its_layers_are_set_to);
    RUN_TEST(a_switch_that_one_run_had_is_a_difference);
    RUN_TEST(curves_stand_over_the_axis_that_is_asked_for);
    RUN_TEST(an_axis_has_its_name);
    return test_end();
}
