// The code that a matrix is known by: of its experiment, and of the files that this requires.
#include <stdlib.h>
#include <string.h>

#include "base/lua_code.h"
#include "cli/experiments.h"
#include "cli/train/matrix.h"
#include "data/file.h"

enum { MOST_REQUIRED = 256 }; // of what an experiment requires beyond these is not known

typedef struct Required {
    char
        folder[EXPERIMENT_PATH_SIZE]; // of the experiment, with a '/' at its end: names begin there
    char names[MOST_REQUIRED][LUA_REQUIRED_SIZE];
    int count;
} Required;

static bool fail_memory(Error *error) {
    return error_fail(error, ERROR_MEMORY, "no memory for the matrix");
}

static void note_required(Required *required, const char *text, size_t length) {
    char name[LUA_REQUIRED_SIZE];
    for (size_t at = 0; lua_code_required(text, length, &at, name);) {
        int known = 0;
        while (known < required->count && strcmp(required->names[known], name) != 0)
            known++;
        if (known == required->count && known < MOST_REQUIRED)
            memcpy(required->names[required->count++], name, sizeof name);
    }
}

// The hash of a file's code; what it requires is noted.
static bool hash_file(const char *path, Required *required, char hex[HASH_HEX_SIZE], Error *error) {
    const uint64_t most = 1 << 28;
    uint8_t *bytes;
    size_t size;
    if (!file_read(path, most, &bytes, &size, error))
        return false;
    note_required(required, (const char *)bytes, size);
    bool done = lua_code_hash((const char *)bytes, size, hex);
    free(bytes);
    return done || fail_memory(error);
}

// By a name that a script requires; false: it is no file of the experiment's, as "mp" is none.
static bool hash_required(const char *name, Required *required, char hex[HASH_HEX_SIZE]) {
    static const char *const endings[] = {".lua", "/init.lua"};
    char file[LUA_REQUIRED_SIZE], path[EXPERIMENT_PATH_SIZE + LUA_REQUIRED_SIZE + 16];
    memcpy(file, name, sizeof file);
    for (char *dot = file; (dot = strchr(dot, '.'));)
        *dot = '/';
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        Error absent = {0};
        snprintf(path, sizeof path, "%s%s%s", required->folder, file, endings[i]);
        if (hash_file(path, required, hex, &absent))
            return true;
    }
    return false;
}

bool matrix_write_code(FILE *out, const char *path, Error *error) {
    char hex[HASH_HEX_SIZE];
    Required *required = calloc(1, sizeof *required);
    if (!required)
        return fail_memory(error);
    const char *slash = strrchr(path, '/');
    snprintf(required->folder, sizeof required->folder, "%.*s", slash ? (int)(slash + 1 - path) : 0,
             path);
    bool done = hash_file(path, required, hex, error);
    if (done)
        fprintf(out, MATRIX_OF_CODE "%s\n", hex);
    for (int i = 0; done && i < required->count; i++) // more may be noted on the way
        if (hash_required(required->names[i], required, hex))
            fprintf(out, "requires %s %s\n", required->names[i], hex);
    free(required);
    return done;
}
