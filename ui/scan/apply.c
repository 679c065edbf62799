// What is done with a scan: its policy, or a cell of it, to the run that goes on, or to the form
// that starts one; and the next scan.
#include <stdio.h>
#include <string.h>

#include "store/runs.h"
#include "ui/home/home.h"
#include "ui/live/live.h"
#include "ui/scan/scan.h"

const char *scan_format_given(const ScanView *view, int unit) {
    return !view->wants_cell    ? scan_format_of(view->scan, unit)
           : unit == view->unit ? view->scan->formats[view->format]
                                : "";
}

// ---- to a run -----------------------------------------------------------------------------------

// NULL: nothing. Norms and embeddings that a run keeps in fp32 it keeps; where it was told to keep
// them low, they rest in fp32 as they were scanned, or what breaks there would go on to.
static const char *format_sent(const ScanView *view, int unit, const RunRecord *run) {
    const char *format = scan_format_given(view, unit);
    if (!format[0])
        return NULL;
    if (!scan_is_kept(view->scan, unit))
        return format;
    const bool rests = strcmp(format, view->scan->rests[unit]) == 0;
    return rests && record_keeps_other(run) ? format_name(FORMAT_FP32) : NULL;
}

static int count_sent(const ScanView *view, const RunRecord *run) {
    int count = 0;
    for (int i = 0; i < view->scan->unit_count; i++)
        count += format_sent(view, i, run) != NULL;
    return count;
}

static void send_formats(Ui *ui, const char *text) {
    const ScanView *view = scan_view_of(ui);
    RunRecord run = {.id = 0};
    Error error;
    (void)text;
    if (!store_read_run(ui->store, ui->prompt.run, &run, &error)) {
        ui_fail(ui, &error);
    } else if (launch_takes_orders(ui, &run)) {
        LiveFormat formats[SCAN_MOST_UNITS];
        int count = 0;
        for (int i = 0; i < view->scan->unit_count; i++)
            if (format_sent(view, i, &run))
                formats[count++] = (LiveFormat){view->scan->units[i], format_sent(view, i, &run)};
        ui_open_run(ui, run.id); // where it is seen, and taken back
        live_set_formats(ui, formats, count);
    }
    record_clear(&run);
}

// Of one status, the newest of this experiment, or the one that was looked at; 0: there is none.
static int64_t find_run(Ui *ui, const ScanRecord *scan, RunStatus status) {
    RunRecord *runs;
    int count;
    int64_t found = 0;
    char words[40];
    Error error;
    snprintf(words, sizeof words, "status:%s", run_status_name(status));
    const RunFilter filter = {.words = words};
    if (!store_list_runs(ui->store, &filter, &runs, &count, &error))
        return 0;
    for (int i = 0; i < count; i++) {
        const bool is_of_it = strcmp(runs[i].script_hash, scan->script_hash) == 0;
        const bool is_held = found != 0 && found == ui->run;
        if (is_of_it && !is_held && (runs[i].id == ui->run || runs[i].id > found))
            found = runs[i].id;
    }
    store_free_runs(runs, count);
    return found;
}

// The one that was looked at, else one that runs, else one that waits to.
static int64_t find_live_run(Ui *ui, const ScanRecord *scan) {
    const int64_t running = find_run(ui, scan, RUN_RUNNING);
    const int64_t paused = find_run(ui, scan, RUN_PAUSED);
    return running == 0 || (paused != 0 && paused == ui->run) ? paused : running;
}

// ---- to the form --------------------------------------------------------------------------------

static int choice_named(const char *const *choices, const char *name) {
    for (int i = 0; choices && choices[i]; i++)
        if (strcmp(choices[i], name) == 0)
            return i + 1;
    return 0;
}

static int find_experiment(const Home *home, const char *script) {
    for (int i = 0; i < home->experiment_count; i++)
        if (home->ui->host->is_of_script(home->ui->host->context, &home->experiments[i], script))
            return i;
    return -1;
}

// Parameters that the scan was given.
static void set_values(Home *home, const ScanRecord *scan) {
    const UiExperiment *experiment = home_experiment(home);
    for (int i = 0; i < scan->option_count; i++)
        for (int p = 0; p < experiment->parameter_count; p++) {
            const char *name = experiment->parameters[p].usual.name;
            const char *value = scan->options[i].value;
            const size_t length = strlen(name);
            if (strcmp(scan->options[i].name, "set") == 0 && strncmp(value, name, length) == 0 &&
                value[length] == '=')
                snprintf(home_form(home)->values[p], FORM_TEXT_SIZE, "%.63s", value + length + 1);
        }
}

// The last that the scan was given; "": none.
static const char *option_of(const ScanRecord *scan, const char *name) {
    const char *value = scan_option(scan, name);
    return value ? value : "";
}

// What else a run of it is told, so that it trains as was verified.
static void set_options(LaunchForm *form, const ScanView *view) {
    const ScanRecord *scan = view->scan;
    char keep[SCAN_KEEP_SIZE];
    scan_keep_fp32(scan, view->wants_cell ? view->unit : SCAN_BY_POLICY, keep);
    snprintf(form->seed, sizeof form->seed, "%.*s", (int)sizeof form->seed - 1,
             option_of(scan, "seed"));
    snprintf(form->recipe, sizeof form->recipe, "%.*s", (int)sizeof form->recipe - 1,
             option_of(scan, "recipe"));
    snprintf(form->keep, sizeof form->keep, "%.*s", (int)sizeof form->keep - 1, keep);
}

// All else in fp32, as it was scanned; gradients in fp16 need a loss scale then.
static bool fill_form(Ui *ui, const ScanView *view, Error *error) {
    Home *home = home_of(ui);
    LaunchForm *form = home_form(home);
    bool has_fp16 = false;
    home_drop_rules(form);
    set_values(home, view->scan);
    set_options(form, view);
    for (int i = 0; i < view->scan->unit_count; i++) {
        const char *format = scan_format_given(view, i);
        has_fp16 = has_fp16 || strcmp(format, format_name(FORMAT_FP16)) == 0;
        const bool is_set = format[0] && strcmp(format, "auto") != 0;
        if (is_set && !home_set_rule(form, view->scan->units[i], format, error))
            return false;
    }
    form->choices[0] = choice_named(ui->host->precisions, format_name(FORMAT_FP32));
    form->choices[1] = choice_named(ui->host->loss_scales, option_of(view->scan, "loss-scale"));
    if (has_fp16 && form->choices[1] == 0)
        form->choices[1] = choice_named(ui->host->loss_scales, "dynamic");
    return true;
}

static void open_form(Ui *ui, const ScanView *view) {
    Home *home = home_of(ui);
    const int at = find_experiment(home, view->scan->script_path);
    Error error;
    if (at < 0) {
        scan_ask_script(ui);
        return;
    }
    home->experiment = at;
    if (!fill_form(ui, view, &error)) {
        ui_fail(ui, &error);
        return;
    }
    ui_go(ui, SCREEN_HOME);
    home_layers_open(ui);
}

// ---- both ---------------------------------------------------------------------------------------

void scan_apply(Ui *ui, bool cell) {
    ScanView *view = scan_view_of(ui);
    char question[MESSAGE_SIZE], what[RECORD_NAME_SIZE + 40];
    if (!cell && !view->scan->has_policy) {
        ui_say(ui, INK_WARN, "there is no policy yet: wait for the scan, or scan on with s");
        return;
    }
    view->wants_cell = cell;
    RunRecord record = {.id = 0};
    Error error;
    const int64_t run = launch_may(ui) ? find_live_run(ui, view->scan) : 0;
    const int sent =
        run != 0 && store_read_run(ui->store, run, &record, &error) ? count_sent(view, &record) : 0;
    record_clear(&record);
    if (sent == 0) {
        open_form(ui, view);
        return;
    }
    snprintf(what, sizeof what, "the policy of %d layers", sent);
    if (cell)
        snprintf(what, sizeof what, "%.80s in %s", view->scan->units[view->unit],
                 view->scan->formats[view->format]);
    snprintf(question, sizeof question, "give run %lld %s?", (long long)run, what);
    prompt_confirm(ui, question, send_formats);
    ui->prompt.run = run;
}

static void start(Ui *ui, const char *text) {
    const char *const arguments[] = {"scan", text, "--quiet", NULL};
    Error error;
    int64_t process;
    if (!text[0])
        return;
    if (launch_worker(ui, arguments, &process, &error))
        ui_say(ui, INK_GOOD, "%s is being scanned: what is measured comes here", text);
    else
        ui_fail(ui, &error);
}

void scan_ask_start(Ui *ui) {
    const ScanView *view = scan_view_of(ui);
    const Home *home = home_of(ui);
    char subject[RECORD_NAME_SIZE] = "";
    if (!launch_is_allowed(ui))
        return;
    if (ui->run != 0)
        snprintf(subject, sizeof subject, "%lld", (long long)ui->run);
    else if (view->scan->id != 0 && view->scan->run == 0)
        snprintf(subject, sizeof subject, "%s", view->scan->experiment);
    else if (home_experiment(home))
        snprintf(subject, sizeof subject, "%s", home_experiment(home)->name);
    prompt_ask(ui, "scan", subject, start);
    ui->prompt.hint = "an experiment, or the number of a run";
}
