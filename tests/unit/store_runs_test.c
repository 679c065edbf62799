// The catalogue: names, finding, filters, removing, and ten thousand runs at once.
#include "precision/policy.h"
#include "store/checkpoints.h"
#include "store/events.h"
#include "tests/unit/store_fixture.h"

static void names_are_made_unique_and_refused_twice(void) {
    Store *store = fresh_store("names.db");
    RunRecord record = some_run("cnn", "fp32");
    snprintf(record.name, sizeof record.name, "cnn-2");
    CHECK_INT(add_run(store, record), 1);
    CHECK_REFUSED(store_add_run(store, &record, NULL, 0, &error), ERROR_USAGE, "cnn-2", "run 1");
    record.name[0] = 0;
    CHECK_DONE(store_add_run(store, &record, NULL, 0, &error));
    CHECK_TEXT(record.name, "cnn-2-2"); // a person was quicker
    record = some_run("a-name-of-an-experiment-that-is-nearly-as-long-as-the-room-it-has", "fp32");
    record.experiment[RECORD_NAME_SIZE - 1] = 0;
    CHECK_DONE(store_add_run(store, &record, NULL, 0, &error));
    CHECK_INT(strlen(record.name), RECORD_NAME_SIZE - 1);
    CHECK_TEXT(record.name + RECORD_NAME_SIZE - 3, "-3");
    snprintf(record.name, sizeof record.name, "12");
    CHECK_REFUSED(store_add_run(store, &record, NULL, 0, &error), ERROR_USAGE, "12", "number");
    snprintf(record.name, sizeof record.name, "@last");
    CHECK_REFUSED(store_add_run(store, &record, NULL, 0, &error), ERROR_USAGE, "@last", "name");
    snprintf(record.name, sizeof record.name, "scan:1");
    CHECK_REFUSED(store_add_run(store, &record, NULL, 0, &error), ERROR_USAGE, "scan:1", "name");
    store_close(store);
}

static void ids_are_never_used_again(void) {
    Store *store = fresh_store("ids.db");
    add_run(store, some_run("cnn", "fp32"));
    int64_t id = add_run(store, some_run("cnn", "fp32"));
    CHECK_DONE(store_remove_run(store, id, &error));
    CHECK_INT(add_run(store, some_run("cnn", "fp32")), id + 1);
    store_close(store);
}

static Store *small_catalogue(void) {
    Store *store = fresh_store("small.db");
    static const struct {
        const char *experiment, *precision, *tag, *note;
        RunStatus status;
        double loss, accuracy, scale;
        int64_t skipped, seed;
    } rows[] = {
        {"fashion-cnn", "fp32", "baseline", "", RUN_FINISHED, 0.25, 0.91, 1, 0, 1},
        {"fashion-cnn", "fp16", "", "Two words", RUN_FINISHED, 0.27, 0.90, 65536, 2, 1},
        {"fashion-cnn", "bf16", "", "", RUN_FAILED, NAN, NAN, 1, 0, 2},
        {"gpt", "fp16", "", "", RUN_STOPPED, 1.5, NAN, 1024, 30, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        RunRecord record = some_run(rows[i].experiment, rows[i].precision);
        snprintf(record.tag, sizeof record.tag, "%s", rows[i].tag);
        snprintf(record.note, sizeof record.note, "%s", rows[i].note);
        record.status = rows[i].status;
        record.has_loss = true;
        record.loss_first = record.loss_last = record.loss_best = rows[i].loss;
        record.scale_last = rows[i].scale;
        record.skipped = rows[i].skipped;
        record.seed = rows[i].seed;
        record.steps_per_s = 10 * (double)(i + 1);
        record.memory.peak = 1000000;
        if (!isnan(rows[i].accuracy))
            CHECK_DONE(record_set_metrics(
                &record, (RecordMetric[]){{"accuracy", rows[i].accuracy}, {"top5", 0.99}}, 2,
                &error));
        add_run(store, record);
        free(record.metrics);
    }
    return store;
}

// The ids that a filter lets through, the newest first: "4 2".
static const char *listed(Store *store, const char *words) {
    static char text[64];
    RunRecord *runs = NULL;
    int count = 0;
    text[0] = 0;
    CHECK_DONE(store_list_runs(store, &(RunFilter){.words = words}, &runs, &count, &error));
    for (int i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", i ? " " : "",
                 (int)runs[i].id);
    store_free_runs(runs, count);
    return text;
}

static void filters_let_through_what_they_say(void) {
    Store *store = small_catalogue();
    static const char *const rows[][2] = {
        {NULL, "4 3 2 1"},
        {"", "4 3 2 1"},
        {"status:failed", "3"},
        {"precision:fp16", "4 2"},
        {"precision:FP16 cnn", "2"},
        {"experiment:cnn", "3 2 1"},
        {"experiment:fashion_cnn", "3 2 1"}, // as its file is called
        {"fashion_cnn", "3 2 1"},
        {"tag:baseline", "1"},
        {"note:two", "2"},
        {"WORDS", "2"},
        {"gpt", "4"},
        {"fp16", "4 2"}, // a bare word is looked for in the precision, too
        {"precision:half", "4 2"},
        {"FP16 cnn", "2"},
        {"status:FAILED", "3"},
        {"state:failed", "3"}, // as tables call it
        {"format:fp16", "4 2"},
        {"state:done cnn", "2 1"},
        {"failed", "3"},
        {"acc>0.9", "1"},
        {"acc>=0.9", "2 1"},
        {"accuracy<1", "2 1"},
        {"loss<0.26", "1"},
        {"loss=nan", "3"},
        {"skipped>0", "4 2"},
        {"scale=65536", "2"},
        {"id>=3", "4 3"},
        {"id:2", "2"},
        {"seed=2", "3"},
        {"rate<=20", "2 1"},
        {"memory>1e5", "4 3 2 1"},
        {"top5>0.5 loss>0.26", "2"},
        {"steps>0", ""},
        {"device:CPU", "4 3 2 1"},
        {"name:gpt-4", "4"},
        {"wall=0 id=1", "1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *ids = listed(store, rows[i][0]);
        CHECK_MESSAGE(strcmp(ids, rows[i][1]) == 0, "%s gives \"%s\", not \"%s\"", rows[i][0], ids,
                      rows[i][1]);
    }
    int64_t all;
    CHECK_DONE(store_count_runs(store, &all, &error));
    CHECK_INT(all, 4);
    RunRecord *runs;
    int count;
    CHECK_DONE(
        store_list_runs(store, &(RunFilter){.words = "cnn", .limit = 2}, &runs, &count, &error));
    CHECK_INT(count, 2);
    CHECK_INT(runs[0].id, 3);
    CHECK_INT(runs[1].metric_count, 2);
    CHECK_TEXT(runs[1].metrics[0].name, "accuracy");
    CHECK_NEAR(runs[1].metrics[1].value, 0.99, 0);
    store_free_runs(runs, count);
    store_close(store);
}

static void wrong_filters_name_what_is_right(void) {
    CHECK_DONE(store_check_filter(NULL, "status:failed acc>0.9 two words", &error));
    CHECK_REFUSED(store_check_filter(NULL, "statsu:failed", &error), ERROR_USAGE, "statsu",
                  "did you mean status");
    CHECK_REFUSED(store_check_filter(NULL, "status:faild", &error), ERROR_USAGE, "faild",
                  "did you mean failed");
    CHECK_REFUSED(store_check_filter(NULL, "loss<much", &error), ERROR_USAGE, "loss", "much",
                  "number");
    CHECK_REFUSED(store_check_filter(NULL, "loss<", &error), ERROR_USAGE, "loss<", "missing");
    CHECK_REFUSED(store_check_filter(NULL, ":failed", &error), ERROR_USAGE, "missing");
    CHECK_REFUSED(store_check_filter(NULL, "tag<3", &error), ERROR_USAGE, "tag:");
    CHECK_REFUSED(store_check_filter(NULL, "zzzz:1", &error), ERROR_USAGE, "zzzz", "status");
    char many[4096] = "";
    for (int i = 0; i < 100; i++)
        strcat(many, "word ");
    CHECK_REFUSED(store_check_filter(NULL, many, &error), ERROR_USAGE, "too long");
    memset(many, 'x', sizeof many - 1);
    CHECK_REFUSED(store_check_filter(NULL, many, &error), ERROR_USAGE, "too long");
    static const char *const refused[][3] = {
        {"precision:fp17", "no such precision", "did you mean fp16"},
        {"precision:mixed_float61", "no such precision", "did you mean mixed_float16"},
        {"precision:zzzz", "no such precision", "there are fp32"},
        {"precision:zzzz", "no such precision",
         "nvfp4, O0, O1, O2, O3, mixed_float16, mixed_bfloat16, amp"},
        {"status:xx", "no such status", "there are running, paused"},
        {"device:xpu", "no such device", "there are cpu, gpu, ref"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        CHECK_REFUSED(store_check_filter(NULL, refused[i][0], &error), ERROR_USAGE, refused[i][1],
                      refused[i][2]);
    CHECK_DONE(store_check_filter(NULL, "device:gpu:1 device:CPU precision:bfloat16", &error));
    for (const Preset *preset = preset_table; preset->name; preset++) {
        char words[80];
        snprintf(words, sizeof words, "precision:%s", preset->name);
        CHECK_DONE(store_check_filter(NULL, words, &error));
    }
    for (int i = 0; i < RUN_STATUSES; i++) {
        char words[80];
        snprintf(words, sizeof words, "status:%s", run_status_name((RunStatus)i));
        CHECK_DONE(store_check_filter(NULL, words, &error));
    }
}

static void metrics_that_no_run_has_are_refused(void) {
    Store *store = small_catalogue(), *bare = fresh_store("bare.db");
    CHECK_DONE(store_check_filter(store, "acc>0.9 top5<1 Accuracy=1 loss<1 cnn", &error));
    CHECK_REFUSED(store_check_filter(store, "accuarcy>0.9", &error), ERROR_USAGE, "accuarcy",
                  "did you mean accuracy");
    CHECK_REFUSED(store_check_filter(store, "los<1", &error), ERROR_USAGE, "did you mean loss");
    CHECK_REFUSED(store_check_filter(store, "zzzz<1", &error), ERROR_USAGE, "no run has");
    CHECK_DONE(store_check_filter(bare, "accuarcy>0.9", &error)); // nothing is known yet
    store_close(store);
    store_close(bare);
}

static int64_t found(Store *store, const char *text) {
    int64_t id = 0;
    CHECK_DONE(store_find_run(store, text, &id, &error));
    return id;
}

static void a_beginning_is_no_whole_name(void) {
    Store *store = small_catalogue();
    int64_t id;
    CHECK_DONE(store_find_whole_name(store, "gpt-4", &id, &error));
    CHECK_INT(id, 4);
    CHECK_DONE(store_find_whole_name(store, "3", &id, &error));
    CHECK_INT(id, 3);
    CHECK_DONE(store_find_whole_name(store, "@last", &id, &error));
    CHECK_INT(id, 4);
    CHECK_REFUSED(store_find_whole_name(store, "gpt-", &id, &error), ERROR_USAGE, "no such run",
                  "did you mean gpt-4");
    store_close(store);
}

static void runs_are_found_as_people_type_them(void) {
    Store *store = small_catalogue();
    int64_t id;
    CHECK_INT(found(store, "3"), 3);
    CHECK_INT(found(store, "gpt-4"), 4);
    CHECK_INT(found(store, "g"), 4);
    CHECK_INT(found(store, "@last"), 4);
    CHECK_INT(found(store, "@last:fp16"), 4);
    CHECK_INT(found(store, "@last:bf16"), 3);
    CHECK_INT(found(store, "@last:half"), 4);
    CHECK_INT(found(store, "@last:finished"), 2);
    CHECK_INT(found(store, "@last:fashion-cnn"), 3);
    CHECK_INT(found(store, "@last:fashion_cnn"), 3); // as its file is called
    RunRecord record = some_run("x", "fp32");
    snprintf(record.name, sizeof record.name, "gpt");
    CHECK_INT(add_run(store, record), 5);
    CHECK_INT(found(store, "gpt"), 5); // the whole name is before the beginning of another
    CHECK_REFUSED(store_find_run(store, "fashion", &id, &error), ERROR_USAGE, "more than one",
                  "fashion-cnn-3, fashion-cnn-2, fashion-cnn-1");
    CHECK_REFUSED(store_find_run(store, "fashion-cmn-1", &id, &error), ERROR_USAGE,
                  "did you mean fashion-cnn-1");
    CHECK_REFUSED(store_find_run(store, "77", &id, &error), ERROR_USAGE, "77", "no such run");
    snprintf(record.name, sizeof record.name, "77th");
    CHECK_INT(add_run(store, record), 6);
    CHECK_INT(found(store, "77t"), 6); // and a number is no beginning:
    CHECK_REFUSED(store_find_run(store, "77", &id, &error), ERROR_USAGE, "77", "no such run");
    CHECK_REFUSED(store_find_run(store, "99999999999999999999999", &id, &error), ERROR_USAGE,
                  "no such run");
    CHECK_REFUSED(store_find_run(store, "@last:fp8x", &id, &error), ERROR_USAGE, "fp8x");
    CHECK_REFUSED(store_find_run(store, "@last:finishd", &id, &error), ERROR_USAGE,
                  "did you mean finished");
    CHECK_REFUSED(store_find_run(store, "@first", &id, &error), ERROR_USAGE, "@last");
    CHECK_REFUSED(store_find_run(store, "", &id, &error), ERROR_USAGE, "no run");
    store_close(store);
    store = fresh_store("empty.db");
    CHECK_REFUSED(store_find_run(store, "@last", &id, &error), ERROR_USAGE, "empty");
    store_close(store);
}

static void tags_and_notes_are_kept_or_refused(void) {
    Store *store = small_catalogue();
    CHECK_DONE(store_set_tag(store, 1, "best", &error));
    CHECK_DONE(store_set_note(store, 1, "", &error));
    CHECK_TEXT(listed(store, "tag:best"), "1");
    CHECK_REFUSED(store_set_tag(store, 9, "x", &error), ERROR_USAGE, "no run 9");
    char text[300];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    CHECK_REFUSED(store_set_note(store, 1, text, &error), ERROR_USAGE, "longer than 255");
    CHECK_REFUSED(store_set_tag(store, 1, text, &error), ERROR_USAGE, "longer than 63");
    store_close(store);
}

static void removing_a_run_removes_all_of_it(void) {
    Store *store = fresh_store("remove.db");
    RunRecord record = some_run("gone", "fp32"), kept = some_run("kept", "fp32");
    CHECK_DONE(record_set_metrics(&record, (RecordMetric[]){{"a", 1}}, 1, &error));
    CHECK_DONE(store_add_run(store, &record, "one", 3, &error));
    CHECK_DONE(store_add_run(store, &kept, "two", 3, &error));
    RunRecord fork = some_run("fork", "fp32");
    fork.parent = record.id, fork.parent_step = 3;
    CHECK_DONE(store_add_run(store, &fork, "two", 3, &error));
    Event event = {.text = "x", .value = NAN};
    CHECK_DONE(store_add_event(store, record.id, &event, &error));
    CheckpointRow row = {.run = record.id, .why = "asked", .hash = "0", .file = "1/x"};
    CHECK_DONE(store_add_checkpoint(store, &row, &error));
    CHECK_DONE(store_remove_run(store, record.id, &error));
    const char *path = path_of("remove.db");
    CHECK_INT(ask_sql(path,
                      "SELECT (SELECT count(*) FROM metrics) + (SELECT count(*) FROM events) +"
                      " (SELECT count(*) FROM checkpoints)"),
              0);
    CHECK_INT(ask_sql(path, "SELECT count(*) FROM scripts"), 1);
    record_clear(&record);
    CHECK_DONE(store_read_run(store, fork.id, &record, &error));
    CHECK_INT(record.parent, 0);
    record_clear(&record);
    CHECK_REFUSED(store_read_run(store, 1, &record, &error), ERROR_USAGE, "no run 1");
    CHECK_REFUSED(store_remove_run(store, 1, &error), ERROR_USAGE, "no run 1");
    size_t length;
    CHECK_REFUSED(store_read_script(store, "00", &length, &error) != NULL, ERROR_USAGE, "00");
    CHECK_DONE(store_compact(store, &error));
    CHECK_DONE(store_check(store, &error));
    store_close(store);
}

static void the_same_matrix_is_gone_on_with(void) {
    Store *store = fresh_store("matrix.db");
    int64_t first, second, third;
    CHECK_DONE(store_find_matrix(store, "a", &first, &error));
    CHECK_INT(first, 0);
    CHECK_DONE(store_keep_matrix(store, "a", &first, &error));
    CHECK_DONE(store_find_matrix(store, "a", &third, &error));
    CHECK_INT(third, first);
    CHECK_DONE(store_keep_matrix(store, "b", &second, &error));
    CHECK_DONE(store_keep_matrix(store, "a", &third, &error));
    CHECK(first == third && first != second && first > 0);
    RunRecord record = some_run("x", "fp32");
    record.matrix = second;
    int64_t id = add_run(store, record);
    add_run(store, some_run("x", "fp32"));
    RunRecord *runs;
    int count;
    record.id = id;
    record.matrix = 0; // a resume knows nothing of the matrix
    CHECK_DONE(store_update_run(store, &record, &error));
    CHECK_DONE(store_list_runs(store, &(RunFilter){.matrix = second}, &runs, &count, &error));
    CHECK(count == 1 && runs[0].id == id);
    store_free_runs(runs, count);
    store_close(store);
}

static void a_matrix_goes_with_the_last_of_its_runs(void) {
    Store *store = fresh_store("matrices.db");
    const char *path = path_of("matrices.db");
    int64_t first, second, run;
    CHECK_DONE(store_keep_matrix(store, "a", &first, &error));
    RunRecord record = some_run("cell", "fp32"), other = record;
    record.matrix = other.matrix = first;
    run = add_run(store, record);
    int64_t last = add_run(store, other);
    CHECK_DONE(store_keep_matrix(store, "b", &second, &error)); // whose first run is to begin
    CHECK_DONE(store_remove_run(store, run, &error));
    CHECK_INT(ask_sql(path, "SELECT count(*) FROM matrices"), 2);
    CHECK_DONE(store_remove_run(store, last, &error));
    CHECK_INT(ask_sql(path, "SELECT count(*) FROM matrices"), 1);
    CHECK_INT(ask_sql(path, "SELECT id FROM matrices"), second);
    run_sql(path, "INSERT INTO matrices (specification) VALUES ('c'), ('d')");
    CHECK_DONE(store_remove_unused(store, &error));
    CHECK_INT(ask_sql(path, "SELECT count(*) FROM matrices"), 1);
    store_close(store);
}

static void a_run_is_forgotten_where_nothing_came_of_it(void) {
    static const char *const came[] = {
        "INSERT INTO metrics VALUES (1, 0, 'accuracy', 0.5, 'finite')",
        "INSERT INTO series (run, name) VALUES (1, 'loss')",
        "INSERT INTO events (run, id, segment, step, time_ms, kind, text)"
        " VALUES (1, 2, 0, 0, 0, 'message', 'warm')",
        "INSERT INTO checkpoints (run, segment, step, created_ms, why, bytes, hash, file)"
        " VALUES (1, 0, 0, 0, 'asked', 1, '0', '1/x')",
        "INSERT INTO commands (run, created_ms, state, verb) VALUES (1, 0, 'done', 'stop')",
    };
    static const char *const tables[] = {"metrics", "series", "events", "checkpoints", "commands"};
    Store *store = fresh_store("forget.db");
    const char *path = path_of("forget.db");
    RunRecord record = some_run("refused", "fp32");
    bool is_gone;
    CHECK_DONE(store_keep_matrix(store, "a", &record.matrix, &error));
    CHECK_DONE(store_add_run(store, &record, "one", 3, &error));
    Event begun = {.kind = EVENT_LIFE, .text = "started", .value = NAN};
    CHECK_DONE(store_add_event(store, record.id, &begun, &error));
    run_sql(path, "INSERT INTO matrices (specification) VALUES ('b')");
    for (size_t i = 0; i < sizeof came / sizeof *came; i++) {
        char undo[64];
        run_sql(path, came[i]);
        CHECK_DONE(store_forget_run(store, record.id, &is_gone, &error));
        CHECK_MESSAGE(!is_gone, "%s: the run is gone", tables[i]);
        snprintf(undo, sizeof undo, "DELETE FROM %s", tables[i]);
        run_sql(path, undo);
    }
    CHECK_DONE(store_forget_run(store, record.id, &is_gone, &error));
    CHECK(is_gone);
    CHECK_INT(ask_sql(path, "SELECT count(*) FROM runs"), 0);
    CHECK_INT(ask_sql(path, "SELECT count(*) FROM matrices"), 2); // more of its runs may come
    CHECK_DONE(store_forget_run(store, record.id, &is_gone, &error));
    CHECK(!is_gone);
    store_close(store);
}

static void ten_thousand_runs_list_whole(void) {
    Store *store = fresh_store("many.db");
    CHECK_DONE(store_begin(store, &error));
    RunRecord record = some_run("fashion-cnn", "fp16");
    CHECK_DONE(
        record_set_metrics(&record, (RecordMetric[]){{"accuracy", 0.9}, {"loss", 0.2}}, 2, &error));
    for (int i = 0; i < 10000; i++) {
        record.name[0] = 0;
        record.step = i;
        CHECK_DONE(store_add_run(store, &record, NULL, 0, &error));
    }
    record_clear(&record);
    CHECK_DONE(store_commit(store, &error));
    store_close(store);
    store = store_open(path_of("many.db"), STORE_READ, &error);
    RunRecord *runs;
    int count;
    CHECK_DONE(store_list_runs(store, &(RunFilter){0}, &runs, &count, &error));
    CHECK_INT(count, 10000);
    CHECK(count == 10000 && runs[0].id == 10000 && runs[9999].metric_count == 2);
    store_free_runs(runs, count);
    store_close(store);
}

// A list has no layers and no options: what a run computes in besides its preset is kept for it.
static void lists_say_what_differs_from_the_preset(void) {
    RecordLayer layers[2] = {{.name = "a", .parent = -1, .precision = "fp32", .set = "auto"},
                             {.name = "b", .parent = -1, .precision = "bf16", .set = "bf16"}};
    const RecordOption option = {"keep-fp32", "none"};
    char label[RECORD_PRECISION_SIZE];
    RunRecord *runs;
    int count;
    Store *store = fresh_store("labels.db");
    RunRecord record = some_run("a", "fp32");
    CHECK_DONE(store_add_run(store, &record, NULL, 0, &error));
    CHECK_DONE(store_list_runs(store, &(RunFilter){.words = ""}, &runs, &count, &error));
    CHECK_TEXT(runs[0].label, "");
    store_free_runs(runs, count);
    CHECK_DONE(record_set_layers(&record, layers, 2, &error));
    CHECK_DONE(record_set_options(&record, &option, 1, &error));
    CHECK_DONE(store_update_run(store, &record, &error));
    add_run(store, some_run("b", "fp16"));
    CHECK_DONE(store_list_runs(store, &(RunFilter){.words = ""}, &runs, &count, &error));
    CHECK_INT(count, 2);
    CHECK_TEXT(runs[0].label, "");
    CHECK_TEXT(runs[1].label, "fp32 +1 layer keep=none");
    CHECK_TEXT(runs[1].precision, "fp32");
    record_precision_brief(&runs[1], label);
    CHECK_TEXT(label, "fp32 +1 layer keep=none");
    store_free_runs(runs, count);
    snprintf(layers[1].set, sizeof layers[1].set, "auto"); // given back while it trains
    CHECK_DONE(record_set_layers(&record, layers, 2, &error));
    CHECK_DONE(record_set_options(&record, NULL, 0, &error));
    CHECK_DONE(store_update_run(store, &record, &error));
    CHECK_DONE(store_list_runs(store, &(RunFilter){.words = ""}, &runs, &count, &error));
    CHECK_TEXT(runs[1].label, "");
    store_free_runs(runs, count);
    record_clear(&record);
    store_close(store);
}

int main(void) {
    make_folder();
    RUN_TEST(names_are_made_unique_and_refused_twice);
    RUN_TEST(ids_are_never_used_again);
    RUN_TEST(filters_let_through_what_they_say);
    RUN_TEST(wrong_filters_name_what_is_right);
    RUN_TEST(metrics_that_no_run_has_are_refused);
    RUN_TEST(runs_are_found_as_people_type_them);
    RUN_TEST(a_beginning_is_no_whole_name);
    RUN_TEST(tags_and_notes_are_kept_or_refused);
    RUN_TEST(removing_a_run_removes_all_of_it);
    RUN_TEST(a_run_is_forgotten_where_nothing_came_of_it);
    RUN_TEST(the_same_matrix_is_gone_on_with);
    RUN_TEST(a_matrix_goes_with_the_last_of_its_runs);
    RUN_TEST(ten_thousand_runs_list_whole);
    remove_folder();
    RUN_TEST(lists_say_what_differs_from_the_preset);
    return test_end();
}
