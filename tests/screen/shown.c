#define _XOPEN_SOURCE   700
#define _DEFAULT_SOURCE // TIOCSWINSZ

#include "tests/screen/shown.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/test.h"

extern char **environ;

double shown_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void give_up(const char *what) {
    printf("not ok %s: %s\n", what, strerror(errno));
    exit(1);
}

// ---- the shell ----------------------------------------------------------------------------------

typedef struct Word { // from the shell
    char what;        // 'p' pid, 's' stopped, 'e' ended
    int value;
} Word;

static void say(int pipe, char what, int value) {
    Word word = {.what = what, .value = value};
    if (write(pipe, &word, sizeof word) != sizeof word)
        _exit(1);
}

static void set_environment(const char *const *changes) {
    static const char *const gone[] = {"LC_ALL",  "LC_CTYPE",   "LANG",      "NO_COLOR",
                                       "COLUMNS", "MPBENCH_DB", "COLORTERM", "COLORFGBG",
                                       "LINES",   "TERMINFO",   "TMUX"};
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
        unsetenv(gone[i]);
    putenv("TERM=xterm-256color");
    putenv("LC_ALL=C.UTF-8");
    for (; *changes; changes++) {
        if (strchr(*changes, '='))
            putenv((char *)(uintptr_t)*changes);
        else
            unsetenv(*changes);
    }
}

// In a session of its own, whose terminal is the pseudo-terminal.
static void keep_job(const char *terminal, int words_in, int words_out,
                     const char *const *environment, char *const *arguments) {
    setsid();
    int fd = open(terminal, O_RDWR);
    ioctl(fd, TIOCSCTTY, 0);
    for (int i = 0; i < 3; i++)
        dup2(fd, i);
    signal(SIGTTOU, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    struct termios own;
    tcgetattr(0, &own);
    set_environment(environment);
    pid_t program = fork();
    if (program == 0) {
        setpgid(0, 0);
        tcsetpgrp(0, getpid());
        signal(SIGTTOU, SIG_DFL);
        signal(SIGHUP, SIG_DFL);
        for (int i = 3; i < 256; i++)
            close(i);
        execv(arguments[0], arguments);
        _exit(126);
    }
    setpgid(program, program);
    say(words_out, 'p', program);
    for (int status; waitpid(program, &status, WUNTRACED) == program;) {
        tcsetpgrp(0, getpid());
        if (!WIFSTOPPED(status)) {
            say(words_out, 'e', status);
            break;
        }
        tcsetattr(0, TCSADRAIN, &own); // as shells do
        say(words_out, 's', 0);
        char byte;
        if (read(words_in, &byte, 1) != 1)
            break;
        tcsetpgrp(0, program);
        kill(-program, SIGCONT);
    }
    _exit(0);
}

static void hear(Shown *shown, double seconds) {
    struct pollfd in = {.fd = shown->words_out, .events = POLLIN};
    Word word;
    if (poll(&in, 1, (int)(seconds * 1000)) != 1)
        return;
    if (read(shown->words_out, &word, sizeof word) != sizeof word) {
        shown->ended = true;
        return;
    }
    if (word.what == 'p')
        shown->program = word.value;
    shown->stopped = word.what == 's';
    if (word.what == 'e') {
        shown->ended = true;
        shown->status = word.value;
    }
}

// ---- the terminal -------------------------------------------------------------------------------

static int on_property(VTermProp property, VTermValue *value, void *user) {
    Shown *shown = user;
    if (property == VTERM_PROP_ALTSCREEN)
        shown->is_alternate = value->boolean;
    else if (property == VTERM_PROP_CURSORVISIBLE)
        shown->shows_cursor = value->boolean;
    return 1;
}

static void answer(const char *bytes, size_t length, void *user) { // to what the program asks
    const Shown *shown = user;
    bool is_mute = shown->background && !shown->background[0];
    if (is_mute || write(shown->terminal, bytes, length) < 0)
        return;
}

static void make_terminal(Shown *shown) {
    static const VTermScreenCallbacks callbacks = {.settermprop = on_property};
    shown->vt = vterm_new(shown->rows, shown->columns);
    vterm_set_utf8(shown->vt, 1);
    vterm_output_set_callback(shown->vt, answer, shown);
    shown->screen = vterm_obtain_screen(shown->vt);
    shown->shows_cursor = true;
    vterm_screen_set_callbacks(shown->screen, &callbacks, shown);
    vterm_screen_enable_altscreen(shown->screen, 1);
    vterm_screen_reset(shown->screen, 1);
}

static void set_size(const Shown *shown) {
    struct winsize size = {.ws_row = (unsigned short)shown->rows,
                           .ws_col = (unsigned short)shown->columns};
    ioctl(shown->terminal, TIOCSWINSZ, &size);
}

void shown_start(Shown *shown, int columns, int rows, const char *const *environment,
                 const char *const *arguments) {
    enum { MOST = 32 };
    static const char background[] = "BACKGROUND=";
    const char *program = getenv("MPBENCH");
    char *list[MOST] = {(char *)(uintptr_t)(program ? program : "build/mpbench")};
    int to_shell[2], from_shell[2], count = 1;
    for (; *arguments && count < MOST - 1; arguments++)
        list[count++] = (char *)(uintptr_t)*arguments;
    if (access(list[0], X_OK) != 0)
        give_up(list[0]);
    *shown = (Shown){.columns = columns, .rows = rows, .raw = malloc(SHOWN_RAW_SIZE)};
    shown->terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    for (int i = 0; environment[i]; i++)
        if (strncmp(environment[i], background, sizeof background - 1) == 0)
            shown->background = environment[i] + sizeof background - 1;
    if (!shown->raw || shown->terminal < 0 || grantpt(shown->terminal) != 0 ||
        unlockpt(shown->terminal) != 0 || pipe(to_shell) != 0 || pipe(from_shell) != 0)
        give_up("a pseudo-terminal");
    const char *name = ptsname(shown->terminal);
    shown->other_side = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    set_size(shown);
    tcgetattr(shown->other_side, &shown->before);
    make_terminal(shown);
    fcntl(shown->terminal, F_SETFL, O_NONBLOCK);
    fflush(stdout);
    shown->shell = fork();
    if (shown->shell == 0) {
        close(shown->terminal);
        close(to_shell[1]);
        close(from_shell[0]);
        keep_job(name, to_shell[0], from_shell[1], environment, list);
    }
    close(to_shell[0]);
    close(from_shell[1]);
    shown->words_in = to_shell[1];
    shown->words_out = from_shell[0];
    hear(shown, 10);
}

void shown_free(Shown *shown) {
    if (!shown->ended && shown->program > 0) {
        kill(shown->program, SIGTERM); // it tidies up behind it
        if (!shown_wait_end(shown, 2))
            kill(shown->program, SIGKILL);
    }
    kill(shown->shell, SIGKILL);
    waitpid(shown->shell, NULL, 0);
    close(shown->words_in);
    close(shown->words_out);
    if (shown->terminal >= 0)
        close(shown->terminal);
    if (shown->other_side >= 0)
        close(shown->other_side);
    vterm_free(shown->vt);
    free(shown->raw);
    *shown = (Shown){.terminal = -1, .other_side = -1};
}

// libvterm repeats a character (CSI n b) wrongly before the last column: it gets the characters
// themselves.
static size_t repeat_length(const char *bytes, size_t length, int *count) {
    size_t at = 2;
    *count = 0;
    if (length > 0 && bytes[0] != '\x1b')
        return 0;
    for (; at < length && bytes[at] >= '0' && bytes[at] <= '9' && at < 8; at++)
        *count = *count * 10 + bytes[at] - '0';
    return at < length && bytes[1] == '[' && bytes[at] == 'b' && at > 2 ? at + 1 : 0;
}

static bool may_be_cut(const char *bytes, size_t length) {
    return length < 8 && bytes[0] == '\x1b' && (length == 1 || bytes[1] == '[') &&
           (length < 3 || strspn(bytes + 2, "0123456789") >= length - 2);
}

// libvterm reads but the first mode of "?1006;1000h", and knows nothing of pictures that are held.
static void watch_modes(Shown *shown, char byte) {
    memmove(shown->recent, shown->recent + 1, sizeof shown->recent - 1);
    shown->recent[sizeof shown->recent - 1] = byte;
    if (byte != 'h' && byte != 'l')
        return;
    if (memcmp(shown->recent, "1000", 4) == 0)
        shown->has_mouse = byte == 'h';
    else if (memcmp(shown->recent, "2026", 4) == 0)
        shown->is_held = byte == 'h';
}

// libvterm knows nothing of its background.
static void watch_question(Shown *shown, char byte) {
    static const char question[] = "\x1b]11;?\x1b\\";
    enum { LENGTH = sizeof question - 1 };
    memmove(shown->asked, shown->asked + 1, sizeof shown->asked - 1);
    shown->asked[sizeof shown->asked - 1] = byte;
    if (!shown->background || !shown->background[0] || memcmp(shown->asked, question, LENGTH) != 0)
        return;
    char text[64];
    int length = snprintf(text, sizeof text, "\x1b]11;rgb:%s\x1b\\", shown->background);
    answer(text, (size_t)length, shown);
}

static void feed(Shown *shown, const char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++) {
        int count;
        size_t skip = repeat_length(bytes + i, length - i, &count);
        unsigned char byte = (unsigned char)bytes[i];
        if (skip == 0 && may_be_cut(bytes + i, length - i)) {
            shown->held_size = length - i;
            memcpy(shown->held, bytes + i, shown->held_size);
            return;
        }
        if (skip > 0) {
            for (int j = 0; j < count; j++)
                vterm_input_write(shown->vt, shown->last, shown->last_size);
            i += skip - 1;
            continue;
        }
        if ((byte & 0xC0) != 0x80 || shown->last_size == sizeof shown->last)
            shown->last_size = 0;
        shown->last[shown->last_size++] = bytes[i];
        watch_modes(shown, bytes[i]);
        watch_question(shown, bytes[i]);
        vterm_input_write(shown->vt, bytes + i, 1);
    }
}

// Whether something came within the time.
static bool take_some(Shown *shown, double seconds) {
    char bytes[65536 + sizeof shown->held + 1] = "";
    struct pollfd in = {.fd = shown->terminal, .events = POLLIN};
    if (poll(&in, 1, seconds > 0 ? (int)(seconds * 1000) + 1 : 0) != 1)
        return false;
    char *fresh = bytes + shown->held_size;
    memcpy(bytes, shown->held, shown->held_size);
    ssize_t length = read(shown->terminal, fresh, 65536);
    if (length <= 0)
        return false;
    size_t all = shown->held_size + (size_t)length;
    shown->held_size = 0;
    feed(shown, bytes, all);
    size_t room = SHOWN_RAW_SIZE - shown->raw_size;
    size_t kept = (size_t)length < room ? (size_t)length : room;
    memcpy(shown->raw + shown->raw_size, fresh, kept);
    shown->raw_size += kept;
    shown->written += (size_t)length;
    return true;
}

// As take_some; what a picture has begun is waited for, as a terminal does, which shows it at last.
static bool take(Shown *shown, double seconds) {
    const double longest = 1;
    bool came = take_some(shown, seconds);
    double end = shown_clock() + longest;
    while (shown->is_held && shown_clock() < end)
        take_some(shown, end - shown_clock());
    return came;
}

void shown_pump(Shown *shown, double seconds) {
    double end = shown_clock() + seconds;
    do {
        take(shown, end - shown_clock());
    } while (shown_clock() < end);
}

void shown_settle(Shown *shown) {
    const double quiet = 0.2, most = 5;
    double end = shown_clock() + most;
    while (take(shown, quiet) && shown_clock() < end)
        ;
}

static bool has_keys_to_read(const Shown *shown) {
    int bytes = 0;
    return !shown->ended && ioctl(shown->other_side, FIONREAD, &bytes) == 0 && bytes > 0;
}

void shown_settle_all(Shown *const *list, int count, double quiet) {
    const double most = 10;
    const struct timespec moment = {.tv_nsec = 5000000};
    double start = shown_clock(), last = start;
    while (shown_clock() - last < quiet * test_patience() && shown_clock() - start < most) {
        for (int i = 0; i < count; i++)
            while (take(list[i], 0) || has_keys_to_read(list[i]))
                last = shown_clock();
        nanosleep(&moment, NULL);
    }
}

void shown_type_bytes(Shown *shown, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t done = write(shown->terminal, bytes, length);
        if (done < 0 && errno != EAGAIN)
            return;
        if (done <= 0) { // it does not read fast enough: take what it wrote
            take(shown, 0.01);
            continue;
        }
        bytes += done;
        length -= (size_t)done;
    }
}

void shown_type(Shown *shown, const char *keys) {
    shown_type_bytes(shown, keys, strlen(keys));
}

void shown_resize(Shown *shown, int columns, int rows) {
    shown->columns = columns;
    shown->rows = rows;
    vterm_set_size(shown->vt, rows, columns);
    set_size(shown); // the kernel sends SIGWINCH
}

double shown_wait(Shown *shown, const char *text, bool there, double seconds) {
    double start = shown_clock();
    do {
        if ((strstr(shown_text(shown), text) != NULL) == there)
            return shown_clock() - start;
        take(shown, 0.005);
    } while (shown_clock() - start < seconds * test_patience());
    return -1;
}

static bool wait_for(Shown *shown, const bool *what, double seconds) {
    double end = shown_clock() + seconds * test_patience();
    while (!*what && shown_clock() < end) {
        if (shown->terminal >= 0)
            take(shown, 0);
        hear(shown, 0.01);
    }
    if (shown->terminal >= 0)
        while (take(shown, 0))
            ;
    return *what;
}

bool shown_wait_end(Shown *shown, double seconds) {
    return wait_for(shown, &shown->ended, seconds);
}

bool shown_wait_stop(Shown *shown, double seconds) {
    return wait_for(shown, &shown->stopped, seconds);
}

void shown_continue(Shown *shown) {
    shown->stopped = false;
    if (write(shown->words_in, "c", 1) != 1)
        give_up("the shell");
}
