// The home screen: what can be trained, and what was.
#include "ui/home/home.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ui/cells/words.h"

Home *home_of(const Ui *ui) {
    return ui->state[SCREEN_HOME];
}

bool home_move(Request request, int count, int page, int *at) {
    int next = *at;
    switch (request) {
    case REQUEST_UP: next--; break;
    case REQUEST_DOWN: next++; break;
    case REQUEST_PAGE_UP: next -= page; break;
    case REQUEST_PAGE_DOWN: next += page; break;
    case REQUEST_FIRST: next = 0; break;
    case REQUEST_LAST: next = count - 1; break;
    default: return false;
    }
    next = next < count ? next : count - 1;
    *at = next > 0 ? next : 0;
    return true;
}

int home_scroll(int top, int at, int count, int height) {
    const int last = count > height ? count - height : 0;
    top = top < last ? top : last;
    if (at < top)
        return at;
    return at >= top + height ? at - height + 1 : top;
}

// ---- life ---------------------------------------------------------------------------------------

static bool home_open(Ui *ui, Error *error) {
    Home *home = calloc(1, sizeof *home);
    ui->state[SCREEN_HOME] = home;
    if (!home)
        return error_fail(error, ERROR_MEMORY, "no memory for the screen");
    const UiHost *host = ui->host;
    home->ui = ui;
    if (!host->list_experiments(host->context, &home->experiments, &home->experiment_count, error))
        return false;
    home->forms = calloc((size_t)home->experiment_count + 1, sizeof *home->forms);
    const int first = home_find_experiment(home, home_quick_name, strlen(home_quick_name));
    const bool has_own = home->experiment_count > 0 && home->experiments[0].is_own;
    home->experiment = first >= 0 && !has_own ? first : 0;
    home_read_runs(ui);
    ui->focus[SCREEN_HOME] = home->total > 0 ? PANEL_RUNS : PANEL_EXPERIMENTS;
    return home->forms || error_fail(error, ERROR_MEMORY, "no memory for the screen");
}

static void home_close(Ui *ui) {
    Home *home = home_of(ui);
    home_drop_foreseen(home);
    free(home->experiments);
    free(home->forms);
    store_free_runs(home->runs, home->run_count);
    free(home->preview);
    compare_free(home->comparison);
    free(home);
}

static void home_enter(Ui *ui) {
    home_of(ui)->since_read = home_of(ui)->since_preview = 1e9;
    if (ui->came_from == SCREEN_LIVE)
        home_find_run(ui, ui->run); // that was looked at
    ui->look_now = true; // a key that is typed at the first picture means the run that it shows
}

static bool home_refresh(Ui *ui, double seconds) {
    const double read_every = 0.5, preview_every = 1;
    Home *home = home_of(ui);
    bool changed = false, has_aged = false;
    home->looks += home->looks < 2;
    home->since_read += seconds;
    home->since_preview += seconds;
    if (home->since_read >= read_every) {
        changed = home_read_runs(ui);
        changed |= home->experiment_count > 0 && home_is_old(home, home->experiment);
        has_aged = home_has_aged(ui);
        home->since_read = 0;
    }
    home_open_awaited(ui);
    changed = home_look_foreseen(ui) || changed;
    bool moved = home->preview_of != home->run;
    if (changed || moved || (home->chosen_count > 1 && home->since_preview >= preview_every)) {
        home_read_preview(ui);
        home->since_preview = 0;
        changed = true;
    }
    return home_describe_more(home) || changed || has_aged;
}

// ---- drawing ------------------------------------------------------------------------------------

static void home_header(Ui *ui, Area area) {
    struct stat status;
    char text[96];
    bool has_file = stat(store_file(ui->store), &status) == 0;
    snprintf(text, sizeof text, "history %s run%s · %s", word_count(home_of(ui)->total).text,
             home_of(ui)->total == 1 ? "" : "s", word_bytes(has_file ? status.st_size : 0).text);
    area_text_right(area, area.width, 0, style_of(INK_DIM), text);
}

static void home_draw(Ui *ui, PanelId panel, Area area, bool focused) {
    switch (panel) {
    case PANEL_EXPERIMENTS: home_draw_experiments(ui, area, focused); break;
    case PANEL_LAUNCH: home_draw_launch(ui, area, focused); break;
    case PANEL_RUNS: home_draw_runs(ui, area, focused); break;
    default: home_draw_preview(ui, area, focused);
    }
}

// ---- input --------------------------------------------------------------------------------------

static bool home_request(Ui *ui, Request request) {
    PanelId focus = ui->focus[SCREEN_HOME];
    if (request == REQUEST_ENTER && home_is_enter_again(ui))
        return true;
    switch (request) {
    case REQUEST_QUICK: home_quick_start(ui); return true;
    case REQUEST_MATRIX: home_matrix(ui); return true;
    // Before any are chosen, those that were compared last.
    case REQUEST_TO_COMPARE: return home_compare_chosen(ui);
    default: break;
    }
    if (focus == PANEL_EXPERIMENTS || focus == PANEL_LAUNCH)
        return home_launch_request(ui, focus, request);
    return home_runs_request(ui, request);
}

static bool home_key(Ui *ui, int key) {
    return ui->focus[SCREEN_HOME] == PANEL_LAUNCH && home_launch_key(ui, key);
}

static void home_click(Ui *ui, PanelId panel, int column, int row, MouseAction action) {
    switch (panel) {
    case PANEL_EXPERIMENTS: home_click_experiment(ui, row, action); break;
    case PANEL_LAUNCH: home_click_launch(ui, column, row, action); break;
    case PANEL_RUNS: home_click_run(ui, row, action); break;
    default: break;
    }
}

// Keys of runs do nothing in the panels of experiments, where letters may be a value's.
static const char *home_label(const Ui *ui, Request request, const char *usual) {
    const Home *home = home_of(ui);
    const KeyBinding *binding = &ui->keymap.bindings[request];
    PanelId focus = ui->focus[SCREEN_HOME];
    bool in_form = focus == PANEL_LAUNCH, in_runs = !in_form && focus != PANEL_EXPERIMENTS, can;
    bool may_train = launch_may(ui);
    if (in_form && home_form_takes(ui, binding->first))
        return NULL;
    if (binding->where == ON_ALL)
        return usual;
    switch (request) {
    case REQUEST_COMPARE: can = in_runs && home->chosen_count > 1; break;
    case REQUEST_QUICK: can = may_train && !in_form; break;
    case REQUEST_MATRIX: can = may_train && home->experiment_count > 0; break;
    case REQUEST_LAYERS:
    case REQUEST_SCRIPT: can = !in_runs && home->experiment_count > 0; break;
    case REQUEST_FILTER: can = in_runs && home->total > 0; break;
    default: can = in_runs && home->run_count > 0; break;
    }
    return can ? usual : NULL;
}

static const char *home_explain(PanelId panel) {
    switch (panel) {
    case PANEL_EXPERIMENTS:
        return "What can be trained: each is a Lua script, read with e; those of the folder that "
               "the screen "
               "was started in come first. Enter goes to the form "
               "below "
               "it, and from there enter starts a run that lives on when the screen is closed.";
    case PANEL_LAUNCH:
        return "What the next run will be: left and right turn a choice, a digit begins a new "
               "value. "
               "What is dim is as the experiment says. Enter trains; L shows what every layer "
               "would "
               "compute in and the memory of it, and sets layers; m asks whether to train "
               "three seeds in each format, and says how long that takes.";
    case PANEL_RUNS:
        return "Every run of the history, the newest first; a dot marks one that goes on, "
               "a plus behind a format that layers are set to others, or other kinds than usually "
               "stay in fp32: below it is said which. Enter "
               "opens "
               "it, space chooses it and moves to the next, c compares those chosen; / shows "
               "only some of them. A loss is the last one; where runs are compared it "
               "is the mean of the last tenth.";
    default:
        return "The loss of the run under the cursor, or of those that are chosen, by step. Each "
               "format has one colour everywhere; below it, what the comparison says in a "
               "sentence.";
    }
}

const Screen screen_home = {
    .name = "home",
    .on = ON_HOME,
    .open = home_open,
    .close = home_close,
    .enter = home_enter,
    .refresh = home_refresh,
    .draw_header = home_header,
    .draw_panel = home_draw,
    .request = home_request,
    .key = home_key,
    .click = home_click,
    .explain = home_explain,
    .label = home_label,
};
