// The picture: the header, the panels of the screen in front, what stands over it, and the foot.
#include <stdio.h>

#include "base/clock.h"
#include "base/rune.h"
#include "ui/screen.h"

// Where a narrow terminal leaves the header's words no room, the screens that are not in front keep
// their digits alone.
int ui_place_name(const Ui *ui, int screen, char *text, size_t size) {
    enum { ALL_NAMES = 100 };
    bool is_wide = ui->frame.columns >= ALL_NAMES;
    bool has_room = is_wide || ui->screen != SCREEN_LIVE;
    int column = 1 + (is_wide ? text_width("mpbench") + 1 : 0);
    const char *key = ui->screen == SCREEN_FORMATS ? "F" : ""; // there digits begin a number
    text[0] = 0;
    for (int i = 0; i <= screen; i++) {
        column += text_width(text);
        bool here = i == (int)ui->screen, has_name = has_room || here;
        snprintf(text, size, has_name ? " %s%d %s " : "%s%d ", key, i + 1,
                 has_name ? ui_screens[i]->name : "");
    }
    return column;
}

static void draw_header(Ui *ui, Area area) {
    char text[32];
    int end = ui_place_name(ui, 0, text, sizeof text);
    if (end > 1)
        area_text(area, 1, 0, style_bold(INK_ACCENT), "mpbench");
    for (int i = 0; i < SCREENS; i++) {
        int column = ui_place_name(ui, i, text, sizeof text);
        bool here = i == (int)ui->screen;
        Style style = here ? style_bold(INK_BRIGHT) : style_of(INK_DIM);
        style.ground = here ? GROUND_SELECTED : GROUND_PLAIN;
        end = area_text(area, column, 0, style, text);
    }
    ui_screens[ui->screen]->draw_header(ui, area_part(area, end + 1, 0, area.width - end - 2, 1));
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

static bool is_always(int request) {
    for (int i = 0; i < ALWAYS; i++)
        if ((int)always[i] == request)
            return true;
    return false;
}

static int always_width(const Ui *ui) {
    int width = 0;
    for (int i = 0; i < ALWAYS; i++)
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
        const char *label = is_always(at) ? NULL : label_of(ui, at);
        if (label && column + key_width(&bindings[at], label) <= end)
            column = draw_key(ui, area, column, &bindings[at], label);
    }
    for (int i = 0; i < ALWAYS; i++)
        if (label_of(ui, (int)always[i]))
            column = draw_key(ui, area, column, &bindings[always[i]], bindings[always[i]].label);
}

// What keys do to what stands over the screen.
static void draw_cover_keys(const Ui *ui, Area area) {
    const char *text = ui->pictures.open && !ui->pager.open && !ui->page.open
                           ? "[ ] earlier, later · g G the first, the last · v another name · ? "
                             "explains · esc closes"
                       : !ui->pager.open
                           ? "up down another · left right turn · ? explains · esc closes"
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
    else if (ui->pager.open || ui->page.open || ui->pictures.open)
        draw_cover_keys(ui, area);
    else
        draw_keys(ui, area, 1, true);
}

static void draw_too_small(const Ui *ui, Area area) {
    char key[16];
    key_describe(ui->keymap.bindings[REQUEST_QUIT].first, key, sizeof key);
    area_print(area, 0, 0, style_of(INK_WARN), "too small: %d x %d", area.width, area.height);
    area_print(area, 0, 1, style_of(INK_TEXT), "mpbench needs %d x %d", LAYOUT_LEAST_COLUMNS,
               LAYOUT_LEAST_ROWS);
    area_print(area, 0, 2, style_of(INK_DIM), "%s quits; runs go on", key);
}

void ui_draw(Ui *ui) {
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
        if (ui->pictures.open)
            pictures_draw(ui, area_part(all, 0, 1, all.width, all.height - 2));
        if (ui->page.open)
            settings_page_draw(ui, area_part(all, 0, 1, all.width, all.height - 2));
        if (ui->pager.open)
            pager_draw(ui, area_part(all, 0, 1, all.width, all.height - 2));
        if (ui->prompt.open)
            prompt_draw_note(ui, area_part(all, 0, 1, all.width, all.height - 2));
        draw_foot(ui, all, &cursor);
    }
    terminal_draw(&ui->frame, cursor, ui->frame.rows - 1);
    ui->dirty = false;
}
