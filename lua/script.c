#include "lua/script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sanitize.h"

enum { SHOWN_SIZE = 256 };

static bool no_memory(Script *script, const char *shown, Error *error) {
    script_clear(script);
    return error_fail(error, ERROR_MEMORY, "%s: no memory for the script's text", shown);
}

void script_clear(Script *script) {
    free(script->name);
    free(script->text);
    *script = (Script){0};
}

static bool name_and_hash(Script *script, const char *name, const char *shown, Error *error) {
    script->name = strdup(name);
    if (!script->name)
        return no_memory(script, shown, error);
    sha256_hex(script->hash, script->text, script->length);
    return true;
}

bool script_set(Script *script, const char *name, const char *text, size_t length, Error *error) {
    *script = (Script){0};
    char shown[SHOWN_SIZE];
    sanitize_line(shown, sizeof shown, name, strlen(name));
    if (length > SCRIPT_LARGEST)
        return error_fail(error, ERROR_USAGE, "%s: a script may have 16 MiB, this has %zu bytes",
                          shown, length);
    script->text = malloc(length + 1);
    if (!script->text)
        return no_memory(script, shown, error);
    memcpy(script->text, text, length);
    script->text[length] = 0;
    script->length = length;
    return name_and_hash(script, name, shown, error);
}

// Fills script->text from a regular file of the given size; a file that changes meanwhile is read
// to whatever end it then has.
static bool read_all(Script *script, int file, size_t size, const char *shown, Error *error) {
    size_t room = size + 1; // one more, to see that it has grown
    script->text = malloc(room + 1);
    if (!script->text)
        return no_memory(script, shown, error);
    for (;;) {
        ssize_t got = read(file, script->text + script->length, room - script->length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_fail(error, ERROR_FAILED, "%s: cannot be read: %s", shown,
                              error_cause(errno));
        script->length += (size_t)got;
        script->text[script->length] = 0;
        if (got == 0)
            return true;
        if (script->length == room)
            return error_fail(error, ERROR_FAILED, "%s: grew while it was read; try again", shown);
    }
}

bool script_read(Script *script, const char *path, const char *name, Error *error) {
    *script = (Script){0};
    char shown[SHOWN_SIZE];
    sanitize_line(shown, sizeof shown, name, strlen(name));
    // O_NONBLOCK: opening a FIFO that nobody writes to must not wait.
    int file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0)
        return error_fail(error, ERROR_USAGE, "%s: cannot open the script: %s%s", shown,
                          error_cause(errno), error_remedy(errno));
    bool done = false;
    struct stat about;
    if (fstat(file, &about) != 0) {
        error_fail(error, ERROR_FAILED, "%s: cannot be examined: %s", shown, error_cause(errno));
    } else if (S_ISDIR(about.st_mode)) {
        error_fail(error, ERROR_USAGE, "%s: is a folder; name the script in it", shown);
    } else if (!S_ISREG(about.st_mode)) {
        error_fail(error, ERROR_USAGE, "%s: is not a regular file; scripts are read from files",
                   shown);
    } else if (about.st_size > SCRIPT_LARGEST) {
        error_fail(error, ERROR_USAGE, "%s: a script may have 16 MiB, this has %lld bytes", shown,
                   (long long)about.st_size);
    } else {
        done = read_all(script, file, (size_t)about.st_size, shown, error) &&
               name_and_hash(script, name, shown, error);
    }
    close(file);
    if (!done)
        script_clear(script);
    return done;
}

bool script_lies_below(const char *folder, const char *path) {
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    return length > 0 && strncmp(folder, path, length) == 0 &&
           (path[length] == 0 || path[length] == '/' || path[length - 1] == '/');
}
