// A page of text over the screen: every word of it is reached, at every width.
#include "tests/test.h"
#include "ui/screen.h"
#include "ui_fixture.h"

static Ui *open_page(int columns, int rows, const char *text) {
    Error error;
    Ui *ui = calloc(1, sizeof *ui);
    if (!frame_init(&ui->frame, columns, rows, &error))
        abort();
    pager_show(ui, "page", strdup(text));
    return ui;
}

static void close_page(Ui *ui) {
    pager_close(ui);
    frame_clear(&ui->frame);
    free(ui);
}

static const char *draw(Ui *ui, int columns, int rows) {
    Error error;
    if (!frame_init(&ui->frame, columns, rows, &error))
        abort();
    Area all = frame_area(&ui->frame);
    pager_draw(ui, area_part(all, 0, 1, all.width, all.height - 2));
    return frame_text(&ui->frame);
}

// An explanation is one line, longer than the smallest terminal has room for.
static void one_long_line_is_scrolled_to_its_end_and_no_further(void) {
    char text[1200] = "";
    for (int i = 0; i < 150; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "w%03d ", i);
    Ui *ui = open_page(60, 16, text);
    CHECK_CONTAINS(draw(ui, 60, 16), "w000 w001");
    CHECK_CONTAINS(frame_text(&ui->frame), "1 of 17 · esc closes");
    CHECK(!strstr(frame_text(&ui->frame), "w149"));
    for (int i = 0; i < 40; i++)
        pager_request(ui, REQUEST_DOWN);
    CHECK_CONTAINS(draw(ui, 60, 16), "w149");
    pager_request(ui, REQUEST_UP);
    CHECK_CONTAINS(draw(ui, 60, 16), "7 of 17");
    pager_request(ui, REQUEST_LAST);
    CHECK_CONTAINS(draw(ui, 120, 40), "w000"); // larger now: there is room for all of it
    CHECK_CONTAINS(frame_text(&ui->frame), "w149");
    close_page(ui);
}

static void long_lines_are_broken_below_what_stands_behind_their_label(void) {
    static const char text[] =
        "title\n"
        "  space    gives the layer under the cursor the next of its formats\n"
        "step 12: a gradient was not finite and the scale was too large\n"
        "\tx = 1\n"
        "a-word-without-an-end-that-is-wider-than-the-page-is-at-sixty-columns";
    Ui *ui = open_page(60, 16, text);
    draw(ui, 60, 16);
    CHECK_CONTAINS(frame_text(&ui->frame),
                   "│   space    gives the layer under the cursor the next │");
    CHECK_CONTAINS(frame_text(&ui->frame), "│            of its formats");
    CHECK_CONTAINS(frame_text(&ui->frame),
                   "│ step 12: a gradient was not finite and the scale was │");
    CHECK_CONTAINS(frame_text(&ui->frame), "│ too large ");
    CHECK_CONTAINS(frame_text(&ui->frame), "│         x = 1 ");
    CHECK_CONTAINS(frame_text(&ui->frame), "│ a-word-without-an-end");
    CHECK_CONTAINS(frame_text(&ui->frame), "│ -at-sixty-columns ");
    CHECK_CONTAINS(draw(ui, 120, 36), "the next of its formats"); // as wide as it is now
    close_page(ui);
}

int main(void) {
    RUN_TEST(one_long_line_is_scrolled_to_its_end_and_no_further);
    RUN_TEST(long_lines_are_broken_below_what_stands_behind_their_label);
    return test_end();
}
