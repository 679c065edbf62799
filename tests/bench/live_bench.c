// tests/bench/live_bench.c: the live screen on a run of a million steps and 50 layers: how long it
// takes to open, to draw, and to show another step.
//
// Usage: live_bench [steps]; prints milliseconds at a tenth of the steps and at all of them.
#include "base/clock.h"
#include "tests/unit/ui_live_fixture.h"

enum { BENCH_LAYERS = 50, SAMPLE_STEPS = 100, FLUSH_STEPS = 20000 };

static void fill(Store *store, int64_t run, int64_t steps) {
    SeriesWriter *writer = series_writer_new(store, run, 0, "start", &error);
    for (int64_t step = 1; writer && step <= steps; step++) {
        CHECK_DONE(series_add(writer, "loss", step, 1 + sin((double)step / 1000), &error));
        CHECK_DONE(series_add(writer, "scale", step, step / 3000 % 2 ? 65536 : 32768, &error));
        CHECK_DONE(series_add(writer, "grad_norm", step, 1, &error));
        for (int layer = 0; layer < BENCH_LAYERS && step % SAMPLE_STEPS == 0; layer++) {
            LayerSample sample = some_sample(step - SAMPLE_STEPS + 1, -20, layer, "fp16");
            sample.width = SAMPLE_STEPS;
            CHECK_DONE(layers_add(writer, layer, &sample, &error));
        }
        if (step % FLUSH_STEPS != 0 && step != steps)
            continue;
        CHECK_DONE(store_begin(store, &error));
        CHECK_DONE(series_flush(writer, (double)FLUSH_STEPS / 100, &error));
        add_some_event(store, run, step, EVENT_SKIP, 32768, "layer7", "inf in layer7.weight");
        CHECK_DONE(store_commit(store, &error));
    }
    series_writer_free(writer);
}

static int64_t make_run(Store *store, int64_t steps) {
    RunRecord record = some_run("long", steps % 3 ? "fp16" : "bf16");
    RecordLayer layers[BENCH_LAYERS];
    for (int i = 0; i < BENCH_LAYERS; i++) {
        layers[i] = (RecordLayer){.parent = -1, .set = "auto", .precision = "fp16"};
        snprintf(layers[i].name, sizeof layers[i].name, "layer%d", i);
    }
    record.step = steps;
    CHECK_DONE(record_set_layers(&record, layers, BENCH_LAYERS, &error));
    CHECK_DONE(store_add_run(store, &record, NULL, 0, &error));
    int64_t run = record.id;
    record_clear(&record);
    fill(store, run, steps);
    return run;
}

static void measure(Store *store, int64_t run, int64_t steps) {
    enum { FRAMES = 60 };
    double began = clock_seconds();
    Ui *ui = open_screen(store, run);
    draw_screen(ui, 200, 60, false);
    double opened = clock_seconds();
    for (int i = 0; i < FRAMES; i++) { // nothing new
        ui->dirty = true;
        draw_screen(ui, 200, 60, false);
    }
    double drawn = clock_seconds(), worst = 0;
    for (int i = 0; i < FRAMES; i++) {
        double frame = clock_seconds();
        screen_live.request(ui, REQUEST_SCRUB_BACK);
        draw_screen(ui, 200, 60, false);
        worst = fmax(worst, clock_seconds() - frame);
    }
    double scrubbed = clock_seconds();
    for (int i = 0; i < 12; i++) {
        screen_live.request(ui, REQUEST_ZOOM_IN);
        draw_screen(ui, 200, 60, false);
    }
    double zoomed = clock_seconds();
    printf("%9lld steps, %d layers: opens in %5.1f ms, draws in %4.2f ms, scrubs in %4.1f ms a "
           "frame (at most %4.1f), zooms in %4.1f ms\n",
           (long long)steps, BENCH_LAYERS, (opened - began) * 1e3, (drawn - opened) / FRAMES * 1e3,
           (scrubbed - drawn) / FRAMES * 1e3, worst * 1e3, (zoomed - scrubbed) / 12 * 1e3);
    close_screen(ui);
}

int main(int argc, char **argv) {
    int64_t steps = argc > 1 ? strtoll(argv[1], NULL, 10) : 1000000;
    make_folder();
    atexit(remove_folder);
    Store *store = fresh_store("bench.db");
    int64_t shorter = make_run(store, steps / 10), longer = make_run(store, steps);
    measure(store, shorter, steps / 10);
    measure(store, longer, steps);
    store_close(store);
    if (test_why[0])
        printf("%s\n", test_why);
    return test_why[0] != 0;
}
