// What keys do to the runs of the list: choosing, filtering, naming, deleting.
#include <stdio.h>
#include <string.h>

#include "base/phrase.h"
#include "ui/home/home.h"

static void choose(Ui *ui) {
    Home *home = home_of(ui);
    home->preview_of = HOME_UNREAD;
    for (int i = 0; i < home->chosen_count; i++)
        if (home->chosen[i] == home->run) {
            memmove(&home->chosen[i], &home->chosen[i + 1],
                    (size_t)(--home->chosen_count - i) * sizeof *home->chosen);
            return;
        }
    if (home->chosen_count == HOME_MOST_CHOSEN)
        ui_say(ui, INK_WARN, "%d runs can be chosen at once; esc lets them all go",
               HOME_MOST_CHOSEN);
    else if (home->run)
        home->chosen[home->chosen_count++] = home->run;
}

bool home_compare_chosen(Ui *ui) {
    const Home *home = home_of(ui);
    if (home->chosen_count < 2)
        return false;
    ui_compare(ui, home->chosen, home->chosen_count);
    return true;
}

static void compare(Ui *ui) {
    if (!home_compare_chosen(ui))
        ui_say(ui, INK_WARN, "choose two runs or more with space, then c compares them");
}

static bool check_filter(Ui *ui, const char *text, Error *error) {
    return !text[0] || store_check_filter(ui->store, text, error);
}

// The cursor stays on its run as long as that matches, else it is on the first that does.
static void take_filter(Ui *ui, const char *text) {
    Home *home = home_of(ui);
    snprintf(home->filter, sizeof home->filter, "%s", text);
    home_read_runs(ui);
    if (home_listed(home, home->run_before))
        home->run = home->run_before;
    else if (home->run_count > 0)
        home->run = home->runs[0].id;
}

// While it is typed: as far as it says something.
static void try_filter(Ui *ui, const char *text) {
    Error error;
    if (check_filter(ui, text, &error))
        take_filter(ui, text);
}

static void drop_filter(Ui *ui) {
    char before[PROMPT_SIZE];
    snprintf(before, sizeof before, "%s", home_of(ui)->filter_before);
    take_filter(ui, before);
}

static void ask_filter(Ui *ui) {
    Home *home = home_of(ui);
    snprintf(home->filter_before, sizeof home->filter_before, "%s", home->filter);
    home->run_before = home->run;
    prompt_ask(ui, "/", home->filter, take_filter);
    ui->prompt.check = check_filter;
    ui->prompt.changed = try_filter;
    ui->prompt.dropped = drop_filter;
    ui->prompt.hint =
        "status:failed format:fp16 acc>0.9 cnn · experiment: device: name: tag: note: "
        "· id steps loss skipped scale wall rate memory seed with < = >";
}

static void say_kept(Ui *ui, const char *what, const char *text) {
    ui_say(ui, INK_GOOD, "run %lld: %s %s", (long long)ui->prompt.run, what,
           text[0] ? "kept" : "removed");
}

static void ask_word(Ui *ui, const RunRecord *run, const char *label, const char *text,
                     void (*done)(Ui *ui, const char *text)) {
    prompt_ask(ui, label, text, done);
    ui->prompt.run = run->id;
}

static void take_tag(Ui *ui, const char *text) {
    Error error;
    if (!store_set_tag(ui->store, ui->prompt.run, text, &error))
        ui_fail(ui, &error);
    else
        say_kept(ui, "tag", text);
    home_read_runs(ui);
}

static void take_note(Ui *ui, const char *text) {
    Error error;
    if (!store_set_note(ui->store, ui->prompt.run, text, &error))
        ui_fail(ui, &error);
    else
        say_kept(ui, "note", text);
    home_of(ui)->preview_of = HOME_UNREAD; // which shows it
    home_read_runs(ui);
}

// As `mpbench rm` does it, which knows of checkpoint files and of workers that live.
static void remove_runs(Ui *ui, const char *text) {
    (void)text;
    Home *home = home_of(ui);
    char names[HOME_MOST_CHOSEN][24];
    const char *arguments[HOME_MOST_CHOSEN + 2] = {"rm"};
    for (int i = 0; i < home->doomed_count; i++) {
        snprintf(names[i], sizeof names[i], "%lld", (long long)home->doomed[i]);
        arguments[1 + i] = names[i];
    }
    Error error;
    int64_t process;
    if (!launch_worker(ui, arguments, &process, &error))
        ui_fail(ui, &error);
}

static void confirm_again(Ui *ui, const char *text) {
    (void)text;
    prompt_confirm(ui, "really? Their points and checkpoints cannot be brought back", remove_runs);
}

// Those chosen that are seen, else the one under the cursor: what a filter hides is left alone.
static void find_doomed(Home *home) {
    home->doomed_count = 0;
    for (int i = 0; i < home->chosen_count; i++)
        if (home_listed(home, home->chosen[i]))
            home->doomed[home->doomed_count++] = home->chosen[i];
    if (home->doomed_count == 0)
        home->doomed[home->doomed_count++] = home->run;
}

static void ask_remove(Ui *ui) {
    enum { MOST_NAMED = 3 };
    Home *home = home_of(ui);
    char question[MESSAGE_SIZE];
    if (!home_listed(home, home->run))
        return;
    find_doomed(home);
    int count = home->doomed_count, hidden = home_hidden(home);
    Phrase phrase = phrase_begin(question, sizeof question);
    phrase_add(&phrase, "delete ");
    for (int i = 0; i < count && i < MOST_NAMED; i++)
        phrase_add(&phrase, "%s%lld %.60s", i ? ", " : "", (long long)home->doomed[i],
                   home_listed(home, home->doomed[i])->name);
    if (count > MOST_NAMED)
        phrase_add(&phrase, " and %d more", count - MOST_NAMED);
    phrase_add(&phrase, "?%s", hidden > 0 ? " What the filter hides stays." : "");
    prompt_confirm(ui, question, confirm_again);
}

// One layer: the filter first, so that what it hid is seen before it is let go.
static bool step_back(Ui *ui) {
    Home *home = home_of(ui);
    if (home->filter[0])
        home->filter[0] = 0;
    else if (home->chosen_count > 0)
        home->chosen_count = 0;
    else
        return false;
    home->preview_of = HOME_UNREAD;
    home_read_runs(ui);
    return true;
}

bool home_runs_request(Ui *ui, Request request) {
    Home *home = home_of(ui);
    int at = home_index(home), page = ui->frame.rows / 2;
    if (home_move(request, home->run_count, page, &at)) {
        if (home->run_count > 0)
            home->run = home->runs[at].id;
        return true;
    }
    const RunRecord *run = home_listed(home, home->run);
    switch (request) {
    case REQUEST_ENTER:
        if (run)
            ui_open_run(ui, run->id);
        return true;
    case REQUEST_SELECT: choose(ui); return home_runs_request(ui, REQUEST_DOWN);
    case REQUEST_COMPARE: compare(ui); return true;
    case REQUEST_FILTER: ask_filter(ui); return true;
    case REQUEST_SORT:
        home->sort = (home->sort + 1) % SORTS;
        home_sort(home);
        return true;
    case REQUEST_TAG:
        if (run)
            ask_word(ui, run, "tag", run->tag, take_tag);
        return true;
    case REQUEST_NOTE:
        if (run)
            ask_word(ui, run, "note", run->note, take_note);
        return true;
    case REQUEST_DELETE: ask_remove(ui); return true;
    case REQUEST_COPY:
        if (run)
            ui_copy(ui, run->name);
        return true;
    case REQUEST_BACK: return step_back(ui);
    default: return false;
    }
}
