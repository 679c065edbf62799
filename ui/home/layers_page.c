// The page of layers in the launch form: every layer of the model, what it is set to, and what it
// would compute in, as the form is and under every format; the memory of it below.
#include <stdio.h>
#include <string.h>

#include "base/rune.h"
#include "base/sanitize.h"
#include "ui/cells/glyphs.h"
#include "ui/cells/theme.h"
#include "ui/cells/words.h"
#include "ui/home/home.h"

enum {
    LEAST_NAME = 12,
    NUMBERS = 10, // columns
    SET = 13,
    FORMAT_COLUMN = 9,
    TROUBLE_ROWS = 2,
    FOOT = 5 + TROUBLE_ROWS, // rows
};

void home_layers_open(Ui *ui) {
    Home *home = home_of(ui);
    if (!home_experiment(home))
        return;
    home->foresight.open = true;
    home->foresight.row = home->foresight.top = home->foresight.column = 0;
    ui->focus[SCREEN_HOME] = ui->maximised[SCREEN_HOME] = PANEL_LAUNCH;
    ui_lay_out(ui);
    home_foresee(ui);
}

void home_layers_close(Ui *ui) {
    Home *home = home_of(ui);
    if (!home->foresight.open)
        return;
    home->foresight.open = false;
    ui->maximised[SCREEN_HOME] = PANEL_NONE;
    ui_lay_out(ui);
}

// ---- what was answered --------------------------------------------------------------------------

static const JsonValue *root_of(const Foresight *foresight) {
    return foresight->answer.count > 0 ? foresight->answer.values : NULL;
}

static const JsonValue *member_of(const Foresight *foresight, const char *name) {
    return json_member(&foresight->answer, root_of(foresight), name);
}

static int layer_count(const Foresight *foresight) {
    const JsonValue *layers = member_of(foresight, "layers");
    return layers ? layers->count : 0;
}

static const JsonValue *layer_at(const Foresight *foresight, int row) {
    const JsonValue *layer = json_first(&foresight->answer, member_of(foresight, "layers"));
    for (int i = 0; layer && i < row; i++)
        layer = json_next(&foresight->answer, layer);
    return layer;
}

static const char *text_in(const Foresight *foresight, const JsonValue *value, const char *name) {
    return json_member_text(&foresight->answer, value, name);
}

static double number_in(const Foresight *foresight, const JsonValue *value, const char *name) {
    return json_member_number(&foresight->answer, value, name, 0);
}

static double total_of(const Foresight *foresight, const JsonValue *memory) {
    return number_in(foresight, memory, "weights") + number_in(foresight, memory, "masters") +
           number_in(foresight, memory, "gradients") + number_in(foresight, memory, "optimizer");
}

static const JsonValue *preset_at(const Foresight *foresight, int at) {
    const JsonValue *preset = json_first(&foresight->answer, member_of(foresight, "under"));
    for (int i = 0; preset && i < at; i++)
        preset = json_next(&foresight->answer, preset);
    return preset;
}

static int preset_count(const Foresight *foresight) {
    const JsonValue *presets = member_of(foresight, "under");
    return presets ? presets->count : 0;
}

// ---- drawing ------------------------------------------------------------------------------------

typedef struct Columns { // where they begin
    int numbers, set, now, presets, shown;
} Columns;

static Columns columns_of(const Foresight *foresight, int width) {
    Columns columns = {.shown = preset_count(foresight)};
    int left = width - 1 - NUMBERS - SET - FORMAT_COLUMN - LEAST_NAME;
    if (columns.shown > left / FORMAT_COLUMN)
        columns.shown = left > 0 ? left / FORMAT_COLUMN : 0;
    columns.presets = width - columns.shown * FORMAT_COLUMN;
    columns.now = columns.presets - FORMAT_COLUMN;
    columns.set = columns.now - SET;
    columns.numbers = columns.set - NUMBERS;
    return columns;
}

static void draw_format(Area area, int column, int row, const char *format) {
    area_text_cut(area, column, row, FORMAT_COLUMN - 1, style_of(theme_format_ink(format)), format);
}

static void draw_titles(const Foresight *foresight, Area area, const Columns *columns) {
    Style dim = style_of(INK_DIM);
    area_text(area, 1, 0, dim, "layer");
    area_text_right(area, columns->numbers + NUMBERS - 1, 0, dim, "numbers");
    area_text(area, columns->set, 0, dim, "set to");
    area_text_cut(area, columns->now, 0, FORMAT_COLUMN - 1, style_bold(INK_BRIGHT), "now");
    for (int i = 0; i < columns->shown; i++) {
        const JsonValue *preset = preset_at(foresight, foresight->column + i);
        if (preset)
            area_outside(area, columns->presets + i * FORMAT_COLUMN, 0, FORMAT_COLUMN - 1, dim,
                         preset->key);
    }
}

static void draw_layer(const Home *home, Area area, const Columns *columns, int line,
                       const JsonValue *layer, bool here) {
    const Foresight *foresight = &home->foresight;
    const char *name = text_in(foresight, layer, "name");
    const FormRule *rule = home_rule_of(home_form(home), name);
    const char *set = rule ? rule->format : text_in(foresight, layer, "set");
    const double numbers = number_in(foresight, layer, "parameters");
    char clean[128];
    sanitize_line(clean, sizeof clean, name, strlen(name));
    area_text_middle(area, 1, line, columns->numbers - 1,
                     here ? style_bold(INK_BRIGHT) : style_of(INK_TEXT), clean);
    if (numbers > 0)
        area_text_right(area, columns->numbers + NUMBERS - 1, line, style_of(INK_DIM),
                        word_short(numbers).text);
    const bool is_auto = strcmp(set, "auto") == 0;
    int column = area_text(area, columns->set, line, style_of(INK_ACCENT), here ? "‹ " : "  ");
    column = area_outside(area, column, line, SET - 4,
                          is_auto ? style_of(INK_DIM) : style_bold(theme_format_ink(set)), set);
    if (here)
        area_text(area, column, line, style_of(INK_ACCENT), " ›");
    draw_format(area, columns->now, line, text_in(foresight, layer, "precision"));
    const JsonValue *under = json_member(&foresight->answer, layer, "under");
    for (int i = 0; i < columns->shown; i++) {
        const JsonValue *preset = preset_at(foresight, foresight->column + i);
        if (preset)
            draw_format(area, columns->presets + i * FORMAT_COLUMN, line,
                        text_in(foresight, under, preset->key));
    }
    if (here)
        area_set_ground(area_part(area, 0, line, area.width, 1), GROUND_SELECTED);
}

static void draw_sum(const Foresight *foresight, Area area, const Columns *columns, int line) {
    area_text(area, 1, line, style_of(INK_DIM), "computed");
    const JsonValue *now = member_of(foresight, "computed");
    area_text_cut(area, columns->now, line, FORMAT_COLUMN - 1, style_bold(INK_BRIGHT),
                  word_bytes((int64_t)total_of(foresight, now)).text);
    for (int i = 0; i < columns->shown; i++) {
        const JsonValue *preset = preset_at(foresight, foresight->column + i);
        if (preset)
            area_text_cut(area, columns->presets + i * FORMAT_COLUMN, line, FORMAT_COLUMN - 1,
                          style_of(INK_TEXT),
                          word_bytes((int64_t)total_of(foresight, preset)).text);
    }
}

static Word bytes_in(const Foresight *foresight, const JsonValue *memory, const char *name) {
    return word_bytes((int64_t)number_in(foresight, memory, name));
}

// What the sum is made of, and what only a run can tell.
static void draw_memory(const Foresight *foresight, Area area, int line) {
    const JsonValue *memory = member_of(foresight, "computed");
    const JsonValue *most = member_of(foresight, "measured");
    char text[400];
    const double weights =
        number_in(foresight, memory, "weights") + number_in(foresight, memory, "masters");
    snprintf(text, sizeof text,
             "computed: weights %s (fp32 masters %s of it), gradients %s, optimizer %s",
             word_bytes((int64_t)weights).text, bytes_in(foresight, memory, "masters").text,
             bytes_in(foresight, memory, "gradients").text,
             bytes_in(foresight, memory, "optimizer").text);
    area_text_cut(area, 1, line, area.width - 2, style_of(INK_TEXT), text);
    snprintf(text, sizeof text, "measured in %s over %.0f steps: %s at most, activations %s",
             text_in(foresight, root_of(foresight), "precision"),
             number_in(foresight, root_of(foresight), "steps"),
             bytes_in(foresight, most, "peak").text, bytes_in(foresight, most, "activations").text);
    area_text_cut(area, 1, line + 1, area.width - 2, style_of(INK_TEXT), text);
}

static void draw_rules(const LaunchForm *form, Area area, int line) {
    char text[300] = "";
    size_t used = 0;
    for (int i = 0; i < form->rule_count && used + 40 < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.60s=%s",
                                 i ? "  " : "set: ", form->rules[i].pattern, form->rules[i].format);
    area_outside(area, 1, line, area.width - 2, style_of(INK_DIM),
                 text[0] ? text : "nothing is set: all layers are as the format says");
}

static void draw_keys(const Ui *ui, Area area, int line) {
    static const struct {
        const char *key, *label;
        bool trains;
    } hints[] = {{"enter", "train", true}, {"< >", "set", false},     {"=", "pattern", false},
                 {"o", "file", false},     {"a", "unset", false},     {"A", "unset all", false},
                 {"f", "format", false},   {"[ ]", "columns", false}, {"esc", "form", false}};
    int column = 1;
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
        if (hints[i].trains && !launch_may(ui))
            continue;
        const int wide = text_width(hints[i].key) + text_width(hints[i].label) + 3;
        if (column + wide > area.width)
            return;
        column = area_text(area, column, line, style_bold(INK_ACCENT), hints[i].key) + 1;
        column = area_text(area, column, line, style_of(INK_DIM), hints[i].label) + 2;
    }
}

static void draw_state(const Home *home, Area area, int line) {
    const Foresight *foresight = &home->foresight;
    const bool is_asked = foresight->ask.process != 0 || foresight->changed_at > 0;
    if (is_asked)
        area_text(area, 1, line, style_of(INK_WARN), "training two steps of it, to see ..");
    else if (foresight->trouble[0]) {
        char clean[ERROR_TEXT_SIZE + 64];
        sanitize_line(clean, sizeof clean, foresight->trouble, strlen(foresight->trouble));
        area_wrap(area_part(area, 1, line, area.width - 2, TROUBLE_ROWS), 0, style_of(INK_BAD),
                  clean);
    }
}

void home_layers_draw(Ui *ui, Area area, bool focused) {
    Home *home = home_of(ui);
    Foresight *foresight = &home->foresight;
    char title[120];
    bool is_default;
    snprintf(title, sizeof title, "layers of %.63s, %.20s", home_experiment(home)->name,
             home_form_value(ui, 0, &is_default));
    if (is_default && root_of(foresight))
        snprintf(title, sizeof title, "layers of %.63s, %.20s", home_experiment(home)->name,
                 text_in(foresight, root_of(foresight), "precision"));
    Area inside = area_box(area, title, "what the run would compute in", focused);
    foresight->height = inside.height - 1 - FOOT;
    if (foresight->height < 1)
        return;
    const Columns columns = columns_of(foresight, inside.width);
    const int count = layer_count(foresight);
    foresight->top =
        home_scroll(foresight->top, foresight->row, layer_count(foresight), foresight->height);
    if (count > 0)
        draw_titles(foresight, inside, &columns);
    const JsonValue *layer = layer_at(foresight, foresight->top);
    for (int line = 0; line < foresight->height && layer; line++) {
        draw_layer(home, inside, &columns, 1 + line, layer,
                   foresight->top + line == foresight->row);
        layer = json_next(&foresight->answer, layer);
    }
    const int foot = inside.height - FOOT;
    if (count > 0) {
        draw_sum(foresight, inside, &columns, foot);
        draw_memory(foresight, inside, foot + 1);
    }
    draw_rules(home_form(home), inside, foot + 3);
    draw_state(home, inside, foot + 4);
    draw_keys(ui, inside, inside.height - 1);
}

// ---- input --------------------------------------------------------------------------------------

// What a layer can be set to here: auto, and the formats that the device was said to train in.
static int list_choices(const Foresight *foresight, const char *choices[FORMAT_COUNT + 1]) {
    int count = 0;
    choices[count++] = "auto";
    for (int i = 0; i < preset_count(foresight) && count <= FORMAT_COUNT; i++) {
        const char *name = preset_at(foresight, i)->key;
        if (format_named(name) != FORMAT_COUNT)
            choices[count++] = name;
    }
    return count;
}

static void turn(Ui *ui, int by) {
    Home *home = home_of(ui);
    Foresight *foresight = &home->foresight;
    const JsonValue *layer = layer_at(foresight, foresight->row);
    if (!layer)
        return;
    const char *name = text_in(foresight, layer, "name"), *choices[FORMAT_COUNT + 1];
    const FormRule *rule = home_rule_of(home_form(home), name);
    const char *set = rule ? rule->format : text_in(foresight, layer, "set");
    int count = list_choices(foresight, choices), at = 0;
    for (int i = 0; i < count; i++)
        if (strcmp(choices[i], set) == 0)
            at = i;
    Error error;
    if (!home_set_rule(home_form(home), name, choices[(at + by + count) % count], &error))
        ui_fail(ui, &error);
}

static bool split_rule(const char *text, char pattern[FORM_PATTERN_SIZE], const char **format,
                       Error *error) {
    const char *equals = strrchr(text, '=');
    if (!equals || equals == text || equals - text >= FORM_PATTERN_SIZE)
        return error_fail(error, ERROR_USAGE, "PATTERN=FORMAT is wanted, as in blocks.*=bf16");
    snprintf(pattern, FORM_PATTERN_SIZE, "%.*s", (int)(equals - text), text);
    *format = equals + 1;
    return true;
}

static bool check_rule(Ui *ui, const char *text, Error *error) {
    char pattern[FORM_PATTERN_SIZE];
    const char *format;
    static LaunchForm tried; // large
    tried = *home_form(home_of(ui));
    return !text[0] || (split_rule(text, pattern, &format, error) &&
                        home_set_rule(&tried, pattern, format, error));
}

static void take_rule(Ui *ui, const char *text) {
    char pattern[FORM_PATTERN_SIZE];
    const char *format;
    Error error;
    if (text[0] && (!split_rule(text, pattern, &format, &error) ||
                    !home_set_rule(home_form(home_of(ui)), pattern, format, &error)))
        ui_fail(ui, &error);
}

static void ask_rule(Ui *ui) {
    const Foresight *foresight = &home_of(ui)->foresight;
    const JsonValue *layer = layer_at(foresight, foresight->row);
    char text[FORM_PATTERN_SIZE + 2] = "";
    if (layer)
        snprintf(text, sizeof text, "%.80s=", text_in(foresight, layer, "name"));
    prompt_ask(ui, "layers", text, take_rule);
    ui->prompt.check = check_rule;
    ui->prompt.hint = "PATTERN=FORMAT, * and ? match any: blocks.*=bf16; what is set last holds";
}

static bool take_policy_row(void *context, const char *pattern, const char *format, Error *error) {
    return home_set_rule(context, pattern, format, error);
}

static bool check_file(Ui *ui, const char *text, Error *error) {
    static LaunchForm tried;
    tried = *home_form(home_of(ui));
    return !text[0] || ui->host->read_policy(text, take_policy_row, &tried, error);
}

static void take_file(Ui *ui, const char *text) {
    Error error;
    if (text[0] && !ui->host->read_policy(text, take_policy_row, home_form(home_of(ui)), &error))
        ui_fail(ui, &error);
}

static void ask_file(Ui *ui) {
    prompt_ask(ui, "policy file", "", take_file);
    ui->prompt.check = check_file;
    ui->prompt.hint = "as mpbench scan -o FILE writes it: its rows are set here";
}

// The form's next format; all else is kept.
static void turn_format(Ui *ui) {
    LaunchForm *form = home_form(home_of(ui));
    int count = 0;
    while (ui->host->precisions[count])
        count++;
    form->choices[0] = (form->choices[0] + 1) % (count + 1);
}

static void move_columns(Ui *ui, int by) {
    Foresight *foresight = &home_of(ui)->foresight;
    const int last = preset_count(foresight) - 1, next = foresight->column + by;
    foresight->column = next < 0 ? 0 : next > last ? (last > 0 ? last : 0) : next;
}

bool home_layers_key(Ui *ui, int key) {
    Home *home = home_of(ui);
    const JsonValue *layer = layer_at(&home->foresight, home->foresight.row);
    switch (key) {
    case '=': ask_rule(ui); break;
    case 'o': ask_file(ui); break;
    case 'f': turn_format(ui); break;
    case '[':
    case ']': move_columns(ui, key == ']' ? 1 : -1); break;
    case 'A': home_drop_rules(home_form(home)); break;
    case 'a':
        if (layer)
            home_drop_rule(home_form(home), text_in(&home->foresight, layer, "name"));
        break;
    default: return false;
    }
    home_foresee(ui);
    return true;
}

bool home_layers_request(Ui *ui, Request request) {
    Home *home = home_of(ui);
    Foresight *foresight = &home->foresight;
    if (home_move(request, layer_count(foresight), foresight->height, &foresight->row))
        return true;
    switch (request) {
    case REQUEST_LEFT: turn(ui, -1); break;
    case REQUEST_RIGHT:
    case REQUEST_SELECT: turn(ui, 1); break;
    case REQUEST_NEXT_PANEL: move_columns(ui, 1); return true;
    case REQUEST_PREVIOUS_PANEL: move_columns(ui, -1); return true;
    case REQUEST_ENTER: home_train(ui); return true;
    case REQUEST_BACK:
    case REQUEST_MAXIMISE:
    case REQUEST_LAYERS: home_layers_close(ui); return true;
    default: return false;
    }
    home_foresee(ui);
    return true;
}

void home_layers_click(Ui *ui, int row, MouseAction action) {
    Foresight *foresight = &home_of(ui)->foresight;
    const int at = foresight->top + row - 1;
    if (action == MOUSE_WHEEL_UP || action == MOUSE_WHEEL_DOWN)
        home_layers_request(ui, action == MOUSE_WHEEL_UP ? REQUEST_UP : REQUEST_DOWN);
    else if (row >= 1 && row <= foresight->height && at < layer_count(foresight)) {
        const bool again = at == foresight->row;
        foresight->row = at;
        if (again)
            home_layers_request(ui, REQUEST_RIGHT);
    }
}
