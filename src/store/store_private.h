// store/store_private.h: what the files of this room share: the connection, and Query, the one way
// to run a statement. Seen by src/store/*.c and by the tests of this room only.
//
// A function that reads or writes does
//
//     Query query;
//     if (!query_begin(&query, store, "SELECT ... WHERE run = ?1", error))
//         return false;
//     query_put_integer(&query, run); // ?1, ?2, ... in order
//     while (query_next(&query))      // no row: an INSERT, UPDATE, DELETE is done
//         use(query_integer(&query, 0));
//     return query_end(&query, "points cannot be read", error);
//
// Statements are kept prepared by their text, which must not change with its values. Between
// query_begin and query_end the same text may not begin again. query_end resets the statement, so
// that no lock outlives the function; a loop left early calls it too. Texts and blobs that are put
// must live until query_end; those that are got live until the next query_next or query_end.
//
// What fails in the middle of a transaction of its own is undone with store_rollback.
#pragma once

#include <sqlite3.h>
#include <sys/types.h>

#include "base/utf8.h"
#include "store/record.h"
#include "store/store.h"
#include "store/worker.h"

enum { STORE_MOST_STATEMENTS = 192, STORE_RECORD_LISTS = 6 };

typedef struct StoreStatement {
    const char *asked; // where its text lay when it was prepared; never read
    sqlite3_stmt *statement;
} StoreStatement;

struct Store {
    sqlite3 *db;
    StoreMode mode;
    int version; // of the schema in the file
    char path[STORE_PATH_SIZE];
    char vfs[32]; // "": the default one
    char journal[16];
    dev_t device; // of the file that was opened
    ino_t inode;
    int depth;       // of store_begin
    bool holds;      // a lock of the file, as far as stops.h is told
    bool is_broken;  // a write or fsync failed: nothing is written any more
    bool is_damaged; // the file contradicts itself: nothing is written any more
    bool rescues;    // reads on past damage; the mode is STORE_READ
    int64_t losses;  // statements that damage ended, and rows that made no sense
    double wait_seconds;
    bool (*wait_work)(void *context);
    void *wait_context;
    double wait_began; // clock_seconds of the first refusal of the current lock
    uint32_t jitter;
    StoreStatement statements[STORE_MOST_STATEMENTS];
    int statement_count;
    // The lists of the run updated last, so that unchanged ones are not written again; any rollback
    // forgets them.
    int64_t updated_run; // 0: none
    uint64_t updated_lists[STORE_RECORD_LISTS];
    char updated_label[RECORD_PRECISION_SIZE];
};

// ---- statements ---------------------------------------------------------------------------------

typedef struct Query {
    Store *store;
    sqlite3_stmt *statement;
    int code; // of SQLite: SQLITE_OK while all is well
    int next; // the next parameter
} Query;

// A lock is held from the first row on until what is read or written ends, or the transaction does.
void store_hold(Store *store);
void store_let_go(Store *store);

bool query_begin(Query *query, Store *store, const char *sql, Error *error) MUST_CHECK;
// The next parameter.
void query_put_integer(Query *query, int64_t value);
void query_put_known(Query *query, int64_t value);    // RECORD_UNKNOWN: NULL
void query_put_positive(Query *query, int64_t value); // 0 and less: NULL
void query_put_number(Query *query, double value);    // not finite: NULL
void query_put_text(Query *query, const char *value); // NULL: NULL
void query_put_kind(Query *query, double value);      // "finite", "nan", "+inf", "-inf"
void query_put_blob(Query *query, const void *value, size_t size);
// True: there is a row. False: there is no more, or it failed, which query_end says.
bool query_next(Query *query);
// Columns count from 0. What is NULL or of another type reads as the value in the comment.
bool query_is_null(Query *query, int column);
int64_t query_integer(Query *query, int column);                // 0
int64_t query_known(Query *query, int column);                  // RECORD_UNKNOWN
double query_number(Query *query, int column);                  // NaN
const char *query_word(Query *query, int column);               // ""; borrowed
const void *query_blob(Query *query, int column, size_t *size); // NULL, 0
// Cut at a whole character where it is too long.
void query_text(Query *query, int column, char *text, size_t size); // ""
// A value and its kind in the next column, as query_put_number and query_put_kind put them.
double query_value(Query *query, int column);
// How many rows an INSERT, UPDATE or DELETE just touched. Before query_end.
int64_t query_changes(Query *query);
// Resets. False when a step failed; `what` begins the message.
bool query_end(Query *query, const char *what, Error *error) MUST_CHECK;
// Resets without a word, where another error is on its way up.
void query_drop(Query *query);

// A statement without parameters or rows.
bool store_execute(Store *store, const char *sql, const char *what, Error *error) MUST_CHECK;
// Says what SQLite's `code` means, marks the store as broken or damaged where it is; false.
bool store_fail(Store *store, int code, const char *what, Error *error);

// ---- transactions -------------------------------------------------------------------------------

// Several reads that must agree with each other: a read transaction, where there is none yet.
// Keep it short: a writer waits for its end.
bool store_begin_reading(Store *store, Error *error) MUST_CHECK;
void store_end_reading(Store *store);
// Prepares what ends a transaction, so that no lack of memory keeps one open.
bool store_prepare_ends(Store *store, Error *error) MUST_CHECK;
// store_commit when `done`, else store_rollback; the common end of a function that writes.
bool store_end(Store *store, bool done, Error *error) MUST_CHECK;

// ---- lists --------------------------------------------------------------------------------------

// Makes room in a growing array for one more element than `count`; false when memory is out.
bool store_grow(void **array, int count, int *capacity, size_t size, Error *error) MUST_CHECK;
// Milliseconds of the wall clock since 1970.
int64_t store_wall_ms(void);

// ---- opening ------------------------------------------------------------------------------------

typedef struct Migration { // from version `from` to the next; runs inside one transaction
    int from;
    bool (*work)(Store *store, Error *error);
} Migration;

typedef struct StoreOptions { // for tests; store_open uses {0}
    const char *vfs;          // NULL: the default one
    const Migration *migrations;
    int migration_count;
    int target_version; // 0: STORE_SCHEMA_VERSION, and the migrations of migrate.c
} StoreOptions;

Store *store_open_with(const char *path, StoreMode mode, const StoreOptions *options, Error *error);

// migrate.c: makes everything in an empty file; brings an older one to the version wanted, after a
// copy of it beside it.
bool store_make_schema(Store *store, Error *error) MUST_CHECK;
bool store_migrate(Store *store, const Migration *migrations, int count, int target,
                   Error *error) MUST_CHECK;
extern const Migration migrate_table[];
extern const int migrate_count;
// Refuses triggers, views, indexes and virtual tables that are not ours.
bool store_check_schema(Store *store, Error *error) MUST_CHECK;

// journal.c: "wal" where that SQLite is sound, "truncate" elsewhere.
const char *journal_mode_for(int version);
bool journal_set_mode(Store *store, Error *error) MUST_CHECK;

// place.c: what the path is. place_network_name gives the name of a network file system, or NULL;
// the second is the type that the list of mounts has for a FUSE file system.
const char *place_network_name(long type, const char *fuse);
bool place_check(const char *path, StoreMode mode, bool *exists, Error *error) MUST_CHECK;
bool place_has_folder(const char *path, Error *error) MUST_CHECK; // one for the file to lie in
bool place_make(const char *path, Error *error) MUST_CHECK;       // the folders and the empty file

// own.c: whether the path is what SQLite keeps beside a file that is there (its journal), which
// `base` gets.
bool own_is_beside(const char *path, char base[STORE_PATH_SIZE]);

// ---- past damage: rescue.c ----------------------------------------------------------------------

// Something of the file makes no sense. True: the store rescues, and what reads goes on without it.
bool rescue_lose(Store *store);

typedef struct RescueProbe {
    void *context;
    bool (*reads)(void *context, int64_t at); // false: `at` and some behind it are damaged
} RescueProbe;

// The first place from `from` on that can be read; `last` where none before it can.
int64_t rescue_skip(int64_t from, int64_t last, const RescueProbe *probe);

// ---- rows of runs -------------------------------------------------------------------------------

// run_rows.c: "SELECT ... FROM runs LEFT JOIN workers", to which a WHERE or ORDER BY is added. The
// columns of runs may be named; `room` is what `sql` holds.
enum { RUN_SQL_SIZE = 2048 };
void run_rows_select(char sql[RUN_SQL_SIZE], const char *rest);
// Fills all but the lists from the current row. The status is settled by liveness.
void run_rows_get(Query *query, RunRecord *record, const WorkerId *here);
bool run_rows_insert(Store *store, RunRecord *record, Error *error) MUST_CHECK; // sets the id
bool run_rows_update(Store *store, const RunRecord *record, Error *error) MUST_CHECK;

// run_lists.c
bool run_lists_write(Store *store, const RunRecord *record, Error *error) MUST_CHECK;
bool run_lists_read(Store *store, RunRecord *record, Error *error) MUST_CHECK;

// Runs from the newest to the oldest, with metrics, until `use` says that it is enough. `use` may
// take the record's lists away (leaving {0}).
typedef struct RunVisitor {
    void *context;
    bool (*use)(void *context, RunRecord *record, bool *enough, Error *error);
} RunVisitor;
bool store_visit_runs(Store *store, const RunVisitor *visitor, Error *error) MUST_CHECK;
// The same behind damage: of the runs before `below` (0: of all).
bool rescue_visit_runs(Store *store, int64_t below, const RunVisitor *visitor,
                       Error *error) MUST_CHECK;

// filter.c
typedef struct FilterWord FilterWord;
typedef struct Filter {
    FilterWord *words;
    int count;
} Filter;
bool filter_parse(Filter *filter, const char *words, Error *error) MUST_CHECK;
bool filter_matches(const Filter *filter, const RunRecord *record);
void filter_clear(Filter *filter);

// ---- workers and segments -----------------------------------------------------------------------

typedef struct WorkerRow { // what the history knows of a worker
    WorkerId id;
    int64_t beat_ms, beat_wall_ms;
} WorkerRow;

// The clock of beats: counts through suspend and never jumps; the same for all processes of a boot.
int64_t worker_boot_ms(void);
// Columns of `workers` from `column` on, in the order of WORKER_COLUMNS; false: there is no row.
#define WORKER_COLUMNS \
    "w.token, w.host, w.boot, w.pid_space, w.pid, w.started, w.beat_ms, w.beat_wall_ms"
bool worker_row_get(Query *query, int column, WorkerRow *row);
// Boot, host and pid namespace of this process, for many calls of worker_judge.
void worker_here(WorkerId *here);
WorkerLife worker_judge(const WorkerRow *row, const WorkerId *here, pid_t *pid);

// segments.c: which segment's rows are in force, for points, layers, events and checkpoints alike.
typedef struct LineageSpan { // steps after < step <= until
    int segment;
    int64_t after, until;
} LineageSpan;

typedef struct Lineage {
    LineageSpan *spans; // in the order of steps, which is that of segments
    int count;
} Lineage;

bool lineage_read(Lineage *lineage, Store *store, int64_t run, Error *error) MUST_CHECK;
void lineage_clear(Lineage *lineage);
// Whether a later segment begins before this step of `segment`.
bool lineage_supersedes(const Lineage *lineage, int64_t segment, int64_t step);
