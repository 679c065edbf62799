// The history when the Nth write, fsync or allocation fails, N = 1, 2, ... until nothing fails any
// more. After each: one line of error with its code, a whole file, every acknowledged row and no
// other.
#define _GNU_SOURCE // RTLD_NEXT
#include "store/checkpoints.h"
#include "store/commands.h"
#include "store/events.h"
#include "store/scan.h"
#include "tests/fault/failing.h"
#include "tests/unit/store_fixture.h"

// ---- what is done meanwhile ---------------------------------------------------------------------

typedef struct Work {
    RunRecord record; // of the run that goes on
    WorkerId me;
    RunCommand command;
    int64_t order;
    // What was acknowledged.
    int64_t runs, metrics, events, checkpoints, answers, owners, scans, cells;
} Work;

static bool add_the_run(Store *store, Work *work) {
    if (!store_add_run(store, &work->record, "return 1", 8, &error))
        return false;
    work->runs++;
    work->metrics += work->record.metric_count;
    return true;
}

static bool add_another(Store *store, Work *work) {
    RunRecord record = some_run("other", "fp16");
    if (!store_add_run(store, &record, "return 2", 8, &error))
        return false;
    work->runs++;
    return true;
}

static bool own(Store *store, Work *work) {
    if (!store_own_run(store, work->record.id, &work->me, &error))
        return false;
    work->owners = 1;
    return true;
}

static bool beat(Store *store, Work *work) {
    return store_beat(store, work->record.id, &work->me, &error);
}

static bool add_events(Store *store, Work *work) {
    enum { EVENTS = 60 }; // several pages
    if (!store_begin(store, &error))
        return false;
    Event event = {.kind = EVENT_SKIP, .value = 512, .step = 1};
    memset(event.text, 'x', sizeof event.text - 1);
    for (int i = 0; i < EVENTS; i++)
        if (!store_add_event(store, work->record.id, &event, &error)) {
            store_rollback(store);
            return false;
        }
    if (!store_commit(store, &error))
        return false;
    work->events += EVENTS;
    return true;
}

static bool add_checkpoint(Store *store, Work *work) {
    CheckpointRow row = {.run = work->record.id, .step = 1, .why = "asked", .file = "1/1"};
    if (!store_add_checkpoint(store, &row, &error))
        return false;
    work->checkpoints++;
    return true;
}

static bool update(Store *store, Work *work) {
    static const RecordMetric more[] = {{"accuracy", 0.5}, {"loss", NAN}, {"top5", 0.9}};
    if (work->record.metric_count != 3 && !record_set_metrics(&work->record, more, 3, &error))
        return false;
    work->record.step = 12;
    if (!store_update_run(store, &work->record, &error))
        return false;
    work->metrics = 3;
    return true;
}

static bool send(Store *store, Work *work) {
    return store_send_command(store, work->record.id, "pause", "", &work->order, &error);
}

static bool claim(Store *store, Work *work) {
    int count = 0;
    return store_claim_commands(store, work->record.id, work->me.token, &work->command, 1, &count,
                                &error) &&
           (count == 1 || error_fail(&error, ERROR_FAILED, "the order was lost"));
}

static bool answer(Store *store, Work *work) {
    work->command.state = COMMAND_DONE;
    if (!store_answer_command(store, &work->command, &error))
        return false;
    work->answers++;
    return true;
}

// A scan of the run, whose first cell is one commit and whose second is another.
static bool put_scan(Store *store, Work *work) {
    ScanRecord *scan = scan_record_new(&error);
    if (!scan)
        return false;
    scan->run = work->record.id;
    scan->format_count = 2;
    scan->unit_count = 1;
    snprintf(scan->formats[0], SCAN_FORMAT_SIZE, "fp16");
    snprintf(scan->formats[1], SCAN_FORMAT_SIZE, "bf16");
    for (int format = 0; format < 2; format++) {
        ScanCell *cell = &scan->cells[0][format];
        for (const ScanReading *reading = scan_readings; reading->name; reading++)
            *scan_reading(cell, reading) = (double)NAN; // and so no row
        cell->damage = 1;
        cell->is_known = true;
    }
    bool done = store_begin(store, &error);
    if (done && (!store_add_scan(store, scan, &work->me, &error) ||
                 !store_put_scan_layers(store, scan, &error) ||
                 !store_put_scan_cell(store, scan, 0, 0, &error))) {
        store_rollback(store);
        done = false;
    }
    done = done && store_commit(store, &error);
    work->scans += done;
    work->cells += done;
    done = done && store_put_scan_cell(store, scan, 0, 1, &error);
    work->cells += done;
    scan_record_free(scan);
    return done;
}

static bool read_all(Store *store, Work *work) {
    RunRecord *runs, record;
    Event *events;
    CheckpointRow *rows;
    int count;
    int64_t id;
    size_t length;
    if (!store_list_runs(store, &(RunFilter){.words = "acc>0.1 id>0"}, &runs, &count, &error))
        return false;
    CHECK_INT(count, 1);
    store_free_runs(runs, count);
    if (!store_read_run(store, work->record.id, &record, &error))
        return false;
    CHECK_INT(record.step, 12);
    char *script = store_read_script(store, record.script_hash, &length, &error);
    record_clear(&record);
    if (!script)
        return false;
    free(script);
    if (!store_read_events(store, work->record.id, 0, 0, 0, &events, &count, &error))
        return false;
    CHECK_INT(count, work->events);
    free(events);
    if (!store_list_checkpoints(store, work->record.id, &rows, &count, &error))
        return false;
    free(rows);
    ScanRecord *scan = scan_record_new(&error);
    bool done = scan && store_find_scan(store, "last", &id, &error) &&
                store_read_scan(store, id, scan, &error);
    CHECK_MESSAGE(!done || scan_cells_known(scan) == 2, "a cell is lost");
    scan_record_free(scan);
    return done && store_find_run(store, "work", &id, &error);
}

static bool remove_other(Store *store, Work *work) {
    if (!store_remove_run(store, work->record.id + 1, &error))
        return false;
    work->runs--;
    return true;
}

static bool compact(Store *store, Work *work) {
    (void)work;
    return store_compact(store, &error);
}

static bool (*const steps[])(Store *store, Work *work) = {
    add_the_run, add_another, own,    beat,     add_events, add_checkpoint, update,
    send,        claim,       answer, put_scan, read_all,   remove_other,   compact,
};

enum { STEPS = sizeof steps / sizeof *steps };

// ---- the sweep ----------------------------------------------------------------------------------

static void check_clean(const char *where) {
    CHECK_MESSAGE(error.code != ERROR_NONE && error.text[0] && !strchr(error.text, '\n'),
                  "%s: code %d, \"%s\"", where, error.code, error.text);
    CHECK_MESSAGE(!strstr(error.text, "Success"), "%s: \"%s\"", where, error.text);
    ErrorCode expected = fault.kind == FAILING_MEMORY ? ERROR_MEMORY
                         : fault.kind == FAILING_FULL ? ERROR_FULL
                                                      : ERROR_HISTORY;
    CHECK_MESSAGE(error.code == expected, "%s: code %d, \"%s\"", where, error.code, error.text);
}

// The file has what was acknowledged and no other row, and is whole.
static void check_file(const char *path, const Work *work) {
    const struct {
        const char *sql;
        int64_t expected;
    } rows[] = {
        {"SELECT count(*) FROM runs", work->runs},
        {"SELECT count(*) FROM metrics", work->metrics},
        {"SELECT count(*) FROM events", work->events},
        {"SELECT count(*) FROM checkpoints", work->checkpoints},
        {"SELECT count(*) FROM workers", work->owners},
        {"SELECT count(*) FROM commands WHERE state = 'done'", work->answers},
        {"SELECT count(*) FROM scans", work->scans},
        {"SELECT count(*) FROM scan_cells", work->cells},
        {"SELECT count(*) FROM scan_readings", work->cells},
    };
    error = (Error){0};
    Store *store = store_open(path, STORE_WRITE, &error);
    CHECK_MESSAGE(store != NULL, "it does not open again: %s", error.text);
    if (!store)
        return;
    CHECK_DONE(store_check(store, &error));
    store_close(store);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t value = ask_sql(path, rows[i].sql);
        CHECK_MESSAGE(value == rows[i].expected, "%s: %lld, not the %lld acknowledged", rows[i].sql,
                      (long long)value, (long long)rows[i].expected);
    }
}

// After a failed write or fsync the connection writes no more.
static void check_refuses(Store *store, Work *work) {
    fault.kind = FAILING_NONE;
    CHECK_REFUSED(add_another(store, work), ERROR_HISTORY, "a write to it failed before");
    CHECK_REFUSED(store_begin(store, &error), ERROR_HISTORY, "a write to it failed before");
}

// One pass of the work with a fault at call `number`. False: the fault was not met any more.
static bool run_with_fault(FailingKind kind, long number, bool lasts) {
    const char *path = path_of("sweep.db");
    Work work = {0};
    work.record = some_run("work", "fp32");
    work.record.status = RUN_RUNNING;
    CHECK_DONE(worker_identify(&work.me, &error));
    CHECK_DONE(record_set_metrics(&work.record, (RecordMetric[]){{"accuracy", 0.5}}, 1, &error));
    store_close(fresh_store("sweep.db"));
    error = (Error){0};
    fail_call(kind, number, lasts);
    Store *store = store_open_with(path, STORE_WRITE, &(StoreOptions){.vfs = "faulty"}, &error);
    if (!store) {
        check_clean("open");
        fault.kind = FAILING_NONE;
        store = store_open_with(path, STORE_WRITE, &(StoreOptions){.vfs = "faulty"}, &error);
    }
    for (int i = 0; store && i < STEPS && !test_why[0]; i++) {
        error = (Error){0};
        if (steps[i](store, &work))
            continue;
        char where[64];
        snprintf(where, sizeof where, "call %ld, step %d", number, i);
        CHECK_MESSAGE(fault.happened, "%s failed by itself: %s", where, error.text);
        check_clean(where);
        if (kind == FAILING_DISK) {
            check_refuses(store, &work);
            break;
        }
        fault.kind = FAILING_NONE; // there is room again: the same call, once more
        error = (Error){0};
        bool done = steps[i](store, &work);
        CHECK_MESSAGE(done, "%s, again: %s", where, error.text);
    }
    fault.kind = FAILING_NONE;
    store_close(store);
    check_file(path, &work);
    record_clear(&work.record);
    return fault.happened;
}

// `stride` leaves calls out where there are many; the soak leaves none out.
static void sweep(FailingKind kind, bool lasts, long stride) {
    long number = 1, met = 0;
    long step = getenv("MPBENCH_SOAK") ? 1 : stride;
    while (!test_why[0] && run_with_fault(kind, number, lasts)) {
        number += step;
        met++;
    }
    CHECK_MESSAGE(test_why[0] || met > 20, "only %ld calls could fail", met);
}

static void fault_27_the_nth_write_or_fsync_fails(void) {
    sweep(FAILING_DISK, false, 4);
}

static void fault_27_all_writes_fail_from_the_nth_on(void) {
    sweep(FAILING_DISK, true, 5);
}

static void fault_26_the_disk_is_full_at_the_nth_write(void) {
    sweep(FAILING_FULL, false, 5);
}

static void fault_50_the_nth_allocation_fails(void) {
    sweep(FAILING_MEMORY, false, 79);
}

static void a_file_is_made_whole_or_not_at_all(void) {
    int made = 0;
    for (long number = 1; number < 400 && !test_why[0]; number += 5) {
        unlink(path_of("new.db"));
        unlink(path_of("new.db-journal"));
        fail_call(FAILING_DISK, number, true);
        error = (Error){0};
        Store *store = store_open_with(path_of("new.db"), STORE_WRITE,
                                       &(StoreOptions){.vfs = "faulty"}, &error);
        if (!store)
            check_clean("open");
        fault.kind = FAILING_NONE;
        made += store != NULL;
        store_close(store);
        store = store_open(path_of("new.db"), STORE_WRITE, &error);
        CHECK_MESSAGE(store != NULL, "call %ld: %s", number, error.text);
        if (store)
            CHECK_DONE(store_check(store, &error));
        store_close(store);
        if (!fault.happened)
            break;
    }
    CHECK_MESSAGE(made == 1, "%d", made);
}

int main(void) {
    install_faults();
    make_folder();
    RUN_TEST(fault_27_the_nth_write_or_fsync_fails);
    RUN_TEST(fault_27_all_writes_fail_from_the_nth_on);
    RUN_TEST(fault_26_the_disk_is_full_at_the_nth_write);
    RUN_TEST(fault_50_the_nth_allocation_fails);
    RUN_TEST(a_file_is_made_whole_or_not_at_all);
    remove_folder();
    return test_end();
}
