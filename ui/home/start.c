// Starting what the form describes: one run, two side by side, a matrix.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "ui/home/home.h"

static const char *const fixed_options[FORM_FIXED] = {"--precision", "--loss-scale", "--device",
                                                      "--seed", "--recipe"};

enum { MOST_ARGUMENTS = 16 + 2 * FORM_MOST };

typedef struct Arguments { // of a worker
    const char *list[MOST_ARGUMENTS];
    int count;
    char settings[UI_MOST_PARAMETERS][2 * FORM_TEXT_SIZE + 2];
} Arguments;

static void add(Arguments *arguments, const char *a, const char *b) {
    arguments->list[arguments->count++] = a;
    if (b)
        arguments->list[arguments->count++] = b;
}

static void add_form(const Ui *ui, Arguments *arguments, bool all) {
    const Home *home = home_of(ui);
    const LaunchForm *form = home_form(home);
    for (int row = 0; row < home_form_rows(home); row++) {
        bool is_default, is_fixed = row < FORM_FIXED;
        const char *value = home_form_value(ui, row, &is_default);
        // Formats and seeds are what its runs differ in.
        bool belongs_to_matrix = !is_fixed || (strcmp(fixed_options[row], "--precision") != 0 &&
                                               strcmp(fixed_options[row], "--seed") != 0);
        if (is_default || (!all && !belongs_to_matrix))
            continue;
        if (is_fixed) {
            add(arguments, fixed_options[row], value);
            continue;
        }
        char *setting = arguments->settings[row - FORM_FIXED];
        snprintf(setting, sizeof arguments->settings[0], "%s=%s",
                 home_experiment(home)->parameters[row - FORM_FIXED].usual.name,
                 form->values[row - FORM_FIXED]);
        add(arguments, "--set", setting);
    }
}

static bool start(Ui *ui, Arguments *arguments, int64_t *process) {
    Error error;
    arguments->list[arguments->count] = NULL;
    if (launch_worker(ui, arguments->list, process, &error))
        return true;
    ui_fail(ui, &error);
    return false;
}

// Its run opens once it is there.
static bool start_awaited(Ui *ui, Arguments *arguments) {
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
    bool goes_to_form = focus == PANEL_EXPERIMENTS && layout_find(&ui->layout, PANEL_LAUNCH);
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
    Arguments arguments = {.count = 0};
    if (!experiment || !launch_is_allowed(ui))
        return;
    add(&arguments, "run", experiment->name);
    add(&arguments, "--quiet", NULL);
    add_form(ui, &arguments, true);
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
static const char quick_name[] = "fashion_cnn";

static void start_quick(Ui *ui, const char *text) {
    (void)text;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    char threads[24];
    snprintf(threads, sizeof threads, "%ld", processors > 1 ? processors / 2 : 1);
    home_await_none(ui);
    for (int i = 0; i < 2; i++) {
        Arguments arguments = {.count = 0};
        add(&arguments, "run", quick_name);
        add(&arguments, "--quiet", NULL);
        add(&arguments, "--precision", quick_precisions[i]);
        add(&arguments, "--seed", "1");
        add(&arguments, "--threads", threads);
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
    for (int i = 0; i < home->experiment_count; i++)
        if (strcmp(home->experiments[i].name, quick_name) == 0)
            plan.experiment = &home->experiments[i];
    if (!launch_is_allowed(ui))
        return;
    if (plan.experiment)
        home_ask_plan(ui, &plan, start_quick);
    else
        ui_say(ui, INK_WARN, "%s is not among the experiments here", quick_name);
}

enum { MATRIX_SEEDS = 3 };

static void start_matrix(Ui *ui, const char *text) {
    (void)text;
    Home *home = home_of(ui);
    int chosen = home->experiment;
    Arguments arguments = {.count = 0};
    char list[FORMAT_LIST_SIZE], seeds[8];
    home->experiment = home->planned; // what was asked about, wherever the cursor is by now
    add(&arguments, "matrix", home_experiment(home)->name);
    snprintf(seeds, sizeof seeds, "%d", MATRIX_SEEDS);
    add(&arguments, "--precision", format_list(list, format_trains, ",", ","));
    add(&arguments, "--seeds", seeds);
    add(&arguments, "--quiet", NULL);
    add_form(ui, &arguments, false);
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
