// The page of settings over the screen, from the table of them. What is turned shows at once; the
// file is written when the page closes.
#include <stdio.h>
#include <string.h>

#include "ui/screen.h"

enum { COLUMN_VALUE = 17, COLUMN_ABOUT = 41, WIDTH_MOST = 100, FOOT_ROWS = 2 };

TerminalOptions settings_for_terminal(const Ui *ui) {
    static const int depths[] = {-1, DEPTH_TRUE, DEPTH_256, DEPTH_16, DEPTH_MONO};
    static const int themes[] = {-1, THEME_DARK, THEME_LIGHT};
    const Settings *settings = &ui->settings;
    return (TerminalOptions){.characters = (TerminalCharacters)settings->characters,
                             .depth = ui->options->depth >= 0 ? ui->options->depth
                                                              : depths[settings->colors],
                             .theme = themes[settings->theme],
                             .mouse = settings->mouse != 0};
}

void settings_apply(Ui *ui) {
    TerminalOptions options = settings_for_terminal(ui);
    terminal_set_characters(options.characters);
    terminal_set_depth(options.depth);
    terminal_set_theme(options.theme);
    terminal_set_mouse(options.mouse);
    ui->dirty = ui->look_now = true;
}

void settings_page_show(Ui *ui) {
    pager_close(ui);
    ui->page = (SettingsPage){.open = true};
}

static void close_page(Ui *ui) {
    Error error;
    bool changed = ui->page.changed;
    ui->page = (SettingsPage){.open = false};
    if (!changed || !ui->options->settings)
        return;
    if (settings_write(&ui->settings, &ui->keymap, ui->options->settings, &error))
        ui_say(ui, INK_DIM, "kept in %s", ui->options->settings);
    else
        ui_fail(ui, &error);
}

static void turn(Ui *ui, int by) {
    settings_turn(&ui->settings, ui->page.row, by);
    ui->page.changed = true;
    settings_apply(ui);
}

static void explain(Ui *ui) {
    static const char text[] =
        "How the screen looks and acts, on this machine: up and down go to a setting, left and "
        "right turn it, and it shows at once. All of them are kept in the file named below when "
        "the page closes, where keys can be given to other orders, too.";
    ui->help_level = 1; // the next level has all keys
    pager_show(ui, "settings", strdup(text));
}

bool settings_page_request(Ui *ui, Request request) {
    SettingsPage *page = &ui->page;
    int last = settings_count() - 1;
    switch (request) {
    case REQUEST_UP: page->row -= page->row > 0; break;
    case REQUEST_DOWN: page->row += page->row < last; break;
    case REQUEST_FIRST:
    case REQUEST_PAGE_UP: page->row = 0; break;
    case REQUEST_LAST:
    case REQUEST_PAGE_DOWN: page->row = last; break;
    case REQUEST_LEFT: turn(ui, -1); break;
    case REQUEST_RIGHT:
    case REQUEST_SELECT:
    case REQUEST_FORMAT:
    case REQUEST_ENTER: turn(ui, 1); break;
    case REQUEST_HELP: explain(ui); break;
    case REQUEST_QUIT:
    case REQUEST_BACK:
    case REQUEST_SETTINGS: close_page(ui); break;
    default: return request != REQUEST_REDRAW;
    }
    return true;
}

void settings_page_click(Ui *ui, int row, MouseAction action) {
    int at = row - ui->page.first_row;
    if (action == MOUSE_WHEEL_UP || action == MOUSE_WHEEL_DOWN) {
        settings_page_request(ui, action == MOUSE_WHEEL_UP ? REQUEST_UP : REQUEST_DOWN);
    } else if (at >= 0 && at < settings_count()) {
        bool again = at == ui->page.row;
        ui->page.row = at;
        if (again)
            turn(ui, 1);
    } else {
        close_page(ui);
    }
}

static void draw_row(const Ui *ui, Area area, int row) {
    char value[64];
    settings_word(&ui->settings, row, value, sizeof value);
    area_text(area, 1, row, style_of(INK_TEXT), settings_label(row));
    int column = area_text(area, COLUMN_VALUE, row, style_of(INK_ACCENT), "‹ ");
    column = area_text(area, column, row, style_bold(INK_BRIGHT), value);
    area_text(area, column, row, style_of(INK_ACCENT), " ›");
    area_text_cut(area, COLUMN_ABOUT, row, area.width - COLUMN_ABOUT, style_of(INK_DIM),
                  settings_about(row));
    if (row == ui->page.row)
        area_set_ground(area_part(area, 0, row, area.width, 1), GROUND_SELECTED);
}

void settings_page_draw(Ui *ui, Area area) {
    int rows = settings_count(), height = rows + FOOT_ROWS + 2;
    int width = area.width > WIDTH_MOST ? WIDTH_MOST : area.width;
    int column = (area.width - width) / 2, row = (area.height - height) / 2;
    Area box = area_part(area, column, row, width, height);
    area_fill(box, style_of(INK_TEXT));
    Area inside = area_box(box, "settings", "left and right turn · esc closes", true);
    ui->page.first_row = inside.row; // of the frame, as clicks have it
    for (int i = 0; i < rows; i++)
        draw_row(ui, inside, i);
    column = area_text(inside, 1, rows + 1, style_of(INK_DIM), "keys: key.pause = \"p\" in ");
    area_outside(inside, column, rows + 1, inside.width - column - 1, style_of(INK_DIM),
                 ui->options->settings ? ui->options->settings : "a file (set HOME)");
}
