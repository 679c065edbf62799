// The live screen: what it says of gradients that are lost or not finite, and of scales that suit.
#include "ui_live_fixture.h"

// At the end the scale of step 101 was held for a hundred steps; of later ones nothing is known.
static void no_scale_is_advised_at_which_a_step_overflowed_since(void) {
    static const struct {
        int64_t step;
        const char *text, *told;
    } skips[] = {
        {101, "gradient of head.weight not finite at scale 131072",
         "At 2^19 all would stay, but step 101 overflowed at 2^17"},
        {398,
         "step 398 skipped: gradient of head.weight not finite, scale 524288 -> 65536; the "
         "loss is finite: the scale was too large",
         "At 2^19 all would stay, but step 398 overflowed at 2^19"},
        {398, "gradient of head.weight not finite, scale 1048576 -> 65536",
         "At 2^19 all would stay, and fit; bf16 keeps all."},
        {398, "gradient of head.weight not finite", "At 2^19 all would stay, and fit; bf16"},
    };
    for (size_t i = 0; i < sizeof skips / sizeof *skips; i++) {
        Store *store = make_history(RUN_RUNNING);
        add_some_event(store, 2, skips[i].step, EVENT_SKIP, 65536, "head.weight", skips[i].text);
        Ui *ui = open_screen(store, 2);
        CHECK_CONTAINS(draw_screen(ui, 120, 36, false), skips[i].told);
        close_screen(ui);
        store_close(store);
    }
    Store *store =
        make_history(RUN_RUNNING); // 2^19 overflowed at step 302, and is held from 310 on
    add_some_event(store, 2, 302, EVENT_SKIP, 262144, "head.weight",
                   "gradient of head.weight not finite, scale 524288 -> 262144");
    add_some_event(store, 2, 310, EVENT_SCALE, 524288, "", "the loss scale went up");
    add_some_event(store, 2, 390, EVENT_SCALE, 65536, "", "the loss scale went down");
    Ui *ui = open_screen(store, 2);
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "At 2^19 all would stay, and fit; bf16");
    close_screen(ui);
    store_close(store);
}

static void set_samples(Ui *ui, const LayerSample *sample) {
    LiveData *data = &live_of(ui)->data;
    for (int i = 0; i < data->layer_count; i++)
        if (i != 2) // a norm
            data->layers[i] = *sample;
}

// Loads the screen anew, so that what a test puts in its place is drawn.
static const char *draw_again(Ui *ui, int columns, int rows) {
    if (!frame_init(&ui->frame, columns, rows, &error))
        abort();
    ui->layout = layout_of(SCREEN_LIVE, columns, rows, PANEL_NONE);
    for (int i = 0; i < ui->layout.count; i++) {
        const Panel *panel = &ui->layout.panels[i];
        screen_live.draw_panel(ui, panel->id,
                               area_part(frame_area(&ui->frame), panel->column, panel->row,
                                         panel->width, panel->height),
                               false);
    }
    return frame_text(&ui->frame);
}

static void what_vanished_is_never_called_fine(void) {
    Store *store = make_history(RUN_RUNNING);
    Ui *ui = open_screen(store, 2);
    static const char *const fine[] = {"No layer flushes", "fits", "2^16 to", NULL};
    LayerSample gone = {
        .step = STEPS, .width = 1, .count = 1000, .zeros = 1000, .precision = "fp16"};
    snprintf(live_of(ui)->data.record.scale_rule, sizeof live_of(ui)->data.record.scale_rule,
             "none");
    live_of(ui)->data.used_scale = 1;
    set_samples(ui, &gone);
    for (int i = 0; i < SIZES; i++) {
        const char *text = draw_again(ui, terminal_sizes[i][0], terminal_sizes[i][1]);
        CHECK_CONTAINS(text, "100%");
        CHECK_CONTAINS(text, "100 % zero");
        CHECK_CONTAINS(text, "All gradients of head and 3 more are zero");
        for (int j = 0; fine[j]; j++)
            CHECK_MESSAGE(!strstr(text, fine[j]), "\"%s\" in %s", fine[j], text);
    }
    CHECK_CONTAINS(draw_again(ui, 120, 36), "dynamic finds its own scale");
    CHECK_CONTAINS(frame_text(&ui->frame), "none · 1 skipped");
    CHECK_CONTAINS(frame_text(&ui->frame), "(s sets a scale)");
    live_of(ui)->data.scale = 1;
    live_of(ui)->view.cursor = STEPS;
    live_of(ui)->data.record.status = RUN_FINISHED;
    CHECK_CONTAINS(draw_again(ui, 120, 36), "none at step 400");
    CHECK(!strstr(frame_text(&ui->frame), "(s sets a scale)"));
    // Flushed, and so with a histogram that says how much scale is missing.
    LayerSample small = gone;
    small.zeros = 0;
    small.flushed = 1000;
    small.largest = 0x1.8p-36;
    small.bins[-36 - LAYER_LOWEST_EXPONENT] = 1000;
    set_samples(ui, &small);
    for (int i = 0; i < SIZES; i++) {
        const char *text = draw_again(ui, terminal_sizes[i][0], terminal_sizes[i][1]);
        CHECK_CONTAINS(text, "loses 100 %");
        CHECK_CONTAINS(text, i == 0 ? "≥2^11" : "2^11 and more suit");
        CHECK(!strstr(text, "fits"));
    }
    CHECK_CONTAINS(draw_again(ui, 120, 36), "At 2^11 all would stay, and fit");
    close_screen(ui);
    store_close(store);
}

// No loss scale mends what was lost on the way forward.
static void zeros_of_the_way_forward_ask_for_no_scale(void) {
    Store *store = make_history(RUN_RUNNING);
    Ui *ui = open_screen(store, 2);
    LayerSample gone = {
        .step = STEPS, .width = 1, .count = 1000, .zeros = 1000, .precision = "fp16"};
    LayerSample large = {
        .step = STEPS, .width = 1, .count = 1000, .largest = 0x1.8p-6, .precision = "fp16"};
    large.bins[-6 - LAYER_LOWEST_EXPONENT] = 1000;
    live_of(ui)->data.used_scale = 1024;
    set_samples(ui, &gone);
    live_of(ui)->data.layers[3] = large;
    const char *text = draw_again(ui, 120, 36);
    CHECK_CONTAINS(text, "far above what fp16 flushes");
    CHECK(!strstr(text, "larger scale"));
    large.bins[-6 - LAYER_LOWEST_EXPONENT] = 500;
    large.bins[-34 - LAYER_LOWEST_EXPONENT] = 500;
    live_of(ui)->data.layers[3] = large;
    CHECK_CONTAINS(draw_again(ui, 120, 36), "larger scale");
    close_screen(ui);
    add_some_event(store, 2, 39, EVENT_FAULT, 0, "hidden", "inf at step 39 on the way forward");
    ui = open_screen(store, 2);
    set_samples(ui, &gone);
    text = draw_again(ui, 120, 36);
    CHECK_CONTAINS(text, "Numbers of hidden were not finite");
    CHECK(!strstr(text, "larger scale"));
    close_screen(ui);
    store_close(store);
}

// The run says whom it blames; the panels say the same.
static void what_is_not_finite_is_said_of_the_layer_that_is_blamed(void) {
    Store *store = make_history(RUN_RUNNING);
    add_some_event(store, 2, 400, EVENT_SKIP, 65536, "hidden",
                   "step 400 skipped: gradient of hidden.weight not finite, scale 131072 -> 65536; "
                   "the loss is finite: the scale was too large");
    Ui *ui = open_screen(store, 2);
    draw_screen(ui, 120, 36, false);
    LiveData *data = &live_of(ui)->data;
    CHECK_NEAR(data->used_scale, 131072, 0); // and not what it came down to
    for (int i = 0; i < data->layer_count; i++)
        data->layers[i].width = 1;
    data->layers[3].infs = 158;
    data->layers[0].infs = 200;
    const char *text = draw_again(ui, 120, 36);
    CHECK_CONTAINS(text, "hidden: 158 of ");
    CHECK_CONTAINS(text, " gradients at 2^17 are not finite; also conv1");
    CHECK_CONTAINS(text, "last by hidden");
    Event *skip = &data->events[data->event_count - 1];
    skip->layer[0] = 0; // an older run: the one with most
    CHECK_CONTAINS(draw_again(ui, 120, 36), "conv1: 200 of ");
    snprintf(skip->text, sizeof skip->text,
             "gradient of conv1.weight not finite, scale 131072 -> 65536; the loss is not finite "
             "either: the forward pass overflowed");
    CHECK_CONTAINS(draw_again(ui, 120, 36), "no loss scale mends that");
    CHECK_CONTAINS(frame_text(&ui->frame), "1 skipped of 400, loss not finite");
    data->record.skipped = 327, data->record.step = 123456; // no room for all: the reason goes
    CHECK_CONTAINS(draw_again(ui, 120, 36), " · 327 skipped of 123,456 ");
    CHECK(!strstr(frame_text(&ui->frame), "2^16 suit")); // of all layers
    close_screen(ui);
    store_close(store);
}

// What is ordered between two steps holds in the second, whose value was logged after it.
static void the_scale_of_a_step_is_the_one_it_computed_with(void) {
    Store *store = make_history(RUN_RUNNING);
    static const struct {
        int64_t step;
        double scale;
    } steps[] = {{100, 65536},   {101, 65536}, {102, 32768},
                 {251, 1048576}, {301, 32768}, {302, 65536}};
    add_some_event(store, 2, 250, EVENT_COMMAND, NAN, "",
                   "the loss scale is 1048576 from step 251 on");
    Ui *ui = open_screen(store, 2);
    draw_screen(ui, 200, 60, false);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        live_put_cursor(ui, live_of(ui), steps[i].step);
        draw_screen(ui, 200, 60, false);
        CHECK_INT(live_of(ui)->data.step, steps[i].step);
        CHECK_NEAR(live_of(ui)->data.used_scale, steps[i].scale, 0);
    }
    close_screen(ui);
    store_close(store);
}

// The curve of what came of a step does not reach the scale that overflowed.
static void the_scale_that_overflowed_is_in_its_curve(void) {
    Store *store = make_history(RUN_RUNNING);
    add_some_event(store, 2, 200, EVENT_SKIP, 32768, "head",
                   "gradient of head.weight not finite, scale 1048576 -> 32768");
    Ui *ui = open_screen(store, 2);
    draw_screen(ui, 120, 36, false);
    const Panel *panel = layout_find(&ui->layout, PANEL_SCALE);
    int marks = 0, row = panel->row + 1;
    for (int column = panel->column; column < panel->column + panel->width; column++)
        for (int i = 0; i < 2; i++)
            marks += frame_cell(&ui->frame, column, row + i)->rune == GLYPH_CROSS;
    CHECK_INT(marks, 1);
    CHECK_CONTAINS(frame_text(&ui->frame), "2^20 ");
    close_screen(ui);
    store_close(store);
}

// Its elements are where a tensor's own scale puts them, whatever the loss scale is.
static void a_scaled_format_brings_its_own_scale(void) {
    LayerSample sample = {.width = 1, .count = 2, .largest = 0x1.8p-20};
    sample.bins[-20 - LAYER_LOWEST_EXPONENT] = 1;
    sample.bins[-50 - LAYER_LOWEST_EXPONENT] = 1;
    CHECK(what_if_own_scale(&sample, FORMAT_FP16, 1024) == 1024);
    CHECK(what_if_own_scale(&sample, FORMAT_MXFP8, 1024) == 448 / 0x1.8p-20);
    CHECK(what_if_own_scale(&sample, FORMAT_MXFP4, 1024) == 6 / 0x1.8p-20);
    double scale = what_if_own_scale(&sample, FORMAT_MXFP8, 1024);
    CHECK(what_if_fits(&sample, FORMAT_MXFP8, scale));
    CHECK_NEAR(what_if_shares(&sample, FORMAT_MXFP8, scale).flushed, 0.5, 1e-12); // 2^30 below
    sample.largest = INFINITY;
    CHECK(what_if_own_scale(&sample, FORMAT_MXFP8, 1024) == 1024);
}

int main(void) {
    make_folder();
    atexit(remove_folder);
    RUN_TEST(a_scaled_format_brings_its_own_scale);
    RUN_TEST(no_scale_is_advised_at_which_a_step_overflowed_since);
    RUN_TEST(what_vanished_is_never_called_fine);
    RUN_TEST(zeros_of_the_way_forward_ask_for_no_scale);
    RUN_TEST(what_is_not_finite_is_said_of_the_layer_that_is_blamed);
    RUN_TEST(the_scale_of_a_step_is_the_one_it_computed_with);
    RUN_TEST(the_scale_that_overflowed_is_in_its_curve);
    return test_end();
}
