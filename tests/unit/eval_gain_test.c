// What `mpbench eval` concludes, whatever its numbers are.
#include "cli/train/eval.h"

#include <math.h>

#include "tests/test.h"

enum { ROUNDS = 9, CALLS = 90 };

// A format whose batch takes so many seconds, a share more or less from round to round.
static void add(Evaluations *all, const char *name, double seconds, double scatter,
                double accuracy) {
    Evaluated *added = &all->formats[all->count++];
    snprintf(added->precision, sizeof added->precision, "%s", name);
    added->found = (Evaluation){.metrics = {{.name = "accuracy", .value = accuracy}},
                                .metric_count = 1,
                                .samples = 100,
                                .batch = 10,
                                .weights_memory = all->count == 1 ? 400 : 200};
    EvaluationTime *time = &added->found.times[EVALUATION_BATCH];
    time->round_count = ROUNDS;
    time->count = CALLS;
    for (int i = 0; i < ROUNDS; i++)
        time->rounds[i] = seconds * (1 + scatter * (i - ROUNDS / 2) / (ROUNDS / 2));
}

// bf16 beside fp32, whose batch takes a second.
static Evaluations *beside_fp32(double seconds, double scatter, double accuracy) {
    static Evaluations all;
    all = (Evaluations){.count = 0};
    add(&all, "fp32", 1, 0, 0.9);
    add(&all, "bf16", seconds, scatter, accuracy);
    return &all;
}

static void verdict_over(double seconds, double scatter, double accuracy,
                         char text[EVAL_VERDICT_SIZE]) {
    eval_verdict(beside_fp32(seconds, scatter, accuracy), text, EVAL_VERDICT_SIZE);
}

static void a_format_is_worth_it_where_rounds_agree(void) {
    char text[EVAL_VERDICT_SIZE];
    verdict_over(0.5, 0.1, 0.8995, text);
    CHECK_TEXT(text, "bf16 is worth it: 2.00 times as fast as fp32 (1.86 to 2.16), 0.50 times its "
                     "memory for weights, accuracy 0.05 points worse.");
    verdict_over(1, 0.01, 0.9, text);
    CHECK_CONTAINS(text, "bf16 is worth it: 1.00 times as fast");
    verdict_over(2, 0.1, 0.9, text);
    CHECK_CONTAINS(text, "fp32 stays: of the others, those that lose little are slower");
    verdict_over(0.5, 0.1, 0.8, text);
    CHECK_TEXT(text, "fp32 stays: all others lose more than half a point of accuracy.");
}

static void what_was_lost_is_told_of_the_result_that_leads(void) {
    char text[EVAL_VERDICT_SIZE];
    Evaluations *all = beside_fp32(0.5, 0.1, 0.8);
    for (int i = 0; i < all->count; i++) {
        Evaluation *found = &all->formats[i].found;
        snprintf(found->metrics[0].name, sizeof found->metrics[0].name, "dice");
        snprintf(found->leads, sizeof found->leads, "dice");
    }
    eval_verdict(all, text, sizeof text);
    CHECK_TEXT(text, "fp32 stays: all others lose more than 1 % of dice.");
}

static void where_fp32_gives_no_number_there_is_no_verdict(void) {
    char text[EVAL_VERDICT_SIZE];
    Evaluations *all = beside_fp32(0.5, 0.1, 0.8);
    all->formats[0].found.metrics[0].value = NAN;
    eval_verdict(all, text, sizeof text);
    CHECK_TEXT(text, "");
    for (int i = 0; i < all->count; i++)
        all->formats[i].found.metric_count = 0;
    eval_verdict(all, text, sizeof text);
    CHECK_TEXT(text, "");
}

// Half a point of two hundred samples is one of them.
static void a_difference_of_few_samples_is_told_as_that(void) {
    char text[EVAL_VERDICT_SIZE];
    Evaluations *all = beside_fp32(0.5, 0.1, 0.895);
    all->formats[0].found.samples = all->formats[1].found.samples = 200;
    eval_verdict(all, text, sizeof text);
    CHECK_CONTAINS(text, "accuracy 0.50 points worse (net 1 of 200 samples).");
    all->formats[0].found.samples = all->formats[1].found.samples = 20000;
    eval_verdict(all, text, sizeof text);
    CHECK_CONTAINS(text, "accuracy 0.50 points worse.");
    all->formats[0].found.samples = all->formats[1].found.samples = 130; // 117 of them, and 116.35
    eval_verdict(all, text, sizeof text);
    CHECK_CONTAINS(text, "accuracy 0.50 points worse.");
    all = beside_fp32(0.5, 0.1, 0.9 - 1.0 / 60000); // a sample, and too little to be called worse
    all->formats[0].found.samples = all->formats[1].found.samples = 60000;
    eval_verdict(all, text, sizeof text);
    CHECK_CONTAINS(text, "the same accuracy.");
}

static void another_as_fast_that_loses_less_is_told(void) {
    char text[EVAL_VERDICT_SIZE];
    Evaluations *all = beside_fp32(0.5, 0.1, 0.8969);
    add(all, "fp16", 0.51, 0.1, 0.9);
    all->formats[1].found.weights_memory = 100;
    eval_verdict(all, text, sizeof text);
    CHECK_CONTAINS(text, "bf16 is worth it: ");
    CHECK_CONTAINS(text, "accuracy 0.31 points worse. fp16 cannot be told from bf16 in speed: "
                         "0.50 times fp32's memory for weights, the same accuracy.");
    add(all, "int8", 0.9, 0, 0.91); // better still, and slower
    eval_verdict(all, text, sizeof text);
    CHECK_CONTAINS(text, "weights, the same accuracy.");
    // Each lighter than the one before, and not told from it; the first is faster than the last.
    all->count = 0;
    add(all, "fp32", 1, 0, 0.9);
    add(all, "fp16", 0.41, 0.1, 0.9);
    add(all, "int8", 0.45, 0.1, 0.898);
    add(all, "bf16", 0.5, 0.1, 0.8969);
    all->formats[2].found.weights_memory = 150;
    all->formats[3].found.weights_memory = 100;
    eval_verdict(all, text, sizeof text);
    CHECK_CONTAINS(text, "bf16 is worth it: ");
    CHECK_CONTAINS(text, "int8 cannot be told from bf16 in speed: ");
    all = beside_fp32(0.5, 0.1, 0.8999);
    add(all, "fp16", 0.5, 0.1, 0.9); // by too little to be told
    all->formats[1].found.weights_memory = 100;
    eval_verdict(all, text, sizeof text);
    CHECK_CONTAINS(text, "points worse.");
    CHECK(!strstr(text, "cannot be told"));
}

// Twice as fast in the median, and slower in two of nine rounds: the next call would say otherwise.
static void what_scatters_too_much_cannot_be_told(void) {
    char text[EVAL_VERDICT_SIZE];
    verdict_over(0.7, 0.9, 0.9, text);
    CHECK_TEXT(text, "Whether bf16 is worth it cannot be told: rounds found it 0.85 to 4.40 times "
                     "as fast as fp32; it takes 0.50 times fp32's memory for weights, the same "
                     "accuracy.");
    verdict_over(1.1, 0.5, 0.9, text);
    CHECK_CONTAINS(text, "cannot be told");
    verdict_over(0.7, 0.9, 0.8, text);
    CHECK_CONTAINS(text, "fp32 stays");
}

static void all_that_cannot_be_told_are_named(void) {
    char text[EVAL_VERDICT_SIZE];
    Evaluations *all = beside_fp32(0.7, 0.9, 0.9);
    add(all, "fp16", 0.8, 0.9, 0.9);
    eval_verdict(all, text, sizeof text);
    CHECK_CONTAINS(text, "Whether bf16 is worth it cannot be told: ");
    CHECK_CONTAINS(text, "the same accuracy. Nor can it be told of fp16.");
    add(all, "fp8", 0.8, 0.9, 0.5); // loses too much
    add(all, "int8", 0.9, 0.9, 0.9);
    eval_verdict(all, text, sizeof text);
    CHECK_CONTAINS(text, "the same accuracy. Nor can it be told of fp16 and int8.");
}

// Of two that rounds do not tell apart the lighter, whichever of them was faster this time.
static void formats_that_scatter_do_not_take_turns_to_be_the_best(void) {
    static Evaluations all;
    for (int turn = 0; turn < 2; turn++) {
        all = (Evaluations){.count = 0};
        add(&all, "fp32", 1, 0, 0.9);
        add(&all, "fp16", turn ? 0.45 : 0.5, 0.3, 0.9);
        add(&all, "int8", turn ? 0.5 : 0.45, 0.3, 0.9);
        all.formats[2].found.weights_memory = 100;
        CHECK_TEXT(eval_best(&all)->precision, "int8");
    }
}

static void what_was_not_timed_in_turn_is_not_concluded_from(void) {
    char text[EVAL_VERDICT_SIZE];
    Evaluations *all = beside_fp32(0.5, 0, 0.9);
    all->formats[1].sitting = 1;
    EvalGain gain = eval_gain(all, &all->formats[1]);
    CHECK(gain.speed.faster == 2 && isnan(gain.speed.least) && isnan(gain.speed.most));
    CHECK(!eval_best(all));
    eval_verdict(all, text, sizeof text);
    CHECK_CONTAINS(text, "cannot be told: there was no memory to time it in turn with fp32;");
}

static void what_was_not_timed_has_no_verdict(void) {
    char text[EVAL_VERDICT_SIZE];
    Evaluations *all = beside_fp32(0.5, 0, 0.9);
    for (int i = 0; i < all->count; i++)
        all->formats[i].found.times[EVALUATION_BATCH].round_count = 0;
    eval_verdict(all, text, sizeof text);
    CHECK_TEXT(text, "");
    CHECK(!eval_best(all));
    CHECK(isnan(eval_throughput(&all->formats[0].found)));
}

static void a_format_that_was_not_measured_is_not_judged(void) {
    char text[EVAL_VERDICT_SIZE];
    Evaluations *all = beside_fp32(0.5, 0, 0.9);
    all->formats[1].found.times[EVALUATION_BATCH].round_count = 0;
    eval_verdict(all, text, sizeof text);
    CHECK_TEXT(text, "");
    all = beside_fp32(0.5, 0, 0.8);
    all->formats[1].found.samples = 0;
    eval_verdict(all, text, sizeof text);
    CHECK_TEXT(text, "");
    add(all, "fp16", 0.5, 0, 0.8);
    all->formats[1].found.metrics[0].value = 0.9;
    eval_verdict(all, text, sizeof text);
    CHECK_TEXT(text, "fp32 stays: all others lose more than half a point of accuracy.");
}

static void few_rounds_tell_nothing(void) {
    char text[EVAL_VERDICT_SIZE];
    Evaluations *all = beside_fp32(0.5, 0, 0.9);
    for (int i = 0; i < all->count; i++)
        all->formats[i].found.times[EVALUATION_BATCH].round_count = 2;
    EvalGain gain = eval_gain(all, &all->formats[1]);
    CHECK(gain.speed.faster == 2 && isnan(gain.speed.least));
    eval_verdict(all, text, sizeof text);
    CHECK_CONTAINS(text, "cannot be told: it was timed in too few rounds;");
    CHECK(!eval_best(all));
}

// Under a limit on memory a format may take larger batches, which take longer.
static void batches_of_other_sizes_are_compared_per_sample(void) {
    char text[EVAL_VERDICT_SIZE];
    Evaluations *all = beside_fp32(1.5, 0.1, 0.9);
    all->formats[1].found.batch = 3 * all->formats[0].found.batch;
    for (int sitting = 0; sitting < 2; sitting++) {
        all->formats[1].sitting = sitting;
        CHECK_NEAR(eval_gain(all, &all->formats[1]).speed.faster, 2, 1e-9);
    }
    all->formats[1].sitting = 0;
    eval_verdict(all, text, sizeof text);
    CHECK_CONTAINS(text, "bf16 is worth it: 2.00 times as fast");
}

static void a_busy_machine_hedges(void) {
    char text[EVAL_VERDICT_SIZE];
    Evaluations *all = beside_fp32(0.5, 0, 0.9);
    all->others = 1.5;
    eval_verdict(all, text, sizeof text);
    CHECK_CONTAINS(text, "bf16 is worth it, as far as a busy machine can tell: 2.00 times");
}

int main(void) {
    RUN_TEST(batches_of_other_sizes_are_compared_per_sample);
    RUN_TEST(a_busy_machine_hedges);
    RUN_TEST(a_format_is_worth_it_where_rounds_agree);
    RUN_TEST(what_was_lost_is_told_of_the_result_that_leads);
    RUN_TEST(where_fp32_gives_no_number_there_is_no_verdict);
    RUN_TEST(what_scatters_too_much_cannot_be_told);
    RUN_TEST(all_that_cannot_be_told_are_named);
    RUN_TEST(formats_that_scatter_do_not_take_turns_to_be_the_best);
    RUN_TEST(what_was_not_timed_in_turn_is_not_concluded_from);
    RUN_TEST(what_was_not_timed_has_no_verdict);
    RUN_TEST(a_format_that_was_not_measured_is_not_judged);
    RUN_TEST(a_difference_of_few_samples_is_told_as_that);
    RUN_TEST(another_as_fast_that_loses_less_is_told);
    RUN_TEST(few_rounds_tell_nothing);
    return test_end();
}
