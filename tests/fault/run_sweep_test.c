// A run and its checkpoints when the Nth allocation fails (fault 50), or the Nth write, fsync or
// rename of a checkpoint (faults 35 and 36): one line of error with its code, a history that is
// whole, no part of a checkpoint, and the one before it as it was. And the end of a run that is
// killed at its Nth write, and a checkpoint whose row meets a lock.
#define _GNU_SOURCE // syscall, RTLD_NEXT
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/text_stream.h"
#include "run/run_checkpoint.h"
#include "store/checkpoints.h"
#include "store/runs.h"
#include "store/series.h"
#include "tests/fault/failing.h"
#include "tests/unit/recorder_fixture.h"

// ---- files that fail ----------------------------------------------------------------------------

static int file_error;

static bool file_fails(void) {
    bool now = fails_now(FAILING_FILE);
    if (now)
        errno = file_error;
    return now;
}

ssize_t write(int file, const void *bytes, size_t size) {
    return file_fails() ? -1 : syscall(SYS_write, file, bytes, size);
}

int fsync(int file) {
    return file_fails() ? -1 : (int)syscall(SYS_fsync, file);
}

int rename(const char *from, const char *to) {
    return file_fails() ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

// ---- a run --------------------------------------------------------------------------------------

enum { STEPS = 8, KEPT_AT = 3 };

static Inventory inventory;
static const CheckpointExtra extra = {.script_hash = "abc", .lua_random = {1, 2, 3, 4}};

static bool enter_members(void) {
    return inventory_name(&inventory, "fc.weight", model.weight, false, &error) &&
           inventory_add(&inventory, MEMBER_OPTIMIZER, model.optimizer, &error) &&
           inventory_add(&inventory, MEMBER_SCALER, model.scaler, &error);
}

static bool keep(void) {
    CheckpointFile file = {.why = "periodic"};
    char where[STORE_PATH_SIZE], to[1024];
    return run_checkpoint_folder(model.run, where, sizeof where, &error) &&
           checkpoint_path(where, model.run->step, false, to, sizeof to, &error) &&
           run_save(model.run, &inventory, &extra, to, &file, &error) &&
           run_record_checkpoint(model.run, &file, &error);
}

static void clear(void) {
    inventory_clear(&inventory);
    end();
}

// Steps with events and a checkpoint; `moment` gives the recorder's thread its turn.
static bool trains(bool has_moments) {
    bool stop, done = true;
    for (int i = 1; i <= STEPS && done; i++) {
        done = train(0.25, &stop) && run_log_number(model.run, "late", i, &error) &&
               (i != KEPT_AT || keep());
        run_event(model.run, "a word of the script");
        if (has_moments)
            a_moment();
    }
    return done;
}

// ---- what must come of it -----------------------------------------------------------------------

static char at[64]; // for messages

// The system gives one cause (EAGAIN) for a thread that it has no memory for and for one too many.
static bool is_thread_refused(void) {
    return error.code == ERROR_FAILED && strstr(error.text, "cannot start the thread") &&
           strstr(error.text, "free memory");
}

static void check_clean(ErrorCode expected) {
    CHECK_MESSAGE(error.text[0] && !strchr(error.text, '\n'), "%s: \"%s\"", at, error.text);
    if (expected == ERROR_MEMORY && is_thread_refused())
        return;
    CHECK_MESSAGE(error.code == expected, "%s: code %d, \"%s\"", at, error.code, error.text);
}

static void check_loads(const CheckpointRow *row, const Store *store) {
    char root[STORE_PATH_SIZE], file[2 * STORE_PATH_SIZE], part[2 * STORE_PATH_SIZE + 8];
    store_checkpoint_root(store, root);
    snprintf(file, sizeof file, "%s/%s", root, row->file);
    snprintf(part, sizeof part, "%s.tmp", file);
    Checkpoint *checkpoint = checkpoint_open(file, row->hash, NULL, &error);
    CHECK_MESSAGE(checkpoint, "%s: %s", at, error.text);
    CHECK_MESSAGE(access(part, F_OK) != 0, "%s: %.300s is left", at, part);
    checkpoint_close(checkpoint);
}

// The history is whole, and of a run that says it is in there all is.
static void check_history(int64_t run, RunStatus status, int64_t steps, bool has_all) {
    Error fault_of_check = {0};
    RunRecord record;
    SeriesPoint *points = NULL;
    CheckpointRow *rows = NULL;
    int count = 0;
    Store *store = store_open(path, STORE_WRITE, &fault_of_check);
    CHECK_MESSAGE(store && store_check(store, &fault_of_check), "%s: %s", at, fault_of_check.text);
    if (!store || run == 0) {
        store_close(store);
        return;
    }
    CHECK_MESSAGE(store_read_run(store, run, &record, &error), "%s: %s", at, error.text);
    if (has_all) {
        CHECK_MESSAGE(record.status == status && record.step == steps,
                      "%s: the record is %s at step %lld, the run %s at %lld", at,
                      run_status_name(record.status), (long long)record.step,
                      run_status_name(status), (long long)steps);
        CHECK_INT(ask("SELECT count(*) FROM workers"), 0);
        CHECK(store_read_series(store, run, "scale", 0, STEPS, 0, &points, &count, &error));
        int64_t values = 0;
        for (int i = 0; i < count; i++)
            values += points[i].count;
        CHECK_MESSAGE(values == steps, "%s: %lld points of %lld", at, (long long)values,
                      (long long)steps);
        free(points);
    } else {
        CHECK_MESSAGE(record.status != RUN_FINISHED, "%s: it is told as finished", at);
        tamper("DELETE FROM workers"); // it reads as dead once this process has ended
    }
    record_clear(&record);
    CHECK_MESSAGE(store_list_checkpoints(store, run, &rows, &count, &error), "%s: %s", at,
                  error.text);
    for (int i = 0; i < count; i++)
        check_loads(&rows[i], store);
    free(rows);
    CHECK_MESSAGE(store_remove_run(store, run, &error), "%s: %s", at, error.text);
    store_close(store);
}

// ---- whole runs ---------------------------------------------------------------------------------

// A whole run, in which allocation `number` fails: of any thread, or of the recorder's alone.
// False: it was not met any more.
static bool run_with_fault(long number, bool of_recorder) {
    snprintf(at, sizeof at, "allocation %ld%s", number, of_recorder ? " of the recorder" : "");
    inventory = (Inventory){.named_count = 0};
    is_spared = of_recorder;
    fail_call(FAILING_MEMORY, number, false);
    bool done = try_begin("swept", 0, 0) && enter_members() && trains(of_recorder);
    Error why = error;
    if (!done)
        check_clean(ERROR_MEMORY);
    bool is_whole = false;
    if (model.recorder) {
        run_finish(model.run, done ? NULL : &why);
        is_whole = recorder_end(model.recorder, model.run, &error);
        if (!is_whole)
            check_clean(ERROR_MEMORY);
    }
    fault.kind = FAILING_NONE;
    is_spared = false;
    CHECK_MESSAGE(fault.happened || (done && is_whole), "%s: failed by itself: %s", at, error.text);
    int64_t id = model.run ? model.run->id : 0, steps = model.run ? model.run->step : 0;
    RunStatus status = model.run ? model.run->status : RUN_FAILED;
    clear();
    check_history(id, status, steps, is_whole);
    return fault.happened;
}

static void sweep(bool of_recorder, long stride) {
    long number = 1, met = 0;
    long step = test_soaks() ? 1 + stride / 20 : stride;
    for (; !test_why[0] && run_with_fault(number, of_recorder); number += step)
        met++;
    CHECK_MESSAGE(test_why[0] || met > 20, "only %ld calls could fail", met);
    printf("# %ld of %ld allocations failed\n", met, number);
}

static void fault_50_the_nth_allocation_of_a_run_fails(void) {
    sweep(false, 37);
}

static void fault_50_the_nth_allocation_of_its_recorder_fails(void) {
    sweep(true, 173);
}

// ---- checkpoints --------------------------------------------------------------------------------

static char kept[256]; // where the checkpoint lies

static bool save(Error *why) {
    CheckpointFile file = {.why = "asked"};
    return run_save(model.run, &inventory, &extra, kept, &file, why);
}

static double weight(void) {
    double value = NAN;
    CHECK(tensor_item(model.weight, &value, &error));
    return value;
}

static void set_weight(double value) {
    Tensor *source = number(value);
    CHECK(source && tensor_copy_into(model.weight, source, &error));
    tensor_release(source);
}

static bool restore(Error *why) {
    Checkpoint *checkpoint = checkpoint_open(kept, NULL, NULL, why);
    bool done = checkpoint && run_restore(model.run, checkpoint, &inventory, &extra, why);
    checkpoint_close(checkpoint);
    return done;
}

// A run of some steps whose checkpoint has the weight 1.
static void begin_kept(void) {
    bool stop;
    inventory = (Inventory){.named_count = 0};
    begin("kept");
    CHECK(enter_members() && train(0.25, &stop) && train((double)INFINITY, &stop));
    run_diagnose(model.run, DIAGNOSIS_NO_GRADIENT, "fc", "a word");
    snprintf(kept, sizeof kept, "%s/kept.safetensors", folder);
    set_weight(1);
    CHECK_MESSAGE(save(&error), "%s", error.text);
}

static void end_kept(void) {
    run_finish(model.run, NULL);
    CHECK_MESSAGE(recorder_end(model.recorder, model.run, &error), "%s", error.text);
    int64_t id = model.run->id;
    clear();
    Store *store = store_open(path, STORE_WRITE, &error);
    CHECK(store && store_remove_run(store, id, &error));
    store_close(store);
    unlink(kept);
}

// What lies there is whole, and of the one or the other weight; returns which.
static double check_kept(double either, double other) {
    set_weight(-1);
    CHECK_MESSAGE(restore(&error), "%s: %s", at, error.text);
    CHECK_MESSAGE(weight() == either || weight() == other, "%s: the weight is %g", at, weight());
    char part[300];
    snprintf(part, sizeof part, "%s.tmp", kept);
    CHECK_MESSAGE(access(part, F_OK) != 0, "%s: a part is left", at);
    return weight();
}

// Each call of `work` that fails leaves a clean error; one that passes ends the sweep.
static void sweep_calls(FailingKind kind, bool lasts, ErrorCode expected, bool (*work)(Error *why),
                        long least) {
    bool done = false;
    long number = 1;
    double last = 1; // in the file
    begin_kept();
    are_others_spared = true; // the recorder's thread goes on meanwhile
    for (; !done && number < 2000 && !test_why[0]; number++) {
        snprintf(at, sizeof at, "call %ld%s", number, lasts ? " and on" : "");
        set_weight(1 + (double)number);
        error = (Error){0};
        Error why = {0};
        fail_call(kind, number, lasts);
        done = work(&why);
        fault.kind = FAILING_NONE;
        if (!done) {
            error = why;
            CHECK_MESSAGE(fault.happened, "%s: failed by itself: %s", at, why.text);
            check_clean(expected);
        }
        if (work == save) // told of where it failed behind the rename, too
            last = check_kept(1 + (double)number, done ? 1 + (double)number : last);
        else
            CHECK_MESSAGE(!done || weight() == last, "%s: the weight is %g", at, weight());
        // A call that may be done without, as one that only tells, ends nothing.
        done = done && !fault.happened;
    }
    are_others_spared = false;
    CHECK_MESSAGE(test_why[0] || (done && number > least), "only %ld calls could fail", number - 1);
    end_kept();
}

static void fault_50_the_nth_allocation_of_a_checkpoint_fails(void) {
    sweep_calls(FAILING_MEMORY, false, ERROR_MEMORY, save, 10);
}

static void fault_50_the_nth_allocation_of_a_restore_fails(void) {
    sweep_calls(FAILING_MEMORY, false, ERROR_MEMORY, restore, 10);
}

static void fault_35_the_nth_write_of_a_checkpoint_fails(void) {
    file_error = EIO;
    sweep_calls(FAILING_FILE, false, ERROR_FAILED, save, 5);
    sweep_calls(FAILING_FILE, true, ERROR_FAILED, save, 5);
}

static void fault_36_the_disk_is_full_at_the_nth_write_of_a_checkpoint(void) {
    file_error = ENOSPC;
    sweep_calls(FAILING_FILE, true, ERROR_FULL, save, 5);
}

// ---- the end, and locks -------------------------------------------------------------------------

// Ends a run, and dies at the write or fsync of that number.
static void end_and_die(long number) {
    sqlite3_vfs_register(&vfs, 1);
    inventory = (Inventory){.named_count = 0};
    bool done = try_begin("ended", 0, 0) && enter_members() && trains(false);
    run_finish(model.run, NULL);
    fail_call(FAILING_KILL, number, false);
    _exit(done && recorder_end(model.recorder, model.run, &error) ? 0 : 1);
}

static void the_end_of_a_run_is_there_with_all_that_came_before_or_not_at_all(void) {
    int ended = 0, cut = 0, status = 1;
    for (long number = 1; number < 200 && !WIFEXITED(status) && !test_why[0]; number++) {
        status = 0;
        pid_t child = fork();
        if (child == 0)
            end_and_die(number);
        waitpid(child, &status, 0);
        CHECK_MESSAGE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0, "write %ld: exit status %d",
                      number, WEXITSTATUS(status));
        bool has_ended = ask("SELECT status = 'finished' FROM runs") == 1;
        ended += has_ended;
        cut += !has_ended;
        CHECK_MESSAGE(ask("SELECT count(*) FROM workers") == !has_ended, "write %ld: the worker",
                      number);
        CHECK_MESSAGE(!has_ended || ask("SELECT count(*) FROM points p JOIN series s ON s.id ="
                                        " p.series WHERE s.name = 'late'") == STEPS,
                      "write %ld: points are missing", number);
        CHECK_MESSAGE(ask("SELECT count(*) FROM events WHERE text LIKE 'finished after%'") ==
                          has_ended,
                      "write %ld: the event of its end", number);
        tamper("PRAGMA foreign_keys = ON; DELETE FROM runs");
    }
    CHECK_MESSAGE(ended > 0 && cut > 3, "%d ended, %d not", ended, cut);
}

static bool has_file_of(int step) {
    char file[200];
    snprintf(file, sizeof file, "%s/checkpoints/%lld/step-%d.safetensors", folder,
             (long long)model.run->id, step);
    return access(file, F_OK) == 0;
}

static bool had_older_files;

static void *unlock_soon(void *db) {
    nanosleep(&(struct timespec){.tv_nsec = 400000000}, NULL);
    had_older_files = has_file_of(2) && has_file_of(3);
    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    return NULL;
}

// Older checkpoints go when the row of the new one is there, and not before.
static void the_row_of_a_checkpoint_waits_for_a_lock_and_comes_once(void) {
    sqlite3 *db;
    pthread_t other;
    bool stop;
    inventory = (Inventory){.named_count = 0};
    begin("locked out");
    CHECK(enter_members());
    for (int i = 0; i < 3; i++)
        CHECK_MESSAGE(train(1, &stop) && keep(), "%s", error.text);
    CHECK(train(1, &stop) && !has_file_of(1) && has_file_of(2));
    hurry();
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    CHECK(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK);
    CHECK(pthread_create(&other, NULL, unlock_soon, db) == 0);
    CHECK_MESSAGE(keep(), "%s", error.text);
    pthread_join(other, NULL);
    sqlite3_close(db);
    CHECK(had_older_files);
    CHECK_INT(
        ask("SELECT group_concat(step, '') FROM (SELECT step FROM checkpoints ORDER BY step)"), 34);
    CHECK(!has_file_of(2) && has_file_of(3) && has_file_of(4));
    end_kept();
    CHECK_INT(ask("SELECT count(*) FROM checkpoints"), 0);
}

static void fault_50_a_text_in_memory_is_whole_or_said_to_be_lost(void) {
    int lost = 0;
    bool whole = false;
    for (long number = 1; number < 50 && !whole; number++) {
        TextStream text;
        fail_call(FAILING_MEMORY, number, false);
        bool is_there = text_stream_open(&text);
        if (is_there) {
            for (int i = 0; i < 10000; i++)
                fprintf(text.stream, "%d,", i);
            is_there = text_stream_close(&text);
        }
        whole = !fault.happened;
        fault.kind = FAILING_NONE;
        lost += !is_there;
        CHECK(is_there || !whole);
        if (is_there)
            CHECK_MESSAGE(text.size == 48890 && strcmp(text.text + 48880, "9998,9999,") == 0,
                          "call %ld: %zu bytes", number, text.size);
        free(is_there ? text.text : NULL);
    }
    CHECK(whole && lost > 2);
}

// Lines of rising length, so that the room grows on the way; false: one was lost.
static bool take_lines(TextStream *text) {
    bool is_there = true;
    for (int i = 1; i < 40 && is_there; i++) {
        fprintf(text->stream, "%0*d", 100 * i, i);
        const char *line = text_stream_take(text);
        is_there = line != NULL;
        CHECK(!line || (strlen(line) == (size_t)(100 * i) && atoi(line) == i));
        CHECK(!line || strcmp(text_stream_take(text), "") == 0); // it was taken
    }
    CHECK(is_there || !text_stream_take(text)); // and so it stays
    return is_there;
}

static void fault_50_lines_taken_from_a_text_are_whole_or_said_to_be_lost(void) {
    int lost = 0;
    bool whole = false;
    for (long number = 1; number < 50 && !whole; number++) {
        TextStream text;
        fail_call(FAILING_MEMORY, number, false);
        bool is_open = text_stream_open(&text);
        bool is_there = is_open && take_lines(&text);
        bool is_closed = is_open && text_stream_close(&text);
        whole = !fault.happened;
        fault.kind = FAILING_NONE;
        lost += !is_there;
        CHECK(is_there == is_closed && (is_there || !whole));
        if (is_closed)
            CHECK_TEXT(text.text, "");
        free(is_closed ? text.text : NULL);
    }
    CHECK(whole && lost > 2);
}

int main(void) {
    make_place();
    install_faults();
    begin("before"); // what a process makes once is there
    run_finish(model.run, NULL);
    if (!recorder_end(model.recorder, model.run, &error))
        return 1;
    end();
    tamper("PRAGMA foreign_keys = ON; DELETE FROM runs");
    RUN_TEST(the_end_of_a_run_is_there_with_all_that_came_before_or_not_at_all);
    RUN_TEST(the_row_of_a_checkpoint_waits_for_a_lock_and_comes_once);
    RUN_TEST(fault_50_a_text_in_memory_is_whole_or_said_to_be_lost);
    RUN_TEST(fault_50_lines_taken_from_a_text_are_whole_or_said_to_be_lost);
    RUN_TEST(fault_50_the_nth_allocation_of_a_checkpoint_fails);
    RUN_TEST(fault_50_the_nth_allocation_of_a_restore_fails);
    RUN_TEST(fault_35_the_nth_write_of_a_checkpoint_fails);
    RUN_TEST(fault_36_the_disk_is_full_at_the_nth_write_of_a_checkpoint);
    RUN_TEST(fault_50_the_nth_allocation_of_a_run_fails);
    RUN_TEST(fault_50_the_nth_allocation_of_its_recorder_fails);
    return end_tests();
}
