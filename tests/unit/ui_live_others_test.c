// The live screen: which other run it draws, compares with and holds speed and memory against.
#include "store/twin.h"
#include "ui_live_fixture.h"

typedef struct Other {
    const char *precision, *layers; // of all its layers
    RunStatus status;
    int64_t batch, seed;
} Other;

static int64_t add_other(Store *store, const Other *other) {
    RunRecord record = some_run("net", other->precision);
    RecordLayer layer = {.name = "head", .parent = -1, .set = "auto"};
    RecordParameter batch = {.name = "batch", .kind = RECORD_INTEGER, .integer = other->batch};
    snprintf(layer.precision, sizeof layer.precision, "%s", other->layers);
    record.status = other->status;
    record.seed = other->seed;
    record.step = 10;
    record.samples_per_s = 100;
    record.wall_s = 10;
    CHECK_DONE(record_set_layers(&record, &layer, 1, &error) &&
               record_set_parameters(&record, &batch, 1, &error) &&
               store_add_run(store, &record, NULL, 0, &error));
    int64_t id = record.id;
    record_clear(&record);
    return id;
}

// The last of the runs is looked at.
static void only_comparable_runs_are_chosen(void) {
    static const struct {
        const char *why;
        Other runs[4];
        int64_t ghost, full; // 0: none
    } cases[] = {
        {"the other precision of the same parameters",
         {{"fp32", "fp32", RUN_FINISHED, 32, 1}, {"fp16", "fp16", RUN_FINISHED, 32, 1}},
         1,
         1},
        {"the latest of them",
         {{"fp32", "fp32", RUN_FINISHED, 32, 1},
          {"fp32", "fp32", RUN_FINISHED, 32, 1},
          {"fp16", "fp16", RUN_FINISHED, 32, 1}},
         2,
         2},
        {"what was broken off is none, nor what has other parameters",
         {{"fp32", "fp32", RUN_STOPPED, 32, 1},
          {"fp32", "fp32", RUN_FAILED, 32, 1},
          {"fp32", "fp32", RUN_FINISHED, 64, 1},
          {"fp16", "fp16", RUN_FINISHED, 32, 1}},
         0,
         0},
        {"another precision before the same one",
         {{"bf16", "bf16", RUN_FINISHED, 32, 2},
          {"fp16", "fp16", RUN_FINISHED, 32, 1},
          {"fp16", "fp16", RUN_FINISHED, 32, 1}},
         1,
         0},
        {"the same precision where there is no other",
         {{"fp16", "fp16", RUN_FINISHED, 32, 2}, {"fp16", "fp16", RUN_FINISHED, 32, 1}},
         1,
         0},
        {"a run all in fp32 is not held against fp32",
         {{"fp32", "fp32", RUN_FINISHED, 32, 1}, {"fp16", "fp32", RUN_FINISHED, 32, 1}},
         1,
         0},
        {"a run with layers in fp16 is no fp32 run",
         {{"fp32", "fp16", RUN_FINISHED, 32, 1}, {"fp16", "fp16", RUN_FINISHED, 32, 1}},
         1,
         0},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        Store *store = fresh_store("history.db");
        int64_t run = 0;
        for (int i = 0; i < 4 && cases[c].runs[i].precision; i++)
            run = add_other(store, &cases[c].runs[i]);
        Ui *ui = open_screen(store, run);
        const LiveData *data = &live_of(ui)->data;
        CHECK_MESSAGE(data->ghost.id == cases[c].ghost, "%s: #%lld", cases[c].why,
                      (long long)data->ghost.id);
        CHECK_MESSAGE(data->full.id == cases[c].full, "%s: fp32 #%lld", cases[c].why,
                      (long long)data->full.id);
        const char *text = draw_screen(ui, 200, 60, false);
        CHECK_CONTAINS(text, "vs fp32");
        CHECK((strstr(text, "1.00× of #") != NULL) == (cases[c].full != 0));
        screen_live.request(ui, REQUEST_COMPARE);
        CHECK_INT(compared_count, cases[c].ghost ? 2 : 0);
        CHECK(compared_count > 0 || strstr(said, "choose others at home"));
        close_screen(ui);
        store_close(store);
    }
}

static void a_twin_is_chosen_before_all_others(void) {
    static const Other runs[] = {{"bf16", "bf16", RUN_FINISHED, 32, 1},
                                 {"fp32", "fp32", RUN_FINISHED, 32, 2},
                                 {"fp32", "fp32", RUN_FINISHED, 32, 1},
                                 {"fp16", "fp16", RUN_FINISHED, 32, 1}};
    Store *store = fresh_store("twins.db");
    int64_t run = 0;
    for (int i = 0; i < 4; i++)
        run = add_other(store, &runs[i]);
    RunRecord record;
    const RecordFact twin = {TWIN_FACT_TWIN, "1"};
    CHECK_DONE(store_read_run(store, run, &record, &error) &&
               record_set_facts(&record, &twin, 1, &error) &&
               store_update_run(store, &record, &error));
    record_clear(&record);
    Ui *ui = open_screen(store, run);
    CHECK_INT(live_of(ui)->data.ghost.id, 1);
    CHECK_CONTAINS(draw_screen(ui, 200, 60, false), "beside #1");
    close_screen(ui);
    store_close(store);
}

// Steps of about so many seconds, now a little more and now a little less.
static void add_times(Store *store, int64_t run, double seconds) {
    SeriesWriter *writer = series_writer_new(store, run, 0, "start", &error);
    CHECK_MESSAGE(writer, "%s", error.text);
    for (int64_t step = 1; writer && step <= 200; step++)
        CHECK_DONE(series_add(writer, "step_seconds", step,
                              seconds * (1 + 0.1 * sin((double)(step * step))), &error));
    CHECK_DONE(store_begin(store, &error) && series_flush(writer, 0.1, &error) &&
               store_commit(store, &error));
    series_writer_free(writer);
}

static void set_wall(Store *store, int64_t run, double seconds) {
    RunRecord record;
    CHECK_DONE(store_read_run(store, run, &record, &error));
    record.wall_s = seconds;
    CHECK_DONE(store_update_run(store, &record, &error));
    record_clear(&record);
}

// As a comparison says it: what is within the noise of steps is no difference.
static void speeds_are_told_as_sure_as_they_are(void) {
    static const struct {
        double seconds, wall_s;
        const char *told;
    } cases[] = {{0.0101, 10, "~ as fast as #1"},
                 {0.0200, 10, "1.00× of #1"}, // as the records have it
                 {0.0200, 2, "– too short to tell (#1)"}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        Store *store = fresh_store("speeds.db");
        Other full = {"fp32", "fp32", RUN_FINISHED, 32, 1};
        Other low = {"fp16", "fp16", RUN_FINISHED, 32, 1};
        add_times(store, add_other(store, &full), 0.01);
        int64_t run = add_other(store, &low);
        add_times(store, run, cases[c].seconds);
        set_wall(store, run, cases[c].wall_s);
        Ui *ui = open_screen(store, run);
        CHECK_CONTAINS(draw_screen(ui, 120, 36, false), cases[c].told);
        close_screen(ui);
        store_close(store);
    }
}

int main(void) {
    make_folder();
    atexit(remove_folder);
    RUN_TEST(only_comparable_runs_are_chosen);
    RUN_TEST(a_twin_is_chosen_before_all_others);
    RUN_TEST(speeds_are_told_as_sure_as_they_are);
    return test_end();
}
