// Runs side by side: groups, labels, what differs, ratios, where they part, and the verdict.
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

static void the_verdict_over_seeds_knows_noise(void) {
    Comparison *comparison = compare_planted(six, 6, COMPARE_BY_STEP);
    CHECK_INT(comparison->verdict_count, 1);
    CHECK_TEXT(comparison->verdicts[0],
               "bf16 is 1.8 times as fast as fp32 (1.75 to 1.85), needs 0.62 of its memory, and "
               "its accuracy is the "
               "same within the noise, pair by pair (0.9100 ± 0.0025 against 0.9110 ± 0.0050).");
    CHECK_INT(comparison->caveat_count, 0);
    compare_free(comparison);
    comparison = compare_planted(six, 4, COMPARE_BY_STEP);
    CHECK_CONTAINS(comparison->verdicts[0], ", and two seeds cannot tell that from chance");
    compare_free(comparison);
    Planted worse[6];
    memcpy(worse, six, sizeof worse);
    for (int i = 1; i < 6; i += 2)
        worse[i].accuracy -= 0.1;
    comparison = compare_planted(worse, 6, COMPARE_BY_STEP);
    CHECK_CONTAINS(comparison->verdicts[0], "its accuracy is lower by 0.1, more than the noise");
    compare_free(comparison);
}

// Accuracies of fp32 scatter by 0.1; bf16's are lower by about 0.012 at each seed.
static void groups_of_the_same_seeds_are_compared_in_pairs(void) {
    static const double fp32[] = {0.5, 0.6, 0.7}, bf16[] = {0.489, 0.588, 0.687};
    char text[COMPARE_TEXT_SIZE];
    Planted runs[6];
    memcpy(runs, six, sizeof runs);
    for (int i = 0; i < 6; i++)
        runs[i].accuracy = i % 2 ? bf16[i / 2] : fp32[i / 2];
    Comparison *comparison = compare_planted(runs, 6, COMPARE_BY_STEP);
    const Contrast *contrast = &comparison->groups[1].metrics[0].contrast;
    CHECK_INT(contrast->pairs, 3);
    CHECK_NEAR(contrast->delta, -0.012, 1e-12);
    CHECK_NEAR(contrast->interval, 4.30265273 * 0.001 / sqrt(3), 1e-9);
    CHECK_CONTAINS(comparison->verdicts[0],
                   "lower by 0.012, more than the noise of the seeds, pair by pair (0.59 ± 0.25");
    compare_say_test(comparison, text);
    CHECK_TEXT(text, "Differences are of runs of one seed, pair by pair.");
    compare_free(comparison);

    runs[5].end = INFINITY; // whose loss and result are not finite: of the others two pairs
    runs[5].accuracy = INFINITY;
    comparison = compare_planted(runs, 6, COMPARE_BY_STEP);
    contrast = &comparison->groups[1].metrics[0].contrast;
    CHECK_INT(contrast->pairs, 2);
    CHECK_NEAR(contrast->delta, -0.0115, 1e-12);
    CHECK_NEAR(contrast->interval, 12.7062047 * 0.0005, 1e-8);
    compare_free(comparison);

    runs[5] = six[5];
    runs[5].seed = 9; // no run of fp32 has it
    comparison = compare_planted(runs, 6, COMPARE_BY_STEP);
    CHECK_INT(comparison->groups[1].metrics[0].contrast.pairs, 0);
    compare_say_test(comparison, text);
    CHECK_CONTAINS(text, "Differences are by Welch's test");
    compare_free(comparison);

    comparison = compare_planted(runs, 2, COMPARE_BY_STEP);
    compare_say_test(comparison, text);
    CHECK_TEXT(text, ""); // one seed: nothing was tested
    compare_free(comparison);
}

// Without noise a planted loss is the same whatever the seed.
static void seeds_that_gave_the_same_to_the_bit_are_one(void) {
    Planted runs[6];
    for (int i = 0; i < 6; i++) {
        runs[i] = six[i];
        runs[i].noise = 0;
        runs[i].end = i % 2 ? 0.21 : 0.2;
        runs[i].accuracy = i % 2 ? 0.90 : 0.91;
    }
    Comparison *comparison = compare_planted(runs, 6, COMPARE_BY_STEP);
    const CompareSide *side = &comparison->groups[1];
    CHECK(side->seeds_are_alike && isnan(side->metrics[0].contrast.interval));
    CHECK_INT(side->metrics[0].contrast.likeness, LIKENESS_UNKNOWN);
    CHECK_INT(side->loss_contrast.likeness, LIKENESS_UNKNOWN);
    CHECK_CONTAINS(comparison->verdicts[0],
                   "its accuracy is 0.9000 against 0.9100, and seeds that change nothing cannot");
    bool is_told = false;
    for (int i = 0; i < comparison->caveat_count; i++)
        is_told |= strstr(comparison->caveats[i], "All seeds of fp32, and all of bf16, gave the "
                                                  "same to the bit") != NULL;
    CHECK(is_told);
    compare_free(comparison);
    runs[3].accuracy = 0.905; // one that differs tells that seeds do something
    comparison = compare_planted(runs, 6, COMPARE_BY_STEP);
    CHECK(!comparison->groups[1].seeds_are_alike);
    CHECK_INT(comparison->groups[1].metrics[0].contrast.likeness, LIKENESS_DIFFERENT);
    compare_free(comparison);
}

static void it_is_told_which_differences_are_not_of_pairs(void) {
    char text[COMPARE_TEXT_SIZE];
    Planted runs[8];
    memcpy(runs, six, sizeof six);
    for (int i = 6; i < 8; i++) {
        runs[i] = six[i - 5];
        runs[i].name = i == 6 ? "c" : "d";
        runs[i].precision = "fp16";
        runs[i].seed = i - 4; // 2 and 3, of fp32's 1 to 3
    }
    Comparison *comparison = compare_planted(runs, 8, COMPARE_BY_STEP);
    compare_say_test(comparison, text);
    CHECK_CONTAINS(text, "pair by pair; by Welch's test where not all seeds are shared, or all "
                         "pairs differ alike: ");
    CHECK_CONTAINS(text, "accuracy of fp16");
    CHECK(!strstr(text, "accuracy of bf16"));
    compare_free(comparison);
}

static void values_that_differ_are_told_by_digits_that_do(void) {
    Planted runs[] = {six[0], six[1]};
    runs[1].end = 0.21; // else all losses are the same, and that is told
    runs[0].accuracy = 17.5128;
    runs[1].accuracy = 17.5110;
    Comparison *comparison = compare_planted(runs, 2, COMPARE_BY_STEP);
    CHECK_CONTAINS(comparison->verdicts[0], "its accuracy is 17.511 against 17.513, ");
    compare_free(comparison);
    runs[1].accuracy = 17.5128 + 1e-7;
    comparison = compare_planted(runs, 2, COMPARE_BY_STEP);
    CHECK_CONTAINS(comparison->verdicts[0], "its accuracy is 17.5128001 against 17.5128000, ");
    compare_free(comparison);
    runs[1].accuracy = 17.6;
    comparison = compare_planted(runs, 2, COMPARE_BY_STEP);
    CHECK_CONTAINS(comparison->verdicts[0], "its accuracy is 17.60 against 17.51, ");
    compare_free(comparison);
}

static void one_seed_cannot_tell(void) {
    Planted runs[] = {six[0], six[1]};
    runs[1].end = 0.21;
    Comparison *comparison = compare_planted(runs, 2, COMPARE_BY_STEP);
    CHECK_CONTAINS(comparison->verdicts[0], "one seed cannot tell");
    CHECK_INT(comparison->groups[1].metrics[0].contrast.likeness, LIKENESS_UNKNOWN);
    compare_free(comparison);
    runs[1].end = 0.9;
    runs[1].accuracy = 0.3;
    comparison = compare_planted(runs, 2, COMPARE_BY_STEP);
    CHECK_CONTAINS(comparison->verdicts[0], "its accuracy is 0.3000 against 0.9110, farther apart "
                                            "than seeds of trainings that go well usually are");
    compare_free(comparison);
    runs[1].end = 1.95; // of 2
    comparison = compare_planted(runs, 2, COMPARE_BY_STEP);
    CHECK_CONTAINS(comparison->verdicts[0], "against 0.9110; bf16 learned next to nothing: its "
                                            "loss went from 1.9");
    CHECK_CONTAINS(comparison->verdicts[0], "; whether other seeds do so too one seed cannot tell");
    compare_free(comparison);
}

// Noticed in that step; `since`, "": an older version did not keep it.
static void add_note(RunRecord *run, int64_t step, const char *since) {
    const RecordDiagnosis note = {.kind = "diverged", .step = step};
    RecordFact fact = {.name = RECORD_FACT_DIVERGED};
    Error error;
    snprintf(fact.value, sizeof fact.value, "%s", since);
    CHECK(record_set_diagnoses(run, &note, 1, &error));
    CHECK(record_set_facts(run, &fact, since[0] ? 1 : 0, &error));
}

// A fork's note of an older version does not know of its parent.
static void a_run_diverged_since_a_step_and_a_fork_when_its_parent_did(void) {
    static const struct {
        const char *since; // of the second run
        int64_t parent;
        const char *told;
    } cases[] = {
        {"120", 0, "; lr=0.2 had diverged by step 120; whether"},
        {"", 0, "; lr=0.2 had diverged by step 300; whether"},
        {"210", 1,
         "; lr=0.2 had diverged by step 100, as run 1 had already when it was forked from that at "
         "step 200; lr=0.1 had diverged by step 100; whether"},
        {"90", 9,
         "; lr=0.2 had diverged by step 90, as run 9 had already when it was forked from that at "
         "step 200; lr=0.1 had diverged by step 100; whether"},
        {"260", 9, "; lr=0.2 had diverged by step 260; lr=0.1 had diverged by step 100; whether"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        Planted planted[] = {six[0], six[0]};
        planted[1].lr = 0.2;
        planted[1].end = 0.4;
        planted[1].accuracy = 0.5;
        RunRecord *runs = planted_records(planted, 2);
        if (cases[c].parent > 0)
            add_note(&runs[0], 120, "100");
        runs[1].parent = cases[c].parent;
        runs[1].parent_step = cases[c].parent > 0 ? 200 : 0;
        add_note(&runs[1], 300, cases[c].since);
        CompareOptions options = {.grams_per_kwh = NAN};
        Error error;
        Comparison *comparison =
            compare_records(runs, planted_curves(planted, 2), 2, &options, &error);
        CHECK_CONTAINS(comparison->verdicts[0], cases[c].told);
        compare_free(comparison);
    }
}

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

static void no_training_parts_before_its_bits_do(void) {
    RunRecord *runs = calloc(2, sizeof *runs);
    CompareCurve *curves = calloc(2, sizeof *curves);
    Error error;
    for (int i = 0; i < 2; i++) {
        runs[i] = planted_record(&six[0]);
        curves[i] = planted_curve(&six[0]);
    }
    for (int i = 1; i < PLANTED_STEPS; i++)
        curves[1].points[i].mean += 100;
    CompareOptions options = {.grams_per_kwh = NAN};
    Comparison *comparison = compare_records(runs, curves, 2, &options, &error);
    const CompareDivergence *divergence = &comparison->sides[1].divergence;
    CHECK_INT(divergence->different, 2);
    CHECK_INT(divergence->parted, 2);
    CHECK(divergence->is_parted_at_end);
    compare_free(comparison);
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
    RUN_TEST(the_verdict_over_seeds_knows_noise);
    RUN_TEST(groups_of_the_same_seeds_are_compared_in_pairs);
    RUN_TEST(seeds_that_gave_the_same_to_the_bit_are_one);
    RUN_TEST(it_is_told_which_differences_are_not_of_pairs);
    RUN_TEST(values_that_differ_are_told_by_digits_that_do);
    RUN_TEST(one_seed_cannot_tell);
    RUN_TEST(a_run_diverged_since_a_step_and_a_fork_when_its_parent_did);
    RUN_TEST(trainings_part_where_the_curves_do);
    RUN_TEST(no_training_parts_before_its_bits_do);
    RUN_TEST(seeds_are_the_noise_where_there_are_several);
    RUN_TEST(seeds_that_are_not_finite_are_told_on_either_side);
    RUN_TEST(a_loss_that_ends_not_finite_parts);
    RUN_TEST(a_loss_that_grows_by_the_step_parts_where_it_does);
    RUN_TEST(a_loss_that_never_was_finite_parts_at_once);
    RUN_TEST(curves_stand_over_the_axis_that_is_asked_for);
    RUN_TEST(an_axis_has_its_name);
    return test_end();
}
