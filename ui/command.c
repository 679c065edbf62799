// The line behind ':': the verbs of `mpbench ctl` for the run that is looked at, and a few of the
// screen's own. One table gives what is understood, its completion and its help.
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "store/commands.h"
#include "store/record.h"
#include "store/runs.h"
#include "ui/screen.h"

static void send(Ui *ui, const char *verb, const char *argument) {
    Error error;
    int64_t id;
    if (ui->run == 0)
        ui_say(ui, INK_WARN, "%s: open a run first (enter on it)", verb);
    else if (!launch_is_allowed(ui))
        return;
    else if (!store_send_command(ui->store, ui->run, verb, argument, &id, &error))
        ui_fail(ui, &error);
    else
        ui_say(ui, INK_TEXT, "%s %s: asked; the answer comes with the run's next step", verb,
               argument);
}

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
    if (sscanf(argument, "%63[^= ] %*[= ] %127[^\n]", name, value) < 1 &&
        sscanf(argument, "%63s", name) < 1) {
        ui_say(ui, INK_WARN, "option NAME = VALUE; O shows what there is");
        return;
    }
    if (!settings_set(&ui->settings, name, value, &error)) {
        ui_fail(ui, &error);
        return;
    }
    settings_apply(ui);
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

static const struct Verb {
    const char *name;
    void (*run)(Ui *ui, const char *verb, const char *argument);
    bool has_argument;
} verbs[] = {
    {"pause", send, false},       {"resume", send, false}, {"stop", send, false},
    {"checkpoint", send, false},  {"set", send, true},     {"open", open_named, true},
    {"option", set_option, true}, {"help", help, false},   {"quit", quit, false},
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
        if (verbs[i].has_argument && !*argument)
            ui_say(ui, INK_WARN, "%s: %s", verb,
                   verbs[i].run == send ? "layer.NAME=fp32, loss_scale=1024, lr=1e-3"
                                        : "it needs a word more");
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

// The layers of the run that is looked at, as "layer.NAME="; kept until the next completion.
static int complete_setting(Ui *ui, const char *typed, const char **words, int most) {
    enum { MOST_LAYERS = 256 };
    static char layers[MOST_LAYERS][RECORD_NAME_SIZE + 8];
    int count = 0;
    RunRecord record = {0};
    if (ui->run && store_read_run(ui->store, ui->run, &record, NULL))
        for (int i = 0; i < record.layer_count && i < MOST_LAYERS; i++) {
            snprintf(layers[i], sizeof layers[i], "layer.%s=", record.layers[i].name);
            count = add_matching(typed, layers[i], words, count, most);
        }
    record_clear(&record);
    count = add_matching(typed, "loss_scale=", words, count, most);
    return add_matching(typed, "lr=", words, count, most);
}

static int complete(Ui *ui, const char *text, int *from, const char **words, int most) {
    const char *space = strrchr(text, ' ');
    int count = 0;
    *from = space ? (int)(space + 1 - text) : 0;
    if (!space) {
        for (int i = 0; i < VERBS; i++)
            count = add_matching(text, verbs[i].name, words, count, most);
    } else if (strncmp(text, "set ", 4) == 0) {
        count = complete_setting(ui, space + 1, words, most);
    } else if (strncmp(text, "option ", 7) == 0) {
        for (int i = 0; i < settings_count(); i++)
            count = add_matching(space + 1, settings_name(i), words, count, most);
    }
    return count;
}

void command_ask(Ui *ui) {
    prompt_ask(ui, ":", "", take);
    ui->prompt.complete = complete;
}
