// The format lab: what it says of a number at the end of a format.
#include "tests/test.h"
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

int main(void) {
    RUN_TEST(the_end_of_a_format_is_named);
    RUN_TEST(what_happened_fits_at_every_width);
    return test_end();
}
