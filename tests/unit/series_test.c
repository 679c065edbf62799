// Series: what was logged is what is read, at any zoom, through undone transactions and numbers
// that are not finite.

#include "tests/unit/series_fixture.h"

static void every_point_is_read_as_it_was_logged(void) {
    History history;
    uint64_t random = 1;
    if (history_open(&history)) {
        Model model = model_new(3000);
        SeriesWriter *writer = writer_of(&history, 0, "start");
        for (int64_t step = 0; step < 3000; step += 1 + history_below(&random, 3)) {
            add(writer, &model, step, some_value(&random));
            if (history_below(&random, 50) == 0)
                flush(writer, 1);
        }
        flush(writer, 1);
        SeriesPoint *points;
        int count;
        Error error;
        CHECK(store_read_series(history.store, 1, "loss", 0, 2999, 0, &points, &count, &error));
        int next = 0;
        for (int64_t step = 0; step < 3000; step++) {
            if (!model.has[step])
                continue;
            CHECK(next < count && points[next].step == step && points[next].width == 1);
            CHECK(next < count && same(series_point_value(&points[next]), model.values[step]));
            next++;
        }
        CHECK_INT(count, next);
        free(points);
        check_windows(&history, &model, 2999, &random);
        series_writer_free(writer);
        model_free(&model);
    }
    history_close(&history);
}

static void windows_at_every_zoom_equal_brute_force(void) {
    History history;
    uint64_t random = 7;
    if (history_open(&history)) {
        enum { STEPS = 60000 };
        Model model = model_new(STEPS);
        SeriesWriter *writer = writer_of(&history, 0, "start");
        int64_t step = 0, until;
        // Stretches that are slow, fast and very fast, with holes between them.
        while (step < STEPS) {
            int64_t in_flush = 1 + history_below(&random, history_below(&random, 3) ? 100 : 8000);
            for (until = step + in_flush; step < until && step < STEPS; step++)
                add(writer, &model, step, some_value(&random));
            flush(writer, 0.2);
            if (history_below(&random, 4) == 0)
                step += history_below(&random, 1000);
        }
        CHECK_MESSAGE(history_number(&history, "SELECT count(*) FROM points") < STEPS / 2,
                      "fast points are not all rows");
        check_windows(&history, &model, STEPS - 1, &random);
        series_writer_free(writer);
        model_free(&model);
    }
    history_close(&history);
}

static void what_an_undone_transaction_wrote_is_written_again(void) {
    History history;
    if (history_open(&history)) {
        Error error = {0};
        uint64_t random = 9;
        Model model = model_new(20000);
        SeriesWriter *writer = writer_of(&history, 0, "start");
        int64_t step = 1;
        for (int i = 0; i < 60; i++) {
            for (int64_t end = step + 1 + history_below(&random, 600); step < end && step < 20000;
                 step++)
                add(writer, &model, step, some_value(&random));
            CHECK(store_begin(history.store, &error));
            CHECK_MESSAGE(series_flush(writer, 0.2, &error), "%s", error.text);
            if (history_below(&random, 2) && i < 59)
                store_rollback(history.store);
            else
                CHECK(store_commit(history.store, &error));
        }
        check_windows(&history, &model, 19999, &random);
        series_writer_free(writer);
        model_free(&model);
    }
    history_close(&history);
}

static void a_step_logged_twice_keeps_the_later_value(void) {
    History history;
    if (history_open(&history)) {
        Error error = {0};
        uint64_t random = 13;
        Model model = model_new(100);
        SeriesWriter *writer = writer_of(&history, 0, "start");
        for (int64_t step = 1; step < 50; step++) {
            add(writer, &model, step, 5);
            if (step % 3 == 0)
                flush(writer, 1);
            add(writer, &model, step, (double)step);
        }
        flush(writer, 1);
        check_windows(&history, &model, 99, &random);
        CHECK(!series_add(writer, "loss", 48, 1, &error));
        CHECK_TEXT(error.text, "series loss: step 48 is not after step 49");
        series_writer_free(writer);
        model_free(&model);
    }
    history_close(&history);
}

static void more_series_than_a_run_may_have_are_refused_by_name(void) {
    History history;
    if (history_open(&history)) {
        Error error = {0};
        SeriesWriter *writer = writer_of(&history, 0, "start");
        for (int i = 0; i < 256; i++) {
            char name[16];
            snprintf(name, sizeof name, "s%d", i);
            CHECK(series_add(writer, name, 1, i, &error));
        }
        CHECK(!series_add(writer, "one_more", 1, 0, &error));
        CHECK_TEXT(error.text, "log: one_more: a run has up to 256 series");
        CHECK(series_add(writer, "s255", 2, 0, &error));
        flush(writer, 1);
        SeriesInfo *infos;
        int count;
        CHECK(store_list_series(history.store, 1, &infos, &count, &error));
        CHECK_INT(count, 256);
        CHECK_TEXT(infos[7].name, "s7");
        free(infos);
        series_writer_free(writer);
    }
    history_close(&history);
}

static void memory_stays_bounded_without_a_flush(void) {
    History history;
    if (history_open(&history)) {
        uint64_t random = 17;
        enum { STEPS = 2000000 };
        Model model = model_new(STEPS);
        SeriesWriter *writer = writer_of(&history, 0, "start");
        for (int64_t step = 0; step < STEPS; step++)
            add(writer, &model, step, (double)(step % 1000));
        int waiting = 0;
        for (int level = 0; level < LADDER_LEVELS; level++)
            waiting += writer->series[0].ladder.rungs[level].count;
        CHECK_MESSAGE(waiting < 16384, "%d wait", waiting);
        flush(writer, 1);
        check_window(&history, &model, 0, STEPS - 1, 500);
        check_window(&history, &model, 0, 4000, 0);
        check_window(&history, &model, STEPS - 100, STEPS - 1, 0);
        for (int i = 0; i < 10; i++)
            check_window(&history, &model, history_below(&random, 4000),
                         STEPS - 1 - history_below(&random, 100000), 1000);
        series_writer_free(writer);
        model_free(&model);
    }
    history_close(&history);
}

static void rows_that_make_no_sense_are_named(void) {
    static const char *const damage[] = {
        "UPDATE points SET kind = 'nan' WHERE step = 5",
        "UPDATE buckets SET count = -1 WHERE width = 8 AND step = 0",
        "UPDATE buckets SET nans = 9e18 WHERE width = 8 AND step = 0",
        "UPDATE buckets SET mean = 9e999 WHERE width = 8 AND step = 0",
        "UPDATE buckets SET step = 3 WHERE width = 8 AND step = 0",
        "UPDATE segments SET after = -3",
    };
    for (int i = 0; i < 6; i++) {
        History history;
        if (history_open(&history)) {
            Error error = {0};
            SeriesPoint *points;
            int count;
            Model model = model_new(32);
            SeriesWriter *writer = writer_of(&history, 0, "start");
            for (int64_t step = 1; step < 32; step++)
                add(writer, &model, step, 1);
            flush(writer, 1);
            history_execute(&history, damage[i]);
            CHECK_MESSAGE(
                !store_read_series(history.store, 1, "loss", 0, 31, 0, &points, &count, &error),
                "%s", damage[i]);
            CHECK_CONTAINS(error.text, "the history is damaged");
            CHECK(points == NULL && count == 0);
            series_writer_free(writer);
            model_free(&model);
        }
        history_close(&history);
    }
}

static void what_is_not_there_is_no_error(void) {
    History history;
    if (history_open(&history)) {
        Error error = {0};
        SeriesPoint *points;
        SeriesInfo *infos;
        int count;
        CHECK(store_read_series(history.store, 1, "none", 0, 10, 10, &points, &count, &error));
        CHECK(points == NULL && count == 0);
        CHECK(store_list_series(history.store, 99, &infos, &count, &error));
        CHECK(infos == NULL && count == 0);
        SeriesWriter *writer = writer_of(&history, 0, "start");
        Model model = model_new(16);
        add(writer, &model, 3, 4);
        flush(writer, 0);
        CHECK(store_read_series(history.store, 1, "loss", 4, 10, 10, &points, &count, &error));
        CHECK_INT(count, 0);
        CHECK(store_read_series(history.store, 1, "loss", INT64_MIN, INT64_MAX, 10, &points, &count,
                                &error));
        CHECK_INT(count, 1);
        free(points);
        CHECK(store_read_series(history.store, 1, "loss", 10, 4, 10, &points, &count, &error));
        CHECK_INT(count, 0);
        series_writer_free(writer);
        model_free(&model);
    }
    history_close(&history);
}

static void any_window_of_a_long_series_is_read_in_few_points(void) {
    History history;
    if (history_open(&history)) {
        enum { STEPS = 100000 };
        uint64_t random = 19;
        Model model = model_new(STEPS);
        SeriesWriter *writer = writer_of(&history, 0, "start");
        for (int64_t step = 0; step < STEPS; step++) {
            add(writer, &model, step, (double)step);
            if (step % 1000 == 999)
                flush(writer, 10);
        }
        flush(writer, 10);
        CHECK_INT(history_number(&history, "SELECT count(*) FROM points"), STEPS);
        for (int i = 0; i < 50; i++) {
            Error error;
            SeriesPoint *points;
            int count;
            int64_t from = history_below(&random, STEPS);
            CHECK(store_read_series(history.store, 1, "loss", from,
                                    from + history_below(&random, STEPS), 1000, &points, &count,
                                    &error));
            CHECK(count <= 1000);
            free(points);
        }
        series_writer_free(writer);
        model_free(&model);
    }
    history_close(&history);
}

int main(void) {
    RUN_TEST(every_point_is_read_as_it_was_logged);
    RUN_TEST(windows_at_every_zoom_equal_brute_force);
    RUN_TEST(what_an_undone_transaction_wrote_is_written_again);
    RUN_TEST(a_step_logged_twice_keeps_the_later_value);
    RUN_TEST(more_series_than_a_run_may_have_are_refused_by_name);
    RUN_TEST(memory_stays_bounded_without_a_flush);
    RUN_TEST(rows_that_make_no_sense_are_named);
    RUN_TEST(what_is_not_there_is_no_error);
    RUN_TEST(any_window_of_a_long_series_is_read_in_few_points);
    return test_end();
}
