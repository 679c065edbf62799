// Plots, bars and gauges as cells.
#include "../test.h"
#include "base/rune.h"
#include "ui/cells/bars.h"
#include "ui/cells/glyphs.h"
#include "ui/cells/plot.h"
#include "ui/cells/words.h"

static Frame frame;

static Area fresh(int columns, int rows) {
    frame.ascii = false;
    if (!frame_init(&frame, columns, rows, NULL))
        abort();
    return frame_area(&frame);
}

static const char *row_text(int row) {
    static char text[4 * FRAME_MOST + 1];
    size_t used = 0;
    for (int column = 0; column < frame.columns; column++)
        used += (size_t)rune_encode(frame_cell(&frame, column, row)->rune, text + used);
    text[used] = 0;
    return text;
}

static PlotPoint point(double x, double y) {
    return (PlotPoint){x, y, y, y, false};
}

static const PlotPoint gap = {2, NAN, NAN, NAN, true};

static void a_slope_goes_from_corner_to_corner(void) {
    PlotPoint points[] = {point(0, 0), point(1, 1)};
    PlotLine line = {.points = points, .count = 2, .ink = INK_FP16};
    PlotAxes axes = {0, 1, 0, 1, false};
    Area area = fresh(4, 2); // 8 by 8 dots: a diagonal
    plot_draw(area, &axes, &line, 1);
    CHECK_TEXT(row_text(0), "  ⡠⠊");
    CHECK_TEXT(row_text(1), "⡠⠊  ");
    CHECK_INT(frame_cell(&frame, 0, 1)->style.ink, INK_FP16);
}

static void a_dotted_line_leaves_dots_out(void) {
    PlotPoint points[] = {point(0, 0), point(2, 0)};
    PlotLine line = {.points = points, .count = 2, .dotted = true};
    PlotAxes axes = {0, 2, 0, 1, false};
    plot_draw(fresh(6, 1), &axes, &line, 1);
    CHECK_TEXT(row_text(0), "⡀⢀ ⡀⢀ ");
}

static void what_is_not_finite_is_a_mark_and_moves_no_axis(void) {
    PlotPoint points[] = {point(0, 1), point(1, 2), gap, point(3, 1)};
    PlotLine line = {.points = points, .count = 4};
    PlotAxes axes = plot_fit(&line, 1, 0, 3, false);
    CHECK(axes.bottom > 0.9 && axes.top < 2.1);
    plot_draw(fresh(4, 4), &axes, &line, 1);
    CHECK_INT(frame_cell(&frame, 2, 3)->rune, GLYPH_CROSS);
    CHECK_INT(frame_cell(&frame, 2, 3)->style.ink, INK_BAD);
    CHECK_INT(frame_cell(&frame, 2, 0)->rune, ' '); // no line across the gap
}

static void axes_fit_what_is_in_the_window(void) {
    PlotPoint points[] = {point(0, 1000), point(1, 2), point(2, 4)};
    PlotLine line = {.points = points, .count = 3};
    PlotAxes axes = plot_fit(&line, 1, 1, 2, true);
    CHECK(axes.log_y && axes.bottom > 1.8 && axes.bottom < 2 && axes.top > 4 && axes.top < 4.3);
    points[1].mean = points[1].low = points[1].high = -2;
    axes = plot_fit(&line, 1, 1, 2, true);
    CHECK(!axes.log_y && axes.bottom < -2);
    axes = plot_fit(&line, 1, 50, 60, true);
    CHECK(axes.bottom == 0 && axes.top == 1);
    PlotPoint same[] = {point(0, 3), point(1, 3)};
    PlotLine flat = {.points = same, .count = 2};
    axes = plot_fit(&flat, 1, 0, 1, false);
    CHECK(axes.bottom < 3 && axes.top > 3);
}

static void a_scale_is_held_until_it_changes(void) {
    PlotPoint points[] = {point(0, 1), point(4, 0)};
    PlotLine line = {.points = points, .count = 2, .steps = true};
    PlotAxes axes = {0, 8, 0, 1, false};
    plot_draw(fresh(8, 2), &axes, &line, 1);
    CHECK_INT(frame_cell(&frame, 1, 0)->rune, GLYPH_BRAILLE + 0x09); // still at the top
    CHECK_INT(frame_cell(&frame, 1, 1)->rune, ' ');
    CHECK_INT(frame_cell(&frame, 7, 1)->rune, GLYPH_BRAILLE + 0xC0); // goes on to the edge
}

static void points_upon_one_column_of_dots_are_drawn_as_their_mean(void) {
    PlotPoint points[40];
    for (int i = 0; i < 40; i++) // ten to each of four columns of dots
        points[i] = point(i / 10 + i % 10 / 100.0, i % 2);
    PlotLine line = {.points = points, .count = 40};
    PlotAxes axes = {0, 3, 0, 1, false};
    plot_draw(fresh(2, 1), &axes, &line, 1);
    CHECK_TEXT(row_text(0), "⠤⠤");
}

static void a_line_stands_out_from_its_spans(void) {
    PlotPoint points[] = {{0, 0, 1, 1, false}, {1, 0, 1, 1, false}};
    PlotLine line = {.points = points, .count = 2, .ink = INK_FP16, .spans = true};
    PlotAxes axes = {0, 1, 0, 1, false};
    plot_draw(fresh(1, 2), &axes, &line, 1);
    CHECK_TEXT(row_text(0), "⠉"); // of the spans nothing in its own cell
    CHECK_TEXT(row_text(1), "⣿");
    CHECK_INT(frame_cell(&frame, 0, 1)->style.ink, INK_BORDER);
}

static void lines_that_run_together_take_turns(void) {
    PlotPoint points[] = {point(0, 0), point(15, 0)};
    PlotLine lines[] = {{.points = points, .count = 2, .ink = INK_FP16},
                        {.points = points, .count = 2, .ink = INK_FP32}};
    PlotAxes axes = {0, 15, 0, 1, false};
    for (int ascii = 0; ascii < 2; ascii++) {
        Area area = fresh(8, 1);
        frame.ascii = ascii;
        plot_draw(area, &axes, lines, 2);
        int columns[2] = {0, 0};
        for (int column = 0; column < 8; column++) {
            columns[0] += frame_cell(&frame, column, 0)->style.ink == INK_FP16;
            columns[1] += frame_cell(&frame, column, 0)->style.ink == INK_FP32;
        }
        CHECK_INT(columns[0], 4);
        CHECK_INT(columns[1], 4);
    }
}

static void smoothing_keeps_a_constant_and_steps_over_gaps(void) {
    PlotPoint points[] = {point(0, 5), point(1, 5), gap, point(3, 5)};
    plot_smooth(points, 4, 0.9);
    CHECK_NEAR(points[0].mean, 5, 1e-12);
    CHECK_NEAR(points[3].mean, 5, 1e-12);
    CHECK(isnan(points[2].mean));
    PlotPoint step[] = {point(0, 0), point(1, 1)};
    plot_smooth(step, 2, 0.5);
    CHECK_NEAR(step[1].mean, 2.0 / 3, 1e-12);
}

static void columns_and_steps_map_back_and_forth(void) {
    PlotAxes axes = {100, 300, 0, 1, false};
    for (int column = 0; column < 50; column++)
        CHECK_INT(plot_column_of(&axes, 50, plot_x_of(&axes, 50, column)), column);
    CHECK_INT(plot_column_of(&axes, 50, 99), -1);
    CHECK_INT(plot_column_of(&axes, 50, (double)NAN), -1);
}

static void a_row_is_where_the_line_is_drawn(void) {
    PlotAxes axes = {0, 1, exp2(13.5), exp2(19.5), true};
    for (int power = 14; power < 20; power++) {
        PlotPoint points[] = {point(0, exp2(power)), point(1, exp2(power))};
        PlotLine line = {.points = points, .count = 2, .ink = INK_WARN};
        plot_draw(fresh(3, 7), &axes, &line, 1);
        int row = plot_row_of(&axes, 7, exp2(power));
        CHECK_MESSAGE(row >= 0 && row < 7 && frame_cell(&frame, 1, row)->rune != ' ',
                      "2^%d is not in row %d", power, row);
    }
}

static void labels_are_round_and_fit(void) {
    PlotAxes axes = {0, 1, 32768, 65536, true};
    Area area = fresh(6, 4);
    plot_label_y(area, &axes, true);
    CHECK_TEXT(row_text(0), "  2^16");
    CHECK_TEXT(row_text(3), "  2^15");
    axes = (PlotAxes){0, 1, 0.1, 2.3, false};
    plot_label_y(fresh(5, 1), &axes, false);
    CHECK_TEXT(row_text(0), " 2.30");
    axes = (PlotAxes){0, 1, 2.3101, 2.3104, false}; // labels that two decimals would make alike
    plot_label_y(fresh(8, 7), &axes, false);
    CHECK_TEXT(row_text(0), "  2.3104");
    CHECK_TEXT(row_text(6), "  2.3101");
}

static void bars_grow_by_eighths_and_show_the_least(void) {
    const double values[] = {0, 1e-9, 0.5, 1};
    bars_draw(fresh(4, 2), values, 4, 1, INK_BF16, NULL);
    CHECK_TEXT(row_text(0), "   █");
    CHECK_TEXT(row_text(1), " ▁██");
}

static void sparks_gather_and_show_nothing_as_dots(void) {
    const double values[] = {0, 0, 1, 1, 4, 4, 0, 0};
    Area area = fresh(4, 1);
    spark_draw(area, 0, 0, 4, values, 8, INK_FP16);
    CHECK_TEXT(row_text(0), "·▂█·");
}

static void gauges_show_a_little_as_something(void) {
    Area area = fresh(10, 1);
    gauge_draw(area, 0, 0, 10, 0.001, INK_GOOD);
    CHECK_INT(frame_cell(&frame, 0, 0)->style.ink, INK_GOOD);
    CHECK_INT(frame_cell(&frame, 1, 0)->style.ink, INK_BORDER);
    gauge_draw(area, 0, 0, 10, (double)NAN, INK_GOOD);
    CHECK_INT(frame_cell(&frame, 0, 0)->style.ink, INK_BORDER);
}

static void drawing_into_nothing_draws_nothing(void) {
    PlotPoint points[] = {point(0, 0), point(1, INFINITY), point(1e300, -1e300)};
    PlotLine line = {.points = points, .count = 3, .spans = true};
    PlotAxes axes = {0, 0, 0, 0, false};
    Area area = fresh(3, 1);
    plot_draw(area_part(area, 0, 0, 0, 0), &axes, &line, 1);
    plot_draw(area, &axes, &line, 1);
    plot_label_y(area_part(area, 0, 0, 0, 0), &axes, true);
    const double values[] = {1, INFINITY, NAN};
    bars_draw(area_part(area, 0, 0, 0, 0), values, 3, NAN, INK_FP32, NULL);
    CHECK_INT(frame.columns, 3);
}

// Six columns have room for all of these: nothing is cut, and a zero is one.
static void labels_fit_their_columns(void) {
    static const struct {
        double low, high;
        const char *first, *last;
    } cases[] = {
        {0, 0, "  1.00", " -1.00"},
        {-1e-6, 1e-6, "1.1e-6", " -1e-6"},
        {9.99e-4, 9.99e-4, "0.0011", "9.0e-4"},
        {1e-12, 3e-12, " 3e-12", " 9e-13"},
        {2e6, 4e6, " 4.1e6", " 1.9e6"},
        {-123456, 4, "  4942", "-1.3e5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        PlotPoint points[] = {point(0, cases[i].low), point(1, cases[i].high)};
        PlotLine line = {.points = points, .count = 2};
        PlotAxes axes = plot_fit(&line, 1, 0, 1, false);
        Area area = fresh(6, 7);
        plot_label_y(area, &axes, false);
        CHECK_CONTAINS(row_text(0), cases[i].first);
        CHECK_CONTAINS(row_text(6), cases[i].last);
        for (int row = 0; row < 7; row++)
            CHECK_MESSAGE(!strstr(row_text(row), "…"), "%s", row_text(row));
    }
    PlotAxes axes = {0, 1, -1, 1.0000001, false};
    Area area = fresh(8, 7);
    plot_label_y(area, &axes, false);
    CHECK_TEXT(row_text(3), "    0.00");
}

static void powers_have_one_digit_before_the_point(void) {
    CHECK_TEXT(word_power(9.99e-4, 1).text, "1.0e-3");
    CHECK_TEXT(word_power(8.44e-4, 1).text, "8.4e-4");
    CHECK_TEXT(word_power(-1e100, 0).text, "-1e100");
    CHECK_TEXT(word_scale(0.030517578125000007).text, "0.0305");
    CHECK_TEXT(word_scale(1126.4).text, "1126.4");
}

int main(void) {
    RUN_TEST(a_slope_goes_from_corner_to_corner);
    RUN_TEST(a_dotted_line_leaves_dots_out);
    RUN_TEST(what_is_not_finite_is_a_mark_and_moves_no_axis);
    RUN_TEST(axes_fit_what_is_in_the_window);
    RUN_TEST(a_scale_is_held_until_it_changes);
    RUN_TEST(points_upon_one_column_of_dots_are_drawn_as_their_mean);
    RUN_TEST(a_line_stands_out_from_its_spans);
    RUN_TEST(lines_that_run_together_take_turns);
    RUN_TEST(smoothing_keeps_a_constant_and_steps_over_gaps);
    RUN_TEST(columns_and_steps_map_back_and_forth);
    RUN_TEST(a_row_is_where_the_line_is_drawn);
    RUN_TEST(labels_are_round_and_fit);
    RUN_TEST(bars_grow_by_eighths_and_show_the_least);
    RUN_TEST(sparks_gather_and_show_nothing_as_dots);
    RUN_TEST(gauges_show_a_little_as_something);
    RUN_TEST(drawing_into_nothing_draws_nothing);
    frame_clear(&frame);
    RUN_TEST(labels_fit_their_columns);
    RUN_TEST(powers_have_one_digit_before_the_point);
    return test_end();
}
