// What a comparison warns of: readings that mislead, and runs that are no evidence.
#include "compare/private.h"
#include "tests/test.h"
#include "tests/unit/compare_fixture.h"

static void a_run_without_an_end_kept_company_until_it_died(void) {
    static const RunStatus without_end[] = {RUN_RUNNING, RUN_PAUSED, RUN_DEAD};
    for (int s = 0; s < 3; s++) {
        RunRecord *runs = planted_records(six, 2);
        Error error;
        for (int i = 0; i < 2; i++) {
            runs[i].created_ms += 1000 * i;
            runs[i].ended_ms = runs[i].created_ms + 8000;
            runs[i].wall_s = 8;
        }
        runs[0].status = without_end[s];
        runs[0].ended_ms = 0;
        CompareOptions options = {.grams_per_kwh = NAN};
        Comparison *comparison = compare_records(runs, NULL, 2, &options, &error);
        bool is_told = false;
        for (int i = 0; i < comparison->caveat_count; i++)
            is_told |= strstr(comparison->caveats[i], "trained at the same time") != NULL;
        CHECK_MESSAGE(is_told, "%s", run_status_name(without_end[s]));
        compare_free(comparison);
    }
}

// One that trained, rested while another did, and went on.
static void between_its_stretches_a_run_keeps_nobody_company(void) {
    const int64_t began = 1700000000000;
    static const struct {
        RunStatus status;
        int64_t from_ms, to_ms; // of the other, after `began`
        bool is_company;
    } cases[] = {
        {RUN_STOPPED, 2000, 3000, false}, {RUN_STOPPED, 500, 3000, true},
        {RUN_STOPPED, 2000, 5500, true},  {RUN_STOPPED, 7000, 8000, false},
        {RUN_RUNNING, 2000, 3000, false}, {RUN_RUNNING, 60000, 61000, true},
        {RUN_DEAD, 7000, 7500, true}, // of the 4 s that it took, 3 were its last
        {RUN_DEAD, 9000, 9500, false},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        RunRecord *runs = planted_records(six, 2);
        Error error;
        CompareOptions options = {.grams_per_kwh = NAN};
        runs[0].status = cases[c].status;
        runs[0].created_ms = began;
        runs[0].ended_ms = cases[c].status == RUN_STOPPED ? began + 6000 : 0;
        runs[0].wall_s = 4;
        runs[1].created_ms = began + cases[c].from_ms;
        runs[1].ended_ms = began + cases[c].to_ms;
        Comparison *comparison = compare_records(runs, NULL, 2, &options, &error);
        CompareStretches *stretches = &comparison->stretches[0];
        *stretches = (CompareStretches){calloc(2, sizeof *stretches->list), 2};
        stretches->list[0] = (RunStretch){began, began + 1000};
        stretches->list[1] = (RunStretch){began + 5000, began + 5100};
        CHECK_MESSAGE(compare_had_company(comparison, 0) == cases[c].is_company, "case %d", (int)c);
        CHECK_INT(compare_had_company(comparison, 1), compare_had_company(comparison, 0));
        compare_free(comparison);
    }
}

static void a_run_that_counts_no_epochs_is_told_where_they_are_the_axis(void) {
    RunRecord *runs = planted_records(six, 2);
    CompareCurve *curves = planted_curves(six, 2);
    Error error;
    runs[1].epoch = runs[1].epochs = 0;
    CompareOptions options = {.axis = COMPARE_BY_EPOCH, .grams_per_kwh = NAN};
    Comparison *comparison = compare_records(runs, curves, 2, &options, &error);
    CHECK_INT(comparison->caveat_count, 1);
    CHECK_CONTAINS(comparison->caveats[0], "b1 counts no epochs");
    compare_free(comparison);
}

static void speeds_of_short_runs_and_of_company_mislead(void) {
    RunRecord *runs = planted_records(six, 2);
    Error error;
    for (int i = 0; i < 2; i++) {
        runs[i].ended_ms = runs[i].created_ms + 8000;
        runs[i].wall_s = 0.2;
    }
    CompareOptions options = {.grams_per_kwh = NAN};
    Comparison *comparison = compare_records(runs, NULL, 2, &options, &error);
    CHECK_INT(comparison->caveat_count, 2);
    CHECK_CONTAINS(comparison->caveats[0], "a1 and b1 trained at the same time");
    CHECK_CONTAINS(comparison->caveats[1], "took 0.2 s: too short");
    CHECK_CONTAINS(comparison->verdicts[0], "ran too shortly to tell its speed from that of fp32");
    CHECK(isnan(compare_told_speedup(comparison, &comparison->groups[1])));
    CHECK_NEAR(compare_told_speedup(comparison, &comparison->groups[0]), 1, 0);
    compare_free(comparison);
    runs = planted_records(six, 2);
    for (int i = 0; i < 2; i++)
        runs[i].wall_s = i == 0 ? 0.2 : 20; // the one that it is held against
    comparison = compare_records(runs, NULL, 2, &options, &error);
    CHECK_CONTAINS(comparison->verdicts[0], "faster or slower, as fp32 ran too shortly");
    compare_free(comparison);
}

static void a_speed_measured_in_company_only_seemed_so(void) {
    Error error;
    static const struct {
        double faster;
        const char *told;
    } cases[] = {{1, "seemed about as fast as fp32 ("},
                 {1.05, "seemed 1.05 times as fast as fp32 ("},
                 {0.5, "seemed to run at 0.5 of the speed of fp32 ("}};
    for (int c = 0; c < 3; c++) {
        RunRecord *runs = planted_records(six, 2);
        for (int i = 0; i < 2; i++) {
            runs[i].ended_ms = runs[i].created_ms + 8000;
            runs[i].wall_s = 8;
            runs[i].energy_j = 100 * (i + 1);
            runs[i].samples_per_s = i ? 100 * cases[c].faster : 100;
        }
        CompareOptions options = {.grams_per_kwh = NAN};
        Comparison *comparison = compare_records(runs, NULL, 2, &options, &error);
        CHECK_CONTAINS(comparison->verdicts[0], cases[c].told);
        CHECK_CONTAINS(comparison->verdicts[0], "seemed to use 2.0 times its energy");
        compare_free(comparison);
    }
}

static void energy_of_short_runs_is_held_against_nothing(void) {
    RunRecord *runs = planted_records(six, 2);
    Error error;
    for (int i = 0; i < 2; i++) {
        runs[i].energy_j = 100 * (2 - i);
        runs[i].wall_s = 0.5;
    }
    CompareOptions options = {.grams_per_kwh = NAN};
    Comparison *comparison = compare_records(runs, NULL, 2, &options, &error);
    CHECK(!strstr(comparison->verdicts[0], "energy"));
    CHECK(!strstr(comparison->energies[1], "less than"));
    compare_free(comparison);
}

static void energy_of_fewer_steps_is_held_against_nothing(void) {
    Error error;
    for (int fork = 0; fork < 2; fork++) {
        RunRecord *runs = planted_records(six, 2);
        for (int i = 0; i < 2; i++)
            runs[i].energy_j = 100 * (2 - i);
        if (fork)
            runs[1].parent_step = runs[1].step / 2;
        else
            runs[1].step /= 2;
        CompareOptions options = {.grams_per_kwh = NAN};
        Comparison *comparison = compare_records(runs, NULL, 2, &options, &error);
        CHECK(!strstr(comparison->verdicts[0], "energy"));
        CHECK_INT(comparison->energy_count, 2);
        CHECK(!strstr(comparison->energies[1], "less than"));
        compare_free(comparison);
    }
}

// Seeds that came to a target are counted; a time of some of them is not held against another.
static void a_target_is_told_with_its_seeds(void) {
    static const char *const told[] = {
        "fp32, 3 of 3 seeds, came to loss <= 0.5 after 200.0 ± 2.5 steps, 10.0 ± 5.0 s.",
        ("bf16, 3 of 3 seeds, came to loss <= 0.5 after 200.0 ± 2.5 steps, 20.0 ± 5.0 s, 2.00 "
         "times "
         "the time of fp32, more than the noise of the seeds."),
        "bf16, 2 of 3 seeds, came to loss <= 0.5 after",
    };
    char text[COMPARE_TEXT_SIZE];
    Comparison *comparison = compare_planted(six, 6, COMPARE_BY_STEP);
    comparison->options.target = "loss";
    comparison->options.target_value = 0.5;
    for (int g = 0; g < 2; g++) {
        CompareSide *side = &comparison->groups[g];
        const double steps[] = {199, 200, 201}, seconds[] = {8, 10, 12}, slow[] = {18, 20, 22};
        side->target_steps = statistic_of(steps, 3);
        side->target_seconds = statistic_of(g ? slow : seconds, 3);
        side->target_ratio = g ? 2 : 1;
        side->target_contrast.likeness = g ? LIKENESS_DIFFERENT : LIKENESS_UNKNOWN;
        compare_say_target(comparison, g, text);
        CHECK_TEXT(text, told[g]);
    }
    comparison->groups[1].wall_s.mean = 0.5; // of which no speed is told either
    compare_say_target(comparison, 1, text);
    CHECK(!strstr(text, "times the time"));
    comparison->groups[1].wall_s.mean = 8;
    comparison->groups[1].target_seconds = statistic_of(&(double){0.00123}, 1);
    compare_say_target(comparison, 1, text);
    CHECK_CONTAINS(text, " steps, 0.00123 s.");
    comparison->groups[1].target_steps.count = comparison->groups[1].target_seconds.count = 2;
    compare_say_target(comparison, 1, text);
    CHECK_CONTAINS(text, told[2]);
    CHECK(!strstr(text, "times the time"));
    comparison->groups[1].target_seconds = statistic_of(NULL, 0);
    compare_say_target(comparison, 1, text);
    CHECK_CONTAINS(text, " steps; how long that took is not known.");
    comparison->runs[comparison->groups[1].members[0]].parent_step = 100;
    compare_say_target(comparison, 1, text);
    CHECK_CONTAINS(text, "how long is not told of a fork.");
    compare_free(comparison);
}

static void what_misleads_is_said(void) {
    RunRecord *runs = planted_records(six, 2);
    Error error;
    snprintf(runs[1].device_name, sizeof runs[1].device_name, "Another one");
    runs[1].status = RUN_STOPPED;
    runs[1].step = 120;
    runs[1].energy_j = runs[0].energy_j = 3.6e6;
    runs[1].energy_j = 1.8e6;
    CompareOptions options = {.grams_per_kwh = 400};
    Comparison *comparison = compare_records(runs, NULL, 2, &options, &error);
    CHECK_INT(comparison->caveat_count, 3);
    CHECK_CONTAINS(comparison->caveats[0], "not on one machine");
    CHECK_CONTAINS(comparison->caveats[1],
                   "b1 was stopped: its numbers are of its first 120 steps");
    CHECK_CONTAINS(comparison->caveats[2], "between 120 and 400 steps");
    CHECK_NEAR(comparison->groups[0].co2_g.mean, 400, 1e-9);
    CHECK_NEAR(comparison->groups[1].co2_ratio, 0.5, 1e-12);
    CHECK(!comparison->groups[1].divergence.is_known);
    compare_free(comparison);
}

static void a_parameter_is_not_taken_for_what_it_is_called_like(void) {
    static const char *const names[] = {"threads", "device", "machine", "script"};
    static const char *const told[] = {"number of threads", "kind of device", "one machine",
                                       "script's code"};
    Error error;
    for (int n = 0; n < 8; n++) { // the parameter differs, then the thing itself
        const int name = n % 4;
        RunRecord *runs = planted_records(six, 2);
        for (int i = 0; i < 2; i++) {
            RecordParameter parameter = {.kind = RECORD_INTEGER, .integer = n < 4 ? i : 1};
            snprintf(parameter.name, sizeof parameter.name, "%s", names[name]);
            CHECK(record_set_parameters(&runs[i], &parameter, 1, &error));
        }
        if (n >= 4) {
            runs[1].threads += name == 0;
            snprintf(runs[1].device, sizeof runs[1].device, name == 1 ? "gpu" : "cpu");
            if (name == 2)
                snprintf(runs[1].device_name, sizeof runs[1].device_name, "Another one");
            if (name == 3)
                snprintf(runs[1].script_hash, sizeof runs[1].script_hash, "0123");
        }
        CompareOptions options = {.grams_per_kwh = NAN};
        Comparison *comparison = compare_records(runs, NULL, 2, &options, &error);
        CHECK_INT(comparison->caveat_count, n >= 4);
        if (n >= 4)
            CHECK_CONTAINS(comparison->caveats[0], told[name]);
        compare_free(comparison);
    }
}

static void what_energy_was_saved_is_told_in_joules_kwh_and_co2(void) {
    RunRecord *runs = planted_records(six, 2);
    Error error;
    runs[0].energy_j = 3.6e6;
    runs[1].energy_j = 2.7e6;
    CompareOptions options = {.grams_per_kwh = 400};
    Comparison *comparison = compare_records(runs, NULL, 2, &options, &error);
    CHECK_INT(comparison->energy_count, 2);
    CHECK_CONTAINS(
        comparison->energies[1],
        "2.7e+06 J, which is 0.75 kWh and, at 400 g a kWh, 300 g of CO2: 25 % less than");
    CHECK_CONTAINS(comparison->energies[1], ", by 9e+05 J, 0.25 kWh and 100 g of CO2.");
    compare_free(comparison);
}

// At so many watts that somebody stated it is of the time alone.
static void energy_that_is_stated_goes_by_time(void) {
    RunRecord run = {.energy_j = (double)NAN, .wall_s = 10};
    CHECK(isnan(compare_joules(&run, 0)));
    CHECK_NEAR(compare_joules(&run, 36), 360, 1e-9);
    run.energy_j = 5; // measured
    CHECK_NEAR(compare_joules(&run, 36), 5, 0);
}

static void a_run_that_did_not_finish_is_told_in_a_sentence(void) {
    static const struct {
        RunStatus status;
        bool stale;
        const char *told;
    } cases[] = {
        {RUN_RUNNING, false, "b1 still runs: its"}, {RUN_RUNNING, true, "b1 fell silent: its"},
        {RUN_PAUSED, false, "b1 is paused: its"},   {RUN_STOPPED, false, "b1 was stopped: its"},
        {RUN_FAILED, false, "b1 failed: its"},      {RUN_DEAD, false, "b1 died: its"}};
    Error error;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        RunRecord *runs = planted_records(six, 2);
        runs[1].status = cases[c].status;
        runs[1].stale = cases[c].stale;
        CompareOptions options = {.grams_per_kwh = NAN};
        Comparison *comparison = compare_records(runs, NULL, 2, &options, &error);
        CHECK(comparison->caveat_count > 0);
        CHECK_CONTAINS(comparison->caveats[0], cases[c].told);
        compare_free(comparison);
    }
}

static void two_experiments_are_no_evidence_of_precision(void) {
    RunRecord *runs = planted_records(six, 2);
    CompareCurve *curves = planted_curves(six, 2);
    Error error;
    snprintf(runs[1].experiment, sizeof runs[1].experiment, "another");
    CompareOptions options = {.grams_per_kwh = 400};
    Comparison *comparison = compare_records(runs, curves, 2, &options, &error);
    CHECK_INT(comparison->verdict_count, 1);
    CHECK_CONTAINS(comparison->verdicts[0], "are of two experiments");
    CHECK(!strstr(comparison->verdicts[0], "times as fast"));
    CHECK(!comparison->groups[1].divergence.is_known);
    compare_free(comparison);
}

static void of_a_fork_the_costs_are_of_its_own_steps(void) {
    RunRecord *runs = planted_records(six, 2);
    Error error;
    for (int i = 0; i < 2; i++)
        runs[i].steps_per_s = NAN;
    runs[1].parent = runs[0].id;
    runs[1].parent_step = 300;
    runs[1].wall_s = 25; // of 100 of 400 steps
    CHECK_NEAR(compare_axis_of_step(&runs[1], COMPARE_BY_SECONDS, 400), 100, 1e-9);
    CompareOptions options = {.grams_per_kwh = NAN};
    Comparison *comparison = compare_records(runs, NULL, 2, &options, &error);
    CHECK_INT(comparison->caveat_count, 1);
    CHECK_CONTAINS(comparison->caveats[0], "b1 is a fork of run");
    CHECK_CONTAINS(comparison->caveats[0], "those after step 300");
    compare_free(comparison);
}

static void skipped_steps_are_told_as_what_a_format_seems_to_cost(void) {
    Error error;
    CompareOptions options = {.grams_per_kwh = NAN};
    RunRecord *runs = planted_records(six, 2);
    runs[1].skipped = 7 * runs[1].step / 50;
    runs[1].scale_last = 512;
    snprintf(runs[1].scale_rule, sizeof runs[1].scale_rule, "dynamic");
    Comparison *comparison = compare_records(runs, NULL, 2, &options, &error);
    CHECK_INT(comparison->caveat_count, 1);
    CHECK_CONTAINS(comparison->caveats[0], "skipped 14 % of its steps");
    CHECK_CONTAINS(comparison->caveats[0], "updated less often than fp32");
    CHECK_CONTAINS(comparison->caveats[0], "--loss-scale 512, where it ended");
    compare_free(comparison);
    runs = planted_records(six, 2);
    runs[1].skipped = runs[1].step / 100;
    comparison = compare_records(runs, NULL, 2, &options, &error);
    CHECK_INT(comparison->caveat_count, 0);
    compare_free(comparison);
    runs = planted_records(six, 2);
    for (int i = 0; i < 2; i++)
        runs[i].skipped = runs[i].step / 10; // the script's doing
    comparison = compare_records(runs, NULL, 2, &options, &error);
    CHECK_INT(comparison->caveat_count, 0);
    compare_free(comparison);
}

int main(void) {
    RUN_TEST(speeds_of_short_runs_and_of_company_mislead);
    RUN_TEST(a_run_without_an_end_kept_company_until_it_died);
    RUN_TEST(between_its_stretches_a_run_keeps_nobody_company);
    RUN_TEST(a_run_that_counts_no_epochs_is_told_where_they_are_the_axis);
    RUN_TEST(a_speed_measured_in_company_only_seemed_so);
    RUN_TEST(energy_of_short_runs_is_held_against_nothing);
    RUN_TEST(energy_of_fewer_steps_is_held_against_nothing);
    RUN_TEST(a_target_is_told_with_its_seeds);
    RUN_TEST(what_misleads_is_said);
    RUN_TEST(a_parameter_is_not_taken_for_what_it_is_called_like);
    RUN_TEST(what_energy_was_saved_is_told_in_joules_kwh_and_co2);
    RUN_TEST(energy_that_is_stated_goes_by_time);
    RUN_TEST(a_run_that_did_not_finish_is_told_in_a_sentence);
    RUN_TEST(two_experiments_are_no_evidence_of_precision);
    RUN_TEST(of_a_fork_the_costs_are_of_its_own_steps);
    RUN_TEST(skipped_steps_are_told_as_what_a_format_seems_to_cost);
    return test_end();
}
