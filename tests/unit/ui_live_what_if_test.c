// The page of all formats: what each would do to the selected layer's gradients at the cursor.
#include "ui_live_fixture.h"

static Ui *open_page(Store *store, int64_t run, int layer) {
    Ui *ui = open_screen(store, run);
    draw_screen(ui, 120, 36, false);
    live_select_layer(ui, live_of(ui), layer);
    CHECK(screen_live.request(ui, REQUEST_WHAT_IF));
    draw_screen(ui, 120, 36, false);
    return ui;
}

// The row of a format, without blanks between words: "fp16 9.7% 9.7% 0 0 2^19 to 2^25".
static const char *row_of(const char *text, const char *format) {
    static char row[400];
    size_t used = 0;
    char name[32];
    snprintf(name, sizeof name, "%s ", format);
    row[0] = 0;
    for (const char *line = text; line && *line; line = strchr(line, '\n') + 1) {
        const char *end = strchr(line, '\n'), *at = line;
        while (at < end && (*at == ' ' || (*at & 0x80) || *at == '>' || *at == '|'))
            at++;
        if (strncmp(at, name, strlen(name)) != 0)
            continue;
        for (; at < end; at++) {
            bool is_blank = *at == ' ' || (*at & 0x80) || *at == '|';
            if (!is_blank || (used > 0 && row[used - 1] != ' '))
                row[used++] = is_blank ? ' ' : *at;
        }
        while (used > 0 && row[used - 1] == ' ')
            used--;
        row[used] = 0;
        break;
    }
    return row;
}

// "hidden": 107 of 1107 at 2^-44, which fp16 flushes at 2^16 as it was counted, and keeps from 2^19
// on; its largest are 1.5 * 2^-14.
static void every_format_says_what_it_would_lose(void) {
    Store *store = make_history(RUN_RUNNING);
    Ui *ui = open_page(store, 2, 3);
    const char *text = frame_text(&ui->frame);
    CHECK_CONTAINS(text, "hidden in fp16 among steps ");
    CHECK_CONTAINS(text, "at the loss scale 2^16");
    CHECK_CONTAINS(text, "scales: these steps");
    CHECK_TEXT(row_of(text, "fp16"), "fp16 9.7% 9.7% 0 0 2^19 to 2^29");
    CHECK(strncmp(row_of(text, "bf16"), "bf16 0 0 0 0 2^", 15) == 0);
    WhatIfRow rows[FORMAT_COUNT];
    int count = what_if_rows(&live_of(ui)->data.layers[3], 65536, rows);
    for (int i = 0; i < count; i++)
        CHECK_MESSAGE(row_of(text, format_name(rows[i].format))[0], "%s is not there",
                      format_name(rows[i].format));
    CHECK_CONTAINS(text, "own, from 2^");
    close_screen(ui);
    store_close(store);
}

static void a_supposed_scale_is_that_of_plain_formats(void) {
    Store *store = make_history(RUN_RUNNING);
    Ui *ui = open_page(store, 2, 3);
    char fp8[400];
    snprintf(fp8, sizeof fp8, "%s", row_of(frame_text(&ui->frame), "fp8"));
    for (int i = 0; i < 3; i++)
        screen_live.request(ui, REQUEST_HYPOTHESIS_UP);
    const char *text = draw_screen(ui, 120, 36, false);
    CHECK_CONTAINS(text, "2^19, which is supposed");
    CHECK(strncmp(row_of(text, "fp16"), "fp16 0 0 0 ", 11) == 0);
    CHECK_TEXT(row_of(text, "fp8"), fp8); // it brings its own
    for (int i = 0; i < 11; i++)
        screen_live.request(ui, REQUEST_HYPOTHESIS_UP);
    text = draw_screen(ui, 120, 36, false);
    CHECK(strstr(row_of(text, "fp16"), "%") != NULL); // 2^30 overflows
    screen_live.request(ui, REQUEST_UP);              // another layer is at the same
    screen_live.request(ui, REQUEST_DOWN);
    CHECK_INT(live_of(ui)->view.hypothesis, 14);
    close_screen(ui);
    store_close(store);
}

static void it_goes_with_the_cursor_and_the_layer(void) {
    Store *store = make_history(RUN_RUNNING);
    Ui *ui = open_page(store, 2, 3);
    live_go_to_step(ui, live_of(ui), 200);
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "at the loss scale 2^15");
    screen_live.request(ui, REQUEST_LEFT);
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "hidden in fp16 among steps 196 to 199");
    screen_live.request(ui, REQUEST_UP);
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "norm in fp32");
    screen_live.request(ui, REQUEST_NEXT_PANEL); // pages are gone through with tab
    CHECK(live_page(ui) != PANEL_WHAT_IF && live_page(ui) != PANEL_NONE);
    screen_live.request(ui, REQUEST_PREVIOUS_PANEL);
    CHECK_INT(live_page(ui), PANEL_WHAT_IF);
    CHECK_TEXT(screen_live.label(ui, REQUEST_FORMAT, "format"), "format");
    CHECK_TEXT(screen_live.label(ui, REQUEST_WHAT_IF, "table"), "close");
    CHECK(screen_live.request(ui, REQUEST_BACK));
    CHECK_INT(ui->focus[SCREEN_LIVE], PANEL_LAYERS);
    close_screen(ui);
    store_close(store);
}

// No key is pressed in vain on the way back from the last format.
static void formats_are_scrolled_no_further_than_to_the_last(void) {
    Store *store = make_history(RUN_FINISHED);
    Ui *ui = open_page(store, 2, 3);
    draw_screen(ui, 60, 16, false);
    for (int i = 0; i < 6; i++)
        screen_live.request(ui, REQUEST_PAGE_DOWN);
    char *end = strdup(draw_screen(ui, 60, 16, false));
    CHECK_CONTAINS(end, "formats ");
    screen_live.request(ui, REQUEST_PAGE_UP);
    CHECK(strcmp(draw_screen(ui, 60, 16, false), end) != 0);
    free(end);
    draw_screen(ui, 200, 60, false);
    screen_live.request(ui, REQUEST_PAGE_DOWN); // all are there
    CHECK_INT(live_of(ui)->view.format_top, 0);
    close_screen(ui);
    store_close(store);
}

static int64_t add_one_layer(Store *store, LayerSample sample) {
    RunRecord record = some_run("one", "fp16");
    RecordLayer layer = {.name = "only", .parent = -1, .precision = "fp16", .set = "auto"};
    record.step = 1;
    CHECK_DONE(record_set_layers(&record, &layer, 1, &error));
    CHECK_DONE(store_add_run(store, &record, NULL, 0, &error));
    int64_t run = record.id;
    record_clear(&record);
    SeriesWriter *writer = series_writer_new(store, run, 0, "start", &error);
    CHECK_DONE(series_add(writer, "loss", 1, 1, &error));
    CHECK_DONE(layers_add(writer, 0, &sample, &error));
    CHECK_DONE(store_begin(store, &error) && series_flush(writer, 0.1, &error) &&
               store_commit(store, &error));
    series_writer_free(writer);
    return run;
}

// A norm written by hand computes in fp16 while its gradients are rounded to fp32.
static void what_a_layer_computes_in_is_named_and_not_what_gradients_are_in(void) {
    Store *store = fresh_store("hand.db");
    LayerSample gone = {.step = 1, .width = 1, .count = 100, .zeros = 100, .precision = "fp32"};
    gone.update_ratio = gone.seconds = (double)NAN;
    Ui *ui = open_page(store, add_one_layer(store, gone), 0);
    const char *text = frame_text(&ui->frame);
    CHECK_CONTAINS(text, "only in fp16 at step 1");
    CHECK(!strstr(text, "no format of this layer"));
    CHECK_CONTAINS(text, "overflowed or vanished in its own fp16, fp32 of this layer");
    screen_live.request(ui, REQUEST_WHAT_IF);
    text = draw_screen(ui, 120, 36, false);
    CHECK_CONTAINS(text, "fp16 auto");
    CHECK_CONTAINS(text, "Lost in what it computes itself, where fp32 mends it");
    screen_live.request(ui, REQUEST_MAP);
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "only       fp16");
    close_screen(ui);
    store_close(store);
}

static void where_nothing_is_left_it_promises_nothing(void) {
    Store *store = fresh_store("gone.db");
    LayerSample gone = {.step = 1, .width = 1, .count = 100, .zeros = 100, .precision = "fp16"};
    LayerSample broken = {.step = 1, .width = 1, .count = 100, .nans = 100, .precision = "fp16"};
    gone.update_ratio = gone.seconds = broken.update_ratio = broken.seconds = (double)NAN;
    Ui *ui = open_page(store, add_one_layer(store, gone), 0);
    const char *text = frame_text(&ui->frame);
    CHECK_CONTAINS(text, "100 % zero");
    CHECK_CONTAINS(text, "All of its gradients were zero when they came");
    CHECK(!row_of(text, "bf16")[0]); // none is told to keep what never came
    close_screen(ui);
    ui = open_page(store, add_one_layer(store, broken), 0);
    text = frame_text(&ui->frame);
    CHECK_CONTAINS(text, "100 % not finite");
    CHECK_CONTAINS(text, "None of its gradients was finite");
    CHECK(!row_of(text, "fp32")[0]);
    close_screen(ui);
    store_close(store);
    store = fresh_store("none.db");
    ui = open_page(store, 0, 0);
    CHECK_CONTAINS(draw_screen(ui, 80, 24, false), "no run is open");
    close_screen(ui);
    store_close(store);
}

static void it_fits_every_size_in_both_kinds_of_characters(void) {
    Store *store = make_history(RUN_RUNNING);
    Ui *ui = open_page(store, 2, 3);
    for (int columns = 60; columns <= 240; columns += 20)
        for (int rows = 16; rows <= 60; rows += 8) {
            const char *text = draw_screen(ui, columns, rows, true);
            CHECK_CONTAINS(text, "every format");
            CHECK_CONTAINS(text, "2^19 to 2^29");
            for (const char *at = text; *at; at++)
                CHECK((*at >= ' ' && *at <= '~' && *at != '?') || *at == '\n');
        }
    const char *text = draw_screen(ui, 60, 16, true);
    CHECK_CONTAINS(text, "formats 1 to ");
    CHECK(!row_of(text, "nvfp4")[0]);
    for (int i = 0; i < 4; i++)
        screen_live.request(ui, REQUEST_PAGE_DOWN);
    CHECK(row_of(draw_screen(ui, 60, 16, true), "nvfp4")[0]); // the rest is a page down
    close_screen(ui);
    store_close(store);
}

int main(void) {
    make_folder();
    atexit(remove_folder);
    RUN_TEST(every_format_says_what_it_would_lose);
    RUN_TEST(a_supposed_scale_is_that_of_plain_formats);
    RUN_TEST(it_goes_with_the_cursor_and_the_layer);
    RUN_TEST(formats_are_scrolled_no_further_than_to_the_last);
    RUN_TEST(what_a_layer_computes_in_is_named_and_not_what_gradients_are_in);
    RUN_TEST(where_nothing_is_left_it_promises_nothing);
    RUN_TEST(it_fits_every_size_in_both_kinds_of_characters);
    return test_end();
}
