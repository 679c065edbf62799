// How commits reach the disk.
//
// SQLite before 3.51.3 (3.50.7 and 3.44.6 have the repair too) can lose committed rows in WAL mode,
// when two connections write and checkpoint at the same moment. So WAL is used where it is sound;
// elsewhere a rollback journal, which is slower and makes readers wait for a commit, but is safe.
#include <string.h>

#include "store/store_private.h"

const char *journal_mode_for(int version) {
    static const struct {
        int from, before; // versions in which WAL is sound
    } sound[] = {{3044006, 3045000}, {3050007, 3051000}, {3051003, 4000000}};
    for (size_t i = 0; i < sizeof sound / sizeof *sound; i++)
        if (version >= sound[i].from && version < sound[i].before)
            return "wal";
    return "truncate";
}

static bool ask_mode(Store *store, const char *sql, Error *error) {
    Query query;
    if (!query_begin(&query, store, sql, error))
        return false;
    while (query_next(&query))
        query_text(&query, 0, store->journal, sizeof store->journal);
    return query_end(&query, "the journal of the history cannot be set", error);
}

bool journal_set_mode(Store *store, Error *error) {
    if (!ask_mode(store, "PRAGMA journal_mode", error))
        return false;
    const char *wanted = journal_mode_for(sqlite3_libversion_number());
    if (store->mode == STORE_READ || strcmp(store->journal, wanted) == 0)
        return true;
    bool wants_wal = strcmp(wanted, "wal") == 0;
    Error refusal = {0};
    if (!ask_mode(store, wants_wal ? "PRAGMA journal_mode=WAL" : "PRAGMA journal_mode=TRUNCATE",
                  &refusal) &&
        refusal.code != ERROR_BUSY) {
        if (error)
            *error = refusal;
        return false;
    }
    if (wants_wal || strcmp(store->journal, wanted) == 0)
        return true; // what is not WAL yet, since others read it, is as safe
    return error_fail(error, ERROR_BUSY,
                      "%s is in use by a program with a newer SQLite (%s here loses rows in WAL "
                      "mode): close that one first",
                      store->path, sqlite3_libversion());
}
