// The live screen: which of its keys the row at the foot offers, and as what.
#include "ui_live_fixture.h"

static void check(const Ui *ui, Request request, const char *expected) {
    const KeyBinding *binding = &ui->keymap.bindings[request];
    const char *label = screen_live.label(ui, request, binding->label);
    CHECK_MESSAGE(label ? expected && strcmp(label, expected) == 0 : !expected,
                  "%s is offered as \"%s\", expected \"%s\"", binding->name, label ? label : "-",
                  expected ? expected : "-");
}

static const Request orders[] = {REQUEST_FORMAT, REQUEST_FORMAT_ALL, REQUEST_SCALE, REQUEST_STOP,
                                 REQUEST_PAUSE};

static void a_run_that_goes_on_takes_orders(void) {
    Store *store = make_history(RUN_RUNNING);
    Ui *ui = open_screen(store, 2);
    draw_screen(ui, 120, 36, false);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        check(ui, orders[i], ui->keymap.bindings[orders[i]].label);
    check(ui, REQUEST_AUTO, NULL); // the policy has it
    check(ui, REQUEST_UNDO, NULL);
    check(ui, REQUEST_REPLAY_FASTER, NULL);
    snprintf(live_of(ui)->data.record.layers[0].set, 8, "fp32");
    check(ui, REQUEST_AUTO, "auto");
    live_of(ui)->changes[live_of(ui)->change_count++] =
        (LiveChange){.layer = 0, .count = 1, .before = calloc(1, 16)};
    check(ui, REQUEST_UNDO, "undo");
    live_of(ui)->data.record.status = RUN_PAUSED;
    check(ui, REQUEST_PAUSE, "go on");
    screen_live.request(ui, REQUEST_REPLAY); // both keys are the replay's while it is on
    check(ui, REQUEST_PAUSE, "pause");
    check(ui, REQUEST_REPLAY, "pause");
    check(ui, REQUEST_REPLAY_FASTER, "faster");
    screen_live.request(ui, REQUEST_PAUSE);
    check(ui, REQUEST_PAUSE, "go on");
    check(ui, REQUEST_REPLAY, "go on");
    close_screen(ui);
    store_close(store);
}

// Where another panel has the focus v does nothing.
static void series_are_offered_in_the_panels_that_have_them(void) {
    Store *store = make_history(RUN_RUNNING);
    Ui *ui = open_screen(store, 2);
    draw_screen(ui, 120, 36, false);
    check(ui, REQUEST_SERIES, NULL);
    ui->focus[SCREEN_LIVE] = PANEL_LOSS;
    check(ui, REQUEST_SERIES, "series");
    ui->focus[SCREEN_LIVE] = PANEL_HISTOGRAM;
    check(ui, REQUEST_SERIES, "over time");
    screen_live.request(ui, REQUEST_SERIES);
    check(ui, REQUEST_SERIES, "histogram");
    close_screen(ui);
    store_close(store);
}

// A key leads to them where there are some, and says what to do where there are none. What cannot
// be read is said on the page.
static void pictures_are_offered_where_there_are_some(void) {
    Store *store = make_history(RUN_RUNNING);
    Ui *ui = open_screen(store, 2);
    draw_screen(ui, 120, 36, false);
    check(ui, REQUEST_PICTURES, NULL);
    screen_live.request(ui, REQUEST_PICTURES);
    CHECK(!ui->pictures.open && strstr(said, "run:picture"));
    add_some_event(store, 2, 100, EVENT_PICTURE, NAN, "made", "made-100.png");
    add_some_event(store, 2, 200, EVENT_PICTURE, NAN, "made", "made-200.png");
    add_some_event(store, 2, 200, EVENT_PICTURE, NAN, "seen", "../../../etc/seen-200.png");
    live_of(ui)->moved = true;
    screen_live.refresh(ui, 1);
    check(ui, REQUEST_PICTURES, "pictures");
    screen_live.request(ui, REQUEST_PICTURES);
    CHECK(ui->pictures.open && ui->pictures.at == 2);
    CHECK(strcmp(ui->pictures.trouble, "its file lies nowhere") == 0);
    CHECK(pictures_request(ui, REQUEST_SERIES) && ui->pictures.at == 1);
    CHECK(strstr(ui->pictures.trouble, "made-200.png"));
    CHECK(pictures_request(ui, REQUEST_SCRUB_BACK) && ui->pictures.at == 0);
    CHECK(!pictures_look(ui));
    add_some_event(store, 2, 300, EVENT_PICTURE, NAN, "made", "made-300.png");
    CHECK(!pictures_look(ui)); // it does not follow
    CHECK(pictures_request(ui, REQUEST_LAST) && ui->pictures.at == 3);
    add_some_event(store, 2, 400, EVENT_PICTURE, NAN, "made", "made-400.png");
    CHECK(pictures_look(ui) && ui->pictures.at == 4);
    CHECK(pictures_request(ui, REQUEST_BACK) && !ui->pictures.open);
    close_screen(ui);
    store_close(store);
}

static void a_run_that_is_over_is_replayed_and_takes_none(void) {
    Store *store = make_history(RUN_FINISHED);
    Ui *ui = open_screen(store, 2);
    draw_screen(ui, 120, 36, false);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        check(ui, orders[i], NULL);
    check(ui, REQUEST_REPLAY, "replay");
    check(ui, REQUEST_SCRUB_BACK, "scrub");
    check(ui, REQUEST_COMPARE, "compare");
    check(ui, REQUEST_REPLAY_SLOWER, NULL);
    screen_live.request(ui, REQUEST_REPLAY);
    check(ui, REQUEST_REPLAY, "pause");
    check(ui, REQUEST_REPLAY_SLOWER, "slower");
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        check(ui, orders[i], NULL);
    screen_live.request(ui, REQUEST_REPLAY);
    check(ui, REQUEST_REPLAY, "go on");
    close_screen(ui);
    store_close(store);
}

static void ways_through_the_steps_are_offered_where_they_lead_on(void) {
    Store *store = make_history(RUN_RUNNING);
    Ui *ui = open_screen(store, 2);
    draw_screen(ui, 120, 36, false);
    check(ui, REQUEST_SCRUB_BACK, "scrub");
    check(ui, REQUEST_SCRUB_FORWARD, NULL); // there is nothing later
    screen_live.request(ui, REQUEST_SCRUB_BACK);
    check(ui, REQUEST_SCRUB_BACK, "earlier");
    check(ui, REQUEST_SCRUB_FORWARD, "later");
    close_screen(ui);
    store_close(store);
}

static void without_a_run_nothing_is_offered(void) {
    Store *store = fresh_store("empty.db");
    Ui *ui = open_screen(store, 0);
    for (int i = REQUEST_NONE + 1; i < REQUESTS; i++)
        if ((ui->keymap.bindings[i].where & ON_LIVE) && ui->keymap.bindings[i].where != ON_ALL &&
            ui->keymap.bindings[i].label[0])
            check(ui, (Request)i, NULL);
    close_screen(ui);
    store_close(store);
}

int main(void) {
    make_folder();
    atexit(remove_folder);
    RUN_TEST(a_run_that_goes_on_takes_orders);
    RUN_TEST(series_are_offered_in_the_panels_that_have_them);
    RUN_TEST(a_run_that_is_over_is_replayed_and_takes_none);
    RUN_TEST(ways_through_the_steps_are_offered_where_they_lead_on);
    RUN_TEST(without_a_run_nothing_is_offered);
    RUN_TEST(pictures_are_offered_where_there_are_some);
    return test_end();
}
