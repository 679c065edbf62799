// The live screen: what its panels say about a run, in words, numbers and colours, within their
// areas.
#include "ui_live_fixture.h"

// ---- what is shown ------------------------------------------------------------------------------

static void panels_show_the_run_at_every_size(void) {
    Store *store = make_history(RUN_RUNNING);
    Ui *ui = open_screen(store, 2);
    static const char *const always[] = {"loss", "loss scale", "layers", "events",
                                         "#2",   "fp16",       "conv1",  "true values"};
    static const char *const wide[] = {"400/800 epoch 5/10",
                                       "0:20 left",
                                       "#1 fp32",
                                       "samples/s",
                                       "2.00× of #1",
                                       "2^16 · 1 skipped of 400",
                                       "×conv2",
                                       "the scale grew",
                                       "9.7%",
                                       "4.0 % of a step",
                                       "hidden flushes 9.7 % of its gradients at 2^16.",
                                       "At 2^19 all would stay, and fit; bf16 keeps all.",
                                       "next growth in 101 clean steps"};
    for (int i = 0; i < SIZES; i++) {
        const char *text = draw_screen(ui, terminal_sizes[i][0], terminal_sizes[i][1], false);
        for (size_t j = 0; j < sizeof always / sizeof *always; j++)
            CHECK_CONTAINS(text, always[j]);
        for (size_t j = 0; j < sizeof wide / sizeof *wide && i > 0; j++)
            CHECK_CONTAINS(text, wide[j]);
    }
    CHECK_CONTAINS(draw_screen(ui, 200, 60, false), "exponents over time");
    CHECK_TEXT(said, "");
    close_screen(ui);
    store_close(store);
}

// As those of blocks that are alike are.
static void names_that_differ_in_the_middle_are_told_apart(void) {
    const char *short_name = layer_names[2];
    layer_names[2] = "block1.norm";
    Store *store = make_history(RUN_RUNNING);
    Ui *ui = open_screen(store, 2);
    for (int i = 0; i < SIZES; i++)
        CHECK_CONTAINS(draw_screen(ui, terminal_sizes[i][0], terminal_sizes[i][1], false),
                       "block1.norm ");
    close_screen(ui);
    store_close(store);
    layer_names[2] = short_name;
}

static void in_ascii_no_other_character_is_drawn(void) {
    Store *store = make_history(RUN_RUNNING);
    Ui *ui = open_screen(store, 2);
    for (int heat = 0; heat < 2; heat++) {
        live_of(ui)->view.heat = heat;
        for (int i = 0; i < SIZES; i++) {
            const char *text = draw_screen(ui, terminal_sizes[i][0], terminal_sizes[i][1], true);
            for (const char *at = text; *at; at++)
                CHECK((*at >= ' ' && *at <= '~') || *at == '\n');
            CHECK_CONTAINS(text, "xconv2");
            CHECK(!strchr(text, '?')); // every glyph has a replacement
        }
    }
    close_screen(ui);
    store_close(store);
}

static void colours_are_those_of_the_formats_and_red_is_for_losses(void) {
    Store *store = make_history(RUN_RUNNING);
    Ui *ui = open_screen(store, 2);
    const char *text = draw_screen(ui, 120, 36, false);
    const Panel *panel = layout_find(&ui->layout, PANEL_LAYERS);
    int hidden = panel->row + 2 + 3, red = 0, orange = 0, blue = 0;
    for (int column = panel->column; column < panel->column + panel->width; column++) {
        red += frame_cell(&ui->frame, column, hidden)->style.ink == INK_BAD;
        orange += frame_cell(&ui->frame, column, hidden)->style.ink == INK_FP16;
        blue += frame_cell(&ui->frame, column, hidden - 1)->style.ink == INK_FP32;
    }
    CHECK_INT(red, 4); // "9.7%"
    CHECK(orange >= 4 && blue >= 4);
    CHECK_CONTAINS(text, "hidden");
    close_screen(ui);
    store_close(store);
}

static void a_value_that_is_not_finite_is_a_mark_on_no_axis(void) {
    Store *store = make_history(RUN_RUNNING);
    Ui *ui = open_screen(store, 2);
    draw_screen(ui, 120, 36, false);
    const Panel *panel = layout_find(&ui->layout, PANEL_LOSS);
    int marks = 0;
    for (int column = panel->column; column < panel->column + panel->width; column++) {
        const Cell *cell = frame_cell(&ui->frame, column, panel->row + panel->height - 3);
        marks += cell->rune == GLYPH_CROSS && cell->style.ink == INK_BAD;
    }
    CHECK_INT(marks, 1);
    screen_live.request(ui, REQUEST_CROSS_HAIR);
    live_of(ui)->view.cross = 101;
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), " nan ");
    close_screen(ui);
    store_close(store);
}

static void what_is_not_there_is_said_in_words(void) {
    Store *store = fresh_store("empty.db");
    Ui *ui = open_screen(store, 0);
    for (int i = 0; i < SIZES; i++)
        CHECK_CONTAINS(draw_screen(ui, terminal_sizes[i][0], terminal_sizes[i][1], i == 1),
                       "no run is open");
    for (int i = REQUEST_NONE + 1; i < REQUESTS; i++)
        screen_live.request(ui, (Request)i);
    close_screen(ui);
    RunRecord bare = some_run("bare", "fp32"); // a run that logged nothing and has no layers
    bare.scale_rule[0] = 0;
    ui = open_screen(store, add_run(store, bare));
    const char *text = draw_screen(ui, 120, 36, false);
    CHECK_CONTAINS(text, "nothing was logged here");
    CHECK_CONTAINS(text, "this run has no layers");
    CHECK_CONTAINS(text, "nothing happened ");
    CHECK(!strstr(text, "nothing happened yet"));
    CHECK_CONTAINS(text, "finished");
    CHECK_CONTAINS(text, "–");
    close_screen(ui);
    store_close(store);
}

static void a_run_without_a_loss_shows_what_is_most_like_one(void) {
    Store *store = fresh_store("pair.db");
    RunRecord record = some_run("pair", "pair");
    CHECK_DONE(store_add_run(store, &record, NULL, 0, &error));
    int64_t run = record.id;
    record_clear(&record);
    static const char *const names[] = {"scale", "grad_norm", "critic", "g_loss"};
    SeriesWriter *writer = series_writer_new(store, run, 0, "start", &error);
    for (int i = 0; i < 4; i++)
        CHECK_DONE(series_add(writer, names[i], 1, 1, &error));
    CHECK_DONE(store_begin(store, &error) && series_flush(writer, 1, &error) &&
               store_commit(store, &error));
    series_writer_free(writer);
    Ui *ui = open_screen(store, run);
    CHECK_TEXT(live_of(ui)->data.shown, "g_loss");
    close_screen(ui);
    store_close(store);
}

static void names_from_outside_are_shown_and_not_obeyed(void) {
    Store *store = fresh_store("hostile.db");
    static const char evil[] = "\x1b[2J\x1b]0;x\x07\xe2\x80\xae\xff\n\t\xe2\x80\x8b";
    RunRecord record = some_run(evil, evil);
    RecordLayer layer = {.parent = -1};
    snprintf(record.name, sizeof record.name, "%s", evil);
    snprintf(record.scale_rule, sizeof record.scale_rule, "%s", evil);
    snprintf(record.device_name, sizeof record.device_name, "%s", evil);
    snprintf(layer.name, sizeof layer.name, "%s", evil);
    snprintf(layer.precision, sizeof layer.precision, "%.15s", evil);
    snprintf(layer.set, sizeof layer.set, "%.15s", evil);
    CHECK_DONE(record_set_layers(&record, &layer, 1, &error));
    CHECK_DONE(store_add_run(store, &record, NULL, 0, &error));
    int64_t run = record.id;
    record_clear(&record);
    add_some_event(store, run, 1, EVENT_SKIP, 2, evil, evil);
    SeriesWriter *writer = series_writer_new(store, run, 0, "start", &error);
    CHECK_DONE(series_add(writer, evil, 1, 1, &error) && series_add(writer, "scale", 1, 2, &error));
    CHECK_DONE(store_begin(store, &error) && series_flush(writer, 1, &error) &&
               store_commit(store, &error));
    series_writer_free(writer);
    Ui *ui = open_screen(store, run);
    for (int i = 0; i < SIZES; i++) {
        draw_screen(ui, terminal_sizes[i][0], terminal_sizes[i][1], false);
        for (int j = 0; j < ui->frame.columns * ui->frame.rows; j++) {
            uint32_t rune = ui->frame.cells[j].rune;
            CHECK(rune == 0 || (rune >= 0x20 && rune < 0x7F) || rune > 0xA0);
            CHECK(rune != 0x202E && rune != 0x200B);
        }
    }
    CHECK_CONTAINS(frame_text(&ui->frame), "\\x1b");
    close_screen(ui);
    store_close(store);
}

static void every_panel_explains_itself(void) {
    for (int id = PANEL_LOSS; id <= PANEL_MACHINE; id++) {
        const char *text = screen_live.explain((PanelId)id);
        CHECK(text && strlen(text) > 80 && !strchr(text, '\n'));
    }
}

static void note_facts(Store *store, int64_t run, const RecordFact *facts, int count) {
    RunRecord record;
    CHECK_DONE(store_read_run(store, run, &record, &error));
    CHECK_DONE(record_set_facts(&record, facts, count, &error));
    CHECK_DONE(store_begin(store, &error) && store_update_run(store, &record, &error) &&
               store_commit(store, &error));
    record_clear(&record);
}

static const char *draw_alone(Ui *ui, int columns, bool layers) {
    if (!frame_init(&ui->frame, columns, 20, &error))
        abort();
    (layers ? live_draw_layers : live_draw_histogram)(live_of(ui), frame_area(&ui->frame), false);
    return frame_text(&ui->frame);
}

// What a history keeps of many steps together is not said of the one at the cursor.
static void overflows_of_many_steps_are_said_to_be_among_them(void) {
    Store *store = make_history(RUN_FINISHED);
    Ui *ui = open_screen(store, 2);
    draw_screen(ui, 120, 36, false);
    LayerSample *sample = &live_of(ui)->data.layers[live_of(ui)->view.layer];
    sample->step = 33050;
    sample->width = 8;
    sample->infs = 4;
    CHECK_CONTAINS(draw_alone(ui, 90, true),
                   " gradients among steps 33,050 to 33,057 are not finite");
    CHECK_CONTAINS(draw_alone(ui, 90, false), "inf 4 among steps 33,050 to 33,057");
    CHECK_CONTAINS(draw_alone(ui, 40, false), "inf 4 in 8 steps");
    sample->width = 1;
    CHECK_CONTAINS(draw_alone(ui, 90, true), " gradients at 2^16 are not finite.");
    CHECK_CONTAINS(frame_text(&ui->frame), "<0.1%");
    CHECK(!strstr(draw_alone(ui, 90, false), "steps"));
    CHECK_CONTAINS(frame_text(&ui->frame), "inf 4");
    close_screen(ui);
    store_close(store);
}

static void what_fp32_is_missing_is_said(void) {
    Store *store = fresh_store("alone.db");
    add_history_run(store, "fp16", RUN_RUNNING);
    Ui *ui = open_screen(store, 1);
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "– no fp32 run yet");
    CHECK_CONTAINS(screen_live.explain(PANEL_MACHINE), "no fp32 run of the same");
    close_screen(ui);
    add_history_run(store, "fp32", RUN_STOPPED);
    ui = open_screen(store, 1);
    for (int i = 1; i < SIZES; i++)
        CHECK_CONTAINS(draw_screen(ui, terminal_sizes[i][0], terminal_sizes[i][1], false),
                       "– #2 in fp32 was stopped");
    close_screen(ui);
    RunRecord wider = some_run("fashion-cnn", "fp16");
    RecordParameter width = {.name = "width", .kind = RECORD_INTEGER, .integer = 64};
    CHECK_DONE(record_set_parameters(&wider, &width, 1, &error) &&
               store_add_run(store, &wider, NULL, 0, &error));
    ui = open_screen(store, wider.id);
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "– no fp32 run of the same");
    close_screen(ui);
    record_clear(&wider);
    add_history_run(store, "fp32", RUN_FINISHED);
    ui = open_screen(store, 1);
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "2.00× of #4");
    close_screen(ui);
    ui = open_screen(store, 4);
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "– it is in fp32");
    close_screen(ui);
    store_close(store);
}

static void long_steps_of_events_are_shown_whole(void) {
    Store *store = make_history(RUN_FINISHED);
    Ui *ui = open_screen(store, 2);
    draw_screen(ui, 120, 36, false);
    live_of(ui)->data.events[live_of(ui)->data.event_count - 1].step = 1999740;
    CHECK(live_fold_events(&live_of(ui)->data));
    if (!frame_init(&ui->frame, 60, 10, &error))
        abort();
    live_draw_events(live_of(ui), frame_area(&ui->frame), false);
    CHECK_CONTAINS(frame_text(&ui->frame), "1,999,740 scale");
    CHECK_CONTAINS(frame_text(&ui->frame), "      101 skip");
    close_screen(ui);
    store_close(store);
}

// The newest is whole where it fits.
static void skips_without_room_are_told_briefly(void) {
    Store *store = make_history(RUN_FINISHED);
    static const char text[] = "step 350 skipped: gradient of head.weight not finite, scale 131072 "
                               "-> 65536; the loss is finite: the scale was too large";
    add_some_event(store, 2, 350, EVENT_SKIP, 65536, "head", text);
    add_some_event(store, 2, 400, EVENT_LIFE, NAN, "", "finished");
    Ui *ui = open_screen(store, 2);
    draw_screen(ui, 120, 36, false);
    if (!frame_init(&ui->frame, 40, 10, &error))
        abort();
    live_draw_events(live_of(ui), frame_area(&ui->frame), false);
    CHECK_CONTAINS(frame_text(&ui->frame), "350 skip  2^17 → 2^16 by head");
    close_screen(ui);
    add_some_event(store, 2, 400, EVENT_SKIP, 65536, "head",
                   "gradient of head.weight not finite at "
                   "scale 65536; the loss is finite: the scale was too large");
    ui = open_screen(store, 2);
    draw_screen(ui, 120, 36, false);
    CHECK(live_row(live_of(ui), 0)->skips == 1);
    if (!frame_init(&ui->frame, 40, 5, &error))
        abort();
    live_draw_events(live_of(ui), frame_area(&ui->frame), false);
    CHECK_CONTAINS(frame_text(&ui->frame), "400 skip  at 2^16 by head");
    close_screen(ui);
    store_close(store);
}

static void what_the_worker_noted_of_itself_is_shown(void) {
    Store *store = make_history(RUN_RUNNING);
    static const RecordFact facts[] = {
        {"scaler.interval", "2000"}, {"telemetry.share", "0.013"}, {"scaler.ceiling", "65536"}};
    Ui *ui = open_screen(store, 2);
    CHECK_CONTAINS(draw_screen(ui, 120, 50, false), "next growth in 101 clean steps"); // seen
    close_screen(ui);
    note_facts(store, 2, facts, 2);
    ui = open_screen(store, 2);
    CHECK_CONTAINS(draw_screen(ui, 120, 50, false), "next growth in 1,901 clean steps");
    CHECK_CONTAINS(frame_text(&ui->frame), "1.3 % of a step");
    live_of(ui)->view.cursor = 50; // before anything happened to the scale
    screen_live.request(ui, REQUEST_SMOOTH);
    CHECK_CONTAINS(draw_screen(ui, 120, 50, false), "next growth in 1,950 clean steps");
    CHECK_CONTAINS(draw_screen(ui, 80, 24, false),
                   "grows in 1,950 steps"); // whole where it is narrow
    close_screen(ui);
    note_facts(store, 2, facts, 3); // it is as high as it may become
    ui = open_screen(store, 2);
    CHECK(!strstr(draw_screen(ui, 120, 50, false), "next growth"));
    close_screen(ui);
    store_close(store);
}

static void end_run(Store *store, int64_t run) {
    RunRecord record;
    CHECK_DONE(store_read_run(store, run, &record, &error));
    record.status = RUN_FINISHED;
    CHECK_DONE(store_update_run(store, &record, &error));
    record_clear(&record);
}

static void what_the_machine_says_is_shown_and_else_a_dash(void) {
    Store *store = make_history(RUN_RUNNING);
    static const RecordFact facts[] = {{"load.own", "1.86 of 2"},
                                       {"load.others", "0.42 of 2"},
                                       {"temperature", "71.2"},
                                       {"temperature.most", "84"},
                                       {"telemetry.share", "0.000"}};
    Ui *ui = open_screen(store, 2);
    const char *text = draw_screen(ui, 200, 60, false);
    CHECK(!strstr(text, ", others") && !strstr(text, "°C") && !strstr(text, " 0.0 % of a step"));
    close_screen(ui);
    note_facts(store, 2, facts, 2);
    ui = open_screen(store, 2);
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "93 %, others 21 %");
    close_screen(ui);
    note_facts(store, 2, facts, 5);
    ui = open_screen(store, 2);
    CHECK_CONTAINS(draw_screen(ui, 200, 60, false), "71 °C");
    CHECK_CONTAINS(frame_text(&ui->frame), "< 0.1 % of a step"); // it is never nothing
    end_run(store, 2);
    live_of(ui)->unread = 1;
    CHECK_CONTAINS(draw_screen(ui, 200, 60, false), "84 °C at most");
    close_screen(ui);
    store_close(store);
}

// What began the steps held far more than they do.
static void memory_is_that_of_steps_where_it_is_known(void) {
    Store *store = make_history(RUN_RUNNING);
    static const RecordFact facts[] = {
        {RECORD_FACT_MEMORY, "17000000 bytes: weights 9400000, masters 0, activations 3000000, "
                             "gradients 0, optimizer 0, workspace 0"}};
    Ui *ui = open_screen(store, 2);
    CHECK_CONTAINS(draw_screen(ui, 200, 60, false), "29 MiB");
    close_screen(ui);
    note_facts(store, 2, facts, 1);
    ui = open_screen(store, 2);
    const char *text = draw_screen(ui, 200, 60, false);
    CHECK_CONTAINS(text, "2.9 MiB  1.00×"); // the fp32 run knows its peak alone, as this one's was
    close_screen(ui);
    note_facts(store, 1, facts, 1);
    ui = open_screen(store, 2);
    CHECK_CONTAINS(draw_screen(ui, 200, 60, false), "2.9 MiB  1.00×");
    close_screen(ui);
    store_close(store);
}

static void panels_stay_within_their_areas(void) {
    Store *store = make_history(RUN_RUNNING);
    Ui *ui = open_screen(store, 2);
    draw_screen(ui, 120, 36, false);
    for (int id = PANEL_LOSS; id <= PANEL_MACHINE; id++)
        for (int width = 0; width < 60; width += 3)
            for (int height = 0; height < 20; height += 2) {
                frame_erase(&ui->frame);
                Area area = area_part(frame_area(&ui->frame), 10, 5, width, height);
                screen_live.draw_panel(ui, (PanelId)id, area, false);
                for (int i = 0; i < ui->frame.columns * ui->frame.rows; i++) {
                    int column = i % ui->frame.columns - 10, row = i / ui->frame.columns - 5;
                    bool is_inside = column >= 0 && column < width && row >= 0 && row < height;
                    CHECK(is_inside || ui->frame.cells[i].rune == ' ');
                }
            }
    close_screen(ui);
    store_close(store);
}

// What is known of the end alone is not shown as if it had been so before.
static void the_past_does_not_show_the_present(void) {
    Store *store = make_history(RUN_FINISHED);
    Ui *ui = open_screen(store, 2);
    const char *text = draw_screen(ui, 120, 36, false);
    CHECK_CONTAINS(text, "fp16 auto");
    CHECK(!strstr(text, "of the whole run"));
    for (int i = 0; i < 3; i++)
        screen_live.request(ui, REQUEST_SCRUB_BACK);
    text = draw_screen(ui, 120, 36, false);
    CHECK_CONTAINS(text, "fp16 –");
    CHECK(!strstr(text, "auto"));
    CHECK_CONTAINS(text, "of the whole run");
    CHECK_CONTAINS(text, "peak memory");
    close_screen(ui);
    store_close(store);
}

static void panels_with_room_have_steps_along_the_foot(void) {
    static const PanelId panels[] = {PANEL_LOSS, PANEL_SCALE, PANEL_HEAT};
    Store *store = make_history(RUN_FINISHED);
    Ui *ui = open_screen(store, 2);
    CHECK(!strstr(draw_screen(ui, 80, 24, false), "step 1 "));
    for (int i = 0; i < 3; i++) {
        ui->maximised[SCREEN_LIVE] = panels[i];
        live_of(ui)->moved = true;
        const char *text = draw_screen(ui, 80, 24, false);
        CHECK_MESSAGE(strstr(text, "step 1 ") && strstr(text, " 200 ") && strstr(text, " 400"),
                      "%s", panel_name(panels[i]));
    }
    close_screen(ui);
    store_close(store);
}

static void add_samples(Store *store, SeriesWriter *writer, int64_t step, double seconds) {
    for (int layer = 0; layer < LAYERS; layer++) {
        LayerSample sample = some_sample(step, -12, 0, "fp16");
        sample.seconds = seconds;
        CHECK_DONE(layers_add(writer, layer, &sample, &error));
    }
    CHECK_DONE(series_add(writer, "loss", step, 1, &error));
    CHECK_DONE(store_begin(store, &error) && series_flush(writer, 0.1, &error) &&
               store_commit(store, &error));
}

// Layers are timed a few times a second only.
static void times_of_layers_stay_until_newer_ones_are_known(void) {
    Store *store = make_history(RUN_RUNNING);
    Ui *ui = open_screen(store, 2);
    Live *live = live_of(ui);
    SeriesWriter *writer = series_writer_new(store, 2, STEPS, "resume", &error);
    CHECK_MESSAGE(writer, "%s", error.text);
    static const struct {
        double measured, shown;
        const char *told; // of which step that is
    } steps[] = {{NAN, 0.002, "Δ/w, time of steps "},
                 {0.004, 0.004, ""},
                 {NAN, 0.004, "Δ/w, time of step 402 · "}};
    CHECK(!strstr(draw_screen(ui, 120, 36, false), "time of step"));
    CHECK_NEAR(live->data.layers[1].seconds, 0.002, 0);
    for (int i = 0; i < 3; i++) {
        add_samples(store, writer, STEPS + 1 + i, steps[i].measured);
        live->moved = true;
        const char *text = draw_screen(ui, 120, 36, false);
        CHECK_CONTAINS(text, steps[i].told);
        CHECK_INT(strstr(text, "time of step") != NULL, steps[i].told[0] != 0);
        CHECK_INT(live->data.step, STEPS + 1 + i);
        CHECK_NEAR(live->data.layers[1].seconds, steps[i].shown, 0);
    }
    // One that had no sample before has no time to keep: that is unknown, and not 0.
    live->data.layers[1] = (LayerSample){.width = 0};
    add_samples(store, writer, STEPS + 5, NAN);
    live->moved = true;
    live->measured_age = 0;
    draw_screen(ui, 120, 36, false);
    CHECK(isnan(live->data.layers[1].seconds));
    // Both came between two looks: what was measured is known a second later, or at the end.
    for (int i = 0; i < 2; i++) {
        double measured = 0.008 * (i + 1);
        add_samples(store, writer, STEPS + 11 + 2 * i, measured);
        add_samples(store, writer, STEPS + 12 + 2 * i, NAN);
        if (i == 0)
            live->measured_age = 1;
        else
            end_run(store, 2);
        live->moved = true;
        draw_screen(ui, 120, 36, false);
        CHECK_INT(live->data.step, STEPS + 12 + 2 * i);
        CHECK_NEAR(live->data.layers[1].seconds, measured, 0);
    }
    series_writer_free(writer);
    close_screen(ui);
    store_close(store);
}

int main(void) {
    make_folder();
    atexit(remove_folder);
    RUN_TEST(panels_show_the_run_at_every_size);
    RUN_TEST(names_that_differ_in_the_middle_are_told_apart);
    RUN_TEST(in_ascii_no_other_character_is_drawn);
    RUN_TEST(colours_are_those_of_the_formats_and_red_is_for_losses);
    RUN_TEST(a_value_that_is_not_finite_is_a_mark_on_no_axis);
    RUN_TEST(what_is_not_there_is_said_in_words);
    RUN_TEST(a_run_without_a_loss_shows_what_is_most_like_one);
    RUN_TEST(names_from_outside_are_shown_and_not_obeyed);
    RUN_TEST(every_panel_explains_itself);
    RUN_TEST(overflows_of_many_steps_are_said_to_be_among_them);
    RUN_TEST(what_fp32_is_missing_is_said);
    RUN_TEST(long_steps_of_events_are_shown_whole);
    RUN_TEST(skips_without_room_are_told_briefly);
    RUN_TEST(what_the_worker_noted_of_itself_is_shown);
    RUN_TEST(memory_is_that_of_steps_where_it_is_known);
    RUN_TEST(what_the_machine_says_is_shown_and_else_a_dash);
    RUN_TEST(panels_stay_within_their_areas);
    RUN_TEST(the_past_does_not_show_the_present);
    RUN_TEST(panels_with_room_have_steps_along_the_foot);
    RUN_TEST(times_of_layers_stay_until_newer_ones_are_known);
    return test_end();
}
