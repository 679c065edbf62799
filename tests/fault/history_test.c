// Faults of the history, row by row of the list: what is not ours is left alone, what is damaged is
// found out.
#include <signal.h>

#include "store/checkpoints.h"
#include "store/events.h"
#include "tests/unit/store_fixture.h"

// ---- files --------------------------------------------------------------------------------------

static char *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    char *bytes = malloc(8 << 20);
    *size = file ? fread(bytes, 1, 8 << 20, file) : 0;
    if (file)
        fclose(file);
    return bytes;
}

static void write_file(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(bytes, 1, size, file) == size);
    if (file)
        fclose(file);
}

// The file is refused for both ways of opening, and not a byte of it changes.
static void check_left_alone(const char *path, const char *part) {
    size_t size, size_after;
    char *before = read_file(path, &size);
    for (int mode = STORE_READ; mode <= STORE_WRITE; mode++) {
        CHECK_REFUSED(store_open(path, (StoreMode)mode, &error), ERROR_HISTORY, path, part);
        char *after = read_file(path, &size_after);
        CHECK_MESSAGE(size == size_after && memcmp(before, after, size) == 0, "%s was changed",
                      path);
        free(after);
    }
    free(before);
}

static void fault_22_what_is_no_history_is_left_alone(void) {
    write_file(path_of("text"),
               "A plain text, longer than a header of a database would be. "
               "It goes on for a while, so that there are 100 bytes and more.",
               119);
    check_left_alone(path_of("text"), "not a database");
    write_file(path_of("short"), "x", 1);
    check_left_alone(path_of("short"), "not a database");
    run_sql(path_of("foreign.db"), "PRAGMA application_id=7; CREATE TABLE runs (id)");
    check_left_alone(path_of("foreign.db"), "another application");
    run_sql(path_of("plain.db"), "CREATE TABLE runs (id)");
    check_left_alone(path_of("plain.db"), "another application");
    // Nor is the journal that another application left half done touched.
    write_file(path_of("foreign.db-journal"), "half", 4);
    check_left_alone(path_of("foreign.db"), "another application");
    CHECK(access(path_of("foreign.db-journal"), F_OK) == 0);
    alarm((unsigned)(20 * test_patience())); // a pipe must not be waited for
    CHECK_INT(mkfifo(path_of("pipe"), 0600), 0);
    CHECK_REFUSED(store_open(path_of("pipe"), STORE_WRITE, &error), ERROR_HISTORY, "a pipe");
    CHECK_REFUSED(store_open(folder, STORE_WRITE, &error), ERROR_HISTORY, "a directory");
    CHECK_REFUSED(store_open("/dev/null", STORE_WRITE, &error), ERROR_HISTORY, "a device");
    CHECK_REFUSED(store_open(path_of("text/h.db"), STORE_WRITE, &error), ERROR_HISTORY, "--db");
    alarm(0);
    write_file(path_of("nothing"), "", 0);
    CHECK_REFUSED(store_open(path_of("nothing"), STORE_READ, &error), ERROR_HISTORY, "empty");
}

// ---- versions -----------------------------------------------------------------------------------

static const char *fate; // what becomes of the migration

static bool add_colour(Store *store, Error *reason) {
    if (strcmp(fate, "killed before") == 0)
        raise(SIGKILL);
    if (!store_execute(store, "ALTER TABLE runs ADD COLUMN colour TEXT", "it fails", reason))
        return false;
    if (strcmp(fate, "killed after") == 0)
        raise(SIGKILL);
    return strcmp(fate, "refused") != 0 || error_fail(reason, ERROR_FAILED, "no colour today");
}

static Store *open_next(const char *path) {
    static const Migration next[] = {{1, add_colour}};
    return store_open_with(path, STORE_WRITE, &(StoreOptions){NULL, next, 1, 2}, &error);
}

static void fault_23_versions_are_migrated_whole_or_not_at_all(void) {
    const char *path = path_of("old.db");
    Store *store = fresh_store("old.db");
    add_run(store, some_run("kept", "fp32"));
    store_close(store);
    static const char *const fates[] = {"killed before", "killed after", "refused", "done"};
    for (size_t i = 0; i < sizeof fates / sizeof *fates; i++) {
        fate = fates[i];
        pid_t child = fork();
        if (child == 0)
            _exit(open_next(path) ? 0 : 1);
        waitpid(child, NULL, 0);
        bool is_done = strcmp(fate, "done") == 0;
        CHECK_INT(ask_sql(path, "PRAGMA user_version"), is_done ? 2 : 1);
        CHECK_INT(ask_sql(path, "SELECT count(*) FROM pragma_table_info('runs') WHERE name ="
                                " 'colour'"),
                  is_done ? 1 : 0);
        CHECK_INT(ask_sql(path, "SELECT count(*) FROM runs WHERE experiment = 'kept'"), 1);
        char copy[300]; // made before anything was changed, readable as it was
        snprintf(copy, sizeof copy, "%s.backup-v1", path);
        CHECK_INT(ask_sql(copy, "PRAGMA user_version"), 1);
        CHECK_INT(ask_sql(copy, "SELECT count(*) FROM runs"), 1);
        struct stat status;
        CHECK(stat(copy, &status) == 0 && (status.st_mode & 0777) == 0600);
    }
    CHECK_REFUSED(store_open(path, STORE_WRITE, &error), ERROR_HISTORY, "newer mpbench",
                  "schema 2");
    store = store_open(path, STORE_READ, &error);
    CHECK_MESSAGE(store != NULL, "%s", error.text);
    RunRecord *runs;
    int count;
    CHECK_DONE(store_list_runs(store, &(RunFilter){0}, &runs, &count, &error));
    CHECK_INT(count, 1);
    store_free_runs(runs, count);
    store_close(store);
    run_sql(path, "PRAGMA user_version=7");
    CHECK_REFUSED(open_next(path), ERROR_HISTORY, "newer mpbench", "schema 7, this one knows 2");
}

// ---- damage -------------------------------------------------------------------------------------

static void fill_history(const char *name) {
    Store *store = fresh_store(name);
    CHECK_DONE(store_begin(store, &error));
    for (int i = 0; i < 40; i++) {
        RunRecord record = some_run("fashion-cnn", i % 2 ? "fp16" : "bf16");
        CHECK_DONE(record_set_metrics(&record, (RecordMetric[]){{"accuracy", 0.5}}, 1, &error));
        CHECK_DONE(
            record_set_layers(&record, (RecordLayer[]){{"net", -1, "fp16", "auto"}}, 1, &error));
        CHECK_DONE(store_add_run(store, &record, "return {}", 9, &error));
        for (int step = 0; step < 20; step++) {
            Event event = {.step = step, .kind = EVENT_SKIP, .value = 512, .text = "overflow"};
            CHECK_DONE(store_add_event(store, record.id, &event, &error));
        }
        CheckpointRow row = {.run = record.id, .step = 3, .why = "asked", .file = "1/3"};
        CHECK_DONE(store_add_checkpoint(store, &row, &error));
        record_clear(&record);
    }
    CHECK_DONE(store_commit(store, &error));
    store_close(store);
}

// Each may fail in one line; none may crash or hang.
static bool read_everything(Store *store) {
    RunRecord *runs = NULL, record;
    Event *events = NULL;
    CheckpointRow *rows = NULL;
    int count = 0;
    int64_t id;
    size_t length;
    bool done = store_list_runs(store, &(RunFilter){.words = "acc>0.1"}, &runs, &count, &error);
    if (done)
        store_free_runs(runs, count);
    if (store_read_run(store, 7, &record, &error)) {
        free(store_read_script(store, record.script_hash, &length, &error));
        record_clear(&record);
    } else {
        done = false;
    }
    if (store_read_events(store, 7, 0, 0, 0, &events, &count, &error))
        free(events);
    else
        done = false;
    if (store_list_checkpoints(store, 7, &rows, &count, &error))
        free(rows);
    else
        done = false;
    return store_find_run(store, "fashion-cnn-7", &id, &error) && done;
}

static void change_something(Store *store) {
    RunRecord record = some_run("new", "fp32");
    WorkerId me;
    CHECK_DONE(worker_identify(&me, &error));
    error = (Error){0};
    bool done = store_begin(store, &error) && store_add_run(store, &record, NULL, 0, &error) &&
                store_own_run(store, record.id, &me, &error) &&
                store_beat(store, record.id, &me, &error) && store_remove_run(store, 3, &error) &&
                store_commit(store, &error);
    CHECK_MESSAGE(done || (error.code != ERROR_NONE && !strchr(error.text, '\n')), "%s",
                  error.text);
    store_rollback(store);
}

static int try_damaged(const char *path, bool with_changes) {
    int readable = 0;
    for (int mode = STORE_READ; mode <= STORE_WRITE; mode++) {
        error = (Error){0};
        Store *store = store_open(path, (StoreMode)mode, &error);
        if (!store) {
            CHECK_MESSAGE(error.code != ERROR_NONE && error.text[0] && !strchr(error.text, '\n'),
                          "code %d: %s", error.code, error.text);
            continue;
        }
        readable += mode == STORE_READ && read_everything(store);
        if (mode == STORE_WRITE && with_changes)
            change_something(store);
        store_close(store);
    }
    return readable;
}

static void fault_24_flipped_bits_never_crash_anything(void) {
    size_t size;
    uint32_t random = 12345;
    fill_history("whole.db");
    char *whole = read_file(path_of("whole.db"), &size), *bytes = malloc(size);
    const char *path = path_of("flipped.db");
    int rounds = test_soaks() ? 20000 : 300, readable = 0;
    alarm((unsigned)((test_soaks() ? 3000 : 120) * test_patience()));
    for (int i = 0; i < rounds && !test_why[0]; i++) {
        memcpy(bytes, whole, size);
        for (int flips = 1 + i % 3; flips > 0; flips--) {
            random = random * 1664525u + 1013904223u;
            // Half of them where the structure is: the first page, the beginnings of others.
            size_t at = (random >> 4) % size;
            if (flips % 2)
                at = at < size / 2 ? at % 4096 : at / 4096 * 4096 + at % 16;
            bytes[at] = (char)(bytes[at] ^ 1 << (random >> 29));
        }
        write_file(path, bytes, size);
        unlink(path_of("flipped.db-journal"));
        readable += try_damaged(path, i % 4 == 0);
    }
    CHECK_MESSAGE(readable > 0 && readable < rounds, "%d of %d were readable", readable, rounds);
    for (size_t cut = 0; cut < size && !test_why[0]; cut += size / (test_soaks() ? 1000 : 25) + 1) {
        write_file(path, whole, cut);
        unlink(path_of("flipped.db-journal"));
        CHECK_INT(try_damaged(path, true), 0);
    }
    alarm(0);
    free(whole);
    free(bytes);
}

static void fault_24_damage_is_found_when_it_is_opened_for_writing(void) {
    size_t size;
    fill_history("hurt.db");
    char *bytes = read_file(path_of("hurt.db"), &size);
    int64_t page = ask_sql(path_of("hurt.db"),
                           "SELECT rootpage FROM sqlite_schema WHERE name = 'checkpoints'");
    memset(bytes + (page - 1) * 4096, 0x5a, 4096);
    write_file(path_of("hurt.db"), bytes, size);
    free(bytes);
    CHECK_REFUSED(store_open(path_of("hurt.db"), STORE_WRITE, &error), ERROR_HISTORY, "damaged",
                  "export", "--db");
    Store *store = store_open(path_of("hurt.db"), STORE_READ, &error); // what can be read is
    CHECK_MESSAGE(store != NULL, "%s", error.text);
    RunRecord record;
    CHECK_DONE(store_read_run(store, 7, &record, &error));
    record_clear(&record);
    CheckpointRow *rows;
    int count;
    CHECK_REFUSED(store_list_checkpoints(store, 7, &rows, &count, &error), ERROR_HISTORY,
                  "damaged");
    CHECK_REFUSED(store_check(store, &error), ERROR_HISTORY, "damaged");
    store_close(store);
}

static void fault_25_a_hostile_schema_is_refused_by_name(void) {
    static const struct {
        const char *sql, *name;
    } rows[] = {
        {"CREATE TRIGGER evil_one AFTER INSERT ON runs BEGIN DELETE FROM events; END", "evil_one"},
        {"CREATE VIEW evil_two AS SELECT randomblob(1000000000)", "evil_two"},
        {"CREATE INDEX evil_three ON runs (zeroblob(length(name) * 1000000))", "evil_three"},
        {"DROP TABLE events; CREATE VIRTUAL TABLE events USING fts5(text)", "events"},
        {"DROP TABLE options; CREATE TABLE options (run INTEGER, position INTEGER, name TEXT,"
         " value TEXT, CHECK (name <> ''))",
         "options"},
        {"DROP TABLE params; CREATE VIEW params AS SELECT 1", "params"},
        {"CREATE TRIGGER \"\" AFTER INSERT ON runs BEGIN SELECT 1; END", "trigger"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        store_close(fresh_store("hostile.db"));
        run_sql(path_of("hostile.db"), rows[i].sql);
        check_left_alone(path_of("hostile.db"), rows[i].name);
    }
    store_close(fresh_store("hostile.db")); // a table of somebody else's harms nobody
    run_sql(path_of("hostile.db"), "CREATE TABLE mine (x)");
    Store *store = store_open(path_of("hostile.db"), STORE_WRITE, &error);
    CHECK_MESSAGE(store != NULL, "%s", error.text);
    store_close(store);
}

int main(void) {
    make_folder();
    RUN_TEST(fault_22_what_is_no_history_is_left_alone);
    RUN_TEST(fault_23_versions_are_migrated_whole_or_not_at_all);
    RUN_TEST(fault_24_flipped_bits_never_crash_anything);
    RUN_TEST(fault_24_damage_is_found_when_it_is_opened_for_writing);
    RUN_TEST(fault_25_a_hostile_schema_is_refused_by_name);
    remove_folder();
    return test_end();
}
