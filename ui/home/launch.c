// Experiments, and the form that launches one.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/rune.h"
#include "base/sanitize.h"
#include "base/whole.h"
#include "store/parameter.h"
#include "ui/cells/glyphs.h"
#include "ui/cells/theme.h"
#include "ui/cells/words.h"
#include "ui/home/home.h"

enum {
    ROW_SCALE = 1,
    ROW_SEED = 3,
    ROW_RECIPE,
    ROW_KEEP,
    ROW_LAYERS,
    BORDER = 1,
    VALUE_COLUMN = 14
};

static const char *const fixed_rows[FORM_FIXED] = {"format", "loss scale", "device", "seed",
                                                   "recipe", "keep fp32",  "layers"};

// ---- experiments --------------------------------------------------------------------------------

bool home_is_old(const Home *home, int which) {
    const UiExperiment *experiment = &home->experiments[which];
    const UiHost *host = home->ui->host;
    return experiment->is_own && experiment->is_described && !home->ui->prompt.open &&
           host->has_changed(host->context, experiment);
}

static void describe(const Home *home, UiExperiment *experiment) {
    home->ui->host->describe_experiment(home->ui->host->context, experiment);
}

// What was typed stays with the parameters that still take it.
static void describe_anew(const Home *home, int which) {
    UiExperiment *experiment = &home->experiments[which];
    const UiExperiment was = *experiment;
    LaunchForm *form = &home->forms[which];
    const LaunchForm typed = *form;
    describe(home, experiment);
    memset(form->values, 0, sizeof form->values);
    for (int i = 0; i < experiment->parameter_count; i++)
        for (int k = 0; k < was.parameter_count; k++) {
            RecordParameter parameter = experiment->parameters[i].usual;
            if (typed.values[k][0] && strcmp(was.parameters[k].usual.name, parameter.name) == 0 &&
                parameter_parse(&parameter, experiment->parameters[i].choices, typed.values[k],
                                NULL))
                memcpy(form->values[i], typed.values[k], sizeof form->values[i]);
        }
    if (form->row >= FORM_FIXED + experiment->parameter_count)
        form->row = 0;
}

// The first picture is not to wait for it.
const UiExperiment *home_experiment_at(const Home *home, int which) {
    UiExperiment *experiment = &home->experiments[which];
    if (home->looks != 1 && home_is_old(home, which))
        describe_anew(home, which);
    else if (home->looks != 1 && !experiment->is_described)
        describe(home, experiment);
    return experiment;
}

const UiExperiment *home_experiment(const Home *home) {
    return home->experiment_count > 0 ? home_experiment_at(home, home->experiment) : NULL;
}

int home_find_experiment(const Home *home, const char *name, size_t length) {
    for (int i = 0; i < home->experiment_count; i++)
        if (strlen(home->experiments[i].name) == length &&
            strncmp(home->experiments[i].name, name, length) == 0)
            return i;
    return -1;
}

// One's own scripts wait until the cursor is on them: at their top may be anything.
bool home_describe_more(Home *home) {
    const double until = clock_seconds() + 0.05; // after which a key is waited for
    bool more = false;
    for (int i = 0; home->looks > 1 && i < home->experiment_count && clock_seconds() < until; i++)
        if (!home->experiments[i].is_described && !home->experiments[i].is_own)
            more = home_experiment_at(home, i)->is_described;
    return more;
}

LaunchForm *home_form(const Home *home) {
    return &home->forms[home->experiment];
}

static const char *const *choices_of(const Ui *ui, int row) {
    const UiHost *host = ui->host;
    const char *const *const lists[] = {host->precisions, host->loss_scales, host->devices};
    return lists[row];
}

// The scale that was typed is a choice after those, where there is one.
static int count_choices(const Ui *ui, int row) {
    const char *const *choices = choices_of(ui, row);
    int count = 0;
    while (choices[count])
        count++;
    return count;
}

static bool is_typed_scale(const Ui *ui, const LaunchForm *form, int row) {
    return row == ROW_SCALE && form->choices[row] > count_choices(ui, row);
}

// ---- the list -----------------------------------------------------------------------------------

// Below the list, where its row has no room for it.
static void draw_about(Area inside, int row, int room, const char *about) {
    char clean[2 * sizeof((UiExperiment *)0)->about];
    sanitize_line(clean, sizeof clean, about, strlen(about));
    Area below = area_part(inside, 1, row, inside.width - 2, inside.height - row);
    if (text_width(clean) > room &&
        area_wrap(area_to_measure(below.width), 0, style_of(INK_DIM), clean) <= below.height)
        area_wrap(below, 0, style_of(INK_DIM), clean);
}

void home_draw_experiments(Ui *ui, Area area, bool focused) {
    enum { NAME = 15 };
    Home *home = home_of(ui);
    Area inside = area_box(area, "experiments", "enter: the form", focused);
    (void)home_experiment(home); // the form, drawn later, would read it anew behind our back
    home->experiment_top =
        home_scroll(home->experiment_top, home->experiment, home->experiment_count, inside.height);
    for (int row = 0; row < inside.height; row++) {
        int i = home->experiment_top + row;
        if (i >= home->experiment_count)
            break;
        bool here = i == home->experiment;
        area_put(inside, 0, row, style_of(INK_ACCENT), here && focused ? GLYPH_CURSOR : ' ');
        const Style style = here ? style_bold(INK_BRIGHT) : style_of(INK_TEXT);
        if (home->experiments[i].is_own) // which often differ in their endings alone
            area_text_middle(inside, 1, row, NAME - 2, style, home->experiments[i].name);
        else
            area_outside(inside, 1, row, NAME - 1, style, home->experiments[i].name);
        area_outside(inside, NAME, row, inside.width - NAME, style_of(INK_DIM),
                     home->experiments[i].about);
        if (here)
            area_set_ground(area_part(inside, 0, row, inside.width, 1), GROUND_SELECTED);
    }
    area_mark_hidden(area, home->experiment_top,
                     home->experiment_count - home->experiment_top - inside.height);
    if (home_experiment(home))
        draw_about(inside, home->experiment_count + 1, inside.width - NAME,
                   home_experiment(home)->about);
}

// ---- the form -----------------------------------------------------------------------------------

// What was typed in a row that takes text, and how much it holds.
static char *text_of(const Home *home, int row, size_t *size) {
    LaunchForm *form = home_form(home);
    *size = row == ROW_RECIPE || row == ROW_KEEP ? FORM_RECIPE_SIZE : FORM_TEXT_SIZE;
    return row == ROW_SCALE    ? form->scale
           : row == ROW_SEED   ? form->seed
           : row == ROW_RECIPE ? form->recipe
           : row == ROW_KEEP   ? form->keep
                               : form->values[row - FORM_FIXED];
}

int home_form_rows(const Home *home) {
    return FORM_FIXED + home_experiment(home)->parameter_count;
}

const char *home_form_value(const Ui *ui, int row, bool *is_default) {
    const Home *home = home_of(ui);
    const LaunchForm *form = home_form(home);
    *is_default = false;
    if (is_typed_scale(ui, form, row))
        return form->scale;
    if (row < ROW_SEED) {
        *is_default = form->choices[row] == 0;
        return *is_default ? "default" : choices_of(ui, row)[form->choices[row] - 1];
    }
    if (row == ROW_LAYERS) {
        *is_default = form->rule_count == 0;
        return *is_default ? "as the format says" : form->rules_text;
    }
    size_t size;
    const char *typed = text_of(home, row, &size);
    *is_default = !typed[0];
    if (typed[0])
        return typed;
    return row == ROW_SEED     ? "1"
           : row == ROW_RECIPE ? "usual"
           : row == ROW_KEEP   ? "as the format says"
                               : home_experiment(home)->parameters[row - FORM_FIXED].value;
}

// What a parameter may be, one of; "": it is typed.
static const char *parameter_choices(const Home *home, int row) {
    if (row < FORM_FIXED)
        return "";
    const UiExperiment *experiment = home_experiment(home);
    return experiment->parameters[row - FORM_FIXED].usual.kind == RECORD_BOOLEAN
               ? "true false"
               : experiment->parameters[row - FORM_FIXED].choices;
}

// Those that are turned, and the one that opens a page.
static bool has_brackets(const Home *home, int row) {
    return row < ROW_SEED || row == ROW_LAYERS || parameter_choices(home, row)[0];
}

static void draw_form_row(const Ui *ui, Area area, int line, int row, bool here) {
    const Home *home = home_of(ui);
    const char *name = row < FORM_FIXED
                           ? fixed_rows[row]
                           : home_experiment(home)->parameters[row - FORM_FIXED].usual.name;
    bool is_default;
    const char *value = home_form_value(ui, row, &is_default);
    Style style = style_of(is_default ? INK_DIM : INK_BRIGHT);
    if (row == 0 && !is_default)
        style = style_bold(theme_format_ink(value));
    area_outside(area, 1, line, VALUE_COLUMN - 2, style_of(INK_DIM), name);
    int column = VALUE_COLUMN;
    if (has_brackets(home, row))
        column = area_text(area, column, line, style_of(INK_ACCENT), "‹ ");
    column = area_outside(area, column, line, area.width - column, style, value);
    if (has_brackets(home, row))
        area_text(area, column, line, style_of(INK_ACCENT), " ›");
    if (here)
        area_set_ground(area_part(area, 0, line, area.width, 1), GROUND_SELECTED);
}

static bool takes_text(const Home *home, int row) {
    return row == ROW_SCALE ||
           (row >= ROW_SEED && row != ROW_LAYERS && !parameter_choices(home, row)[0]);
}

static bool is_of_kind(const Home *home, int row, int kind) {
    return row >= FORM_FIXED &&
           (int)home_experiment(home)->parameters[row - FORM_FIXED].usual.kind == kind;
}

// Where letters begin a value too.
static bool takes_letters(const Home *home, int row) {
    return row == ROW_RECIPE || row == ROW_KEEP ||
           (takes_text(home, row) && is_of_kind(home, row, RECORD_TEXT));
}

// The keys that work in the field that the cursor is in, as many as there is room for.
static void draw_hints(const Ui *ui, Area line, bool in_field) {
    static const struct {
        const char *key, *label;
        bool trains, of_field, is_letter;
    } hints[] = {{"enter", "train", true, false, false}, {"=", "edit", false, true, false},
                 {"L", "layers", false, false, true},    {"e", "script", false, false, true},
                 {"m", "matrix", true, false, true},     {"esc", "out", false, true, false}};
    const Home *home = home_of(ui);
    const bool has_letters = !in_field || !takes_letters(home, home_form(home)->row);
    int column = 1;
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
        int width = text_width(hints[i].key) + 1 + text_width(hints[i].label);
        if ((hints[i].trains && !launch_may(ui)) || (hints[i].of_field && !in_field) ||
            (hints[i].is_letter && !has_letters) || column + width > line.width)
            continue;
        column = area_text(line, column, 0, style_bold(INK_ACCENT), hints[i].key) + 1;
        column = area_text(line, column, 0, style_of(INK_DIM), hints[i].label) + 2;
    }
}

void home_draw_launch(Ui *ui, Area area, bool focused) {
    Home *home = home_of(ui);
    if (home->foresight.open) {
        home_layers_draw(ui, area, focused);
        return;
    }
    const UiExperiment *experiment = home_experiment(home);
    const int field = experiment ? home_form(home)->row : 0;
    bool in_field = experiment && focused && takes_text(home, field);
    Area inside = area_box(area, experiment ? experiment->name : "launch",
                           !in_field && launch_may(ui)  ? "enter trains"
                           : !in_field                  ? "not in the demo"
                           : takes_letters(home, field) ? "letters type · esc: out"
                                                        : "digits type · esc: out",
                           focused);
    if (!experiment || area_is_empty(inside))
        return;
    int rows = home_form_rows(home), at = home_form(home)->row;
    int height = inside.height > rows + 1 ? rows : inside.height - 1;
    int top = home_scroll(home->form_top, at, rows, height > 0 ? height : 1);
    for (int line = 0; line < height; line++)
        draw_form_row(ui, inside, line, top + line, focused && top + line == at);
    home->form_top = top;
    home->form_height = height;
    draw_hints(ui, area_part(inside, 0, inside.height - 1, inside.width, 1), in_field);
}

static void turn(Ui *ui, int by) {
    const Home *home = home_of(ui);
    LaunchForm *form = home_form(home);
    bool is_default;
    if (parameter_choices(home, form->row)[0])
        parameter_turn(parameter_choices(home, form->row),
                       home_form_value(ui, form->row, &is_default), by,
                       form->values[form->row - FORM_FIXED], FORM_TEXT_SIZE);
    if (form->row == ROW_LAYERS)
        home_layers_open(ui);
    if (form->row >= ROW_SEED)
        return;
    int count = 1 + count_choices(ui, form->row) + (form->row == ROW_SCALE && form->scale[0]);
    form->choices[form->row] = (form->choices[form->row] + by + count) % count;
}

// As the command line would take it: what it would refuse is refused while it can be mended.
static bool check_value(Ui *ui, const char *text, Error *error) {
    const Home *home = home_of(ui);
    int row = home_form(home)->row;
    int64_t seed;
    size_t size;
    if (!text[0]) // the default
        return true;
    text_of(home, row, &size);
    if (strlen(text) >= size)
        return error_fail(error, ERROR_USAGE, "a value has up to %zu characters", size - 1);
    if (row == ROW_SEED)
        return whole_parse(text, 0, WHOLE_MOST, &seed, error);
    if (row == ROW_SCALE)
        return ui->host->check_loss_scale(text, error);
    if (row == ROW_RECIPE)
        return ui->host->check_recipe(text, error);
    if (row == ROW_KEEP)
        return ui->host->check_keep(text, error);
    RecordParameter parameter = home_experiment(home)->parameters[row - FORM_FIXED].usual;
    return parameter_parse(&parameter, parameter_choices(home, row), text, error);
}

static void take_value(Ui *ui, const char *text) {
    const Home *home = home_of(ui);
    LaunchForm *form = home_form(home);
    size_t size;
    char *typed = text_of(home, form->row, &size);
    snprintf(typed, size, "%s", text);
    if (form->row == ROW_SCALE)
        form->choices[ROW_SCALE] = text[0] ? count_choices(ui, ROW_SCALE) + 1 : 0;
}

static void move_row(Ui *ui, int by) {
    const Home *home = home_of(ui);
    int rows = home_form_rows(home);
    home_form(home)->row = (home_form(home)->row + by + rows) % rows;
}

static void ask_value(Ui *ui, const char *text) {
    const Home *home = home_of(ui);
    int row = home_form(home)->row;
    prompt_ask(ui,
               row < FORM_FIXED ? fixed_rows[row]
                                : home_experiment(home)->parameters[row - FORM_FIXED].usual.name,
               text, take_value);
    ui->prompt.check = check_value;
    ui->prompt.moved = move_row;
    ui->prompt.hint = "enter keeps it · up, down and tab keep it and go on · empty: the default";
}

// What begins a value: digits, and in a field of text letters.
static bool begins_value(const Home *home, int row, int key) {
    if (!takes_text(home, row) || key < '!' || key > '~')
        return false;
    return (key >= '0' && key <= '9') || key == '.' || (key == '-' && row >= FORM_FIXED) ||
           (takes_letters(home, row) && isalpha(key));
}

// Letters that mean something else beside the form, and are slips of the finger in it.
static bool is_refused(int key) {
    static const char kept[] = "emhjklgGqzL"; // ? : / and = are no letters
    return key < 128 && isalpha(key) && !strchr(kept, key);
}

bool home_form_takes(const Ui *ui, int key) {
    const Home *home = home_of(ui);
    if (home->foresight.open)
        return true;
    return home_experiment(home) &&
           (begins_value(home, home_form(home)->row, key) || is_refused(key));
}

bool home_launch_key(Ui *ui, int key) {
    const Home *home = home_of(ui);
    bool is_default;
    if (home->foresight.open)
        return home_layers_key(ui, key);
    if (!home_experiment(home))
        return false;
    int row = home_form(home)->row;
    if (begins_value(home, row, key)) {
        ask_value(ui, (char[]){(char)key, 0});
    } else if (parameter_choices(home, row)[0] &&
               (key == KEY_CODE_BACKSPACE || key == KEY_CODE_DELETE)) {
        home_form(home)->values[row - FORM_FIXED][0] = 0; // the default
    } else if (takes_text(home, row) && (key == KEY_CODE_BACKSPACE || key == KEY_CODE_DELETE)) {
        ask_value(ui, "");
    } else if (takes_text(home, row) && key == '=') {
        const char *value = home_form_value(ui, row, &is_default);
        ask_value(ui, is_default && row <= ROW_KEEP && row != ROW_SEED ? "" : value);
    } else if (is_refused(key)) {
        ui_say(ui, INK_WARN, "no key of the form: digits type a value, enter trains, esc goes out");
    } else {
        return false;
    }
    return true;
}

// ---- input --------------------------------------------------------------------------------------

static void show_script(Ui *ui) {
    const UiExperiment *experiment = home_experiment(home_of(ui));
    Error error;
    char *text = ui->host->read_experiment(ui->host->context, experiment->name, &error);
    if (text)
        pager_show(ui, experiment->name, text);
    else
        ui_fail(ui, &error);
}

// Beside the list, where that filled the screen.
static void go_to_form(Ui *ui) {
    ui->maximised[SCREEN_HOME] = PANEL_NONE;
    ui->focus[SCREEN_HOME] = PANEL_LAUNCH;
    ui_lay_out(ui);
}

bool home_launch_request(Ui *ui, PanelId panel, Request request) {
    Home *home = home_of(ui);
    enum { PAGE = 8 };
    if (!home_experiment(home))
        return false;
    bool in_form = panel == PANEL_LAUNCH;
    if (home->foresight.open && home_layers_request(ui, request))
        return true;
    if (in_form ? home_move(request, home_form_rows(home), PAGE, &home_form(home)->row)
                : home_move(request, home->experiment_count, PAGE, &home->experiment))
        return true;
    switch (request) {
    case REQUEST_LEFT:
    case REQUEST_RIGHT:
        if (in_form)
            turn(ui, request == REQUEST_RIGHT ? 1 : -1);
        return true;
    case REQUEST_SELECT:
        if (in_form)
            turn(ui, 1);
        return true;
    case REQUEST_ENTER:
        if (in_form)
            home_train(ui);
        else
            go_to_form(ui);
        return true;
    case REQUEST_SCRIPT: show_script(ui); return true;
    case REQUEST_LAYERS: home_layers_open(ui); return true;
    case REQUEST_BACK: // out of the field, where digits go to screens again
        if (in_form)
            ui->focus[SCREEN_HOME] = PANEL_EXPERIMENTS;
        return in_form;
    default: return false;
    }
}

void home_click_experiment(Ui *ui, int row, MouseAction action) {
    Home *home = home_of(ui);
    int i = home->experiment_top + row - BORDER;
    if (action == MOUSE_WHEEL_UP || action == MOUSE_WHEEL_DOWN)
        home_launch_request(ui, PANEL_EXPERIMENTS,
                            action == MOUSE_WHEEL_UP ? REQUEST_UP : REQUEST_DOWN);
    else if (i >= 0 && i < home->experiment_count)
        home->experiment = i;
    if (action == MOUSE_DOUBLE)
        go_to_form(ui);
}

// "‹ value ›" begins at VALUE_COLUMN.
static bool is_right_bracket(const Ui *ui, int row, int column) {
    bool is_default;
    int at = VALUE_COLUMN + 2 + text_width(home_form_value(ui, row, &is_default)) + 1;
    return column == at || column == at - 1;
}

void home_click_launch(Ui *ui, int column, int row, MouseAction action) {
    const Home *home = home_of(ui);
    if (!home_experiment(home))
        return;
    LaunchForm *form = home_form(home);
    const int line = row - BORDER, at = home->form_top + line;
    if (home->foresight.open) {
        home_layers_click(ui, line, action);
        return;
    }
    if (action == MOUSE_WHEEL_UP || action == MOUSE_WHEEL_DOWN) {
        home_launch_request(ui, PANEL_LAUNCH, action == MOUSE_WHEEL_UP ? REQUEST_UP : REQUEST_DOWN);
        return;
    }
    if (line < 0 || line >= home->form_height)
        return;
    bool again = form->row == at, is_default;
    form->row = at;
    bool is_left = column - BORDER >= VALUE_COLUMN && column - BORDER < VALUE_COLUMN + 2;
    if (at == ROW_LAYERS && again)
        home_layers_open(ui);
    else if (has_brackets(home, at) && at != ROW_LAYERS &&
             (again || is_left || is_right_bracket(ui, at, column - BORDER)))
        turn(ui, is_left ? -1 : 1);
    else if (again) {
        const char *value = home_form_value(ui, at, &is_default);
        ask_value(ui, is_default && (at == ROW_RECIPE || at == ROW_KEEP) ? "" : value);
    }
}
