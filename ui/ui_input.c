// Keys, clicks and what else the terminal sends: who takes them, and the requests of all screens.
#include <string.h>

#include "base/rune.h"
#include "ui/screen.h"

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
        ui_lay_out(ui);
    } else if (ui->screen != SCREEN_HOME) {
        ui_go(ui, SCREEN_HOME);
    }
}

static void maximise(Ui *ui) {
    PanelId *maximised = &ui->maximised[ui->screen];
    *maximised = *maximised == PANEL_NONE ? ui->focus[ui->screen] : PANEL_NONE;
    ui_lay_out(ui);
}

static void focus_next(Ui *ui, int by) {
    PanelId next = layout_next(&ui->layout, ui->focus[ui->screen], by);
    if (ui->maximised[ui->screen] != PANEL_NONE) { // the next of those that would be there
        Layout whole = layout_of(ui->screen, ui->frame.columns, ui->frame.rows, PANEL_NONE);
        next = layout_next(&whole, ui->focus[ui->screen], by);
        ui->maximised[ui->screen] = next;
    }
    ui->focus[ui->screen] = next;
    ui_lay_out(ui);
}

static void turn_mouse(Ui *ui) {
    ui->settings.mouse = !ui->settings.mouse;
    terminal_set_mouse(ui->settings.mouse);
    ui_say(ui, INK_TEXT, "the mouse is %s", ui->settings.mouse ? "on" : "off: select text with it");
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
    case REQUEST_TO_SCAN: ui_go(ui, SCREEN_SCAN); break;
    case REQUEST_MAXIMISE: maximise(ui); break;
    case REQUEST_MOUSE: turn_mouse(ui); break;
    case REQUEST_COPY: copy_line(ui); break;
    case REQUEST_SETTINGS: settings_page_show(ui); break;
    default: break;
    }
}

// ---- input --------------------------------------------------------------------------------------

static void take_key(Ui *ui, int key) {
    const Request request = keymap_find(&ui->keymap, key, ui_screen(ui)->on);
    ui->dirty = true;
    ui->message_until = 0;
    if (ui->layout.too_small) { // nobody sees what else a key would be for
        ui->quit = request == REQUEST_QUIT;
        return;
    }
    bool is_screen = key >= KEY_CODE_F1 && key <= KEY_CODE_F5; // where digits are typed, too
    if (ui->prompt.open && is_screen)
        prompt_key(ui, KEY_CODE_ESCAPE);
    if (ui->prompt.open) {
        prompt_key(ui, key);
        return;
    }
    if (ui->page.open && !ui->pager.open && settings_page_request(ui, request))
        return;
    if (ui->pager.open && request == REQUEST_ENTER && ui->pager.order[0]) {
        char order[sizeof ui->pager.order];
        memcpy(order, ui->pager.order, sizeof order);
        pager_close(ui);
        command_ask_for(ui, order);
        return;
    }
    if (ui->pager.open && request != REQUEST_HELP && pager_request(ui, request))
        return;
    if (ui->pictures.open && !ui->pager.open && pictures_request(ui, request))
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
    if (ui->page.open && !ui->pager.open) {
        settings_page_click(ui, input->row, input->action);
        return;
    }
    if (ui->pictures.open && !ui->pager.open) {
        bool on = input->action == MOUSE_WHEEL_DOWN, back = input->action == MOUSE_WHEEL_UP;
        pictures_request(ui, on ? REQUEST_SCRUB_FORWARD : back ? REQUEST_SCRUB_BACK : REQUEST_BACK);
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
            int column = ui_place_name(ui, i, text, sizeof text);
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

void ui_take(Ui *ui, const Input *input) {
    switch (input->kind) {
    case INPUT_NONE: break;
    case INPUT_KEY: take_key(ui, input->key); break;
    case INPUT_MOUSE: take_mouse(ui, input); break;
    case INPUT_RESIZE: ui_resize(ui); break;
    case INPUT_COLORS: ui->dirty = true; break;
    case INPUT_LOST: ui->quit = true; break;
    }
}
