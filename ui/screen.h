// ui/screen.h: what the parts of the screen share and nobody else sees: the Ui, and what a screen
// (home, live, compare, formats, scan) is made of.
//
// The loop in ui.c waits for a key or the next look at the store, lets the screen in front take it
// (ui_input.c), and draws when something changed (ui_draw.c). A screen keeps its own state behind
// `state`; it reads the store in `refresh` alone, so that drawing never waits, and draws into the
// panels of the layout. All of it runs on the main thread.
#pragma once

#include "picture/png.h"
#include "store/events.h"
#include "store/record.h"
#include "store/store.h"
#include "ui/cells/frame.h"
#include "ui/cells/layout.h"
#include "ui/cells/terminal.h"
#include "ui/keys/keys.h"
#include "ui/keys/settings.h"
#include "ui/ui.h"

typedef struct Ui Ui;

typedef struct Screen {
    const char *name; // in the header
    int on;           // its bit in keys.def
    // Makes the state; false: the program cannot go on.
    bool (*open)(Ui *ui, Error *error);
    void (*close)(Ui *ui);
    // It comes to the front, perhaps for something new.
    void (*enter)(Ui *ui);
    // Reads what is new; true: what is shown changed. `seconds` since the last call.
    bool (*refresh)(Ui *ui, double seconds);
    // Words for the header's right, and everything below it.
    void (*draw_header)(Ui *ui, Area area);
    void (*draw_panel)(Ui *ui, PanelId panel, Area area, bool focused); // border included
    // True: it was meant for this screen and is done.
    bool (*request)(Ui *ui, Request request);
    // A key that asks for nothing in the table, for forms that take text. True: taken.
    bool (*key)(Ui *ui, int key);
    // Of a panel, with the cell counted from its corner.
    void (*click)(Ui *ui, PanelId panel, int column, int row, MouseAction action);
    // Two sentences: what the panel shows and how to read it.
    const char *(*explain)(PanelId panel);
    // What the row of keys calls a request (`usual` in the table of keys); NULL: its key does
    // nothing of the kind now, and is not offered. The slot is NULL where all always can.
    const char *(*label)(const Ui *ui, Request request, const char *usual);
} Screen;

extern const Screen screen_home, screen_live, screen_compare, screen_formats, screen_scan;
extern const Screen *const ui_screens[SCREENS]; // by their ids

// ---- what stands in front of a screen -----------------------------------------------------------

enum {
    PROMPT_SIZE = 512,
    MESSAGE_SIZE = 400,
    MOST_LINES = 4096,
    MOST_HINTS = 40,
    MOST_RECALLED = 32,
    UI_MOST_COMPARED = 24 // runs: three seeds of eight formats; each has its price to read
};

typedef struct Prompt { // the line at the foot that takes text, or asks yes or no
    bool open, is_question;
    char label[MESSAGE_SIZE];
    char text[PROMPT_SIZE];
    int cursor;                             // in bytes
    void (*done)(Ui *ui, const char *text); // Enter, or y
    int64_t run; // that it is about, whatever lies under the cursor by then; 0: none
    // Asked at Enter; false: it stays open and says why.
    bool (*check)(Ui *ui, const char *text, Error *error);
    void (*changed)(Ui *ui, const char *text); // after each key that edits; NULL: nobody asks
    void (*dropped)(Ui *ui);                   // it was left with Escape; NULL: nobody asks
    void (*moved)(Ui *ui, int by);             // taken with Tab, Up or Down; NULL: they do not take
    const char *hint;                          // above the line, while no note is; NULL: none
    char note[MESSAGE_SIZE];                   // until the next key: what is wrong, what can follow
    Ink note_ink;
    bool note_is_list; // of what can follow
    int note_bright;   // bytes at its beginning that stand out
    // Puts what could follow into `words` (borrowed, at most `most`) and where it begins in *from.
    int (*complete)(Ui *ui, const char *text, int *from, const char **words, int most);
    char typed[PROMPT_SIZE];  // while Tab goes through what can follow: what was there before
    int turn;                 // which of them, from 1; 0: Tab begins
    bool has_verbs;           // its first word says what the others are about
    bool recalls;             // Up and Down go through what was taken before,
    int back;                 // so far back; 0: at what is typed,
    char latest[PROMPT_SIZE]; // which is kept meanwhile
} Prompt;

typedef struct Recalled { // lines that were taken, the newest first
    char lines[MOST_RECALLED][PROMPT_SIZE];
    int count;
} Recalled;

typedef struct Hint { // a key at the foot: its columns
    int from, to, key;
} Hint;

typedef struct Asked { // an order of the command line that has no answer yet
    int64_t id;
    char what[160];
} Asked;

typedef struct Pager { // a page of text over the screen
    bool open;
    char title[80];
    char *text;
    int top;
    char order[PROMPT_SIZE]; // that Enter asks for, on the line of commands; ""
} Pager;

typedef struct SettingsPage { // over the screen
    bool open, changed;
    int row;
    int first_row; // where it was drawn
} SettingsPage;

typedef struct PicturesPage { // over the screen
    bool open;
    int64_t run;
    Event *events; // of its pictures, in order
    int count, at; // the one that is shown; follows the run while it is the last of its name
    char *trouble; // why it cannot be shown; NULL: nothing
    Image image;
} PicturesPage;

struct Ui {
    const UiHost *host;
    const UiOptions *options;
    Store *store;
    Settings settings;
    Keymap keymap;
    Frame frame;
    Layout layout;
    ScreenId screen;    // in front
    ScreenId came_from; // the one that was in front before it
    void *state[SCREENS];
    PanelId focus[SCREENS], maximised[SCREENS];
    Prompt prompt;
    Recalled recalled; // of the command line
    Pager pager;
    SettingsPage page;
    PicturesPage pictures;
    char message[MESSAGE_SIZE];
    Ink message_ink;
    double message_until;   // clock_seconds
    Hint hints[MOST_HINTS]; // as drawn
    int hint_count;
    Asked *asked;
    int asked_count, asked_room;
    int64_t run; // that live shows
    int64_t runs[UI_MOST_COMPARED];
    int run_count;  // of `runs`, which compare shows
    int help_level; // of the help that is open
    bool dirty, quit;
    bool look_now; // refresh before the next picture: a key changed what is looked at
};

const Screen *ui_screen(const Ui *ui);
void ui_go(Ui *ui, ScreenId screen);
void ui_open_run(Ui *ui, int64_t run);
void ui_compare(Ui *ui, const int64_t *runs, int count);
// A line at the foot for some seconds.
void ui_say(Ui *ui, Ink ink, const char *format, ...) __attribute__((format(printf, 3, 4)));
void ui_fail(Ui *ui, const Error *error);
// Puts text from outside on the clipboard, and says so.
void ui_copy(Ui *ui, const char *text);
// The wall clock in milliseconds; MPBENCH_SCREEN_CLOCK in the environment holds it still, for
// tests.
int64_t ui_now_ms(void);
// Lays the panels out anew, after what they depend on changed.
void ui_lay_out(Ui *ui);
void ui_resize(Ui *ui); // to what the terminal is now

// ui_draw.c
void ui_draw(Ui *ui);
// Where the name of a screen stands in the header, behind its digit: the column, and the text.
int ui_place_name(const Ui *ui, int screen, char *text, size_t size);

// ui_input.c
void ui_take(Ui *ui, const Input *input);

// prompt.c
void prompt_ask(Ui *ui, const char *label, const char *text,
                void (*done)(Ui *ui, const char *text));
// Yes or no; `yes` is called with "".
void prompt_confirm(Ui *ui, const char *question, void (*yes)(Ui *ui, const char *text));
void prompt_key(Ui *ui, int key);
void prompt_draw(Ui *ui, Area area, int *cursor_column);
// What belongs to it, in the last rows of the area.
void prompt_draw_note(Ui *ui, Area area);
// Text over the last rows of the area, as many as it takes.
void foot_wrap(Area area, Style style, const char *text);

// pager.c; takes the text over, which is freed with free(). Lines that are too long are broken,
// with their rows below what stands behind a label that ends in two blanks.
void pager_show(Ui *ui, const char *title, char *text);
void pager_close(Ui *ui);
bool pager_request(Ui *ui, Request request); // true: taken
void pager_draw(Ui *ui, Area area);

// settings_page.c
void settings_page_show(Ui *ui);
bool settings_page_request(Ui *ui, Request request); // true: taken
void settings_page_click(Ui *ui, int row, MouseAction action);
void settings_page_draw(Ui *ui, Area area);
TerminalOptions settings_for_terminal(const Ui *ui);
void settings_apply(Ui *ui); // to the terminal, after they were changed

// pictures.c: those of the run that is looked at, from the newest up to a step on; says so where it
// has none
void pictures_show(Ui *ui, int64_t run, int64_t step);
void pictures_close(Ui *ui);
bool pictures_look(Ui *ui);                     // reads what is new; true: another one is shown
bool pictures_request(Ui *ui, Request request); // true: taken
void pictures_draw(const Ui *ui, Area area);

// help.c: the page of all keys of a screen
void help_show(Ui *ui);

// command.c: the line behind ':'
void command_ask(Ui *ui);
void command_ask_for(Ui *ui, const char *text); // which stands there already
// Tells the answers to what was ordered there.
void command_poll(Ui *ui);
// An order to a run, as it would be typed there; its answer is told. False: said why.
bool command_send(Ui *ui, const RunRecord *run, const char *verb, const char *argument);
void command_close(Ui *ui);

// launch.c: starts `mpbench ARGUMENTS..` that lives on without the screen; `arguments` ended by
// NULL. *process gets its number.
bool launch_worker(Ui *ui, const char *const *arguments, int64_t *process, Error *error) MUST_CHECK;
// Whether that process has not ended, as far as launch_watch saw.
bool launch_goes_on(int64_t process);
// False in the demo, whose history goes with it.
bool launch_may(const Ui *ui);
// The same; says so where it is false, and how to begin for real.
bool launch_is_allowed(Ui *ui);
// False for a run that is over, or in the demo: says so, and what can be done instead.
bool launch_takes_orders(Ui *ui, const RunRecord *run);
// The last checkpoint of a run, up to a step, from which a worker can go on; -1: there is none.
int64_t launch_last_checkpoint(Ui *ui, int64_t run, int64_t step);
// Sees which have ended, and says of one that ended badly why: the last line that it left behind.
void launch_watch(Ui *ui);
// In a child: becomes this program with those arguments, writing there. Never returns.
_Noreturn void launch_become(const Ui *ui, const char *const *arguments, int out, int errors);

// ask.c: a short child of this program whose answer is read, and never waited for.
typedef struct UiAsk {
    int64_t process; // 0: none is under way
    int out, errors; // the reading ends of what it writes
    char *text;      // of its standard output, so far
    size_t length, room;
    char last[MESSAGE_SIZE]; // the line that it failed with
} UiAsk;

bool ask_begin(const Ui *ui, UiAsk *ask, const char *const *arguments, Error *error) MUST_CHECK;
// True: it has ended, and *answer is what it wrote, the caller's to free; or NULL, and `error` says
// why. False: it goes on, or there is none.
bool ask_look(UiAsk *ask, char **answer, Error *error);
void ask_drop(UiAsk *ask); // ends it
