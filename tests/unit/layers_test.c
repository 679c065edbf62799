// Layers: samples add up, are read at any zoom and at a step, through resumes; histograms survive
// packing, and hostile ones are refused.
#include "store/series_private.h"
#include "tests/unit/history_fixture.h"

enum { ELEMENTS = 1000 };

// A sample that can be told from any other, drawn from its step and a seed.
static LayerSample sample_at(int64_t step, uint64_t seed) {
    uint64_t random = seed * 1000003 + (uint64_t)step;
    LayerSample sample = {.step = step, .width = 1, .count = ELEMENTS};
    sample.zeros = history_below(&random, 10);
    sample.nans = history_below(&random, 3);
    sample.infs = history_below(&random, 3);
    sample.flushed = history_below(&random, 100);
    sample.subnormal = history_below(&random, 100);
    sample.overflowed = history_below(&random, 100);
    sample.largest = (double)history_below(&random, 1 << 20);
    sample.sum = (double)history_below(&random, 1 << 20);
    sample.sum_squares = (double)history_below(&random, 1 << 20);
    sample.update_ratio = (double)history_below(&random, 1000) / 1000;
    sample.seconds = (double)history_below(&random, 1000) / 1000;
    snprintf(sample.precision, sizeof sample.precision, "fp16");
    int64_t left = ELEMENTS - sample.zeros - sample.nans - sample.infs;
    while (left > 0) {
        int64_t part = 1 + history_below(&random, left);
        sample.bins[40 + history_below(&random, 50)] += (uint32_t)part;
        left -= part;
    }
    return sample;
}

// What is in force: which seed each step was sampled with; 0: none.
typedef struct Truth {
    uint64_t seeds[8192];
    int64_t next;
} Truth;

static LayerSample truth_over(const Truth *truth, int64_t step, int64_t width) {
    LayerSample all = {0};
    for (int64_t i = step; i < step + width && i < truth->next; i++) {
        if (!truth->seeds[i])
            continue;
        LayerSample one = sample_at(i, truth->seeds[i]);
        if (all.width == 0)
            all = one;
        else
            layer_sample_merge(&all, &one);
    }
    return all;
}

static bool near(double a, double b) {
    return isnan(a) ? isnan(b) : fabs(a - b) <= 1e-9 * (1 + fabs(b));
}

// Means over steps of which some have no sample depend on the order of adding up.
static void check_means(const LayerSample *a, const LayerSample *b) {
    CHECK(near(a->update_ratio, b->update_ratio) && near(a->seconds, b->seconds));
}

static void check_same(const LayerSample *a, const LayerSample *b) {
    CHECK_INT(a->step, b->step);
    CHECK_INT(a->width, b->width);
    CHECK_INT(a->count, b->count);
    CHECK_INT(a->zeros, b->zeros);
    CHECK_INT(a->nans, b->nans);
    CHECK_INT(a->infs, b->infs);
    CHECK_INT(a->flushed, b->flushed);
    CHECK_INT(a->subnormal, b->subnormal);
    CHECK_INT(a->overflowed, b->overflowed);
    CHECK(a->largest == b->largest);
    CHECK(near(a->sum, b->sum) && near(a->sum_squares, b->sum_squares));
    CHECK_TEXT(a->precision, b->precision);
    CHECK(memcmp(a->bins, b->bins, sizeof a->bins) == 0);
    CHECK_INT(a->bins_are_scaled, b->bins_are_scaled);
}

static void check_window(History *history, const Truth *truth, int layer, int64_t from, int64_t to,
                         int most) {
    Error error = {0};
    LayerSample *samples;
    int count;
    CHECK_MESSAGE(
        store_read_layer(history->store, 1, layer, from, to, most, &samples, &count, &error), "%s",
        error.text);
    CHECK(most == 0 || count <= most);
    int64_t covered = from;
    for (int i = 0; i < count && !test_why[0]; i++) {
        LayerSample expected = truth_over(truth, samples[i].step, samples[i].width);
        check_same(&samples[i], &expected);
        if (expected.count == expected.width * ELEMENTS)
            check_means(&samples[i], &expected);
        for (; covered < samples[i].step; covered++)
            CHECK_MESSAGE(!truth->seeds[covered], "step %lld is missed", (long long)covered);
        CHECK(i == 0 || covered <= samples[i].step);
        covered = samples[i].step + samples[i].width;
    }
    for (; covered <= to && covered < truth->next; covered++)
        CHECK_MESSAGE(!truth->seeds[covered], "step %lld is missed at the end", (long long)covered);
    free(samples);
}

static void check_windows(History *history, const Truth *truth, int layer, uint64_t *random) {
    check_window(history, truth, layer, 0, 8191, 0);
    for (int most = 1; most < 2000; most *= 4)
        check_window(history, truth, layer, 0, 8191, most);
    for (int i = 0; i < 20 && !test_why[0]; i++) {
        int64_t from = history_below(random, truth->next + 1);
        check_window(history, truth, layer, from, from + history_below(random, 3000),
                     (int)history_below(random, 300));
    }
}

static SeriesWriter *writer_of(History *history, int64_t from, const char *why) {
    Error error = {0};
    SeriesWriter *writer = series_writer_new(history->store, 1, from, why, &error);
    CHECK_MESSAGE(writer != NULL, "%s", error.text);
    return writer;
}

static void add(SeriesWriter *writer, Truth *truth, int layer, int64_t step, uint64_t seed) {
    Error error = {0};
    LayerSample sample = sample_at(step, seed);
    CHECK_MESSAGE(layers_add(writer, layer, &sample, &error), "%s", error.text);
    truth->seeds[step] = seed;
    truth->next = step + 1;
}

static void flush(SeriesWriter *writer, double seconds) {
    Error error = {0};
    CHECK_MESSAGE(series_flush(writer, seconds, &error), "%s", error.text);
}

static void resume(Truth *truth, int64_t from) {
    for (int64_t i = from + 1; i < 8192; i++)
        truth->seeds[i] = 0;
    truth->next = from + 1;
}

static void windows_at_every_zoom_equal_brute_force(void) {
    History history;
    uint64_t random = 1;
    if (history_open(&history)) {
        static Truth truth;
        truth = (Truth){0};
        SeriesWriter *writer = writer_of(&history, 0, "start");
        for (int64_t step = 0; step < 8000;) {
            int64_t until = step + 1 + history_below(&random, history_below(&random, 2) ? 4 : 400);
            for (; step < until && step < 8000; step++)
                add(writer, &truth, 2, step, 1 + history_random(&random) / 2);
            flush(writer, 0.2);
            if (history_below(&random, 8) == 0)
                step += history_below(&random, 30);
        }
        CHECK(history_number(&history, "SELECT count(*) FROM layer_samples WHERE level = 0") <
              2000);
        int first = 0;
        for (int i = 0; i < 256; i++)
            first += truth.seeds[i] != 0;
        CHECK_INT(history_number(&history, "SELECT count(*) FROM layer_samples WHERE level = 0 "
                                           "AND step < 256"),
                  first);
        check_windows(&history, &truth, 2, &random);
        series_writer_free(writer);
    }
    history_close(&history);
}

static void a_chain_of_resumes_reads_like_one_run(void) {
    for (uint64_t seed = 1; seed <= 6 && !test_why[0]; seed++) {
        History history;
        uint64_t random = seed;
        if (history_open(&history)) {
            static Truth truth;
            truth = (Truth){0};
            SeriesWriter *writer = writer_of(&history, 0, "start");
            int64_t step = 1;
            for (int deaths = 0; deaths < 8 && step < 4000 && !test_why[0];) {
                int64_t end = step + history_below(&random, 80);
                for (; step < end; step++)
                    add(writer, &truth, 0, step, 1 + history_random(&random) / 2);
                flush(writer, 100);
                if (history_below(&random, 4))
                    continue;
                series_writer_free(writer);
                int64_t from = history_below(&random, step);
                writer = writer_of(&history, from, "resume");
                resume(&truth, from);
                step = from + 1;
                deaths++;
                check_windows(&history, &truth, 0, &random);
            }
            check_windows(&history, &truth, 0, &random);
            series_writer_free(writer);
        }
        history_close(&history);
    }
}

static void all_layers_are_read_at_a_step(void) {
    History history;
    if (history_open(&history)) {
        static Truth truth;
        SeriesWriter *writer = writer_of(&history, 0, "start");
        truth = (Truth){0};
        for (int64_t step = 1; step <= 700; step++) {
            add(writer, &truth, 0, step, 7);
            if (step <= 300)
                add(writer, &truth, 3, step, 9);
            if (step % 50 == 0)
                flush(writer, step <= 500 ? 10 : 0.1);
        }
        Error error = {0};
        LayerSample samples[5];
        CHECK_MESSAGE(store_read_layers_at(history.store, 1, 123, samples, 5, &error), "%s",
                      error.text);
        LayerSample expected = sample_at(123, 7);
        check_same(&samples[0], &expected);
        check_means(&samples[0], &expected);
        expected = sample_at(123, 9);
        check_same(&samples[3], &expected);
        CHECK(samples[1].width == 0 && samples[2].width == 0 && samples[4].width == 0);
        CHECK(store_read_layers_at(history.store, 1, 650, samples, 5, &error));
        CHECK(samples[0].step <= 650 && samples[0].step + samples[0].width > 650);
        CHECK(samples[0].width <= 64);
        CHECK(samples[3].width == 0);
        // After a resume the superseded samples are gone, even where nothing is there yet.
        series_writer_free(writer);
        writer = writer_of(&history, 100, "resume");
        CHECK(store_read_layers_at(history.store, 1, 123, samples, 5, &error));
        CHECK(samples[0].width == 0 && samples[3].width == 0);
        CHECK(store_read_layers_at(history.store, 1, 100, samples, 5, &error));
        expected = sample_at(100, 7);
        check_same(&samples[0], &expected);
        series_writer_free(writer);
    }
    history_close(&history);
}

static void readings_that_were_not_taken_do_not_count(void) {
    LayerSample a = {.step = 8, .width = 2, .update_ratio = 1, .seconds = (double)NAN};
    LayerSample b = {.step = 10, .width = 6, .update_ratio = 5, .seconds = 3};
    layer_sample_merge(&a, &b);
    CHECK_INT(a.width, 8);
    CHECK(a.update_ratio == 4);
    CHECK(a.seconds == 3);
    b.update_ratio = b.seconds = (double)NAN;
    b.step = 16;
    layer_sample_merge(&a, &b);
    CHECK(a.update_ratio == 4 && a.seconds == 3);
}

// Readings of other steps say of which, also those that were lent before; the sample's own stay.
static void readings_of_other_steps_say_of_which(void) {
    LayerSample samples[] = {
        {.step = 20, .width = 1, .update_ratio = (double)NAN, .seconds = (double)NAN},
        {.step = 20, .width = 1, .update_ratio = 7, .seconds = 8}};
    const LayerSample before = {.step = 8, .width = 4, .update_ratio = 1, .seconds = 2};
    LayerSample later = {
        .step = 21, .width = 1, .update_ratio = (double)NAN, .seconds = (double)NAN};
    int64_t from = 0, to = 0;
    layer_sample_lend(&samples[1], &before);
    CHECK(!layer_samples_measured(samples, 2, &from, &to) && samples[1].seconds == 8);
    layer_sample_lend(&samples[0], &before);
    CHECK(layer_samples_measured(samples, 2, &from, &to));
    CHECK(from == 8 && to == 11 && samples[0].update_ratio == 1);
    layer_sample_lend(&later, &samples[0]);
    CHECK(later.measured_from == 8 && later.measured_to == 11 && later.seconds == 2);
}

static void bins_that_would_not_fit_are_halved_alike(void) {
    LayerSample a = {.width = 1, .count = 5000000000};
    LayerSample b = {.step = 1, .width = 1, .count = 4000000000};
    a.bins[3] = 4000000000u;
    a.bins[4] = 1000000000u;
    b.bins[3] = 3000000000u;
    b.bins[5] = 1000000000u;
    layer_sample_merge(&a, &b);
    CHECK(a.bins_are_scaled);
    CHECK_INT(a.bins[3], 3500000000u);
    CHECK_INT(a.bins[4], 500000000u);
    CHECK_INT(a.bins[5], 500000000u);
    // What is added to a scaled histogram is scaled as that was.
    LayerSample c = {.step = 2, .width = 1, .count = 1000};
    c.bins[100] = 1000;
    layer_sample_merge(&a, &c);
    CHECK_INT(a.bins[100], 500);
    CHECK_INT(a.bins[3], 3500000000u);
    CHECK_INT(a.count, 9000001000);
}

static void histograms_survive_packing(void) {
    uint64_t random = 5;
    for (int i = 0; i < 2000; i++) {
        LayerSample sample = {0}, back = {0};
        unsigned char bytes[HISTOGRAM_MOST_BYTES];
        int64_t bins = history_below(&random, LAYER_BINS + 1);
        for (int64_t j = 0; j < bins; j++)
            sample.bins[history_below(&random, LAYER_BINS)] =
                (uint32_t)(history_random(&random) >> (32 + history_below(&random, 32)));
        if (i == 0)
            memset(sample.bins, 0xff, sizeof sample.bins);
        sample.bins_are_scaled = history_below(&random, 2);
        size_t size = histogram_pack(&sample, bytes);
        const char *wrong = histogram_unpack(&back, bytes, size);
        CHECK_MESSAGE(!wrong, "%s", wrong);
        CHECK(memcmp(sample.bins, back.bins, sizeof back.bins) == 0);
        CHECK_INT(back.bins_are_scaled, sample.bins_are_scaled);
    }
}

static void hostile_histograms_are_refused(void) {
    static const struct {
        const char *bytes;
        size_t size;
        const char *why;
    } cases[] = {
        {"", 0, "it is empty"},
        {"\x00", 1, "its first byte is none that is known"},
        {"\x03\x00\x01", 3, "its first byte is none that is known"},
        {"\x01\x00", 2, "it has no counts"},
        {"\x01\x80\x01", 3, "it has too many counts"},
        {"\x01\xff\x01", 3, "it has too many counts"},
        {"\x01\x7f\x01\x01", 4, "it has too many counts"},
        {"\x01\x00\x80", 3, "its last count is cut off"},
        {"\x01\x00\x01\xff\xff", 5, "its last count is cut off"},
        {"\x01\x00\xff\xff\xff\xff\x10", 7, "a count is too large"},
        {"\x01\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13, "a count is too large"},
        {"\x01\x00\x81\x00", 4, "a count is longer than needed"},
        {"\x01\x00\x00\x01", 4, "it begins or ends with a count of 0"},
        {"\x01\x00\x01\x00", 4, "it begins or ends with a count of 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        LayerSample sample = {0};
        // In memory of its own, so that a sanitizer sees what reads beyond it.
        unsigned char *bytes = malloc(cases[i].size ? cases[i].size : 1);
        memcpy(bytes, cases[i].bytes, cases[i].size);
        const char *wrong = histogram_unpack(&sample, bytes, cases[i].size);
        CHECK_MESSAGE(wrong && strcmp(wrong, cases[i].why) == 0, "case %zu: %s", i,
                      wrong ? wrong : "accepted");
        free(bytes);
    }
    // Whatever is accepted packs to the same bytes: there is one form only.
    uint64_t random = 77;
    for (int i = 0; i < 200000; i++) {
        unsigned char bytes[HISTOGRAM_MOST_BYTES], again[HISTOGRAM_MOST_BYTES];
        size_t size = (size_t)history_below(&random, 12);
        for (size_t j = 0; j < size; j++)
            bytes[j] = (unsigned char)history_random(&random);
        if (size > 0)
            bytes[0] = (unsigned char)(1 + history_below(&random, 2));
        LayerSample sample = {0};
        if (!histogram_unpack(&sample, bytes, size)) {
            CHECK_INT(histogram_pack(&sample, again), size);
            CHECK(memcmp(again, bytes, size) == 0);
        }
    }
}

static void damaged_rows_are_named(void) {
    static const char *const damage[] = {
        "UPDATE layer_samples SET histogram = x'017f0101' WHERE level = 0 AND step = 5",
        "UPDATE layer_samples SET histogram = zeroblob(3000000) WHERE level = 0 AND step = 5",
        "UPDATE layer_samples SET width = -1 WHERE level = 0 AND step = 5",
        "UPDATE layer_samples SET width = 9223372036854775807 WHERE level = 0 AND step = 5",
        "UPDATE layer_samples SET zeros = count + 1 WHERE level = 0 AND step = 5",
        "UPDATE layer_samples SET largest = 9e999 WHERE level = 0 AND step = 5",
    };
    for (int i = 0; i < 6; i++) {
        History history;
        if (history_open(&history)) {
            static Truth truth;
            SeriesWriter *writer = writer_of(&history, 0, "start");
            for (int64_t step = 1; step <= 20; step++)
                add(writer, &truth, 1, step, 3);
            flush(writer, 10);
            history_execute(&history, damage[i]);
            Error error = {0};
            LayerSample *samples, at[2];
            int count;
            CHECK(!store_read_layer(history.store, 1, 1, 0, 30, 0, &samples, &count, &error));
            CHECK_CONTAINS(error.text, "of run 1, layer 1, level 0, step 5, segment 0: ");
            CHECK(samples == NULL && count == 0);
            CHECK(!store_read_layers_at(history.store, 1, 5, at, 2, &error));
            CHECK(store_read_layers_at(history.store, 1, 15, at, 2, &error));
            series_writer_free(writer);
        }
        history_close(&history);
    }
}

static void layers_without_end_are_refused(void) {
    History history;
    if (history_open(&history)) {
        Error error = {0};
        SeriesWriter *writer = writer_of(&history, 0, "start");
        LayerSample sample = sample_at(1, 1);
        CHECK(!layers_add(writer, 4096, &sample, &error));
        CHECK_CONTAINS(error.text, "layer 4096: ");
        CHECK(!layers_add(writer, -1, &sample, &error));
        sample.width = 0;
        CHECK(!layers_add(writer, 0, &sample, &error));
        series_writer_free(writer);
    }
    history_close(&history);
}

static void fast_samples_cost_about_ten_rows_a_second(void) {
    History history;
    if (history_open(&history)) {
        static Truth truth;
        truth = (Truth){0};
        SeriesWriter *writer = writer_of(&history, 0, "start");
        int64_t step = 1;
        for (; step <= 256; step++)
            add(writer, &truth, 0, step, 1);
        flush(writer, 0.2);
        int64_t before = history_number(&history, "SELECT count(*) FROM layer_samples");
        for (int i = 0; i < 50; i++) { // 10 s at 500 steps a second
            for (int j = 0; j < 100; j++, step++)
                add(writer, &truth, 0, step, 1);
            flush(writer, 0.2);
        }
        int64_t rows = history_number(&history, "SELECT count(*) FROM layer_samples") - before;
        CHECK_MESSAGE(rows > 20 && rows < 150, "%lld rows in 10 s", (long long)rows);
        series_writer_free(writer);
    }
    history_close(&history);
}

int main(void) {
    RUN_TEST(windows_at_every_zoom_equal_brute_force);
    RUN_TEST(a_chain_of_resumes_reads_like_one_run);
    RUN_TEST(all_layers_are_read_at_a_step);
    RUN_TEST(readings_that_were_not_taken_do_not_count);
    RUN_TEST(readings_of_other_steps_say_of_which);
    RUN_TEST(bins_that_would_not_fit_are_halved_alike);
    RUN_TEST(histograms_survive_packing);
    RUN_TEST(hostile_histograms_are_refused);
    RUN_TEST(damaged_rows_are_named);
    RUN_TEST(layers_without_end_are_refused);
    RUN_TEST(fast_samples_cost_about_ten_rows_a_second);
    return test_end();
}
