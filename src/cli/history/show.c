// `mpbench show`: all that is known of one run, as a page: its curves, what happened, where it ran.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/history/history.h"
#include "cli/history/show.h"
#include "cli/print/apart.h"
#include "cli/print/curve.h"
#include "cli/print/wrap.h"
#include "cli/scan/kept.h"
#include "store/checkpoints.h"
#include "store/events.h"
#include "store/twin.h"

enum { LABEL_COLUMN = 12, EVENTS_SHOWN = 12, EVENT_COLUMN = 28 };

void show_begin_row(const ShowPage *page, const char *label) {
    fprintf(page->line, "  %s", page->dim);
    cli_print_outside(page->line, label);
    int length = (int)strlen(label);
    fprintf(page->line, "%*s%s", length < LABEL_COLUMN ? LABEL_COLUMN - length : 1, "",
            page->plain);
}

void show_end_line(const ShowPage *page, int hang) {
    const char *text = text_stream_take(page->text);
    if (!text) // the end of the page says so
        return;
    wrap_print(stdout, text, terminal_width(&page->terminal), 0, hang);
    putchar('\n');
}

void show_end_row(const ShowPage *page) {
    show_end_line(page, 2 + LABEL_COLUMN);
}

void show_row(const ShowPage *page, const char *label, const char *text) {
    if (!text[0])
        return;
    show_begin_row(page, label);
    cli_print_outside(page->line, text);
    show_end_row(page);
}

void show_title(const ShowPage *page, const char *title) {
    putchar('\n');
    fprintf(page->line, "%s%s%s", page->strong, title, page->plain);
    show_end_line(page, 0);
}

// ---- parts of the page --------------------------------------------------------------------------

static bool print_events(const ShowPage *page, Store *store, int64_t run, Error *error) {
    Event *events;
    int count;
    int64_t total;
    if (!store_read_last_events(store, run, EVENTS_SHOWN, &events, &count, &total, error))
        return false;
    if (count > 0) {
        char title[64] = "Events";
        if (count < total)
            snprintf(title, sizeof title, "The last %d of %" PRId64 " events", count, total);
        show_title(page, title);
    }
    for (int i = 0; i < count; i++) {
        char step[TEXT_SIZE];
        fprintf(page->line, "  %sstep %8s  %-10s%s ", page->dim, text_count(step, events[i].step),
                event_kind_name(events[i].kind), page->plain);
        cli_print_outside(page->line, events[i].text);
        show_end_line(page, EVENT_COLUMN);
    }
    free(events);
    return true;
}

static void print_diagnoses(const ShowPage *page, const RunRecord *run) {
    if (run->diagnosis_count > 0)
        show_title(page, "Diagnoses");
    for (int i = 0; i < run->diagnosis_count; i++) {
        fprintf(page->line, "  step %" PRId64 ": ", run->diagnoses[i].step);
        cli_print_outside(page->line, run->diagnoses[i].text);
        show_end_line(page, 4);
    }
}

static bool print_checkpoints(const ShowPage *page, Store *store, int64_t run, Error *error) {
    CheckpointRow *rows;
    int count;
    if (!store_list_checkpoints(store, run, &rows, &count, error))
        return false;
    if (count > 0)
        show_title(page, "Checkpoints");
    for (int i = 0; i < count; i++) {
        char step[TEXT_SIZE], size[TEXT_SIZE], time[TEXT_SIZE];
        fprintf(page->line, "  step %8s  %9s  %s  ", text_count(step, rows[i].step),
                text_bytes(size, (double)rows[i].bytes), history_time(time, rows[i].created_ms));
        cli_print_outside(page->line, rows[i].why);
        fputs("  ", page->line);
        cli_print_outside(page->line, rows[i].file);
        show_end_line(page, 4);
    }
    free(rows);
    return true;
}

// Of each name the newest.
static bool print_pictures(const ShowPage *page, Store *store, int64_t run, Error *error) {
    Event *events;
    int count, shown = 0;
    char path[STORE_PATH_SIZE + EVENT_TEXT_SIZE];
    if (!store_read_events(store, run, 0, 1U << EVENT_PICTURE, 0, &events, &count, error))
        return false;
    for (int i = 0; i < count; i++) {
        bool is_newest = store_picture_path(store, run, &events[i], path);
        int later = i + 1, before = 0;
        for (; is_newest && later < count; later++)
            is_newest = strcmp(events[later].layer, events[i].layer) != 0;
        for (int k = 0; is_newest && k < i; k++)
            before += strcmp(events[k].layer, events[i].layer) == 0;
        if (!is_newest)
            continue;
        if (shown++ == 0)
            show_title(page, "Pictures");
        char step[TEXT_SIZE];
        fprintf(page->line, "  step %8s  ", text_count(step, events[i].step));
        cli_print_outside(page->line, path);
        if (before > 0)
            fprintf(page->line, "; %d before it", before);
        show_end_line(page, 4);
    }
    free(events);
    return true;
}

static void print_environment(const ShowPage *page, const RunRecord *run) {
    if (run->fact_count > 0)
        show_title(page, "Environment");
    for (int i = 0; i < run->fact_count; i++) {
        fputs("  ", page->line);
        cli_print_outside(page->line, run->facts[i].name);
        fputs(" ", page->line);
        cli_print_outside(page->line, run->facts[i].value);
        show_end_line(page, 4);
    }
}

static void print_twin(const ShowPage *page, const RunRecord *run) {
    char line[APART_LINE_SIZE];
    if (!run->twin)
        return;
    apart_line(run->twin, run->precision, line);
    show_row(page, "twin", line);
}

static bool print_distances(const ShowPage *page, const RunRecord *run, Error *error) {
    if (!run->twin || run->twin->layer_count == 0)
        return true;
    show_title(page, "Distance of the layers from those of the twin");
    return apart_print(run->twin, &page->terminal, error);
}

static bool print_parts(const ShowPage *page, Store *store, const RunRecord *run, Error *error) {
    show_head(page, run);
    show_results(page, run);
    print_twin(page, run);
    print_diagnoses(page, run);
    if (!show_curves(page, store, run, error) || !show_layers(page, store, run, error) ||
        !print_distances(page, run, error) || !print_events(page, store, run->id, error) ||
        !print_checkpoints(page, store, run->id, error) ||
        !print_pictures(page, store, run->id, error))
        return false;
    print_environment(page, run);
    return true;
}

static ShowPage page_of(const Cli *cli) {
    ShowPage page = {.terminal = terminal_of(stdout, cli->color),
                     .has_utf8 = curve_locale_is_utf8(),
                     .grams_per_kwh = history_grams_per_kwh(cli),
                     .watts = cli->watts};
    page.strong = terminal_style(&page.terminal, STYLE_STRONG);
    page.dim = terminal_style(&page.terminal, STYLE_DIM);
    page.plain = terminal_style(&page.terminal, STYLE_NONE);
    return page;
}

static bool print_page(const Cli *cli, Store *store, const RunRecord *run, Error *error) {
    ShowPage page = page_of(cli);
    TextStream text;
    if (!text_stream_open(&text))
        return error_fail(error, ERROR_MEMORY, "no memory for the page");
    page.text = &text;
    page.line = text.stream;
    bool done = print_parts(&page, store, run, error);
    bool is_whole = text_stream_close(&text);
    if (is_whole)
        free(text.text);
    return done && (is_whole || error_fail(error, ERROR_MEMORY, "no memory for the page"));
}

static bool show_scan(const Cli *cli, Error *error) {
    if (cli->what_if || cli->first_nan || cli->script)
        return error_fail(error, ERROR_USAGE, "--%s is of a run, and %.60s is none: name a run",
                          cli->what_if     ? "what-if"
                          : cli->first_nan ? "first-nan"
                                           : "script",
                          cli->operands[0]);
    return scan_show(cli, cli->operands[0], error);
}

bool command_show(Cli *cli, Error *error) {
    if (scan_is_named(cli->operands[0]))
        return show_scan(cli, error);
    RunRecord run = {.id = 0};
    Store *store = history_open(cli, STORE_RESCUE, error);
    bool done = store && history_read_run(store, cli->operands[0], &run, error);
    done = done && store_read_twin(store, &run, error);
    if (done && cli->what_if) {
        const ShowPage page = page_of(cli);
        done = show_what_if(cli, &page, store, &run, error);
    } else if (done && cli->first_nan) {
        const ShowPage page = page_of(cli);
        done = show_first_nan(cli, &page, store, &run, error);
    } else if (done && cli->script) {
        done = show_script(cli, store, &run, error);
    } else if (done && cli->json) {
        JsonWriter json = {.stream = stdout};
        record_write_json(&run, true, &json);
        putchar('\n');
    } else if (done) {
        done = print_page(cli, store, &run, error);
    }
    done = history_tell_losses(store, done, error);
    record_clear(&run);
    store_close(store);
    return done;
}
