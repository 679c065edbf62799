// Faults of the history, row by row of the list: what others do to its file or to the queue of
// orders loses nothing and stops nobody.
#include <signal.h>

#include "base/clock.h"
#include "store/commands.h"
#include "store/events.h"
#include "tests/unit/store_fixture.h"

static void fault_28_a_lock_that_is_held_drops_nothing(void) {
    Store *store = fresh_store("held.db");
    int64_t run = add_run(store, some_run("x", "fp32"));
    int ready[2];
    CHECK_INT(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        Store *other = store_open(path_of("held.db"), STORE_WRITE, &error);
        if (!other || !store_begin(other, &error) || write(ready[1], "y", 1) != 1)
            _exit(1);
        double until = clock_seconds() + (test_soaks() ? 60 : 0.7);
        while (clock_seconds() < until)
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        _exit(0); // without a commit: the lock goes with the process
    }
    char answer;
    CHECK_INT(read(ready[0], &answer, 1), 1);
    store_set_waiting(store, 0.05, NULL, NULL);
    Event event = {.step = 1, .value = NAN, .text = "kept"};
    CHECK_REFUSED(store_add_event(store, run, &event, &error), ERROR_BUSY, "held.db");
    store_set_waiting(store, 90, NULL, NULL);
    CHECK_DONE(store_add_event(store, run, &event, &error)); // the same call, again
    waitpid(child, NULL, 0);
    CHECK_INT(ask_sql(path_of("held.db"), "SELECT count(*) FROM events"), 1);
    close(ready[0]), close(ready[1]);
    store_close(store);
}

static void fault_30_a_file_that_is_removed_or_replaced_is_noticed(void) {
    Store *store = fresh_store("removed.db");
    int64_t run = add_run(store, some_run("x", "fp32"));
    unlink(path_of("removed.db"));
    CHECK(store_is_replaced(store));
    Store *other = store_open(path_of("removed.db"), STORE_WRITE, &error);
    CHECK_MESSAGE(other != NULL, "%s", error.text);
    CHECK(store_is_replaced(store));
    Event event = {.value = NAN};
    if (store_add_event(store, run, &event, &error)) // goes into the old file, or fails
        CHECK_INT(event.id, 1);
    RunRecord *runs;
    int count;
    CHECK_DONE(store_list_runs(other, &(RunFilter){0}, &runs, &count, &error));
    CHECK_INT(count, 0);
    CHECK_DONE(store_check(other, &error));
    store_close(other);
    store_close(store);
}

// Runs in a process of its own, as a user who may not do everything.
static int read_only_child(void) {
    if (geteuid() == 0 && setuid(65534) != 0)
        return 2;
    Store *store = store_open(path_of("shut/h.db"), STORE_READ, &error);
    RunRecord record;
    if (!store || !store_read_run(store, 1, &record, &error))
        return 3;
    record_clear(&record);
    store_close(store);
    if (store_open(path_of("shut/h.db"), STORE_WRITE, &error) || error.code != ERROR_HISTORY ||
        !strstr(error.text, "--db"))
        return 4;
    if (store_open(path_of("shut/new/h.db"), STORE_WRITE, &error) || error.code != ERROR_HISTORY ||
        !strstr(error.text, "--db"))
        return 5;
    return 0;
}

static void fault_32_a_folder_that_cannot_be_written_is_read(void) {
    CHECK_INT(mkdir(path_of("shut"), 0755), 0);
    Store *store = fresh_store("shut/h.db");
    add_run(store, some_run("x", "fp32"));
    store_close(store);
    unlink(path_of("shut/h.db-journal"));
    chmod(path_of("shut/h.db"), 0644); // the file may be written, its folder not
    if (geteuid() == 0)
        CHECK_INT(chown(path_of("shut/h.db"), 65534, 65534), 0);
    chmod(path_of("shut"), 0555);
    chmod(folder, 0755);
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(read_only_child());
    waitpid(child, &status, 0);
    CHECK_MESSAGE(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended at %d",
                  WEXITSTATUS(status));
    chmod(path_of("shut"), 0700);
}

static void fault_33_two_workers_never_own_one_run(void) {
    enum { WORKERS = 8 };
    Store *store = fresh_store("race.db");
    RunRecord record = some_run("x", "fp32");
    record.status = RUN_RUNNING;
    int64_t run = add_run(store, record);
    store_close(store);
    pid_t children[WORKERS];
    int owners = 0, go[2], done[2];
    CHECK(pipe(go) == 0 && pipe(done) == 0);
    for (int i = 0; i < WORKERS; i++) {
        children[i] = fork();
        if (children[i] != 0)
            continue;
        close(go[1]);
        char start;
        WorkerId me;
        Store *mine = store_open(path_of("race.db"), STORE_WRITE, &error);
        bool owns = read(go[0], &start, 1) == 0 && mine && worker_identify(&me, &error) &&
                    store_own_run(mine, run, &me, &error);
        if (write(done[1], owns ? "y" : "n", 1) == 1)
            pause(); // alive until all have tried
        _exit(0);
    }
    close(go[1]); // all at once
    for (int i = 0; i < WORKERS; i++) {
        char answer = 0;
        CHECK_INT(read(done[0], &answer, 1), 1);
        owners += answer == 'y';
    }
    for (int i = 0; i < WORKERS; i++) {
        kill(children[i], SIGKILL);
        waitpid(children[i], NULL, 0);
    }
    close(go[0]), close(done[0]), close(done[1]);
    CHECK_INT(owners, 1);
}

static void fault_34_a_hundred_thousand_orders_are_each_answered_once(void) {
    Store *store = fresh_store("flood.db");
    RunRecord record = some_run("x", "fp32");
    record.status = RUN_RUNNING;
    int64_t run = add_run(store, record);
    WorkerId me;
    CHECK_DONE(worker_identify(&me, &error));
    CHECK_DONE(store_own_run(store, run, &me, &error));
    // What another program may put there: nonsense, far too long, with zeros inside; at the end
    // what a person typed.
    run_sql(path_of("flood.db"),
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)"
            " INSERT INTO commands (run, created_ms, state, verb, argument) SELECT 1, 0, 'queued',"
            " CASE i % 3 WHEN 0 THEN 'explode' WHEN 1 THEN 'set' ELSE 'pause' END,"
            " CASE i % 3 WHEN 1 THEN hex(zeroblob(150)) WHEN 2 THEN 'a' || char(0) ELSE '' END"
            " FROM n;"
            "INSERT INTO commands (run, created_ms, state, verb) VALUES (1, 0, 'queued', 'stop')");
    RunCommand commands[16];
    int count, claimed = 0;
    double began = clock_seconds();
    CHECK_DONE(store_claim_commands(store, run, me.token, commands, 16, &count, &error));
    double took = clock_seconds() - began;
    CHECK_INT(count, 1);
    CHECK_TEXT(commands[0].verb, "stop");
    CHECK_INT(ask_sql(path_of("flood.db"), "SELECT count(*) FROM commands WHERE state = 'refused'"
                                           " AND answer <> ''"),
              100000);
    CHECK_MESSAGE(took < 20 * test_patience(), "%.1f s", took);
    run_sql(path_of("flood.db"),
            "UPDATE commands SET state = 'queued', verb = 'pause', argument = '' WHERE id <= 480");
    do {
        CHECK_DONE(store_claim_commands(store, run, me.token, commands, 16, &count, &error));
        CHECK_DONE(store_begin(store, &error));
        for (int i = 0; i < count; i++) {
            commands[i].state = COMMAND_DONE;
            CHECK_DONE(store_answer_command(store, &commands[i], &error)); // never twice
        }
        CHECK_DONE(store_commit(store, &error));
        claimed += count;
    } while (count > 0 && !test_why[0]);
    CHECK_INT(claimed, 480);
    store_close(store);
}

int main(void) {
    make_folder();
    RUN_TEST(fault_28_a_lock_that_is_held_drops_nothing);
    RUN_TEST(fault_30_a_file_that_is_removed_or_replaced_is_noticed);
    RUN_TEST(fault_32_a_folder_that_cannot_be_written_is_read);
    RUN_TEST(fault_33_two_workers_never_own_one_run);
    RUN_TEST(fault_34_a_hundred_thousand_orders_are_each_answered_once);
    remove_folder();
    return test_end();
}
