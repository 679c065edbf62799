// A loss that leaves its course is told, with the layer whose gradients grew first; noise is not.
#include "tests/unit/run_fixture.h"

static void begin(void) {
    bool done = model_open(&(RunOptions){.device = "ref", .seed = 1, .precision = "fp32"});
    model_must(done && run_configure(model.run, "tiny", "fp32", NULL, 0, &error) && model_build());
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
    CHECK_CONTAINS(diagnosis ? diagnosis->text : "", "over 10 times that since step 151;");
    CHECK_CONTAINS(diagnosis ? diagnosis->text : "",
                   "gradients of fc.weight were the first to grow, 20 times theirs at step 151");
    CHECK_CONTAINS(diagnosis ? diagnosis->text : "", "`mpbench fork tiny --at 76`");
    model_close();
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

int main(void) {
    RUN_TEST(a_loss_that_stays_far_above_its_course_is_told);
    RUN_TEST(a_spike_that_passes_is_not_told);
    RUN_TEST(a_loss_that_rises_slowly_is_not_told);
    return test_end();
}
