// Starting what the form describes: one run, two side by side, a matrix.
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/load.h"
#include "ui/home/home.h"

// In the order of the form's rows; NULL: those of layers, which are several.
static const char *const fixed_options[FORM_FIXED] = {
    "--precision", "--loss-scale", "--device", "--seed", "--recipe", "--keep-fp32", NULL};

void home_add_argument(HomeArguments *arguments, const char *a, const char *b) {
    arguments->list[arguments->count++] = a;
    if (b)
        arguments->list[arguments->count++] = b;
    arguments->list[arguments->count] = NULL;
}

static void add_setting(HomeArguments *arguments, const char *option, const char *name,
                        const char *value) {
    char *setting = arguments->settings[arguments->setting_count++];
    snprintf(setting, sizeof(FormSetting), "%s=%s", name, value);
    home_add_argument(arguments, option, setting);
}

void home_add_form(const Ui *ui, HomeArguments *arguments, bool all) {
    const Home *home = home_of(ui);
    const LaunchForm *form = home_form(home);
    for (int row = 0; row < home_form_rows(home); row++) {
        bool is_default, is_fixed = row < FORM_FIXED;
        const char *value = home_form_value(ui, row, &is_default);
        const char *option = is_fixed ? fixed_options[row] : NULL;
        // Formats and seeds are what its runs differ in.
        bool belongs_to_matrix =
            !option || (strcmp(option, "--precision") != 0 && strcmp(option, "--seed") != 0);
        if (is_default || (!all && !belongs_to_matrix))
            continue;
        if (option)
            home_add_argument(arguments, option, value);
        for (int i = 0; is_fixed && !option && i < form->rule_count; i++)
            add_setting(arguments, "--layer", form->rules[i].pattern, form->rules[i].format);
        if (!is_fixed)
            add_setting(arguments, "--set",
                        home_experiment(home)->parameters[row - FORM_FIXED].usual.name,
                        form->values[row - FORM_FIXED]);
    }
}

static bool start(Ui *ui, const HomeArguments *arguments, int64_t *process) {
    Error error;
    if (launch_worker(ui, arguments->list, process, &error))
        return true;
    ui_fail(ui, &error);
    return false;
}

// Its run opens once it is there.
static bool start_awaited(Ui *ui, const HomeArguments *arguments) {
    int64_t process;
    bool done = start(ui, arguments, &process);
    if (done)
        home_await(ui, process);
    return done;
}

// Enter that comes again before the run is there is a slip of the finger: it trains no second one
// of the same, and opens no other run in the list that the cursor went to.
static bool is_starting(const Home *home) {
    LaunchForm form = *home_form(home);
    form.row = home->launched_as.row;
    return home_awaits(home) && home->launched == home_experiment(home) &&
           memcmp(&form, &home->launched_as, sizeof form) == 0;
}

bool home_is_enter_again(Ui *ui) {
    const double a_slip = 1; // seconds
    const Home *home = home_of(ui);
    PanelId focus = ui->focus[SCREEN_HOME];
    bool goes_to_form = focus == PANEL_EXPERIMENTS;
    bool is_late = focus == PANEL_RUNS && clock_seconds() - home->launched_at > a_slip;
    if (goes_to_form || is_late || !home_experiment(home) || !is_starting(home))
        return false;
    ui_say(ui, INK_WARN, "%s is starting already: it opens when its first step is there",
           home->launched->name);
    return true;
}

void home_train(Ui *ui) {
    Home *home = home_of(ui);
    const UiExperiment *experiment = home_experiment(home);
    HomeArguments arguments = {.count = 0};
    if (!experiment || !launch_is_allowed(ui))
        return;
    home_add_argument(&arguments, "run", experiment->name);
    home_add_argument(&arguments, "--quiet", NULL);
    home_add_form(ui, &arguments, true);
    home_layers_close(ui);
    ui->focus[SCREEN_HOME] = PANEL_RUNS; // where it shows up; back from it, a digit is no value
    home_await_none(ui);
    home->launched = experiment;
    home->launched_as = *home_form(home);
    home->launched_at = clock_seconds();
    if (start_awaited(ui, &arguments))
        ui_say(ui, INK_GOOD, "%s is starting; it opens when its first step is there",
               experiment->name);
}

static const char *const quick_precisions[] = {"fp32", "amp"};
const char home_quick_name[] = "fashion_cnn";

static void start_quick(Ui *ui, const char *text) {
    (void)text;
    const int processors = load_processors();
    char threads[24];
    snprintf(threads, sizeof threads, "%d", processors > 1 ? processors / 2 : 1);
    home_await_none(ui);
    for (int i = 0; i < 2; i++) {
        HomeArguments arguments = {.count = 0};
        home_add_argument(&arguments, "run", home_quick_name);
        home_add_argument(&arguments, "--quiet", NULL);
        home_add_argument(&arguments, "--precision", quick_precisions[i]);
        home_add_argument(&arguments, "--seed", "1");
        home_add_argument(&arguments, "--threads", threads);
        if (!start_awaited(ui, &arguments))
            return;
    }
    ui_say(ui, INK_GOOD, "fashion_cnn is starting in fp32 and in mixed precision, side by side");
}

void home_quick_start(Ui *ui) {
    const Home *home = home_of(ui);
    HomePlan plan = {.precisions = {quick_precisions[0], quick_precisions[1]},
                     .count = 2,
                     .seeds = 1,
                     .at_once = true};
    const int at = home_find_experiment(home, home_quick_name, strlen(home_quick_name));
    if (!launch_is_allowed(ui))
        return;
    if (at >= 0) {
        plan.experiment = home_experiment_at(home, at);
        home_ask_plan(ui, &plan, start_quick);
    } else {
        ui_say(ui, INK_WARN, "%s is not among the experiments here", home_quick_name);
    }
}

enum { MATRIX_SEEDS = 3 };

static void start_matrix(Ui *ui, const char *text) {
    (void)text;
    Home *home = home_of(ui);
    int chosen = home->experiment;
    HomeArguments arguments = {.count = 0};
    char list[FORMAT_LIST_SIZE], seeds[8];
    home->experiment = home->planned; // what was asked about, wherever the cursor is by now
    home_add_argument(&arguments, "matrix", home_experiment(home)->name);
    snprintf(seeds, sizeof seeds, "%d", MATRIX_SEEDS);
    home_add_argument(&arguments, "--precision", format_list(list, format_trains, ",", ","));
    home_add_argument(&arguments, "--seeds", seeds);
    home_add_argument(&arguments, "--quiet", NULL);
    home_add_form(ui, &arguments, false);
    if (start(ui, &arguments, &home->matrix)) {
        home->matrix_of = home->planned;
        ui_say(ui, INK_GOOD, "%s: its runs show up here as they start, one after another",
               home_experiment(home)->name);
    }
    home->experiment = chosen;
}

void home_matrix(Ui *ui) {
    Home *home = home_of(ui);
    const UiExperiment *experiment = home_experiment(home);
    if (!experiment || !launch_is_allowed(ui))
        return;
    if (home->matrix > 0 && home->matrix_of == home->experiment && launch_goes_on(home->matrix)) {
        ui_say(ui, INK_WARN, "%s: its matrix is being trained: wait for it to end",
               experiment->name);
        return;
    }
    home->planned = home->experiment;
    Format formats[FORMAT_COUNT];
    HomePlan plan = {.experiment = experiment,
                     .form = home_form(home),
                     .count = format_pick(formats, format_trains),
                     .seeds = MATRIX_SEEDS};
    for (int i = 0; i < plan.count; i++)
        plan.precisions[i] = format_name(formats[i]);
    home_ask_plan(ui, &plan, start_matrix);
}
