// The runs of the list: which they are, in what order, and which of them are chosen.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/cells/words.h"
#include "ui/home/home.h"

const RunRecord *home_listed(const Home *home, int64_t run) {
    for (int i = 0; i < home->run_count; i++)
        if (home->runs[i].id == run)
            return &home->runs[i];
    return NULL;
}

int home_index(const Home *home) {
    for (int i = 0; i < home->run_count; i++)
        if (home->runs[i].id == home->run)
            return i;
    return 0;
}

bool home_is_chosen(const Home *home, int64_t run) {
    for (int i = 0; i < home->chosen_count; i++)
        if (home->chosen[i] == run)
            return true;
    return false;
}

bool home_is_named(const RunRecord *run) {
    size_t length = strlen(run->experiment);
    const char *rest = run->name + length;
    bool is_usual = strncmp(run->name, run->experiment, length) == 0 && rest[0] == '-' && rest[1] &&
                    rest[1 + strspn(rest + 1, "0123456789-")] == 0;
    return run->name[0] && !is_usual;
}

int home_hidden(const Home *home) {
    int hidden = 0;
    for (int i = 0; i < home->chosen_count; i++)
        hidden += home_listed(home, home->chosen[i]) == NULL;
    return hidden;
}

// ---- sorting ------------------------------------------------------------------------------------

static const char *const sort_names[SORTS] = {"by age", "by loss", "by rate", "by memory",
                                              "by state"};

const char *home_sort_name(const Home *home) {
    return sort_names[home->sort];
}

// NaN last, then the smaller first.
static int compare_numbers(double a, double b) {
    if (isnan(a) || isnan(b))
        return isnan(a) - isnan(b);
    return (a > b) - (a < b);
}

static double loss_of(const RunRecord *run) {
    return run->has_loss ? run->loss_last : (double)NAN;
}

static int by_age(const void *a, const void *b) {
    int64_t x = ((const RunRecord *)a)->id, y = ((const RunRecord *)b)->id;
    return (x < y) - (x > y);
}

static int by_loss(const void *a, const void *b) {
    int order = compare_numbers(loss_of(a), loss_of(b));
    return order ? order : by_age(a, b);
}

static int by_rate(const void *a, const void *b) {
    const RunRecord *x = a, *y = b;
    int order = compare_numbers(-x->steps_per_s, -y->steps_per_s);
    return order ? order : by_age(a, b);
}

static int by_memory(const void *a, const void *b) {
    const RunRecord *x = a, *y = b;
    int order = compare_numbers((double)y->memory.peak, (double)x->memory.peak);
    return order ? order : by_age(a, b);
}

static int by_status(const void *a, const void *b) {
    const RunRecord *x = a, *y = b;
    int order = (int)x->status - (int)y->status;
    return order ? order : by_age(a, b);
}

void home_sort(Home *home) {
    static int (*const orders[SORTS])(const void *, const void *) = {by_age, by_loss, by_rate,
                                                                     by_memory, by_status};
    if (home->run_count > 1)
        qsort(home->runs, (size_t)home->run_count, sizeof *home->runs, orders[home->sort]);
}

// ---- reading ------------------------------------------------------------------------------------

static bool same_run(const RunRecord *a, const RunRecord *b) {
    return a->id == b->id && a->status == b->status && a->stale == b->stale && a->step == b->step &&
           a->metric_count == b->metric_count && strcmp(a->tag, b->tag) == 0 &&
           strcmp(a->note, b->note) == 0;
}

static bool same_runs(const Home *home, const RunRecord *runs, int count) {
    if (count != home->run_count)
        return false;
    for (int i = 0; i < count; i++)
        if (!same_run(&home->runs[i], &runs[i]))
            return false;
    return true;
}

// Runs that are gone, by a key here or by another program, are chosen no more.
static void forget_gone(Ui *ui) {
    Home *home = home_of(ui);
    int kept = 0;
    for (int i = 0; i < home->chosen_count; i++) {
        char text[24];
        int64_t id = 0;
        Error error = {.code = ERROR_NONE};
        snprintf(text, sizeof text, "%lld", (long long)home->chosen[i]);
        bool is_there =
            home_listed(home, home->chosen[i]) || store_find_run(ui->store, text, &id, &error);
        if (is_there || error.code != ERROR_USAGE)
            home->chosen[kept++] = home->chosen[i];
    }
    if (kept != home->chosen_count)
        home->preview_of = HOME_UNREAD;
    home->chosen_count = kept;
}

// Where the run under the cursor is gone, the next that is left takes its place, or the last.
static int64_t next_left(const Home *before, const Home *after) {
    for (int i = home_index(before); i < before->run_count; i++)
        if (home_listed(after, before->runs[i].id))
            return before->runs[i].id;
    const int at = before->run_count > 0 ? after->run_count - 1 : 0;
    return after->run_count > 0 ? after->runs[at].id : 0;
}

static void count_all(Ui *ui) {
    Home *home = home_of(ui);
    int64_t total;
    Error busy; // then the next look counts them
    home->total = home->run_count;
    if (home->filter[0] && store_count_runs(ui->store, &total, &busy))
        home->total = total;
}

bool home_read_runs(Ui *ui) {
    Home *home = home_of(ui);
    RunFilter filter = {.words = home->filter[0] ? home->filter : NULL};
    Home fresh = {.sort = home->sort};
    Error error;
    if (!store_list_runs(ui->store, &filter, &fresh.runs, &fresh.run_count, &error)) {
        ui_fail(ui, &error);
        return true;
    }
    home_sort(&fresh);
    bool same = same_runs(home, fresh.runs, fresh.run_count);
    if (!home_listed(&fresh, home->run))
        home->run = next_left(home, &fresh);
    store_free_runs(home->runs, home->run_count);
    home->runs = fresh.runs;
    home->run_count = fresh.run_count;
    const int64_t total = home->total;
    count_all(ui);
    if (!same) {
        home->preview_of = HOME_UNREAD; // whoever asked for the list: its points may be new, too
        forget_gone(ui);
    }
    return !same || home->total != total;
}

bool home_has_aged(Ui *ui) {
    Home *home = home_of(ui);
    const int64_t now = ui_now_ms(), before = home->aged_ms;
    bool has_aged = false;
    for (int i = home->run_top; i < home->run_count && i < home->run_top + ui->frame.rows; i++) {
        const int64_t created = home->runs[i].created_ms;
        has_aged |= strcmp(word_age(now - created).text, word_age(before - created).text) != 0;
    }
    home->aged_ms = now;
    return has_aged;
}

void home_find_run(Ui *ui, int64_t run) {
    Home *home = home_of(ui);
    home_read_runs(ui);
    if (home_listed(home, run))
        home->run = run;
}
