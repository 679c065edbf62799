// ui/home/home.h: what the files of the home screen share, and nobody else sees: the experiments
// with the form that launches them, and the runs with a preview of those that are chosen. Main
// thread.
#pragma once

#include "base/json_read.h"
#include "compare/compare.h"
#include "number/format.h"
#include "store/runs.h"
#include "ui/cells/plot.h"
#include "ui/screen.h"

enum {
    FORM_TEXT_SIZE = 64,
    FORM_RECIPE_SIZE = 192,
    FORM_PATTERN_SIZE = 96,
    FORM_FORMAT_SIZE = 16,
    FORM_MOST_RULES = 200,
    FORM_FIXED = 7,
    FORM_MOST = FORM_FIXED + UI_MOST_PARAMETERS,
    HOME_MOST_CHOSEN = UI_MOST_COMPARED,
    HOME_MOST_AWAITED = 2,
    HOME_MOST_PLANNED = FORMAT_COUNT,
};

typedef struct FormRule { // as --layer PATTERN=FORMAT
    char pattern[FORM_PATTERN_SIZE], format[FORM_FORMAT_SIZE];
} FormRule;

typedef struct LaunchForm { // of one experiment; rows: precision, scale, device, seed, recipe,
                            // what stays in fp32, layers, parameters
    int choices[3];         // of the first three; 0: as the experiment says
    char scale[FORM_TEXT_SIZE], seed[FORM_TEXT_SIZE]; // as typed; the scale is a choice more
    char recipe[FORM_RECIPE_SIZE];                    // "": the usual one
    char keep[FORM_RECIPE_SIZE];                      // "": as the format says
    FormRule rules[FORM_MOST_RULES];                  // of layers; the last match holds
    int rule_count;
    char rules_text[24];                             // "3 set"; "" where there are none
    char values[UI_MOST_PARAMETERS][FORM_TEXT_SIZE]; // as the user set them; "": the default
    int row;
} LaunchForm;

// What the form under the cursor would train, as a child of this program says that is asked
// (`mpbench run .. --dry-run --json`), while the page of layers is open.
typedef struct Foresight {
    bool open;
    UiAsk ask;
    const UiExperiment *experiment; // that it is of,
    LaunchForm form;                // and as what it was asked
    double changed_at;              // clock_seconds; the form, since it was asked. 0: not
    JsonTree answer;                // empty: none yet
    char trouble[ERROR_TEXT_SIZE];  // why there is none; "": nothing
    int row, top, column;           // the layer under the cursor; of the first preset shown
    int height;                     // of the list, as drawn
} Foresight;

typedef enum HomeSort { SORT_AGE, SORT_LOSS, SORT_RATE, SORT_MEMORY, SORT_STATUS, SORTS } HomeSort;

typedef struct Home {
    const Ui *ui;
    UiExperiment *experiments; // those that nobody looked at may not be described yet
    LaunchForm *forms;         // one an experiment
    int experiment_count, experiment, experiment_top;
    int form_top, form_height; // of the form under the cursor, as drawn
    int looks;                 // at the history; after the first comes the first picture

    RunRecord *runs; // as filtered and sorted
    int run_count, run_top;
    int64_t run;                                          // under the cursor; 0: none
    char filter[PROMPT_SIZE], filter_before[PROMPT_SIZE]; // before it was typed at,
    int64_t run_before;                                   // and what the cursor was on
    HomeSort sort;
    int64_t chosen[HOME_MOST_CHOSEN]; // stay chosen where a filter hides them
    int chosen_count;
    int64_t doomed[HOME_MOST_CHOSEN]; // what the question about deleting named, and nothing else
    int doomed_count;
    int64_t total;   // runs in the history, whatever the filter
    int64_t aged_ms; // when ages were looked at last

    struct HomeAwaited {      // workers that were started here, whose runs have not been shown yet
        int64_t process, run; // 0: it has none yet
    } awaited[HOME_MOST_AWAITED];
    int awaited_count;
    const UiExperiment *launched; // the last one, and as what
    LaunchForm launched_as;
    double launched_at;    // clock_seconds
    int64_t awaited_after; // their runs are newer than this one

    int planned;    // the experiment that was asked about
    int64_t matrix; // process of the last matrix that was started here; 0: none
    int matrix_of;  // its experiment

    Foresight foresight;

    int64_t preview_of; // whose preview it is; 0: of none; HOME_UNREAD: to be read
    PlotPoint *preview;
    int preview_count;
    bool preview_is_profile; // without losses, since it is of where the time of steps goes
    Comparison *comparison;  // of those that are chosen; NULL: fewer than two
    char preview_text[COMPARE_TEXT_SIZE];
    double since_read, since_preview; // seconds
} Home;

Home *home_of(const Ui *ui);

// launch.c
void home_draw_experiments(Ui *ui, Area area, bool focused);
void home_draw_launch(Ui *ui, Area area, bool focused);
bool home_launch_request(Ui *ui, PanelId panel, Request request);
bool home_launch_key(Ui *ui, int key);
// Whether the form types the key or refuses it, so that it asks for nothing else.
bool home_form_takes(const Ui *ui, int key);
void home_click_experiment(Ui *ui, int row, MouseAction action);
void home_click_launch(Ui *ui, int column, int row, MouseAction action);
const UiExperiment *home_experiment(const Home *home); // under the cursor; NULL: there is none
const UiExperiment *home_experiment_at(const Home *home, int which);
// Its script was written anew; false while something is typed: what asks for it stays as it is.
bool home_is_old(const Home *home, int which);
// The number of that of this name, `length` bytes of it; -1: there is none.
int home_find_experiment(const Home *home, const char *name, size_t length);
// What they say of themselves is read behind the first picture, a few a look. True: some was.
bool home_describe_more(Home *home);
LaunchForm *home_form(const Home *home); // of the one under the cursor
int home_form_rows(const Home *home);
// What a row shows: the choice, what was typed, or the default.
const char *home_form_value(const Ui *ui, int row, bool *is_default);

// foresight.c: what the form would train, asked for while it is not waited for.
void home_foresee(Ui *ui);           // asks, where the page is open and the form changed
bool home_look_foreseen(Ui *ui);     // true: what is shown changed
void home_drop_foreseen(Home *home); // lets go of all of it
// Sets a layer, or what a pattern matches; the rule of that name that was there is replaced.
bool home_set_rule(LaunchForm *form, const char *pattern, const char *format,
                   Error *error) MUST_CHECK;
void home_drop_rules(LaunchForm *form);
// The last rule that names a layer just so; NULL: none does.
const FormRule *home_rule_of(const LaunchForm *form, const char *layer);
// Lets a layer be as all else says: its own rule goes.
void home_drop_rule(LaunchForm *form, const char *layer);

// layers_page.c: the page of layers, in place of the form.
void home_layers_open(Ui *ui);
void home_layers_close(Ui *ui);
void home_layers_draw(Ui *ui, Area area, bool focused);
bool home_layers_request(Ui *ui, Request request); // true: taken
bool home_layers_key(Ui *ui, int key);             // true: taken
void home_layers_click(Ui *ui, int row, MouseAction action);

// start.c
// The arguments of what the form describes, ended by NULL, with `first` and its operand before
// them: `list` has room for HOME_MOST_ARGUMENTS and borrows from `settings`.
enum { HOME_UNREAD = -1 };
enum { HOME_MOST_ARGUMENTS = 40 + 2 * (FORM_MOST + FORM_MOST_RULES) };
typedef char FormSetting[FORM_PATTERN_SIZE + FORM_TEXT_SIZE];
typedef struct HomeArguments { // of a worker
    const char *list[HOME_MOST_ARGUMENTS];
    int count;
    FormSetting settings[UI_MOST_PARAMETERS + FORM_MOST_RULES];
    int setting_count;
} HomeArguments;
void home_add_argument(HomeArguments *arguments, const char *a, const char *b); // NULL: no b
// `all`: also what the runs of a matrix differ in.
void home_add_form(const Ui *ui, HomeArguments *arguments, bool all);
// Starts the experiment under the cursor with what its form says.
void home_train(Ui *ui);
// Enter was pressed once more while that starts; says so.
bool home_is_enter_again(Ui *ui);
// The experiment to begin with, in fp32 and mixed precision, side by side.
extern const char home_quick_name[];
void home_quick_start(Ui *ui);
void home_matrix(Ui *ui);

// plan.c: asks whether to start that, and says how long it takes.
typedef struct HomePlan {
    const UiExperiment *experiment;
    const LaunchForm *form; // whose parameters count; NULL: the usual ones
    const char *precisions[HOME_MOST_PLANNED];
    int count, seeds; // of each
    bool at_once;
} HomePlan;

void home_ask_plan(Ui *ui, const HomePlan *plan, void (*start)(Ui *ui, const char *text));

// await.c: what was started here opens, or is compared where it is several, once it is in the
// history, by itself: the run of that very worker, and not before the user is done with what is
// typed or read over the screen. A worker that ends without a run is waited for no more.
void home_await_none(Ui *ui); // before the first of them is started
void home_await(Ui *ui, int64_t process);
void home_open_awaited(Ui *ui);     // if it is time
bool home_awaits(const Home *home); // one has no run yet

// runs.c
bool home_read_runs(Ui *ui); // true: something changed
// Whether an age that is shown has another word than at the last look.
bool home_has_aged(Ui *ui);
// Reads them, and puts the cursor on the run where it is among them.
void home_find_run(Ui *ui, int64_t run);
const RunRecord *home_listed(const Home *home, int64_t run); // NULL: it is not in the list
int home_index(const Home *home);                            // of the one under the cursor
void home_sort(Home *home);                                  // what was read, as is asked
const char *home_sort_name(const Home *home);
bool home_is_named(const RunRecord *run); // by somebody, and not by its experiment alone
bool home_is_chosen(const Home *home, int64_t run);
int home_hidden(const Home *home); // how many of those chosen the filter hides
// table.c
void home_draw_runs(Ui *ui, Area area, bool focused);
void home_click_run(Ui *ui, int row, MouseAction action);
// orders.c
bool home_runs_request(Ui *ui, Request request);
bool home_compare_chosen(Ui *ui); // false: fewer than two are
// preview.c
void home_read_preview(Ui *ui);
void home_draw_preview(Ui *ui, Area area, bool focused);

// Moves a cursor by lines, pages or to an end; false: the request is none of these.
bool home_move(Request request, int count, int page, int *at);
// The first line shown so that the cursor is seen, and no room stays empty that lines could fill.
int home_scroll(int top, int at, int count, int height);
