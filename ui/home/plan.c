// What one key would start: how many runs of what, said before it is done, and how long they take,
// as far as earlier runs tell.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/phrase.h"
#include "store/parameter.h"
#include "store/runs.h"
#include "ui/home/home.h"

enum { MOST_LISTED = 400, MOST_READ = 40 };

static bool is_equal(const RecordParameter *a, const RecordParameter *b) {
    switch (a->kind) {
    case RECORD_NUMBER: return a->number == b->number;
    case RECORD_TEXT: return strcmp(a->text, b->text) == 0;
    default: return a->integer == b->integer;
    }
}

// Of as many steps as its parameters say, and no more or less.
static bool has_own_length(const RunRecord *run) {
    for (int i = 0; i < run->option_count; i++)
        if (strcmp(run->options[i].name, "steps") == 0 ||
            strcmp(run->options[i].name, "epochs") == 0)
            return false;
    return true;
}

// Whether the run had the parameters that the form has, which are texts.
static bool has_parameters(const RunRecord *run, const UiExperiment *experiment,
                           const LaunchForm *form) {
    for (int i = 0; i < experiment->parameter_count; i++) {
        RecordParameter wanted = experiment->parameters[i].usual;
        const char *typed = form ? form->values[i] : "";
        if (typed[0] && !parameter_parse(&wanted, experiment->parameters[i].choices, typed, NULL))
            return false;
        for (int k = 0; k < run->parameter_count; k++)
            if (strcmp(run->parameters[k].name, wanted.name) == 0 &&
                !is_equal(&run->parameters[k], &wanted))
                return false;
    }
    return true;
}

// Of the newest run of each precision that finished so, and of any for those that none has: all of
// them together. NaN: no run tells.
static double seconds_of(Ui *ui, const UiExperiment *experiment, const LaunchForm *form,
                         const char *const *precisions, int count) {
    const RunFilter newest = {.limit = MOST_LISTED};
    double seconds[HOME_MOST_PLANNED], any = (double)NAN, sum = 0;
    RunRecord *runs;
    int run_count, left = MOST_READ;
    Error busy; // then nothing is told
    for (int i = 0; i < count; i++)
        seconds[i] = (double)NAN;
    if (!store_list_runs(ui->store, &newest, &runs, &run_count, &busy))
        return (double)NAN;
    for (int i = 0; i < run_count && left > 0; i++) {
        RunRecord run = {.id = 0};
        bool is_whole = runs[i].status == RUN_FINISHED && runs[i].parent == 0 &&
                        ui->host->is_of_script(ui->host->context, experiment, runs[i].script_path);
        if (!is_whole)
            continue;
        left--;
        if (store_read_run(ui->store, runs[i].id, &run, &busy) && has_own_length(&run) &&
            has_parameters(&run, experiment, form)) {
            any = isnan(any) ? run.wall_s : any;
            for (int k = 0; k < count; k++)
                if (isnan(seconds[k]) && strcmp(run.precision, precisions[k]) == 0)
                    seconds[k] = run.wall_s;
        }
        record_clear(&run);
    }
    store_free_runs(runs, run_count);
    for (int i = 0; i < count; i++)
        sum += isnan(seconds[i]) ? any : seconds[i];
    return sum;
}

static void write_time(char *text, size_t size, double seconds) {
    const double a_minute = 60, an_hour = 3600;
    if (seconds < 1.5 * a_minute)
        snprintf(text, size, "%.0f s", fmax(1, seconds));
    else if (seconds < 1.5 * an_hour)
        snprintf(text, size, "%.0f min", seconds / a_minute);
    else
        snprintf(text, size, "%.1f h", seconds / an_hour);
}

void home_ask_plan(Ui *ui, const HomePlan *plan, void (*start)(Ui *ui, const char *text)) {
    char list[64] = "", question[MESSAGE_SIZE];
    Phrase formats = phrase_begin(list, sizeof list);
    for (int i = 0; i < plan->count; i++) {
        phrase_add_joint(&formats, i, plan->count, " and ");
        phrase_add(&formats, "%s", plan->precisions[i]);
    }
    double seconds =
        plan->seeds * seconds_of(ui, plan->experiment, plan->form, plan->precisions, plan->count);
    int length = snprintf(question, sizeof question, "train %.63s %d times, ",
                          plan->experiment->name, plan->seeds * plan->count);
    if (plan->seeds > 1)
        length += snprintf(question + length, sizeof question - (size_t)length, "%d seeds each ",
                           plan->seeds);
    length += snprintf(question + length, sizeof question - (size_t)length, "in %s, %s? ", list,
                       plan->at_once ? "side by side" : "one after another");
    char time[32];
    if (isnan(seconds))
        snprintf(question + length, sizeof question - (size_t)length,
                 "No run so far tells how long that takes.");
    write_time(time, sizeof time, seconds);
    if (isfinite(seconds))
        snprintf(question + length, sizeof question - (size_t)length,
                 "About %s, as earlier runs went.", time);
    prompt_confirm(ui, question, start);
}
