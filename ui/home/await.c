// Waiting for the runs of workers that were started here.
#include <stdlib.h>
#include <string.h>

#include "store/runs.h"
#include "ui/home/home.h"

// The newest of the history, whatever the list's filter hides; those of a moment are not more.
static bool list_newest(Ui *ui, RunRecord **runs, int *count) {
    const RunFilter newest = {.limit = 16};
    Error busy; // then the next look finds them
    return store_list_runs(ui->store, &newest, runs, count, &busy);
}

void home_await_none(Ui *ui) {
    Home *home = home_of(ui);
    RunRecord *runs;
    int count;
    home->awaited_count = 0;
    home->awaited_after = 0;
    if (!list_newest(ui, &runs, &count))
        return;
    home->awaited_after = count > 0 ? runs[0].id : 0;
    store_free_runs(runs, count);
}

void home_await(Ui *ui, int64_t process) {
    Home *home = home_of(ui);
    if (home->awaited_count < HOME_MOST_AWAITED)
        home->awaited[home->awaited_count++] = (struct HomeAwaited){.process = process};
    home->filter[0] = 0; // it must be seen
    home_read_runs(ui);
}

// The process that trains a run, or did; 0: unknown.
static int64_t process_of(Ui *ui, int64_t run) {
    RunRecord record;
    Error error;
    int64_t process = 0;
    if (!store_read_run(ui->store, run, &record, &error))
        return 0;
    const char *fact = record_fact(&record, "process");
    process = fact ? strtoll(fact, NULL, 10) : 0;
    record_clear(&record);
    return process;
}

static void find_runs(Ui *ui, const RunRecord *runs, int count) {
    Home *home = home_of(ui);
    for (int i = 0; i < count && runs[i].id > home->awaited_after; i++) {
        int64_t process = process_of(ui, runs[i].id);
        for (int j = 0; process > 0 && j < home->awaited_count; j++)
            if (home->awaited[j].process == process)
                home->awaited[j].run = runs[i].id;
    }
}

// Those that ended without a run; why is told by who watches the workers.
static void drop_ended(Home *home, const bool *goes_on) {
    int kept = 0;
    for (int i = 0; i < home->awaited_count; i++)
        if (goes_on[i] || home->awaited[i].run > 0)
            home->awaited[kept++] = home->awaited[i];
    home->awaited_count = kept;
}

// The user types, reads or fills in a form.
static bool is_busy(const Ui *ui) {
    return ui->prompt.open || ui->pager.open || ui->page.open || ui->pictures.open ||
           ui->focus[SCREEN_HOME] == PANEL_LAUNCH;
}

static void open_runs(Ui *ui) {
    Home *home = home_of(ui);
    int64_t runs[HOME_MOST_AWAITED];
    int count = home->awaited_count;
    for (int i = 0; i < count; i++)
        runs[i] = home->awaited[i].run;
    home->awaited_count = 0;
    if (ui->message_ink == INK_GOOD) // that they are starting; what went wrong is read on
        ui->message_until = 0;
    ui->run = runs[0];
    if (count > 1)
        ui_compare(ui, runs, count);
    else
        ui_open_run(ui, runs[0]);
}

static bool have_all(const Home *home) {
    for (int i = 0; i < home->awaited_count; i++)
        if (home->awaited[i].run == 0)
            return false;
    return true;
}

bool home_awaits(const Home *home) {
    return !have_all(home);
}

static void look_for_runs(Ui *ui) {
    Home *home = home_of(ui);
    bool goes_on[HOME_MOST_AWAITED]; // asked first: what ended before has written its run
    RunRecord *runs;
    int count;
    for (int i = 0; i < home->awaited_count; i++)
        goes_on[i] = launch_goes_on(home->awaited[i].process);
    if (!list_newest(ui, &runs, &count))
        return;
    find_runs(ui, runs, count);
    store_free_runs(runs, count);
    drop_ended(home, goes_on);
}

void home_open_awaited(Ui *ui) {
    const Home *home = home_of(ui);
    if (!have_all(home))
        look_for_runs(ui);
    if (home->awaited_count > 0 && have_all(home) && !is_busy(ui))
        open_runs(ui);
}
