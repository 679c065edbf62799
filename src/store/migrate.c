// Makes the schema, brings older ones up to date, and refuses what is not ours in it.
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/schema.h"
#include "store/store_private.h"

const Migration migrate_table[] = {{0, NULL}}; // version 1 is the first
const int migrate_count = 0;

enum { COPY_PATH_SIZE = STORE_PATH_SIZE + 48 };

static bool set_version(Store *store, int version, Error *error) {
    char sql[64];
    snprintf(sql, sizeof sql, "PRAGMA user_version=%d", version);
    if (!store_execute(store, sql, "the history cannot be made", error))
        return false;
    store->version = version;
    return true;
}

static bool count_tables(Store *store, int64_t *count, Error *error) {
    Query query;
    if (!query_begin(&query, store, "SELECT count(*) FROM sqlite_schema", error))
        return false;
    *count = 0;
    while (query_next(&query))
        *count = query_integer(&query, 0);
    return query_end(&query, "the history cannot be read", error);
}

bool store_make_schema(Store *store, Error *error) {
    static const char what[] = "the history cannot be made";
    int64_t count = 0;
    if (!store_begin(store, error))
        return false;
    if (!count_tables(store, &count, error))
        return store_end(store, false, error);
    if (count > 0) // another program was quicker
        return store_end(store, true, error);
    bool done = true;
    for (int i = 0; done && schema_statements[i]; i++)
        done = store_execute(store, schema_statements[i], what, error);
    char sql[64];
    snprintf(sql, sizeof sql, "PRAGMA application_id=%d", SCHEMA_APPLICATION_ID);
    done = done && store_execute(store, sql, what, error) &&
           set_version(store, STORE_SCHEMA_VERSION, error);
    return store_end(store, done, error);
}

// ---- older files --------------------------------------------------------------------------------

static bool sync_folder(const char *path, Error *error) {
    char folder[COPY_PATH_SIZE];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    slash[slash == folder] = 0;
    int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool done = file >= 0 && fsync(file) == 0;
    if (file >= 0)
        close(file);
    return done || error_fail(error, ERROR_HISTORY, "%s: its disk failed: look after it", folder);
}

// Copies the file as it is now. The writer's lock is held by `store`; a second connection reads.
static bool copy_pages(Store *store, const char *copy, Error *error) {
    sqlite3 *from = NULL, *to = NULL;
    const char *vfs = store->vfs[0] ? store->vfs : NULL;
    int code = sqlite3_open_v2(store->path, &from, SQLITE_OPEN_READONLY, vfs);
    if (code == SQLITE_OK)
        code = sqlite3_open_v2(copy, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs);
    sqlite3_backup *backup =
        code == SQLITE_OK ? sqlite3_backup_init(to, "main", from, "main") : NULL;
    if (backup) {
        code = sqlite3_backup_step(backup, -1);
        sqlite3_backup_finish(backup);
        code = code == SQLITE_DONE ? SQLITE_OK : code;
    } else if (code == SQLITE_OK) {
        code = sqlite3_errcode(to);
    }
    sqlite3_close(from);
    sqlite3_close(to);
    return code == SQLITE_OK ||
           store_fail(store, code, "the copy made before the history is changed fails", error);
}

static bool keep_copy(Store *store, Error *error) {
    char copy[COPY_PATH_SIZE - 8], part[COPY_PATH_SIZE];
    snprintf(copy, sizeof copy, "%s.backup-v%d", store->path, store->version);
    snprintf(part, sizeof part, "%s.part", copy);
    unlink(part);
    int file = open(part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600); // for nobody else
    if (file >= 0)
        close(file);
    if (!copy_pages(store, part, error)) {
        unlink(part);
        return false;
    }
    if (rename(part, copy) != 0)
        return error_fail(error, ERROR_HISTORY, "%s cannot be made: look after its folder", copy);
    return sync_folder(copy, error);
}

static const Migration *find_migration(const Migration *migrations, int count, int from) {
    for (int i = 0; i < count; i++)
        if (migrations[i].from == from)
            return &migrations[i];
    return NULL;
}

static bool migrate_steps(Store *store, const Migration *migrations, int count, int target,
                          Error *error) {
    while (store->version < target) {
        const Migration *next = find_migration(migrations, count, store->version);
        if (!next)
            return error_fail(error, ERROR_HISTORY,
                              "%s has schema %d, from which no way leads to %d: name another file "
                              "with --db",
                              store->path, store->version, target);
        if (!next->work(store, error) || !set_version(store, next->from + 1, error))
            return false;
    }
    return true;
}

bool store_migrate(Store *store, const Migration *migrations, int count, int target, Error *error) {
    if (!store_begin(store, error))
        return false;
    Query query; // another program may have been quicker
    bool done = query_begin(&query, store, "PRAGMA user_version", error);
    if (done) {
        while (query_next(&query))
            store->version = (int)query_integer(&query, 0);
        done = query_end(&query, "the history cannot be read", error);
    }
    if (done && store->version < target)
        done = keep_copy(store, error) && migrate_steps(store, migrations, count, target, error);
    return store_end(store, done, error);
}

// ---- what is not ours ---------------------------------------------------------------------------

// Skips white space and comments.
static const char *skip_blank(const char *at) {
    for (;;) {
        if (isspace((unsigned char)*at))
            at++;
        else if (at[0] == '-' && at[1] == '-')
            at += strcspn(at, "\n");
        else
            return at;
    }
}

// Moves both to where they differ, but for white space and comments, which may be improved without
// a new version, or to their ends.
static void skip_same(const char **ours, const char **theirs) {
    for (;;) {
        *ours = skip_blank(*ours);
        *theirs = skip_blank(*theirs);
        if (**ours == ';')
            *ours = skip_blank(*ours + 1);
        if (**ours != **theirs || !**ours)
            return;
        ++*ours;
        ++*theirs;
    }
}

static bool same_statement(const char *ours, const char *theirs) {
    skip_same(&ours, &theirs);
    return *ours == *theirs;
}

// "CREATE TABLE name ...": the name is where the statement says it.
static bool is_named(const char *statement, const char *type, const char *name) {
    char head[160];
    int length = snprintf(head, sizeof head, "CREATE %s %s ", type, name);
    return length > 0 && (size_t)length < sizeof head &&
           sqlite3_strnicmp(statement, head, length) == 0;
}

static const char *find_ours(const char *type, const char *name) {
    for (int i = 0; schema_statements[i]; i++)
        if (is_named(schema_statements[i], type, name))
            return schema_statements[i];
    return NULL;
}

// Plain tables of others are never touched and may stay. All else could run when ours are used:
// triggers, views, indexes on expressions, tables that are code.
static bool is_harmless(const Store *store, Query *query) {
    const char *type = query_word(query, 0), *name = query_word(query, 1);
    const char *sql = query_word(query, 2);
    const char *ours = find_ours(type, name);
    if (strcmp(type, "view") == 0)
        return ours != NULL; // ours is for people; the program does not look through it
    if (strcmp(type, "index") == 0 && !sql[0])
        return true; // of a PRIMARY KEY or UNIQUE
    if (store->version == STORE_SCHEMA_VERSION && ours)
        return same_statement(ours, sql);
    if (strcmp(type, "table") == 0)
        return sqlite3_strnicmp(sql, "CREATE TABLE", 12) == 0;
    return strcmp(type, "index") == 0 && (ours || store->version > STORE_SCHEMA_VERSION);
}

// What is left of a statement of ours on a page that a cut file lacks the rest of: nothing, or its
// beginning. SQLite takes the one for damage, the other makes no more than ours does.
static bool is_cut_off(const Store *store, Query *query) {
    const char *type = query_word(query, 0), *sql = query_word(query, 2);
    const char *ours = find_ours(type, query_word(query, 1));
    if (!store->rescues || store->losses == 0)
        return false;
    if (ours)
        skip_same(&ours, &sql);
    return !*sql;
}

bool store_check_schema(Store *store, Error *error) {
    Query query;
    if (!query_begin(&query, store, "SELECT type, name, coalesce(sql, '') FROM sqlite_schema",
                     error))
        return false;
    char type[16] = "", name[64] = "";
    bool refused = false;
    while (query_next(&query))
        if (!refused && !is_harmless(store, &query) && !is_cut_off(store, &query)) {
            refused = true;
            query_text(&query, 0, type, sizeof type);
            query_text(&query, 1, name, sizeof name);
        }
    if (!query_end(&query, "the history cannot be read", error))
        return false;
    return !refused ||
           error_fail(error, ERROR_HISTORY,
                      "%s holds the %s \"%s\", which is not mpbench's and might run code: it is "
                      "left alone; name another file with --db",
                      store->path, type, name);
}

bool store_has_table(Store *store, const char *name, bool *has, Error *error) {
    Query query;
    *has = false;
    if (!query_begin(&query, store, "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?",
                     error))
        return false;
    query_put_text(&query, name);
    while (query_next(&query))
        *has = true;
    return query_end(&query, "the history cannot be read", error);
}

bool store_make_table(Store *store, const char *name, Error *error) {
    bool has;
    if (!store_has_table(store, name, &has, error))
        return false;
    return has || store_execute(store, find_ours("table", name),
                                "the history cannot be brought up to date", error);
}
