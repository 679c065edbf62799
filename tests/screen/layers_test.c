// What the form says of layers and memory before anything runs is what the run then has.
#include "base/json_read.h"
#include "store/runs.h"
#include "tests/screen/place.h"

// Kinds of layers that presets tell apart; it prints what lies in memory at its third step.
static const char script[] =
    "local mp = require 'mp'\n"
    "local nn, F = mp.nn, mp.fn\n"
    "return mp.experiment {\n"
    "    name = 'kinds',\n"
    "    run = function(run)\n"
    "        local model = run:model(nn.Sequential {\n"
    "            nn.Embedding(40, 24), nn.LayerNorm(24), nn.Linear(24, 200), nn.GELU(),\n"
    "            nn.Linear(200, 40) })\n"
    "        local opt = mp.optim.AdamW(model:parameters(), { lr = 0.001, eps = 1e-4 })\n"
    "        local scaler = run:scaler()\n"
    "        for step = 1, 3 do\n"
    "            local x = mp.tensor({ 1, 5, 7, 3, 2, 39, 0, 11 }, 'int32')\n"
    "            opt:zero_grad()\n"
    "            local loss = mp.autocast(function() return F.cross_entropy(model(x), x) end)\n"
    "            scaler:scale(loss):backward()\n"
    "            scaler:step(opt)\n"
    "            scaler:update()\n"
    "            local m = mp.memory()\n"
    "            if step == 3 then\n"
    "                print(('LIES %d %d %d'):format(m.weights, m.masters, m.optimizer))\n"
    "            end\n"
    "        end\n"
    "    end,\n"
    "}\n";

// What a command writes on standard output, or NULL; freed by the caller.
static char *answer_of(const char *arguments, const char *beside) {
    char command[1024];
    snprintf(command, sizeof command, "MPBENCH_DB='%s' '%s' %s 2>'%s'", history_path,
             getenv("MPBENCH"), arguments, path_of(beside));
    FILE *stream = popen(command, "r");
    char *text = calloc(1, SHOWN_TEXT_SIZE);
    size_t length = stream && text ? fread(text, 1, SHOWN_TEXT_SIZE - 1, stream) : 0;
    int status = stream ? pclose(stream) : -1;
    CHECK_MESSAGE(status == 0 && length > 0, "%.800s: status %d", command, status);
    return text;
}

static void read_answer(const char *arguments, JsonTree *tree) {
    Error error = {0};
    char *text = answer_of(arguments, "errors");
    *tree = (JsonTree){0};
    CHECK_MESSAGE(json_read(text, tree, &error), "%s: %s", arguments, error.text);
    free(text);
}

static void read_lies(const char *arguments, long lies[3], JsonTree *tree) {
    char line[256] = "";
    read_answer(arguments, tree);
    FILE *file = fopen(path_of("errors"), "r");
    lies[0] = lies[1] = lies[2] = -1;
    while (file && fgets(line, sizeof line, file))
        if (strstr(line, "LIES"))
            sscanf(strstr(line, "LIES"), "LIES %ld %ld %ld", &lies[0], &lies[1], &lies[2]);
    if (file)
        fclose(file);
}

static void check_near(const char *preset, const char *what, double foreseen, long lies) {
    CHECK_MESSAGE(fabs(foreseen - (double)lies) <= 0.01 * (double)lies + 256,
                  "under %s: %s %.0f foreseen, %ld there", preset, what, foreseen, lies);
}

// Of one look in fp32 every other preset is foreseen, and of a look in each the same.
static void check_preset(const JsonTree *foreseen, const char *preset, const char *path) {
    char arguments[300];
    long lies[3];
    JsonTree ran;
    snprintf(arguments, sizeof arguments, "run '%s' --no-history --quiet --json -p %s", path,
             preset);
    read_lies(arguments, lies, &ran);
    const JsonValue *layer =
        json_first(foreseen, json_member(foreseen, foreseen->values, "layers"));
    const JsonValue *there = json_first(&ran, json_member(&ran, ran.values, "layers"));
    int count = 0;
    for (; layer && there; count++) {
        const JsonValue *under = json_member(foreseen, layer, "under");
        CHECK_MESSAGE(strcmp(json_member_text(foreseen, under, preset),
                             json_member_text(&ran, there, "precision")) == 0,
                      "under %s: %s foreseen in %s, ran in %s", preset,
                      json_member_text(foreseen, layer, "name"),
                      json_member_text(foreseen, under, preset),
                      json_member_text(&ran, there, "precision"));
        layer = json_next(foreseen, layer);
        there = json_next(&ran, there);
    }
    CHECK(count == 5 && !layer && !there);
    const JsonValue *memory =
        json_member(foreseen, json_member(foreseen, foreseen->values, "under"), preset);
    check_near(preset, "weights", json_member_number(foreseen, memory, "weights", -1), lies[0]);
    check_near(preset, "masters", json_member_number(foreseen, memory, "masters", -1), lies[1]);
    check_near(preset, "optimizer", json_member_number(foreseen, memory, "optimizer", -1), lies[2]);
    json_tree_clear(&ran);
}

static void what_is_foreseen_under_every_preset_is_what_runs(void) {
    char arguments[300], path[200];
    JsonTree foreseen;
    snprintf(path, sizeof path, "%s", path_of("kinds.lua"));
    write_text(path, script);
    snprintf(arguments, sizeof arguments, "run '%s' --dry-run --json --quiet -p fp32", path);
    read_answer(arguments, &foreseen);
    const JsonValue *preset =
        json_first(&foreseen, json_member(&foreseen, foreseen.values, "under"));
    int count = 0;
    for (; preset; preset = json_next(&foreseen, preset), count++)
        check_preset(&foreseen, preset->key, path);
    CHECK(count >= 8);
    json_tree_clear(&foreseen);
}

static void rules_hold_under_every_preset(void) {
    char arguments[300];
    JsonTree tree;
    snprintf(arguments, sizeof arguments,
             "run '%s' --dry-run --json --quiet -p O2 --layer linear1=fp32 --layer 'linear?=fp16' "
             "--layer linear1=fp32",
             path_of("kinds.lua"));
    read_answer(arguments, &tree);
    const JsonValue *layer = json_first(&tree, json_member(&tree, tree.values, "layers"));
    for (int at = 1; layer; at++, layer = json_next(&tree, layer)) {
        const JsonValue *preset = json_first(&tree, json_member(&tree, layer, "under"));
        for (; preset && (at == 3 || at == 5); preset = json_next(&tree, preset))
            CHECK_TEXT(preset->text, at == 3 ? "fp32" : "fp16");
    }
    json_tree_clear(&tree);
}

// ---- the page -----------------------------------------------------------------------------------

static void open_page(int columns, int rows) {
    static const char *const nothing[] = {NULL};
    const char *environment[] = {database, "MPBENCH_GPU=/nowhere", NULL};
    unlink(history_path);
    shown_start(&shown, columns, rows, environment, nothing);
    expect("▸fashion_cnn");
    choose_experiment("simple");
    press("L", "layers of simple");
    expect("fc2");
    expect_gone("training two steps");
}

static bool read_finished(int64_t run, RunRecord *record) {
    for (int i = 0; i < 200; i++) {
        Error error;
        *record = (RunRecord){.id = 0};
        Store *store = store_open(history_path, STORE_READ, &error);
        bool done =
            store && store_read_run(store, run, record, &error) && record->status == RUN_FINISHED;
        store_close(store);
        if (done)
            return true;
        record_clear(record);
        shown_pump(&shown, 0.1);
    }
    return false;
}

// One screen through all of the following, which takes its time to open.
static void patterns_and_policy_files_set_layers(void) {
    char keys[300];
    open_page(100, 30);
    CHECK(strstr(shown_text(&shown), "computed: weights") != NULL);
    CHECK(strstr(shown_text(&shown), "over 2 steps") != NULL);
    press("=\x15"
          "fc*=fp17\r",
          "fp17: not known");
    press("\x15"
          "fc*=fp16\r",
          "set: fc*=fp16");
    write_text(path_of("policy.lua"), "return { fc1 = \"bf16\", [\"fc2\"] = \"fp32\" }\n");
    snprintf(keys, sizeof keys, "o%s\r", path_of("policy.lua"));
    press(keys, "set: fc*=fp16  fc1=bf16  fc2=fp32");
    press("a", "set: fc*=fp16  fc2=fp32");
    press("A", "nothing is set");
    press("o/nowhere.lua\r", "No such file");
    press("\x1b", "nothing is set");
}

static void what_cannot_run_says_why(void) {
    press("=\x15"
          "nowhere=fp16\r",
          "there are fc1, fc2");
    press("A", "nothing is set");
    expect_gone("there are fc1, fc2");
}

static void what_is_set_goes_to_the_run(void) {
    RunRecord record;
    press("f", "layers of simple, auto");
    press("f", "layers of simple, fp32");
    press("f", "layers of simple, tf32");
    press("f", "layers of simple, bf16");
    press(KEY_RIGHT, "‹ fp32 ›");
    expect("set: fc1=fp32");
    press("\x1b", "‹ 1 set ›"); // in the form again
    press(KEY_DOWN KEY_DOWN KEY_DOWN KEY_DOWN KEY_DOWN, "keep fp32    as the format says");
    press("losess\r", "did you mean losses?");
    press("\x15losses\r", "keep fp32    losses");
    press(KEY_DOWN KEY_RIGHT, "set: fc1=fp32");
    press("\r", "#1 simple-1");
    if (!read_finished(1, &record)) {
        CHECK_MESSAGE(false, "it did not train:\n%s", shown_text(&shown));
        leave();
        return;
    }
    CHECK_INT(record.layer_count, 2);
    CHECK_TEXT(record.layers[0].precision, "fp32");
    CHECK_TEXT(record.layers[0].set, "fp32");
    CHECK_TEXT(record.layers[1].precision, "bf16");
    const char *kept = "not given";
    for (int i = 0; i < record.option_count; i++)
        if (strcmp(record.options[i].name, "keep-fp32") == 0)
            kept = record.options[i].value;
    CHECK_TEXT(kept, "losses");
    record_clear(&record);
    leave();
}

int main(void) {
    if (!make_place())
        return 1;
    RUN_TEST(what_is_foreseen_under_every_preset_is_what_runs);
    RUN_TEST(rules_hold_under_every_preset);
    RUN_TEST(patterns_and_policy_files_set_layers);
    RUN_TEST(what_cannot_run_says_why);
    RUN_TEST(what_is_set_goes_to_the_run);
    return end_tests();
}
