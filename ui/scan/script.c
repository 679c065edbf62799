// Training by a policy, or a cell, what the form does not know: a script of one's own.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sanitize.h"
#include "number/format.h"
#include "ui/home/home.h"
#include "ui/scan/scan.h"

enum { MOST_OPTIONS = 64, MOST_WORDS = 8 + 2 * (SCAN_MOST_UNITS + MOST_OPTIONS) };

typedef struct Words { // of a command; `rules` and `names` are borrowed from
    const char *list[MOST_WORDS + 1];
    int count;
    char rules[SCAN_MOST_UNITS][RECORD_NAME_SIZE + SCAN_FORMAT_SIZE];
    char names[MOST_OPTIONS][RECORD_NAME_SIZE + 2];
    char keep[SCAN_KEEP_SIZE];
} Words;

static void add(Words *words, const char *a, const char *b) {
    words->list[words->count++] = a;
    if (b && b[0])
        words->list[words->count++] = b;
}

static void add_rules(Words *words, const ScanView *view) {
    for (int i = 0; i < view->scan->unit_count; i++) {
        const char *format = scan_format_given(view, i);
        if (!format[0] || strcmp(format, "auto") == 0)
            continue;
        snprintf(words->rules[i], sizeof words->rules[i], "%s=%s", view->scan->units[i], format);
        add(words, "--layer", words->rules[i]);
    }
    scan_keep_fp32(view->scan, view->wants_cell ? view->unit : SCAN_BY_POLICY, words->keep);
    if (words->keep[0])
        add(words, "--keep-fp32", words->keep);
}

static void add_options(Words *words, const ScanRecord *scan) {
    for (int i = 0; i < scan->option_count && i < MOST_OPTIONS; i++)
        if (scan_option_repeats(scan, i)) {
            snprintf(words->names[i], sizeof words->names[i], "--%s", scan->options[i].name);
            add(words, words->names[i], scan->options[i].value);
        }
}

// All else in fp32, as it was scanned.
static void start(Ui *ui, const char *text) {
    const ScanView *view = scan_view_of(ui);
    Words *words = calloc(1, sizeof *words);
    Error error;
    int64_t process;
    (void)text;
    if (!words) {
        error_fail(&error, ERROR_MEMORY, "no memory to start a run");
        ui_fail(ui, &error);
        return;
    }
    add(words, "run", view->scan->script_path);
    add(words, "--quiet", NULL);
    add(words, "--precision", format_name(FORMAT_FP32));
    add_rules(words, view);
    add_options(words, view->scan);
    if (launch_worker(ui, words->list, &process, &error)) {
        home_await(ui, process);
        ui_say(ui, INK_GOOD, "%.60s is starting; it opens when its first step is there",
               view->scan->experiment);
        ui_go(ui, SCREEN_HOME);
    } else {
        ui_fail(ui, &error);
    }
    free(words);
}

void scan_ask_script(Ui *ui) {
    const ScanView *view = scan_view_of(ui);
    char question[MESSAGE_SIZE], name[RECORD_NAME_SIZE];
    if (!launch_is_allowed(ui))
        return;
    sanitize_line(name, sizeof name, view->scan->experiment, strlen(view->scan->experiment));
    snprintf(question, sizeof question, "train %.60s, by its script, with %s?", name,
             view->wants_cell ? "this layer so" : "this policy");
    prompt_confirm(ui, question, start);
}
