// The sentence that ends a comparison: what it says of noise, pairs, seeds and runs that diverged.
#include "compare/private.h"
#include "tests/test.h"
#include "tests/unit/compare_fixture.h"

static void the_verdict_over_seeds_knows_noise(void) {
    Comparison *comparison = compare_planted(six, 6, COMPARE_BY_STEP);
    CHECK_INT(comparison->verdict_count, 1);
    CHECK_TEXT(comparison->verdicts[0],
               "bf16 is 1.8 times as fast as fp32 (1.75 to 1.85), needs 0.62 of its memory, and "
               "its accuracy is the "
               "same within the noise: -0.0010 ± 0.0025, pair by pair (0.9100 ± 0.0025 against "
               "0.9110 ± 0.0050).");
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
    CHECK_CONTAINS(comparison->verdicts[0], "its accuracy is lower by 0.1");
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
                   "lower by 0.0120 ± 0.0025, more than the noise of the seeds, pair by pair (0.59 "
                   "± 0.25 against 0.60 ± 0.25)");
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

static void of_a_run_with_one_loss_no_learning_is_told(void) {
    Planted runs[] = {six[0], six[1]};
    runs[1].steps = 1;
    Comparison *comparison = compare_planted(runs, 2, COMPARE_BY_STEP);
    CHECK(!strstr(comparison->verdicts[0], "learned next to nothing"));
    compare_free(comparison);
    runs[1].steps = 150; // of which one was logged
    CompareCurve *curves = planted_curves(runs, 2);
    curves[1].count = 1;
    CompareOptions options = {.grams_per_kwh = NAN};
    Error error;
    RunRecord *records = planted_records(runs, 2);
    records[1].loss_last = records[1].loss_first;
    comparison = compare_records(records, curves, 2, &options, &error);
    CHECK(!strstr(comparison->verdicts[0], "learned next to nothing"));
    compare_free(comparison);
}

static void a_verdict_on_the_outcome_alone_is_a_sentence(void) {
    static const char *const told[] = {
        "bf16: its loss is 0.2021, that of fp32 is not known.",
        "bf16: its loss is not known, that of fp32 is 0.2021.",
    };
    for (int unknown = 0; unknown < 2; unknown++) {
        RunRecord *records = planted_records(six, 2);
        CompareCurve *curves = planted_curves(six, 2);
        Error error;
        for (int i = 0; i < 2; i++) {
            records[i].steps_per_s = records[i].samples_per_s = NAN;
            records[i].memory.peak = RECORD_UNKNOWN;
            CHECK(record_set_metrics(&records[i], NULL, 0, &error));
        }
        records[unknown].has_loss = false;
        curves[unknown].count = 0;
        CompareOptions options = {.grams_per_kwh = NAN};
        Comparison *comparison = compare_records(records, curves, 2, &options, &error);
        CHECK_TEXT(comparison->verdicts[0], told[unknown]);
        compare_free(comparison);
    }
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

static void of_a_run_that_diverged_it_is_told_where_it_ended(void) {
    const RecordDiagnosis note = {.kind = "diverged", .step = 140};
    const RecordFact facts[] = {{RECORD_FACT_DIVERGED, "120"}, {RECORD_FACT_COURSE, "0.0156"}};
    Error error;
    Planted planted[] = {six[0], six[0]};
    planted[1].lr = 0.2;
    planted[1].end = 0.019;
    planted[1].accuracy = 0.5;
    RunRecord *runs = planted_records(planted, 2);
    CHECK(record_set_diagnoses(&runs[1], &note, 1, &error));
    CHECK(record_set_facts(&runs[1], facts, 2, &error));
    CompareOptions options = {.grams_per_kwh = NAN};
    Comparison *comparison = compare_records(runs, planted_curves(planted, 2), 2, &options, &error);
    CHECK_CONTAINS(
        comparison->verdicts[0],
        "; lr=0.2 had diverged by step 120 (a loss of 0.0156 before, 0.0465 in the end); whether");
    compare_free(comparison);
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

int main(void) {
    RUN_TEST(the_verdict_over_seeds_knows_noise);
    RUN_TEST(groups_of_the_same_seeds_are_compared_in_pairs);
    RUN_TEST(seeds_that_gave_the_same_to_the_bit_are_one);
    RUN_TEST(it_is_told_which_differences_are_not_of_pairs);
    RUN_TEST(values_that_differ_are_told_by_digits_that_do);
    RUN_TEST(one_seed_cannot_tell);
    RUN_TEST(of_a_run_with_one_loss_no_learning_is_told);
    RUN_TEST(a_verdict_on_the_outcome_alone_is_a_sentence);
    RUN_TEST(of_a_run_that_diverged_it_is_told_where_it_ended);
    RUN_TEST(a_run_diverged_since_a_step_and_a_fork_when_its_parent_did);
    return test_end();
}
