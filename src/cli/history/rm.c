// `mpbench rm`: takes runs out of the history, and then the files of their checkpoints.
#include <stdio.h>

#include "cli/cli.h"
#include "cli/history/checkpoint_files.h"
#include "cli/history/history.h"
#include "store/worker.h"

static bool is_among(const int64_t *runs, int count, int64_t run) {
    for (int i = 0; i < count; i++)
        if (runs[i] == run)
            return true;
    return false;
}

static void write_removed(const int64_t *runs, int count, const FilesRemoved *files) {
    JsonWriter json = {.stream = stdout};
    json_begin_object(&json);
    json_key(&json, "removed");
    json_begin_array(&json);
    for (int i = 0; i < count; i++)
        json_integer(&json, runs[i]);
    json_end_array(&json);
    json_put_integer(&json, "files", files->count);
    json_put_integer(&json, "bytes", files->bytes);
    json_end_object(&json);
    putchar('\n');
}

bool command_rm(Cli *cli, Error *error) {
    int64_t runs[CLI_MAX_OPERANDS];
    int count = 0, removed = 0;
    FilesRemoved files = {.count = 0};
    Store *store = history_open(cli, STORE_WRITE, error);
    bool done = store != NULL;
    for (int i = 0; i < cli->operand_count && done; i++) { // all of them are there, or none goes
        int64_t run = 0;
        done = store_find_run(store, cli->operands[i], &run, error) &&
               store_refuse_living(store, run, error);
        if (done && !is_among(runs, count, run))
            runs[count++] = run;
    }
    // The rows go first: a file without a row is a leftover that gc finds, a row without its file
    // would be a checkpoint that cannot be loaded.
    for (int i = 0; i < count && done; i++) {
        done = store_remove_run(store, runs[i], error);
        removed += done;
        done = done && checkpoint_files_remove(store, runs[i], NULL, 0, false, &files, error);
    }
    if (removed > 0 && cli->json) {
        write_removed(runs, removed, &files);
    } else if (removed > 0) {
        char size[TEXT_SIZE];
        printf("%d run%s removed", removed, removed == 1 ? "" : "s");
        if (files.count > 0)
            printf(", and %d file%s of %s", files.count, files.count == 1 ? "" : "s",
                   text_bytes(size, (double)files.bytes));
        puts("; `mpbench gc` makes the history's file smaller");
    }
    store_close(store);
    return done;
}
