// The live screen: which other run it draws, compares with and holds speed and memory against.
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

int main(void) {
    make_folder();
    atexit(remove_folder);
    RUN_TEST(only_comparable_runs_are_chosen);
    return test_end();
}
