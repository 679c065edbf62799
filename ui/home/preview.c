// What the runs under the cursor, or those that are chosen, did: curves and a sentence.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sanitize.h"
#include "store/step_profile.h"
#include "ui/cells/theme.h"
#include "ui/cells/words.h"
#include "ui/home/home.h"

enum { MOST_POINTS = 400, LABELS = 7 };

// ---- reading ------------------------------------------------------------------------------------

static PlotPoint *plot_points(const SeriesPoint *points, int count) {
    PlotPoint *list = calloc((size_t)count + 1, sizeof *list);
    for (int i = 0; list && i < count; i++) {
        const SeriesPoint *point = &points[i];
        list[i] = (PlotPoint){.x = (double)point->step,
                              .low = point->min,
                              .mean = point->mean,
                              .high = point->max,
                              .bad = point->nans + point->infs + point->minus_infs > 0};
    }
    return list;
}

// What the table has no room for, whatever its size: what the results measure, and how it was set.
static void tell_run(Home *home, const RunRecord *run) {
    char text[COMPARE_TEXT_SIZE] = "";
    size_t used = 0;
    if (home_is_named(run))
        used += (size_t)snprintf(text, sizeof text, "%s · ", run->name);
    if (run->label[0])
        used += (size_t)snprintf(text + used, sizeof text - used, "%s · ", run->label);
    for (int i = 0; i < run->metric_count && used + RECORD_NAME_SIZE + 32 < sizeof text / 2; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s %s · ", run->metrics[i].name,
                                 word_number(run->metrics[i].value).text);
    used += (size_t)snprintf(text + used, sizeof text - used, "loss scale %s · seed %lld",
                             word_rule(run->scale_rule).text, (long long)run->seed);
    if (run->note[0] && used < sizeof text)
        snprintf(text + used, sizeof text - used, " · note: %s", run->note);
    sanitize_line(home->preview_text, sizeof home->preview_text, text, strlen(text));
}

static void read_one(Ui *ui, Home *home) {
    SeriesPoint *points = NULL;
    int count = 0;
    Error error;
    if (!store_read_series(ui->store, home->run, "loss", 0, INT64_MAX, MOST_POINTS, &points, &count,
                           &error)) {
        ui_fail(ui, &error);
        return;
    }
    if (home_listed(home, home->run))
        tell_run(home, home_listed(home, home->run));
    home->preview = plot_points(points, count);
    home->preview_count = home->preview ? count : 0;
    free(points);
    StepProfile profile = {.steps = 0};
    if (count == 0 && !store_read_step_profile(ui->store, home->run, &profile, &error))
        ui_fail(ui, &error);
    home->preview_is_profile = profile.steps > 0;
    step_profile_clear(&profile);
}

static void read_chosen(Ui *ui, Home *home) {
    CompareOptions options = {.axis = COMPARE_BY_STEP,
                              .grams_per_kwh =
                                  ui->settings.co2 > 0 ? ui->settings.co2 : (double)NAN,
                              .prefers_fp32 = true}; // as the screen that compares has it
    Error error;
    home->comparison = compare_new(ui->store, home->chosen, home->chosen_count, &options, &error);
    if (!home->comparison)
        snprintf(home->preview_text, sizeof home->preview_text, "%s", error.text);
    else if (home->comparison->verdict_count > 0)
        snprintf(home->preview_text, sizeof home->preview_text, "%s",
                 home->comparison->verdicts[0]);
}

void home_read_preview(Ui *ui) {
    Home *home = home_of(ui);
    free(home->preview);
    home->preview = NULL;
    home->preview_count = 0;
    home->preview_is_profile = false;
    home->preview_text[0] = 0;
    compare_free(home->comparison);
    home->comparison = NULL;
    home->preview_of = home->run;
    if (home->chosen_count >= 2)
        read_chosen(ui, home);
    else if (home->run)
        read_one(ui, home);
}

// ---- drawing ------------------------------------------------------------------------------------

static void draw_curves(Area area, const PlotLine *lines, int count) {
    double right = 1;
    for (int i = 0; i < count; i++)
        if (lines[i].count > 0)
            right = fmax(right, lines[i].points[lines[i].count - 1].x);
    PlotAxes axes = plot_fit(lines, count, 0, right, true);
    Area plot = area_part(area, LABELS, 0, area.width - LABELS, area.height - 1);
    plot_label_y(area_part(area, 0, 0, LABELS - 1, area.height - 1), &axes, false);
    plot_draw(plot, &axes, lines, count);
    area_text(area, LABELS, area.height - 1, style_of(INK_DIM), "0");
    area_text_right(area, area.width, area.height - 1, style_of(INK_DIM),
                    word_count((int64_t)right).text);
}

static void draw_one(const Home *home, Area area) {
    Ink ink = INK_TEXT;
    for (int i = 0; i < home->run_count; i++)
        if (home->runs[i].id == home->run)
            ink = theme_format_ink(home->runs[i].precision);
    PlotLine line = {
        .points = home->preview, .count = home->preview_count, .ink = ink, .spans = true};
    if (home->preview_count > 0)
        draw_curves(area, &line, 1);
    else
        area_wrap(area_part(area, 1, 0, area.width - 2, area.height), 0, style_of(INK_DIM),
                  home->preview_is_profile
                      ? "A profile: where the time of steps goes, by layer and operation. enter "
                        "opens it, and P shows that."
                      : "No loss was logged.");
}

static void draw_chosen(const Home *home, Area area) {
    const Comparison *comparison = home->comparison;
    PlotLine lines[HOME_MOST_CHOSEN];
    PlotPoint *points[HOME_MOST_CHOSEN];
    int count = comparison->run_count < HOME_MOST_CHOSEN ? comparison->run_count : HOME_MOST_CHOSEN;
    for (int i = 0; i < count; i++) {
        const CompareCurve *curve = &comparison->losses[i];
        points[i] = plot_points(curve->points, curve->count);
        lines[i] = (PlotLine){.points = points[i],
                              .count = points[i] ? curve->count : 0,
                              .ink = theme_format_ink(comparison->runs[i].precision)};
    }
    draw_curves(area, lines, count);
    for (int i = 0; i < count; i++)
        free(points[i]);
}

void home_draw_preview(Ui *ui, Area area, bool focused) {
    enum { TEXT_ROWS = 3 };
    const Home *home = home_of(ui);
    char title[80] = "preview", right[80] = "";
    if (home->chosen_count > 0) {
        int hidden = home_hidden(home);
        snprintf(title, sizeof title, "%d chosen", home->chosen_count);
        if (hidden > 0)
            snprintf(title, sizeof title, "%d chosen, %d hidden by the filter", home->chosen_count,
                     hidden);
        snprintf(right, sizeof right,
                 home->chosen_count > 1 ? "c compares · esc: none"
                                        : "one more, then c · esc: none");
    } else if (home->run) {
        snprintf(title, sizeof title, "%s of run %lld",
                 home->preview_is_profile ? "profile" : "loss", (long long)home->run);
        snprintf(right, sizeof right, "enter opens · space chooses");
    }
    Area inside = area_box(area, title, right, focused);
    if (inside.height < 3)
        return;
    int curves = inside.height;
    if (home->preview_text[0] && inside.height > TEXT_ROWS + 4) {
        curves -= TEXT_ROWS + 1;
        area_wrap(area_part(inside, 1, curves + 1, inside.width - 2, TEXT_ROWS), 0,
                  style_of(INK_TEXT), home->preview_text);
    }
    Area part = area_part(inside, 0, 0, inside.width - 1, curves);
    if (home->comparison)
        draw_chosen(home, part);
    else if (home->run)
        draw_one(home, part);
}
