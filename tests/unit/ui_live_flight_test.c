// The live screen: the page of the first number that was not finite, and the fork that it asks for.
#include "compare/flight_words.h"
#include "store/flight.h"
#include "ui_live_fixture.h"

typedef struct Kept {
    Store *store;
    int64_t run;
} Kept;

static void keep(void *context, const char *name, const char *text) {
    const Kept *kept = context;
    add_some_event(kept->store, kept->run, 300, EVENT_FLIGHT, NAN, name, text);
}

// `from`: the step to fork from; 0: there is none.
static void add_flight(Store *store, int64_t run, int64_t from) {
    Flight flight = {.nans = -1, .infs = 12, .elements = 640, .from = from, .limit = 65504};
    Kept kept = {store, run};
    snprintf(flight.way, sizeof flight.way, "forward");
    snprintf(flight.tensor, sizeof flight.tensor, "output of linear");
    snprintf(flight.layer, sizeof flight.layer, "hidden");
    snprintf(flight.format, sizeof flight.format, "%s", format_name(FORMAT_FP16));
    snprintf(flight.led, sizeof flight.led, "outputs rose");
    snprintf(flight.remedy, sizeof flight.remedy, "another format");
    snprintf(flight.change, sizeof flight.change, "layer.hidden=%s", format_name(FORMAT_BF16));
    for (flight.count = 0; flight.count < FLIGHT_STEPS; flight.count++) {
        flight.steps[flight.count] = 300 - FLIGHT_STEPS + 1 + flight.count;
        flight.each[flight.count] =
            (FlightWay){exp2(flight.count / 2.0), 0.5, (double)NAN, 0, 65536};
    }
    flight.each[FLIGHT_STEPS - 1].activation = INFINITY;
    add_some_event(store, run, 300, EVENT_FAULT, NAN, "hidden", "inf at step 300");
    flight_write(&flight, keep, &kept);
}

static void a_run_that_is_well_has_no_page(void) {
    Store *store = make_history(RUN_FINISHED);
    Ui *ui = open_screen(store, 2);
    draw_screen(ui, 120, 36, false);
    CHECK(!screen_live.label(ui, REQUEST_FIRST_NAN, "first nan"));
    screen_live.request(ui, REQUEST_FIRST_NAN);
    CHECK(!ui->pager.open);
    CHECK_CONTAINS(said, "nothing was not finite");
    close_screen(ui);
    store_close(store);
}

static void the_page_has_the_way_there_and_enter_asks_for_the_fork(void) {
    Store *store = make_history(RUN_FINISHED);
    add_flight(store, 2, 299);
    Ui *ui = open_screen(store, 2);
    draw_screen(ui, 120, 36, false);
    CHECK_TEXT(screen_live.label(ui, REQUEST_FIRST_NAN, "first nan"), "first nan");
    screen_live.request(ui, REQUEST_FIRST_NAN);
    CHECK(ui->pager.open);
    CHECK_CONTAINS(ui->pager.text, "step 300, forward: output of linear, in fp16");
    CHECK_CONTAINS(ui->pager.text, "layer     hidden");
    CHECK_CONTAINS(ui->pager.text, "enter asks for it: fork 299 layer.hidden=bf16");
    CHECK_CONTAINS(ui->pager.text, "step 269 to 300");
    CHECK_CONTAINS(ui->pager.text, "fp16 ends");
    CHECK_TEXT(ui->pager.order, "fork 299 layer.hidden=bf16");
    close_screen(ui);
    store_close(store);
}

// As in the first step, before which there is no state to fork.
static void without_a_step_to_fork_the_page_has_the_command(void) {
    Store *store = make_history(RUN_FINISHED);
    add_flight(store, 2, 0);
    Ui *ui = open_screen(store, 2);
    draw_screen(ui, 120, 36, false);
    screen_live.request(ui, REQUEST_FIRST_NAN);
    CHECK(ui->pager.open);
    CHECK_CONTAINS(ui->pager.text, "command   mpbench run ");
    CHECK_CONTAINS(ui->pager.text, "--layer hidden=bf16");
    CHECK_TEXT(ui->pager.order, "");
    close_screen(ui);
    store_close(store);
}

// A norm's statistics are neither activations nor gradients nor weights, and inf all the same; and
// the legend has every mark that is drawn.
static void the_step_that_is_told_of_is_marked_whatever_broke(void) {
    Flight flight = {.step = 1, .count = 1, .steps = {1}, .limit = 65504};
    FlightPlot plot;
    flight.each[0] = (FlightWay){.activation = 100, .gradient = 90, .weight = 95};
    flight_plot(&flight, &plot);
    CHECK_CONTAINS(plot.lines[0], "!");
    CHECK_CONTAINS(plot.lines[plot.count - 1], "* several, ! not finite");
}

// Files may be damaged, or written by hand.
static void what_makes_no_sense_ends_the_way_there(void) {
    Store *store = make_history(RUN_FINISHED);
    Flight flight;
    FlightPlot plot;
    bool found;
    add_some_event(store, 2, 300, EVENT_FAULT, NAN, "hidden", "inf at step 300");
    add_some_event(store, 2, 300, EVENT_FLIGHT, NAN, "way.steps", "299 - 1e300");
    add_some_event(store, 2, 300, EVENT_FLIGHT, NAN, "way.weight", "0.5 0.5 0.5");
    add_some_event(store, 2, 300, EVENT_FLIGHT, NAN, "limit", "0");
    CHECK_MESSAGE(store_read_flight(store, 2, &flight, &found, &error), "%s", error.text);
    CHECK(found && isnan(flight.limit));
    CHECK_INT(flight.count, 1);
    CHECK_INT(flight.steps[0], 299);
    flight_plot(&flight, &plot);
    CHECK_CONTAINS(plot.lines[FLIGHT_PLOT_ROWS], "step 299 to 299");
    store_close(store);
}

int main(void) {
    make_folder();
    atexit(remove_folder);
    RUN_TEST(a_run_that_is_well_has_no_page);
    RUN_TEST(the_page_has_the_way_there_and_enter_asks_for_the_fork);
    RUN_TEST(without_a_step_to_fork_the_page_has_the_command);
    RUN_TEST(the_step_that_is_told_of_is_marked_whatever_broke);
    RUN_TEST(what_makes_no_sense_ends_the_way_there);
    return test_end();
}
