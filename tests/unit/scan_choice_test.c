// What follows from a scan: the format of a unit and the training that is the policy, where times
// scatter.
#include <math.h>

#include "number/format.h"
#include "run/scan.h"
#include "tests/test.h"

enum { FORMATS = 2, BASE = FORMATS };

// A pass of so many seconds in each round, by as large a share more or less.
static void time_format(ScanRecord *scan, int format, double seconds, double scatter) {
    scan->seconds[format] = seconds;
    scan->pass_round_count[format] = 9;
    for (int i = 0; i < 9; i++)
        scan->pass_rounds[format][i] = seconds * (1 + scatter * ((i * 5) % 9 - 4) / 4);
}

// One unit that bears two formats, of which the first does more damage.
static ScanRecord *some_scan(void) {
    Error error = {0};
    ScanRecord *scan = scan_record_new(&error);
    CHECK_MESSAGE(scan, "%s", error.text);
    snprintf(scan->formats[0], SCAN_FORMAT_SIZE, "%s", format_name(FORMAT_BF16));
    snprintf(scan->formats[1], SCAN_FORMAT_SIZE, "%s", format_name(FORMAT_FP16));
    scan->format_count = FORMATS;
    scan->unit_count = 1;
    scan->tolerance = 0.15;
    scan->within = 0.01;
    scan->cells[0][0] = (ScanCell){.is_known = true, .damage = 0.1};
    scan->cells[0][1] = (ScanCell){.is_known = true, .damage = 0.02};
    for (int f = 0; f <= FORMATS; f++) {
        scan->activations[f] = f == BASE ? 200 : 100;
        time_format(scan, f, 1, 0);
    }
    return scan;
}

static void a_format_is_faster_where_rounds_agree(void) {
    ScanRecord *scan = some_scan();
    time_format(scan, 0, 0.5, 0.05);
    CHECK_INT(scan_choose_format(scan, 0), 0);
    scan->cells[0][0].damage = 0.2;
    CHECK_INT(scan_choose_format(scan, 0), 1);
    time_format(scan, 1, 1.5, 0.05);
    CHECK_INT(scan_choose_format(scan, 0), BASE);
    scan_record_free(scan);
}

// Twice as fast in the median, slower in many a round.
static void where_it_cannot_be_told_memory_decides_then_damage(void) {
    ScanRecord *scan = some_scan();
    time_format(scan, 0, 0.7, 0.9);
    CHECK_INT(scan_choose_format(scan, 0), 1);
    scan->activations[0] = 90;
    CHECK_INT(scan_choose_format(scan, 0), 0);
    for (int f = 0; f <= FORMATS; f++)
        scan->activations[f] = 0;
    CHECK_INT(scan_choose_format(scan, 0), BASE);
    scan_record_free(scan);
}

// The first is as fast as the second, the second as the third, and the first not as the third:
// whatever stands first among them, the same is chosen.
static void what_is_chosen_does_not_hang_on_the_order(void) {
    static const double seconds[] = {1, 1.04, 1.08};
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int k = 0; k < 6; k++) {
        ScanRecord *scan = some_scan();
        scan->format_count = 3;
        time_format(scan, 3, 2, 0);
        for (int f = 0; f < 3; f++) {
            const int as = orders[k][f];
            time_format(scan, f, seconds[as], 0);
            scan->activations[f] = 100 - 10 * as; // the slower the lighter
            scan->cells[0][f] = (ScanCell){.is_known = true, .damage = 0.01};
        }
        const int chosen = scan_choose_format(scan, 0);
        CHECK_INT(orders[k][chosen], 1);
        scan_record_free(scan);
    }
}

// What multiplies goes into bf16; beside it a norm that is low, too, takes so many seconds and
// bytes.
static ScanRecord *scan_of_norm(double seconds, int64_t activations) {
    ScanRecord *scan = some_scan();
    scan->unit_count = 2;
    snprintf(scan->kept[1], SCAN_KIND_SIZE, "layer_norm");
    snprintf(scan->rests[1], SCAN_FORMAT_SIZE, "auto");
    time_format(scan, 0, 0.5, 0.05);
    for (int f = 0; f < FORMATS; f++) {
        scan->cells[1][f] = (ScanCell){.is_known = true, .damage = 0.01};
        scan->lowered[f].seconds = seconds;
        scan->lowered[f].activations = activations;
        scan->lowered[f].round_count = 9;
        for (int i = 0; i < 9; i++)
            scan->lowered[f].rounds[i] = seconds * scan->pass_rounds[0][i] / 0.5;
    }
    return scan;
}

static void a_norm_goes_low_where_that_gains(void) {
    static const struct {
        double seconds;
        int64_t activations;
        int format;
    } cases[] = {{0.5, 90, 0}, {0.5, 100, BASE}, {0.3, 100, 0}, {0.8, 50, BASE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ScanRecord *scan = scan_of_norm(cases[i].seconds, cases[i].activations);
        CHECK_INT(scan_choose_format(scan, 0), 0);
        CHECK_INT(scan_choose_format(scan, 1), cases[i].format);
        scan_record_free(scan);
    }
}

static void a_norm_stays_where_it_breaks_or_nothing_else_goes_low(void) {
    ScanRecord *scan = scan_of_norm(0.3, 50);
    scan->cells[1][0].is_broken = true; // in fp16 it would be alone
    CHECK_INT(scan_choose_format(scan, 1), BASE);
    scan->cells[1][0].is_broken = false;
    scan->cells[0][0].damage = scan->cells[0][1].damage = 0.9;
    CHECK_INT(scan_choose_format(scan, 0), BASE);
    CHECK_INT(scan_choose_format(scan, 1), BASE);
    scan_record_free(scan);
}

static ScanTraining *train(ScanRecord *scan, const char *label, double seconds, double scatter,
                           double above, double interval) {
    ScanTraining *training = &scan->trainings[scan->training_count++];
    snprintf(training->label, sizeof training->label, "%s", label);
    training->is_known = true;
    training->is_within = above <= scan->within;
    training->above = above;
    training->interval = interval;
    training->seconds = seconds;
    training->round_count = 9;
    for (int i = 0; i < 9; i++)
        training->rounds[i] = seconds * (1 + scatter * ((i * 5) % 9 - 4) / 4);
    return training;
}

static void a_policy_gives_way_to_what_is_surely_faster_and_holds(void) {
    ScanRecord *scan = some_scan();
    train(scan, "fp32", 1, 0, 0, 0);
    train(scan, "all bf16", 0.5, 0.05, 0.002, 0.001);
    ScanTraining *policy = train(scan, "policy", 0.8, 0.05, 0.001, 0.02);
    CHECK_INT(scan_choose_training(scan), 1);
    scan->trainings[1].interval = 0.02; // it may not hold
    CHECK_INT(scan_choose_training(scan), 2);
    scan->trainings[1].interval = 0.001;
    for (int i = 0; i < 9; i++)
        scan->trainings[1].rounds[i] = i % 2 ? 0.4 : 1.2;
    CHECK_INT(scan_choose_training(scan), 2);
    policy->is_within = false;
    CHECK_INT(scan_choose_training(scan), 0);
    scan_record_free(scan);
}

// Which of the two is faster cannot be told; that the one gains, and holds, can.
static void a_policy_of_which_nothing_is_told_gives_way_to_one_that_is(void) {
    ScanRecord *scan = some_scan();
    train(scan, "fp32", 1, 0, 0, 0);
    train(scan, "all bf16", 0.75, 0.05, 0.002, 0.001);
    ScanTraining *policy = train(scan, "policy", 0.8, 0.3, 0.001, 0.02);
    CHECK_INT(scan_choose_training(scan), 1);
    policy->interval = 0.001;
    CHECK_INT(scan_choose_training(scan), 2);
    scan_record_free(scan);
}

// As where the policy's own formats were slower and it fell back to fp32: what surely holds, is not
// surely slower and takes less memory is as good an answer of steps as of passes.
static void of_trainings_too_memory_decides_where_speed_does_not(void) {
    ScanRecord *scan = some_scan();
    ScanTraining *base = train(scan, "fp32", 1, 0, 0, 0);
    base->format[0] = BASE;
    train(scan, "all bf16", 1.1, 0.4, 0.0002, 0.0002);
    scan->activations[0] = 156;
    CHECK_INT(scan_choose_training(scan), 1);
    ScanTraining *policy = train(scan, "policy", 1, 0, 0, 0);
    policy->format[0] = BASE;
    CHECK_INT(scan_choose_training(scan), 1);
    time_format(scan, 0, 1.2, 0.02); // steps scatter; passes tell that it is slower
    CHECK_INT(scan_choose_training(scan), 2);
    time_format(scan, 0, 1, 0.02);
    scan->trainings[1].interval = 0.2; // it may not hold
    CHECK_INT(scan_choose_training(scan), 2);
    scan->trainings[1].interval = 0.0002;
    scan->activations[0] = 200;
    CHECK_INT(scan_choose_training(scan), 2);
    scan_record_free(scan);
}

// All in one format is as fast and trains as well, and evaluates worse.
static void what_may_evaluate_worse_is_not_preferred(void) {
    ScanRecord *scan = some_scan();
    train(scan, "fp32", 1, 0, 0, 0);
    ScanTraining *low = train(scan, "all bf16", 0.5, 0.05, 0.002, 0.001);
    train(scan, "policy", 0.8, 0.05, 0.001, 0.001);
    snprintf(scan->metric, sizeof scan->metric, "accuracy");
    CHECK_INT(scan_choose_training(scan), 1);
    low->worse = 0.02;
    low->is_within = false;
    CHECK_INT(scan_choose_training(scan), 2);
    low->worse = 0.005;
    low->is_within = true;
    low->worse_interval = 0.02; // it may not hold
    CHECK_INT(scan_choose_training(scan), 2);
    scan_record_free(scan);
}

int main(void) {
    RUN_TEST(a_format_is_faster_where_rounds_agree);
    RUN_TEST(where_it_cannot_be_told_memory_decides_then_damage);
    RUN_TEST(what_is_chosen_does_not_hang_on_the_order);
    RUN_TEST(a_norm_goes_low_where_that_gains);
    RUN_TEST(a_norm_stays_where_it_breaks_or_nothing_else_goes_low);
    RUN_TEST(a_policy_gives_way_to_what_is_surely_faster_and_holds);
    RUN_TEST(a_policy_of_which_nothing_is_told_gives_way_to_one_that_is);
    RUN_TEST(of_trainings_too_memory_decides_where_speed_does_not);
    RUN_TEST(what_may_evaluate_worse_is_not_preferred);
    return test_end();
}
