// Layers in formats with scales of their own: panels tell what became of what they multiply, at
// those scales, and not of their gradients in what these are kept in.
#include "ui_live_fixture.h"

enum { LAST = 100 };

static void add_counted(Store *store, int64_t run, int64_t step, const char *role,
                        int64_t flushed) {
    LayerFactors factors = {.step = step, .layer = 1, .count = 1000, .flushed = flushed};
    snprintf(factors.role, sizeof factors.role, "%s", role);
    snprintf(factors.precision, sizeof factors.precision, "mxfp8");
    CHECK_DONE(store_begin(store, &error) && store_add_factors(store, run, 0, &factors, &error) &&
               store_commit(store, &error));
}

// "plain" in bf16, and "mine", which was in mxfp8 and is in `now`: at step 10 it flushed a tenth of
// its weights, at 50 three tenths, and less of its gradients.
static int64_t add_trained(Store *store, const char *now) {
    RunRecord record = some_run("two", "bf16");
    RecordLayer layers[2] = {{.name = "plain", .parent = -1, .precision = "bf16", .set = "auto"},
                             {.name = "mine", .parent = -1, .set = "auto"}};
    snprintf(layers[1].precision, sizeof layers[1].precision, "%s", now);
    record.step = LAST;
    record.scale_last = 1;
    snprintf(record.scale_rule, sizeof record.scale_rule, "none");
    CHECK_DONE(record_set_layers(&record, layers, 2, &error) &&
               store_add_run(store, &record, NULL, 0, &error));
    int64_t run = record.id;
    record_clear(&record);
    SeriesWriter *writer = series_writer_new(store, run, 0, "start", &error);
    for (int64_t step = 1; step <= LAST; step++) {
        LayerSample sample = some_sample(step, -12, 0, "bf16");
        CHECK_DONE(series_add(writer, "loss", step, 1, &error));
        for (int layer = 0; layer < 2; layer++)
            CHECK_DONE(layers_add(writer, layer, &sample, &error));
    }
    CHECK_DONE(store_begin(store, &error) && series_flush(writer, 0.1, &error) &&
               store_commit(store, &error));
    series_writer_free(writer);
    add_counted(store, run, 10, "weight", 100);
    add_counted(store, run, 50, "weight", 300);
    add_counted(store, run, 50, "gradient", 20);
    return run;
}

static bool has_line(const char *text, const char *name, const char *part) {
    for (const char *line = text; line && *line; line = strchr(line, '\n') + 1) {
        char copy[600];
        snprintf(copy, sizeof copy, "%.*s", (int)strcspn(line, "\n"), line);
        const char *at = strstr(copy, name);
        if (at && strstr(at, part))
            return true;
    }
    return false;
}

static void the_table_tells_of_its_own_scales(void) {
    Store *store = fresh_store("two.db");
    Ui *ui = open_screen(store, add_trained(store, "mxfp8"));
    const char *text = draw_screen(ui, 160, 40, true);
    CHECK(has_line(text, "mine", "mxfp8"));
    CHECK(has_line(text, "mine", " 30% "));
    CHECK(!has_line(text, "plain", "30%"));
    CHECK_CONTAINS(text, "mine flushes 30.0 % of the weights that it multiplies");
    CHECK_CONTAINS(text, "no loss scale mends that");
    live_go_to_step(ui, live_of(ui), 20);
    text = draw_screen(ui, 160, 40, true);
    CHECK(has_line(text, "mine", " 10% "));
    live_go_to_step(ui, live_of(ui), 5); // nothing was counted by then
    text = draw_screen(ui, 160, 40, true);
    CHECK(has_line(text, "mine", "mxfp8") && !has_line(text, "mine", " 10% "));
    add_some_event(store, live_of(ui)->view.run, 8, EVENT_LIFE, NAN, "",
                   EVENT_FORMATS_CHANGED "8: mine=mxfp8");
    live_go_to_step(ui, live_of(ui), 7); // then the gradients' format is all that is known
    text = draw_screen(ui, 160, 40, true);
    CHECK(has_line(text, "mine", "bf16"));
    close_screen(ui);
    store_close(store);
}

static void the_histogram_says_that_products_take_more(void) {
    Store *store = fresh_store("two.db");
    Ui *ui = open_screen(store, add_trained(store, "mxfp8"));
    live_select_layer(ui, live_of(ui), 1);
    const char *text = draw_screen(ui, 160, 40, true);
    CHECK_CONTAINS(text, "gradients of its weights, in bf16; < > try");
    CHECK(!strstr(text, "this layer; < > try others"));
    live_select_layer(ui, live_of(ui), 0);
    text = draw_screen(ui, 160, 40, true);
    CHECK(!strstr(text, "gradients of its weights, in bf16") &&
          strstr(text, "this layer; < > try others"));
    close_screen(ui);
    store_close(store);
}

static void the_map_has_them_from_when_they_were_counted(void) {
    Store *store = fresh_store("two.db");
    Ui *ui = open_screen(store, add_trained(store, "mxfp8"));
    live_select_layer(ui, live_of(ui), 1);
    screen_live.request(ui, REQUEST_MAP);
    draw_screen(ui, 140, 30, true);
    const char *text = draw_screen(ui, 140, 30, true);
    CHECK(has_line(text, "mine", "mxfp8"));
    CHECK(has_line(text, "mine", "---%%%%")); // a tenth from step 10 on
    CHECK(has_line(text, "mine", "%%%%####"));
    CHECK(has_line(text, "plain", "----------") && !has_line(text, "plain", "##"));
    CHECK_CONTAINS(text, "30.0 % of its weights flushed");
    live_of(ui)->view.span = 20; // the window begins behind both
    live_of(ui)->moved = true;
    text = draw_screen(ui, 140, 30, true);
    CHECK(has_line(text, "mine", "##########") && !has_line(text, "mine", "-#"));
    close_screen(ui);
    store_close(store);
}

static void the_page_of_formats_tells_of_every_role(void) {
    Store *store = fresh_store("two.db");
    Ui *ui = open_screen(store, add_trained(store, "mxfp8"));
    draw_screen(ui, 140, 40, true);
    live_select_layer(ui, live_of(ui), 1);
    screen_live.request(ui, REQUEST_WHAT_IF);
    const char *text = draw_screen(ui, 140, 40, true);
    CHECK_CONTAINS(text, "mine in mxfp8");
    CHECK_CONTAINS(text, "gradients of weights, truly up to");
    CHECK_CONTAINS(text, "Products take gradients of outputs, too, which may lose more");
    CHECK_CONTAINS(text, "counted at step 50, weights: 30.00 % flushed, 0 saturated");
    CHECK_CONTAINS(text, "counted at step 50, gradients: 2.00 % flushed");
    live_select_layer(ui, live_of(ui), 0);
    CHECK(!strstr(draw_screen(ui, 140, 40, true), "counted at step"));
    close_screen(ui);
    store_close(store);
}

static void what_was_set_to_another_format_since_is_not_told_of_them(void) {
    Store *store = fresh_store("two.db");
    Ui *ui = open_screen(store, add_trained(store, "bf16"));
    const char *text = draw_screen(ui, 160, 40, true);
    CHECK(has_line(text, "mine", "bf16"));
    CHECK(!has_line(text, "mine", "30%"));
    live_go_to_step(ui, live_of(ui), 60);
    CHECK(has_line(draw_screen(ui, 160, 40, true), "mine", " 30% ")); // as it was then
    close_screen(ui);
    store_close(store);
}

int main(void) {
    make_folder();
    atexit(remove_folder);
    RUN_TEST(the_table_tells_of_its_own_scales);
    RUN_TEST(the_histogram_says_that_products_take_more);
    RUN_TEST(the_map_has_them_from_when_they_were_counted);
    RUN_TEST(the_page_of_formats_tells_of_every_role);
    RUN_TEST(what_was_set_to_another_format_since_is_not_told_of_them);
    return test_end();
}
