// The compare screen: what its panels say of runs, and how to reach what does not fit.
#include "base/rune.h"
#include "ui_compare_fixture.h"

static void the_run_in_fp32_is_the_baseline_whenever_it_began(void) {
    open_screen(make_history(), 2);
    const char *text = draw_screen(120, 36);
    CHECK_CONTAINS(text, "fp32 is the baseline");
    CHECK_CONTAINS(text, "bf16 seemed 1.8 times as fast as fp32");
    close_screen();
}

// As on all screens; what is typed and what commands print stays as it is.
static void scales_are_written_as_powers(void) {
    Store *store = make_history();
    for (int64_t run = 1; run <= 2; run++) {
        RunRecord record = {0};
        CHECK_DONE(store_read_run(store, run, &record, &error));
        snprintf(record.scale_rule, sizeof record.scale_rule, run == 1 ? "32768" : "none");
        CHECK_DONE(store_update_run(store, &record, &error));
        record_clear(&record);
    }
    open_screen(store, 2);
    const char *text = draw_screen(200, 60);
    CHECK(strstr(text, "2^15") && !strstr(text, "32768"));
    close_screen();
}

static void sentences_that_do_not_fit_are_marked_and_reached(void) {
    static const int sizes[][2] = {{120, 36}, {80, 24}, {60, 16}};
    for (int i = 0; i < 3; i++) {
        open_screen(make_history(), 2);
        const char *text = draw_screen(sizes[i][0], sizes[i][1]);
        bool is_whole = strstr(text, "energy.") != NULL;
        CHECK(is_whole || strstr(text, "more below"));
        CHECK(is_whole == (i < 2));
        for (int down = 0; down < 100; down++)
            screen_compare.request(ui, REQUEST_DOWN);
        text = draw_screen(sizes[i][0], sizes[i][1]);
        CHECK_CONTAINS(text, "energy.");
        CHECK(!strstr(text, "more below"));
        for (int up = 0; up < 20; up++)
            screen_compare.request(ui, REQUEST_UP);
        CHECK_CONTAINS(draw_screen(sizes[i][0], sizes[i][1]), "seemed");
        close_screen();
    }
}

static void intervals_stand_off_what_is_beside_them(void) {
    static const int sizes[][2] = {{80, 24}, {120, 36}, {200, 60}};
    Planted runs[6];
    memcpy(runs, six, sizeof runs);
    for (int i = 0; i < 6; i++) {
        runs[i].end = 0.004;
        runs[i].noise = 0.004;
    }
    open_screen(make_runs(runs, 6), 6);
    for (int i = 0; i < 3; i++) {
        const char *text = draw_screen(sizes[i][0], sizes[i][1]);
        CHECK_CONTAINS(text, " 0.0076±0.00028 ");
        CHECK_CONTAINS(text, "│▸a fp32 ");
    }
    close_screen();
}

static void seeds_that_agree_have_no_interval(void) {
    Planted runs[6];
    memcpy(runs, six, sizeof runs);
    for (int i = 0; i < 6; i++) {
        runs[i].end = 0.5;
        runs[i].noise = 0;
    }
    open_screen(make_runs(runs, 6), 6);
    const char *text = draw_screen(200, 60);
    CHECK(!strstr(text, "±0 "));
    close_screen();
}

// As norms of gradients are: a mean and its interval have an exponent each.
static void tiny_means_stand_off_what_is_beside_them(void) {
    static const int sizes[][2] = {{80, 24}, {120, 36}, {200, 60}};
    static const double scales[] = {1, -1, 1e-100, -1e-100};
    Planted runs[6];
    for (size_t k = 0; k < sizeof scales / sizeof *scales; k++) {
        memcpy(runs, six, sizeof runs);
        for (int i = 0; i < 6; i++) {
            runs[i].end = scales[k] * (8.16e-9 + 1.5e-10 * (i / 2));
            runs[i].noise = 0;
            runs[i].steps = fabs(scales[k]) < 1 ? 20000 : 2000; // until 2 has fallen to it
        }
        open_screen(make_runs(runs, 6), 6);
        for (int i = 0; i < 3; i++) {
            const char *text = draw_screen(sizes[i][0], sizes[i][1]);
            const char *row = strstr(text, "│▸a fp32 "), *sign = row ? strstr(row, "±") : NULL;
            CHECK_MESSAGE(sign, "%s", text);
            while (sign > row && sign[-1] != ' ')
                sign--;
            CHECK_MESSAGE(sign > row && strncmp(sign, scales[k] < 0 ? "-8" : "8", 1) == 0, "%.80s",
                          sign);
            frame_clear(&ui->frame);
        }
        close_screen();
    }
}

// What was typed is checked before it is taken.
static void steps_and_seconds_to_a_target_are_told(void) {
    open_screen(make_history(), 2);
    ask(REQUEST_TARGET);
    CHECK(ui->prompt.open);
    CHECK_REFUSED(ui->prompt.check(ui, "loss", &error), ERROR_USAGE, "NAME=VALUE is wanted");
    CHECK_REFUSED(ui->prompt.check(ui, "gap=1", &error), ERROR_USAGE, "none of these runs has it");
    CHECK_REFUSED(ui->prompt.check(ui, "accuracy=0.9", &error), ERROR_USAGE,
                  "a result at the end, no series over steps");
    CHECK_DONE(ui->prompt.check(ui, "loss=0.5", &error));
    ui->prompt.done(ui, "loss=0.5");
    screen_compare.refresh(ui, 0);
    const char *text = draw_screen(200, 60);
    CHECK_CONTAINS(text, "fp32 came to loss <= 0.5 after 108 steps, 2.16 s");
    CHECK_CONTAINS(text, "cannot tell from chance");
    ask(REQUEST_TARGET);
    CHECK_TEXT(ui->prompt.text, "loss=0.5");
    ui->prompt.done(ui, "loss=0.01");
    screen_compare.refresh(ui, 0);
    CHECK_CONTAINS(draw_screen(200, 60), "bf16 never came to loss <= 0.01.");
    ui->prompt.done(ui, "");
    screen_compare.refresh(ui, 0);
    CHECK(!strstr(draw_screen(200, 60), "came to loss"));
    close_screen();
}

// Side by side, the largest first, as shares of the baseline's; the page closes as it opened.
static void memory_stands_side_by_side(void) {
    Store *store = make_history();
    CHECK_DONE(store_execute(store,
                             "UPDATE runs SET memory_activations = 500 / id, memory_masters = "
                             "CASE id WHEN 1 THEN 100 ELSE 0 END",
                             "", &error));
    open_screen(store, 2);
    ask(REQUEST_MEMORY);
    const char *text = draw_screen(80, 24);
    CHECK_CONTAINS(text, "memory by purpose");
    CHECK_CONTAINS(text, "in all      a fp32 ");
    CHECK_CONTAINS(text, "1.0 KiB  1.00×");
    CHECK_CONTAINS(text, "620 B  0.62×");
    CHECK_CONTAINS(text, "250 B  1.00×");
    CHECK_CONTAINS(text, "500 B  2.00×");
    CHECK_CONTAINS(text, "100 B      –"); // of none
    CHECK_CONTAINS(text, "not add up to what was there");
    CHECK(strstr(text, "activations") < strstr(text, "weights"));
    CHECK(!strstr(text, "workspace ")); // nobody counted it
    CHECK_TEXT(screen_compare.label(ui, REQUEST_MEMORY, "memory"), "close");
    CHECK(!screen_compare.label(ui, REQUEST_SERIES, "series"));
    ask(REQUEST_BACK);
    CHECK_CONTAINS(draw_screen(80, 24), "─ outcomes ─");
    close_screen();
}

static void memory_that_does_not_fit_is_reached(void) {
    Store *store = make_seeds(3);
    CHECK_DONE(store_execute(store,
                             "UPDATE runs SET memory_masters = 10, memory_gradients = 9, "
                             "memory_optimizer = 8",
                             "", &error));
    open_screen(store, 3);
    ask(REQUEST_MEMORY);
    CHECK_CONTAINS(draw_screen(60, 16), "7 more below");
    for (int i = 0; i < 10; i++)
        ask(REQUEST_DOWN);
    const char *text = draw_screen(60, 16);
    CHECK(!strstr(text, "more below"));
    CHECK_CONTAINS(text, "c fp16");
    close_screen();
}

// How many times as fast a run of another experiment is says nothing of precision.
static void runs_of_two_experiments_have_no_ratios(void) {
    Store *store = make_runs(planted, 2);
    CHECK_DONE(
        store_execute(store, "UPDATE runs SET experiment = 'other' WHERE id = 1", "", &error));
    open_screen(store, 2);
    const char *text = draw_screen(120, 36);
    CHECK_CONTAINS(text, "are of two experiments");
    CHECK_CONTAINS(text, "1.00×");
    CHECK_MESSAGE(!strstr(text, "1.80×") && !strstr(text, "0.62×"), "%s", text);
    close_screen();
}

static void a_series_that_a_run_lacks_is_a_dash_there(void) {
    static const char *const names[] = {"loss", "fakes"};
    Store *store = make_runs(planted, 2);
    CHECK_DONE(plant_series(store, 1, names, 2, &planted[0], 0.01, &error));
    open_screen(store, 2);
    ask(REQUEST_SERIES);
    const char *text = draw_screen(120, 36);
    CHECK_CONTAINS(text, "─ fakes (2 of 3) ─");
    CHECK_CONTAINS(text, "a ━ #2 fp32, seed 1         –│");
    CHECK_CONTAINS(text, "b · #1 bf16, seed 1    1.2273│");
    CHECK_CONTAINS(text, "have fakes: a1 lacks it.");
    close_screen();
}

// Where groups are more than rows the cursor stays in sight, and some of what is said.
static void many_groups_leave_sentences_in_sight(void) {
    Planted runs[UI_MOST_COMPARED];
    static char names[UI_MOST_COMPARED][8];
    for (int i = 0; i < UI_MOST_COMPARED; i++) {
        runs[i] = planted[i > 0 ? 0 : 1];
        snprintf(names[i], sizeof names[i], "r%d", i);
        runs[i].name = names[i];
        runs[i].lr = 1 + i;
        runs[i].steps = 40;
    }
    open_screen(make_runs(runs, UI_MOST_COMPARED), UI_MOST_COMPARED);
    const char *text = draw_screen(80, 24);
    CHECK_CONTAINS(text, "│▸a ");
    CHECK_CONTAINS(text, "│ 1/24 ");
    CHECK_CONTAINS(text, "│ bf16, lr=2 ");
    for (int i = 1; i < UI_MOST_COMPARED; i++)
        ask(REQUEST_DOWN);
    text = draw_screen(80, 24);
    CHECK_CONTAINS(text, "│▸x ");
    CHECK_CONTAINS(text, "│ 24/24 ");
    CHECK_CONTAINS(text, "│ bf16, lr=2 ");
    close_screen();
}

// Its curve, its letter and its sentence; what came of it stays.
static void runs_are_hidden_and_shown(void) {
    open_screen(make_history(), 2);
    ask(REQUEST_DOWN);
    CHECK_CONTAINS(draw_screen(80, 24), "│▸b bf16 ");
    ask(REQUEST_HIDE);
    const char *text = draw_screen(80, 24);
    CHECK_CONTAINS(text, "│▸– bf16 ");
    CHECK_CONTAINS(text, "1.80×");
    CHECK_CONTAINS(text, "a ━ #2 fp32");
    CHECK_MESSAGE(!strstr(text, "b · #1 bf16") && !strstr(text, "seemed"), "%s", text);
    CHECK_TEXT(screen_compare.label(ui, REQUEST_HIDE, "hide"), "show");
    ask(REQUEST_UP);
    ask(REQUEST_HIDE);
    CHECK_CONTAINS(draw_screen(80, 24), "all are hidden: space shows");
    ask(REQUEST_DOWN);
    ask(REQUEST_HIDE);
    text = draw_screen(80, 24);
    CHECK_CONTAINS(text, "b · #1 bf16");
    CHECK_CONTAINS(text, "seemed");
    close_screen();
}

static void the_baseline_is_picked(void) {
    open_screen(make_history(), 2);
    CHECK(!screen_compare.label(ui, REQUEST_BASELINE, "baseline")); // it is that already
    ask(REQUEST_DOWN);
    CHECK(screen_compare.label(ui, REQUEST_BASELINE, "baseline") != NULL);
    ask(REQUEST_BASELINE);
    const char *text = draw_screen(80, 24);
    CHECK_CONTAINS(text, "bf16 is the baseline");
    CHECK_CONTAINS(text, "│▸a bf16 ");
    CHECK_CONTAINS(text, "fp32 seemed to run at 0.56 of the speed of bf16");
    close_screen();
}

// As in the sentences: by what the name holds, not by its place.
static void the_result_is_the_one_that_leads(void) {
    static const RecordMetric metrics[] = {{"margin", 0.25}, {"val_accuracy", 0.875}};
    Store *store = make_history();
    for (int id = 1; id <= 2; id++) {
        RunRecord record = {0};
        CHECK_DONE(store_read_run(store, id, &record, &error) &&
                   record_set_metrics(&record, metrics, 2, &error) &&
                   store_update_run(store, &record, &error));
        record_clear(&record);
    }
    open_screen(store, 2);
    const char *text = draw_screen(120, 36);
    CHECK_CONTAINS(text, "0.8750│");
    CHECK(!strstr(text, "0.2500"));
    close_screen();
}

static void twins_are_called_so_and_keep_their_numbers(void) {
    Planted runs[] = {planted[1], planted[1]};
    runs[0].name = "fashion_cnn_with_a_long_name-1";
    runs[1].name = "fashion_cnn_with_a_long_name-2";
    open_screen(make_runs(runs, 2), 2);
    const char *text = draw_screen(120, 36);
    CHECK_CONTAINS(text, "nothing: the same in everything");
    CHECK(!strstr(text, "nothing but the seed"));
    text = draw_screen(80, 24);
    CHECK_CONTAINS(text, "a fashion…_name-1 ");
    CHECK_CONTAINS(text, "b fashion…_name-2 ");
    close_screen();
}

// What differs stands at the end, in the middle or nowhere that has room; then it is the number.
static void labels_that_are_cut_never_look_alike(void) {
    static const char *const names[] = {"an_experiment_of_a_long_name_1_trained_on_this_card",
                                        "an_experiment_of_a_long_name_2_trained_on_this_card",
                                        "an_experiment_of_a_long_name_3_trained_on_that_card",
                                        "an_experiment_of_a_long_name_3_trained_on_this_card",
                                        "an_experiment_of_a_long_name_3_trained_on_this_card_again",
                                        "short"};
    enum { RUNS = sizeof names / sizeof *names, LEAST = 5, MOST = 60 };
    Planted runs[RUNS];
    for (int i = 0; i < RUNS; i++) {
        runs[i] = planted[1];
        runs[i].name = names[i];
    }
    open_screen(make_runs(runs, RUNS), RUNS);
    const Comparison *comparison = ((CompareView *)ui->state[SCREEN_COMPARE])->comparison;
    static CompareLabels labels;
    CHECK_INT(comparison->group_count, RUNS);
    for (int room = LEAST; room <= MOST; room++) {
        compare_fit_labels(comparison, room, &labels);
        CHECK_TEXT(labels.text[RUNS - 1], "short");
        for (int i = 0; i < RUNS; i++) {
            CHECK_MESSAGE(text_width(labels.text[i]) <= room, "%d: %s", room, labels.text[i]);
            for (int other = 0; other < i; other++)
                CHECK_MESSAGE(strcmp(labels.text[i], labels.text[other]) != 0, "%d: %s", room,
                              labels.text[i]);
        }
    }
    compare_fit_labels(comparison, LEAST, &labels);
    CHECK_TEXT(labels.text[1], "#2");
    close_screen();
}

// In the table, in the legend of means and on the page of memory, at every size.
static void what_tells_runs_apart_is_on_the_screen(void) {
    static const int sizes[][2] = {{60, 16}, {80, 24}, {100, 24}, {120, 36}};
    Store *store = make_runs(six, 6);
    CHECK_DONE(store_execute(store,
                             "UPDATE runs SET precision = 'fp32', memory_activations = 500, "
                             "experiment = 'networks_of_size_' || (1 + id % 2) || "
                             "'_for_rather_small_images'",
                             "", &error));
    open_screen(store, 6);
    for (int i = 0; i < 4; i++) {
        const char *text = draw_screen(sizes[i][0], sizes[i][1]);
        const bool is_told = strstr(text, "size_1_f") && strstr(text, "size_2_f");
        CHECK_MESSAGE(is_told, "%d columns:\n%s", sizes[i][0], text);
        frame_clear(&ui->frame);
    }
    ask(REQUEST_MEMORY);
    const char *text = draw_screen(80, 24);
    CHECK_CONTAINS(text, "size_1_f");
    CHECK_CONTAINS(text, "size_2_f");
    close_screen();
}

// One of three was removed while they were looked at.
static void what_is_left_of_the_runs_is_compared(void) {
    open_screen(make_runs(six, 3), 3);
    CompareView *view = ui->state[SCREEN_COMPARE];
    CHECK_DONE(store_remove_run(ui->store, 2, &error));
    view->wants_reading = true;
    screen_compare.refresh(ui, 1);
    CHECK(view->comparison && view->comparison->run_count == 2);
    CHECK_INT(ui->run_count, 2);
    CHECK_INT(ui->runs[1], 3);
    CHECK_DONE(frame_init(&ui->frame, 120, 36, &error));
    screen_compare.draw_header(ui, frame_area(&ui->frame));
    CHECK_CONTAINS(frame_text(&ui->frame), "2 runs, 1 removed");
    CHECK_DONE(store_remove_run(ui->store, 1, &error));
    view->wants_reading = true;
    screen_compare.refresh(ui, 1);
    CHECK_CONTAINS(draw_screen(120, 36), "Choose two runs or more");
    close_screen();
}

int main(void) {
    make_folder();
    atexit(remove_folder);
    RUN_TEST(the_run_in_fp32_is_the_baseline_whenever_it_began);
    RUN_TEST(scales_are_written_as_powers);
    RUN_TEST(sentences_that_do_not_fit_are_marked_and_reached);
    RUN_TEST(intervals_stand_off_what_is_beside_them);
    RUN_TEST(seeds_that_agree_have_no_interval);
    RUN_TEST(tiny_means_stand_off_what_is_beside_them);
    RUN_TEST(steps_and_seconds_to_a_target_are_told);
    RUN_TEST(memory_stands_side_by_side);
    RUN_TEST(memory_that_does_not_fit_is_reached);
    RUN_TEST(runs_of_two_experiments_have_no_ratios);
    RUN_TEST(a_series_that_a_run_lacks_is_a_dash_there);
    RUN_TEST(many_groups_leave_sentences_in_sight);
    RUN_TEST(runs_are_hidden_and_shown);
    RUN_TEST(the_baseline_is_picked);
    RUN_TEST(the_result_is_the_one_that_leads);
    RUN_TEST(twins_are_called_so_and_keep_their_numbers);
    RUN_TEST(labels_that_are_cut_never_look_alike);
    RUN_TEST(what_tells_runs_apart_is_on_the_screen);
    RUN_TEST(what_is_left_of_the_runs_is_compared);
    return test_end();
}
