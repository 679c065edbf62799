// The format lab: what it says of a number at the end of a format, which formats it has, and a
// block of numbers that share a scale.
#include "number/format.h"
#include "tests/test.h"
#include "ui/formats/formats.h"
#include "ui/screen.h"
#include "ui_fixture.h"

static void (*taken)(Ui *ui, const char *text); // by the prompt that is open

// ---- in place of ui.c and prompt.c --------------------------------------------------------------

void ui_say(Ui *ui, Ink ink, const char *format, ...) {
    (void)ui, (void)ink, (void)format;
}
void ui_fail(Ui *ui, const Error *error) {
    (void)ui;
    CHECK_MESSAGE(false, "%s", error->text);
}
void ui_lay_out(Ui *ui) {
    (void)ui;
}
void ui_copy(Ui *ui, const char *text) {
    (void)ui, (void)text;
}
void prompt_ask(Ui *ui, const char *label, const char *text,
                void (*done)(Ui *ui, const char *text)) {
    (void)ui, (void)label, (void)text;
    taken = done;
}

static void the_end_of_a_format_is_named(void) {
    static const struct {
        const char *text, *said;
    } cases[] = {{"1e400", "in fp16 past the largest, 65504"},
                 {"1e400", " = inf: it exceeds a double"},
                 {"1e-200*1e-200", " = 0: it is too small for a double"},
                 {"-65504*2", "in fp16 past the lowest, -65504"},
                 {"65504", "in fp16 between 65472 and inf"},
                 {"1", "in fp16 between 0.99951"}};
    Error error;
    Ui *ui = calloc(1, sizeof *ui);
    if (!screen_formats.open(ui, &error) || !frame_init(&ui->frame, 120, 36, &error))
        abort();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        screen_formats.request(ui, REQUEST_ENTER);
        taken(ui, cases[i].text);
        frame_erase(&ui->frame);
        screen_formats.draw_panel(ui, PANEL_NUMBER, frame_area(&ui->frame), true);
        CHECK_CONTAINS(frame_text(&ui->frame), cases[i].said);
    }
    // e4m3 has no infinity: what is too large is its largest.
    screen_formats.request(ui, REQUEST_DOWN);
    screen_formats.request(ui, REQUEST_ENTER);
    taken(ui, "500");
    frame_erase(&ui->frame);
    screen_formats.draw_panel(ui, PANEL_NUMBER, frame_area(&ui->frame), true);
    CHECK_CONTAINS(frame_text(&ui->frame), "in e4m3 the largest there is, after 416");
    screen_formats.close(ui);
    frame_clear(&ui->frame);
    free(ui);
}

// Whatever there is room for is no sentence broken off; the row of the cursor has it whole below.
static void what_happened_fits_at_every_width(void) {
    static const char *const texts[] = {"1e-4*1e-4", "1e5*1e5/1e5", "1e-7/3", "70000"};
    Error error;
    Ui *ui = calloc(1, sizeof *ui);
    if (!screen_formats.open(ui, &error))
        abort();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        screen_formats.request(ui, REQUEST_ENTER);
        taken(ui, texts[i]);
        for (int width = 80; width <= 120; width++) {
            if (!frame_init(&ui->frame, width, 16, &error))
                abort();
            screen_formats.draw_panel(ui, PANEL_NUMBER, frame_area(&ui->frame), true);
            CHECK(!strstr(frame_text(&ui->frame), "…"));
        }
        if (i == 0) {
            CHECK(frame_init(&ui->frame, 80, 16, &error));
            screen_formats.draw_panel(ui, PANEL_NUMBER, frame_area(&ui->frame), true);
            CHECK_CONTAINS(frame_text(&ui->frame), " flushed to zero (-1e-08)");
            CHECK_CONTAINS(frame_text(&ui->frame), "rounded (+1.2e-11)");
        }
    }
    screen_formats.close(ui);
    frame_clear(&ui->frame);
    free(ui);
}

static Ui *open_lab(int columns, int rows) {
    Error error;
    Ui *ui = calloc(1, sizeof *ui);
    if (!screen_formats.open(ui, &error) || !frame_init(&ui->frame, columns, rows, &error))
        abort();
    ui->focus[SCREEN_FORMATS] = PANEL_NUMBER;
    return ui;
}

static void close_lab(Ui *ui) {
    screen_formats.close(ui);
    frame_clear(&ui->frame);
    free(ui);
}

static const char *shown_of(Ui *ui, PanelId panel) {
    frame_erase(&ui->frame);
    screen_formats.draw_panel(ui, panel, frame_area(&ui->frame), true);
    return frame_text(&ui->frame);
}

static void every_format_that_people_look_at_is_there(void) {
    Ui *ui = open_lab(120, 36);
    for (int i = 0; i < FORMAT_COUNT; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s ", format_name((Format)i));
        if (format_is_shown((Format)i))
            CHECK_CONTAINS(shown_of(ui, PANEL_NUMBER), name);
        if (format_is_shown((Format)i) || format_table[i].scaled == SCALED_BLOCK)
            CHECK_CONTAINS(shown_of(ui, PANEL_RANGES), name);
        if (format_is_scaled((Format)i))
            CHECK_CONTAINS(shown_of(ui, PANEL_BLOCK), format_name((Format)i));
    }
    close_lab(ui);
}

// Processors give 0/0 a sign, which means nothing; and inf times a scale of 0.
static void what_is_no_number_has_no_sign(void) {
    static const char *const numbers[] = {"-inf", "1e308", "0/0"};
    Error error;
    Ui *ui = open_lab(120, 36);
    screen_formats.request(ui, REQUEST_ENTER);
    taken(ui, "0/0");
    CHECK_CONTAINS(shown_of(ui, PANEL_NUMBER), " = nan");
    CHECK(!strstr(shown_of(ui, PANEL_NUMBER), "-nan"));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        CHECK(lab_block_set(ui->state[SCREEN_FORMATS], numbers[i], &error));
        CHECK_CONTAINS(shown_of(ui, PANEL_BLOCK), " nan");
        CHECK(!strstr(shown_of(ui, PANEL_BLOCK), "-nan"));
    }
    close_lab(ui);
}

// Where there are more formats than rows, those about the cursor are seen.
static void the_row_of_the_cursor_is_seen_at_every_height(void) {
    for (int height = 9; height <= 20; height++) {
        Ui *ui = open_lab(80, height);
        for (int i = 0; i < 30; i++) {
            screen_formats.request(ui, REQUEST_DOWN);
            CHECK_CONTAINS(shown_of(ui, PANEL_NUMBER), "▸");
            CHECK_CONTAINS(shown_of(ui, PANEL_NUMBER), "in "); // and below, its neighbours
        }
        ui->focus[SCREEN_FORMATS] = PANEL_RANGES;
        for (int i = 0; i < 30; i++) {
            screen_formats.request(ui, REQUEST_DOWN);
            CHECK_CONTAINS(shown_of(ui, PANEL_RANGES), "▸");
        }
        close_lab(ui);
    }
}

// By the standard's rule 7 is beyond what a scale of 1 holds in e2m1, up to 6.
static void a_block_is_scaled_by_either_rule(void) {
    Ui *ui = open_lab(120, 36);
    screen_formats.request(ui, REQUEST_BLOCK);
    CHECK_INT(ui->maximised[SCREEN_FORMATS], PANEL_BLOCK);
    screen_formats.request(ui, REQUEST_ENTER);
    taken(ui, "7 0.2");
    for (int i = 0; i < FORMAT_COUNT && !strstr(shown_of(ui, PANEL_BLOCK), "7 in mxfp4"); i++)
        screen_formats.request(ui, REQUEST_RIGHT);
    CHECK_CONTAINS(shown_of(ui, PANEL_BLOCK), "7 in mxfp4: 4 in e2m1, times 2^1: off by +1");
    screen_formats.request(ui, REQUEST_BLOCK_SCALES);
    CHECK_CONTAINS(shown_of(ui, PANEL_BLOCK),
                   "7 in mxfp4: 6 in e2m1, times 2^0: off by -1, saturated");
    CHECK_CONTAINS(shown_of(ui, PANEL_BLOCK), "the standard's rule");
    screen_formats.request(ui, REQUEST_DOWN);
    CHECK_CONTAINS(shown_of(ui, PANEL_BLOCK), "0.2 in mxfp4: 0 in e2m1");
    screen_formats.request(ui, REQUEST_BLOCK);
    CHECK_INT(ui->maximised[SCREEN_FORMATS], PANEL_NONE);
    CHECK_INT(ui->focus[SCREEN_FORMATS], PANEL_NUMBER);
    close_lab(ui);
}

// Where it has no room for all formats and numbers, those about the cursor are seen.
static void a_block_fits_every_size(void) {
    char many[400] = "";
    for (int i = 0; i < 100; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), "%d ", i);
    for (int width = 60; width <= 120; width += 20)
        for (int height = 14; height <= 34; height += 10) {
            Ui *ui = open_lab(width, height);
            screen_formats.request(ui, REQUEST_BLOCK);
            screen_formats.request(ui, REQUEST_ENTER);
            taken(ui, many);
            for (int i = 0; i < 99; i++)
                screen_formats.request(ui, REQUEST_DOWN);
            screen_formats.request(ui, REQUEST_LAST);
            CHECK_CONTAINS(shown_of(ui, PANEL_BLOCK), "▸99 ");
            CHECK_CONTAINS(shown_of(ui, PANEL_BLOCK), " nvfp4");
            CHECK_CONTAINS(shown_of(ui, PANEL_BLOCK), "99 in nvfp4: ");
            CHECK_CONTAINS(shown_of(ui, PANEL_BLOCK), "16 share a scale in e4m3");
            close_lab(ui);
        }
}

int main(void) {
    RUN_TEST(every_format_that_people_look_at_is_there);
    RUN_TEST(the_row_of_the_cursor_is_seen_at_every_height);
    RUN_TEST(a_block_is_scaled_by_either_rule);
    RUN_TEST(a_block_fits_every_size);
    RUN_TEST(the_end_of_a_format_is_named);
    RUN_TEST(what_is_no_number_has_no_sign);
    RUN_TEST(what_happened_fits_at_every_width);
    return test_end();
}
