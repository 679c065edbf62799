// tests/unit/ui_compare_fixture.h: the compare screen without a terminal: opened over a history of
// planted runs, asked, and drawn as text.
#pragma once

#include <stdarg.h>

#include "compare_fixture.h"
#include "store/layers.h"
#include "store/worker.h"
#include "store_fixture.h"
#include "ui/compare/compare.h"
#include "ui/screen.h"
#include "ui_fixture.h"

// ---- in place of ui.c ---------------------------------------------------------------------------

static Ui *ui;

void ui_copy(Ui *of, const char *text) {
    (void)of, (void)text;
}

void ui_lay_out(Ui *of) {
    of->layout =
        layout_of(SCREEN_COMPARE, of->frame.columns, of->frame.rows, of->maximised[SCREEN_COMPARE]);
}

static void open_screen(Store *store, int runs) {
    ui = calloc(1, sizeof *ui);
    settings_init(&ui->settings);
    ui->store = store;
    ui->screen = SCREEN_COMPARE;
    ui->run_count = runs;
    for (int i = 0; i < runs; i++)
        ui->runs[i] = i + 1;
    ui->focus[SCREEN_COMPARE] = PANEL_OUTCOMES;
    CHECK_DONE(screen_compare.open(ui, &error));
    screen_compare.enter(ui);
}

static void close_screen(void) {
    screen_compare.close(ui);
    frame_clear(&ui->frame);
    store_close(ui->store);
    free(ui);
}

static const char *draw_screen(int columns, int rows) {
    if (!frame_init(&ui->frame, columns, rows, &error))
        abort();
    ui_lay_out(ui);
    Area all = frame_area(&ui->frame);
    for (int i = 0; i < ui->layout.count; i++) {
        const Panel *panel = &ui->layout.panels[i];
        screen_compare.draw_panel(
            ui, panel->id, area_part(all, panel->column, panel->row, panel->width, panel->height),
            panel->id == ui->focus[SCREEN_COMPARE]);
    }
    return frame_text(&ui->frame);
}

// The key, and the next look at the history.
static void ask(Request request) {
    screen_compare.request(ui, request);
    screen_compare.refresh(ui, 0);
}

// ---- a history ----------------------------------------------------------------------------------

static const Planted planted[] = {
    {"b1", "bf16", 1, 0.910, 90, 0.1, 0.2, 0.05, 0},
    {"a1", "fp32", 1, 0.911, 50, 0.1, 0.2, 0.05, 0},
};

// They trained at the same time.
static Store *make_history(void) {
    Store *store = fresh_store("history.db");
    for (int i = 0; i < 2; i++) {
        RunRecord record = {0};
        int64_t id = plant(store, &planted[i]);
        CHECK_DONE(store_read_run(store, id, &record, &error));
        record.ended_ms = store_wall_ms() + 8000; // they began to train just now
        CHECK_DONE(store_update_run(store, &record, &error));
        record_clear(&record);
    }
    return store;
}

static Store *make_runs(const Planted *runs, int count) {
    Store *store = fresh_store("history.db");
    for (int i = 0; i < count; i++)
        plant(store, &runs[i]);
    return store;
}

// Three precisions of eight seeds each, which are too many for the foot of a run's own name.
static Store *make_seeds(int count) {
    static const char *const precisions[] = {"fp32", "bf16", "fp16"};
    static char names[UI_MOST_COMPARED][8];
    Planted runs[UI_MOST_COMPARED];
    for (int i = 0; i < count; i++) {
        runs[i] = planted[0];
        snprintf(names[i], sizeof names[i], "r%d", i);
        runs[i].name = names[i];
        runs[i].precision = precisions[i % 3];
        runs[i].seed = i / 3 + 1;
        runs[i].end = 1.9; // flat and high, where a legend over the plot would be
    }
    return make_runs(runs, count);
}
