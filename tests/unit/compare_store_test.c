// Comparing runs of a history: what is read, how far, and what is refused.
#include <unistd.h>

#include "store/worker.h"
#include "tests/folder.h"
#include "tests/test.h"
#include "tests/unit/compare_fixture.h"

static char folder[TEST_FOLDER_SIZE];
static const Planted fp32 = {"one", "fp32", 1, 0.9, 100, 0.1, 0.2, 0.05, 0};
static const Planted bf16 = {"two", "bf16", 1, 0.9, 200, 0.1, 0.2, 0.06, 0};
static const CompareOptions by_step = {.axis = COMPARE_BY_STEP, .grams_per_kwh = NAN};

static Store *fresh_store(void) {
    char path[128];
    Error error;
    snprintf(path, sizeof path, "%s/history.db", folder);
    unlink(path);
    Store *store = store_open(path, STORE_WRITE, &error);
    if (!store)
        fprintf(stderr, "%s\n", error.text);
    return store;
}

static void runs_are_read_with_their_losses(void) {
    Store *store = fresh_store();
    Error error;
    int64_t runs[] = {plant(store, &fp32), plant(store, &bf16)};
    Comparison *comparison = compare_new(store, runs, 2, &by_step, &error);
    CHECK_MESSAGE(comparison != NULL, "%s", error.text);
    if (comparison) {
        CHECK_INT(comparison->losses[0].count, PLANTED_STEPS);
        CHECK_NEAR(comparison->sides[1].speedup, 2, 1e-12);
        CHECK_INT(comparison->sides[1].divergence.different, 1);
        CHECK_TEXT(comparison->groups[1].label, "bf16");
    }
    compare_free(comparison);
    store_close(store);
}

// Longer than what is read at once: the first difference is looked for among all points.
static void the_first_difference_of_long_runs_is_exact(void) {
    Store *store = fresh_store();
    Error error;
    enum { LONG = 30000, DIFFERENT = 23457 };
    int64_t runs[2];
    for (int i = 0; i < 2; i++) {
        Planted planted = fp32;
        planted.name = i ? "b" : "a";
        RunRecord record = planted_record(&planted);
        record.step = LONG;
        CHECK(store_add_run(store, &record, NULL, 0, &error));
        SeriesWriter *writer = series_writer_new(store, record.id, 0, "start", &error);
        CHECK(store_begin(store, &error));
        for (int64_t step = 1; step <= LONG; step++) {
            double loss = planted_loss(&planted, step) + (i && step == DIFFERENT ? 1e-9 : 0);
            CHECK(series_add(writer, "loss", step, loss, &error));
            if (step % 100 == 0) // slow enough for every point to be a row
                CHECK(series_flush(writer, 1e6, &error));
        }
        CHECK(store_commit(store, &error));
        series_writer_free(writer);
        runs[i] = record.id;
        record_clear(&record);
    }
    Comparison *comparison = compare_new(store, runs, 2, &by_step, &error);
    CHECK_MESSAGE(comparison != NULL, "%s", error.text);
    if (comparison) {
        CHECK(comparison->losses[0].count < LONG);
        CHECK_INT(comparison->sides[1].divergence.different, DIFFERENT);
        CHECK_INT(comparison->sides[1].divergence.different_width, 1);
        CHECK_INT(comparison->sides[1].divergence.parted, -1);
    }
    compare_free(comparison);
    store_close(store);
}

static void one_run_is_told_and_the_same_run_twice_is_refused(void) {
    Store *store = fresh_store();
    Error error;
    int64_t run = plant(store, &fp32), runs[] = {run, run}, missing[] = {run, run + 5};
    CHECK(!compare_new(store, runs, 0, &by_step, &error) && error.code == ERROR_USAGE);
    Comparison *alone = compare_new(store, runs, 1, &by_step, &error);
    CHECK_MESSAGE(alone && alone->group_count == 1, "%s", error.text);
    if (alone)
        CHECK_CONTAINS(alone->verdicts[0], "One run is held against nothing");
    compare_free(alone);
    CHECK(!compare_new(store, runs, 2, &by_step, &error) && error.code == ERROR_USAGE);
    CHECK_CONTAINS(error.text, "given twice");
    CHECK(!compare_new(store, missing, 2, &by_step, &error));
    store_close(store);
}

// The first half of the steps takes a second each, the second half two.
static void seconds_follow_the_steps(void) {
    Store *store = fresh_store();
    Error error;
    int64_t runs[] = {plant(store, &fp32), plant(store, &bf16)};
    SeriesWriter *writer = series_writer_new(store, runs[0], 0, "resume", &error);
    for (int64_t step = 1; step <= PLANTED_STEPS; step++)
        CHECK(series_add(writer, "loss", step, 1, &error) &&
              series_add(writer, "step_seconds", step, step <= PLANTED_STEPS / 2 ? 1 : 2, &error));
    CHECK(store_begin(store, &error) && series_flush(writer, 1e6, &error) &&
          store_commit(store, &error));
    series_writer_free(writer);
    CompareOptions by_seconds = {.axis = COMPARE_BY_SECONDS, .grams_per_kwh = NAN};
    Comparison *comparison = compare_new(store, runs, 2, &by_seconds, &error);
    CHECK_MESSAGE(comparison != NULL, "%s", error.text);
    if (comparison) {
        const CompareCurve *curve = &comparison->losses[0];
        CHECK_INT(curve->count, PLANTED_STEPS);
        CHECK_NEAR(curve->x[0], 1, 1e-9);
        CHECK_NEAR(curve->x[PLANTED_STEPS / 2 - 1], PLANTED_STEPS / 2, 1e-9);
        CHECK_NEAR(curve->x[PLANTED_STEPS - 1], 1.5 * PLANTED_STEPS, 1e-9);
        // The other one logged no times: it has its rate.
        CHECK_NEAR(comparison->losses[1].x[PLANTED_STEPS - 1], 2, 1e-9);
    }
    compare_free(comparison);
    store_close(store);
}

// At 100 steps an epoch; accuracy is logged at the end of each, 0.1 a step in hundred.
static int64_t plant_epochs(Store *store, const char *name, RunStatus status, int64_t steps) {
    Error error;
    Planted planted = fp32;
    planted.name = name;
    planted.steps = steps;
    planted.seed = steps; // other bits
    RunRecord record = planted_record(&planted);
    bool is_low = status == RUN_RUNNING;
    record.status = status;
    record.total_steps = 400;
    record.epochs = 4;
    record.epoch = steps / 100;
    snprintf(record.precision, sizeof record.precision, "%s", is_low ? "bf16" : "fp32");
    CHECK(store_add_run(store, &record, NULL, 0, &error));
    SeriesWriter *writer = series_writer_new(store, record.id, 0, "start", &error);
    for (int64_t step = 1; step <= steps; step++) {
        CHECK(series_add(writer, "loss", step, planted_loss(&planted, step), &error));
        if (step % 100 == 0)
            CHECK(
                series_add(writer, "accuracy", step, (double)step / 1000 + 0.01 * is_low, &error));
    }
    record.metrics[0].value = (double)(steps / 100) / 10;
    WorkerId worker;
    CHECK(store_begin(store, &error) && series_flush(writer, 1e6, &error) &&
          store_update_run(store, &record, &error) && store_commit(store, &error));
    if (is_low)
        CHECK(worker_identify(&worker, &error) && store_own_run(store, record.id, &worker, &error));
    series_writer_free(writer);
    int64_t id = record.id;
    record_clear(&record);
    return id;
}

static void results_of_a_run_that_goes_on_are_held_against_the_same_epoch(void) {
    Store *store = fresh_store();
    Error error;
    int64_t runs[] = {plant_epochs(store, "whole", RUN_FINISHED, 400),
                      plant_epochs(store, "live", RUN_RUNNING, 250)};
    Comparison *comparison = compare_new(store, runs, 2, &by_step, &error);
    CHECK_MESSAGE(comparison != NULL, "%s", error.text);
    if (comparison) {
        CHECK_TEXT(comparison->results_at, "epoch 2");
        CHECK_NEAR(comparison->groups[1].metrics[0].value.mean, 0.21, 1e-12);
        CHECK_NEAR(comparison->groups[1].metrics[0].baseline.mean, 0.2, 1e-12);
        CHECK_CONTAINS(comparison->verdicts[0], "its accuracy at epoch 2 is 0.2100 against 0.2000");
        CHECK_CONTAINS(comparison->caveats[1], "results of epoch 2");
    }
    compare_free(comparison);
    // Before it evaluated at all, the other's accuracy stands alone.
    runs[1] = plant_epochs(store, "young", RUN_RUNNING, 50);
    RunRecord record;
    CHECK(store_read_run(store, runs[1], &record, &error));
    CHECK(record_set_metrics(&record, NULL, 0, &error) && store_update_run(store, &record, &error));
    record_clear(&record);
    comparison = compare_new(store, runs, 2, &by_step, &error);
    if (comparison)
        CHECK_CONTAINS(comparison->verdicts[0],
                       "its accuracy is not known, that of fp32 is 0.4000");
    compare_free(comparison);
    store_close(store);
}

int main(void) {
    if (!test_folder_make(folder, sizeof folder))
        return 1;
    RUN_TEST(runs_are_read_with_their_losses);
    RUN_TEST(the_first_difference_of_long_runs_is_exact);
    RUN_TEST(one_run_is_told_and_the_same_run_twice_is_refused);
    RUN_TEST(seconds_follow_the_steps);
    RUN_TEST(results_of_a_run_that_goes_on_are_held_against_the_same_epoch);
    test_folder_remove(folder);
    return test_end();
}
