#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool error_fail_at(Error *error, ErrorCode code, const char *file, int line, const char *format,
                   ...) {
    if (!error)
        return false;
    va_list arguments;
    va_start(arguments, format);
    char text[ERROR_TEXT_SIZE]; // the arguments may point into error->text
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    memcpy(error->text, text, sizeof text);
    error->code = code;
    error->file = file;
    error->line = line;
    return false;
}

bool error_prefix(Error *error, const char *format, ...) {
    if (!error)
        return false;
    char text[ERROR_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t used = strlen(text), room = sizeof text - used;
    const char *const parts[] = {": ", error->text};
    for (int i = 0; i < 2; i++) { // what does not fit is cut
        size_t length = strlen(parts[i]);
        size_t taken = length < room ? length : room - 1;
        memcpy(text + used, parts[i], taken);
        used += taken;
        room -= taken;
        text[used] = 0;
    }
    memcpy(error->text, text, sizeof text);
    return false;
}

const char *error_cause(int code) {
    return code ? strerror(code) : "the system gives no cause";
}

const char *error_remedy(int code) {
    switch (code) {
    case EAGAIN: return "; raise the limit on processes (ulimit -u), end some, or free memory";
    case EFBIG: return "; raise the limit on the size of files (ulimit -f)";
    case EMFILE: return "; raise the limit on open files (ulimit -n)";
    case ENFILE: return "; close other programs, the system has no more open files";
    default: return "";
    }
}

int error_exit_status(ErrorCode code) {
    switch (code) {
    case ERROR_NONE: return 0;
    case ERROR_USAGE: return 2;
    case ERROR_UNAVAILABLE: return 3;
    case ERROR_HISTORY:
    case ERROR_FULL:
    case ERROR_BUSY: return 4;
    case ERROR_FAILED:
    case ERROR_MEMORY:
    case ERROR_STOPPED:
    case ERROR_TAKEN: break;
    }
    return 1;
}
