// The machine panel of a run on a card: what the history has of the card, and a dash for the rest.
#include "ui_live_fixture.h"

static void note_facts(Store *store, int64_t run, const RecordFact *facts, int count) {
    RunRecord record;
    CHECK_DONE(store_read_run(store, run, &record, &error) &&
               record_set_facts(&record, facts, count, &error) &&
               store_update_run(store, &record, &error));
    record_clear(&record);
}

static void set_status(Store *store, int64_t run, RunStatus status) {
    RunRecord record;
    CHECK_DONE(store_read_run(store, run, &record, &error));
    record.status = status;
    record.energy_j = 10000;
    CHECK_DONE(store_update_run(store, &record, &error));
    record_clear(&record);
}

static const RecordFact card_facts[] = {{"card", "Some card, capability 9.0"},
                                        {"card.power", "412"},
                                        {"card.power.limit", "700"},
                                        {"card.power.most", "655"},
                                        {"card.temperature", "61"},
                                        {"card.temperature.most", "78"},
                                        {"card.clock", "1980"},
                                        {"card.clock.memory", "2619"},
                                        {"card.memory.used", "21474836480"},
                                        {"card.memory.total", "85899345920"},
                                        {"card.busy", "0.87"},
                                        {"steps.captured", "0.942"}};
enum { CARD_FACTS = sizeof card_facts / sizeof *card_facts };

// What stands in the panel from "power" to "energy", a line each.
static const char while_it_trains[] =
    " power       ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━  412 W of 700\n"
    " captured    ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━  94 %\n"
    " clocks                                     1980, 2619 MHz\n"
    " card busy   ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━  87 %\n"
    " card memory ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━  20 GiB of 80 GiB\n"
    " processors                                 –\n"
    " temperature ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━  61 °C\n"
    " energy                                     –\n";
static const char when_it_is_over[] =
    " power       ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━  655 W at most\n"
    " captured    ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━  94 %\n"
    " processors                                 –\n"
    " temperature ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━  78 °C at most\n"
    " energy                                     250.0 W  10,000 J\n";
static const char where_nothing_is_read[] = " power                                      –\n"
                                            " captured                                   –\n"
                                            " clocks                                     –\n"
                                            " card busy                                  –\n"
                                            " card memory                                –\n"
                                            " processors                                 –\n"
                                            " temperature                                –\n"
                                            " energy                                     –\n";

// Those lines of the panel that is drawn alone, without its border and blanks at their ends.
static const char *draw_rows(Ui *ui) {
    enum { WIDTH = 64, HEIGHT = 20 };
    static char rows[4096];
    static const char border[] = "│";
    draw_screen(ui, 120, 36, false);
    frame_erase(&ui->frame);
    Area area = area_part(frame_area(&ui->frame), 0, 0, WIDTH, HEIGHT);
    screen_live.draw_panel(ui, PANEL_MACHINE, area, false);
    size_t used = 0;
    bool is_inside = false;
    for (const char *line = frame_text(&ui->frame); line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *from = strstr(line, border);
        if (from != line || used + 256 > sizeof rows)
            continue;
        from += strlen(border);
        const char *to = strstr(from, border);
        is_inside |= strncmp(from, " power", 6) == 0;
        while (to > from && to[-1] == ' ')
            to--;
        if (is_inside)
            used +=
                (size_t)snprintf(rows + used, sizeof rows - used, "%.*s\n", (int)(to - from), from);
        if (strncmp(from, " energy", 7) == 0)
            break;
    }
    return rows;
}

static void the_panel_has_what_the_card_tells(void) {
    Store *store = make_history(RUN_RUNNING);
    note_facts(store, 2, card_facts, CARD_FACTS);
    Ui *ui = open_screen(store, 2);
    CHECK_TEXT(draw_rows(ui), while_it_trains);
    close_screen(ui);
    note_facts(store, 2, card_facts, 1);
    ui = open_screen(store, 2);
    CHECK_TEXT(draw_rows(ui), where_nothing_is_read);
    close_screen(ui);
    store_close(store);
}

static void of_a_run_that_is_over_it_has_the_most(void) {
    Store *store = make_history(RUN_RUNNING);
    note_facts(store, 2, card_facts, CARD_FACTS);
    set_status(store, 2, RUN_FINISHED);
    Ui *ui = open_screen(store, 2);
    CHECK_TEXT(draw_rows(ui), when_it_is_over);
    for (int i = 0; i < 3; i++) // replayed it says the same: that is known of the whole run
        screen_live.request(ui, REQUEST_SCRUB_BACK);
    CHECK_TEXT(draw_rows(ui), when_it_is_over);
    close_screen(ui);
    store_close(store);
}

int main(void) {
    RUN_TEST(the_panel_has_what_the_card_tells);
    RUN_TEST(of_a_run_that_is_over_it_has_the_most);
    return test_end();
}
