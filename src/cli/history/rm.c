// `mpbench rm`: takes runs out of the history, and then the files of their checkpoints; and scans.
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/history/checkpoint_files.h"
#include "cli/history/history.h"
#include "cli/scan/kept.h"
#include "store/runs.h"
#include "store/worker.h"

enum { SAID_NAMES = 4 };

typedef struct Removal {
    int64_t runs[CLI_MAX_OPERANDS], scans[CLI_MAX_OPERANDS];
    int run_count, scan_count; // that were named
    int runs_removed, scans_removed;
    char names[SAID_NAMES][RECORD_NAME_SIZE]; // of the first runs
    FilesRemoved files;
} Removal;

static bool is_among(const int64_t *runs, int count, int64_t run) {
    for (int i = 0; i < count; i++)
        if (runs[i] == run)
            return true;
    return false;
}

static bool keep_name(Store *store, int64_t run, char name[RECORD_NAME_SIZE], Error *error) {
    RunRecord record = {0};
    const bool done = store_read_run(store, run, &record, error);
    memcpy(name, record.name, RECORD_NAME_SIZE);
    record_clear(&record);
    return done;
}

// All are there, and idle, or none goes.
static bool find_all(const Cli *cli, Store *store, Removal *removal, Error *error) {
    for (int i = 0; i < cli->operand_count; i++) {
        const char *operand = cli->operands[i];
        const bool is_scan = scan_is_named(operand);
        int64_t *list = is_scan ? removal->scans : removal->runs, id;
        int *count = is_scan ? &removal->scan_count : &removal->run_count;
        if (is_scan ? !scan_find(store, operand, &id, error)
                    : !store_find_whole_name(store, operand, &id, error) ||
                          !store_refuse_living(store, id, error))
            return false;
        if (is_among(list, *count, id))
            continue;
        if (!is_scan && *count < SAID_NAMES && !keep_name(store, id, removal->names[*count], error))
            return false;
        list[(*count)++] = id;
    }
    return true;
}

// Scans go first: that of a run would go with it.
static bool remove_all(Store *store, Removal *removal, Error *error) {
    bool done = true;
    for (int i = 0; i < removal->scan_count && done; i++) {
        done = store_remove_scan(store, removal->scans[i], error);
        removal->scans_removed += done;
    }
    // The rows go first: a file without a row is a leftover that gc finds, a row without its file
    // would be a checkpoint that cannot be loaded.
    for (int i = 0; i < removal->run_count && done; i++) {
        done = store_remove_run(store, removal->runs[i], error);
        removal->runs_removed += done;
        done = done && checkpoint_files_remove(store, removal->runs[i], NULL, 0, false,
                                               &removal->files, error);
    }
    return done;
}

// ---- what was done ------------------------------------------------------------------------------

static void write_list(JsonWriter *json, const char *key, const int64_t *ids, int count) {
    json_key(json, key);
    json_begin_array(json);
    for (int i = 0; i < count; i++)
        json_integer(json, ids[i]);
    json_end_array(json);
}

static void write_removed(const Removal *removal) {
    JsonWriter json = {.stream = stdout};
    json_begin_object(&json);
    write_list(&json, "removed", removal->runs, removal->runs_removed);
    if (removal->scans_removed > 0)
        write_list(&json, "scans", removal->scans, removal->scans_removed);
    json_put_integer(&json, "files", removal->files.count);
    json_put_integer(&json, "bytes", removal->files.bytes);
    json_end_object(&json);
    putchar('\n');
}

static void print_removed(const Removal *removal) {
    const int runs = removal->runs_removed, scans = removal->scans_removed;
    const FilesRemoved *files = &removal->files;
    char size[TEXT_SIZE];
    if (runs > 0)
        printf("%d run%s", runs, runs == 1 ? "" : "s");
    if (scans > 0)
        printf("%s%d scan%s", runs > 0 ? " and " : "", scans, scans == 1 ? "" : "s");
    fputs(" removed", stdout);
    for (int i = 0; i < runs && i < SAID_NAMES; i++) {
        fputs(i > 0 ? ", " : ": ", stdout);
        cli_print_outside(stdout, removal->names[i]);
    }
    if (runs > SAID_NAMES)
        printf(" and %d more", runs - SAID_NAMES);
    if (files->count > 0)
        printf(", and %d file%s of %s", files->count, files->count == 1 ? "" : "s",
               text_bytes(size, (double)files->bytes));
    puts("; `mpbench gc` makes the history's file smaller");
}

bool command_rm(Cli *cli, Error *error) {
    Removal removal = {.run_count = 0};
    Store *store = history_open(cli, STORE_WRITE, error);
    const bool done =
        store && find_all(cli, store, &removal, error) && remove_all(store, &removal, error);
    const bool is_any = removal.runs_removed + removal.scans_removed > 0;
    if (is_any && cli->json)
        write_removed(&removal);
    else if (is_any)
        print_removed(&removal);
    store_close(store);
    return done;
}
