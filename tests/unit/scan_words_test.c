// What a scan comes down to, in one sentence, whatever its numbers are.
#include "compare/scan.h"

#include <math.h>

#include "number/format.h"
#include "tests/test.h"

enum { UNITS = 6 };

// So many seconds a step in each round, by as large a share more or less.
static void time_steps(ScanTraining *training, double seconds, double scatter) {
    training->seconds = seconds;
    training->round_count = 9;
    for (int i = 0; i < 9; i++)
        training->rounds[i] = seconds * (1 + scatter * ((i * 5) % 9 - 4) / 4);
}

// Four units with long names in fp32, the others in mxfp6_e2m3, and trainings of two policies.
static ScanRecord *some_scan(double above) {
    Error error = {0};
    ScanRecord *scan = scan_record_new(&error);
    CHECK_MESSAGE(scan, "%s", error.text);
    snprintf(scan->formats[scan->format_count++], SCAN_FORMAT_SIZE, "%s",
             format_name(FORMAT_MXFP6_E2M3));
    for (; scan->unit_count < UNITS; scan->unit_count++) {
        const int at = scan->unit_count;
        snprintf(scan->units[at], sizeof scan->units[at], "%050d", at);
        scan->policy[at] = at < 2 ? 1 : 0;
    }
    scan->has_policy = true;
    scan->ended_ms = 1;
    scan->seeds = 3;
    scan->steps = 60;
    scan->within = 0.01;
    scan->training_count = 2;
    scan->trainings[0] = (ScanTraining){.label = "fp32", .is_known = true};
    scan->trainings[1] =
        (ScanTraining){.label = "policy", .is_known = true, .above = above, .interval = above / 2};
    time_steps(&scan->trainings[0], 2, 0);
    time_steps(&scan->trainings[1], 1, 0.04);
    return scan;
}

static void a_verdict_tells_the_policy_and_what_it_costs(void) {
    char text[SCAN_VERDICT_SIZE];
    ScanRecord *scan = some_scan(0.002);
    scan->trainings[1].is_within = true;
    scan_verdict(scan, text);
    CHECK_CONTAINS(text,
                   "in fp32, 0000000000000000000000000000000000000000 in fp32, the other 4 in");
    CHECK_CONTAINS(text, ": 2.00x the speed of fp32 (1.94 to 2.06), loss +0.20 % +- 0.10 % of "
                         "fp32's over 60 steps");
    CHECK_CONTAINS(text, "within the 1 % allowed.");
    scan_record_free(scan);
}

// What holds and gains nothing is no advice.
static void a_policy_that_is_no_faster_is_called_that(void) {
    char text[SCAN_VERDICT_SIZE];
    ScanRecord *scan = some_scan(0.002);
    scan->trainings[1].is_within = true;
    time_steps(&scan->trainings[1], 2 / 0.89, 0.04);
    scan_verdict(scan, text);
    CHECK_CONTAINS(text, ": 0.89x the speed of fp32 (0.86 to 0.92), which gains no time, loss +0");
    scan_record_free(scan);
}

// A third faster in the median, and slower in rounds; or of before, when steps were timed once.
static void what_times_leave_open_is_called_that(void) {
    char text[SCAN_VERDICT_SIZE];
    ScanRecord *scan = some_scan(0.002);
    scan->trainings[1].is_within = true;
    time_steps(&scan->trainings[1], 1.5, 0.8);
    scan_verdict(scan, text);
    CHECK_CONTAINS(text, ": 1.33x the speed of fp32 (0.83 to 3.33), too uncertain to tell whether");
    scan->trainings[1].round_count = 0;
    scan_verdict(scan, text);
    CHECK_CONTAINS(text, ": 1.33x the speed of fp32, too uncertain to tell whether it gains time,");
    scan_record_free(scan);
}

// A loss may end as large as a number can be, and a history may say anything.
static void a_verdict_of_huge_numbers_keeps_to_its_room(void) {
    struct {
        char text[SCAN_VERDICT_SIZE], behind[1024];
    } room;
    ScanRecord *scan = some_scan(1e300);
    memset(room.behind, 'x', sizeof room.behind);
    scan_verdict(scan, room.text);
    CHECK(strlen(room.text) < sizeof room.text);
    for (size_t i = 0; i < sizeof room.behind; i++)
        CHECK(room.behind[i] == 'x');
    scan_record_free(scan);
}

// +108 +- 19 % is beyond 1 %, however wide that is; +0.5 +- 0.9 % may be either.
static void what_lies_clear_of_the_limit_can_be_told(void) {
    static const struct {
        double above, interval;
        ScanOutcome outcome;
    } cases[] = {{1.08, 0.19, SCAN_BEYOND},      {0.005, 0.009, SCAN_OPEN},
                 {-0.0013, 0.0086, SCAN_WITHIN}, {0.012, 0.001, SCAN_BEYOND},
                 {0.0173, 0.0135, SCAN_OPEN},    {0.002, NAN, SCAN_OPEN},
                 {INFINITY, NAN, SCAN_BEYOND},   {NAN, NAN, SCAN_BEYOND}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ScanRecord *scan = some_scan(cases[i].above);
        scan->trainings[1].interval = cases[i].interval;
        CHECK_INT(scan_outcome(scan, &scan->trainings[1]), cases[i].outcome);
        scan_record_free(scan);
    }
}

// By loss and result: beyond by one is beyond, open by one is open.
static void a_result_counts_as_the_loss_does(void) {
    static const struct {
        double above, interval, worse, worse_interval;
        ScanOutcome outcome;
        const char *words;
    } cases[] = {
        {0.002, 0.001, 0.0012, 0.003, SCAN_WITHIN,
         "of fp32's, accuracy 0.12 % worse +- 0.30 %, over 60 steps and 3 seeds, within the 1 %"},
        {0.002, 0.001, -0.004, 0.003, SCAN_WITHIN, ", accuracy 0.40 % better +- 0.30 %, over"},
        {0.002, 0.001, 0.005, 0.02, SCAN_OPEN,
         "3 seeds: whether that is within the 1 % allowed cannot be told."},
        {0.002, 0.02, 0.5, 0.1, SCAN_BEYOND, "accuracy 50.00 % worse +- 10.00 %, over"},
        {0.5, 0.1, 0.005, 0.02, SCAN_BEYOND, "beyond the 1 % allowed."},
        {0.002, 0.001, NAN, NAN, SCAN_BEYOND, ", accuracy not finite, over"},
        {0.002, 0.001, 0, 0, SCAN_WITHIN, ", the same accuracy +- 0.00 %, over"},
        {0, 0, 0, NAN, SCAN_WITHIN, ", the same accuracy, over"}, // of one seed, to the bit
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[SCAN_VERDICT_SIZE];
        ScanRecord *scan = some_scan(cases[i].above);
        ScanTraining *policy = &scan->trainings[1];
        snprintf(scan->metric, sizeof scan->metric, "accuracy");
        policy->interval = cases[i].interval;
        policy->worse = cases[i].worse;
        policy->worse_interval = cases[i].worse_interval;
        CHECK_INT(scan_outcome(scan, policy), cases[i].outcome);
        scan_verdict(scan, text);
        CHECK_CONTAINS(text, cases[i].words);
        scan_record_free(scan);
    }
}

static void give_seeds(ScanTraining *training, int count, double loss, double apart) {
    for (int i = 0; i < count; i++)
        training->seeds[i] = (ScanSeed){.is_known = true,
                                        .loss = loss + apart * i,
                                        .has_result = true,
                                        .result = loss / 2 + apart * i};
}

// Of a loader without an order of its own, and a model that draws nothing: an interval of 0 would
// claim that chance is known.
static void seeds_that_gave_the_same_to_the_bit_tell_nothing_of_chance(void) {
    char text[SCAN_VERDICT_SIZE];
    ScanRecord *scan = some_scan(0.05);
    ScanTraining *base = &scan->trainings[0], *policy = &scan->trainings[1];
    policy->interval = policy->worse_interval = 0;
    give_seeds(base, 3, 2, 0);
    give_seeds(policy, 3, 2.1, 0.001);
    scan_forget_alike(scan, policy); // as where the format rounds at random
    CHECK(!scan_seeds_are_alike(scan, policy) && policy->interval == 0);
    CHECK_INT(scan_outcome(scan, policy), SCAN_BEYOND);
    give_seeds(policy, 3, 2.1, 0);
    CHECK(scan_seeds_are_alike(scan, policy));
    scan_forget_alike(scan, policy);
    CHECK(isnan(policy->interval) && isnan(policy->worse_interval));
    CHECK_INT(scan_outcome(scan, policy), SCAN_OPEN);
    scan_verdict(scan, text);
    CHECK_CONTAINS(text, ", loss +5.00 % of fp32's over 60 steps and 3 seeds that count as one: "
                         "whether that is within the 1 % allowed cannot be told.");
    policy->seeds[2].result += 1e-9;
    CHECK(!scan_seeds_are_alike(scan, policy));
    policy->seeds[1].is_known = policy->seeds[2].is_known = false; // one is no two
    CHECK(!scan_seeds_are_alike(scan, policy));
    scan_record_free(scan);
}

// What breaks it may lie where no layer multiplies: of that no cell tells.
static void what_the_run_said_of_itself_is_in_the_verdict(void) {
    char text[SCAN_VERDICT_SIZE];
    ScanRecord *scan = some_scan(0.002);
    scan->run = 7;
    scan_take_told(scan, "odd_sizes", "head has sizes that no product likes");
    scan_verdict(scan, text);
    CHECK(!strstr(text, "run 7")); // what takes time alone bears on no policy
    scan_take_told(scan, "poisoned_statistics", "running_variance of norm1 stays inf");
    scan_take_told(scan, "flushed", "a later one");
    scan_verdict(scan, text);
    CHECK_CONTAINS(text,
                   " Beside that, run 7 said of itself: running_variance of norm1 stays inf.");
    scan_record_free(scan);
}

// Of few seeds the verdict cannot tell whether the policy holds: then nothing calls it verified.
static void what_cannot_be_told_is_not_called_verified(void) {
    ScanRecord *scan = some_scan(0.002);
    scan->is_final = scan->trainings[1].is_within = true;
    CHECK_TEXT(scan_state_name(scan), "verified");
    CHECK(!scan_unverified(scan));
    scan->trainings[1].interval = 0.09;
    CHECK_TEXT(scan_state_name(scan), "cannot be told");
    CHECK_TEXT(scan_unverified(scan), "cannot be told");
    scan->trainings[1].above = 0.5;
    scan->is_final = false;
    CHECK_TEXT(scan_state_name(scan), "finished");
    CHECK_TEXT(scan_unverified(scan), "beyond what is allowed");
    scan->training_count = 1; // as of --quick
    CHECK_TEXT(scan_unverified(scan), "not trained with");
    scan->ended_ms = 0;
    CHECK_TEXT(scan_unverified(scan), "not finished");
    scan_record_free(scan);
}

static void time_passes(ScanRecord *scan, int format, double seconds, double scatter) {
    ScanTraining rounds;
    time_steps(&rounds, seconds, scatter);
    scan->seconds[format] = seconds;
    scan->pass_round_count[format] = rounds.round_count;
    memcpy(scan->pass_rounds[format], rounds.rounds, sizeof rounds.rounds);
}

// Held against itself it says nothing; what a lower format gains is told, and what is against it.
static void of_fp32_it_is_told_what_speaks_against_a_lower_format(void) {
    static const struct {
        int64_t activations; // of 100 in fp32
        double seconds;      // a pass, of 1
        double step, interval, damage;
        const char *words;
    } cases[] = {
        {58, 1.1, 2, 0.001, 0.1,
         "train in fp32: every layer may go low, in mxfp6_e2m3, with 0.58x the activations, but a "
         "pass has 0.91x the speed of fp32 (0.88 to 0.94)."},
        {58, 1, 2.4, 0.001, 0.1, "0.58x the activations, but a step has 0.83x the speed of fp32 ("},
        {58, 1, 2, 0.09, 0.1, "0.58x the activations, but whether that holds cannot be told."},
        {100, 1, 2, 0.001, 0.1, "low, in mxfp6_e2m3, but none gains time or memory by it here."},
        {100, 1, 2, 0.001, 0.9, "train in fp32: no layer bears one of these formats."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[SCAN_VERDICT_SIZE];
        ScanRecord *scan = some_scan(0);
        scan->tolerance = 0.15;
        scan->activations[0] = cases[i].activations;
        scan->activations[1] = 100;
        time_passes(scan, 0, cases[i].seconds, 0.04);
        time_passes(scan, 1, 1, 0);
        for (int k = 0; k < UNITS; k++) {
            scan->cells[k][0] = (ScanCell){.is_known = true, .damage = cases[i].damage};
            scan->policy[k] = scan->trainings[0].format[k] = scan->trainings[1].format[k] = 1;
        }
        ScanTraining *all = &scan->trainings[scan->training_count++];
        *all = (ScanTraining){.label = "all mxfp6_e2m3", .is_known = true, .above = 0.002};
        all->interval = cases[i].interval;
        time_steps(all, cases[i].step, 0.04);
        scan_verdict(scan, text);
        CHECK_CONTAINS(text, cases[i].words);
        CHECK(!strstr(text, "1.00x"));
        CHECK(!scan_shows_training(scan, &scan->trainings[1]));
        CHECK(scan_shows_training(scan, all));
        scan_record_free(scan);
    }
}

static void what_gains_memory_and_no_time_is_called_that(void) {
    char text[SCAN_VERDICT_SIZE];
    ScanRecord *scan = some_scan(0.002);
    for (int i = 0; i < UNITS; i++)
        scan->policy[i] = 0;
    scan->activations[0] = 66;
    scan->activations[1] = 100;
    time_steps(&scan->trainings[1], 2 / 0.96, 0.01);
    scan_verdict(scan, text);
    CHECK_CONTAINS(text, "which gains no time, with 0.66x the activations, loss");
    scan->trainings[1].format[0] = 1; // of a mixture nobody knows it
    scan_verdict(scan, text);
    CHECK_CONTAINS(text, "which gains no time, loss");
    scan_record_free(scan);
}

// The last two units are norms; what multiplies is in one format.
static ScanRecord *scan_with_norms(void) {
    ScanRecord *scan = some_scan(0.002);
    for (int i = 0; i < UNITS; i++)
        scan->policy[i] = i < UNITS - 2 ? 0 : 1;
    for (int i = UNITS - 2; i < UNITS; i++) {
        snprintf(scan->kept[i], SCAN_KIND_SIZE, "%s", i == UNITS - 1 ? "embedding" : "layer_norm");
        snprintf(scan->rests[i], SCAN_FORMAT_SIZE, "auto");
    }
    return scan;
}

static void norms_and_embeddings_are_told_beside_what_multiplies(void) {
    char text[SCAN_VERDICT_SIZE];
    ScanRecord *scan = scan_with_norms();
    scan->tolerance = 0.15;
    scan_verdict(scan, text);
    CHECK_CONTAINS(text,
                   "every layer that multiplies may go low: all 4 layers in mxfp6_e2m3, norms "
                   "and embeddings as they are: 2.00x");
    for (int i = UNITS - 2; i < UNITS; i++)
        scan->cells[i][0] = (ScanCell){.is_known = true, .damage = 0.1};
    scan_verdict(scan, text);
    CHECK_CONTAINS(text, ", norms and embeddings may too, but stay as they are: 2.00x");
    scan->policy[UNITS - 1] = 0;
    scan_verdict(scan, text);
    CHECK_CONTAINS(text, ", 1 of 2 norms and embeddings too: 2.00x");
    scan->policy[UNITS - 2] = 0;
    scan_verdict(scan, text);
    CHECK_CONTAINS(text, ", all 2 norms and embeddings too: 2.00x");
    scan_record_free(scan);
}

// What is kept in fp32 by its kind goes low where that kind is kept no more.
static void what_must_not_be_kept_is_told(void) {
    char text[SCAN_KEEP_SIZE];
    ScanRecord *scan = scan_with_norms();
    CHECK_TEXT(scan_format_of(scan, UNITS - 1), "auto");
    scan_keep_fp32(scan, SCAN_BY_POLICY, text);
    CHECK_TEXT(text, "");
    scan_keep_fp32(scan, UNITS - 1, text);
    CHECK_TEXT(text, "batch_norm+layer_norm+softmax+losses+functions");
    scan_keep_fp32(scan, 0, text);
    CHECK_TEXT(text, "");
    scan->policy[UNITS - 2] = 0;
    scan_keep_fp32(scan, SCAN_BY_POLICY, text);
    CHECK_TEXT(text, "batch_norm+embedding+softmax+losses+functions");
    scan->options = calloc(1, sizeof *scan->options);
    scan->options[scan->option_count++] = (RecordOption){"keep-fp32", "none"};
    scan_keep_fp32(scan, SCAN_BY_POLICY, text);
    CHECK_TEXT(text, "none");
    scan_record_free(scan);
}

int main(void) {
    RUN_TEST(a_verdict_tells_the_policy_and_what_it_costs);
    RUN_TEST(a_policy_that_is_no_faster_is_called_that);
    RUN_TEST(what_times_leave_open_is_called_that);
    RUN_TEST(a_verdict_of_huge_numbers_keeps_to_its_room);
    RUN_TEST(what_lies_clear_of_the_limit_can_be_told);
    RUN_TEST(a_result_counts_as_the_loss_does);
    RUN_TEST(seeds_that_gave_the_same_to_the_bit_tell_nothing_of_chance);
    RUN_TEST(what_the_run_said_of_itself_is_in_the_verdict);
    RUN_TEST(what_cannot_be_told_is_not_called_verified);
    RUN_TEST(norms_and_embeddings_are_told_beside_what_multiplies);
    RUN_TEST(what_must_not_be_kept_is_told);
    RUN_TEST(of_fp32_it_is_told_what_speaks_against_a_lower_format);
    RUN_TEST(what_gains_memory_and_no_time_is_called_that);
    return test_end();
}
