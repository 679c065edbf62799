// What the tests of the live screen share: a history with an fp32 and an fp16 run of one
// experiment, the screen on it without a terminal, and what ui.c would do, written down.
#pragma once

#include <stdarg.h>

#include "precision/scaler.h"
#include "store/commands.h"
#include "store_fixture.h"
#include "ui/cells/glyphs.h"
#include "ui/live/live.h"
#include "ui_fixture.h"

// Of terminals: the least, the usual, a large one.
enum { SIZES = 3 };
static const int terminal_sizes[SIZES][2] = {{80, 24}, {120, 36}, {200, 60}};

// ---- in place of ui.c ---------------------------------------------------------------------------

static char said[MESSAGE_SIZE]; // the last message
static int64_t compared[8];
static int compared_count;
static char copied[512];
static int64_t now_ms; // the wall clock

void ui_say(Ui *ui, Ink ink, const char *format, ...) {
    (void)ui, (void)ink;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(said, sizeof said, format, arguments);
    va_end(arguments);
}
void ui_fail(Ui *ui, const Error *failure) {
    ui_say(ui, INK_BAD, "%s", failure->text);
}
void ui_compare(Ui *ui, const int64_t *runs, int count) {
    (void)ui;
    memcpy(compared, runs, (size_t)count * sizeof *runs);
    compared_count = count;
}
void terminal_copy(const char *text) {
    snprintf(copied, sizeof copied, "%s", text);
}
void ui_go(Ui *ui, ScreenId screen) {
    ui->screen = screen;
}
void ui_lay_out(Ui *ui) {
    ui->layout =
        layout_of(SCREEN_LIVE, ui->layout.columns, ui->layout.rows, ui->maximised[SCREEN_LIVE]);
}
void ui_open_run(Ui *ui, int64_t run) {
    ui->run = run;
}
const Screen *ui_screen(const Ui *ui) {
    (void)ui;
    return &screen_live;
}
int64_t ui_now_ms(void) {
    return now_ms;
}

static inline bool check_loss_scale(const char *text, Error *failure) {
    ScaleRule rule;
    return scale_rule_parse(text, &rule, failure);
}

// ---- a history ----------------------------------------------------------------------------------

enum { STEPS = 400, LAYERS = 5 };
static const char *layer_names[LAYERS] = {"conv1", "conv2", "norm", "hidden", "head"};

// Gradients spread around 2^middle; `tail` of a thousand lie far below, at 2^-44.
static inline LayerSample some_sample(int64_t step, int middle, int tail, const char *precision) {
    static const int shape[] = {1, 10, 80, 200, 418, 200, 80, 10, 1};
    enum { WIDE = sizeof shape / sizeof *shape };
    LayerSample sample = {.step = step, .width = 1, .update_ratio = 8e-4, .seconds = 0.002};
    for (int i = 0; i < WIDE; i++)
        sample.bins[middle - WIDE / 2 + i - LAYER_LOWEST_EXPONENT] = (uint32_t)shape[i];
    sample.bins[-44 - LAYER_LOWEST_EXPONENT] += (uint32_t)tail;
    sample.count = 1000 + tail;
    sample.flushed = strcmp(precision, "fp16") == 0 ? tail : 0;
    sample.largest = ldexp(1.5, middle + WIDE / 2);
    sample.sum = ldexp(1000, middle);
    sample.sum_squares = ldexp(1000, 2 * middle);
    snprintf(sample.precision, sizeof sample.precision, "%.7s", precision);
    return sample;
}

static inline void add_some_event(Store *store, int64_t run, int64_t step, EventKind kind,
                                  double value, const char *layer, const char *text) {
    Event event = {.step = step, .time_ms = 1000 * step, .kind = kind, .value = value};
    snprintf(event.layer, sizeof event.layer, "%s", layer);
    snprintf(event.text, sizeof event.text, "%s", text);
    CHECK_DONE(store_add_event(store, run, &event, &error));
}

static inline void add_points(Store *store, int64_t run, bool is_low) {
    SeriesWriter *writer = series_writer_new(store, run, 0, "start", &error);
    CHECK_MESSAGE(writer, "%s", error.text);
    for (int64_t step = 1; writer && step <= STEPS; step++) {
        double loss = 2.3 * exp(-(double)step / 120) + 0.1 + 0.02 * sin((double)step);
        if (is_low && step == 101)
            loss = NAN;
        double scale = !is_low ? 1 : step <= 100 || step > 300 ? 65536 : 32768;
        CHECK_DONE(series_add(writer, "scale", step, scale, &error));
        CHECK_DONE(series_add(writer, "loss", step, loss, &error));
        CHECK_DONE(series_add(writer, "accuracy", step, (double)step / STEPS, &error));
        for (int layer = 0; layer < LAYERS && step % 4 == 0; layer++) {
            LayerSample sample = some_sample(step, -12 - 2 * layer, layer == 3 ? 107 : 0,
                                             is_low && layer != 2 ? "fp16" : "fp32");
            sample.width = 4;
            CHECK_DONE(layers_add(writer, layer, &sample, &error));
        }
    }
    CHECK_DONE(store_begin(store, &error) && series_flush(writer, 0.1, &error) &&
               store_commit(store, &error));
    series_writer_free(writer);
}

static inline int64_t add_history_run(Store *store, const char *precision, RunStatus status) {
    bool is_low = strcmp(precision, "fp16") == 0;
    RunRecord record = some_run("fashion-cnn", precision);
    RecordLayer layers[LAYERS];
    for (int i = 0; i < LAYERS; i++) {
        layers[i] = (RecordLayer){.parent = -1, .set = "auto"};
        snprintf(layers[i].name, sizeof layers[i].name, "%s", layer_names[i]);
        snprintf(layers[i].precision, sizeof layers[i].precision, "%s",
                 i == 2 ? "fp32" : precision);
    }
    record.status = status;
    record.step = STEPS;
    record.applied = STEPS - is_low;
    record.skipped = is_low;
    record.total_steps = STEPS * 2;
    record.epoch = 5;
    record.epochs = 10;
    record.scale_last = is_low ? 65536 : 1;
    record.steps_per_s = is_low ? 20 : 10;
    record.samples_per_s = is_low ? 2560 : 1280;
    record.wall_s = 40;
    record.cast_share = 0.04;
    record.memory.peak = 61000000;
    record.memory.activations = 30000000;
    record.memory.weights = 9400000;
    CHECK_DONE(record_set_layers(&record, layers, LAYERS, &error));
    static const char script[] = "return { name = 'fashion-cnn' }\n";
    CHECK_DONE(store_add_run(store, &record, script, sizeof script - 1, &error));
    int64_t id = record.id;
    record_clear(&record);
    add_points(store, id, is_low);
    return id;
}

// Run 1 in fp32, run 2 in fp16.
static inline Store *make_history(RunStatus status) {
    Store *store = fresh_store("history.db");
    add_history_run(store, "fp32", RUN_FINISHED);
    int64_t run = add_history_run(store, "fp16", status);
    add_some_event(store, run, 0, EVENT_LIFE, NAN, "", "started: fashion-cnn in fp16");
    add_some_event(store, run, 101, EVENT_SKIP, 32768, "conv2.weight",
                   "inf in conv2.weight, scale 65536 > 32768");
    add_some_event(store, run, 301, EVENT_SCALE, 65536, "", "the scale grew to 65536");
    return store;
}

// ---- the screen ---------------------------------------------------------------------------------

static inline Ui *open_screen(Store *store, int64_t run) {
    static const UiHost host = {.check_loss_scale = check_loss_scale};
    Ui *ui = calloc(1, sizeof *ui);
    ui->host = &host;
    keymap_init(&ui->keymap);
    settings_init(&ui->settings);
    ui->settings.smoothing = 0;
    ui->store = store;
    ui->screen = SCREEN_LIVE;
    ui->run = run;
    ui->focus[SCREEN_LIVE] = PANEL_LAYERS;
    said[0] = 0;
    compared_count = 0;
    CHECK_DONE(screen_live.open(ui, &error));
    ui->layout = layout_of(SCREEN_LIVE, 120, 36, PANEL_NONE);
    screen_live.enter(ui);
    return ui;
}

static inline void close_screen(Ui *ui) {
    screen_live.close(ui);
    pager_close(ui);
    frame_clear(&ui->frame);
    free(ui);
}

static inline Live *live_of(Ui *ui) {
    return ui->state[SCREEN_LIVE];
}

static inline const char *draw_screen(Ui *ui, int columns, int rows, bool ascii) {
    if (!frame_init(&ui->frame, columns, rows, &error))
        abort();
    ui->frame.ascii = ascii;
    ui->layout = layout_of(SCREEN_LIVE, columns, rows, ui->maximised[SCREEN_LIVE]);
    screen_live.refresh(ui, 0.1);
    Area all = frame_area(&ui->frame);
    screen_live.draw_header(ui, area_part(all, 46, 0, all.width - 47, 1));
    for (int i = 0; i < ui->layout.count; i++) {
        const Panel *panel = &ui->layout.panels[i];
        screen_live.draw_panel(
            ui, panel->id, area_part(all, panel->column, panel->row, panel->width, panel->height),
            panel->id == ui->focus[SCREEN_LIVE]);
    }
    return frame_text(&ui->frame);
}
