// The connection: where the file is, opening it with every guard up, transactions, waiting.
#define _XOPEN_SOURCE 700 // realpath
#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stops.h"
#include "store/schema.h"
#include "store/store_private.h"

// Above this size a file is not read through when it is opened; damage shows when it is met.
static const int64_t check_limit = 16 << 20;

// A longer text is no text of ours: the memory that a hostile file can ask for.
enum { LONGEST_VALUE = 32 << 20 };

int64_t store_wall_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// ---- where it is --------------------------------------------------------------------------------

static bool format_path(char path[STORE_PATH_SIZE], const char *folder, const char *rest,
                        Error *error) {
    int length = snprintf(path, STORE_PATH_SIZE, "%s%s", folder, rest);
    if (length < 0 || length >= STORE_PATH_SIZE)
        return error_fail(error, ERROR_HISTORY,
                          "the path of the history is longer than %d bytes: name another with --db",
                          STORE_PATH_SIZE - 1);
    return true;
}

// NULL: nobody named one, and it is at the usual place.
static const char *named_file(const char *given) {
    if (given)
        return given;
    const char *environment = getenv("MPBENCH_DB");
    return environment && environment[0] ? environment : NULL;
}

bool store_path(const char *given, char path[STORE_PATH_SIZE], Error *error) {
    const char *named = named_file(given);
    if (named) {
        if (!named[0])
            return error_fail(error, ERROR_USAGE, "--db: no file is named");
        return format_path(path, named, "", error);
    }
    const char *data = getenv("XDG_DATA_HOME");
    if (data && data[0] == '/') // the standard: relative ones are ignored
        return format_path(path, data, "/mpbench/history.db", error);
    const char *home = getenv("HOME");
    if (home && home[0] == '/')
        return format_path(path, home, "/.local/share/mpbench/history.db", error);
    return error_fail(error, ERROR_HISTORY,
                      "no place for the history: HOME is not set; name a file with --db");
}

bool store_find_file(const char *given, char path[STORE_PATH_SIZE], bool *exists, Error *error) {
    if (!store_path(given, path, error))
        return false;
    *exists = access(path, F_OK) == 0 || errno != ENOENT; // what else is wrong opening it says
    return *exists || !named_file(given) || place_has_folder(path, error);
}

// SQLite would take "file:..." and ":memory:" for more than a path, and a relative one would follow
// the working directory.
static bool absolute_path(const char *path, char out[STORE_PATH_SIZE], Error *error) {
    if (path[0] == '/')
        return format_path(out, path, "", error);
    char folder[STORE_PATH_SIZE], rest[STORE_PATH_SIZE];
    if (!getcwd(folder, sizeof folder))
        return error_fail(error, ERROR_HISTORY,
                          "%s: the working directory cannot be found: name a whole path with --db",
                          path);
    return format_path(rest, "/", path, error) && format_path(out, folder, rest, error);
}

const char *store_file(const Store *store) {
    return store->path;
}

void store_checkpoint_root(const Store *store, char path[STORE_PATH_SIZE]) {
    const char *slash = strrchr(store->path, '/');
    const char *name = slash ? slash + 1 : store->path;
    int folder = (int)(name - store->path), length = (int)strlen(name);
    bool has_ending = length > 3 && strcmp(name + length - 3, ".db") == 0;
    const char *added = "checkpoints"; // of the usual name
    if (strcmp(name, "history.db") == 0)
        length = 0;
    else if (has_ending) {
        length -= 3;
        added = ".checkpoints";
    } else
        added = "-checkpoints"; // "x" and "x.db" do not share theirs
    int room = STORE_PATH_SIZE - 1 - (int)strlen(added), used = folder + length;
    snprintf(path, STORE_PATH_SIZE, "%.*s%s", used < room ? used : room, store->path, added);
}

bool store_is_replaced(const Store *store) {
    struct stat now;
    return stat(store->path, &now) != 0 || now.st_dev != store->device ||
           now.st_ino != store->inode;
}

const char *const *store_schema(void) {
    return schema_statements;
}

const char *store_library(void) {
    return sqlite3_libversion();
}

int64_t store_losses(const Store *store) {
    return store->losses;
}

const char *store_journal_mode(const Store *store) {
    return store->journal;
}

// ---- waiting ------------------------------------------------------------------------------------

void store_set_waiting(Store *store, double seconds, bool (*work)(void *context), void *context) {
    store->wait_seconds = seconds;
    store->wait_work = work;
    store->wait_context = context;
}

// SQLite calls this each time that it meets a lock. Short sleeps of different lengths, so that two
// who wait do not meet again and again.
static int wait_for_lock(void *context, int tries) {
    Store *store = context;
    double now = clock_seconds();
    if (tries == 0)
        store->wait_began = now;
    if (now - store->wait_began >= store->wait_seconds)
        return 0;
    if (store->wait_work && !store->wait_work(store->wait_context))
        return 0;
    store->jitter = store->jitter * 1664525u + 1013904223u;
    long microseconds = 1000 + (long)(store->jitter >> 8) % 4000;
    // Who waits for a transaction to begin holds nothing yet.
    const bool has_begun = store->depth > 0 || !sqlite3_get_autocommit(store->db);
    const bool lets_go = store->holds && !has_begun;
    if (lets_go)
        stops_let();
    nanosleep(&(struct timespec){.tv_nsec = microseconds * 1000}, NULL);
    if (lets_go)
        stops_hold();
    return 1;
}

// ---- opening ------------------------------------------------------------------------------------

static bool open_connection(Store *store, Error *error) {
    // For reading too: only who may write can undo what a killed writer left half done.
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    int code = sqlite3_open_v2(store->path, &store->db, flags, store->vfs[0] ? store->vfs : NULL);
    if (!store->db)
        return error_fail(error, ERROR_MEMORY, "no memory to open %s", store->path);
    if (code != SQLITE_OK)
        return store_fail(store, code, "the history cannot be opened", error);
    sqlite3_busy_handler(store->db, wait_for_lock, store);
    sqlite3_limit(store->db, SQLITE_LIMIT_LENGTH, LONGEST_VALUE);
    static const struct {
        int option, value;
    } settings[] = {
        {SQLITE_DBCONFIG_DEFENSIVE, 1},      {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
        {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0}, {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
        {SQLITE_DBCONFIG_ENABLE_FKEY, 1},    {SQLITE_DBCONFIG_DQS_DML, 0},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        sqlite3_db_config(store->db, settings[i].option, settings[i].value, NULL);
    return true;
}

static bool tune_connection(Store *store, Error *error) {
    return store_execute(store,
                         "PRAGMA synchronous=FULL; PRAGMA cell_size_check=1; PRAGMA mmap_size=0;"
                         "PRAGMA temp_store=MEMORY; PRAGMA cache_size=-8000",
                         "the history cannot be opened", error);
}

static bool read_pragma(Store *store, const char *sql, int64_t *value, Error *error) {
    Query query;
    if (!query_begin(&query, store, sql, error))
        return false;
    *value = 0;
    while (query_next(&query))
        *value = query_integer(&query, 0);
    return query_end(&query, "the history cannot be read", error);
}

// Makes SQLite take a file that is shorter than it says, as it does to recover one. Nothing writes:
// the guard against schemas that are changed is not needed, and would forbid it.
static bool take_cut(Store *store, Error *error) {
    if (!store->rescues ||
        (sqlite3_exec(store->db, "PRAGMA page_count", NULL, NULL, NULL) & 0xff) != SQLITE_CORRUPT)
        return true;
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1, NULL);
    store->losses++;
    return store_execute(store, "PRAGMA query_only=1", "the history cannot be opened", error);
}

// What a file's first bytes say it is, read past SQLite's own look at it, which might already undo
// what another application left half done.
static bool check_header(Store *store, Error *error) {
    sqlite3_file *file = NULL;
    struct stat status; // SQLite takes a file of one byte for an empty one
    unsigned char head[100] = {0};
    sqlite3_file_control(store->db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (!file || !file->pMethods || stat(store->path, &status) != 0)
        return error_fail(error, ERROR_HISTORY, "%s cannot be read: look after its disk",
                          store->path);
    if (status.st_size == 0)
        return true;
    int code = file->pMethods->xRead(file, head, sizeof head, 0);
    if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ)
        return store_fail(store, code, "the history cannot be read", error);
    static const unsigned char zeros[sizeof head];
    if (memcmp(head, zeros, sizeof head) == 0 && status.st_size >= 512)
        return true; // perhaps a first write that a power cut undid: SQLite knows
    if (memcmp(head, "SQLite format 3", 16) != 0)
        return error_fail(error, ERROR_HISTORY,
                          "%s is not a database: it is left alone; name another file with --db",
                          store->path);
    uint32_t application = (uint32_t)head[68] << 24 | (uint32_t)head[69] << 16 |
                           (uint32_t)head[70] << 8 | (uint32_t)head[71];
    if (application != SCHEMA_APPLICATION_ID)
        return error_fail(error, ERROR_HISTORY,
                          "%s is the database of another application: it is left alone; name "
                          "another file with --db",
                          store->path);
    return true;
}

static bool check_version(Store *store, const StoreOptions *options, Error *error) {
    int64_t application = 0, version = 0;
    if (!read_pragma(store, "PRAGMA application_id", &application, error) ||
        !read_pragma(store, "PRAGMA user_version", &version, error))
        return false;
    if (application != SCHEMA_APPLICATION_ID || version < 1)
        return error_fail(error, ERROR_HISTORY,
                          "%s is not a run history of mpbench: it is left alone; name another "
                          "file with --db",
                          store->path);
    store->version = (int)version;
    int target = options->target_version;
    if (version > target && store->mode == STORE_WRITE)
        return error_fail(error, ERROR_HISTORY,
                          "%s was written by a newer mpbench (schema %d, this one knows %d): it "
                          "can only be read; take the newer program, or another file with --db",
                          store->path, store->version, target);
    if (version < target && store->mode == STORE_READ)
        return error_fail(error, ERROR_HISTORY,
                          "%s was written by an older mpbench (schema %d, now %d): a command that "
                          "writes, such as `mpbench gc`, brings it up to date",
                          store->path, store->version, target);
    return version == target || store->mode == STORE_READ ||
           store_migrate(store, options->migrations, options->migration_count, target, error);
}

// Reads a small file through before anything is added to it.
static bool check_pages(Store *store, Error *error) {
    struct stat file;
    if (store->mode == STORE_READ || stat(store->path, &file) != 0 || file.st_size > check_limit)
        return true;
    return store_check(store, error);
}

// However it is named, a history has one path: beside it lie its checkpoints.
static bool follow_links(Store *store, Error *error) {
    char *real = realpath(store->path, NULL);
    if (!real)
        return error_fail(error, ERROR_HISTORY, "%.300s: %s: name another file with --db",
                          store->path, error_cause(errno));
    bool done = format_path(store->path, real, "", error);
    free(real);
    return done;
}

static bool open_file(Store *store, const StoreOptions *options, Error *error) {
    bool exists = false;
    int64_t pages = 0;
    if (!place_check(store->path, store->mode, &exists, error))
        return false;
    if (!exists && !place_make(store->path, error))
        return false;
    if (!follow_links(store, error))
        return false;
    if (!open_connection(store, error) || !check_header(store, error) || !take_cut(store, error) ||
        !tune_connection(store, error) || !store_prepare_ends(store, error) ||
        !read_pragma(store, "PRAGMA page_count", &pages, error))
        return false;
    if (pages == 0 && store->mode == STORE_READ)
        return error_fail(error, ERROR_HISTORY,
                          "%s is empty: no run has been kept there yet; `mpbench run` keeps one",
                          store->path);
    if (pages == 0 && !store_make_schema(store, error))
        return false;
    if (!check_version(store, options, error) || !store_check_schema(store, error) ||
        !check_pages(store, error) || !journal_set_mode(store, error))
        return false;
    struct stat file;
    if (stat(store->path, &file) != 0)
        return error_fail(error, ERROR_HISTORY, "%s was removed while it was opened: try again",
                          store->path);
    store->device = file.st_dev;
    store->inode = file.st_ino;
    return store->mode == STORE_WRITE ||
           store_execute(store, "PRAGMA query_only=1", "the history cannot be opened", error);
}

Store *store_open_with(const char *path, StoreMode mode, const StoreOptions *options,
                       Error *error) {
    Store *store = calloc(1, sizeof *store);
    if (!store) {
        error_fail(error, ERROR_MEMORY, "no memory to open %s", path);
        return NULL;
    }
    StoreOptions filled = *options;
    if (filled.target_version == 0) {
        filled.target_version = STORE_SCHEMA_VERSION;
        filled.migrations = migrate_table;
        filled.migration_count = migrate_count;
    }
    store->mode = mode == STORE_WRITE ? STORE_WRITE : STORE_READ;
    store->rescues = mode == STORE_RESCUE;
    store->wait_seconds = 5;
    store->jitter = (uint32_t)getpid() * 2654435761u + (uint32_t)store_wall_ms();
    snprintf(store->vfs, sizeof store->vfs, "%s", options->vfs ? options->vfs : "");
    if (absolute_path(path, store->path, error) && open_file(store, &filled, error))
        return store;
    if (error && error->code != ERROR_MEMORY && error->code != ERROR_BUSY &&
        error->code != ERROR_FULL)
        error->code = ERROR_HISTORY;
    store_close(store);
    return NULL;
}

Store *store_open(const char *path, StoreMode mode, Error *error) {
    return store_open_with(path, mode, &(StoreOptions){0}, error);
}

void store_close(Store *store) {
    if (!store)
        return;
    for (int i = 0; i < store->statement_count; i++)
        sqlite3_finalize(store->statements[i].statement);
    sqlite3_close(store->db);
    if (store->holds)
        stops_let();
    free(store);
}

// ---- the whole file -----------------------------------------------------------------------------

bool store_check(Store *store, Error *error) {
    Query query;
    char complaint[200] = "";
    if (!query_begin(&query, store, "PRAGMA quick_check(1)", error))
        return false;
    while (query_next(&query))
        if (!complaint[0])
            query_text(&query, 0, complaint, sizeof complaint);
    if (!query_end(&query, "the history cannot be checked", error))
        return false;
    if (strcmp(complaint, "ok") == 0)
        return true;
    const char *cause = strstr(complaint, "error code="); // that a page could not be had
    int code = cause ? atoi(cause + strlen("error code=")) : SQLITE_CORRUPT;
    if ((code & 0xff) != SQLITE_CORRUPT)
        return store_fail(store, code, "the history cannot be checked", error);
    for (char *at = complaint; *at; at++)
        if (*at == '\n')
            *at = ' ';
    store->is_damaged = true;
    return error_fail(error, ERROR_HISTORY,
                      "%s is damaged (%s): ls, show and export give what can be read; save that, "
                      "then name another file with --db",
                      store->path, complaint);
}

bool store_compact(Store *store, Error *error) {
    Query query;
    if (!query_begin(&query, store, "VACUUM", error))
        return false;
    query_next(&query);
    return query_end(&query, "the history cannot be made smaller", error);
}
