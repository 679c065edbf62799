// What came through the ring is taken once, also where the writer's room ends in the middle of it.
#include "run/recorder_private.h"
#include "store/series.h"
#include "tests/unit/history_fixture.h"

enum { POINTS = 1500, WIDE = 1 << 18 }; // steps apart, so that every point is a bucket of its own

static void put_series(Ring *ring) {
    PutSeries *put = ring_reserve(ring, sizeof *put);
    *put = (PutSeries){.kind = PUT_SERIES, .name = "far"};
}

static void put_point(Ring *ring, int number) {
    PutPoint *put = ring_reserve(ring, sizeof *put);
    *put = (PutPoint){.kind = PUT_POINT, .step = (int64_t)number * WIDE, .value = number};
}

static void put_event(Ring *ring, int number) {
    PutEvent *put = ring_reserve(ring, sizeof *put);
    *put = (PutEvent){.kind = PUT_EVENT, .event = {.step = number, .kind = EVENT_MESSAGE}};
}

static void a_backlog_is_gone_on_with_where_its_room_ended(void) {
    History history;
    Error error = {0};
    RecorderIntake intake;
    Recorder recorder = {.ring = ring_new(1 << 20, &error)};
    if (!history_open(&history))
        return;
    recorder.series_writer = series_writer_new(history.store, history.run, 0, "start", &error);
    CHECK(recorder.ring && recorder.series_writer && intake_make(&intake, &recorder, &error));
    put_series(recorder.ring);
    for (int i = 0; i < POINTS; i++) {
        put_point(recorder.ring, i);
        if (i % 100 == 0)
            put_event(recorder.ring, i);
    }
    ring_publish(recorder.ring);
    CHECK(intake_set_aside(&intake));
    CHECK(!intake_drain(&intake, &error));
    CHECK_INT(error.code, ERROR_FULL);
    for (int i = 0; i < 2; i++) {
        error = (Error){0};
        CHECK_MESSAGE(series_flush(recorder.series_writer, 1, &error), "%s", error.text);
        CHECK_MESSAGE(intake_drain(&intake, &error), "%s", error.text);
    }
    CHECK_INT(intake.event_count, POINTS / 100);
    CHECK(!intake.has_left_out);
    CHECK(series_flush(recorder.series_writer, 1, &error));
    CHECK_INT(history_number(&history, "SELECT sum(count) FROM buckets WHERE width = 262144"),
              POINTS);
    intake_clear(&intake);
    series_writer_free(recorder.series_writer);
    ring_free(recorder.ring);
    history_close(&history);
}

int main(void) {
    RUN_TEST(a_backlog_is_gone_on_with_where_its_room_ended);
    return test_end();
}
