#include "ui/ui.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/rune.h"
#include "base/sanitize.h"
#include "store/runs.h"
#include "ui/glyphs.h"
#include "ui/screen.h"

static const Screen *const screens[SCREENS] = {
    [SCREEN_HOME] = &screen_home,
    [SCREEN_LIVE] = &screen_live,
    [SCREEN_COMPARE] = &screen_compare,
    [SCREEN_FORMATS] = &screen_formats,
};

const Screen *ui_screen(const Ui *ui) {
    return screens[ui->screen];
}

int64_t ui_now_ms(void) {
    const char *held = getenv("MPBENCH_SCREEN_CLOCK");
    if (held && held[0])
        return strtoll(held, NULL, 10);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// ---- going about --------------------------------------------------------------------------------

static void lay_out(Ui *ui) {
    ui->layout =
        layout_of(ui->screen, ui->frame.columns, ui->frame.rows, ui->maximised[ui->screen]);
    if (ui->layout.count > 0 && !layout_find(&ui->layout, ui->focus[ui->screen]))
        ui->focus[ui->screen] = ui->layout.panels[0].id;
    ui->dirty = true;
}

void ui_go(Ui *ui, ScreenId screen) {
    ui->came_from = ui->screen;
    ui->screen = screen;
    lay_out(ui);
    screens[screen]->enter(ui);
}

void ui_open_run(Ui *ui, int64_t run) {
    ui->run = run;
    ui_go(ui, SCREEN_LIVE);
}

void ui_compare(Ui *ui, const int64_t *runs, int count) {
    enum { MOST = sizeof ui->runs / sizeof *ui->runs };
    ui->run_count = count < MOST ? count : MOST;
    memcpy(ui->runs, runs, (size_t)ui->run_count * sizeof *runs);
    ui_go(ui, SCREEN_COMPARE);
}

void ui_say(Ui *ui, Ink ink, const char *format, ...) {
    const double seconds = 6;
    char text[MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    sanitize_line(ui->message, sizeof ui->message, text, strlen(text));
    ui->message_ink = ink;
    ui->message_until = clock_seconds() + seconds;
    ui->dirty = true;
}

void ui_fail(Ui *ui, const Error *error) {
    ui_say(ui, INK_BAD, "%s", error->text);
}

static void resize(Ui *ui) {
    int columns, rows;
    terminal_size(&columns, &rows);
    Error error;
    if (!frame_init(&ui->frame, columns, rows, &error))
        ui_fail(ui, &error); // goes on with the size there was
    lay_out(ui);
}

// ---- drawing ------------------------------------------------------------------------------------

// Where the name of a screen stands in the header, behind its digit. Where a narrow terminal leaves
// the header's words no room, the screens that are not in front keep their digits alone.
static int place_name(const Ui *ui, int screen, char *text, size_t size) {
    enum { ALL_NAMES = 100 };
    bool is_wide = ui->frame.columns >= ALL_NAMES;
    bool has_room = is_wide || ui->screen != SCREEN_LIVE;
    int column = 1 + (is_wide ? text_width("mpbench") + 1 : 0);
    text[0] = 0;
    for (int i = 0; i <= screen; i++) {
        column += text_width(text);
        bool has_name = has_room || i == (int)ui->screen;
        snprintf(text, size, has_name ? " %d %s " : "%d ", i + 1, has_name ? screens[i]->name : "");
    }
    return column;
}

static void draw_header(Ui *ui, Area area) {
    char text[32];
    int end = place_name(ui, 0, text, sizeof text);
    if (end > 1)
        area_text(area, 1, 0, style_bold(INK_ACCENT), "mpbench");
    for (int i = 0; i < SCREENS; i++) {
        int column = place_name(ui, i, text, sizeof text);
        bool here = i == (int)ui->screen;
        Style style = here ? style_bold(INK_BRIGHT) : style_of(INK_DIM);
        style.ground = here ? GROUND_SELECTED : GROUND_PLAIN;
        end = area_text(area, column, 0, style, text);
    }
    screens[ui->screen]->draw_header(ui, area_part(area, end + 1, 0, area.width - end - 2, 1));
}

static int key_width(const KeyBinding *binding, const char *label) {
    char key[16];
    key_describe(binding->first, key, sizeof key);
    return text_width(key) + 1 + text_width(label) + 2;
}

// Where it stands is kept for the mouse.
static int draw_key(Ui *ui, Area area, int column, const KeyBinding *binding, const char *label) {
    char key[16];
    int from = column;
    key_describe(binding->first, key, sizeof key);
    column = area_text(area, column, 0, style_bold(INK_ACCENT), key) + 1;
    column = area_text(area, column, 0, style_of(INK_DIM), label);
    if (ui->hint_count < MOST_HINTS)
        ui->hints[ui->hint_count++] = (Hint){from, column, binding->first};
    return column + 2;
}

static const Request always[] = {REQUEST_COMMAND, REQUEST_NEXT_PANEL, REQUEST_HELP, REQUEST_QUIT};
enum { ALWAYS = sizeof always / sizeof *always };

// A narrow row has the line for orders where its turn comes.
static int first_always(const Ui *ui) {
    enum { WIDE = 100 };
    return ui->frame.columns >= WIDE ? 0 : 1;
}

static bool is_always(const Ui *ui, int request) {
    for (int i = first_always(ui); i < ALWAYS; i++)
        if ((int)always[i] == request)
            return true;
    return false;
}

static int always_width(const Ui *ui) {
    int width = 0;
    for (int i = first_always(ui); i < ALWAYS; i++)
        width += key_width(&ui->keymap.bindings[always[i]], ui->keymap.bindings[always[i]].label);
    return width;
}

// NULL: not in the row of the screen in front.
static const char *label_of(const Ui *ui, int request) {
    const Screen *screen = ui_screen(ui);
    const KeyBinding *binding = &ui->keymap.bindings[request];
    if (!(binding->where & screen->on) || !binding->label[0])
        return NULL;
    return screen->label ? screen->label(ui, (Request)request, binding->label) : binding->label;
}

// The screen's own keys first, then those of all screens; the way about, to help and out always
// fits.
static void draw_keys(Ui *ui, Area area, int column, bool own) {
    const KeyBinding *bindings = ui->keymap.bindings;
    int end = area.width - always_width(ui);
    for (int i = REQUEST_NONE + 1; own && i < REQUESTS; i++) {
        int at = 1 + (i - 1 + REQUEST_FORMAT - 1) % (REQUESTS - 1);
        const char *label = is_always(ui, at) ? NULL : label_of(ui, at);
        if (label && column + key_width(&bindings[at], label) <= end)
            column = draw_key(ui, area, column, &bindings[at], label);
    }
    for (int i = first_always(ui); i < ALWAYS; i++)
        if (label_of(ui, (int)always[i]))
            column = draw_key(ui, area, column, &bindings[always[i]], bindings[always[i]].label);
}

// What keys do to what stands over the screen.
static void draw_cover_keys(const Ui *ui, Area area) {
    const char *text = ui->page.open         ? "up down another · left right turn · esc closes"
                       : ui->help_level == 1 ? "? all keys · esc closes"
                                             : "up down scroll · esc closes";
    area_text_cut(area, 1, 0, area.width - 2, style_of(INK_DIM), text);
}

// A message leaves the keys that lead on in sight, and takes more rows where it is long.
static void draw_message(Ui *ui, Area all) {
    Area area = area_part(all, 0, all.height - 1, all.width, 1);
    int column = area.width - always_width(ui), wanted = text_width(ui->message) + 3;
    foot_wrap(all, style_of(ui->message_ink), ui->message);
    if (wanted <= column)
        draw_keys(ui, area, column, false);
}

static void draw_foot(Ui *ui, Area all, int *cursor) {
    Area area = area_part(all, 0, all.height - 1, all.width, 1);
    ui->hint_count = 0;
    if (ui->prompt.open)
        prompt_draw(ui, area, cursor);
    else if (clock_seconds() < ui->message_until)
        draw_message(ui, all);
    else if (ui->pager.open || ui->page.open)
        draw_cover_keys(ui, area);
    else
        draw_keys(ui, area, 1, true);
}

static void draw_too_small(Ui *ui, Area area) {
    area_print(area, 0, 0, style_of(INK_WARN), "too small: %d x %d", area.width, area.height);
    area_print(area, 0, 1, style_of(INK_TEXT), "mpbench needs %d x %d", LAYOUT_LEAST_COLUMNS,
               LAYOUT_LEAST_ROWS);
    area_text(area, 0, 2, style_of(INK_DIM), "q quits; runs go on");
    (void)ui;
}

static void draw(Ui *ui) {
    int cursor = -1;
    ui->frame.ascii = terminal_is_ascii();
    frame_erase(&ui->frame);
    Area all = frame_area(&ui->frame);
    if (ui->layout.too_small) {
        draw_too_small(ui, all);
    } else {
        draw_header(ui, area_part(all, 0, 0, all.width, 1));
        for (int i = 0; i < ui->layout.count; i++) {
            const Panel *panel = &ui->layout.panels[i];
            ui_screen(ui)->draw_panel(
                ui, panel->id,
                area_part(all, panel->column, panel->row, panel->width, panel->height),
                panel->id == ui->focus[ui->screen]);
        }
        if (ui->pager.open)
            pager_draw(ui, area_part(all, 0, 1, all.width, all.height - 2));
        if (ui->page.open)
            settings_page_draw(ui, area_part(all, 0, 1, all.width, all.height - 2));
        if (ui->prompt.open)
            prompt_draw_note(ui, area_part(all, 0, 1, all.width, all.height - 2));
        draw_foot(ui, all, &cursor);
    }
    terminal_draw(&ui->frame, cursor, ui->frame.rows - 1);
    ui->dirty = false;
}

// ---- requests of all screens --------------------------------------------------------------------

static void ask_help(Ui *ui) {
    const char *text = ui_screen(ui)->explain(ui->focus[ui->screen]);
    if (ui->help_level == 0 && text) {
        ui->help_level = 1;
        pager_show(ui, panel_name(ui->focus[ui->screen]), strdup(text));
        return;
    }
    ui->help_level = 2;
    help_show(ui);
}

static void back_out(Ui *ui) {
    if (ui->maximised[ui->screen] != PANEL_NONE) {
        ui->maximised[ui->screen] = PANEL_NONE;
        lay_out(ui);
    } else if (ui->screen != SCREEN_HOME) {
        ui_go(ui, SCREEN_HOME);
    }
}

static void maximise(Ui *ui) {
    PanelId *maximised = &ui->maximised[ui->screen];
    *maximised = *maximised == PANEL_NONE ? ui->focus[ui->screen] : PANEL_NONE;
    lay_out(ui);
}

static void focus_next(Ui *ui, int by) {
    PanelId next = layout_next(&ui->layout, ui->focus[ui->screen], by);
    if (ui->maximised[ui->screen] != PANEL_NONE) { // the next of those that would be there
        Layout whole = layout_of(ui->screen, ui->frame.columns, ui->frame.rows, PANEL_NONE);
        next = layout_next(&whole, ui->focus[ui->screen], by);
        ui->maximised[ui->screen] = next;
    }
    ui->focus[ui->screen] = next;
    lay_out(ui);
}

static void turn_mouse(Ui *ui) {
    ui->settings.mouse = !ui->settings.mouse;
    terminal_set_mouse(ui->settings.mouse);
    ui_say(ui, INK_TEXT, "the mouse is %s", ui->settings.mouse ? "on" : "off: select text with it");
}

void ui_copy(Ui *ui, const char *text) {
    char line[MESSAGE_SIZE];
    sanitize_line(line, sizeof line, text, strlen(text));
    if (!line[0])
        return;
    terminal_copy(line);
    ui_say(ui, INK_DIM, "copied: %s", line);
}

// What the panel in focus shows on its selected line, else on its first one.
static void copy_line(Ui *ui) {
    const Panel *panel = layout_find(&ui->layout, ui->focus[ui->screen]);
    char text[MESSAGE_SIZE];
    size_t used = 0;
    if (!panel || panel->height < 3)
        return;
    int row = panel->row + 1;
    for (int y = row; y < panel->row + panel->height - 1; y++)
        if (frame_cell(&ui->frame, panel->column + 2, y)->style.ground == GROUND_SELECTED)
            row = y;
    for (int x = panel->column + 1; x < panel->column + panel->width - 1; x++) {
        uint32_t rune = frame_cell(&ui->frame, x, row)->rune;
        bool is_gap = rune == ' ' && (used == 0 || text[used - 1] == ' ');
        if (rune && !is_gap && used + 5 < sizeof text)
            used += (size_t)rune_encode(rune, text + used);
    }
    used -= used > 0 && text[used - 1] == ' ';
    text[used] = 0;
    ui_copy(ui, text);
}

static void take_common(Ui *ui, Request request) {
    switch (request) {
    case REQUEST_QUIT: ui->quit = true; break;
    case REQUEST_BACK: back_out(ui); break;
    case REQUEST_HELP: ask_help(ui); break;
    case REQUEST_COMMAND: command_ask(ui); break;
    case REQUEST_REDRAW: terminal_redraw(); break;
    case REQUEST_NEXT_PANEL: focus_next(ui, 1); break;
    case REQUEST_PREVIOUS_PANEL: focus_next(ui, -1); break;
    case REQUEST_TO_HOME: ui_go(ui, SCREEN_HOME); break;
    case REQUEST_TO_LIVE: ui_go(ui, SCREEN_LIVE); break;
    case REQUEST_TO_COMPARE: ui_go(ui, SCREEN_COMPARE); break;
    case REQUEST_TO_FORMATS: ui_go(ui, SCREEN_FORMATS); break;
    case REQUEST_MAXIMISE: maximise(ui); break;
    case REQUEST_MOUSE: turn_mouse(ui); break;
    case REQUEST_COPY: copy_line(ui); break;
    case REQUEST_SETTINGS: settings_page_show(ui); break;
    default: break;
    }
}

// ---- input --------------------------------------------------------------------------------------

static void take_key(Ui *ui, int key) {
    ui->dirty = true;
    ui->message_until = 0;
    bool is_screen = key >= KEY_CODE_F1 && key <= KEY_CODE_F4; // where digits are typed, too
    if (ui->prompt.open && is_screen)
        prompt_key(ui, KEY_CODE_ESCAPE);
    if (ui->prompt.open) {
        prompt_key(ui, key);
        return;
    }
    Request request = keymap_find(&ui->keymap, key, ui_screen(ui)->on);
    if (ui->layout.too_small) {
        ui->quit = request == REQUEST_QUIT;
        return;
    }
    if (ui->page.open && settings_page_request(ui, request))
        return;
    if (ui->pager.open && request != REQUEST_HELP && pager_request(ui, request))
        return;
    if (!ui->pager.open && ui_screen(ui)->key(ui, key))
        return;
    if (request == REQUEST_NONE || !ui_screen(ui)->request(ui, request))
        take_common(ui, request);
}

static void take_mouse(Ui *ui, const Input *input) {
    if (ui->prompt.open || ui->layout.too_small)
        return;
    ui->dirty = true;
    if (ui->page.open) {
        settings_page_click(ui, input->row, input->action);
        return;
    }
    if (ui->pager.open) {
        bool up = input->action == MOUSE_WHEEL_UP;
        pager_request(ui, up || input->action == MOUSE_WHEEL_DOWN ? (up ? REQUEST_UP : REQUEST_DOWN)
                                                                  : REQUEST_BACK);
        return;
    }
    if (input->row == 0) { // the names of the screens
        for (int i = 0; i < SCREENS; i++) {
            char text[32];
            int column = place_name(ui, i, text, sizeof text);
            if (input->column >= column && input->column < column + text_width(text)) {
                ui_go(ui, (ScreenId)i);
                return;
            }
        }
        return;
    }
    if (input->row == ui->frame.rows - 1) { // the row of keys
        for (int i = 0; i < ui->hint_count; i++)
            if (input->column >= ui->hints[i].from && input->column < ui->hints[i].to) {
                take_key(ui, ui->hints[i].key);
                return;
            }
        return;
    }
    PanelId id = layout_at(&ui->layout, input->column, input->row);
    const Panel *panel = layout_find(&ui->layout, id);
    if (!panel)
        return;
    ui->focus[ui->screen] = id;
    ui_screen(ui)->click(ui, id, input->column - panel->column, input->row - panel->row,
                         input->action);
}

static void take(Ui *ui, const Input *input) {
    switch (input->kind) {
    case INPUT_NONE: break;
    case INPUT_KEY: take_key(ui, input->key); break;
    case INPUT_MOUSE: take_mouse(ui, input); break;
    case INPUT_RESIZE: resize(ui); break;
    case INPUT_LOST: ui->quit = true; break;
    }
}

// ---- the loop -----------------------------------------------------------------------------------

// Keys that are there already are taken before the next picture is drawn.
static void loop(Ui *ui) {
    const double look_every = 0.1;
    double looked = clock_seconds(), drawn = 0;
    while (!ui->quit && !terminal_ended_by()) {
        double now = clock_seconds(), frame_seconds = 1.0 / fmax(1, ui->settings.frames);
        if (ui->message_until > 0 && now >= ui->message_until) {
            ui->message_until = 0;
            ui->dirty = true;
        }
        double wait = fmax(0, looked + look_every - now);
        if (ui->dirty)
            wait = fmin(wait, fmax(0, drawn + frame_seconds - now));
        Input input = terminal_read(wait);
        take(ui, &input);
        now = clock_seconds();
        bool is_due = ui->dirty && now - drawn >= frame_seconds;
        if (now - looked >= look_every || (ui->look_now && is_due)) {
            launch_watch(ui);
            command_poll(ui);
            ui->look_now = false;
            if (ui_screen(ui)->refresh(ui, now - looked))
                ui->dirty = true;
            looked = now;
        }
        if (ui->dirty && now - drawn >= frame_seconds) {
            draw(ui);
            drawn = clock_seconds();
        }
    }
}

static bool open_screens(Ui *ui, Error *error) {
    for (int i = 0; i < SCREENS; i++)
        if (!screens[i]->open(ui, error))
            return false;
    return true;
}

static bool open_terminal(const Ui *ui, Error *error) {
    static const int depths[] = {-1, DEPTH_TRUE, DEPTH_256, DEPTH_16, DEPTH_MONO};
    TerminalOptions options = {.characters = (TerminalCharacters)ui->settings.characters,
                               .depth = ui->options->depth >= 0 ? ui->options->depth
                                                                : depths[ui->settings.colors],
                               .mouse = ui->settings.mouse != 0};
    return terminal_open(&options, error);
}

static bool read_settings(Ui *ui, Error *error) {
    keymap_init(&ui->keymap);
    settings_init(&ui->settings);
    return !ui->options->settings ||
           settings_read(&ui->settings, &ui->keymap, ui->options->settings, error);
}

// A history that cannot be written (newer, damaged, in a folder of somebody else) is looked at.
static bool open_history(Ui *ui, Error *error) {
    Error why_read_only;
    ui->store = store_open(ui->options->database, STORE_WRITE, &why_read_only);
    if (!ui->store) {
        ui->store = store_open(ui->options->database, STORE_READ, error);
        *error = why_read_only;
        ui_fail(ui, error);
    }
    const char *wanted = ui->options->run ? ui->options->run : ui->options->demo ? "@last" : NULL;
    return ui->store && (!wanted || store_find_run(ui->store, wanted, &ui->run, error));
}

bool ui_run(const UiHost *host, const UiOptions *options, int *signal, Error *error) {
    Ui *ui = calloc(1, sizeof *ui);
    bool done = false;
    *signal = 0;
    if (!ui)
        return error_fail(error, ERROR_MEMORY, "no memory for the screen");
    ui->host = host;
    ui->options = options;
    if (!read_settings(ui, error) || !open_history(ui, error) || !open_screens(ui, error) ||
        !open_terminal(ui, error))
        goto done;
    resize(ui);
    ui_go(ui, ui->run != 0 ? SCREEN_LIVE : SCREEN_HOME);
    if (options->demo)
        screen_live.request(ui, REQUEST_REPLAY);
    loop(ui);
    *signal = terminal_ended_by();
    terminal_close();
    done = true;
done:
    for (int i = 0; i < SCREENS; i++)
        if (ui->state[i])
            screens[i]->close(ui);
    pager_close(ui);
    command_close(ui);
    store_close(ui->store);
    frame_clear(&ui->frame);
    free(ui);
    return done;
}
