// Short children of this program that are asked something: what they write is read as it comes.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ui/screen.h"

enum { MOST_ANSWER = 1 << 24 }; // bytes

bool ask_begin(const Ui *ui, UiAsk *ask, const char *const *arguments, Error *error) {
    int out[2], errors[2];
    *ask = (UiAsk){.process = 0};
    if (pipe(out) != 0)
        return error_fail(error, ERROR_FAILED, "cannot ask: %s", error_cause(errno));
    if (pipe(errors) != 0) {
        error_fail(error, ERROR_FAILED, "cannot ask: %s", error_cause(errno));
        close(out[0]);
        close(out[1]);
        return false;
    }
    const int ends[] = {out[0], out[1], errors[0], errors[1]};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    fcntl(errors[0], F_SETFL, O_NONBLOCK);
    pid_t pid = fork();
    if (pid == 0)
        launch_become(ui, arguments, out[1], errors[1]);
    close(out[1]);
    close(errors[1]);
    if (pid < 0) {
        close(out[0]);
        close(errors[0]);
        return error_fail(error, ERROR_FAILED, "cannot ask: %s; close other programs",
                          error_cause(errno));
    }
    *ask = (UiAsk){.process = pid, .out = out[0], .errors = errors[0]};
    return true;
}

static void drain_errors(UiAsk *ask) {
    const int head = (int)strlen("mpbench: ");
    char text[4096];
    for (ssize_t length; (length = read(ask->errors, text, sizeof text - 1)) > 0;) {
        text[length] = 0;
        char *line = strstr(text, "mpbench: ");
        if (line)
            snprintf(ask->last, sizeof ask->last, "%.*s", (int)strcspn(line, "\n") - head,
                     line + head);
    }
}

static bool make_room(UiAsk *ask) {
    enum { LEAST = 1 << 16 };
    if (ask->room - ask->length > LEAST)
        return true;
    const size_t room = 2 * ask->room + 2 * LEAST;
    char *text = room <= MOST_ANSWER ? realloc(ask->text, room) : NULL;
    if (!text)
        return false;
    ask->text = text;
    ask->room = room;
    return true;
}

// True: there is no more.
static bool drain(UiAsk *ask) {
    for (;;) {
        if (!make_room(ask)) { // nobody asks for as much
            kill((pid_t)ask->process, SIGKILL);
            return true;
        }
        ssize_t length = read(ask->out, ask->text + ask->length, ask->room - ask->length - 1);
        if (length <= 0)
            return length == 0 || (errno != EAGAIN && errno != EINTR);
        ask->length += (size_t)length;
    }
}

static void close_ends(UiAsk *ask) {
    close(ask->out);
    close(ask->errors);
    ask->process = 0;
}

bool ask_look(UiAsk *ask, char **answer, Error *error) {
    int status;
    if (ask->process == 0)
        return false;
    drain_errors(ask);
    if (!drain(ask))
        return false;
    if (waitpid((pid_t)ask->process, &status, WNOHANG) != ask->process)
        return false; // it has closed its output, and is about to end
    drain_errors(ask);
    close_ends(ask);
    *answer = NULL;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && ask->length > 0) {
        ask->text[ask->length] = 0;
        *answer = ask->text;
    } else {
        free(ask->text);
        error_fail(error, ERROR_FAILED, "%s",
                   ask->last[0] ? ask->last : "the process that was asked left no word");
    }
    ask->text = NULL;
    return true;
}

void ask_drop(UiAsk *ask) {
    if (ask->process == 0)
        return;
    kill((pid_t)ask->process, SIGKILL); // it keeps nothing
    while (waitpid((pid_t)ask->process, NULL, 0) < 0 && errno == EINTR)
        continue;
    close_ends(ask);
    free(ask->text);
    ask->text = NULL;
}
