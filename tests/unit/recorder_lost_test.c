// What becomes of a run whose history is locked, taken over or deleted while it trains.
#include "base/clock.h"
#include "store/commands.h"
#include "tests/unit/recorder_fixture.h"

// Steps, slowly, until `part` was told or the run is to stop.
static bool trains_until(const char *part) {
    bool stop = false;
    for (int i = 0; i < 1000 && !strstr(told, part); i++) {
        if (!train(1, &stop))
            return false;
        a_moment();
    }
    return strstr(told, part) != NULL;
}

static void a_run_that_another_worker_took_ends(void) {
    begin("taken");
    bool stop = false;
    CHECK(train(1, &stop));
    tamper("UPDATE workers SET token = 'somebody else'");
    for (int i = 0; i < 1000 && !stop; i++, a_moment())
        CHECK(train(1, &stop));
    CHECK(stop);
    run_finish(model.run, NULL);
    CHECK_INT(model.run->status, RUN_STOPPED);
    CHECK(model.run->stop_reason[0]);
    CHECK(!recorder_end(model.recorder, model.run, &error));
    CHECK_INT(error.code, ERROR_STOPPED);
    end();
    tamper("DELETE FROM workers");
}

static void a_run_that_was_taken_ends_though_its_orders_were_refused(void) {
    begin("taken with orders");
    bool stop = false;
    int64_t order;
    CHECK(train(1, &stop));
    Store *other = store_open(path, STORE_WRITE, &error);
    CHECK(store_send_command(other, model.run->id, "set", "lr=0.5", &order, &error));
    store_close(other);
    for (int i = 0; i < 1000 && ask("SELECT count(*) FROM commands WHERE state = 'claimed'") == 0;
         i++)
        a_moment();
    tamper("BEGIN; UPDATE workers SET token = 'somebody else';"
           "UPDATE commands SET state = 'refused' WHERE state = 'claimed'; COMMIT");
    for (int i = 0; i < 1000 && !stop; i++, a_moment())
        CHECK(train(1, &stop));
    CHECK(stop);
    run_finish(model.run, NULL);
    CHECK_INT(model.run->status, RUN_STOPPED);
    CHECK(!recorder_end(model.recorder, model.run, &error));
    CHECK_INT(error.code, ERROR_STOPPED);
    end();
    tamper("DELETE FROM workers");
}

static void training_outlives_a_history_that_is_deleted(void) {
    begin("bereft");
    bool stop = false;
    CHECK(train(1, &stop));
    a_moment();
    CHECK(unlink(path) == 0);
    CHECK(trains_until("training goes on, but nothing after step"));
    CHECK_CONTAINS(told, "deleted or replaced");
    int64_t step = model.run->step;
    CHECK(train(1, &stop) && !stop);
    CHECK_INT(model.run->step, step + 1);
    run_finish(model.run, NULL);
    CHECK_INT(model.run->status, RUN_FINISHED);
    CHECK(!recorder_end(model.recorder, model.run, &error));
    CHECK_INT(error.code, ERROR_HISTORY);
    end();
}

// Told every moment of a pause. What would last is ended, for the test to find.
static void lose_the_history_in_a_pause(void *context, const Run *run) {
    int *moments = context;
    if (run->status != RUN_PAUSED)
        return;
    if (++*moments == 1)
        CHECK(unlink(path) == 0);
    if (*moments > 200 * test_patience())
        run_request_stop(15);
}

static void a_paused_run_goes_on_when_its_history_is_deleted(void) {
    begin("left alone");
    int moments = 0;
    int64_t order;
    model.run->observer.context = &moments;
    model.run->observer.event = NULL;
    model.run->observer.step = lose_the_history_in_a_pause;
    Store *other = store_open(path, STORE_WRITE, &error);
    CHECK(store_send_command(other, model.run->id, "pause", "", &order, &error));
    store_close(other);
    bool stop = false;
    for (int i = 0; i < 1000 && moments == 0; i++, a_moment())
        CHECK(train(1, &stop));
    CHECK(moments > 0 && !stop);
    CHECK_INT(run_stop_requested(), 0);
    CHECK_INT(model.run->status, RUN_RUNNING);
    run_finish(model.run, NULL);
    CHECK(!recorder_end(model.recorder, model.run, &error));
    end();
}

static void a_lock_held_long_loses_nothing(void) {
    const double held = 1; // many times as long as the store waits at a time
    begin("locked_out");
    sqlite3 *db;
    hurry();
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    CHECK(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK);
    bool stop;
    for (double until = clock_seconds() + held; clock_seconds() < until;) {
        CHECK(train(1, &stop) && !stop);
        a_moment();
    }
    CHECK(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
    int64_t id = model.run->id, steps = model.run->step;
    run_finish(model.run, NULL);
    CHECK(recorder_end(model.recorder, model.run, &error));
    end();
    Store *store = store_open(path, STORE_READ, &error);
    SeriesPoint *points = NULL;
    int count = 0;
    CHECK(store && store_read_series(store, id, "loss", 0, steps, 0, &points, &count, &error));
    int64_t values = 0;
    for (int i = 0; i < count; i++)
        values += points[i].count;
    CHECK_INT(values, steps);
    free(points);
    store_close(store);
}

static void a_lock_is_not_waited_for_longer_than_patience_at_the_end(void) {
    begin("impatient");
    hurry();
    model.recorder->patience = 1;
    sqlite3 *db;
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    bool stop;
    CHECK(train(1, &stop));
    CHECK(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK);
    CHECK(train(1, &stop));
    run_request_stop(15);
    double since = clock_seconds();
    CHECK(!recorder_call(model.recorder, write_note, &model.run->id, &error));
    CHECK_CONTAINS(error.text, "locked");
    CHECK(model.run->waits_for == NULL);
    run_finish(model.run, NULL);
    CHECK(!recorder_end(model.recorder, model.run, &error));
    CHECK_INT(error.code, ERROR_HISTORY);
    double waited = clock_seconds() - since; // for the call and the end together
    CHECK_MESSAGE(waited >= 0.9 && waited < 20 * test_patience(), "%g s", waited);
    CHECK(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
    end();
    run_request_stop(0);
}

int main(void) {
    make_place();
    RUN_TEST(a_lock_held_long_loses_nothing);
    RUN_TEST(a_lock_is_not_waited_for_longer_than_patience_at_the_end);
    RUN_TEST(a_run_that_another_worker_took_ends);
    RUN_TEST(a_run_that_was_taken_ends_though_its_orders_were_refused);
    RUN_TEST(training_outlives_a_history_that_is_deleted);
    RUN_TEST(a_paused_run_goes_on_when_its_history_is_deleted);
    return end_tests();
}
