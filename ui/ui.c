#include "ui/ui.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/sanitize.h"
#include "store/runs.h"
#include "ui/cells/words.h"
#include "ui/screen.h"

const Screen *const ui_screens[SCREENS] = {
    [SCREEN_HOME] = &screen_home,       [SCREEN_LIVE] = &screen_live,
    [SCREEN_COMPARE] = &screen_compare, [SCREEN_FORMATS] = &screen_formats,
    [SCREEN_SCAN] = &screen_scan,
};

const Screen *ui_screen(const Ui *ui) {
    return ui_screens[ui->screen];
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

void ui_lay_out(Ui *ui) {
    ui->layout =
        layout_of(ui->screen, ui->frame.columns, ui->frame.rows, ui->maximised[ui->screen]);
    if (ui->layout.count > 0 && !layout_find(&ui->layout, ui->focus[ui->screen]))
        ui->focus[ui->screen] = ui->layout.panels[0].id;
    ui->dirty = true;
}

void ui_go(Ui *ui, ScreenId screen) {
    ui->came_from = ui->screen;
    ui->screen = screen;
    ui_lay_out(ui);
    ui_screens[screen]->enter(ui);
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

static void show_message(Ui *ui, Ink ink) {
    const double seconds = 6;
    ui->message_ink = ink;
    ui->message_until = clock_seconds() + seconds;
    ui->dirty = true;
}

void ui_say(Ui *ui, Ink ink, const char *format, ...) {
    char text[MESSAGE_SIZE], clean[MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    sanitize_line(clean, sizeof clean, text, strlen(text));
    word_rewrite(ui->message, sizeof ui->message, clean);
    show_message(ui, ink);
}

// As it is: it repeats what was typed.
void ui_fail(Ui *ui, const Error *error) {
    sanitize_line(ui->message, sizeof ui->message, error->text, strlen(error->text));
    show_message(ui, INK_BAD);
}

void ui_copy(Ui *ui, const char *text) {
    char line[MESSAGE_SIZE];
    sanitize_line(line, sizeof line, text, strlen(text));
    if (!line[0])
        return;
    terminal_copy(line);
    ui_say(ui, INK_DIM, "copied: %s", line);
}

void ui_resize(Ui *ui) {
    int columns, rows;
    terminal_size(&columns, &rows);
    Error error;
    if (!frame_init(&ui->frame, columns, rows, &error))
        ui_fail(ui, &error); // goes on with the size there was
    ui_lay_out(ui);
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
        ui_take(ui, &input);
        now = clock_seconds();
        bool is_due = ui->dirty && now - drawn >= frame_seconds;
        if (now - looked >= look_every || (ui->look_now && is_due)) {
            launch_watch(ui);
            command_poll(ui);
            ui->look_now = false;
            if (ui_screen(ui)->refresh(ui, now - looked))
                ui->dirty = true;
            ui->dirty = pictures_look(ui) || ui->dirty;
            looked = now;
        }
        if (ui->dirty && now - drawn >= frame_seconds) {
            ui_draw(ui);
            drawn = clock_seconds();
        }
    }
}

static bool open_screens(Ui *ui, Error *error) {
    for (int i = 0; i < SCREENS; i++)
        if (!ui_screens[i]->open(ui, error))
            return false;
    return true;
}

static bool open_terminal(const Ui *ui, Error *error) {
    TerminalOptions options = settings_for_terminal(ui);
    return terminal_open(&options, error);
}

static bool read_settings(Ui *ui, Error *error) {
    keymap_init(&ui->keymap);
    settings_init(&ui->settings);
    if (!ui->options->settings ||
        settings_read(&ui->settings, &ui->keymap, ui->options->settings, error))
        return true;
    if (error->code != ERROR_FAILED) // what it says is to be mended
        return false;
    ui_say(ui, INK_WARN, "your settings are left out: %s", error->text);
    return true;
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
    ui_resize(ui);
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
            ui_screens[i]->close(ui);
    pager_close(ui);
    pictures_close(ui);
    command_close(ui);
    store_close(ui->store);
    frame_clear(&ui->frame);
    free(ui);
    return done;
}
