// store/store.h: the run history: one SQLite file, and the only room that knows SQL.
//
// A Store is one connection, used by one thread at a time (the writer thread of a worker, a
// command, the screen); several processes may have the file open. Readers see what was committed
// and hold no transaction between calls, so that nobody waits for a screen. Every function that can
// fail says why in one line; a full disk is ERROR_FULL and a lock held too long ERROR_BUSY, after
// which the same call may be made again: nothing of it was kept. A failed write or fsync is
// ERROR_HISTORY and final: the connection writes no more.
//
// The other headers of this room say what can be asked: record.h (what a run is), runs.h (the
// catalogue), series.h (points at any zoom), layers.h (statistics and histograms a layer),
// events.h, commands.h, checkpoints.h, worker.h (who trains it, and whether that lives).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct Store Store;

typedef enum StoreMode {
    STORE_READ, // fails when there is no file; a newer schema is read as far as it is known
    // Like STORE_READ, and of a damaged file all that can still be reached: lists lack what cannot,
    // and store_losses says so.
    STORE_RESCUE,
    STORE_WRITE, // makes the file and its folders (0700, 0600), migrates an older schema
} StoreMode;

enum { STORE_PATH_SIZE = 1024 };

// Where the history is: `given` (--db), else MPBENCH_DB, else $XDG_DATA_HOME/mpbench/history.db,
// else ~/.local/share/mpbench/history.db. Fails when none of them can be made a path.
bool store_path(const char *given, char path[STORE_PATH_SIZE], Error *error) MUST_CHECK;
// For readers: that path, and whether there is a file, which the first run makes. A folder that was
// named and is not there is an error: most likely it is another that was meant.
bool store_find_file(const char *given, char path[STORE_PATH_SIZE], bool *exists,
                     Error *error) MUST_CHECK;

// Refuses by name, and leaves untouched: what is no SQLite file, another application's database, a
// schema that is newer (for writing), a file on a network file system, a damaged file (for writing;
// for reading too where nothing can be read).
Store *store_open(const char *path, StoreMode mode, Error *error);
void store_close(Store *store); // NULL is fine

const char *store_file(const Store *store);
// The folder of checkpoints beside the file, which no other history has: ".../checkpoints" of
// ".../history.db", ".../x.checkpoints" of ".../x.db", ".../x-checkpoints" of ".../x".
void store_checkpoint_root(const Store *store, char path[STORE_PATH_SIZE]);
// Whether writing a file of this name would harm the history: by any name, link or hard link, the
// file itself, what SQLite keeps or will look for beside it, copies that a migration made, all
// below the folder of checkpoints.
bool store_owns(const Store *store, const char *path);
// True once the file at the path is no longer the one that was opened (deleted, renamed, replaced).
bool store_is_replaced(const Store *store);
// Calls `work` now and then while a lock of another process is waited for; NULL: nothing to do.
// How long it waits at most: the default is 5 s. `work` that returns false ends the waiting.
void store_set_waiting(Store *store, double seconds, bool (*work)(void *context), void *context);

// Several calls as one commit. They nest; only the outermost commits. store_rollback undoes all.
bool store_begin(Store *store, Error *error) MUST_CHECK;
bool store_commit(Store *store, Error *error) MUST_CHECK;
void store_rollback(Store *store);

// How often something could not be read that was asked for (STORE_RESCUE). 0: all was there.
int64_t store_losses(const Store *store);

// `PRAGMA quick_check`; the first complaint in `error`.
bool store_check(Store *store, Error *error) MUST_CHECK;
// Gives free pages back to the file system.
bool store_compact(Store *store, Error *error) MUST_CHECK;

enum { STORE_SCHEMA_VERSION = 1 };
// The schema, a statement each, ended by NULL, for docs/history.md: tables, columns with their
// comments, views.
const char *const *store_schema(void);
const char *store_library(void);                    // the version of SQLite
const char *store_journal_mode(const Store *store); // "wal" or "truncate": journal.c decides
