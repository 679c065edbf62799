// What a run is comes back as it was, and prints as other programs read it.
#include "store/worker.h"
#include "tests/unit/store_fixture.h"

static RunRecord full_run(void) {
    RunRecord record = some_run("fashion-cnn", "fp16");
    record.status = RUN_FAILED;
    snprintf(record.tag, sizeof record.tag, "baseline");
    snprintf(record.note, sizeof record.note, "two words; 'quoted' \xc3\xa4");
    snprintf(record.device_name, sizeof record.device_name, "Some CPU");
    snprintf(record.script_path, sizeof record.script_path, "experiments/fashion_cnn.lua");
    snprintf(record.error, sizeof record.error, "step 7: the loss is not finite");
    record.threads = 2;
    record.seed = -9000000000000000001;
    record.step = 7, record.applied = 5, record.skipped = 2;
    record.total_steps = 1407, record.epoch = 1, record.epochs = 3, record.samples = 448;
    record.has_loss = true;
    record.loss_first = 2.5, record.loss_last = NAN, record.loss_best = -INFINITY;
    record.scale_last = 1024, record.scale_min = 512, record.scale_max = 65536;
    record.steps_per_s = 63.25, record.wall_s = 22.5, record.cast_share = 0.125;
    record.memory.peak = 123456789;
    record.memory.weights = 0;
    record.created_ms = 1700000000000, record.ended_ms = 1700000022500;
    CHECK_DONE(record_set_parameters(&record,
                                     (RecordParameter[]){
                                         {"lr", RECORD_NUMBER, 1e-3, 0, ""},
                                         {"clip", RECORD_NUMBER, INFINITY, 0, ""},
                                         {"width", RECORD_INTEGER, 0, 64, ""},
                                         {"deep", RECORD_BOOLEAN, 0, 1, ""},
                                         {"head", RECORD_TEXT, 0, 0, "nan"},
                                     },
                                     5, &error));
    CHECK_DONE(record_set_layers(
        &record, (RecordLayer[]){{"net", -1, "fp16", "auto"}, {"net.head", 0, "fp32", "fp32"}}, 2,
        &error));
    CHECK_DONE(record_set_metrics(
        &record, (RecordMetric[]){{"accuracy", 0.875}, {"odd", NAN}, {"low", -INFINITY}}, 3,
        &error));
    CHECK_DONE(record_set_diagnoses(
        &record, (RecordDiagnosis[]){{"scale_floor", "net.head", 6, "lower the rate"}}, 1, &error));
    CHECK_DONE(record_set_options(
        &record, (RecordOption[]){{"precision", "fp16"}, {"set", "lr=1e-3"}}, 2, &error));
    CHECK_DONE(record_set_facts(&record, (RecordFact[]){{"host", "here"}}, 1, &error));
    return record;
}

static const char *json_of(const RunRecord *record, bool with_layers) {
    static char text[4096];
    FILE *stream = fmemopen(text, sizeof text, "w");
    JsonWriter json = {.stream = stream};
    record_write_json(record, with_layers, &json);
    fclose(stream);
    return text;
}

static void a_run_reads_as_it_was_written(void) {
    Store *store = fresh_store("record.db");
    RunRecord record = full_run(), again;
    CHECK_DONE(store_add_run(store, &record, "return 1\0x", 10, &error));
    CHECK_TEXT(record.name, "fashion-cnn-1");
    CHECK_DONE(store_read_run(store, record.id, &again, &error));
    char text[4096];
    snprintf(text, sizeof text, "%s", json_of(&record, true));
    CHECK_TEXT(json_of(&again, true), text);
    CHECK_TEXT(again.note, record.note);
    CHECK_TEXT(again.tag, record.tag);
    CHECK_TEXT(again.script_hash, record.script_hash);
    CHECK_TEXT(again.script_path, record.script_path);
    CHECK_INT(again.seed, record.seed);
    CHECK_INT(again.threads, 2);
    CHECK_INT(again.total_steps, 1407);
    CHECK_INT(again.epoch, 1);
    CHECK_INT(again.epochs, 3);
    CHECK_INT(again.samples, 448);
    CHECK_INT(again.created_ms, record.created_ms);
    CHECK_INT(again.ended_ms, record.ended_ms);
    CHECK(isnan(again.energy_j) && isnan(again.samples_per_s) && again.cast_share == 0.125);
    CHECK(again.memory.peak == 123456789 && again.memory.weights == 0 &&
          again.memory.masters == RECORD_UNKNOWN);
    CHECK(isnan(again.loss_last) && again.loss_best == -INFINITY && again.loss_first == 2.5);
    CHECK_INT(again.parameter_count, 5);
    CHECK(again.parameters[1].number == INFINITY && again.parameters[3].integer == 1);
    CHECK_TEXT(again.parameters[4].text, "nan");
    CHECK_INT(again.layers[1].parent, 0);
    CHECK_INT(again.layers[0].parent, -1);
    CHECK_TEXT(again.layers[1].set, "fp32");
    CHECK_TEXT(again.options[1].value, "lr=1e-3");
    CHECK_TEXT(again.facts[0].value, "here");
    CHECK_INT(again.diagnoses[0].step, 6);
    size_t length;
    char *script = store_read_script(store, record.script_hash, &length, &error);
    CHECK(script && length == 10 && memcmp(script, "return 1\0x", 11) == 0);
    free(script);
    record_clear(&record);
    record_clear(&again);
    store_close(store);
}

static void the_object_is_that_of_the_command_line(void) {
    RunRecord record = full_run();
    record.id = 7;
    snprintf(record.name, sizeof record.name, "fashion-cnn-7");
    CHECK_TEXT(
        json_of(&record, true),
        "{\"id\":7,\"name\":\"fashion-cnn-7\",\"experiment\":\"fashion-cnn\",\"status\":"
        "\"failed\",\"precision\":\"fp16\",\"precision_label\":\"fp16 +1 "
        "layer\",\"device\":\"cpu\",\"device_name\":\"Some CPU\","
        "\"seed\":-9000000000000000001,\"steps\":7,\"applied\":5,\"skipped\":2,\"loss\":"
        "{\"first\":2.5,\"last\":\"nan\",\"best\":\"-inf\"},\"metrics\":{\"accuracy\":0.875,"
        "\"odd\":\"nan\",\"low\":\"-inf\"},\"scale\":{\"last\":1024,\"min\":512,\"max\":65536},"
        "\"samples_per_s\":null,\"steps_per_s\":63.25,\"wall_s\":22.5,\"memory\":{\"peak\":"
        "123456789,\"weights\":0,\"activations\":null,\"optimizer\":null,\"masters\":null,"
        "\"gradients\":null,\"workspace\":null},\"memory_in_steps\":null,\"energy_j\":null,"
        "\"params\":{\"lr\":0.001,"
        "\"clip\":\"inf\",\"width\":64,\"deep\":true,\"head\":\"nan\"},\"layers\":[{\"name\":"
        "\"net\",\"precision\":\"fp16\"},{\"name\":\"net.head\",\"precision\":\"fp32\"}],"
        "\"twin\":null,\"diagnoses\":[{\"kind\":\"scale_floor\",\"layer\":\"net.head\",\"step\":6,"
        "\"text\":"
        "\"lower the rate\"}],\"error\":\"step 7: the loss is not finite\"}");
    CHECK(!strstr(json_of(&record, false), "\"layers\""));
    record.id = 0;
    record.has_loss = false;
    record.error[0] = record.name[0] = 0;
    CHECK_CONTAINS(json_of(&record, true), "{\"id\":null,\"name\":null,");
    CHECK_CONTAINS(json_of(&record, true), "\"loss\":{\"first\":null,\"last\":null,\"best\":null}");
    CHECK_CONTAINS(json_of(&record, true), "\"error\":null}");
    record.has_loss = true;
    record.loss_best = NAN;
    CHECK_CONTAINS(json_of(&record, true), "\"best\":null");
    record_clear(&record);
}

// By a part of the name, or a whole word of it; what a script says goes before.
static void a_result_is_better_as_the_script_or_its_name_says(void) {
    static const char *const falling[] = {"test_loss", "gap",    "duality_gap", "kl",
                                          "latency_s", "time_s", "val.mse",     "violations",
                                          "regret",    "energy", "distance",    "std_deviation",
                                          "bce",       "val_ce", "l1"};
    static const char *const rising[] = {"accuracy",    "psnr",     "f1",  "skill",
                                         "gaps_closed", "lifetime", "iou", "bleu"};
    for (size_t i = 0; i < sizeof falling / sizeof *falling; i++)
        CHECK_MESSAGE(record_metric_falls(falling[i]), "%s", falling[i]);
    for (size_t i = 0; i < sizeof rising / sizeof *rising; i++)
        CHECK_MESSAGE(!record_metric_falls(rising[i]), "%s", rising[i]);
    RunRecord record = {.id = 0};
    const RecordMetric metrics[] = {{"accuracy", 0.5}, {"gap", 2}};
    const RecordFact facts[] = {{RECORD_FACT_BETTER "gap", "higher"},
                                {RECORD_FACT_BETTER "accuracy", "lower"},
                                {RECORD_FACT_LEADS, "gap"}};
    CHECK_DONE(record_set_metrics(&record, metrics, 2, &error));
    CHECK(record_result_falls(&record, "gap") && !record_result_falls(&record, "accuracy"));
    CHECK_TEXT(record_leading_metric(&record)->name, "accuracy");
    CHECK_DONE(record_set_facts(&record, facts, 3, &error));
    CHECK(!record_result_falls(&record, "gap") && record_result_falls(&record, "accuracy"));
    CHECK_TEXT(record_leading_metric(&record)->name, "gap");
    record_clear(&record);
}

static void an_update_writes_what_changed_and_keeps_what_is_fixed(void) {
    Store *store = fresh_store("update.db");
    RunRecord record = full_run(), again;
    CHECK_DONE(store_add_run(store, &record, NULL, 0, &error));
    int64_t before = sqlite3_total_changes64(store->db);
    record.step = 8;
    CHECK_DONE(store_update_run(store, &record, &error));
    CHECK_INT(sqlite3_total_changes64(store->db) - before, 1); // the row, and no list
    record.metrics[0].value = 0.5;
    before = sqlite3_total_changes64(store->db);
    CHECK_DONE(store_update_run(store, &record, &error));
    CHECK_INT(sqlite3_total_changes64(store->db) - before, 1 + 3 + 3);
    snprintf(record.tag, sizeof record.tag, "other");
    record.seed = 3;
    CHECK_DONE(record_set_layers(&record, NULL, 0, &error));
    CHECK_DONE(store_update_run(store, &record, &error));
    CHECK_DONE(store_read_run(store, record.id, &again, &error));
    CHECK_INT(again.step, 8);
    CHECK_TEXT(again.tag, "baseline");
    CHECK_INT(again.seed, -9000000000000000001);
    CHECK_INT(again.layer_count, 0);
    CHECK_NEAR(record_metric(&again, "accuracy")->value, 0.5, 0);
    CHECK(record_metric(&again, "none") == NULL);
    record_clear(&again);
    // What a rollback took back is written again.
    CHECK_DONE(store_begin(store, &error));
    record.metrics[0].value = 0.25;
    CHECK_DONE(store_update_run(store, &record, &error));
    store_rollback(store);
    CHECK_DONE(store_update_run(store, &record, &error));
    CHECK_DONE(store_read_run(store, record.id, &again, &error));
    CHECK_NEAR(again.metrics[0].value, 0.25, 0);
    record_clear(&again);
    record.id = 99;
    CHECK_REFUSED(store_update_run(store, &record, &error), ERROR_HISTORY, "run 99", "removed");
    record_clear(&record);
    store_close(store);
}

static void long_texts_are_cut_at_a_whole_character(void) {
    Store *store = fresh_store("long.db");
    int64_t id = add_run(store, some_run("simple", "fp32"));
    store_close(store);
    run_sql(
        path_of("long.db"),
        "UPDATE runs SET tag = replace(hex(zeroblob(31)), '0', 'x') || '\xc3\xa4\xc3\xa4', note ="
        " replace(hex(zeroblob(1000000)), '0', '\xe2\x82\xac')");
    store = store_open(path_of("long.db"), STORE_READ, &error);
    RunRecord record;
    CHECK_DONE(store_read_run(store, id, &record, &error));
    CHECK_INT(strlen(record.tag), 62); // a half character would be 63
    CHECK_INT(strlen(record.note), 255);
    CHECK(memcmp(record.note + 252, "\xe2\x82\xac", 4) == 0);
    record_clear(&record);
    store_close(store);
    char text[8];
    utf8_copy_part(text, sizeof text, "\x80\x80\x80\x80\x80\x80\x80\x80\x80",
                   9); // no UTF-8 at all
    CHECK_INT(strlen(text), 7);
}

static void words_for_a_status_read_back(void) {
    for (int i = 0; i < RUN_STATUSES; i++) {
        RunStatus status;
        CHECK(run_status_parse(run_status_name((RunStatus)i), &status));
        CHECK_INT(status, i);
    }
    RunStatus status;
    CHECK(!run_status_parse("Running", &status));
}

int main(void) {
    make_folder();
    RUN_TEST(a_run_reads_as_it_was_written);
    RUN_TEST(the_object_is_that_of_the_command_line);
    RUN_TEST(a_result_is_better_as_the_script_or_its_name_says);
    RUN_TEST(an_update_writes_what_changed_and_keeps_what_is_fixed);
    RUN_TEST(long_texts_are_cut_at_a_whole_character);
    RUN_TEST(words_for_a_status_read_back);
    remove_folder();
    return test_end();
}
