// `mpbench gc`: takes away what runs left behind, and gives the room back to the disk.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/history/checkpoint_files.h"
#include "cli/history/history.h"
#include "store/events.h"
#include "store/worker.h"

typedef struct Collection {
    Store *store;
    bool only_count;
    FilesRemoved removed;
    int superseded; // checkpoints, by a resume before them
    int skipped;    // folders of runs that live
    int in_use;     // folders of forks that train their parents again
} Collection;

static int64_t file_size(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 ? (int64_t)about.st_size : 0;
}

// Their rows; the files then have none.
static bool drop_superseded(Collection *collection, int64_t run, Error *error) {
    CheckpointRow *rows;
    int count;
    bool is_trained;
    if (!store_is_trained(collection->store, run, &is_trained, error))
        return false;
    if (is_trained)
        return true;
    if (!store_list_superseded_checkpoints(collection->store, run, &rows, &count, error))
        return false;
    bool done = true;
    for (int i = 0; i < count && done && !collection->only_count; i++)
        done = store_remove_checkpoint(collection->store, rows[i].id, error);
    collection->superseded += count;
    free(rows);
    return done;
}

// The files of the run's pictures are as little leftovers as those of its checkpoints.
static bool add_pictures(Collection *collection, int64_t run, CheckpointRow **rows, int *count,
                         Error *error) {
    Event *events;
    int pictures;
    if (!store_read_events(collection->store, run, 0, 1U << EVENT_PICTURE, 0, &events, &pictures,
                           error))
        return false;
    CheckpointRow *grown =
        pictures > 0 ? realloc(*rows, (size_t)(*count + pictures) * sizeof *grown) : *rows;
    bool done =
        pictures == 0 || grown || error_fail(error, ERROR_MEMORY, "no memory for its pictures");
    *rows = grown ? grown : *rows;
    for (int i = 0; done && i < pictures; i++)
        snprintf((*rows)[(*count)++].file, sizeof grown->file, "%" PRId64 "/%.*s", run,
                 (int)strcspn(events[i].text, " "), events[i].text);
    free(events);
    return done;
}

// A worker renames its file before it adds the row: nothing of a run that lives is a leftover.
static bool remove_leftovers(Collection *collection, int64_t run, Error *error) {
    CheckpointRow *rows;
    int count;
    bool is_trained;
    if (!store_is_trained(collection->store, run, &is_trained, error))
        return false;
    if (is_trained) {
        collection->skipped++;
        return true;
    }
    if (!store_list_checkpoints(collection->store, run, &rows, &count, error))
        return false;
    bool done = add_pictures(collection, run, &rows, &count, error) &&
                checkpoint_files_remove(collection->store, run, rows, count, collection->only_count,
                                        &collection->removed, error);
    free(rows);
    return done;
}

static bool locked(Collection *collection, int64_t run,
                   bool (*work)(Collection *collection, int64_t run, Error *error), Error *error) {
    if (!store_begin(collection->store, error))
        return false;
    if (work(collection, run, error))
        return store_commit(collection->store, error);
    store_rollback(collection->store);
    return false;
}

// Each part under one lock, so that no worker begins between the look and the deed. Rows are gone
// for good before their files go.
static bool collect_folder(Collection *collection, int64_t run, Error *error) {
    return locked(collection, run, drop_superseded, error) &&
           locked(collection, run, remove_leftovers, error);
}

static void say(const Collection *collection, int64_t before, int64_t after) {
    const FilesRemoved *removed = &collection->removed;
    char size[TEXT_SIZE], smaller[TEXT_SIZE];
    const char *verb = collection->only_count ? "would be removed" : "removed";
    printf("%d file%s of checkpoints that no run needs %s", removed->count,
           removed->count == 1 ? "" : "s", verb);
    if (removed->count > 0)
        printf(", %s", text_bytes(size, (double)removed->bytes));
    if (collection->superseded > 0)
        printf(" (%d checkpoint%s that a resume superseded)", collection->superseded,
               collection->superseded == 1 ? "" : "s");
    putchar('\n');
    int alone = collection->skipped + collection->in_use;
    if (alone > 0)
        printf("%d run%s in progress left alone\n", alone, alone == 1 ? "" : "s");
    if (!collection->only_count)
        printf("the history takes %s, %s less than before\n", text_bytes(size, (double)after),
               text_bytes(smaller, (double)(before > after ? before - after : 0)));
}

static void write_said(const Collection *collection, int64_t before, int64_t after) {
    JsonWriter json = {.stream = stdout};
    json_begin_object(&json);
    json_put_boolean(&json, "dry_run", collection->only_count);
    json_put_integer(&json, "files", collection->removed.count);
    json_put_integer(&json, "bytes", collection->removed.bytes);
    json_put_integer(&json, "superseded", collection->superseded);
    json_put_integer(&json, "in_progress", collection->skipped + collection->in_use);
    json_put_integer(&json, "history_before", before);
    json_put_integer(&json, "history_after", after);
    json_end_object(&json);
    putchar('\n');
}

bool command_gc(Cli *cli, Error *error) {
    int64_t *runs = NULL, before, after;
    int count = 0;
    Store *store = history_open(cli, cli->dry_run ? STORE_READ : STORE_WRITE, error);
    if (!store)
        return false;
    Collection collection = {.store = store, .only_count = cli->dry_run};
    before = after = file_size(store_file(store));
    bool done = checkpoint_folders(store, &runs, &count, error);
    done = done && scratch_folders_sweep(store, cli->dry_run, &collection.removed,
                                         &collection.in_use, error);
    for (int i = 0; i < count && done; i++)
        done = collect_folder(&collection, runs[i], error);
    if (done && !cli->dry_run) {
        done = store_remove_unused(store, error) && store_compact(store, error);
        after = file_size(store_file(store));
    }
    if (done && cli->json)
        write_said(&collection, before, after);
    else if (done)
        say(&collection, before, after);
    free(runs);
    store_close(store);
    return done;
}
