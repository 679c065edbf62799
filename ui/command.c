// The line behind ':': the verbs of `mpbench ctl` for the run that is looked at, and a few of the
// screen's own. One table gives what is understood, its completion and its help.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/whole.h"
#include "store/commands.h"
#include "store/record.h"
#include "store/runs.h"
#include "ui/home/home.h"
#include "ui/live/live.h"

// On home the run under the cursor, on the live screen the one that is open, and on others as long
// as they were come to from there: later nobody sees which it was. 0: none.
static int64_t run_meant(const Ui *ui) {
    if (ui->screen == SCREEN_HOME)
        return home_of(ui)->run;
    return ui->screen == SCREEN_LIVE || ui->came_from == SCREEN_LIVE ? ui->run : 0;
}

static bool read_run(Ui *ui, int64_t id, RunRecord *run) {
    Error error;
    bool done = store_read_run(ui->store, id, run, &error);
    if (!done)
        ui_fail(ui, &error);
    return done;
}

static bool read_meant(Ui *ui, const char *verb, RunRecord *run) {
    int64_t id = run_meant(ui);
    if (id == 0)
        ui_say(ui, INK_WARN, "%s: no run is open: choose one at home (1)", verb);
    return id != 0 && read_run(ui, id, run);
}

// ---- orders to a worker -------------------------------------------------------------------------

static bool keep_asked(Ui *ui, const Asked *asked) {
    if (ui->asked_count == ui->asked_room) {
        int room = ui->asked_room > 0 ? 2 * ui->asked_room : 16;
        Asked *grown = realloc(ui->asked, (size_t)room * sizeof *grown);
        if (!grown)
            return false;
        ui->asked = grown;
        ui->asked_room = room;
    }
    ui->asked[ui->asked_count++] = *asked;
    return true;
}

bool command_send(Ui *ui, const RunRecord *run, const char *verb, const char *argument) {
    Error error;
    Asked asked;
    if (!store_send_command(ui->store, run->id, verb, argument, &asked.id, &error)) {
        ui_fail(ui, &error);
        return false;
    }
    snprintf(asked.what, sizeof asked.what, "%s %s%s#%lld", verb, argument, *argument ? " " : "",
             (long long)run->id);
    if (keep_asked(ui, &asked))
        ui_say(ui, INK_TEXT, "%s: asked; the answer comes %s", asked.what, command_verb_when(verb));
    else
        ui_say(ui, INK_WARN, "%s: asked; no memory to tell the answer, the run's events have it",
               asked.what);
    return true;
}

static void send(Ui *ui, const char *verb, const char *argument) {
    RunRecord run = {.id = 0};
    if (read_meant(ui, verb, &run) && launch_takes_orders(ui, &run))
        command_send(ui, &run, verb, argument);
    record_clear(&run);
}

static void tell(Ui *ui, const Asked *asked, const RunCommand *command) {
    bool done = command->state == COMMAND_DONE;
    char at[40] = "";
    if (done && command->step >= 0)
        snprintf(at, sizeof at, ", at step %lld", (long long)command->step);
    ui_say(ui, done ? INK_GOOD : INK_WARN, "%s: %s%s%s%s", asked->what, done ? "done" : "refused",
           at, command->answer[0] ? ": " : "", command->answer);
}

void command_poll(Ui *ui) {
    int kept = 0;
    for (int i = 0; i < ui->asked_count; i++) {
        RunCommand command;
        Error error;
        bool is_read = store_read_command(ui->store, ui->asked[i].id, &command, &error);
        bool waits = is_read ? command.state == COMMAND_QUEUED || command.state == COMMAND_CLAIMED
                             : error.code == ERROR_BUSY;
        if (is_read && !waits)
            tell(ui, &ui->asked[i], &command);
        if (waits)
            ui->asked[kept++] = ui->asked[i];
    }
    ui->asked_count = kept;
}

void command_close(Ui *ui) {
    free(ui->asked);
}

static void stop_named(Ui *ui, const char *text) {
    (void)text;
    RunRecord run = {.id = 0};
    if (read_run(ui, ui->prompt.run, &run) && launch_takes_orders(ui, &run))
        command_send(ui, &run, "stop", "");
    record_clear(&run);
}

// As the key asks.
static void stop(Ui *ui, const char *verb, const char *argument) {
    (void)argument;
    RunRecord run = {.id = 0};
    char question[160];
    if (read_meant(ui, verb, &run) && launch_takes_orders(ui, &run)) {
        snprintf(question, sizeof question, "stop #%lld %s after its step, with a checkpoint?",
                 (long long)run.id, run.name);
        prompt_confirm(ui, question, stop_named);
        ui->prompt.run = run.id;
    }
    record_clear(&run);
}

// ---- workers that go on from a run --------------------------------------------------------------

static bool launch(Ui *ui, const char *const *arguments, int64_t *process) {
    Error error;
    bool done = launch_worker(ui, arguments, process, &error);
    if (!done)
        ui_fail(ui, &error);
    return done;
}

// A run that pauses is let go on; one that is over is gone on with from its last checkpoint.
static void resume(Ui *ui, const char *verb, const char *argument) {
    RunRecord run = {.id = 0};
    char id[24];
    int64_t process;
    const char *const arguments[] = {"resume", id, "--quiet", NULL};
    if (!read_meant(ui, verb, &run) || !launch_is_allowed(ui))
        goto done;
    snprintf(id, sizeof id, "%lld", (long long)run.id);
    if (!live_is_over(&run)) {
        command_send(ui, &run, verb, argument);
    } else if (run.status == RUN_FINISHED || launch_last_checkpoint(ui, run.id, INT64_MAX) < 0) {
        launch_takes_orders(ui, &run);
    } else if (launch(ui, arguments, &process)) {
        ui_say(ui, INK_GOOD, "#%s goes on from its last checkpoint", id);
    }
done:
    record_clear(&run);
}

// Cuts the first word off; "" where there is none.
static const char *next_word(char **text) {
    char *word = *text + strspn(*text, " ");
    char *end = word + strcspn(word, " ");
    *text = end + strspn(end, " ");
    *end = 0;
    return word;
}

static bool is_precision(const Ui *ui, const char *word) {
    for (const char *const *name = ui->host->precisions; *name; name++)
        if (strcmp(*name, word) == 0)
            return true;
    return false;
}

enum { MOST_CHANGES = 6, FORK_ARGUMENTS = 8 + 2 * MOST_CHANGES };

typedef struct ForkAsked {
    char words[PROMPT_SIZE], step[24];
    int64_t at;                                    // the step, as a number
    const char *precision, *changes[MOST_CHANGES]; // "" where it lacks; as `set` has them
    int change_count;
} ForkAsked;

static const char fork_form[] = "fork STEP, or fork STEP PRECISION; KEY=VALUE as set has it";

static bool is_too_much(Ui *ui, const char *rest) {
    ui_say(ui, INK_WARN, "fork: \"%s\" is too much; %s", rest, fork_form);
    return false;
}

// "STEP PRECISION", each of which may lack, and changes among them. A word that is no precision is
// the step; what follows a step is a precision, which the worker knows to refuse.
static bool take_word(const Ui *ui, ForkAsked *asked, const char *word) {
    if (strchr(word, '=') && asked->change_count < MOST_CHANGES)
        asked->changes[asked->change_count++] = word;
    else if (!asked->precision[0] && (asked->step[0] || is_precision(ui, word)))
        asked->precision = word;
    else if (!asked->step[0] && !asked->precision[0])
        snprintf(asked->step, sizeof asked->step, "%.23s", word);
    else
        return false;
    return true;
}

// The step where none is named: that which the screen went back to.
static bool read_fork(Ui *ui, const char *argument, ForkAsked *asked) {
    Error error;
    int64_t scrubbed = live_scrubbed_step(ui);
    char *rest = asked->words;
    *asked = (ForkAsked){.precision = ""};
    snprintf(asked->words, sizeof asked->words, "%s", argument);
    while (*rest) {
        const char *word = next_word(&rest);
        if (word[0] && !take_word(ui, asked, word))
            return is_too_much(ui, argument + (word - asked->words));
    }
    const char *first = asked->precision[0]   ? asked->precision
                        : asked->change_count ? asked->changes[0]
                                              : "";
    if (!asked->step[0] && scrubbed <= 0 && first[0]) {
        ui_say(ui, INK_WARN, "fork %s: after which step? [ goes back to one; or fork STEP %s",
               first, first);
        return false;
    }
    if (!asked->step[0])
        snprintf(asked->step, sizeof asked->step, "%lld", (long long)scrubbed);
    if (whole_parse(asked->step, 1, WHOLE_MOST, &asked->at, &error))
        return true;
    ui_say(ui, INK_WARN, "fork %s: %s; %s", asked->step, error.text, fork_form);
    return false;
}

// What the command line would refuse, behind a screen that was left for it. Of a run that did not
// finish it knows better how far that came.
static bool has_come_to(Ui *ui, const RunRecord *run, const ForkAsked *asked) {
    if (run->status != RUN_FINISHED || asked->at <= run->step)
        return true;
    ui_say(ui, INK_WARN, "fork %s: #%lld ended at step %lld", asked->step, (long long)run->id,
           (long long)run->step);
    return false;
}

// A change as `mpbench fork` has it: two arguments.
static void add_change(const char *change, const char **arguments) {
    static const struct {
        const char *begins, *option;
    } kinds[] = {{"layer.", "--layer"}, {"recipe.", "--recipe"}, {"loss_scale=", "--loss-scale"}};
    arguments[0] = "--set";
    arguments[1] = change;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(change, kinds[i].begins, strlen(kinds[i].begins)) == 0) {
            arguments[0] = kinds[i].option;
            arguments[1] = change + strlen(kinds[i].begins);
            return;
        }
}

// Up to a step without a checkpoint its parent is trained again first, which may take long.
static void say_fork_starts(Ui *ui, const RunRecord *run, const ForkAsked *asked) {
    const int64_t from = launch_last_checkpoint(ui, run->id, asked->at);
    char first[96] = "";
    if (from <= 0)
        snprintf(first, sizeof first, "first #%lld is trained again from its start; ",
                 (long long)run->id);
    else if (from < asked->at)
        snprintf(first, sizeof first, "first #%lld is trained again from step %lld; ",
                 (long long)run->id, (long long)from);
    ui_say(ui, INK_GOOD,
           "a fork of #%lld at step %s is starting: %sit opens when its step is there",
           (long long)run->id, asked->step, first);
}

static void fork_run(Ui *ui, const char *verb, const char *argument) {
    RunRecord run = {.id = 0};
    ForkAsked asked;
    char id[24];
    int64_t process;
    const char *arguments[FORK_ARGUMENTS] = {"fork", id, "--quiet", "--at", asked.step};
    int count = 5;
    if (!read_meant(ui, verb, &run) || !launch_is_allowed(ui) || !read_fork(ui, argument, &asked) ||
        !has_come_to(ui, &run, &asked))
        goto done;
    snprintf(id, sizeof id, "%lld", (long long)run.id);
    if (asked.precision[0]) {
        arguments[count++] = "--precision";
        arguments[count++] = asked.precision;
    }
    for (int i = 0; i < asked.change_count; i++, count += 2)
        add_change(asked.changes[i], arguments + count);
    home_await_none(ui);
    if (!launch(ui, arguments, &process))
        goto done;
    home_await(ui, process);
    ui_go(ui, SCREEN_HOME); // from where it opens
    say_fork_starts(ui, &run, &asked);
done:
    record_clear(&run);
}

// ---- the screen's own ---------------------------------------------------------------------------

static void open_named(Ui *ui, const char *verb, const char *argument) {
    (void)verb;
    Error error;
    int64_t run;
    if (store_find_run(ui->store, argument, &run, &error))
        ui_open_run(ui, run);
    else
        ui_fail(ui, &error);
}

static void set_option(Ui *ui, const char *verb, const char *argument) {
    (void)verb;
    char name[64], value[128] = "";
    Error error;
    if (sscanf(argument, "%63[^= ]%*[= ]%127[^\n]", name, value) < 1) {
        ui_say(ui, INK_WARN, "option NAME = VALUE; O shows what there is");
        return;
    }
    if (!settings_set(&ui->settings, name, value, &error)) {
        ui_fail(ui, &error);
        return;
    }
    settings_apply(ui);
    settings_describe(&ui->settings, settings_find(name), value, sizeof value); // it may be rounded
    ui_say(ui, INK_TEXT, "%s is %s", name, value);
}

static void quit(Ui *ui, const char *verb, const char *argument) {
    (void)verb, (void)argument;
    ui->quit = true;
}

static void help(Ui *ui, const char *verb, const char *argument) {
    (void)verb, (void)argument;
    help_show(ui);
}

typedef int (*Completer)(Ui *ui, const char *typed, const char **words, int most);

static int complete_setting(Ui *ui, const char *typed, const char **words, int most);
static int complete_run(Ui *ui, const char *typed, const char **words, int most);
static int complete_option(Ui *ui, const char *typed, const char **words, int most);
static int complete_fork(Ui *ui, const char *typed, const char **words, int most);

static const struct Verb {
    const char *name;
    void (*run)(Ui *ui, const char *verb, const char *argument);
    const char *argument; // what it wants; NULL: nothing
    Completer complete;   // of its arguments; NULL: it has none
    bool is_short;        // for another: not listed
    bool is_at_cursor;    // where the screen went back to a step it wants no more
} verbs[] = {
    {"pause", send, NULL, NULL, false, false},
    {"resume", resume, NULL, NULL, false, false},
    {"stop", stop, NULL, NULL, false, false},
    {"checkpoint", send, NULL, NULL, false, false},
    {"set", send, "layer.NAME=fp32, loss_scale=1024, lr=1e-3, recipe.scales=up", complete_setting,
     false, false},
    {"fork", fork_run, "STEP, or STEP PRECISION; changes as set has them", complete_fork, false,
     true},
    {"open", open_named, "a run: its number or name", complete_run, false, false},
    {"option", set_option, "NAME VALUE; O shows what there is", complete_option, false, false},
    {"help", help, NULL, NULL, false, false},
    {"quit", quit, NULL, NULL, false, false},
    {"q", quit, NULL, NULL, true, false},
};
enum { VERBS = sizeof verbs / sizeof *verbs };

static void take(Ui *ui, const char *line) {
    char verb[32] = "";
    int used = 0;
    if (sscanf(line, " %31s%n", verb, &used) < 1)
        return;
    const char *argument = line + used + strspn(line + used, " ");
    const char *names[VERBS];
    for (int i = 0; i < VERBS; i++) {
        names[i] = verbs[i].name;
        if (strcmp(verb, verbs[i].name) != 0)
            continue;
        bool is_told = *argument || (verbs[i].is_at_cursor && live_scrubbed_step(ui) > 0);
        if (verbs[i].argument && !is_told)
            ui_say(ui, INK_WARN, "%s wants %s", verb, verbs[i].argument);
        else if (!verbs[i].argument && *argument)
            ui_say(ui, INK_WARN, "%s: \"%s\" is too much; it takes nothing", verb, argument);
        else
            verbs[i].run(ui, verb, argument);
        return;
    }
    const char *nearest = nearest_name(verb, names, VERBS);
    ui_say(ui, INK_WARN, "%s: not known%s%s%s", verb, nearest ? "; did you mean " : "",
           nearest ? nearest : "", nearest ? "?" : "; tab lists what there is");
}

// ---- completion ---------------------------------------------------------------------------------

static int add_matching(const char *typed, const char *word, const char **words, int count,
                        int most) {
    if (count < most && strncmp(word, typed, strlen(typed)) == 0)
        words[count++] = word;
    return count;
}

// What a layer can be set to.
static const char *const formats[] = {
#define FORMAT(...)
#define TRAINED(id, name, ...)   name,
#define UNTRAINED(id, name, ...) name,
#include "number/formats.def"
    "auto", NULL};

// Beside layers; of a recipe the keys that mend a run, whole (`mpbench help recipes` has all).
static const char *const settings[] = {
    "loss_scale=",         "lr=", "recipe.scales=up", "recipe.norms=own", "recipe.backward=",
    "recipe.activations=", NULL};

// The layers of the run that is meant, as "layer.NAME=", and then with each format; kept until the
// next completion.
static int complete_setting(Ui *ui, const char *typed, const char **words, int most) {
    enum { MOST_LAYERS = 256 };
    static char layers[MOST_LAYERS][RECORD_NAME_SIZE + 16];
    int count = 0, used = 0;
    bool has_name = strchr(typed, '=') != NULL;
    RunRecord record = {.id = 0};
    if (run_meant(ui) && store_read_run(ui->store, run_meant(ui), &record, NULL))
        for (int i = 0; i < record.layer_count; i++)
            for (int j = 0; used < MOST_LAYERS && (has_name ? formats[j] != NULL : j == 0); j++) {
                snprintf(layers[used], sizeof layers[used], "layer.%s=%s", record.layers[i].name,
                         has_name ? formats[j] : "");
                int before = count;
                count = add_matching(typed, layers[used], words, count, most);
                used += count > before;
            }
    record_clear(&record);
    for (int i = 0; settings[i]; i++)
        count = add_matching(typed, settings[i], words, count, most);
    return count;
}

static int complete_run(Ui *ui, const char *typed, const char **words, int most) {
    enum { MOST_RUNS = 64 };
    static char names[MOST_RUNS][RECORD_NAME_SIZE];
    const Home *home = home_of(ui);
    int count = 0;
    for (int i = 0; i < home->run_count && count < MOST_RUNS; i++) {
        memcpy(names[count], home->runs[i].name, sizeof names[count]);
        count = add_matching(typed, names[count], words, count, most);
    }
    return count;
}

static int complete_option(Ui *ui, const char *typed, const char **words, int most) {
    (void)ui;
    int count = 0;
    for (int i = 0; i < settings_count(); i++)
        count = add_matching(typed, settings_name(i), words, count, most);
    return count;
}

static int complete_precision(Ui *ui, const char *typed, const char **words, int most) {
    int count = 0;
    for (const char *const *name = ui->host->precisions; *name && *typed; name++)
        count = add_matching(typed, *name, words, count, most);
    return count;
}

static int complete_fork(Ui *ui, const char *typed, const char **words, int most) {
    int count = complete_precision(ui, typed, words, most);
    return count + complete_setting(ui, typed, words + count, most - count);
}

static int complete(Ui *ui, const char *text, int *from, const char **words, int most) {
    const char *space = strrchr(text, ' ');
    int count = 0;
    *from = space ? (int)(space + 1 - text) : 0;
    for (int i = 0; i < VERBS; i++) {
        size_t length = strlen(verbs[i].name);
        if (!space && !verbs[i].is_short)
            count = add_matching(text, verbs[i].name, words, count, most);
        else if (space && verbs[i].complete && strncmp(text, verbs[i].name, length) == 0 &&
                 text[length] == ' ')
            return verbs[i].complete(ui, space + 1, words, most);
    }
    return count;
}

void command_ask(Ui *ui) {
    command_ask_for(ui, "");
}

void command_ask_for(Ui *ui, const char *text) {
    prompt_ask(ui, ":", text, take);
    ui->prompt.complete = complete;
    ui->prompt.has_verbs = true;
    ui->prompt.recalls = true;
    ui->prompt.hint = "tab completes: pause resume stop checkpoint set fork open option help quit";
    if (ui->recalled.count > 0)
        ui->prompt.hint = "up: earlier orders; tab completes: pause resume stop checkpoint set "
                          "fork open option help quit";
}
