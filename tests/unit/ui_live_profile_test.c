// The page of the profile: a run's own, that of one trained alike, the times of layers where there
// is none, and measuring one.
#include "store/step_profile.h"
#include "ui_live_fixture.h"

// A step of 10 ms: 8 in products of two layers, 1 in a cast, 0.5 in the update, 0.5 between.
static void profile_run(Store *store, int64_t run) {
    StepPart parts[] = {
        {"conv2", "conv2d", "forward", "fp16", "fp16", 1, 0.005, 1e6, 4096, 0.002, 16},
        {"conv2", "conv2d_backward_weight", "backward", "fp16", "fp16", 2, 0.002, 1e6, 4096, 0.001,
         16},
        {"head", "linear", "forward", "fp32", "fp32", 1, 0.001, 1e6, 64, 0.0005, 10},
        {"conv1", "cast", "forward", "fp32", "fp16", 1, 0.001, 0, 4096, 0, 0},
        {"", "update of weights", "step", "", "", 1, 0.0005, 0, 0, 0, 0},
    };
    StepProfile profile = {.steps = 312,
                           .others_busy = 0.6,
                           .step_seconds = 0.010,
                           .between = 0.0005,
                           .memory_limit = 7.5e9,
                           .parts = parts,
                           .part_count = sizeof parts / sizeof *parts};
    CHECK_DONE(store_put_step_profile(store, run, &profile, &error));
}

static Ui *open_page(Store *store, int64_t run) {
    Ui *ui = open_screen(store, run);
    CHECK(screen_live.request(ui, REQUEST_PROFILE));
    draw_screen(ui, 160, 36, true);
    return ui;
}

// The line of the page that begins with this, one blank between words.
static const char *line_of(const char *text, const char *begins) {
    static char lines[2][400];
    static int turn;
    char *line = lines[turn++ % 2];
    for (const char *at = text; at && *at; at = strchr(at, '\n') + 1) {
        size_t used = 0;
        for (const char *here = at; *here != '\n'; here++)
            if (*here != '|' && (*here != ' ' || (used > 0 && line[used - 1] != ' ')))
                line[used++] = *here;
        line[used] = 0;
        if (strncmp(line, begins, strlen(begins)) != 0)
            continue;
        line[used > 0 && line[used - 1] == ' ' ? used - 1 : used] = 0;
        return line;
    }
    line[0] = 0;
    return line;
}

static void its_own_profile_is_a_table(void) {
    Store *store = make_history(RUN_FINISHED);
    profile_run(store, 2);
    Ui *ui = open_page(store, 2);
    const char *text = draw_screen(ui, 160, 36, true);
    CHECK_INT(live_page(ui), PANEL_PROFILE);
    CHECK_CONTAINS(text, "312 steps profiled: 10 ms each, 10.0 % of it in casts (1 a step)");
    CHECK_CONTAINS(line_of(text, "conv2 conv2d "), "conv2 conv2d forward fp16 1 5.000 50.0 % ");
    CHECK_CONTAINS(line_of(text, "conv2 conv2d "), " 40.0 %"); // of limit
    CHECK_CONTAINS(line_of(text, "conv1 cast"), "conv1 cast forward fp32 > fp16 1 1.000 10.0 % ");
    CHECK_CONTAINS(line_of(text, "- update"), "- update of weights step - 1 0.500 5.0 %");
    CHECK_TEXT(line_of(text, "between"), "between operations, Lua 0.500 5.0 %");
    CHECK_TEXT(line_of(text, "a step 1"), "a step 10.000 100 %");
    CHECK(strstr(text, "conv2d ") < strstr(text, "conv2d_backward_weight")); // the longest first
    CHECK_CONTAINS(text, "memory, 7.5 GB/s");
    CHECK_CONTAINS(text, "Other programs kept 0.6");
    CHECK_CONTAINS(text, "`mpbench profile 2` says what to do about it");
    close_screen(ui);
    store_close(store);
}

static void it_is_summed_up_by_layer_or_operation(void) {
    Store *store = make_history(RUN_FINISHED);
    profile_run(store, 2);
    Ui *ui = open_page(store, 2);
    CHECK_TEXT(screen_live.label(ui, REQUEST_SERIES, "series"), "by layer");
    screen_live.request(ui, REQUEST_SERIES);
    const char *text = draw_screen(ui, 160, 36, true);
    CHECK_CONTAINS(line_of(text, "conv2"), "conv2 - - fp16 3 7.000 70.0 % ");
    CHECK_CONTAINS(line_of(text, "conv2"), " 42.9 %"); // 3 of 7 ms
    CHECK_CONTAINS(line_of(text, "- update"), "update of weights step");
    screen_live.request(ui, REQUEST_SERIES);
    text = draw_screen(ui, 160, 36, true);
    CHECK_CONTAINS(line_of(text, "conv2d "), "conv2d forward fp16 1 5.000 50.0 % ");
    CHECK(!strstr(text, " head "));
    screen_live.request(ui, REQUEST_SERIES);
    CHECK_CONTAINS(draw_screen(ui, 160, 36, true), "by layer and operation");
    CHECK_TEXT(screen_live.label(ui, REQUEST_PROFILE, "profile"), "close");
    CHECK(screen_live.request(ui, REQUEST_PROFILE));
    CHECK_INT(live_page(ui), PANEL_NONE);
    close_screen(ui);
    store_close(store);
}

// Run 3 is trained as run 2 was, and profiled; run 1 is in another format.
static void the_profile_of_a_run_trained_alike_serves(void) {
    Store *store = make_history(RUN_FINISHED);
    int64_t profiled = add_history_run(store, "fp16", RUN_STOPPED);
    profile_run(store, profiled);
    Ui *ui = open_page(store, 2);
    CHECK_CONTAINS(draw_screen(ui, 160, 36, true),
                   "312 steps profiled, in #3, trained as this one");
    close_screen(ui);
    ui = open_page(store, 1);
    const char *text = draw_screen(ui, 160, 36, true);
    CHECK_CONTAINS(text, "Not profiled: the times of its layers alone");
    CHECK_CONTAINS(line_of(text, "conv1"), "conv1 fp32 2.000 20.0 %"); // each of five took 2 ms
    CHECK_CONTAINS(text, "enter measures it");
    CHECK(!strstr(text, "a step 1"));
    close_screen(ui);
    store_close(store);
}

// A program in place of this one, which keeps what it was asked for.
static void make_program(const char *path) {
    char text[400];
    FILE *file = fopen(path, "w");
    snprintf(text, sizeof text, "#!/bin/sh\necho \"$@\" >'%s'\nmv '%s' '%s'\n",
             path_of("asked.new"), path_of("asked.new"), path_of("asked"));
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
    chmod(path, 0700);
}

static bool has_asked(char asked[400]) {
    const struct timespec moment = {.tv_nsec = 10000000};
    enum { PATIENCE = 2000 };
    for (int i = 0; i < PATIENCE; i++, nanosleep(&moment, NULL)) {
        FILE *file = fopen(path_of("asked"), "r");
        if (!file)
            continue;
        bool done = fgets(asked, 400, file) != NULL;
        fclose(file);
        return done;
    }
    return false;
}

static int64_t add_run_with_options(Store *store) {
    static const RecordOption options[] = {
        {"precision", "fp16"}, {"epochs", "2"}, {"set", "width=16"}, {"tag", "mine"}};
    RunRecord record = some_run("fashion-cnn", "fp16");
    RecordLayer layers[] = {// of which somebody switched one
                            {.name = "conv1", .parent = -1, .precision = "fp16", .set = "auto"},
                            {.name = "head", .parent = -1, .precision = "bf16", .set = "bf16"}};
    snprintf(record.script_path, sizeof record.script_path, "here/cnn.lua");
    record.threads = 2;
    record.seed = 5;
    CHECK_DONE(record_set_layers(&record, layers, 2, &error) &&
               record_set_options(&record, options, 4, &error) &&
               store_add_run(store, &record, NULL, 0, &error));
    int64_t run = record.id;
    record_clear(&record);
    return run;
}

static void enter_measures_one_as_the_run_was_trained(void) {
    Store *store = fresh_store("measured.db");
    int64_t run = add_run_with_options(store);
    char asked[400] = "";
    make_program(path_of("program"));
    const UiHost host = {.program = path_of("program")};
    const UiOptions options = {.database = "h.db"};
    Ui *ui = open_page(store, run);
    ui->host = &host;
    ui->options = &options;
    CHECK(screen_live.request(ui, REQUEST_ENTER));
    CHECK_CONTAINS(said, "every step profiled");
    CHECK_CONTAINS(draw_screen(ui, 160, 36, true), "is being measured");
    CHECK(has_asked(asked));
    CHECK_TEXT(asked, "profile here/cnn.lua --quiet --device cpu --seed 5 --threads 2 "
                      "--precision fp16 --set width=16 --layer head=bf16 --db h.db\n");
    profile_run(store, run);
    for (int i = 0; i < 2000 && live_of(ui)->profile.process != 0; i++) {
        const struct timespec moment = {.tv_nsec = 10000000};
        launch_watch(ui);
        draw_screen(ui, 160, 36, true);
        nanosleep(&moment, NULL);
    }
    CHECK_CONTAINS(draw_screen(ui, 160, 36, true), "312 steps profiled: ");
    close_screen(ui);
    store_close(store);
}

static void a_demo_says_how_to_get_one(void) {
    Store *store = make_history(RUN_FINISHED);
    const UiOptions demo = {.demo = true};
    Ui *ui = open_screen(store, 2);
    ui->options = &demo;
    screen_live.request(ui, REQUEST_PROFILE);
    CHECK_CONTAINS(draw_screen(ui, 160, 36, true), "mpbench profile fashion-cnn");
    screen_live.request(ui, REQUEST_ENTER);
    CHECK_CONTAINS(said, "the demo is a recording");
    CHECK_INT(live_of(ui)->profile.process, 0);
    close_screen(ui);
    store_close(store);
}

static void it_fits_every_size(void) {
    Store *store = make_history(RUN_FINISHED);
    profile_run(store, 2);
    Ui *ui = open_page(store, 2);
    for (int columns = 60; columns <= 240; columns += 20)
        for (int rows = 16; rows <= 60; rows += 8) {
            const char *text = draw_screen(ui, columns, rows, true);
            CHECK_CONTAINS(line_of(text, "conv2"), "5.000 50.0 %");
            CHECK_CONTAINS(line_of(text, "a step 1"), "a step 10.000 100 %");
            for (const char *at = text; *at; at++)
                CHECK((*at >= ' ' && *at <= '~' && *at != '?') || *at == '\n');
        }
    close_screen(ui);
    store_close(store);
}

static void what_there_is_no_room_for_is_scrolled_to(void) {
    Store *store = make_history(RUN_FINISHED);
    static StepPart parts[30];
    StepProfile profile = {
        .steps = 9, .step_seconds = 0.1, .memory_limit = 1e9, .parts = parts, .part_count = 30};
    for (int i = 0; i < 30; i++) {
        parts[i] = (StepPart){.operation = "linear", .way = "forward", .seconds = 0.003 - 1e-5 * i};
        snprintf(parts[i].layer, sizeof parts[i].layer, "layer%d", i);
    }
    CHECK_DONE(store_put_step_profile(store, 2, &profile, &error));
    Ui *ui = open_page(store, 2);
    const char *text = draw_screen(ui, 80, 24, true);
    CHECK_CONTAINS(text, "layer0 ");
    CHECK_CONTAINS(text, " of 30");
    CHECK(!strstr(text, "layer29 "));
    screen_live.request(ui, REQUEST_LAST);
    text = draw_screen(ui, 80, 24, true);
    CHECK_CONTAINS(text, "layer29 ");
    CHECK_CONTAINS(line_of(text, "a step 1"), "100 %"); // which stays in sight
    screen_live.request(ui, REQUEST_UP);
    CHECK(!strstr(draw_screen(ui, 80, 24, true), "layer29 "));
    screen_live.request(ui, REQUEST_FIRST);
    CHECK_CONTAINS(draw_screen(ui, 80, 24, true), "layer0 ");
    close_screen(ui);
    store_close(store);
}

static void without_a_run_there_is_none(void) {
    Store *store = fresh_store("none.db");
    Ui *ui = open_page(store, 0);
    CHECK_CONTAINS(draw_screen(ui, 80, 24, false), "no run is open");
    close_screen(ui);
    store_close(store);
}

int main(void) {
    make_folder();
    atexit(remove_folder);
    RUN_TEST(its_own_profile_is_a_table);
    RUN_TEST(it_is_summed_up_by_layer_or_operation);
    RUN_TEST(the_profile_of_a_run_trained_alike_serves);
    RUN_TEST(enter_measures_one_as_the_run_was_trained);
    RUN_TEST(a_demo_says_how_to_get_one);
    RUN_TEST(it_fits_every_size);
    RUN_TEST(what_there_is_no_room_for_is_scrolled_to);
    RUN_TEST(without_a_run_there_is_none);
    return test_end();
}
