#include "ui/cells/reading.h"

#include <curses.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <unistd.h>

#include "base/clock.h"
#include "ui/keys/keys.h"

enum { MOST_KEPT = 64 };

static struct {
    InputReader reader;
    Input kept[MOST_KEPT]; // came while an answer was waited for
    int kept_count;
    Input pressed; // the last press of the mouse
    double pressed_at;
} reading;

void reading_begin(void) {
    static const struct {
        const char *capability;
        int key;
    } table[] = {
        {"kcuu1", KEY_CODE_UP},    {"kcud1", KEY_CODE_DOWN},    {"kcub1", KEY_CODE_LEFT},
        {"kcuf1", KEY_CODE_RIGHT}, {"kpp", KEY_CODE_PAGE_UP},   {"knp", KEY_CODE_PAGE_DOWN},
        {"khome", KEY_CODE_HOME},  {"kend", KEY_CODE_END},      {"kdch1", KEY_CODE_DELETE},
        {"kent", KEY_CODE_ENTER},  {"kcbt", KEY_CODE_BACKTAB},  {"kf1", KEY_CODE_F1},
        {"kf2", KEY_CODE_F2},      {"kf3", KEY_CODE_F3},        {"kf4", KEY_CODE_F4},
        {"kf5", KEY_CODE_F5},      {"kbs", KEY_CODE_BACKSPACE},
    };
    memset(&reading, 0, sizeof reading);
    input_init(&reading.reader);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *sequence = tigetstr((char *)(uintptr_t)table[i].capability);
        if (sequence && sequence != (const char *)-1)
            input_add_key(&reading.reader, sequence, table[i].key);
    }
}

typedef enum Wait { WAIT_MORE, WAIT_ENOUGH, WAIT_LOST } Wait;

// Takes the bytes that come within so many seconds.
static Wait take_bytes(double seconds) {
    char bytes[256];
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    size_t room = input_room(&reading.reader);
    int ready = poll(&in, 1, seconds > 0 ? (int)ceil(seconds * 1000) : 0);
    if (ready < 1)
        return ready < 0 ? WAIT_ENOUGH : WAIT_MORE; // a signal, that somebody looks for
    if (!(in.revents & POLLIN))
        return WAIT_LOST;
    ssize_t count = read(STDIN_FILENO, bytes, room < sizeof bytes ? room : sizeof bytes);
    if (count > 0)
        input_feed(&reading.reader, bytes, (size_t)count, clock_seconds());
    bool is_there = count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN));
    return is_there ? WAIT_MORE : WAIT_LOST;
}

// ---- answers ------------------------------------------------------------------------------------

static void await_answer(double seconds) {
    double end = clock_seconds() + seconds, left = seconds;
    while (reading.reader.is_asked && left > 0 && reading.kept_count < MOST_KEPT &&
           take_bytes(left) == WAIT_MORE) {
        while (reading.kept_count < MOST_KEPT &&
               input_next(&reading.reader, clock_seconds(), &reading.kept[reading.kept_count]))
            reading.kept_count++;
        left = end - clock_seconds();
    }
}

void reading_ask_background(void) {
    const double patience = 0.15;
    const char *kind = getenv("TERM");
    if (kind && strncmp(kind, "linux", 5) == 0) // it writes out what it does not know
        return;
    // Then what every terminal answers: who does not know the first is not waited for.
    fputs("\x1b]11;?\x1b\\\x1b[c", stdout);
    fflush(stdout);
    reading.reader.is_asked = true;
    await_answer(patience);
}

bool reading_background(uint32_t *rgb) {
    *rgb = reading.reader.background;
    return reading.reader.has_background;
}

void reading_end(void) {
    const double patience = 0.3;
    reading.kept_count = 0;
    await_answer(patience);
}

// ---- keys and clicks ----------------------------------------------------------------------------

static bool next(Input *input) {
    if (reading.kept_count == 0)
        return input_next(&reading.reader, clock_seconds(), input);
    *input = reading.kept[0];
    memmove(reading.kept, reading.kept + 1, (size_t)--reading.kept_count * sizeof *reading.kept);
    return true;
}

// The second press on a cell, soon after the first, is of both.
static void find_double(Input *input) {
    const double soon = 0.4;
    double now = clock_seconds();
    if (input->kind != INPUT_MOUSE || input->action != MOUSE_PRESS)
        return;
    bool is_same = reading.pressed.column == input->column && reading.pressed.row == input->row;
    bool is_double = is_same && now - reading.pressed_at < soon;
    reading.pressed = *input;
    reading.pressed_at = is_double ? 0 : now; // a third is the first of two again
    input->action = is_double ? MOUSE_DOUBLE : MOUSE_PRESS;
}

bool reading_next(double seconds, Input *input) {
    double end = clock_seconds() + seconds;
    bool is_over = false;
    while (!next(input)) {
        *input = (Input){.kind = INPUT_NONE};
        if (is_over)
            return true;
        double now = clock_seconds(), wait = input_wait(&reading.reader, now);
        Wait got = take_bytes(wait < 0 ? end - now : fmin(wait, end - now));
        if (got == WAIT_LOST)
            return false;
        is_over = got == WAIT_ENOUGH || clock_seconds() >= end;
    }
    find_double(input);
    return true;
}
