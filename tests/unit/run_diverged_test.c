// A loss that leaves its course is told, with the layer whose gradients grew first; noise is not.
#include "run/run_private.h"
#include "tests/unit/run_fixture.h"

static void begin_in(const char *precision, const char *recipe) {
    bool done = model_open(
        &(RunOptions){.device = "ref", .seed = 1, .precision = precision, .recipe = recipe});
    model_must(done && run_configure(model.run, "tiny", "fp32", NULL, 0, &error) && model_build());
}

static void begin(void) {
    begin_in("fp32", NULL);
}

// So many steps whose gradient is x, and whose loss is a half of it or less.
static void train(int steps, double x) {
    bool stop;
    for (int i = 0; i < steps; i++)
        CHECK_MESSAGE(model_step(x, false, &stop), "%s", error.text);
}

static const RecordDiagnosis *told(void) {
    for (int i = 0; i < model.run->diagnosis_count; i++)
        if (strcmp(model.run->diagnoses[i].kind, "diverged") == 0)
            return &model.run->diagnoses[i];
    return NULL;
}

static void a_loss_that_stays_far_above_its_course_is_told(void) {
    begin();
    train(150, 0.1);
    train(20, 2); // the loss of each is there at the end of the next
    CHECK(!told());
    train(1, 2);
    const RecordDiagnosis *diagnosis = told();
    CHECK(diagnosis);
    CHECK_TEXT(diagnosis ? diagnosis->layer : "", "fc");
    CHECK_CONTAINS(diagnosis ? diagnosis->text : "",
                   "over 10 times that from step 151 on, 20 times in a row;");
    CHECK_CONTAINS(diagnosis ? diagnosis->text : "",
                   "gradients of fc.weight were the first to grow, 20 times theirs at step 151");
    CHECK_CONTAINS(diagnosis ? diagnosis->text : "", "`mpbench fork tiny --at 76`");
    model_close();
}

// Larger scales do not avert it, and what is in fp32 already has no wider format.
static void what_is_advised_may_help(void) {
    static const struct {
        const char *precision, *recipe, *changes;
    } cases[] = {
        {"fp32", NULL, "with one change: a lower rate"},
        {"bf16", NULL, "with one change: --layer fc=fp32, a lower rate"},
        {"mxfp4", "scales=floor",
         "with one change: -p bf16, --layer fc=fp32, a lower rate (try one at a time, in this "
         "order)"},
        {"mxfp4", "norms=scaled", "with one change: --recipe norms=own, --layer fc=fp32, a"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_in(cases[i].precision, cases[i].recipe);
        train(150, 0.1);
        train(21, 2);
        CHECK_CONTAINS(told() ? told()->text : "", cases[i].changes);
        model_close();
    }
}

// A fork of a run with the longest name, by the longest change. Its parent left its course by
// itself and ended; or it ended before, and nobody knows.
static void of_a_fork_all_is_told_to_the_end(void) {
    static const char name[] = "a-name-of-as-many-letters-as-a-name-of-a-run-has-room-for-62-63";
    static const struct {
        int64_t diverged;
        const char *middle, *end;
    } cases[] = {
        {152,
         "; run 123456789, that it was forked from at step 20, left 19 steps earlier without "
         "--recipe backward=bf16",
         "a lower rate (try one at a time, in this order)"},
        {0, ": `mpbench fork a-name",
         "; run 123456789, that it was forked from at step 20, ended at step 153, and does not "
         "tell whether --recipe backward=bf16,scales=floor,norms=scaled --layer block1.norm=bf16 "
         "--set lr=0.00600001 did it"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        RunPast past = {.ancestors = {{.run = 123456789, .until = 1000}},
                        .count = 1,
                        .change = "--recipe backward=bf16,scales=floor,norms=scaled --layer "
                                  "block1.norm=bf16 --set lr=0.00600001",
                        .parent_step = 153,
                        .parent_diverged = cases[i].diverged};
        model_must(strlen(name) == RUN_NAME_SIZE - 1 &&
                   model_open(&(RunOptions){.device = "ref",
                                            .seed = 1,
                                            .precision = "mxfp4",
                                            .recipe = "norms=scaled",
                                            .name = name,
                                            .past = &past}) &&
                   run_configure(model.run, "tiny", "fp32", NULL, 0, &error) && model_build());
        model.run->forked_at = 20;
        train(150, 0.1);
        train(21, 2);
        const char *text = told() ? told()->text : "";
        const size_t length = strlen(text), end = strlen(cases[i].end);
        CHECK_CONTAINS(text, cases[i].middle);
        CHECK_TEXT(text + (length > end ? length - end : 0), cases[i].end);
        model_close();
    }
}

static void a_spike_that_passes_is_not_told(void) {
    begin();
    train(150, 0.1);
    for (int i = 0; i < 5; i++) {
        train(19, 2);
        train(1, 0.1);
    }
    CHECK(!told());
    model_close();
}

// What becomes usual is no divergence.
static void a_loss_that_rises_slowly_is_not_told(void) {
    begin();
    double x = 0.01;
    for (int i = 0; i < 300; i++, x *= 1.02)
        train(1, x);
    CHECK(!told());
    model_close();
}

// Of few losses it takes more to be sure; there is no step to fork from but the beginning.
static void a_loss_that_leaves_its_course_at_once_is_told(void) {
    begin();
    train(2, 0.001);
    train(21, 0.5);
    CHECK_CONTAINS(told() ? told()->text : "", "over 100 times that from step 3 on");
    CHECK_CONTAINS(told() ? told()->text : "", ": begin again with one change: a lower rate");
    model_close();
}

// Each loss twice the one before: no step is a jump.
static void a_loss_that_grows_from_the_beginning_on_is_told(void) {
    begin();
    double x = 1e-12;
    for (int i = 0; i < 36; i++, x *= 2)
        train(1, x);
    CHECK(told());
    model_close();
}

static void first_losses_that_spike_or_fall_are_not_told(void) {
    begin();
    train(1, 0.001);
    train(19, 0.5); // as much as a warm-up does
    train(20, 0.001);
    for (double x = 1; x > 1e-6; x /= 2)
        train(1, x);
    train(40, 1e-5);
    CHECK(!told());
    model_close();
}

static void losses_that_change_their_sign_are_not_told(void) {
    begin();
    train(3, -1);
    train(1, 1e-4);
    train(60, 1);
    CHECK(!told());
    model_close();
}

// Fewer losses than are told of as they come: how they end is known when the run does.
static void a_short_run_that_ends_while_its_loss_grows_is_told(void) {
    begin();
    double x = 0.01;
    train(2, x);
    for (int i = 0; i < 8; i++, x *= 2)
        train(1, x);
    CHECK(!told());
    run_finish(model.run, NULL);
    CHECK_CONTAINS(told() ? told()->text : "", "the loss grew in each step from 4 on, from ");
    CHECK_CONTAINS(told() ? told()->text : "",
                   "until the run ended: begin again with one change: a lower rate");
    model_close();
}

static void a_loss_that_is_not_told_in_each_step_grew_from_its_own_on(void) {
    begin();
    RunState *state = (RunState *)model.run;
    double x = 0.01;
    for (int step = 10; step <= 80; step += 10, x *= step > 40 ? 3 : 1)
        run_check_loss(state, "loss", x, step);
    run_end_loss(state);
    CHECK_CONTAINS(told() ? told()->text : "",
                   "the loss grew from step 50 on, whenever it was logged, from 0.01 to 0.81, ");
    model_close();
}

static void a_short_run_that_spikes_is_not_told(void) {
    static const double ends[][6] = {{0.01, 0.01, 0.01, 2, 2, 2}, // at once, to where it stays
                                     {0.01, 0.02, 0.05, 0.2, 0.4, 0.1},    // and it falls again
                                     {0.1, 0.11, 0.12, 0.13, 0.14, 0.15}}; // as noise does
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
        begin();
        for (int i = 0; i < 6; i++)
            train(1, ends[k][i]);
        run_finish(model.run, NULL);
        CHECK_MESSAGE(!told(), "%zu: %s", k, told()->text);
        model_close();
    }
}

int main(void) {
    RUN_TEST(a_short_run_that_ends_while_its_loss_grows_is_told);
    RUN_TEST(a_loss_that_is_not_told_in_each_step_grew_from_its_own_on);
    RUN_TEST(a_short_run_that_spikes_is_not_told);
    RUN_TEST(a_loss_that_leaves_its_course_at_once_is_told);
    RUN_TEST(a_loss_that_grows_from_the_beginning_on_is_told);
    RUN_TEST(first_losses_that_spike_or_fall_are_not_told);
    RUN_TEST(losses_that_change_their_sign_are_not_told);
    RUN_TEST(a_loss_that_stays_far_above_its_course_is_told);
    RUN_TEST(what_is_advised_may_help);
    RUN_TEST(of_a_fork_all_is_told_to_the_end);
    RUN_TEST(a_spike_that_passes_is_not_told);
    RUN_TEST(a_loss_that_rises_slowly_is_not_told);
    return test_end();
}
