// The events of the live screen: what repeats is one row, causes stand above what they led to.
#include "ui_live_fixture.h"

static void add_skip(Store *store, int64_t step, double before, double after, const char *layer) {
    char text[200];
    snprintf(text, sizeof text,
             "step %lld skipped: gradient of %s.weight not finite, scale %.9g -> %.9g; the loss is "
             "finite: the scale was too large",
             (long long)step, layer, before, after);
    add_some_event(store, 2, step, EVENT_SKIP, after, layer, text);
}

static void add_growth(Store *store, int64_t step, double before, double after) {
    char text[80];
    snprintf(text, sizeof text, "the loss scale went from %.9g to %.9g", before, after);
    add_some_event(store, 2, step, EVENT_SCALE, after, "", text);
}

static const char *text_of(Ui *ui, int row, bool brief) {
    static char text[2 * EVENT_TEXT_SIZE];
    const LiveRow *found = live_row(live_of(ui), row);
    text[0] = 0;
    if (found)
        live_say_row(live_of(ui), found, brief, text, sizeof text);
    return text;
}

// Two runs, and in the second nothing has happened yet.
static Store *quiet_history(void) {
    Store *store = fresh_store("events.db");
    add_history_run(store, "fp32", RUN_FINISHED);
    add_history_run(store, "fp16", RUN_FINISHED);
    return store;
}

static void repeats_are_one_row_with_a_count(void) {
    Store *store = quiet_history();
    add_some_event(store, 2, 0, EVENT_LIFE, NAN, "", "started");
    for (int i = 0; i < 10; i++) {
        add_skip(store, 100 + 2 * i, 0x1p17, 0x1p16, i % 5 == 0 ? "conv1" : "head");
        add_growth(store, 101 + 2 * i, 0x1p16, 0x1p17);
    }
    for (int i = 0; i < 3; i++)
        add_some_event(store, 2, 200 + 50 * i, EVENT_MESSAGE, NAN, "", "an epoch is over");
    add_some_event(store, 2, 200, EVENT_CHECKPOINT, NAN, "", "checkpoint of step 200, 1.0 MB");
    add_some_event(store, 2, 300, EVENT_CHECKPOINT, NAN, "", "checkpoint of step 300, 1.0 MB");
    Ui *ui = open_screen(store, 2);
    const char *text = draw_screen(ui, 200, 60, false);
    CHECK_INT(live_of(ui)->data.row_count, 4);
    CHECK_TEXT(text_of(ui, 0, false), "checkpoint of step 300, 1.0 MB; 1 before it");
    CHECK_TEXT(text_of(ui, 1, false), "3× an epoch is over");
    CHECK_TEXT(text_of(ui, 2, false),
               "10 skipped since step 100, by head 8, conv1 2; scale 2^17 (2^16 to 2^17), grown 10 "
               "times; the scale was too large");
    CHECK_TEXT(text_of(ui, 2, true), "10× by head 8, conv1 2; 2^17");
    CHECK_TEXT(text_of(ui, 3, false), "started");
    CHECK_CONTAINS(text, "119 skip  10 skipped since step 100");
    ui->focus[SCREEN_LIVE] = PANEL_EVENTS; // all of them are on its page
    live_of(ui)->view.event_top = 2;
    screen_live.request(ui, REQUEST_ENTER);
    draw_screen(ui, 200, 60, false);
    CHECK_INT(live_of(ui)->data.step, 119);
    CHECK_INT(live_of(ui)->view.event_top, 0);
    screen_live.request(ui, REQUEST_ENTER);
    CHECK_CONTAINS(ui->pager.text, "step 119: the loss scale went from 2^16 to 2^17\nstep 118: ");
    CHECK_CONTAINS(ui->pager.text, "step 100: gradient of conv1.weight not finite");
    close_screen(ui);
    store_close(store);
}

static void the_words_of_a_script_stay_as_they_are(void) {
    Store *store = quiet_history();
    add_some_event(store, 2, 9, EVENT_MESSAGE, NAN, "", "at this scale 64 images -> 2 lines");
    Ui *ui = open_screen(store, 2);
    draw_screen(ui, 200, 60, false);
    CHECK_TEXT(text_of(ui, 0, false), "at this scale 64 images -> 2 lines");
    close_screen(ui);
    store_close(store);
}

// A rule that finds its limit every two thousand steps, and once a burst of its own.
static void what_comes_back_again_and_again_is_one_row(void) {
    Store *store = quiet_history();
    for (int i = 0; i < 4; i++) {
        add_growth(store, 40 * i + 30, 0x1p16, 0x1p17);
        add_skip(store, 40 * i + 31, 0x1p17, 0x1p16, "head");
    }
    for (int i = 0; i < 3; i++)
        add_skip(store, 300 + i, ldexp(1, 20 - i), ldexp(1, 19 - i), "conv2");
    add_growth(store, 380, 0x1p17, 0x1p18);
    Ui *ui = open_screen(store, 2);
    draw_screen(ui, 120, 36, false);
    CHECK_INT(live_of(ui)->data.row_count, 3);
    CHECK_TEXT(text_of(ui, 0, false), "the loss scale went from 2^17 to 2^18");
    CHECK_TEXT(text_of(ui, 1, true), "3× by conv2; 2^20 → 2^17");
    CHECK_CONTAINS(text_of(ui, 2, false), "4 skipped since step 30, by head; scale 2^16");
    close_screen(ui);
    store_close(store);
}

static void causes_stand_above_what_they_led_to(void) {
    Store *store = quiet_history();
    static const char *const expected[] = {
        "the loss scale is 2^20", "loss is nan", "floor", "4 skipped", "failed", "started"};
    add_some_event(store, 2, 0, EVENT_LIFE, NAN, "", "started");
    add_some_event(store, 2, 287, EVENT_COMMAND, NAN, "", "the loss scale is 1048576");
    add_skip(store, 288, 0x1p20, 0x1p19, "head");
    add_some_event(store, 2, 289, EVENT_DIAGNOSIS, NAN, "", "loss is nan");
    for (int i = 0; i < 3; i++)
        add_skip(store, 289 + i, ldexp(1, 19 - i), ldexp(1, 18 - i), "head");
    add_some_event(store, 2, 291, EVENT_DIAGNOSIS, NAN, "", "floor");
    add_some_event(store, 2, 291, EVENT_LIFE, NAN, "", "failed");
    Ui *ui = open_screen(store, 2);
    draw_screen(ui, 120, 36, false);
    for (int i = 0; i < 6; i++)
        CHECK_MESSAGE(strstr(text_of(ui, i, false), expected[i]) == text_of(ui, i, false),
                      "row %d: %s", i, text_of(ui, i, false));
    CHECK_INT(live_of(ui)->data.row_count, 6);
    close_screen(ui);
    store_close(store);
}

int main(void) {
    make_folder();
    atexit(remove_folder);
    RUN_TEST(repeats_are_one_row_with_a_count);
    RUN_TEST(the_words_of_a_script_stay_as_they_are);
    RUN_TEST(what_comes_back_again_and_again_is_one_row);
    RUN_TEST(causes_stand_above_what_they_led_to);
    return test_end();
}
