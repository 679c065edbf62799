// tests/screen/shown.h: the real program on a terminal of its own: a pseudo-terminal with libvterm
// behind it, keys as they are typed, and what a person would see.
//
// The program is a job of a small shell (keep_job), as on a real terminal: it can be stopped and
// brought back, and the shell sees how it ended. One thread; every wait has an end,
// which test_patience puts off.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <termios.h>
#include <vterm.h>

#define KEY_UP    "\x1bOA"
#define KEY_DOWN  "\x1bOB"
#define KEY_RIGHT "\x1bOC"
#define KEY_LEFT  "\x1bOD"

enum { SHOWN_TEXT_SIZE = 1 << 20, SHOWN_RAW_SIZE = 8 << 20 };

typedef struct Shown {
    pid_t shell, program;
    int terminal, other_side; // both ends of the pseudo-terminal; -1: closed
    int words_in, words_out;  // pipes to and from the shell
    VTerm *vt;
    VTermScreen *screen;
    int columns, rows;
    bool is_alternate, shows_cursor, has_mouse;
    bool is_held; // a picture is on its way, of which a person sees nothing yet
    const char
        *background; // "ffff/ffff/ffff": what it says when it is asked; NULL: it does not know
    char asked[8];   // bytes of a question
    struct termios before;
    char held[16], last[4]; // of shown.c's feed: a cut escape, the last character
    size_t held_size, last_size;
    char recent[5]; // bytes
    bool ended, stopped;
    int status; // as waitpid has it
    char *raw;  // the bytes that the program wrote, the first SHOWN_RAW_SIZE
    size_t raw_size;
    size_t written; // all of them
} Shown;

// `environment`: "NAME=VALUE" on top of ours (without locale, TERM and MPBENCH_* of it), "NAME" to
// remove; `arguments` of the program; both ended by NULL. TERM is xterm-256color, the locale
// C.UTF-8. With "BACKGROUND=ffff/ffff/ffff" the terminal answers that it is white,
// with "BACKGROUND=" it answers nothing at all.
void shown_start(Shown *shown, int columns, int rows, const char *const *environment,
                 const char *const *arguments);
void shown_free(Shown *shown); // kills what is still there

// Takes what the program writes, for so long; whole pictures, as a terminal shows them that holds
// them (mode 2026).
void shown_pump(Shown *shown, double seconds);
// Until nothing was written for a while.
void shown_settle(Shown *shown);
// Until all have read what was typed, and none wrote anything for so long.
void shown_settle_all(Shown *const *list, int count, double quiet);
void shown_type(Shown *shown, const char *keys);
void shown_type_bytes(Shown *shown, const char *bytes, size_t length);
void shown_resize(Shown *shown, int columns, int rows);
// Seconds until the text is on the screen (`there`) or gone; negative: it did not come to that.
double shown_wait(Shown *shown, const char *text, bool there, double seconds);
// Waits for the end of the program; false: it goes on.
bool shown_wait_end(Shown *shown, double seconds);
bool shown_wait_stop(Shown *shown, double seconds);
void shown_continue(Shown *shown); // fg

// The lines of the screen, without spaces at their ends.
const char *shown_text(const Shown *shown);
// One letter a cell: what ink it has (as a colour of the theme, at any depth), upper case where it
// is bold; then the cells that stand on another ground.
const char *shown_inks(const Shown *shown);
bool shown_is_light(const Shown *shown); // by what it answers
// Termios, alternate screen, cursor and mouse as before the program; else says what is not.
bool shown_is_given_back(const Shown *shown, char *why, size_t size);
double shown_clock(void);

// The moment at which the recording of --demo is looked at in stored screens and pictures, in
// milliseconds since 1970: an hour after its last run.
#define SCREEN_CLOCK "1795250000000"
// Settings in a folder that nobody can make, whoever tests: all are as they come.
#define SCREEN_NO_CONFIG "XDG_CONFIG_HOME=/proc/no-one"
