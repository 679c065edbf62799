// The scan screen: layers by formats in letters, what is said of a cell, and where its keys lead.
#include <math.h>
#include <stdarg.h>

#include "number/format.h"
#include "store_fixture.h"
#include "ui/home/home.h"
#include "ui/scan/scan.h"
#include "ui_fixture.h"

// ---- in place of ui.c ---------------------------------------------------------------------------

static Ui *ui;
static char said[MESSAGE_SIZE];

void ui_say(Ui *of, Ink ink, const char *format, ...) {
    (void)of, (void)ink;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(said, sizeof said, format, arguments);
    va_end(arguments);
}
void ui_fail(Ui *of, const Error *failure) {
    ui_say(of, INK_BAD, "%s", failure->text);
}
void ui_copy(Ui *of, const char *text) {
    ui_say(of, INK_DIM, "%s", text);
}
void ui_go(Ui *of, ScreenId screen) {
    of->screen = screen;
}
void ui_lay_out(Ui *of) {
    of->dirty = true;
}
void ui_open_run(Ui *of, int64_t run) {
    of->run = run;
}
void ui_compare(Ui *of, const int64_t *runs, int count) {
    (void)of, (void)runs, (void)count;
}
const Screen *ui_screen(const Ui *of) {
    (void)of;
    return &screen_scan;
}
int64_t ui_now_ms(void) {
    return 0;
}

static bool list_experiments(void *context, UiExperiment **list, int *count, Error *failure) {
    (void)context, (void)failure;
    *list = calloc(1, sizeof **list);
    snprintf((*list)->name, sizeof(*list)->name, "simple");
    (*list)->is_described = true;
    *count = 1;
    return true;
}

static bool is_of_script(void *context, const UiExperiment *experiment, const char *script) {
    (void)context;
    return strstr(script, experiment->name) != NULL;
}

// ---- a scan -------------------------------------------------------------------------------------

enum { UNITS = 4, FORMATS = 2 };
static const char *const units[UNITS] = {"conv1", "conv2", "mix", "head"};
static const double damages[UNITS][FORMATS] = {
    {INFINITY, 0.02}, {0.3, 0.04}, {0.005, 0.01}, {0.1, 2.5}};

static ScanRecord *some_scan(void) {
    ScanRecord *scan = scan_record_new(&error);
    snprintf(scan->key, sizeof scan->key, "abc");
    snprintf(scan->subject, sizeof scan->subject, "simple");
    snprintf(scan->experiment, sizeof scan->experiment, "simple");
    snprintf(scan->script_path, sizeof scan->script_path, "experiments/simple.lua");
    snprintf(scan->device, sizeof scan->device, "cpu");
    snprintf(scan->formats[0], SCAN_FORMAT_SIZE, "%s", format_name(FORMAT_FP16));
    snprintf(scan->formats[1], SCAN_FORMAT_SIZE, "%s", format_name(FORMAT_BF16));
    scan->format_count = FORMATS;
    scan->seeds = 3;
    scan->steps = 60;
    scan->within = 0.01;
    scan->tolerance = 0.15;
    return scan;
}

static void put_cell(Store *store, ScanRecord *scan, int unit, int format) {
    scan->cells[unit][format] = (ScanCell){.is_known = true,
                                           .is_broken = isinf(damages[unit][format]),
                                           .damage = damages[unit][format],
                                           .own_error = 0.009,
                                           .own_degrees = 1.25,
                                           .all_error = 1, // as of nothing but zeros
                                           .flushed = 0.031,
                                           .least_scale = NAN,
                                           .scale = 65536};
    CHECK_DONE(store_put_scan_cell(store, scan, unit, format, &error));
}

// So many cells of it are measured; with all of them there is a policy.
static Store *make_history(int cells) {
    static const int policy[UNITS] = {1, 1, 1, 0};
    Store *store = fresh_store("history.db");
    WorkerId worker;
    ScanRecord *scan = some_scan();
    CHECK_DONE(worker_identify(&worker, &error) && store_add_scan(store, scan, &worker, &error));
    for (; scan->unit_count < UNITS; scan->unit_count++)
        snprintf(scan->units[scan->unit_count], sizeof scan->units[0], "%s",
                 units[scan->unit_count]);
    CHECK_DONE(store_put_scan_layers(store, scan, &error));
    for (int i = 0; i < cells; i++)
        put_cell(store, scan, i / FORMATS, i % FORMATS);
    if (cells == UNITS * FORMATS) {
        memcpy(scan->policy, policy, sizeof policy);
        scan->has_policy = true;
        scan->ended_ms = 1;
        CHECK_DONE(store_put_scan_layers(store, scan, &error) &&
                   store_end_scan(store, scan, &worker, &error));
    }
    scan_record_free(scan);
    return store;
}

static void open_screen(Store *store) {
    static const char *const precisions[] = {"auto", "fp32", NULL};
    static const char *const scales[] = {"dynamic", NULL};
    static const UiHost host = {.list_experiments = list_experiments,
                                .is_of_script = is_of_script,
                                .precisions = precisions,
                                .loss_scales = scales};
    static const UiOptions options = {.database = ""};
    ui = calloc(1, sizeof *ui);
    ui->host = &host;
    ui->options = &options;
    keymap_init(&ui->keymap);
    settings_init(&ui->settings);
    ui->store = store;
    ui->screen = SCREEN_SCAN;
    said[0] = 0;
    CHECK_DONE(screen_home.open(ui, &error) && screen_scan.open(ui, &error));
    screen_scan.enter(ui);
}

static void close_screen(void) {
    screen_scan.close(ui);
    screen_home.close(ui);
    frame_clear(&ui->frame);
    store_close(ui->store);
    free(ui);
}

static const char *draw_screen(int columns, int rows) {
    if (!frame_init(&ui->frame, columns, rows, &error))
        abort();
    ui->layout = layout_of(SCREEN_SCAN, columns, rows, PANEL_NONE);
    Area all = frame_area(&ui->frame);
    for (int i = 0; i < ui->layout.count; i++) {
        const Panel *panel = &ui->layout.panels[i];
        screen_scan.draw_panel(
            ui, panel->id, area_part(all, panel->column, panel->row, panel->width, panel->height),
            panel->id == ui->focus[SCREEN_SCAN]);
    }
    return frame_text(&ui->frame);
}

// ---- what is shown ------------------------------------------------------------------------------

static void cells_have_letters_at_every_size(void) {
    static const int sizes[][2] = {{80, 24}, {120, 36}, {200, 60}};
    open_screen(make_history(UNITS * FORMATS));
    for (int i = 0; i < 3; i++) {
        const char *text = draw_screen(sizes[i][0], sizes[i][1]);
        CHECK_CONTAINS(text, "X breaks");
        CHECK_CONTAINS(text, "C 30.0 %");
        CHECK_CONTAINS(text, "A 0.5 %");
        CHECK_CONTAINS(text, "B 10.0 %");
        CHECK_CONTAINS(text, "D 250 %");
        CHECK_CONTAINS(text, "verified it");
        CHECK(strstr(text, "conv1") < strstr(text, "head") &&
              strstr(text, "head") < strstr(text, "conv2")); // the worst first
    }
    close_screen();
}

static void the_cell_under_the_cursor_is_told_in_words(void) {
    open_screen(make_history(UNITS * FORMATS));
    CHECK_CONTAINS(draw_screen(120, 36), "Breaks: the loss or a gradient");
    screen_scan.request(ui, REQUEST_RIGHT);
    const char *text = draw_screen(120, 36);
    CHECK_CONTAINS(text, "Damage 2.0 %");
    CHECK_CONTAINS(text, "Own gradients: 0.9 % off, 1.25 degrees");
    CHECK_CONTAINS(text, "All gradients: all zero.");
    CHECK_CONTAINS(text, "3.1 % flushed to zero");
    CHECK_CONTAINS(text, "at a loss scale");
    screen_scan.request(ui, REQUEST_SCAN_SORT);
    screen_scan.request(ui, REQUEST_FIRST);
    screen_scan.request(ui, REQUEST_DOWN);
    CHECK_TEXT(units[scan_view_of(ui)->unit], "conv2");
    close_screen();
}

static void what_is_measured_comes_as_it_is_measured(void) {
    open_screen(make_history(3));
    CHECK_CONTAINS(draw_screen(120, 36), "3 of 8 cells are measured");
    put_cell(ui->store, scan_view_of(ui)->scan, 1, 1);
    CHECK(screen_scan.refresh(ui, 1));
    CHECK_CONTAINS(draw_screen(120, 36), "4 of 8 cells are measured");
    screen_scan.request(ui, REQUEST_ENTER);
    CHECK_CONTAINS(said, "there is no policy yet");
    close_screen();
}

static void enter_fills_the_form_where_no_run_goes_on(void) {
    open_screen(make_history(UNITS * FORMATS));
    screen_scan.request(ui, REQUEST_ENTER);
    const LaunchForm *form = home_form(home_of(ui));
    CHECK_INT(ui->screen, SCREEN_HOME);
    CHECK_INT(form->rule_count, UNITS);
    CHECK_TEXT(home_rule_of(form, "head")->format, format_name(FORMAT_FP16));
    CHECK_INT(form->choices[0], 2); // fp32
    CHECK_INT(form->choices[1], 1); // what fp16 needs
    close_screen();
}

// One that the policy puts low goes with what --keep-fp32 must say for it, one that rests is not
// set.
static void norms_are_told_as_such_and_set_where_they_are_low(void) {
    Store *store = make_history(UNITS * FORMATS);
    run_sql(
        path_of("history.db"),
        "INSERT INTO scan_kept VALUES (1, 0, 'batch_norm', 'auto'), (1, 1, 'embedding', 'auto');"
        "UPDATE scan_layers SET policy = 'fp32' WHERE layer = 1");
    open_screen(store);
    const char *text = draw_screen(200, 60);
    CHECK_CONTAINS(text, "Breaks: the loss, a gradient or a running statistic");
    CHECK_CONTAINS(text, " auto ");
    screen_scan.request(ui, REQUEST_ENTER);
    const LaunchForm *form = home_form(home_of(ui));
    CHECK_INT(form->rule_count, UNITS - 1);
    CHECK_TEXT(form->keep, "layer_norm+embedding+softmax+losses+functions");
    close_screen();
}

static void enter_gives_the_policy_to_a_run_that_is_paused(void) {
    Store *store = make_history(UNITS * FORMATS);
    RunRecord record = some_run("simple", format_name(FORMAT_BF16));
    WorkerId worker;
    record.status = RUN_PAUSED;
    CHECK_DONE(store_add_run(store, &record, "script", 6, &error));
    CHECK_DONE(worker_identify(&worker, &error));
    CHECK_DONE(store_own_run(store, record.id, &worker, &error));
    CHECK_DONE(store_update_run(store, &record, &error));
    open_screen(store);
    snprintf(scan_view_of(ui)->scan->script_hash, sizeof record.script_hash, "%s",
             record.script_hash);
    screen_scan.request(ui, REQUEST_ENTER);
    CHECK(ui->prompt.is_question);
    CHECK_INT(ui->prompt.run, record.id);
    CHECK_CONTAINS(ui->prompt.label, "the policy of 4 layers");
    ScanRecord *scan = scan_view_of(ui)->scan; // conv1 a norm, which the run keeps as it began
    snprintf(scan->kept[0], SCAN_KIND_SIZE, "batch_norm");
    screen_scan.request(ui, REQUEST_ENTER);
    CHECK_CONTAINS(ui->prompt.label, "the policy of 3 layers");
    CHECK_INT(scan_view_of(ui)->unit, 0);
    screen_scan.request(ui, REQUEST_SCAN_CELL);
    CHECK_INT(ui->screen, SCREEN_HOME); // its cell alone goes to the form
    close_screen();
}

// Norms that break low would go on to, in a run that was told to keep them so.
static void a_norm_rests_in_fp32_in_a_run_that_has_it_low(void) {
    Store *store = make_history(UNITS * FORMATS);
    RunRecord record = some_run("simple", format_name(FORMAT_FP16));
    const RecordOption keep = {"keep-fp32", "none"};
    WorkerId worker;
    record.status = RUN_PAUSED;
    CHECK_DONE(record_set_options(&record, &keep, 1, &error));
    CHECK_DONE(store_add_run(store, &record, "script", 6, &error));
    CHECK_DONE(worker_identify(&worker, &error));
    CHECK_DONE(store_own_run(store, record.id, &worker, &error));
    CHECK_DONE(store_update_run(store, &record, &error));
    open_screen(store);
    ScanRecord *scan = scan_view_of(ui)->scan;
    snprintf(scan->script_hash, sizeof record.script_hash, "%s", record.script_hash);
    snprintf(scan->kept[0], SCAN_KIND_SIZE, "batch_norm");
    snprintf(scan->rests[0], SCAN_FORMAT_SIZE, "auto");
    scan->policy[0] = scan->format_count;
    screen_scan.request(ui, REQUEST_ENTER);
    CHECK_CONTAINS(ui->prompt.label, "the policy of 4 layers");
    close_screen();
    record_clear(&record);
}

static void a_script_of_ones_own_is_trained_by_the_policy(void) {
    open_screen(make_history(UNITS * FORMATS));
    ScanRecord *scan = scan_view_of(ui)->scan;
    snprintf(scan->script_path, sizeof scan->script_path, "/home/somebody/mine.lua");
    snprintf(scan->experiment, sizeof scan->experiment, "mine");
    screen_scan.request(ui, REQUEST_ENTER);
    CHECK(ui->prompt.is_question);
    CHECK_CONTAINS(ui->prompt.label, "train mine, by its script, with this policy?");
    close_screen();
}

static void an_empty_history_says_how_to_scan(void) {
    open_screen(fresh_store("history.db"));
    CHECK_CONTAINS(draw_screen(80, 24), "s scans an experiment or a run");
    CHECK(!screen_scan.request(ui, REQUEST_DOWN));
    close_screen();
}

// By a command, while it is looked at.
static void a_scan_that_was_removed_is_no_longer_shown(void) {
    Store *store = make_history(UNITS * FORMATS);
    open_screen(store);
    CHECK_INT(scan_view_of(ui)->scan->id, 1);
    CHECK_DONE(store_remove_scan(store, 1, &error));
    CHECK(screen_scan.refresh(ui, 1));
    CHECK_INT(scan_view_of(ui)->scan->id, 0);
    CHECK_CONTAINS(draw_screen(120, 36), "no scan 1 in");
    close_screen();
}

int main(void) {
    make_folder();
    atexit(remove_folder);
    RUN_TEST(cells_have_letters_at_every_size);
    RUN_TEST(the_cell_under_the_cursor_is_told_in_words);
    RUN_TEST(what_is_measured_comes_as_it_is_measured);
    RUN_TEST(enter_fills_the_form_where_no_run_goes_on);
    RUN_TEST(norms_are_told_as_such_and_set_where_they_are_low);
    RUN_TEST(enter_gives_the_policy_to_a_run_that_is_paused);
    RUN_TEST(a_norm_rests_in_fp32_in_a_run_that_has_it_low);
    RUN_TEST(a_script_of_ones_own_is_trained_by_the_policy);
    RUN_TEST(an_empty_history_says_how_to_scan);
    RUN_TEST(a_scan_that_was_removed_is_no_longer_shown);
    return test_end();
}
