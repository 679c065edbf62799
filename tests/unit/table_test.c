// Tables and small curves of the command line: what gives way, what is cut, what is drawn.
#include "cli/print/curve.h"
#include "cli/print/table.h"
#include "tests/test.h"

static const TableColumn columns[] = {
    {"id", true, 0, 0}, {"name", false, 0, 12}, {"loss", true, 1, 0}, {"memory", true, 2, 0}};

static char *print(int width, const char *const *cells, int count) {
    char *text;
    size_t size;
    Error error = {.code = ERROR_NONE};
    Table *table = table_new(columns, 4);
    for (int i = 0; i < count; i++)
        table_put(table, cells[i], "");
    FILE *out = open_memstream(&text, &size);
    CHECK(table_print(table, out, width, "", "", &error));
    fclose(out);
    table_free(table);
    return text;
}

static const char *const two_rows[] = {"1",  "first",  "0.25", "10 MiB", //
                                       "12", "second", "3",    NULL};

static void columns_are_aligned(void) {
    char *text = print(0, two_rows, 8);
    CHECK_TEXT(text, "id  name    loss  memory\n"
                     " 1  first   0.25  10 MiB\n"
                     "12  second     3       -\n");
    free(text);
}

static void the_least_wanted_column_gives_way_first(void) {
    char *text = print(20, two_rows, 8);
    CHECK_TEXT(text, "id  name    loss\n 1  first   0.25\n12  second     3\n");
    free(text);
    text = print(12, two_rows, 8);
    CHECK_TEXT(text, "id  name\n 1  first\n12  second\n");
    free(text);
}

static void it_says_which_columns_it_shows(void) {
    static const char *const rows[] = {"1", "first", NULL, "10 MiB"};
    Table *table = table_new(columns, 4);
    for (int i = 0; i < 4; i++)
        table_put(table, rows[i], "");
    CHECK(table_shows(table, 0, 1) && table_shows(table, 0, 3) && !table_shows(table, 0, 2));
    CHECK(table_shows(table, 12, 1) && !table_shows(table, 12, 3));
    table_free(table);
}

static void what_stays_is_cut(void) {
    char *text = print(8, two_rows, 8);
    CHECK_TEXT(text, "id  name\n 1  fir~\n12  sec~\n");
    free(text);
    static const char *const longer[] = {"1", "a name that is long", "1", "1"};
    text = print(0, longer, 4);
    CHECK_CONTAINS(text, "a name that~");
    free(text);
}

static void columns_of_dashes_are_left_out(void) {
    static const char *const rows[] = {"1", "a", NULL, "1", "2", "b", NULL, "2"};
    char *text = print(0, rows, 8);
    CHECK_TEXT(text, "id  name  memory\n 1  a          1\n 2  b          2\n");
    free(text);
}

static void wide_characters_and_escapes_keep_the_columns(void) {
    static const char *const rows[] = {"1", "名前", "1", "1", "2", "\x1b[1m", "22", "2"};
    char *text = print(0, rows, 8);
    CHECK_TEXT(text, "id  name     loss  memory\n"
                     " 1  名前        1       1\n"
                     " 2  \\x1b[1m    22       2\n");
    free(text);
}

// ---- curves -------------------------------------------------------------------------------------

static char *draw(const CurveFrame *frame, const CurveAxis *axis, const double *values) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    curve_print(out, frame, axis, values);
    fclose(out);
    return text;
}

static const CurveFrame ascii = {.columns = 8, .rows = 2, .style = "", .plain = "", .indent = ""};

static void a_curve_falls_from_top_to_bottom(void) {
    const double values[] = {4, 4, 3, 3, 2, 2, 1, 1};
    CurveAxis axis = curve_axis(values, 8);
    CHECK(!axis.is_log);
    CHECK_NEAR(axis.low, 1, 0);
    CHECK_NEAR(axis.high, 4, 0);
    char *text = draw(&ascii, &axis, values);
    CHECK_TEXT(text, "        4 |''..    \n"
                     "        1 |    ''..\n");
    free(text);
}

static void what_is_not_finite_is_a_mark_and_no_part_of_the_axis(void) {
    const double values[] = {2, 2, INFINITY, NAN, 1, 1, -INFINITY, 1};
    CurveAxis axis = curve_axis(values, 8);
    CHECK_NEAR(axis.high, 2, 0);
    CHECK_NEAR(axis.low, 1, 0);
    char *text = draw(&ascii, &axis, values);
    CHECK_TEXT(text, "        2 |''      \n"
                     "        1 |  ! ..!.\n");
    free(text);
}

static void positive_values_that_span_much_are_logarithmic(void) {
    const double wide[] = {1000, 1}, narrow[] = {10, 1}, signs[] = {1000, -1}, flat[] = {3, 3},
                 none[] = {NAN, INFINITY};
    CHECK(curve_axis(wide, 2).is_log);
    CHECK(!curve_axis(narrow, 2).is_log);
    CHECK(!curve_axis(signs, 2).is_log);
    CHECK(curve_axis(flat, 2).low < 3 && curve_axis(flat, 2).high > 3);
    CHECK(curve_axis(none, 2).low < curve_axis(none, 2).high);
}

static void braille_has_eight_dots_a_character(void) {
    CurveFrame frame = {
        .columns = 2, .rows = 1, .has_braille = true, .style = "", .plain = "", .indent = "> "};
    const double values[] = {3, 2, 1, 0};
    CurveAxis axis = curve_axis(values, 4);
    CHECK_INT(curve_cells(&frame), 4);
    char *text = draw(&frame, &axis, values);
    CHECK_TEXT(text, ">         3 │⠑⢄\n");
    free(text);
}

static void sparks_show_what_is_hardly_there(void) {
    const double values[] = {0, 1, 100, 50};
    char text[64];
    curve_spark(text, sizeof text, values, 4, false);
    CHECK_TEXT(text, " .#-");
    curve_spark(text, sizeof text, values, 4, true);
    CHECK_TEXT(text, " ▁█▄");
    curve_spark(text, 3, values, 4, false); // cut, never past the end
    CHECK_TEXT(text, " .");
}

int main(void) {
    RUN_TEST(columns_are_aligned);
    RUN_TEST(the_least_wanted_column_gives_way_first);
    RUN_TEST(it_says_which_columns_it_shows);
    RUN_TEST(what_stays_is_cut);
    RUN_TEST(columns_of_dashes_are_left_out);
    RUN_TEST(wide_characters_and_escapes_keep_the_columns);
    RUN_TEST(a_curve_falls_from_top_to_bottom);
    RUN_TEST(what_is_not_finite_is_a_mark_and_no_part_of_the_axis);
    RUN_TEST(positive_values_that_span_much_are_logarithmic);
    RUN_TEST(braille_has_eight_dots_a_character);
    RUN_TEST(sparks_show_what_is_hardly_there);
    return test_end();
}
