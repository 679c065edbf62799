// Who trains a run, whether that lives; orders that are claimed once and answered; events and
// checkpoints of what is in force.
#include <signal.h>
#include <sys/prctl.h>

#include "store/checkpoints.h"
#include "store/commands.h"
#include "store/events.h"
#include "store/worker.h"
#include "tests/unit/store_fixture.h"

static Store *with_run(const char *name, int64_t *id) {
    Store *store = fresh_store(name);
    RunRecord record = some_run("live", "fp32");
    record.status = RUN_RUNNING;
    *id = add_run(store, record);
    return store;
}

static WorkerLife life_of(Store *store, int64_t run, pid_t *pid) {
    WorkerLife life = WORKER_NONE;
    CHECK_DONE(store_worker_life(store, run, &life, pid, &error));
    return life;
}

static RunRecord read_run(Store *store, int64_t id) {
    RunRecord record;
    CHECK_DONE(store_read_run(store, id, &record, &error));
    RunRecord plain = record;
    record_clear(&record);
    return plain;
}

static void a_worker_is_stale_when_silent_and_live_again(void) {
    int64_t id;
    pid_t pid;
    Store *store = with_run("stale.db", &id);
    WorkerId me;
    CHECK_DONE(worker_identify(&me, &error));
    CHECK_INT(life_of(store, id, &pid), WORKER_NONE);
    CHECK_DONE(store_own_run(store, id, &me, &error));
    CHECK_INT(life_of(store, id, &pid), WORKER_LIVE);
    CHECK_INT(pid, getpid());
    run_sql(path_of("stale.db"), "UPDATE workers SET beat_ms = beat_ms - 6000");
    CHECK_INT(life_of(store, id, &pid), WORKER_STALE);
    CHECK_INT(pid, getpid());
    RunRecord record = read_run(store, id);
    CHECK(record.stale && record.status == RUN_RUNNING);
    CHECK_DONE(store_beat(store, id, &me, &error));
    CHECK_INT(life_of(store, id, &pid), WORKER_LIVE);
    CHECK(!read_run(store, id).stale);
    // The wall clock has no say.
    run_sql(path_of("stale.db"), "UPDATE workers SET beat_wall_ms = beat_wall_ms - 31536000000");
    CHECK_INT(life_of(store, id, &pid), WORKER_LIVE);
    CHECK_DONE(store_release_run(store, id, &me, &error));
    CHECK_INT(life_of(store, id, &pid), WORKER_NONE);
    CHECK_REFUSED(store_beat(store, id, &me, &error), ERROR_STOPPED, "this one stops");
    store_close(store);
}

static void a_worker_that_is_gone_is_dead_at_once(void) {
    int64_t id;
    pid_t pid;
    Store *store = with_run("dead.db", &id);
    WorkerId me, other;
    CHECK_DONE(worker_identify(&me, &error));
    CHECK_DONE(worker_identify(&other, &error));
    CHECK(strcmp(me.token, other.token) != 0);
    static const char *const gone[] = {
        "UPDATE workers SET pid = 4194304 - 1",     // no such process
        "UPDATE workers SET started = started + 2", // the pid was given to another
        "UPDATE workers SET boot = '11111111-2222-3333-4444-555555555555'", // before a restart
        "UPDATE workers SET pid = -1",
        "UPDATE workers SET pid = 9223372036854775807",
    };
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        CHECK_DONE(store_own_run(store, id, &me, &error));
        run_sql(path_of("dead.db"), gone[i]);
        CHECK_MESSAGE(life_of(store, id, &pid) == WORKER_DEAD, "%s", gone[i]);
        CHECK_INT(pid, 0); // nobody may signal that
        RunRecord record = read_run(store, id);
        CHECK_INT(record.status, RUN_DEAD);
        CHECK_CONTAINS(record.error,
                       strstr(gone[i], "boot") ? "the machine went down" : "was killed");
        CHECK_CONTAINS(record.error, "`mpbench resume 1`");
        CHECK_INT(ask_sql(path_of("dead.db"), "SELECT status = 'running' FROM runs"), 1);
    }
    CHECK_DONE(store_own_run(store, id, &other, &error)); // taken over from the dead
    CHECK_REFUSED(store_beat(store, id, &me, &error), ERROR_STOPPED, "another worker");
    CHECK_REFUSED(store_release_run(store, id, &me, &error), ERROR_STOPPED, "this one stops");
    CHECK_REFUSED(store_own_run(store, id, &me, &error), ERROR_TAKEN, "is trained by process");
    CHECK_REFUSED(store_remove_run(store, id, &error), ERROR_TAKEN, "in progress");
    CHECK_REFUSED(store_own_run(store, 77, &me, &error), ERROR_USAGE, "no run 77");
    store_close(store);
}

static void a_killed_process_is_dead_though_nobody_waited_for_it(void) {
    int64_t id;
    pid_t pid, seen;
    Store *store = with_run("killed.db", &id);
    int ready[2];
    CHECK_INT(pipe(ready), 0);
    pid = fork();
    if (pid == 0) { // a name that would mislead who looks for the first parenthesis
        prctl(PR_SET_NAME, ") 1 (R x", 0, 0, 0);
        Store *mine = store_open(path_of("killed.db"), STORE_WRITE, &error);
        WorkerId me;
        bool done = mine && worker_identify(&me, &error) && store_own_run(mine, id, &me, &error);
        if (write(ready[1], done ? "y" : "n", 1) == 1)
            pause();
        _exit(0);
    }
    char answer = 0;
    CHECK(read(ready[0], &answer, 1) == 1 && answer == 'y');
    CHECK_INT(life_of(store, id, &seen), WORKER_LIVE);
    CHECK_INT(seen, pid);
    kill(pid, SIGKILL);
    struct timespec moment = {.tv_nsec = 20000000};
    WorkerLife life = WORKER_LIVE;
    for (int i = 0; i < 100 && life != WORKER_DEAD; i++) {
        nanosleep(&moment, NULL);
        life = life_of(store, id, &seen); // a zombie is gone, too
    }
    CHECK_INT(life, WORKER_DEAD);
    CHECK_INT(seen, 0);
    waitpid(pid, NULL, 0);
    CHECK_INT(life_of(store, id, &seen), WORKER_DEAD);
    close(ready[0]), close(ready[1]);
    store_close(store);
}

static void another_host_is_believed_as_long_as_it_beats(void) {
    int64_t id;
    pid_t pid;
    Store *store = with_run("host.db", &id);
    WorkerId me;
    CHECK_DONE(worker_identify(&me, &error));
    snprintf(me.host, sizeof me.host, "elsewhere");
    snprintf(me.boot, sizeof me.boot, "other");
    CHECK_DONE(store_own_run(store, id, &me, &error));
    CHECK_INT(life_of(store, id, &pid), WORKER_LIVE);
    CHECK_INT(pid, 0); // a pid of another machine is none here
    run_sql(path_of("host.db"), "UPDATE workers SET beat_wall_ms = beat_wall_ms - 5100");
    CHECK_INT(life_of(store, id, &pid), WORKER_DEAD);
    CHECK_DONE(store_beat(store, id, &me, &error));
    CHECK_INT(life_of(store, id, &pid), WORKER_LIVE);
    store_close(store);
}

// A container of this machine, with its own pids: one of them here is another process, or none.
static void another_pid_namespace_is_believed_as_long_as_it_beats(void) {
    int64_t id;
    pid_t pid;
    Store *store = with_run("space.db", &id);
    WorkerId me;
    CHECK_DONE(worker_identify(&me, &error));
    CHECK(me.pid_space > 0);
    CHECK_DONE(store_own_run(store, id, &me, &error));
    run_sql(path_of("space.db"), "UPDATE workers SET pid = 4194304 - 1, pid_space = pid_space + 1");
    CHECK_INT(life_of(store, id, &pid), WORKER_LIVE);
    CHECK_INT(pid, 0);
    CHECK_REFUSED(store_refuse_living(store, id, &error), ERROR_TAKEN, "run 1 is in progress;");
    run_sql(path_of("space.db"), "UPDATE workers SET beat_ms = beat_ms - 6000");
    CHECK_INT(life_of(store, id, &pid), WORKER_DEAD);
    CHECK_DONE(store_refuse_living(store, id, &error));
    store_close(store);
}

static void a_run_without_a_worker_is_dead_after_a_while(void) {
    int64_t id;
    Store *store = with_run("none.db", &id);
    CHECK_INT(read_run(store, id).status, RUN_RUNNING); // its worker is about to take it
    run_sql(path_of("none.db"), "UPDATE runs SET created_ms = created_ms - 6000");
    CHECK_INT(read_run(store, id).status, RUN_DEAD);
    store_close(store);
}

// ---- orders -------------------------------------------------------------------------------------

static int64_t send(Store *store, int64_t run, const char *verb, const char *argument) {
    int64_t id = 0;
    CHECK_DONE(store_send_command(store, run, verb, argument, &id, &error));
    return id;
}

static void orders_are_claimed_once_in_order_and_answered(void) {
    int64_t run, last;
    Store *store = with_run("orders.db", &run);
    WorkerId me;
    CHECK_DONE(worker_identify(&me, &error));
    CHECK_DONE(store_own_run(store, run, &me, &error));
    CHECK_DONE(store_last_command(store, run, &last, &error));
    CHECK_INT(last, 0);
    int64_t first = send(store, run, "pause", NULL);
    int64_t second = send(store, run, "set", "layer.head=fp32");
    int64_t third = send(store, run, "stop", "");
    CHECK_DONE(store_last_command(store, run, &last, &error));
    CHECK_INT(last, third);
    RunCommand commands[8], seen;
    int count;
    CHECK_DONE(store_claim_commands(store, run, me.token, commands, 2, &count, &error));
    CHECK_INT(count, 2);
    CHECK(commands[0].id == first && commands[1].id == second);
    CHECK_TEXT(commands[1].verb, "set");
    CHECK_TEXT(commands[1].argument, "layer.head=fp32");
    CHECK_INT(commands[1].step, -1);
    CHECK_DONE(store_claim_commands(store, run, me.token, commands + 2, 2, &count, &error));
    CHECK_INT(count, 1);
    CHECK_DONE(store_claim_commands(store, run, me.token, &seen, 1, &count, &error));
    CHECK_INT(count, 0);
    CHECK_DONE(store_last_command(store, run, &last, &error));
    CHECK_INT(last, third);
    commands[1].state = COMMAND_DONE;
    commands[1].step = 12;
    snprintf(commands[1].answer, sizeof commands[1].answer, "head is fp32");
    CHECK_DONE(store_answer_command(store, &commands[1], &error));
    CHECK_REFUSED(store_answer_command(store, &commands[1], &error), ERROR_FAILED, "before");
    CHECK_DONE(store_read_command(store, second, &seen, &error));
    CHECK(seen.state == COMMAND_DONE && seen.step == 12);
    CHECK_TEXT(seen.answer, "head is fp32");
    CHECK_DONE(store_refuse_commands(store, run, "the run is over", &error));
    CHECK_DONE(store_read_command(store, third, &seen, &error));
    CHECK(seen.state == COMMAND_REFUSED && seen.step == -1);
    CHECK_TEXT(seen.answer, "the run is over");
    CHECK_REFUSED(store_read_command(store, 99, &seen, &error), ERROR_USAGE, "99");
    store_close(store);
}

static void wrong_orders_are_refused_at_once(void) {
    int64_t run, id;
    Store *store = with_run("wrong.db", &run);
    WorkerId me;
    CHECK_DONE(worker_identify(&me, &error));
    CHECK_REFUSED(store_send_command(store, run, "pause", "", &id, &error), ERROR_FAILED, "gone",
                  "resume");
    CHECK_DONE(store_own_run(store, run, &me, &error));
    char text[300];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    text[1] = '=';
    CHECK_REFUSED(store_send_command(store, run, "puase", "", &id, &error), ERROR_USAGE, "puase",
                  "did you mean pause");
    CHECK_REFUSED(store_send_command(store, run, "set", text, &id, &error), ERROR_USAGE, "255");
    CHECK_REFUSED(store_send_command(store, run, "set", "lr", &id, &error), ERROR_USAGE,
                  "KEY=VALUE");
    CHECK_REFUSED(store_send_command(store, run, "pause", "foo", &id, &error), ERROR_USAGE,
                  "pause: takes nothing", "foo");
    CHECK_REFUSED(store_send_command(store, 9, "stop", "", &id, &error), ERROR_USAGE, "no run 9");
    CHECK_DONE(store_begin(store, &error));
    for (int i = 0; i < 1000; i++)
        send(store, run, "pause", "");
    CHECK_DONE(store_commit(store, &error));
    CHECK_REFUSED(store_send_command(store, run, "stop", "", &id, &error), ERROR_TAKEN, "1000");
    RunRecord record;
    CHECK_DONE(store_read_run(store, run, &record, &error));
    record.status = RUN_STOPPED;
    CHECK_DONE(store_update_run(store, &record, &error));
    record_clear(&record);
    CHECK_REFUSED(store_send_command(store, run, "stop", "", &id, &error), ERROR_FAILED, "over",
                  "mpbench resume");
    CHECK_DONE(store_read_run(store, run, &record, &error));
    record.status = RUN_FINISHED; // which resume refuses
    CHECK_DONE(store_update_run(store, &record, &error));
    record_clear(&record);
    CHECK_REFUSED(store_send_command(store, run, "stop", "", &id, &error), ERROR_FAILED, "finished",
                  "mpbench fork");
    store_close(store);
}

static void orders_left_by_a_dead_worker_are_not_repeated(void) {
    int64_t run;
    Store *store = with_run("left.db", &run);
    WorkerId me, next;
    CHECK_DONE(worker_identify(&me, &error));
    CHECK_DONE(worker_identify(&next, &error));
    CHECK_DONE(store_own_run(store, run, &me, &error));
    int64_t claimed = send(store, run, "stop", ""), waiting = send(store, run, "pause", "");
    RunCommand command, seen;
    int count;
    CHECK_DONE(store_claim_commands(store, run, me.token, &command, 1, &count, &error));
    run_sql(path_of("left.db"), "UPDATE workers SET started = 1");
    CHECK_DONE(store_own_run(store, run, &next, &error));
    CHECK_DONE(store_claim_commands(store, run, next.token, &seen, 1, &count, &error));
    CHECK_INT(count, 0);
    CHECK_DONE(store_read_command(store, claimed, &seen, &error));
    CHECK_INT(seen.state, COMMAND_REFUSED);
    CHECK_DONE(store_read_command(store, waiting, &seen, &error));
    CHECK_INT(seen.state, COMMAND_REFUSED);
    CHECK_CONTAINS(seen.answer, "gone");
    store_close(store);
}

// ---- events and checkpoints ---------------------------------------------------------------------

static void a_run_trained_from_each_start_to_what_is_known_last_of_it(void) {
    int64_t run;
    Store *store = with_run("stretches.db", &run);
    RunStretch *stretches;
    int count;
    CHECK_DONE(store_read_stretches(store, run, &stretches, &count, &error));
    CHECK_INT(count, 0);
    run_sql(path_of("stretches.db"),
            "INSERT INTO segments (run, segment, after, why, began_ms) VALUES"
            " (1, 0, 0, 'start', 100), (1, 1, 5, 'resume', 400), (1, 2, 5, 'resume', 900)");
    for (int i = 0; i < 3; i++) {
        Event event = {.segment = i / 2, .time_ms = 150 + 50 * i, .kind = EVENT_LIFE, .value = NAN};
        CHECK_DONE(store_add_event(store, run, &event, &error));
    }
    CHECK_DONE(store_read_stretches(store, run, &stretches, &count, &error));
    CHECK_INT(count, 3);
    CHECK(count == 3 && stretches[0].from_ms == 100 && stretches[0].to_ms == 200);
    CHECK(count == 3 && stretches[1].from_ms == 400 && stretches[1].to_ms == 400); // set back
    CHECK(count == 3 && stretches[2].from_ms == 900 && stretches[2].to_ms == 900); // no event
    free(stretches);
    store_close(store);
}

static void what_a_resume_superseded_is_left_out(void) {
    int64_t run;
    Store *store = with_run("superseded.db", &run);
    for (int64_t step = 1; step <= 6; step++) {
        Event event = {.step = step, .kind = step == 3 ? EVENT_SKIP : EVENT_MESSAGE, .value = NAN};
        event.value = step == 3 ? 512 : NAN;
        snprintf(event.text, sizeof event.text, "at %d", (int)step);
        CHECK_DONE(store_add_event(store, run, &event, &error));
        CHECK_INT(event.id, step);
        CheckpointRow row = {.run = run, .step = step, .bytes = 7, .why = "asked"};
        snprintf(row.file, sizeof row.file, "1/%d", (int)step);
        CHECK_DONE(store_add_checkpoint(store, &row, &error));
    }
    run_sql(
        path_of("superseded.db"),
        "INSERT INTO segments (run, segment, after, why, began_ms) VALUES (1, 0, 0, 'start', 0),"
        " (1, 1, 5, 'resume', 0), (1, 2, 4, 'resume', 0)");
    Event event = {.step = 5, .segment = 2, .kind = EVENT_LIFE, .value = NAN, .text = "again"};
    CHECK_DONE(store_add_event(store, run, &event, &error));
    Event *events;
    int count;
    CHECK_DONE(store_read_events(store, run, 0, 0, 0, &events, &count, &error));
    CHECK_INT(count, 5);
    CHECK(count == 5 && events[3].step == 4 && events[4].segment == 2);
    CHECK(count == 5 && events[2].value == 512 && isnan(events[0].value));
    free(events);
    CHECK_DONE(store_read_events(store, run, 1, 1u << EVENT_MESSAGE, 1, &events, &count, &error));
    CHECK_INT(count, 1);
    CHECK(count == 1 && events[0].id == 2);
    CHECK_TEXT(events[0].text, "at 2");
    free(events);
    int64_t total;
    CHECK_DONE(store_read_last_events(store, run, 2, &events, &count, &total, &error));
    CHECK_INT(total, 5);
    CHECK_INT(count, 2);
    CHECK(count == 2 && events[0].step == 4 && events[1].segment == 2);
    free(events);
    CheckpointRow *rows;
    CHECK_DONE(store_list_checkpoints(store, run, &rows, &count, &error));
    CHECK_INT(count, 4);
    CHECK(count == 4 && rows[3].step == 4);
    int64_t first = rows[0].id;
    free(rows);
    CHECK_DONE(store_remove_checkpoint(store, first, &error));
    CHECK_REFUSED(store_remove_checkpoint(store, first, &error), ERROR_USAGE, "no checkpoint");
    run_sql(path_of("superseded.db"), "UPDATE checkpoints SET file = '../../etc/x' WHERE step = 2;"
                                      "UPDATE checkpoints SET file = '/etc/x' WHERE step = 3");
    CHECK_DONE(store_list_checkpoints(store, run, &rows, &count, &error));
    CHECK_INT(count, 1); // files elsewhere are nobody's checkpoints
    free(rows);
    store_close(store);
}

int main(void) {
    make_folder();
    RUN_TEST(a_worker_is_stale_when_silent_and_live_again);
    RUN_TEST(a_worker_that_is_gone_is_dead_at_once);
    RUN_TEST(a_killed_process_is_dead_though_nobody_waited_for_it);
    RUN_TEST(another_host_is_believed_as_long_as_it_beats);
    RUN_TEST(another_pid_namespace_is_believed_as_long_as_it_beats);
    RUN_TEST(a_run_without_a_worker_is_dead_after_a_while);
    RUN_TEST(orders_are_claimed_once_in_order_and_answered);
    RUN_TEST(wrong_orders_are_refused_at_once);
    RUN_TEST(orders_left_by_a_dead_worker_are_not_repeated);
    RUN_TEST(a_run_trained_from_each_start_to_what_is_known_last_of_it);
    RUN_TEST(what_a_resume_superseded_is_left_out);
    remove_folder();
    return test_end();
}
