// Opening: where the history is, what is made, what is refused and left alone, transactions, locks.
#include <pthread.h>

#include "base/clock.h"
#include "store/schema.h"
#include "tests/unit/store_fixture.h"

static void the_file_is_where_the_standard_says(void) {
    char path[STORE_PATH_SIZE];
    unsetenv("MPBENCH_DB");
    setenv("XDG_DATA_HOME", "/data", 1);
    setenv("HOME", "/home/me", 1);
    CHECK_DONE(store_path(NULL, path, &error));
    CHECK_TEXT(path, "/data/mpbench/history.db");
    setenv("XDG_DATA_HOME", "relative", 1); // which the standard says to ignore
    CHECK_DONE(store_path(NULL, path, &error));
    CHECK_TEXT(path, "/home/me/.local/share/mpbench/history.db");
    setenv("MPBENCH_DB", "elsewhere.db", 1);
    CHECK_DONE(store_path(NULL, path, &error));
    CHECK_TEXT(path, "elsewhere.db");
    CHECK_DONE(store_path("given.db", path, &error));
    CHECK_TEXT(path, "given.db");
    unsetenv("MPBENCH_DB");
    unsetenv("HOME");
    CHECK_REFUSED(store_path(NULL, path, &error), ERROR_HISTORY, "HOME", "--db");
    CHECK_REFUSED(store_path("", path, &error), ERROR_USAGE, "--db");
    static char endless[2 * STORE_PATH_SIZE];
    memset(endless, 'x', sizeof endless - 1);
    CHECK_REFUSED(store_path(endless, path, &error), ERROR_HISTORY, "longer");
}

static mode_t mode_of(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 ? status.st_mode & 0777 : 0;
}

static void check_root(const char *file, const char *expected) {
    char root[STORE_PATH_SIZE];
    Store *store = store_open(path_of(file), STORE_WRITE, &error);
    CHECK_MESSAGE(store != NULL, "%s", error.text);
    if (store)
        store_checkpoint_root(store, root);
    CHECK_TEXT(root, path_of(expected));
    store_close(store);
}

static void no_two_histories_share_a_folder_of_checkpoints(void) {
    check_root("roots/history.db", "roots/checkpoints");
    check_root("roots/mine.db", "roots/mine.checkpoints");
    check_root("roots/mine", "roots/mine-checkpoints");
    check_root("roots/old.history.db", "roots/old.history.checkpoints");
    check_root("roots/.db", "roots/.db-checkpoints");
}

static void a_history_has_one_path_by_whatever_link(void) {
    check_root("real/history.db", "real/checkpoints");
    CHECK(symlink("real", path_of("way")) == 0);
    CHECK(symlink("real/history.db", path_of("linked.db")) == 0);
    CHECK(symlink("nowhere.db", path_of("lost.db")) == 0);
    check_root("linked.db", "real/checkpoints");
    check_root("way/history.db", "real/checkpoints");
    CHECK_REFUSED(store_open(path_of("lost.db"), STORE_WRITE, &error), ERROR_HISTORY, "lost.db",
                  "--db");
}

static void folders_and_file_are_private(void) {
    mode_t old = umask(0);
    Store *store = store_open(path_of("a/b/h.db"), STORE_WRITE, &error);
    CHECK_MESSAGE(store != NULL, "%s", error.text);
    CHECK_INT(mode_of(path_of("a")), 0700);
    CHECK_INT(mode_of(path_of("a/b")), 0700);
    CHECK_INT(mode_of(path_of("a/b/h.db")), 0600);
    CHECK_DONE(store_begin(store, &error));
    add_run(store, some_run("x", "fp32"));
    if (mode_of(path_of("a/b/h.db-journal")))
        CHECK_INT(mode_of(path_of("a/b/h.db-journal")), 0600);
    CHECK_DONE(store_commit(store, &error));
    char root[STORE_PATH_SIZE];
    store_checkpoint_root(store, root);
    CHECK_TEXT(root, path_of("a/b/h.checkpoints"));
    CHECK_TEXT(store_file(store), path_of("a/b/h.db"));
    store_close(store);
    umask(old);
    CHECK_INT(ask_sql(path_of("a/b/h.db"), "PRAGMA application_id"), SCHEMA_APPLICATION_ID);
    CHECK_INT(ask_sql(path_of("a/b/h.db"), "PRAGMA user_version"), STORE_SCHEMA_VERSION);
    CHECK_INT(ask_sql(path_of("a/b/h.db"), "SELECT count(*) FROM run_summary"), 1);
    CHECK_REFUSED(store_open(path_of("none.db"), STORE_READ, &error), ERROR_HISTORY,
                  "no history yet", "mpbench run");
    CHECK_INT(mode_of(path_of("none.db")), 0);
}

static void special_names_are_plain_paths(void) {
    char before[STORE_PATH_SIZE];
    CHECK(getcwd(before, sizeof before) != NULL);
    CHECK_INT(chdir(folder), 0);
    Store *store = store_open("file:odd?mode=memory", STORE_WRITE, &error);
    CHECK_MESSAGE(store != NULL, "%s", error.text);
    store_close(store);
    store = store_open(":memory:", STORE_WRITE, &error);
    CHECK(store != NULL);
    store_close(store);
    CHECK_INT(chdir(before), 0);
    CHECK_INT(mode_of(path_of("file:odd?mode=memory")), 0600);
    CHECK_INT(mode_of(path_of(":memory:")), 0600);
}

static void wal_is_used_only_where_it_is_sound(void) {
    static const struct {
        int version;
        const char *mode;
    } rows[] = {
        {3040001, "truncate"}, {3044005, "truncate"}, {3044006, "wal"}, {3044999, "wal"},
        {3045000, "truncate"}, {3050006, "truncate"}, {3050007, "wal"}, {3051000, "truncate"},
        {3051002, "truncate"}, {3051003, "wal"},      {3052000, "wal"}, {3007000, "truncate"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_MESSAGE(strcmp(journal_mode_for(rows[i].version), rows[i].mode) == 0, "%d: %s",
                      rows[i].version, journal_mode_for(rows[i].version));
    Store *store = fresh_store("mode.db");
    const char *wanted = journal_mode_for(sqlite3_libversion_number());
    CHECK_TEXT(store_journal_mode(store), wanted);
    store_close(store);
    // A file that another library left in the other mode is brought back.
    run_sql(path_of("mode.db"), "PRAGMA journal_mode=WAL; CREATE TABLE extra (x)");
    store = store_open(path_of("mode.db"), STORE_WRITE, &error);
    CHECK_MESSAGE(store && strcmp(store_journal_mode(store), wanted) == 0, "%s", error.text);
    store_close(store);
}

static void network_file_systems_are_named(void) {
    CHECK_TEXT(place_network_name(0x6969, NULL), "NFS");
    CHECK_TEXT(place_network_name((long)0xFF534D42, NULL), "CIFS");
    CHECK_TEXT(place_network_name((long)(int)0xFF534D42, NULL), "CIFS"); // as 32 bits have it
    CHECK_TEXT(place_network_name((long)0xFE534D42, NULL), "SMB");
    CHECK_TEXT(place_network_name(0x01021997, NULL), "9P");
    CHECK_TEXT(place_network_name(0x65735546, "fuse.sshfs"), "sshfs");
    CHECK(place_network_name(0x65735546, "fuseblk") == NULL);
    CHECK(place_network_name(0x65735546, "") == NULL);
    CHECK(place_network_name(0xEF53, "") == NULL);     // ext4
    CHECK(place_network_name(0x01021994, "") == NULL); // tmpfs
}

static void transactions_nest_and_are_undone_whole(void) {
    Store *store = fresh_store("nest.db");
    const char *path = path_of("nest.db");
    CHECK_DONE(store_begin(store, &error));
    add_run(store, some_run("x", "fp32"));
    CHECK_DONE(store_begin(store, &error));
    add_run(store, some_run("x", "fp32"));
    CHECK_DONE(store_commit(store, &error));
    CHECK_INT(ask_sql(path, "SELECT count(*) FROM runs"), 0); // only the outermost commits
    CHECK_DONE(store_commit(store, &error));
    CHECK_INT(ask_sql(path, "SELECT count(*) FROM runs"), 2);
    CHECK_DONE(store_begin(store, &error));
    CHECK_DONE(store_begin(store, &error));
    add_run(store, some_run("x", "fp32"));
    store_rollback(store);
    CHECK_REFUSED(store_commit(store, &error), ERROR_HISTORY, "undone");
    CHECK_INT(ask_sql(path, "SELECT count(*) FROM runs"), 2);
    store_close(store);
    store = store_open(path, STORE_READ, &error);
    RunRecord record = some_run("x", "fp32");
    CHECK_REFUSED(store_add_run(store, &record, NULL, 0, &error), ERROR_HISTORY, "reading only");
    store_close(store);
}

static void readers_hold_nothing_between_calls(void) {
    Store *store = fresh_store("idle.db");
    add_run(store, some_run("x", "fp32"));
    Store *reader = store_open(path_of("idle.db"), STORE_READ, &error);
    RunRecord *runs;
    int count;
    CHECK_DONE(store_list_runs(reader, &(RunFilter){.limit = 1}, &runs, &count, &error));
    store_free_runs(runs, count);
    CHECK_INT(sqlite3_txn_state(reader->db, NULL), SQLITE_TXN_NONE);
    // A table added by others changes the schema under the statements that are kept.
    run_sql(path_of("idle.db"), "CREATE TABLE extra (x)");
    CHECK_DONE(store_list_runs(reader, &(RunFilter){0}, &runs, &count, &error));
    CHECK_INT(count, 1);
    store_free_runs(runs, count);
    CHECK_INT(sqlite3_txn_state(reader->db, NULL), SQLITE_TXN_NONE);
    store_close(reader);
    store_close(store);
}

static bool count_waits(void *context) {
    ++*(int *)context;
    return true;
}

static bool give_up(void *context) {
    return ++*(int *)context < 3;
}

static void a_lock_is_waited_for_with_work_between(void) {
    Store *store = fresh_store("lock.db");
    Store *other = store_open(path_of("lock.db"), STORE_WRITE, &error);
    CHECK_DONE(store_begin(other, &error));
    int waits = 0;
    store_set_waiting(store, 0.1, count_waits, &waits);
    double began = clock_seconds();
    CHECK_REFUSED(store_begin(store, &error), ERROR_BUSY, "another program", "wait");
    double took = clock_seconds() - began;
    CHECK_MESSAGE(took >= 0.1 && took < 60, "%g s", took); // not the library's own minute
    CHECK_MESSAGE(waits >= 5, "%d", waits);                // sleeps of 1 to 5 ms
    waits = 0;
    store_set_waiting(store, 60, give_up, &waits);
    CHECK_REFUSED(store_begin(store, &error), ERROR_BUSY, "lock.db");
    CHECK_INT(waits, 3);
    store_rollback(other);
    CHECK_DONE(store_begin(store, &error)); // the same call, again
    CHECK_DONE(store_commit(store, &error));
    store_close(other);
    store_close(store);
}

static void a_file_that_is_replaced_is_noticed(void) {
    Store *store = fresh_store("moved.db");
    CHECK(!store_is_replaced(store));
    rename(path_of("moved.db"), path_of("away.db"));
    CHECK(store_is_replaced(store));
    Store *other = store_open(path_of("moved.db"), STORE_WRITE, &error);
    CHECK(store_is_replaced(store) && !store_is_replaced(other));
    store_close(other);
    store_close(store);
}

static void statements_are_kept_within_bounds(void) {
    Store *store = fresh_store("kept.db");
    for (int i = 0; i < 3 * STORE_MOST_STATEMENTS; i++) {
        char sql[64];
        Query query;
        int64_t value = -1;
        snprintf(sql, sizeof sql, "SELECT %d", i % (2 * STORE_MOST_STATEMENTS));
        CHECK_DONE(query_begin(&query, store, sql, &error));
        while (query_next(&query))
            value = query_integer(&query, 0);
        CHECK_DONE(query_end(&query, "it", &error));
        CHECK_INT(value, i % (2 * STORE_MOST_STATEMENTS));
    }
    CHECK_INT(store->statement_count, STORE_MOST_STATEMENTS);
    store_close(store);
}

int main(void) {
    make_folder();
    RUN_TEST(the_file_is_where_the_standard_says);
    RUN_TEST(folders_and_file_are_private);
    RUN_TEST(a_history_has_one_path_by_whatever_link);
    RUN_TEST(no_two_histories_share_a_folder_of_checkpoints);
    RUN_TEST(special_names_are_plain_paths);
    RUN_TEST(wal_is_used_only_where_it_is_sound);
    RUN_TEST(network_file_systems_are_named);
    RUN_TEST(transactions_nest_and_are_undone_whole);
    RUN_TEST(readers_hold_nothing_between_calls);
    RUN_TEST(a_lock_is_waited_for_with_work_between);
    RUN_TEST(a_file_that_is_replaced_is_noticed);
    RUN_TEST(statements_are_kept_within_bounds);
    remove_folder();
    return test_end();
}
