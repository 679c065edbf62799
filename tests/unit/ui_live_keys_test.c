// The live screen: what its keys and clicks do to what is looked at.
#include "ui_live_fixture.h"

#include "store/runs.h"

static void the_cursor_shows_the_run_as_it_was(void) {
    Store *store = make_history(RUN_RUNNING);
    Ui *ui = open_screen(store, 2);
    screen_live.key(ui, '{');
    screen_live.key(ui, '{');
    CHECK_INT(live_of(ui)->view.cursor, STEPS - 2 * (STEPS / 10));
    for (int i = 0; i < 5; i++)
        screen_live.key(ui, '{'); // 120
    const char *text = draw_screen(ui, 120, 36, false);
    CHECK_CONTAINS(text, "120/800 epoch 2/10");
    CHECK_CONTAINS(text, "scrubbed, G follows again");
    CHECK_CONTAINS(text, "2^15 at step 120");
    CHECK(!strstr(text, "the scale grew")); // not yet
    CHECK_CONTAINS(text, "inf in conv2.weight");
    CHECK_CONTAINS(text, "9.7 % of its gradients at 2^15");
    screen_live.request(ui, REQUEST_FIRST);
    text = draw_screen(ui, 120, 36, false);
    CHECK_CONTAINS(text, "1/800 epoch 1/10");
    CHECK(!strstr(text, "inf in conv2.weight"));
    screen_live.request(ui, REQUEST_LAST);
    text = draw_screen(ui, 120, 36, false);
    CHECK_CONTAINS(text, "400/800 epoch 5/10");
    CHECK(!strstr(text, "G follows"));
    screen_live.request(ui, REQUEST_SCRUB_BACK);
    CHECK_INT(live_of(ui)->view.cursor, STEPS - 4); // a hundredth
    screen_live.request(ui, REQUEST_SCRUB_FORWARD);
    CHECK_INT(live_of(ui)->view.cursor, LIVE_FOLLOWS);
    close_screen(ui);
    store_close(store);
}

static void escape_goes_one_layer_out(void) {
    Store *store = make_history(RUN_RUNNING);
    Ui *ui = open_screen(store, 2);
    draw_screen(ui, 120, 36, false);
    screen_live.key(ui, '{');
    screen_live.request(ui, REQUEST_CROSS_HAIR);
    CHECK(screen_live.request(ui, REQUEST_BACK));
    CHECK(!live_of(ui)->view.has_cross);
    CHECK_INT(live_of(ui)->view.cursor, STEPS - STEPS / 10);
    CHECK(screen_live.request(ui, REQUEST_BACK));
    CHECK_INT(live_of(ui)->view.cursor, LIVE_FOLLOWS);
    CHECK(!screen_live.request(ui, REQUEST_BACK)); // then home
    screen_live.request(ui, REQUEST_REPLAY);
    CHECK(screen_live.request(ui, REQUEST_BACK));
    CHECK(!live_of(ui)->replay.is_on);
    close_screen(ui);
    store_close(store);
}

// The bar of the header, in columns.
static int progress_columns(const Ui *ui) {
    int columns = 0;
    for (int column = 0; column < ui->frame.columns; column++) {
        const Cell *cell = frame_cell(&ui->frame, column, 0);
        columns += cell->rune == GLYPH_BAR && cell->style.ink == INK_GOOD;
    }
    return columns;
}

static void the_header_tells_of_the_cursor_and_the_way_back(void) {
    Store *store = make_history(RUN_FINISHED);
    Ui *ui = open_screen(store, 2);
    draw_screen(ui, 200, 60, false);
    int whole = progress_columns(ui);
    CHECK_INT(whole, 8); // 400 of 800 in 16 columns
    for (int i = 0; i < 5; i++)
        screen_live.key(ui, '{'); // 200
    CHECK_CONTAINS(draw_screen(ui, 200, 60, false), "200/800 epoch 3/10");
    CHECK_INT(progress_columns(ui), 4);
    CHECK_CONTAINS(frame_text(&ui->frame), "scrubbed, G shows the end");
    static const int narrow[] = {89, 100}; // what is left of 60 and 71 beside the screen's name
    for (int i = 0; i < 2; i++) {
        const char *text = draw_screen(ui, narrow[i], 24, false);
        CHECK_CONTAINS(text, "200/800");
        CHECK_CONTAINS(text, "G to the end");
        CHECK_CONTAINS(text, "#2 fashion");
    }
    screen_live.request(ui, REQUEST_LAST);
    CHECK_CONTAINS(draw_screen(ui, 200, 60, false), "finished");
    CHECK_INT(progress_columns(ui), whole);
    close_screen(ui);
    store_close(store);
}

static void a_pause_is_shown_in_the_past_as_well(void) {
    Store *store = make_history(RUN_PAUSED);
    Ui *ui = open_screen(store, 2);
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "paused");
    screen_live.key(ui, '{');
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "paused · scrubbed, G follows again");
    CHECK_CONTAINS(draw_screen(ui, 89, 24, false), "paused · G to follow");
    close_screen(ui);
    store_close(store);
}

static void windows_zoom_and_pan_within_the_run(void) {
    Store *store = make_history(RUN_RUNNING);
    Ui *ui = open_screen(store, 2);
    Live *live = live_of(ui);
    screen_live.request(ui, REQUEST_ZOOM_IN);
    draw_screen(ui, 120, 36, false);
    CHECK_INT(live->data.left, STEPS / 2 + 1);
    CHECK_INT(live->data.right, STEPS);
    for (int i = 0; i < 40; i++) {
        screen_live.request(ui, REQUEST_LEFT);
        draw_screen(ui, 120, 36, false);
    }
    CHECK_INT(live->data.left, 1);
    CHECK_INT(live->data.right, STEPS / 2);
    for (int i = 0; i < 3; i++) {
        screen_live.request(ui, REQUEST_ZOOM_OUT);
        draw_screen(ui, 120, 36, false);
    }
    CHECK_INT(live->data.left, 1);
    CHECK_INT(live->data.right, STEPS);
    for (int i = 0; i < 40; i++) {
        screen_live.request(ui, REQUEST_ZOOM_IN);
        draw_screen(ui, 120, 36, false);
    }
    CHECK_INT(live->data.right - live->data.left + 1, 8);
    close_screen(ui);
    store_close(store);
}

static void the_cross_hair_reads_values_off_all_curves(void) {
    Store *store = make_history(RUN_RUNNING);
    Ui *ui = open_screen(store, 2);
    draw_screen(ui, 120, 36, false);
    const Panel *panel = layout_find(&ui->layout, PANEL_LOSS);
    screen_live.click(ui, PANEL_LOSS, 1 + LIVE_LABEL_COLUMNS, 3, MOUSE_PRESS);
    const char *text = draw_screen(ui, 120, 36, false);
    CHECK_CONTAINS(text, "at step 1 · log");
    char first[32];
    snprintf(first, sizeof first, "%.4f", 2.3 * exp(-1.0 / 120) + 0.1 + 0.02 * sin(1));
    CHECK_CONTAINS(text, first);
    screen_live.click(ui, PANEL_LOSS, panel->width - 2, 3, MOUSE_PRESS);
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "2^16 at step 400");
    screen_live.request(ui, REQUEST_LEFT);
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "at step 396");
    CHECK(screen_live.request(ui, REQUEST_BACK)); // goes out of it
    CHECK(!screen_live.request(ui, REQUEST_BACK));
    close_screen(ui);
    store_close(store);
}

static void series_smoothing_and_axis_turn_with_their_keys(void) {
    Store *store = make_history(RUN_RUNNING);
    Ui *ui = open_screen(store, 2);
    static const double weights[] = {0.6, 0.9, 0.97, 0};
    for (int i = 0; i < 4; i++) {
        screen_live.request(ui, REQUEST_SMOOTH);
        CHECK_NEAR(live_of(ui)->view.smoothing, weights[i], 0);
    }
    screen_live.request(ui, REQUEST_LOG_AXIS);
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "─ linear ─");
    ui->focus[SCREEN_LIVE] = PANEL_EVENTS;
    screen_live.request(ui, REQUEST_SERIES); // meant for another panel
    draw_screen(ui, 120, 36, false);
    CHECK_TEXT(live_of(ui)->data.shown, "loss");
    CHECK_CONTAINS(said, "v changes the panel of the loss");
    ui->focus[SCREEN_LIVE] = PANEL_LOSS;
    screen_live.request(ui, REQUEST_SERIES);
    draw_screen(ui, 120, 36, false);
    CHECK_TEXT(live_of(ui)->data.shown, "accuracy");
    screen_live.request(ui, REQUEST_SERIES);
    draw_screen(ui, 120, 36, false);
    CHECK_TEXT(live_of(ui)->data.shown, "loss"); // the scale has a panel of its own
    close_screen(ui);
    store_close(store);
}

static void clicks_select_layers_and_the_wheel_scrolls(void) {
    Store *store = make_history(RUN_RUNNING);
    Ui *ui = open_screen(store, 2);
    draw_screen(ui, 120, 36, false);
    screen_live.click(ui, PANEL_LAYERS, 5, 2 + 4, MOUSE_PRESS);
    CHECK_INT(live_of(ui)->view.layer, 4);
    screen_live.click(ui, PANEL_LAYERS, 5, 2, MOUSE_WHEEL_UP);
    CHECK_INT(live_of(ui)->view.layer, 3);
    screen_live.click(ui, PANEL_LAYERS, 5, 9, MOUSE_PRESS); // below the last
    CHECK_INT(live_of(ui)->view.layer, 3);
    screen_live.click(ui, PANEL_EVENTS, 5, 2, MOUSE_WHEEL_DOWN);
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), " 1 above");
    screen_live.click(ui, PANEL_HISTOGRAM, 5, 2, MOUSE_WHEEL_UP);
    CHECK_INT(live_of(ui)->view.hypothesis, 1);
    screen_live.request(ui, REQUEST_COPY);
    CHECK_TEXT(copied,
               "hidden in fp16: 0.0 % zero, 9.7 % flushed, 0.0 % subnormal, 0.0 % over at scale "
               "2^16, step 400");
    close_screen(ui);
    store_close(store);
}

static void a_frozen_picture_stays_and_loses_nothing(void) {
    Store *store = make_history(RUN_RUNNING);
    Ui *ui = open_screen(store, 2);
    draw_screen(ui, 120, 36, false);
    screen_live.request(ui, REQUEST_FREEZE);
    add_some_event(store, 2, 400, EVENT_MESSAGE, NAN, "", "while it was frozen");
    const char *text = draw_screen(ui, 120, 36, false);
    CHECK_CONTAINS(text, "frozen, f goes on");
    CHECK(!strstr(text, "while it was frozen"));
    screen_live.request(ui, REQUEST_FREEZE);
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "while it was frozen");
    close_screen(ui);
    store_close(store);
}

static void a_run_that_goes_on_is_followed(void) {
    Store *store = fresh_store("follow.db");
    int64_t run = add_history_run(store, "fp16", RUN_RUNNING);
    WorkerId worker;
    CHECK_DONE(worker_identify(&worker, &error));
    CHECK_DONE(store_own_run(store, run, &worker, &error));
    Ui *ui = open_screen(store, run);
    const char *text = draw_screen(ui, 120, 36, false);
    CHECK_CONTAINS(text, "400/800");
    CHECK(!strstr(text, "× of #")); // it is alone
    SeriesWriter *writer = series_writer_new(store, run, STEPS, "resume", &error);
    CHECK_DONE(series_add(writer, "loss", STEPS + 1, 0.125, &error));
    CHECK_DONE(store_begin(store, &error) && series_flush(writer, 0.1, &error));
    RunRecord record;
    CHECK_DONE(store_read_run(store, run, &record, &error));
    record.step = STEPS + 1;
    CHECK_DONE(store_update_run(store, &record, &error) && store_commit(store, &error));
    record_clear(&record);
    series_writer_free(writer);
    text = draw_screen(ui, 120, 36, false);
    CHECK_CONTAINS(text, "401/800");
    CHECK_CONTAINS(text, "0.1250");
    add_history_run(store, "fp32", RUN_FINISHED); // its twin turns up later
    for (int i = 0; i < 25; i++)
        text = draw_screen(ui, 120, 36, false);
    CHECK_CONTAINS(text, "2.00× of #2");
    CHECK_CONTAINS(text, "#2 fp32");
    for (int i = 0; i < 50; i++) // nothing new: nothing is drawn again
        CHECK(!screen_live.refresh(ui, 0.1));
    close_screen(ui);
    store_close(store);
}

// What happened last is shown whole where its panel has room, and on a page anyway.
static void the_newest_event_is_shown_whole(void) {
    static const char cause[] =
        "failed after step 400: width 100000000: too wide; make it narrower (net.lua:18)";
    static const int sizes[][2] = {{120, 36}, {80, 24}};
    Store *store = make_history(RUN_FAILED);
    add_some_event(store, 2, 399, EVENT_SKIP, 32768, "conv2",
                   "step 398 skipped: gradient of conv2.weight not finite");
    add_some_event(store, 2, 400, EVENT_LIFE, NAN, "", cause);
    Ui *ui = open_screen(store, 2);
    ui->focus[SCREEN_LIVE] = PANEL_EVENTS;
    for (int i = 0; i < 2; i++) {
        const char *text = draw_screen(ui, sizes[i][0], sizes[i][1], false);
        CHECK_CONTAINS(text, "failed after step 400:");
        CHECK_CONTAINS(text, "(net.lua:18)");
        CHECK_CONTAINS(text, "skip  gradient");
    }
    CHECK(screen_live.request(ui, REQUEST_ENTER));
    CHECK(ui->pager.open);
    CHECK_TEXT(ui->pager.text, cause);
    pager_request(ui, REQUEST_ENTER);
    screen_live.request(ui, REQUEST_DOWN);
    screen_live.request(ui, REQUEST_ENTER); // to its step first
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "enter: all of it");
    CHECK_INT(live_of(ui)->data.step, 399);
    screen_live.request(ui, REQUEST_ENTER);
    CHECK_TEXT(ui->pager.title, "step 399: skip");
    CHECK_TEXT(ui->pager.text, "gradient of conv2.weight not finite");
    close_screen(ui);
    store_close(store);
}

static void enter_goes_to_the_step_of_an_event(void) {
    Store *store = make_history(RUN_FINISHED);
    add_some_event(store, 2, 101, EVENT_MESSAGE, NAN, "", "of the same step, and later");
    Ui *ui = open_screen(store, 2);
    draw_screen(ui, 120, 36, false);
    ui->focus[SCREEN_LIVE] = PANEL_EVENTS;
    screen_live.request(ui, REQUEST_DOWN);
    screen_live.request(ui, REQUEST_DOWN);
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "enter: to its step");
    CHECK_CONTAINS(frame_text(&ui->frame), "2 above");
    screen_live.request(ui, REQUEST_ENTER);
    draw_screen(ui, 120, 36, false);
    CHECK_INT(live_of(ui)->data.step, 101);
    const LiveRow *row = live_row(live_of(ui), live_of(ui)->view.event_top);
    CHECK(row && live_of(ui)->data.events[row->last].kind == EVENT_MESSAGE); // it stays on top
    CHECK(!ui->pager.open);
    screen_live.request(ui, REQUEST_ENTER);
    CHECK_TEXT(ui->pager.text, "of the same step, and later");
    close_screen(ui);
    store_close(store);
}

static void write_step(Store *store, int64_t run, int64_t step) {
    RunRecord record;
    CHECK_DONE(store_read_run(store, run, &record, &error));
    record.step = step;
    CHECK_DONE(store_update_run(store, &record, &error));
    record_clear(&record);
}

// The record of a fork jumps from 0 to behind the step that it begins at, which is no speed of its.
static void the_time_left_of_a_fork_is_that_of_its_own_steps(void) {
    Store *store = make_history(RUN_FINISHED);
    RunRecord record = some_run("fashion-cnn", "bf16");
    record.status = RUN_RUNNING;
    record.parent = 2;
    record.parent_step = 300;
    record.total_steps = 800;
    CHECK_DONE(store_add_run(store, &record, NULL, 0, &error));
    const int64_t run = record.id;
    record_clear(&record);
    Ui *ui = open_screen(store, run);
    screen_live.refresh(ui, 2);
    write_step(store, run, 302);
    screen_live.refresh(ui, 2);
    CHECK(!strstr(draw_screen(ui, 120, 36, false), " left"));
    write_step(store, run, 303);
    screen_live.refresh(ui, 4.9);
    CHECK_NEAR(live_of(ui)->late_rate, 0.2, 0.005); // 497 steps of 5 seconds
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), " left");
    close_screen(ui);
    store_close(store);
}

static void layers_that_are_not_shown_cannot_be_selected(void) {
    enum { MANY = LIVE_MOST_LAYERS + 910 };
    Store *store = make_history(RUN_FINISHED);
    RecordLayer *layers = calloc(MANY, sizeof *layers);
    RunRecord record;
    for (int i = 0; layers && i < MANY; i++) {
        layers[i] = (RecordLayer){.parent = -1, .precision = "fp16", .set = "auto"};
        snprintf(layers[i].name, sizeof layers[i].name, "blk.%d", i);
    }
    CHECK_DONE(layers && store_read_run(store, 2, &record, &error) &&
               record_set_layers(&record, layers, MANY, &error) &&
               store_update_run(store, &record, &error));
    record_clear(&record);
    free(layers);
    Ui *ui = open_screen(store, 2);
    live_select_layer(ui, live_of(ui), MANY - 1);
    const char *text = draw_screen(ui, 120, 36, false);
    CHECK_INT(live_of(ui)->view.layer, LIVE_MOST_LAYERS - 1);
    CHECK_CONTAINS(text, "4096 of 4096 · 4096 of 5006 shown");
    CHECK_CONTAINS(text, "▸blk.4095");
    close_screen(ui);
    store_close(store);
}

// By another program, while it is looked at: nothing of it stays, and nothing is offered of it.
static void a_run_that_was_removed_is_said_to_be_gone(void) {
    static const PanelId pages[] = {PANEL_NONE, PANEL_MAP, PANEL_WHAT_IF, PANEL_PROFILE,
                                    PANEL_MACHINE};
    Store *store = make_history(RUN_FINISHED);
    Ui *ui = open_screen(store, 2);
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "#2 fashion-cnn-2");
    CHECK_DONE(store_remove_run(store, 2, &error));
    CHECK(screen_live.refresh(ui, 2));
    CHECK_CONTAINS(said, "no run 2 in");
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        ui->maximised[SCREEN_LIVE] = pages[i];
        const char *text = draw_screen(ui, 120, 36, false);
        CHECK_CONTAINS(text, "#2 was removed");
        CHECK_CONTAINS(text, "this run was removed: choose another at home (1)");
        CHECK(!strstr(text, "conv1") && !strstr(text, "logged") && !strstr(text, "enter measures"));
    }
    said[0] = 0;
    screen_live.request(ui, REQUEST_FIRST_NAN);
    CHECK_CONTAINS(said, "this run was removed");
    screen_live.request(ui, REQUEST_PAUSE);
    CHECK_CONTAINS(said, "this run was removed");
    CHECK(!screen_live.label(ui, REQUEST_PAUSE, "pause"));
    ui->run = 1;
    ui->maximised[SCREEN_LIVE] = PANEL_NONE;
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "#1 fashion-cnn-1");
    close_screen(ui);
    store_close(store);
}

int main(void) {
    make_folder();
    atexit(remove_folder);
    RUN_TEST(the_cursor_shows_the_run_as_it_was);
    RUN_TEST(escape_goes_one_layer_out);
    RUN_TEST(the_header_tells_of_the_cursor_and_the_way_back);
    RUN_TEST(a_pause_is_shown_in_the_past_as_well);
    RUN_TEST(windows_zoom_and_pan_within_the_run);
    RUN_TEST(the_cross_hair_reads_values_off_all_curves);
    RUN_TEST(series_smoothing_and_axis_turn_with_their_keys);
    RUN_TEST(clicks_select_layers_and_the_wheel_scrolls);
    RUN_TEST(a_frozen_picture_stays_and_loses_nothing);
    RUN_TEST(a_run_that_goes_on_is_followed);
    RUN_TEST(the_newest_event_is_shown_whole);
    RUN_TEST(enter_goes_to_the_step_of_an_event);
    RUN_TEST(the_time_left_of_a_fork_is_that_of_its_own_steps);
    RUN_TEST(layers_that_are_not_shown_cannot_be_selected);
    RUN_TEST(a_run_that_was_removed_is_said_to_be_gone);
    return test_end();
}
