// `mpbench profile RUN`: what the history holds of where a run's time went, held against the steps
// that were timed, not against all of them.
#include <math.h>

#include "cli/profile/profile.h"
#include "store/layers.h"
#include "store_fixture.h"

enum { STEPS = 400, TIMED = 20, LAYERS = 2 };

// Every 20th step is timed, which makes it take three times as long: 2 ms in "body", 0.4 in "head"
// and 0.6 outside of both. The others take 1 ms.
static int64_t add_timed_run(Store *store, const char *layers_share) {
    RunRecord record = some_run("timed", "bf16");
    RecordLayer layers[LAYERS] = {{.name = "body", .parent = -1, .precision = "bf16"},
                                  {.name = "head", .parent = -1, .precision = "bf16"}};
    RecordFact fact = {.name = "profile.layers"};
    record.step = STEPS;
    CHECK_DONE(record_set_layers(&record, layers, LAYERS, &error));
    if (layers_share) {
        snprintf(fact.value, sizeof fact.value, "%s", layers_share);
        CHECK_DONE(record_set_facts(&record, &fact, 1, &error));
    }
    CHECK_DONE(store_add_run(store, &record, NULL, 0, &error));
    SeriesWriter *writer = series_writer_new(store, record.id, 0, "start", &error);
    for (int64_t step = 1; writer && step <= STEPS; step++) {
        bool is_timed = step % TIMED == 0;
        CHECK_DONE(series_add(writer, "step_seconds", step, is_timed ? 0.003 : 0.001, &error));
        for (int i = 0; i < LAYERS; i++) {
            LayerSample sample = {.step = step, .width = 1, .count = 10, .precision = "bf16"};
            sample.update_ratio = (double)NAN;
            sample.seconds = !is_timed ? (double)NAN : i == 0 ? 0.002 : 0.0004;
            CHECK_DONE(layers_add(writer, i, &sample, &error));
        }
        if (step % 50 == 0)
            CHECK_DONE(store_begin(store, &error) && series_flush(writer, 0.1, &error) &&
                       store_commit(store, &error));
    }
    series_writer_free(writer);
    int64_t run = record.id;
    record_clear(&record);
    return run;
}

static void check_like_with_like(const char *layers_share) {
    Store *store = fresh_store("timed.db");
    RunRecord record = {.id = 0};
    ProfileReport *report = calloc(1, sizeof *report);
    CHECK_DONE(store_read_run(store, add_timed_run(store, layers_share), &record, &error));
    CHECK_DONE(profile_of_record(store, &record, report, &error));
    CHECK_INT(report->row_count, LAYERS);
    CHECK_INT(report->steps, STEPS - 1);
    CHECK_NEAR(report->step_seconds, 0.003, 1e-9);
    CHECK_NEAR(report->between, 0.0006, 1e-9);
    CHECK_NEAR(profile_share(report, report->rows[0].seconds), 2.0 / 3, 1e-6);
    CHECK_NEAR(report->all_seconds, 0.0011, 1e-5); // of all steps, which is told beside it
    profile_report_clear(report);
    free(report);
    record_clear(&record);
    store_close(store);
}

static void layers_are_held_against_the_steps_that_were_timed(void) {
    check_like_with_like("0.8");
}

static void of_older_runs_too(void) {
    check_like_with_like(NULL);
}

int main(void) {
    make_folder();
    atexit(remove_folder);
    RUN_TEST(layers_are_held_against_the_steps_that_were_timed);
    RUN_TEST(of_older_runs_too);
    return test_end();
}
