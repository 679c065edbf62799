// Series of runs that die and go on, and of forks: what is read is what one run would have left,
// and nothing that was superseded.
#include "tests/unit/series_fixture.h"

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

int main(void) {
    RUN_TEST(a_chain_of_resumes_reads_like_one_run);
    RUN_TEST(a_chain_of_fast_resumes_reads_like_one_run);
    RUN_TEST(every_level_of_a_chain_equals_an_uninterrupted_run);
    RUN_TEST(superseded_points_never_show_but_stay_in_the_file);
    RUN_TEST(a_resume_between_flushes_shows_nothing_superseded);
    RUN_TEST(a_fork_may_log_the_step_that_it_is_from);
    RUN_TEST(a_resume_logs_the_step_that_it_goes_on_after);
    return test_end();
}
