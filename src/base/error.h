// base/error.h: how a function says that it failed, and why.
//
// A function that can fail returns bool (true: done) and takes an Error to fill as its last
// parameter. The text is one line that names the cause and the remedy; the code decides the exit
// status of the program. An Error is the caller's, lives on its stack, and may be read from the
// thread that filled it. Nothing here allocates. Programmer errors are asserted, not reported.
#pragma once

#include <stdbool.h>

typedef enum ErrorCode {
    ERROR_NONE = 0,
    ERROR_FAILED,      // the run or the command failed: exit 1
    ERROR_USAGE,       // it was asked for wrongly: exit 2
    ERROR_UNAVAILABLE, // a device, format or the like that was asked for is not there: exit 3
    ERROR_HISTORY,     // the history cannot be opened or written: exit 4
    ERROR_MEMORY,      // no memory: exit 1
    ERROR_STOPPED,     // somebody asked for the stop: a signal, a command
    ERROR_FULL,        // the disk of the history is full: exit 4
    ERROR_BUSY,        // another program holds the history's lock: exit 4
    ERROR_TAKEN,       // a worker has the run, and does not give it or answer: exit 1
} ErrorCode;

enum { ERROR_TEXT_SIZE = 512 };

typedef struct Error {
    ErrorCode code;
    char text[ERROR_TEXT_SIZE];
    const char *file; // where in our source it was raised
    int line;
} Error;

#define MUST_CHECK __attribute__((warn_unused_result))

// Fills `error` (which may be NULL) and is always false, so that a caller writes
//     return error_fail(error, ERROR_USAGE, "%s: no such experiment", name);
#define error_fail(error, code, ...) error_fail_at(error, code, __FILE__, __LINE__, __VA_ARGS__)

__attribute__((format(printf, 5, 6))) bool
error_fail_at(Error *error, ErrorCode code, const char *file, int line, const char *format, ...);

// Puts "prefix: " before the text of an error that is on its way up; always false, as above.
__attribute__((format(printf, 2, 3))) bool error_prefix(Error *error, const char *format, ...);

// What errno `code` means; of 0, which says nothing, that no cause is known.
const char *error_cause(int code);
// What helps against errno `code`, "; raise ...", where the system has a limit on how many of
// something there may be, or how large it may be; "" for every other code.
const char *error_remedy(int code);

// The exit status of the program for an error of this code.
int error_exit_status(ErrorCode code);
