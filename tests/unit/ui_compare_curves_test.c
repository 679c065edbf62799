// The compare screen: what it draws of runs, curves and histograms, and how these are told apart.
#include "ui/cells/words.h"
#include "ui_compare_fixture.h"

// Neither colours nor values do: two runs may have the same of both.
static void lines_are_told_apart_by_a_letter(void) {
    open_screen(make_history(), 2);
    const char *text = draw_screen(120, 36);
    CHECK_CONTAINS(text, "a ━ #2 fp32");
    CHECK_CONTAINS(text, "b · #1 bf16");
    CHECK_CONTAINS(text, "last values");
    CHECK_CONTAINS(text, "mean loss");
    int a = 0, b = 0; // on the lines, which end where the legend begins
    for (int row = 4; row < 16; row++)
        for (int column = 60; column < 88; column++) {
            uint32_t rune = frame_cell(&ui->frame, column, row)->rune;
            a += rune == 'a';
            b += rune == 'b';
        }
    CHECK_INT(a, 1);
    CHECK_INT(b, 1);
    close_screen();
}

// Eight runs at any size: each has its letter and its value, and no curve runs through them.
static void the_legend_stands_off_the_curves(void) {
    static const int sizes[][2] = {{80, 24}, {120, 36}, {200, 60}};
    open_screen(make_seeds(8), 8);
    ask(REQUEST_SEEDS);
    for (int size = 0; size < 3; size++) {
        const char *text = draw_screen(sizes[size][0], sizes[size][1]);
        const Comparison *comparison = ((CompareView *)ui->state[SCREEN_COMPARE])->comparison;
        for (int g = 0; g < comparison->group_count; g++)
            for (int i = 0; i < comparison->groups[g].member_count; i++) {
                const RunRecord *run = &comparison->runs[comparison->groups[g].members[i]];
                char entry[64];
                snprintf(entry, sizeof entry, "%c %s #%lld %s", 'a' + g, g % 2 ? "·" : "━",
                         (long long)run->id, run->precision);
                CHECK_MESSAGE(strstr(text, entry), "%d columns: \"%s\" in\n%s", sizes[size][0],
                              entry, text);
            }
    }
    close_screen();
}

// The mean of seeds as one curve, in a band; how many they are is said.
static void seeds_are_one_curve_with_a_band(void) {
    open_screen(make_seeds(UI_MOST_COMPARED), UI_MOST_COMPARED);
    const char *text = draw_screen(80, 24);
    CHECK_CONTAINS(text, "means ±95 %");
    CHECK_CONTAINS(text, "a ━ fp32 n 8");
    CHECK_CONTAINS(text, "b · bf16 n 8");
    CHECK_CONTAINS(text, " n  steps/s");
    CHECK_CONTAINS(text, "│▸a fp32      8     90.0");
    CHECK_CONTAINS(draw_screen(120, 36), "a ━ fp32 n 8      1.9073±0.0"); // ± what seeds leave open
    const CompareCurves *curves = &((CompareView *)ui->state[SCREEN_COMPARE])->curves;
    CHECK_INT(curves->count, 3);
    for (int i = 0; i < curves->count; i++) {
        const PlotPoint *last = &curves->lines[i].points[curves->lines[i].count - 1];
        CHECK(last->low < last->mean && last->mean < last->high);
        CHECK_NEAR(last->mean, 1.9, 0.03);
    }
    ask(REQUEST_SEEDS);
    CHECK_INT(curves->count, UI_MOST_COMPARED);
    close_screen();
}

// What is 0 or less has no logarithm: then the axis is not said to be one either.
static void an_axis_is_called_log_where_it_is(void) {
    Planted runs[] = {planted[0], planted[1]};
    for (int below = 0; below < 2; below++) {
        runs[0].end = below ? -1 : 0.2;
        open_screen(make_runs(runs, 2), 2);
        CHECK_INT(strstr(draw_screen(120, 36), "· log") != NULL, !below);
        close_screen();
    }
}

// A mean of fewer would jump where one of them ends, and one of what is not finite is none.
static void a_mean_is_of_all_seeds_or_there_is_none(void) {
    Planted runs[] = {planted[1], planted[1], planted[1]};
    static const char *const names[] = {"p", "q", "r"};
    for (int i = 0; i < 3; i++) {
        runs[i].name = names[i];
        runs[i].seed = i + 1;
    }
    runs[1].steps = 100;
    runs[2].steps = 200;
    Store *store = make_runs(runs, 3);
    CHECK_DONE(
        store_execute(store,
                      "UPDATE points SET value = NULL, kind = 'nan' WHERE step = 50 AND series IN "
                      "(SELECT id FROM series WHERE run = 3)",
                      "", &error));
    open_screen(store, 3);
    const CompareCurves *curves = &((CompareView *)ui->state[SCREEN_COMPARE])->curves;
    CHECK_INT(curves->count, 1);
    const PlotLine *line = &curves->lines[0];
    CHECK_INT(line->count, 100);
    CHECK_NEAR(line->points[line->count - 1].x, 100, 0);
    CHECK(line->points[49].bad && isnan(line->points[49].mean));
    CHECK(!line->points[48].bad && isfinite(line->points[48].mean));
    close_screen();
}

// In a band where seeds tell one; else it is said that chance is not known.
static void the_difference_from_the_baseline_is_drawn(void) {
    Planted runs[6];
    memcpy(runs, six, sizeof runs);
    for (int i = 1; i < 6; i += 2) // bf16
        runs[i].end = 0.3;
    open_screen(make_runs(runs, 6), 6);
    ask(REQUEST_DIFFERENCE);
    const CompareCurves *curves = &((CompareView *)ui->state[SCREEN_COMPARE])->curves;
    const char *text = draw_screen(120, 36);
    CHECK_CONTAINS(text, "─ loss minus fp32's ─");
    CHECK_CONTAINS(text, " ±95 % · by step");
    CHECK_CONTAINS(text, "b · bf16 n 3, 3      0.0999±");
    CHECK_INT(curves->count, 1);
    const PlotPoint *last = &curves->lines[0].points[curves->lines[0].count - 1];
    CHECK_NEAR(last->mean, 0.1, 1e-3); // the noise of a seed is the same in both
    CHECK(last->low < 0.1 && last->low > 0 && last->high > 0.1);
    CHECK_TEXT(screen_compare.label(ui, REQUEST_DIFFERENCE, "difference"), "curves");
    ask(REQUEST_DIFFERENCE);
    CHECK_INT(curves->count, 2);
    close_screen();
}

// Seeds that lie far apart, and differ from the baseline's by nearly the same: the band is of that.
static void a_difference_of_the_same_seeds_is_one_of_pairs(void) {
    Planted runs[6];
    memcpy(runs, six, sizeof runs);
    for (int i = 0; i < 6; i++) { // fp32: 0.2, 0.4, 0.6; bf16 above it by 0.02, 0.03, 0.04
        runs[i].end = 0.2 + 0.2 * (i / 2) + (i % 2) * (0.02 + 0.01 * (i / 2));
        runs[i].noise = 0;
    }
    open_screen(make_runs(runs, 6), 6);
    ask(REQUEST_DIFFERENCE);
    const CompareCurves *curves = &((CompareView *)ui->state[SCREEN_COMPARE])->curves;
    CHECK_CONTAINS(draw_screen(120, 36), " ±95 % in pairs · by step");
    const PlotPoint *last = &curves->lines[0].points[curves->lines[0].count - 1];
    CHECK_NEAR(last->mean, 0.03, 1e-3);
    CHECK_NEAR(last->high - last->mean, 4.30265273 * 0.01 / sqrt(3), 1e-3);
    const PlotPoint *extreme = &curves->extremes[0][curves->lines[0].count - 1];
    CHECK_NEAR(extreme->low, 0.02, 1e-3);
    CHECK_NEAR(extreme->high, 0.04, 1e-3);
    close_screen();
}

static void without_seeds_a_difference_has_no_band(void) {
    Planted runs[] = {planted[0], planted[1]};
    runs[0].end = 0.5;
    open_screen(make_runs(runs, 2), 2);
    ask(REQUEST_DIFFERENCE);
    const char *text = draw_screen(80, 24);
    CHECK_CONTAINS(text, "─ loss minus fp32's ─");
    CHECK_CONTAINS(text, "no seeds: chance unknown · by step");
    CHECK_CONTAINS(text, "b · bf16    0.2996");
    ask(REQUEST_DOWN);
    ask(REQUEST_HIDE);
    CHECK_CONTAINS(draw_screen(80, 24), "nothing to hold against the baseline");
    close_screen();
}

// Gradients around 2^middle in both of two layers; the second run lacks the first of them.
static void plant_layers(Store *store, int64_t run, int middle, const char *precision) {
    RunRecord record = {0};
    const int first = run == 1 ? 1 : 0;
    RecordLayer layers[] = {{.name = "conv", .parent = -1}, {.name = "head", .parent = -1}};
    CHECK_DONE(store_read_run(store, run, &record, &error));
    CHECK_DONE(record_set_layers(&record, layers + first, 2 - first, &error));
    snprintf(record.scale_rule, sizeof record.scale_rule, "none");
    CHECK_DONE(store_update_run(store, &record, &error));
    record_clear(&record);
    SeriesWriter *writer = series_writer_new(store, run, 399, "resume", &error);
    LayerSample sample = {.step = 400, .width = 1, .count = 1000, .zeros = 100, .flushed = 50};
    sample.bins[middle - LAYER_LOWEST_EXPONENT] = 600;
    sample.bins[middle - 1 - LAYER_LOWEST_EXPONENT] = 300;
    sample.largest = ldexp(1.5, middle);
    snprintf(sample.precision, sizeof sample.precision, "%s", precision);
    for (int i = 0; i < 2 - first; i++)
        CHECK_DONE(layers_add(writer, i, &sample, &error));
    CHECK_DONE(store_begin(store, &error) && series_flush(writer, 1e6, &error) &&
               store_commit(store, &error));
    series_writer_free(writer);
}

// One line whole and one dotted, over what the format of each does to each exponent.
static void histograms_of_two_runs_lie_over_each_other(void) {
    Store *store = make_runs(planted, 2);
    plant_layers(store, 1, -10, "fp16");
    plant_layers(store, 2, -26, "fp32");
    open_screen(store, 2);
    ask(REQUEST_OVERLAY);
    const char *text = draw_screen(80, 24);
    CHECK_CONTAINS(text, "gradient exponents of two runs");
    CHECK_CONTAINS(text, "head"); // which both have
    CHECK_CONTAINS(text, "1 of 1, up and down · step 400 of 400");
    CHECK_CONTAINS(text, "a #2, step 400, fp32 at 2^0: 10.0 % zero, 5.0 % flushed");
    CHECK_CONTAINS(text, "b #1, step 400, fp16 at 2^0:");
    CHECK_CONTAINS(text, "fp16 at 2^0 would flush 90.0 % of a's, and 0.0 % would overflow.");
    CHECK_CONTAINS(text, "│ a ━━━━");
    CHECK_CONTAINS(text, "│ b ····"); // where a's are, it has nothing
    CHECK_TEXT(screen_compare.label(ui, REQUEST_OVERLAY, "exponents"), "close");
    ask(REQUEST_FIRST); // there are no gradients at the first step
    CHECK_CONTAINS(draw_screen(80, 24), "no layer of one name has gradients in both");
    ask(REQUEST_LAST);
    CHECK_CONTAINS(draw_screen(80, 24), "b #1, step 400");
    ask(REQUEST_MEMORY); // from page to page
    CHECK_CONTAINS(draw_screen(80, 24), "in all ");
    ask(REQUEST_BACK);
    CHECK_CONTAINS(draw_screen(80, 24), "─ outcomes ─");
    close_screen();
}

// One colour a format, everywhere.
static void runs_of_a_format_have_its_colour(void) {
    Planted runs[] = {planted[0], planted[0], planted[1], planted[1]};
    static const char *const names[] = {"p", "q", "r", "s"};
    for (int i = 0; i < 4; i++)
        runs[i].name = names[i];
    open_screen(make_runs(runs, 4), 4);
    const Comparison *comparison = ((CompareView *)ui->state[SCREEN_COMPARE])->comparison;
    for (int i = 0; i < 4; i++)
        CHECK_INT(compare_ink(comparison, i),
                  strcmp(comparison->runs[i].precision, "fp32") == 0 ? INK_FP32 : INK_BF16);
    close_screen();
}

// A network and its opponent: what both runs log is offered, one after the other.
static void losses_of_other_names_are_offered(void) {
    static const char *const gan[] = {"d_loss", "g_loss"};
    Store *store = make_runs(planted, 2);
    for (int i = 0; i < 2; i++)
        CHECK_DONE(plant_series(store, i + 1, gan, 2, &planted[i], 0.01, &error));
    open_screen(store, 2);
    CHECK_CONTAINS(draw_screen(120, 36), "─ d_loss (1 of 3) ─");
    CHECK_CONTAINS(draw_screen(120, 36), "mean d_loss");
    ask(REQUEST_SERIES);
    CHECK_CONTAINS(draw_screen(120, 36), "─ g_loss (2 of 3) ─");
    screen_compare.enter(ui); // the same runs again
    CHECK_CONTAINS(draw_screen(120, 36), "─ g_loss (2 of 3) ─");
    ask(REQUEST_SERIES_BACK);
    ask(REQUEST_SERIES_BACK);
    CHECK_CONTAINS(draw_screen(120, 36), "─ step_seconds (3 of 3) ─");
    ui->runs[0] = 2;
    ui->runs[1] = 1;
    screen_compare.enter(ui);
    CHECK_CONTAINS(draw_screen(120, 36), "─ d_loss (1 of 3) ─");
    close_screen();
}

// No more digits than columns can tell apart.
static void the_cross_hair_says_where_it_is_in_sensible_digits(void) {
    static const char *const places[] = {" step 200 ", " epoch 1.00 "};
    open_screen(make_history(), 2);
    screen_compare.request(ui, REQUEST_CROSS_HAIR);
    for (int i = 0; i < 2; i++) {
        CHECK_CONTAINS(draw_screen(120, 36), places[i]);
        ask(REQUEST_ALONG);
    }
    close_screen();
}

static void runs_without_points_are_said_to_have_none(void) {
    Store *store = fresh_store("history.db");
    WorkerId worker;
    for (int i = 0; i < 2; i++) {
        RunRecord record = planted_record(&planted[i]);
        record.status = RUN_RUNNING;
        record.step = 0;
        record.has_loss = false;
        CHECK_DONE(store_add_run(store, &record, NULL, 0, &error) &&
                   worker_identify(&worker, &error) &&
                   store_own_run(store, record.id, &worker, &error));
        record_clear(&record);
    }
    open_screen(store, 2);
    const char *text = draw_screen(120, 36);
    CHECK_CONTAINS(text, "no points yet");
    CHECK(!strstr(text, "nan"));
    close_screen();
}

// Past its end a run has no value, and of a short one the axis says where it is.
static void a_run_that_ended_has_no_value_later(void) {
    Planted runs[] = {planted[1], planted[1]};
    runs[0].steps = 100;
    runs[0].name = "short";
    open_screen(make_runs(runs, 2), 2);
    screen_compare.request(ui, REQUEST_CROSS_HAIR); // at step 200
    CHECK_CONTAINS(draw_screen(120, 36), "seed 1         –│");
    close_screen();
}

static void labels_of_a_short_axis_differ(void) {
    Planted runs[] = {planted[1], planted[0]};
    Store *store = make_runs(runs, 2);
    for (int id = 1; id <= 2; id++) {
        RunRecord record = {0};
        CHECK_DONE(store_read_run(store, id, &record, &error));
        record.total_steps = 40000; // it was stopped in the first part of an epoch
        CHECK_DONE(store_update_run(store, &record, &error));
        record_clear(&record);
    }
    open_screen(store, 2);
    ask(REQUEST_ALONG);
    const char *text = draw_screen(120, 36);
    CHECK_CONTAINS(text, "by epoch");
    CHECK_CONTAINS(text, "0.010");
    CHECK_CONTAINS(text, "0.020");
    close_screen();
}

// The last value of a run is what it logged last, however smooth its line is.
static void a_last_value_is_not_smoothed(void) {
    char wanted[48];
    open_screen(make_history(), 2);
    snprintf(wanted, sizeof wanted, "%.4g", planted_loss(&planted[0], planted_steps(&planted[0])));
    for (int i = 0; i < COMPARE_SMOOTHINGS; i++) {
        CHECK_CONTAINS(draw_screen(120, 36), wanted);
        frame_clear(&ui->frame);
        ask(REQUEST_SMOOTH);
    }
    draw_screen(120, 36);
    close_screen();
}

// Nor is one under the cross hair, or the mean of seeds: only curves are.
static void values_at_the_cross_and_means_are_as_logged(void) {
    char wanted[64];
    double sum = 0;
    open_screen(make_history(), 2);
    ask(REQUEST_CROSS_HAIR); // at step 200
    snprintf(wanted, sizeof wanted, "fp32, seed 1    %s│",
             word_number(planted_loss(&planted[1], 200)).text);
    for (int i = 0; i < COMPARE_SMOOTHINGS; i++) {
        CHECK_CONTAINS(draw_screen(120, 36), wanted);
        frame_clear(&ui->frame);
        ask(REQUEST_SMOOTH);
    }
    draw_screen(120, 36);
    close_screen();
    open_screen(make_runs(six, 6), 6);
    for (int i = 0; i < 6; i += 2)
        sum += planted_loss(&six[i], PLANTED_STEPS);
    snprintf(wanted, sizeof wanted, "a ━ fp32 n 3      %s±", word_number(sum / 3).text);
    for (int i = 0; i < COMPARE_SMOOTHINGS; i++) {
        CHECK_CONTAINS(draw_screen(120, 36), wanted);
        frame_clear(&ui->frame);
        ask(REQUEST_SMOOTH);
    }
    draw_screen(120, 36);
    close_screen();
}

int main(void) {
    make_folder();
    atexit(remove_folder);
    RUN_TEST(a_last_value_is_not_smoothed);
    RUN_TEST(values_at_the_cross_and_means_are_as_logged);
    RUN_TEST(lines_are_told_apart_by_a_letter);
    RUN_TEST(the_legend_stands_off_the_curves);
    RUN_TEST(seeds_are_one_curve_with_a_band);
    RUN_TEST(an_axis_is_called_log_where_it_is);
    RUN_TEST(a_mean_is_of_all_seeds_or_there_is_none);
    RUN_TEST(the_difference_from_the_baseline_is_drawn);
    RUN_TEST(a_difference_of_the_same_seeds_is_one_of_pairs);
    RUN_TEST(without_seeds_a_difference_has_no_band);
    RUN_TEST(histograms_of_two_runs_lie_over_each_other);
    RUN_TEST(runs_of_a_format_have_its_colour);
    RUN_TEST(losses_of_other_names_are_offered);
    RUN_TEST(the_cross_hair_says_where_it_is_in_sensible_digits);
    RUN_TEST(runs_without_points_are_said_to_have_none);
    RUN_TEST(a_run_that_ended_has_no_value_later);
    RUN_TEST(labels_of_a_short_axis_differ);
    return test_end();
}
