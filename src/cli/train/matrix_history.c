// What the history has of a matrix, by whatever name it was kept.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/lua_code.h"
#include "cli/train/matrix.h"
#include "store/checkpoints.h"
#include "store/runs.h"

// What older specifications begin with: the hash was that of the whole text, comments too.
static const char of_text[] = "script ";

enum { OF_TEXT = sizeof of_text - 1, OF_CODE = sizeof MATRIX_OF_CODE - 1, HEX = HASH_HEX_SIZE - 1 };

// The last step from which a run that was stopped goes on as one of this matrix would have come to
// it: by the same file, on as many threads, from a checkpoint that is there. 0: from none.
static bool find_way_on(Store *store, const Matrix *matrix, const RunRecord *run, int64_t *step,
                        Error *error) {
    CheckpointRow *rows;
    int count;
    char root[STORE_PATH_SIZE], file[2 * STORE_PATH_SIZE];
    *step = 0;
    if ((run->status != RUN_STOPPED && run->status != RUN_DEAD) ||
        run->threads != matrix->threads || strcmp(run->script_path, matrix->path) != 0)
        return true;
    if (!store_list_checkpoints(store, run->id, &rows, &count, error))
        return false;
    store_checkpoint_root(store, root);
    for (int i = 0; i < count; i++) {
        snprintf(file, sizeof file, "%s/%s", root, rows[i].file);
        if (!checkpoint_has_weights_only(&rows[i]) && access(file, R_OK) == 0)
            *step = rows[i].step;
    }
    free(rows);
    return true;
}

static bool note_runs(Store *store, Matrix *matrix, int64_t id, Error *error) {
    RunRecord *runs;
    int count;
    RunFilter filter = {.matrix = id};
    if (!store_list_runs(store, &filter, &runs, &count, error))
        return false;
    bool done = true;
    for (int i = 0; i < count && done; i++) {
        RunRecord run = {.id = 0};
        int64_t goes_on_from;
        done = store_read_run(store, runs[i].id, &run, error) &&
               find_way_on(store, matrix, &run, &goes_on_from, error);
        if (done)
            matrix_note_run(matrix, &run, goes_on_from);
        record_clear(&run);
    }
    store_free_runs(runs, count);
    return done;
}

// Whether it asks for the same, of a text whose code is the same. The text of a script of which no
// run is left is gone: then it has nothing to offer.
static bool is_same(Store *store, const Matrix *matrix, const char *older) {
    char hash[HASH_HEX_SIZE], code[HASH_HEX_SIZE];
    size_t length;
    Error unknown;
    if (strncmp(older, of_text, OF_TEXT) != 0 || strlen(older) < OF_TEXT + HEX ||
        strcmp(older + OF_TEXT + HEX, matrix->specification + OF_CODE + HEX) != 0)
        return false;
    memcpy(hash, older + OF_TEXT, HEX);
    hash[HEX] = 0;
    char *text = store_read_script(store, hash, &length, &unknown);
    bool is_known = text && lua_code_hash(text, length, code);
    free(text);
    return is_known && strncmp(code, matrix->specification + OF_CODE, HEX) == 0;
}

static bool note_older(Store *store, Matrix *matrix, Error *error) {
    int64_t id = 0;
    bool done = true;
    do {
        char *specification;
        done = store_next_matrix(store, id, &id, &specification, error);
        if (done && id > 0 && is_same(store, matrix, specification))
            done = note_runs(store, matrix, id, error);
        free(specification);
    } while (done && id > 0);
    return done;
}

bool matrix_find_runs(Store *store, Matrix *matrix, Error *error) {
    if (matrix->id == 0 && !store_find_matrix(store, matrix->specification, &matrix->id, error))
        return false;
    return note_older(store, matrix, error) &&
           (matrix->id == 0 || note_runs(store, matrix, matrix->id, error));
}
