// Series: what was logged is what is read, at any zoom, through resumes, undone transactions and
// numbers that are not finite.
#include <time.h>

#include "store/series_private.h"
#include "tests/unit/history_fixture.h"
#include "tests/unit/series_model.h"

// Whatever the zoom, each bucket is what the model has there, and no point of the window is missed.
static void check_window(History *history, const Model *model, int64_t from, int64_t to, int most) {
    Error error = {0};
    SeriesPoint *points;
    int count;
    bool done = store_read_series(history->store, history->run, "loss", from, to, most, &points,
                                  &count, &error);
    CHECK_MESSAGE(done, "%s", error.text);
    CHECK_MESSAGE(most == 0 || count <= most, "%d points where %d fit", count, most);
    int64_t covered = from;
    for (int i = 0; i < count; i++) {
        const SeriesPoint *point = &points[i];
        SeriesPoint expected = model_bucket(model, point->step, point->width);
        CHECK_MESSAGE(same_bucket(point, &expected),
                      "window %lld..%lld at most %d: the bucket of %lld steps at %lld has %lld "
                      "points, expected %lld",
                      (long long)from, (long long)to, most, (long long)point->width,
                      (long long)point->step, (long long)point->count, (long long)expected.count);
        for (; covered < point->step && covered <= to && covered < model->steps; covered++)
            CHECK_MESSAGE(!model->has[covered], "step %lld is missed", (long long)covered);
        CHECK(covered <= point->step || i == 0);
        CHECK(point->step <= to && point->step + point->width > from);
        covered = point->step + point->width;
    }
    for (; covered <= to && covered < model->steps; covered++)
        CHECK_MESSAGE(!model->has[covered], "step %lld is missed at the end", (long long)covered);
    free(points);
}

static void check_windows(History *history, const Model *model, int64_t last, uint64_t *random) {
    check_window(history, model, 0, last, 0);
    for (int most = 1; most < 3000; most *= 3)
        check_window(history, model, 0, last, most);
    for (int i = 0; i < 40 && !test_why[0]; i++) {
        int64_t from = history_below(random, last + 1);
        int64_t to = from + history_below(random, last + 2 - from);
        check_window(history, model, from, to, (int)history_below(random, 300));
    }
}

static SeriesWriter *writer_of(History *history, int64_t from, const char *why) {
    Error error = {0};
    SeriesWriter *writer = series_writer_new(history->store, history->run, from, why, &error);
    CHECK_MESSAGE(writer != NULL, "%s", error.text);
    return writer;
}

static void add(SeriesWriter *writer, Model *model, int64_t step, double value) {
    Error error = {0};
    CHECK_MESSAGE(series_add(writer, "loss", step, value, &error), "%s", error.text);
    model->values[step] = value;
    model->has[step] = true;
}

static void flush(SeriesWriter *writer, double seconds) {
    Error error = {0};
    CHECK_MESSAGE(series_flush(writer, seconds, &error), "%s", error.text);
}

static double some_value(uint64_t *random) {
    int kind = (int)history_below(random, 40);
    if (kind == 0)
        return (double)NAN;
    if (kind == 1)
        return (double)INFINITY;
    if (kind == 2)
        return -(double)INFINITY;
    return ldexp((double)history_below(random, 1 << 20) + 0.5, (int)history_below(random, 60) - 30);
}

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

// Runs that die and go on from a step that was flushed, over and over.
static void run_chain(uint64_t seed, bool fast) {
    History history;
    uint64_t random = seed;
    if (!history_open(&history))
        return;
    enum { STEPS = 20000 };
    Model model = model_new(STEPS);
    int64_t saved[64], most_step = 0;
    int saves = 0;
    SeriesWriter *writer = writer_of(&history, 0, "start");
    int64_t step = 1;
    for (int deaths = 0; deaths < 8 && !test_why[0];) {
        int64_t in_flush = 1 + history_below(&random, fast ? 3000 : 60);
        for (int64_t i = 0; i < in_flush && step < STEPS; i++, step++)
            add(writer, &model, step, some_value(&random));
        most_step = step > most_step ? step : most_step;
        flush(writer, fast ? 0.2 : 10);
        if (saves < 64)
            saved[saves++] = step - 1;
        if (history_below(&random, 6) != 0 && step < STEPS)
            continue;
        // It dies with points that were never written.
        Error error;
        for (int64_t i = step; i < step + 5; i++)
            CHECK(series_add(writer, "loss", i, -1e9, &error));
        series_writer_free(writer);
        int back = (int)history_below(&random, saves < 6 ? saves : 6);
        saves -= back;
        // Slow ones have every row, so that any step will do.
        int64_t from = fast ? saved[saves - 1] : history_below(&random, saved[saves - 1] + 1);
        if (!fast)
            saves = 0;
        writer = writer_of(&history, from, "resume");
        model_resume(&model, from);
        step = from + 1;
        deaths++;
        check_windows(&history, &model, STEPS - 1, &random);
        if (!fast)
            saved[saves++] = from;
    }
    series_writer_free(writer);
    model_free(&model);
    history_close(&history);
}

static void a_chain_of_resumes_reads_like_one_run(void) {
    for (uint64_t seed = 1; seed <= 12 && !test_why[0]; seed++)
        run_chain(seed, false);
}

static void a_chain_of_fast_resumes_reads_like_one_run(void) {
    for (uint64_t seed = 1; seed <= 12 && !test_why[0]; seed++)
        run_chain(seed, true);
}

// Every level of a chain, bit for bit but for the means, against an uninterrupted run's.
static void every_level_of_a_chain_equals_an_uninterrupted_run(void) {
    History chain, whole;
    uint64_t random = 3;
    bool opened = history_open(&chain);
    if (history_open(&whole) && opened) {
        enum { STEPS = 4000 };
        Model model = model_new(STEPS);
        for (int64_t i = 0; i < STEPS; i++)
            model.values[i] = some_value(&random);
        SeriesWriter *a = writer_of(&chain, 0, "start"), *b = writer_of(&whole, 0, "start");
        int64_t step = 1, resumes = 0;
        while (step < STEPS) {
            for (int64_t end = step + 97; step < end && step < STEPS; step++)
                add(a, &model, step, model.values[step]);
            flush(a, 10);
            if (resumes++ < 20) {
                step = 1 + history_below(&random, step);
                series_writer_free(a);
                a = writer_of(&chain, step - 1, "resume");
            }
        }
        for (int64_t i = 1; i < STEPS; i++)
            add(b, &model, i, model.values[i]);
        flush(b, 1000);
        const char *names[2] = {"chain", "whole"};
        History *both[2] = {&chain, &whole};
        Rows rows[2][LADDER_LEVELS];
        Error error = {0};
        for (int i = 0; i < 2; i++) {
            Lineage lineage;
            LadderSource source = {both[i]->store, 1, 0, names[i]};
            CHECK(lineage_read(&lineage, both[i]->store, 1, &error));
            for (int level = 0; level < LADDER_LEVELS; level++) {
                rows[i][level] = (Rows){.size = sizeof(SeriesPoint)};
                CHECK_MESSAGE(ladder_read_level(&series_kind, &source, &lineage, level, 0,
                                                LADDER_LAST_STEP, 0, &rows[i][level], &error),
                              "%s", error.text);
            }
            lineage_clear(&lineage);
        }
        for (int level = 0; level < LADDER_LEVELS; level++) {
            CHECK_INT(rows[0][level].count, rows[1][level].count);
            for (int i = 0; i < rows[0][level].count && !test_why[0]; i++) {
                CHECK_INT(rows_step(&rows[0][level], i), rows_step(&rows[1][level], i));
                CHECK_MESSAGE(same_bucket(rows_at(&rows[0][level], i), rows_at(&rows[1][level], i)),
                              "level %d, row %d", level, i);
            }
            rows_clear(&rows[0][level]);
            rows_clear(&rows[1][level]);
        }
        series_writer_free(a);
        series_writer_free(b);
        model_free(&model);
    }
    history_close(&chain);
    history_close(&whole);
}

static void superseded_points_never_show_but_stay_in_the_file(void) {
    History history;
    if (history_open(&history)) {
        Model model = model_new(1000);
        SeriesWriter *writer = writer_of(&history, 0, "start");
        for (int64_t step = 1; step <= 500; step++)
            add(writer, &model, step, 1);
        flush(writer, 1000);
        series_writer_free(writer);
        writer = writer_of(&history, 100, "resume");
        model_resume(&model, 100);
        uint64_t random = 5;
        check_windows(&history, &model, 999, &random);
        CHECK_INT(history_number(&history, "SELECT count(*) FROM points"), 500);
        for (int64_t step = 101; step <= 300; step++)
            add(writer, &model, step, 2);
        flush(writer, 1000);
        check_windows(&history, &model, 999, &random);
        CHECK_INT(history_number(&history, "SELECT count(*) FROM points"), 700);
        SeriesInfo *infos;
        int count;
        Error error;
        CHECK(store_list_series(history.store, 1, &infos, &count, &error));
        CHECK_INT(count, 1);
        CHECK_INT(infos[0].count, 300);
        CHECK_INT(infos[0].first_step, 1);
        CHECK_INT(infos[0].last_step, 300);
        CHECK(infos[0].last == 2);
        free(infos);
        // From the start again: nothing of before is left, and the series is not listed.
        series_writer_free(writer);
        writer = writer_of(&history, 0, "resume");
        CHECK(store_list_series(history.store, 1, &infos, &count, &error));
        CHECK_INT(count, 0);
        free(infos);
        series_writer_free(writer);
        model_free(&model);
    }
    history_close(&history);
}

// From a step in the middle of what came too fast for rows, a resume may not know some points; it
// may never show one that it superseded.
static void a_resume_between_flushes_shows_nothing_superseded(void) {
    History history;
    uint64_t random = 11;
    if (history_open(&history)) {
        enum { STEPS = 50000 };
        Model model = model_new(STEPS);
        SeriesWriter *writer = writer_of(&history, 0, "start");
        for (int64_t step = 1; step < STEPS; step++) {
            add(writer, &model, step, (double)step);
            if (step % 5000 == 0)
                flush(writer, 0.1);
        }
        flush(writer, 0.1);
        series_writer_free(writer);
        for (int i = 0; i < 20; i++) {
            int64_t from = 40000 - 1500 * i + history_below(&random, 700);
            series_writer_free(writer_of(&history, from, "resume"));
            for (int most = 1; most < 2000; most *= 5) {
                SeriesPoint *points;
                int count;
                Error error;
                CHECK(store_read_series(history.store, 1, "loss", 0, STEPS, most, &points, &count,
                                        &error));
                for (int j = 0; j < count; j++)
                    CHECK_MESSAGE(points[j].max <= (double)from, "%g after a resume at %lld",
                                  points[j].max, (long long)from);
                CHECK(count > 0);
                free(points);
            }
        }
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

static void a_fork_may_log_the_step_that_it_is_from(void) {
    History history;
    if (history_open(&history)) {
        uint64_t random = 23;
        Model model = model_new(2000);
        SeriesWriter *writer = writer_of(&history, 1003, "fork");
        add(writer, &model, 1003, 5);
        for (int64_t step = 1004; step < 1500; step++)
            add(writer, &model, step, some_value(&random));
        flush(writer, 0.1);
        check_windows(&history, &model, 1999, &random);
        CHECK_INT(history_number(&history, "SELECT count(*) FROM points"), 497);
        series_writer_free(writer);
        model_free(&model);
    }
    history_close(&history);
}

// Killed after the checkpoint of a step and before the evaluation that belongs to it.
static void a_resume_logs_the_step_that_it_goes_on_after(void) {
    static const int64_t steps[] = {1, 6, 7, 8, 63, 300, 511, 4095};
    for (size_t i = 0; i < sizeof steps / sizeof *steps && !test_why[0]; i++) {
        History history;
        if (!history_open(&history))
            return;
        Error error = {0};
        int64_t from = steps[i], last = from + 100;
        uint64_t random = 7;
        Model model = model_new(last + 1);
        SeriesWriter *writer = writer_of(&history, 0, "start");
        for (int64_t step = 0; step < from; step++)
            add(writer, &model, step, (double)step);
        CHECK(series_add(writer, "train", from, 1, &error));
        flush(writer, 1e9);
        series_writer_free(writer);
        writer = writer_of(&history, from, "resume");
        flush(writer, 1);
        add(writer, &model, from, 1000);
        CHECK_MESSAGE(series_add(writer, "accuracy", from, 0.5, &error), "%s", error.text);
        CHECK(series_add(writer, "train", from, 2, &error)); // is there, and stays
        CHECK(store_begin(history.store, &error) && series_flush(writer, 1, &error));
        store_rollback(history.store); // so that it is written again
        flush(writer, 1);
        for (int64_t step = from + 1; step <= last; step++)
            add(writer, &model, step, (double)step);
        flush(writer, 1e9);
        flush(writer, 1);
        check_windows(&history, &model, last, &random);
        static const char *const names[] = {"accuracy", "train"};
        static const double values[] = {0.5, 1};
        for (int k = 0; k < 2; k++) {
            SeriesPoint *points;
            int count;
            CHECK(
                store_read_series(history.store, 1, names[k], 0, last, 0, &points, &count, &error));
            CHECK_MESSAGE(count == 1 && points[0].step == from && points[0].last == values[k],
                          "step %lld: %d points of %s", (long long)from, count, names[k]);
            free(points);
        }
        series_writer_free(writer);
        model_free(&model);
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

static void any_window_of_a_long_series_is_read_at_once(void) {
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
        clock_t began = clock();
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
        double seconds = (double)(clock() - began) / CLOCKS_PER_SEC / 50;
        CHECK_MESSAGE(seconds < 0.1, "a window takes %g s", seconds);
        series_writer_free(writer);
        model_free(&model);
    }
    history_close(&history);
}

int main(void) {
    RUN_TEST(every_point_is_read_as_it_was_logged);
    RUN_TEST(windows_at_every_zoom_equal_brute_force);
    RUN_TEST(a_chain_of_resumes_reads_like_one_run);
    RUN_TEST(a_chain_of_fast_resumes_reads_like_one_run);
    RUN_TEST(every_level_of_a_chain_equals_an_uninterrupted_run);
    RUN_TEST(superseded_points_never_show_but_stay_in_the_file);
    RUN_TEST(a_resume_between_flushes_shows_nothing_superseded);
    RUN_TEST(what_an_undone_transaction_wrote_is_written_again);
    RUN_TEST(a_step_logged_twice_keeps_the_later_value);
    RUN_TEST(more_series_than_a_run_may_have_are_refused_by_name);
    RUN_TEST(memory_stays_bounded_without_a_flush);
    RUN_TEST(rows_that_make_no_sense_are_named);
    RUN_TEST(a_fork_may_log_the_step_that_it_is_from);
    RUN_TEST(a_resume_logs_the_step_that_it_goes_on_after);
    RUN_TEST(what_is_not_there_is_no_error);
    RUN_TEST(any_window_of_a_long_series_is_read_at_once);
    return test_end();
}
