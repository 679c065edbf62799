// Statements: kept prepared, bound in order, read to their end, reset at once.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/stops.h"
#include "store/store_private.h"

// Mostly the same literal asks again, whose address finds it; its text is compared all the same,
// since another may have been written there.
static sqlite3_stmt *find_statement(const Store *store, const char *sql) {
    for (int i = 0; i < store->statement_count; i++) {
        const StoreStatement *kept = &store->statements[i];
        if (kept->asked == sql && strcmp(sqlite3_sql(kept->statement), sql) == 0)
            return kept->statement;
    }
    for (int i = 0; i < store->statement_count; i++)
        if (strcmp(sqlite3_sql(store->statements[i].statement), sql) == 0)
            return store->statements[i].statement;
    return NULL;
}

// The oldest statement that nobody is stepping makes room.
static StoreStatement *free_slot(Store *store) {
    if (store->statement_count < STORE_MOST_STATEMENTS)
        return &store->statements[store->statement_count++];
    for (int i = 0; i < STORE_MOST_STATEMENTS; i++) {
        StoreStatement *kept = &store->statements[i];
        if (!sqlite3_stmt_busy(kept->statement)) {
            sqlite3_finalize(kept->statement);
            return kept;
        }
    }
    return NULL;
}

bool query_begin(Query *query, Store *store, const char *sql, Error *error) {
    *query = (Query){.store = store, .next = 1};
    sqlite3_stmt *statement = find_statement(store, sql);
    if (!statement) {
        int code =
            sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL);
        if (code != SQLITE_OK)
            return store_fail(store, code, "the history cannot be asked", error);
        StoreStatement *slot = free_slot(store);
        if (!slot) {
            sqlite3_finalize(statement);
            return error_fail(error, ERROR_HISTORY, "too many statements at once");
        }
        *slot = (StoreStatement){sql, statement};
    }
    if (!sqlite3_stmt_readonly(statement) && strncmp(sql, "PRAGMA ", 7) != 0) {
        if (store->is_broken)
            return error_fail(error, ERROR_HISTORY,
                              "%s: a write to it failed before, so nothing more is written; look "
                              "after the disk, then start again",
                              store->path);
        if (store->is_damaged)
            return error_fail(error, ERROR_HISTORY,
                              "%s: it is damaged, so nothing more is written; save what can be "
                              "read with export, then name another file with --db",
                              store->path);
        if (store->mode == STORE_READ)
            return error_fail(error, ERROR_HISTORY, "%s: it is open for reading only", store->path);
    }
    sqlite3_clear_bindings(statement);
    query->statement = statement;
    return true;
}

static void note(Query *query, int code) {
    if (query->code == SQLITE_OK && code != SQLITE_OK)
        query->code = code;
}

void query_put_integer(Query *query, int64_t value) {
    note(query, sqlite3_bind_int64(query->statement, query->next++, value));
}

static void put_null(Query *query) {
    note(query, sqlite3_bind_null(query->statement, query->next++));
}

void query_put_known(Query *query, int64_t value) {
    if (value == RECORD_UNKNOWN)
        put_null(query);
    else
        query_put_integer(query, value);
}

void query_put_positive(Query *query, int64_t value) {
    if (value <= 0)
        put_null(query);
    else
        query_put_integer(query, value);
}

void query_put_number(Query *query, double value) {
    if (isfinite(value))
        note(query, sqlite3_bind_double(query->statement, query->next++, value));
    else
        put_null(query);
}

void query_put_text(Query *query, const char *value) {
    note(query, sqlite3_bind_text(query->statement, query->next++, value, -1, SQLITE_STATIC));
}

void query_put_kind(Query *query, double value) {
    query_put_text(query, isfinite(value) ? "finite"
                          : isnan(value)  ? "nan"
                          : value > 0     ? "+inf"
                                          : "-inf");
}

void query_put_blob(Query *query, const void *value, size_t size) {
    note(query, sqlite3_bind_blob64(query->statement, query->next++, size ? value : "", size,
                                    SQLITE_STATIC));
}

void store_hold(Store *store) {
    if (!store->holds)
        stops_hold();
    store->holds = true;
}

void store_let_go(Store *store) {
    if (!store->holds || !sqlite3_get_autocommit(store->db))
        return;
    for (int i = 0; i < store->statement_count; i++)
        if (sqlite3_stmt_busy(store->statements[i].statement))
            return;
    store->holds = false;
    stops_let();
}

bool query_next(Query *query) {
    if (query->code != SQLITE_OK)
        return false;
    store_hold(query->store);
    int code = sqlite3_step(query->statement);
    if (code == SQLITE_ROW)
        return true;
    if (code != SQLITE_DONE)
        query->code = sqlite3_extended_errcode(query->store->db);
    return false;
}

bool query_is_null(Query *query, int column) {
    return sqlite3_column_type(query->statement, column) == SQLITE_NULL;
}

int64_t query_integer(Query *query, int column) {
    return sqlite3_column_type(query->statement, column) == SQLITE_INTEGER
               ? sqlite3_column_int64(query->statement, column)
               : 0;
}

int64_t query_known(Query *query, int column) {
    return sqlite3_column_type(query->statement, column) == SQLITE_INTEGER
               ? sqlite3_column_int64(query->statement, column)
               : RECORD_UNKNOWN;
}

double query_number(Query *query, int column) {
    int type = sqlite3_column_type(query->statement, column);
    return type == SQLITE_FLOAT || type == SQLITE_INTEGER
               ? sqlite3_column_double(query->statement, column)
               : (double)NAN;
}

double query_value(Query *query, int column) {
    if (!query_is_null(query, column))
        return query_number(query, column);
    const char *kind = query_word(query, column + 1);
    return strcmp(kind, "+inf") == 0   ? (double)INFINITY
           : strcmp(kind, "-inf") == 0 ? -(double)INFINITY
                                       : (double)NAN;
}

const char *query_word(Query *query, int column) {
    if (sqlite3_column_type(query->statement, column) != SQLITE_TEXT)
        return "";
    const char *text = (const char *)sqlite3_column_text(query->statement, column);
    if (!text) {
        note(query, SQLITE_NOMEM);
        return "";
    }
    return text;
}

const void *query_blob(Query *query, int column, size_t *size) {
    *size = 0;
    if (sqlite3_column_type(query->statement, column) != SQLITE_BLOB)
        return NULL;
    const void *bytes = sqlite3_column_blob(query->statement, column);
    int length = sqlite3_column_bytes(query->statement, column);
    if (!bytes) {
        if (length > 0 || sqlite3_errcode(query->store->db) == SQLITE_NOMEM)
            note(query, SQLITE_NOMEM);
        return NULL;
    }
    *size = (size_t)length;
    return bytes;
}

void query_text(Query *query, int column, char *text, size_t size) {
    const char *word = query_word(query, column);
    utf8_copy(text, size, word);
}

int64_t query_changes(Query *query) {
    return sqlite3_changes64(query->store->db);
}

bool query_end(Query *query, const char *what, Error *error) {
    sqlite3_reset(query->statement);
    store_let_go(query->store);
    if (query->code == SQLITE_OK)
        return true;
    if ((query->code & 0xff) == SQLITE_CORRUPT && rescue_lose(query->store))
        return true; // what was read is what there is
    return store_fail(query->store, query->code, what, error);
}

void query_drop(Query *query) {
    if (!query->statement)
        return;
    sqlite3_reset(query->statement);
    store_let_go(query->store);
}

bool store_execute(Store *store, const char *sql, const char *what, Error *error) {
    store_hold(store);
    int code = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
    store_let_go(store);
    return code == SQLITE_OK || store_fail(store, code, what, error);
}

// ---- what SQLite's codes mean -------------------------------------------------------------------

// Writing failed in a way after which nobody knows what is on the disk.
static bool is_final(int code) {
    static const int codes[] = {
        SQLITE_IOERR_WRITE,  SQLITE_IOERR_FSYNC,   SQLITE_IOERR_DIR_FSYNC, SQLITE_IOERR_TRUNCATE,
        SQLITE_IOERR_DELETE, SQLITE_IOERR_CLOSE,   SQLITE_IOERR_SHMMAP,    SQLITE_IOERR_SHMSIZE,
        SQLITE_IOERR_MMAP,   SQLITE_IOERR_SHMOPEN, SQLITE_IOERR,
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i] == code)
            return true;
    return false;
}

// errno of what failed. What SQLite forgets when a commit fails its file still knows.
static int system_cause(const Store *store) {
    int cause = sqlite3_system_errno(store->db);
    if (cause == 0)
        sqlite3_file_control(store->db, "main", SQLITE_FCNTL_LAST_ERRNO, &cause);
    return cause;
}

static bool is_full(const Store *store, int code) {
    if ((code & 0xff) == SQLITE_FULL)
        return true;
    if (code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC)
        return false; // what fsync refused is lost, whatever the reason
    int primary = code & 0xff, system = sqlite3_system_errno(store->db);
    return (primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN) &&
           (system == ENOSPC || system == EDQUOT);
}

bool store_fail(Store *store, int code, const char *what, Error *error) {
    if (store->depth > 0 && sqlite3_get_autocommit(store->db)) // SQLite undid the transaction
        store->depth = 0, store->updated_run = 0;
    const char *path = store->path;
    int primary = code & 0xff;
    if (primary == SQLITE_NOMEM || code == SQLITE_IOERR_NOMEM)
        return error_fail(error, ERROR_MEMORY, "%s: no memory: close other programs", what);
    if (is_full(store, code))
        return error_fail(error, ERROR_FULL, "%s: the disk of %s is full: free some space", what,
                          path);
    int system = sqlite3_system_errno(store->db);
    if (primary == SQLITE_CANTOPEN && (system == EMFILE || system == ENFILE)) // it may pass
        return error_fail(error, ERROR_BUSY, "%s: %s cannot be reached: %s%s", what, path,
                          error_cause(system), error_remedy(system));
    switch (primary) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return error_fail(error, ERROR_BUSY,
                          "%s: another program has held %s for %.3g s: wait, close it, or let "
                          "it go on where it was stopped",
                          what, path, store->wait_seconds);
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        store->is_damaged = true;
        return error_fail(
            error, ERROR_HISTORY,
            store->rescues ? "%s: %s is damaged where the way to all else lies: take a backup of it"
                           : "%s: %s is damaged: ls, show and export give what can be read; save "
                             "that, then name another file with --db",
            what, path);
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
        return error_fail(error, ERROR_HISTORY,
                          "%s: %s or its folder may not be written: change their permissions, or "
                          "name another file with --db",
                          what, path);
    case SQLITE_IOERR:
        if (is_final(code))
            store->is_broken = true;
        if (system_cause(store) == EFBIG)
            return error_fail(error, ERROR_HISTORY, "%s: %s may not grow: %s%s", what, path,
                              error_cause(EFBIG), error_remedy(EFBIG));
        return error_fail(error, ERROR_HISTORY, "%s: the disk of %s failed (%s): look after it",
                          what, path, error_cause(system_cause(store)));
    default:
        if (store->losses > 0) // "no such table", where the schema is what was lost
            return store_fail(store, SQLITE_CORRUPT, what, error);
        return error_fail(error, ERROR_HISTORY, "%s: %s: %s: name another file with --db", what,
                          path, sqlite3_errmsg(store->db));
    }
}

// ---- small things -------------------------------------------------------------------------------

bool store_grow(void **array, int count, int *capacity, size_t size, Error *error) {
    if (count < *capacity)
        return true;
    int wanted = *capacity ? 2 * *capacity : 16;
    void *larger = wanted > count ? realloc(*array, (size_t)wanted * size) : NULL;
    if (!larger)
        return error_fail(error, ERROR_MEMORY, "no memory for %d rows: close other programs",
                          wanted);
    *array = larger;
    *capacity = wanted;
    return true;
}
