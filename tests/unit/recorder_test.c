// What a run leaves in the history: all of it, in the order in which it came.
#include "store/commands.h"
#include "store/events.h"
#include "store/layers.h"
#include "store/runs.h"
#include "store/series.h"
#include "tests/unit/recorder_fixture.h"

static void everything_of_a_run_is_found_again(void) {
    enum { STEPS = 300 };
    begin("whole");
    bool stop;
    for (int i = 1; i <= STEPS; i++)
        CHECK(train(i == 100 ? (double)INFINITY : 0.25, &stop));
    run_event(model.run, "a word of the script");
    CHECK(run_result(model.run, "answer", 42, &error));
    run_finish(model.run, NULL);
    CHECK(recorder_end(model.recorder, model.run, &error));
    int64_t id = model.run->id;
    end();

    Store *store = store_open(path, STORE_READ, &error);
    RunRecord record;
    CHECK(store && store_read_run(store, id, &record, &error));
    CHECK_TEXT(record.name, "whole");
    CHECK_INT(record.status, RUN_FINISHED);
    CHECK_INT(record.step, STEPS);
    CHECK_INT(record.applied, STEPS - 1);
    CHECK_INT(record.option_count, 2);
    CHECK(record.option_count == 2 && strcmp(record.options[1].value, "lr=1") == 0);
    CHECK(record_metric(&record, "answer") != NULL);
    CHECK_INT(record.layer_count, 1);
    CHECK(record.fact_count > 3);
    record_clear(&record);
    const char *const names[] = {"loss", "scale", "grad_norm", "step_seconds"};
    for (size_t i = 0; i < 4; i++) {
        SeriesPoint *points = NULL;
        int count = 0;
        CHECK(store_read_series(store, id, names[i], 0, STEPS, 0, &points, &count, &error));
        int64_t values = 0;
        for (int k = 0; k < count; k++)
            values += points[k].count + points[k].infs + points[k].nans;
        CHECK_MESSAGE(values == STEPS, "%s has %lld points", names[i], (long long)values);
        free(points);
    }
    LayerSample *samples = NULL;
    int count = 0;
    CHECK(store_read_layer(store, id, 0, 0, STEPS, 0, &samples, &count, &error));
    int64_t steps = 0, binned = 0;
    for (int i = 0; i < count; i++) {
        steps += samples[i].count;
        binned += samples[i].bins[-2 - LAYER_LOWEST_EXPONENT]; // 0.25
    }
    CHECK_INT(steps, STEPS); // one element a step
    CHECK_INT(binned, STEPS - 1);
    free(samples);
    Event *events = NULL;
    CHECK(store_read_events(store, id, 0, 1u << EVENT_SKIP | 1u << EVENT_MESSAGE, 0, &events,
                            &count, &error));
    CHECK_INT(count, 2);
    if (count == 2) {
        CHECK_INT(events[0].step, 100);
        CHECK_TEXT(events[0].layer, "fc");
        CHECK_TEXT(events[1].text, "a word of the script");
    }
    free(events);
    store_close(store);
}

static void orders_are_obeyed_at_a_boundary_and_answered(void) {
    static const struct {
        const char *verb, *argument, *answer;
        CommandState state;
    } orders[] = {
        {"set", "layer.f*=bf16", "layers f* are bf16 from step", COMMAND_DONE},
        {"set", "layer.fc=fp16",
         "on; without a loss scale its small gradients become 0: `set "
         "loss_scale=dynamic`",
         COMMAND_DONE},
        {"set", "layer.*=auto", "all layers are auto from step", COMMAND_DONE},
        {"set", "layer.fx=bf16", "no layer has such a name", COMMAND_REFUSED},
        {"set", "layer.fc=fp12", "one of auto fp32", COMMAND_REFUSED},
        {"set", "loss_scale=64", "the loss scale is 64", COMMAND_DONE},
        {"set", "loss_scale=2^5", "the loss scale is 32 from", COMMAND_DONE},
        {"set", "loss_scale=apex", "the loss scale is 65536", COMMAND_DONE},
        {"set", "loss_scale=-1", "", COMMAND_REFUSED},
        {"set", "layer.fc=fp16", "fc is fp16 from step", COMMAND_DONE},
        {"set", "lr=0.5", "the learning rate is 0.5", COMMAND_DONE},
        {"set", "lr.2=0.5", "the run has 1 optimizer", COMMAND_REFUSED},
        {"set", "lr=much", "a number is wanted", COMMAND_REFUSED},
        {"set", "speed=9", "can be set", COMMAND_REFUSED},
        {"checkpoint", "", "keeps no checkpoints", COMMAND_REFUSED},
        {"resume", "", "is not paused", COMMAND_REFUSED},
        {"stop", "", "stopped after step", COMMAND_DONE},
    };
    enum { COUNT = sizeof orders / sizeof *orders };
    int64_t ids[COUNT];
    begin("obedient");
    Store *other = store_open(path, STORE_WRITE, &error);
    for (int i = 0; i < COUNT; i++)
        CHECK(store_send_command(other, model.run->id, orders[i].verb, orders[i].argument, &ids[i],
                                 &error));
    bool stop = false;
    for (int i = 0; i < 1000 && !stop; i++, a_moment())
        CHECK(train(1, &stop));
    CHECK(stop);
    CHECK_NEAR(optimizer_rate(model.optimizer), 0.5, 0);
    RunCommand last = {.state = COMMAND_CLAIMED};
    for (int i = 0; i < 1000 && last.state == COMMAND_CLAIMED; i++, a_moment())
        CHECK(store_read_command(other, ids[COUNT - 2], &last, &error));
    CHECK_INT(last.state, COMMAND_REFUSED);
    CHECK(store_read_command(other, ids[COUNT - 1], &last, &error));
    CHECK_INT(last.state, COMMAND_CLAIMED); // not done before the run is over
    run_finish(model.run, NULL);
    CHECK_INT(model.run->status, RUN_STOPPED);
    CHECK(recorder_end(model.recorder, model.run, &error));
    for (int i = 0; i < COUNT; i++) {
        RunCommand command;
        CHECK(store_read_command(other, ids[i], &command, &error));
        CHECK_MESSAGE(command.state == orders[i].state, "%s %s: %s", orders[i].verb,
                      orders[i].argument, command.answer);
        CHECK_CONTAINS(command.answer, orders[i].answer);
    }
    // Each is told of once: as an order, or as what came of it.
    CHECK_INT(ask("SELECT count(*) FROM run_events WHERE run = 'obedient' AND text LIKE '%bf16%' "
                  "AND kind = 'command' AND text NOT LIKE '%refused%'"),
              1);
    CHECK_INT(ask("SELECT count(*) FROM run_events WHERE run = 'obedient' AND text LIKE '%without "
                  "a loss scale%'"),
              1); // of the two that set fp16, the one before there was a scale
    CHECK_INT(ask("SELECT count(*) FROM run_events WHERE run = 'obedient' AND kind = 'life'"), 2);
    CHECK_INT(ask("SELECT count(*) FROM run_events WHERE run = 'obedient' AND text LIKE "
                  "'stopped after step %'"),
              1);
    store_close(other);
    end();
}

static void the_end_of_a_run_tells_the_cause_before_the_place(void) {
    begin("broken");
    error_fail(&error, ERROR_FAILED, "/a/long/way/to/net.lua:18: width 100000000: too wide");
    run_finish(model.run, &error);
    CHECK(recorder_end(model.recorder, model.run, &error));
    CHECK_INT(ask("SELECT count(*) FROM run_events WHERE run = 'broken' AND text = "
                  "'failed after step 0: width 100000000: too wide (net.lua:18)'"),
              1);
    end();
}

static void work_is_done_on_the_recorders_thread(void) {
    begin("called");
    int64_t unknown = 12345;
    bool stop;
    for (int i = 0; i < 5; i++)
        CHECK(train(1, &stop));
    CHECK(recorder_call(model.recorder, write_note, &model.run->id, &error));
    CHECK_INT(ask("SELECT count(*) FROM points p JOIN series s ON s.id = p.series WHERE s.name ="
                  " 'scale' AND s.run = (SELECT max(id) FROM runs)"),
              5); // what came before is there
    CHECK(!recorder_call(model.recorder, write_note, &unknown, &error));
    CHECK(train(1, &stop)); // a failed call ends nothing
    run_finish(model.run, NULL);
    CHECK(recorder_end(model.recorder, model.run, &error));
    end();
}

static void a_hundred_orders_at_once_are_all_answered(void) {
    enum { COUNT = 100 };
    static int64_t ids[COUNT + 1];
    begin("hurried");
    Store *other = store_open(path, STORE_WRITE, &error);
    for (int i = 0; i < COUNT; i++)
        CHECK(store_send_command(other, model.run->id, "set", "lr=0.25", &ids[i], &error));
    CHECK(store_send_command(other, model.run->id, "stop", "", &ids[COUNT], &error));
    bool stop = false;
    const char *answered = "SELECT count(*) FROM commands WHERE state = 'done' AND verb = 'set'"
                           " AND argument = 'lr=0.25'";
    for (int i = 0; i < 1000 && ask(answered) < COUNT; i++, a_moment())
        CHECK(train(1, &stop)); // even those after the one that is to stop it
    CHECK_INT(ask(answered), COUNT);
    for (int i = 0; i < 200 && !stop; i++, a_moment())
        CHECK(train(1, &stop));
    CHECK(stop);
    run_finish(model.run, NULL);
    CHECK(recorder_end(model.recorder, model.run, &error));
    RunCommand command;
    CHECK(store_read_command(other, ids[COUNT], &command, &error));
    CHECK_INT(command.state, COMMAND_DONE);
    store_close(other);
    end();
}

// Until the newest order is done; `over` gets whether its run had stopped by then.
static void *wait_until_done(void *over) {
    int64_t *answer = over;
    for (int i = 0; i < 20000 && *answer < 0; i++)
        *answer = ask("SELECT CASE state WHEN 'done' THEN r.status = 'stopped' ELSE -1 END"
                      " FROM commands c JOIN runs r ON r.id = c.run ORDER BY c.id DESC LIMIT 1");
    return NULL;
}

static void a_stop_is_answered_with_the_end_though_much_waits_to_be_written(void) {
    enum { COUNT = MOST_EVENTS + 10000 };
    const Event said = {.kind = EVENT_MESSAGE, .value = NAN, .text = "and so on"};
    begin("talkative");
    int64_t order, over = -1;
    Store *other = store_open(path, STORE_WRITE, &error);
    CHECK(store_send_command(other, model.run->id, "stop", "", &order, &error));
    bool stop = false;
    for (int i = 0; i < 1000 && !stop; i++, a_moment())
        CHECK(train(1, &stop));
    CHECK(stop);
    sqlite3 *db;
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    CHECK(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK);
    for (int i = 0; i < 60; i++) // until a commit waits for the lock
        a_moment();
    for (int i = 0; i < COUNT; i++)
        recorder_event(model.recorder, &said);
    CHECK(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
    run_finish(model.run, NULL);
    pthread_t waiting;
    CHECK(pthread_create(&waiting, NULL, wait_until_done, &over) == 0);
    CHECK_MESSAGE(recorder_end(model.recorder, model.run, &error), "%s", error.text);
    pthread_join(waiting, NULL);
    CHECK_INT(over, 1);
    CHECK_INT(ask("SELECT count(*) FROM run_events WHERE run = 'talkative' AND kind = 'message'"),
              COUNT);
    store_close(other);
    end();
}

static void a_point_that_is_refused_ends_nothing(void) {
    begin("refused");
    bool stop;
    for (int i = 0; i < 3; i++)
        CHECK(train(1, &stop));
    recorder_point(model.recorder, model.run, 0, 1, 5); // of a step that is over
    for (int i = 0; i < 3; i++)
        CHECK(train(1, &stop));
    int64_t id = model.run->id;
    run_finish(model.run, NULL);
    CHECK_MESSAGE(recorder_end(model.recorder, model.run, &error), "%s", error.text);
    end();
    char sql[160];
    snprintf(sql, sizeof sql,
             "SELECT count(*) FROM points p JOIN series s ON s.id = p.series WHERE s.name = 'loss'"
             " AND s.run = %lld",
             (long long)id);
    CHECK_INT(ask(sql), 6);
    snprintf(sql, sizeof sql,
             "SELECT count(*) FROM events WHERE run = %lld AND text LIKE 'left out%%loss%%'",
             (long long)id);
    CHECK_INT(ask(sql), 1);
}

// Lua frees what a script made before the last state of its run is written.
static void the_end_of_a_run_needs_nothing_of_its_script(void) {
    begin("alone");
    bool stop;
    CHECK(train(1, &stop));
    run_finish(model.run, NULL);
    scaler_free(model.scaler);
    model.scaler = NULL;
    model.run->scaler = (Scaler *)8; // nobody looks there
    CHECK_MESSAGE(recorder_end(model.recorder, model.run, &error), "%s", error.text);
    end();
}

static int64_t make_ended(const char *name) {
    begin(name);
    bool stop;
    for (int i = 0; i < 20; i++)
        CHECK(train(1, &stop));
    int64_t id = model.run->id;
    run_stop(model.run, "enough");
    run_finish(model.run, NULL);
    CHECK(recorder_end(model.recorder, model.run, &error));
    end();
    return id;
}

static void a_resume_that_is_refused_leaves_the_run_as_it_was(void) {
    int64_t id = make_ended("kept");
    const char *const kept[] = {"SELECT step FROM runs WHERE name = 'kept'",
                                "SELECT status = 'stopped' FROM runs WHERE name = 'kept'",
                                "SELECT ended_ms > 0 FROM runs WHERE name = 'kept'",
                                "SELECT count(*) FROM segments",
                                "SELECT count(*) FROM events",
                                "SELECT count(*) FROM points"};
    int64_t before[6];
    for (int i = 0; i < 6; i++)
        before[i] = ask(kept[i]);
    begin_from("kept", id, 10);
    CHECK_INT(model.run->id, id);
    CHECK_INT(ask("SELECT count(*) FROM workers"), 1);
    for (int i = 0; i < 6; i++) // killed here, it would be all the same
        CHECK_INT(ask(kept[i]), before[i]);
    tamper("UPDATE workers SET beat_ms = 0");
    for (int i = 0; i < 600 && ask("SELECT beat_ms FROM workers") == 0; i++)
        a_moment();
    CHECK(ask("SELECT beat_ms FROM workers") > 0); // it lives while it replays
    Error refused = {0};
    error_fail(&refused, ERROR_FAILED, "of another model");
    run_finish(model.run, &refused);
    CHECK(recorder_end(model.recorder, model.run, &error));
    end();
    for (int i = 0; i < 6; i++)
        CHECK_INT(ask(kept[i]), before[i]);
    CHECK_INT(ask("SELECT count(*) FROM workers"), 0);
}

static void a_resume_supersedes_once_its_run_is_restored(void) {
    int64_t id = make_ended("goes_on");
    begin_from("goes_on", id, 10);
    model.run->step = 10;
    CHECK_MESSAGE(recorder_go_on(model.recorder, model.run, &error), "%s", error.text);
    bool stop;
    CHECK(run_log_number(model.run, "loss", 7, &error)); // is there from before
    CHECK(run_log_number(model.run, "late", 7, &error));
    for (int i = 0; i < 3; i++)
        CHECK(train(1, &stop));
    run_finish(model.run, NULL);
    CHECK_MESSAGE(recorder_end(model.recorder, model.run, &error), "%s", error.text);
    end();
    Store *store = store_open(path, STORE_READ, &error);
    SeriesPoint *points = NULL;
    int count = 0;
    CHECK(store && store_read_series(store, id, "loss", 0, 100, 0, &points, &count, &error));
    CHECK(count > 0 && points[count - 1].step == 12);
    free(points);
    CHECK(store && store_read_series(store, id, "late", 0, 100, 0, &points, &count, &error));
    CHECK(count == 1 && points[0].step == 10);
    free(points);
    store_close(store);
    CHECK_INT(ask("SELECT step FROM runs WHERE name = 'goes_on'"), 13);
}

static void a_run_that_cannot_begin_leaves_no_row(void) {
    begin("before");
    run_finish(model.run, NULL);
    CHECK(recorder_end(model.recorder, model.run, &error));
    end();
    int64_t runs = ask("SELECT count(*) FROM runs");
    model.options = (RunOptions){.device = "ref", .seed = 1, .name = "unlucky", .from = INT64_MAX};
    Run *run = run_new(&model.options, &error);
    CHECK(run && (run->recorder = recorder_new(path, &error)));
    CHECK(!run_configure(run, "tiny", "fp32", NULL, 0, &error));
    CHECK(recorder_end(run->recorder, run, &error));
    recorder_free(run->recorder);
    run_free(run);
    CHECK_INT(ask("SELECT count(*) FROM runs"), runs);
    CHECK_INT(ask("SELECT count(*) FROM workers"), 0);
}

static bool take_long(Store *store, void *context, Error *failure) {
    (void)store, (void)context, (void)failure;
    nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 500000000}, NULL);
    return true;
}

// Half a second is what it may take before it is a wait.
static void what_is_waited_for_the_history_is_no_time_of_the_run(void) {
    bool stop;
    begin("waits");
    CHECK(train(1, &stop));
    const double wall = run_wall(model.run), clock = run_clock(model.run);
    CHECK(recorder_call(model.recorder, take_long, NULL, &error));
    CHECK_NEAR(run_wall(model.run) - wall, 0.6, 0.4);
    CHECK_NEAR(run_clock(model.run) - clock, 0.6, 0.4);
    run_finish(model.run, NULL);
    CHECK(recorder_end(model.recorder, model.run, &error));
    end();
}

int main(void) {
    make_place();
    RUN_TEST(everything_of_a_run_is_found_again);
    RUN_TEST(orders_are_obeyed_at_a_boundary_and_answered);
    RUN_TEST(the_end_of_a_run_tells_the_cause_before_the_place);
    RUN_TEST(a_hundred_orders_at_once_are_all_answered);
    RUN_TEST(a_stop_is_answered_with_the_end_though_much_waits_to_be_written);
    RUN_TEST(the_end_of_a_run_needs_nothing_of_its_script);
    RUN_TEST(a_point_that_is_refused_ends_nothing);
    RUN_TEST(a_resume_that_is_refused_leaves_the_run_as_it_was);
    RUN_TEST(a_resume_supersedes_once_its_run_is_restored);
    RUN_TEST(a_run_that_cannot_begin_leaves_no_row);
    RUN_TEST(work_is_done_on_the_recorders_thread);
    RUN_TEST(what_is_waited_for_the_history_is_no_time_of_the_run);
    return end_tests();
}
