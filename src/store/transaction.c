// Transactions: one a connection, begun once however deep the calls, ended by the outermost.
#include "store/store_private.h"

// COMMIT and ROLLBACK were prepared when the file was opened, so that no lack of memory keeps a
// transaction open.
static void end_transaction(Store *store, const char *sql) {
    Query query;
    if (sqlite3_get_autocommit(store->db) || !query_begin(&query, store, sql, NULL))
        return;
    query_next(&query);
    query_drop(&query);
}

bool store_prepare_ends(Store *store, Error *error) {
    static const char *const ends[] = {"COMMIT", "ROLLBACK"};
    for (int i = 0; i < 2; i++) {
        Query query;
        if (!query_begin(&query, store, ends[i], error))
            return false;
        query_drop(&query);
    }
    return true;
}

bool store_begin(Store *store, Error *error) {
    if (store->depth == 0) {
        end_transaction(store, "ROLLBACK"); // one whose end failed before
        // A writer takes its lock at once: one that began as a reader could not be waited for.
        Query query;
        const char *sql = store->mode == STORE_READ ? "BEGIN" : "BEGIN IMMEDIATE";
        if (!query_begin(&query, store, sql, error))
            return false;
        query_next(&query);
        if (!query_end(&query, "the history cannot be written", error))
            return false;
    }
    store->depth++;
    return true;
}

bool store_commit(Store *store, Error *error) {
    if (store->depth == 0)
        return error_fail(error, ERROR_HISTORY,
                          "%s: the transaction was undone by an earlier failure: do all of it "
                          "again",
                          store->path);
    if (store->depth > 1) {
        store->depth--;
        return true;
    }
    Query query;
    if (!query_begin(&query, store, "COMMIT", error)) {
        store_rollback(store);
        return false;
    }
    query_next(&query);
    if (!query_end(&query, "the history cannot be written", error)) {
        store_rollback(store);
        return false;
    }
    store->depth = 0;
    return true;
}

void store_rollback(Store *store) {
    store->depth = 0;
    store->updated_run = 0;
    if (!sqlite3_get_autocommit(store->db)) {
        for (int i = 0; i < store->statement_count; i++)
            sqlite3_reset(store->statements[i].statement);
        end_transaction(store, "ROLLBACK");
    }
}

bool store_begin_reading(Store *store, Error *error) {
    if (store->depth == 0) {
        Query query;
        end_transaction(store, "ROLLBACK");
        if (!query_begin(&query, store, "BEGIN", error))
            return false;
        query_next(&query);
        if (!query_end(&query, "the history cannot be read", error))
            return false;
    }
    store->depth++;
    return true;
}

void store_end_reading(Store *store) {
    if (store->depth == 1)
        end_transaction(store, "COMMIT"); // nothing was written: there is nothing to lose
    if (store->depth > 0)
        store->depth--;
}

bool store_end(Store *store, bool done, Error *error) {
    if (done)
        return store_commit(store, error);
    store_rollback(store);
    return false;
}
