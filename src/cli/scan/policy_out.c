#include "cli/scan/policy_out.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/out_file.h"

enum { READ_END, WRITE_END, ENDS };

// An Error as the other process gives it; code ERROR_NONE: it went well.
static bool send_answer(int to, const Error *error) {
    ssize_t put;
    do
        put = write(to, error, sizeof *error); // less than a pipe takes whole
    while (put < 0 && errno == EINTR);
    return put == (ssize_t)sizeof *error;
}

static ssize_t read_answer(int from, Error *answer) {
    ssize_t got;
    do
        got = read(from, answer, sizeof *answer);
    while (got < 0 && errno == EINTR);
    return got;
}

static bool take_answer(int from, Error *error) {
    Error answer = {0};
    if (read_answer(from, &answer) != (ssize_t)sizeof answer)
        return error_fail(error, ERROR_FAILED,
                          "the process that writes the file was killed: scan again");
    return answer.code == ERROR_NONE || error_fail(error, answer.code, "%s", answer.text);
}

// ---- the other process --------------------------------------------------------------------------

// Copies what comes. True: the zero byte did, too, behind all of it.
static bool copy(int from, FILE *to) {
    char text[4096];
    for (;;) {
        const ssize_t got = read(from, text, sizeof text);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        const bool is_last = text[got - 1] == 0;
        fwrite(text, 1, (size_t)got - is_last, to);
        if (is_last)
            return true;
    }
}

// A signal to all of the terminal's is for the scan, whose end it then sees.
static void serve(const char *path, int from, int answers) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    OutFile out;
    Error error = {0};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        signal(numbers[i], SIG_IGN);
    const bool is_open = out_file_open(&out, path, false, &error);
    if (!send_answer(answers, &error) && is_open)
        (void)!out_file_close(&out, false, &error);
    else if (is_open) {
        const bool done = out_file_close(&out, copy(from, out.stream), &error);
        if (done || error.code != ERROR_NONE)
            (void)send_answer(answers, &error);
    }
    _exit(0);
}

// ---- this one -----------------------------------------------------------------------------------

static bool make_pipe(int ends[ENDS], Error *error) {
    if (pipe(ends) != 0)
        return error_fail(error, ERROR_FAILED, "no pipe: %s", error_cause(errno));
    for (int i = 0; i < ENDS; i++)
        (void)!fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    return true;
}

bool policy_out_open(PolicyOut *out, const char *path, Error *error) {
    int texts[ENDS], answers[ENDS];
    *out = (PolicyOut){.answers = -1};
    if (!make_pipe(texts, error))
        return false;
    if (!make_pipe(answers, error)) {
        close(texts[READ_END]);
        close(texts[WRITE_END]);
        return false;
    }
    fflush(NULL); // what is not written yet is written once
    const pid_t child = fork();
    if (child == 0) {
        close(texts[WRITE_END]);
        close(answers[READ_END]);
        serve(path, texts[READ_END], answers[WRITE_END]);
    }
    close(texts[READ_END]);
    close(answers[WRITE_END]);
    out->child = child > 0 ? child : 0;
    out->answers = answers[READ_END];
    out->stream = child > 0 ? fdopen(texts[WRITE_END], "wb") : NULL;
    if (!out->stream)
        close(texts[WRITE_END]);
    if (out->stream && take_answer(out->answers, error))
        return true;
    if (!out->stream)
        error_fail(error, ERROR_FAILED, "no process to write it: %s", error_cause(errno));
    (void)!policy_out_close(out, false, NULL);
    return false;
}

bool policy_out_close(PolicyOut *out, bool done, Error *error) {
    if (out->stream && done)
        fputc(0, out->stream);
    if (out->stream)
        (void)fclose(out->stream); // what was not taken, no answer comes to
    done = done && take_answer(out->answers, error);
    if (out->answers >= 0) {
        Error rest;
        while (read_answer(out->answers, &rest) > 0) // until it has tidied up and is gone
            continue;
        close(out->answers);
    }
    while (out->child > 0 && waitpid(out->child, NULL, 0) < 0 && errno == EINTR)
        continue;
    *out = (PolicyOut){.answers = -1};
    return done;
}
