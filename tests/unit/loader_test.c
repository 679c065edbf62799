// What the loader promises when all is well.
#include "data/loader.h"
#include "data/order.h"
#include "tests/unit/data_fixture.h"

// Samples whose only element is their number; y is the same.
static Dataset *numbered(int64_t count) {
    float *x = malloc((size_t)count * sizeof *x);
    int32_t *y = malloc((size_t)count * sizeof *y);
    for (int64_t i = 0; i < count; i++) {
        x[i] = (float)i;
        y[i] = (int32_t)i;
    }
    int64_t x_shape[] = {count, 1};
    DatasetTensor tx = {FORMAT_FP32, 2, x_shape, x}, ty = {FORMAT_INT32, 1, x_shape, y};
    Dataset *dataset = dataset_from_tensors(&tx, &ty, 0, &error);
    CHECK_DONE(dataset != NULL);
    if (!dataset)
        exit(1);
    free(x);
    free(y);
    return dataset;
}

static Loader *open_loader(Dataset *dataset, LoaderOptions options) {
    Loader *loader = loader_new(dataset, &options, &error);
    CHECK_DONE(loader != NULL);
    if (!loader)
        exit(1);
    return loader;
}

// Appends the samples of one epoch to `out`; returns their number.
static int64_t read_epoch(Loader *loader, int32_t *out) {
    LoaderBatch batch;
    bool end = false;
    int64_t count = 0;
    for (;;) {
        CHECK_DONE(loader_next(loader, &batch, &end, &error));
        if (end)
            return count;
        for (int64_t i = 0; i < batch.count; i++) {
            int32_t number = ((const int32_t *)batch.y.data)[i];
            CHECK(((const float *)batch.x.data)[i] == (float)number);
            out[count++] = number;
        }
    }
}

static void an_epoch_gives_each_sample_once(void) {
    enum { COUNT = 1003 };
    Dataset *dataset = numbered(COUNT);
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        Loader *loader = open_loader(dataset, (LoaderOptions){.batch = 10, .shuffle = shuffle});
        CHECK_INT(loader_len(loader), 101);
        int32_t got[2][COUNT + 10];
        for (int epoch = 0; epoch < 2; epoch++) {
            CHECK_INT(read_epoch(loader, got[epoch]), COUNT);
            int seen[COUNT] = {0}, in_order = 0;
            for (int i = 0; i < COUNT; i++) {
                seen[got[epoch][i]]++;
                in_order += got[epoch][i] == i;
            }
            for (int i = 0; i < COUNT; i++)
                CHECK_INT(seen[i], 1);
            CHECK(shuffle ? in_order < 20 : in_order == COUNT);
        }
        CHECK((memcmp(got[0], got[1], COUNT * sizeof got[0][0]) == 0) == !shuffle);
        loader_free(loader);
    }
    dataset_release(dataset);
}

static void batch_limit_and_drop_last_count_as_said(void) {
    static const struct {
        LoaderOptions options;
        int64_t batches, samples;
    } cases[] = {
        {{.batch = 10}, 11, 103},
        {{.batch = 10, .drop_last = true}, 10, 100},
        {{.batch = 10, .drop_last = true, .shuffle = true}, 10, 100},
        {{.batch = 10, .limit = 25}, 3, 25},
        {{.batch = 10, .limit = 25, .shuffle = true}, 3, 25},
        {{.batch = 10, .limit = 1000}, 11, 103},
        {{.batch = 500}, 1, 103},
        {{.batch = 103, .drop_last = true}, 1, 103},
        {{.batch = 1}, 103, 103},
    };
    Dataset *dataset = numbered(103);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Loader *loader = open_loader(dataset, cases[i].options);
        CHECK_INT(loader_len(loader), cases[i].batches);
        CHECK_INT(loader_samples(loader), cases[i].samples);
        int32_t got[103];
        CHECK_INT(read_epoch(loader, got), cases[i].samples);
        for (int64_t k = 0; k < cases[i].samples; k++)
            CHECK(!cases[i].options.limit || got[k] < cases[i].options.limit);
        loader_free(loader);
    }
    dataset_release(dataset);
}

static void ends_come_after_as_many_epochs_as_asked(void) {
    static const struct {
        int64_t epochs;
        int batches_before_end; // 0: never
    } cases[] = {{0, 3}, {1, 3}, {4, 12}, {-1, 0}};
    Dataset *dataset = numbered(9);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Loader *loader =
            open_loader(dataset, (LoaderOptions){.batch = 3, .epochs = cases[i].epochs});
        LoaderBatch batch;
        bool end = false;
        for (int round = 0; round < 2; round++) {
            int batches = 0;
            for (end = false; batches < 50; batches++) {
                CHECK_DONE(loader_next(loader, &batch, &end, &error));
                if (end)
                    break;
                CHECK_INT(batch.at.position, batches % 3);
            }
            if (cases[i].batches_before_end)
                CHECK_INT(batches, cases[i].batches_before_end);
            else
                break;
        }
        CHECK_INT(end, cases[i].epochs != -1);
        loader_free(loader);
    }
    dataset_release(dataset);
}

static void a_thread_changes_nothing_but_the_time(void) {
    enum { COUNT = 517, EPOCHS = 6 };
    Dataset *dataset = numbered(COUNT);
    LoaderOptions options = {.batch = 8, .shuffle = true, .seed = 42};
    options.thread = LOADER_THREAD_NEVER;
    Loader *alone = open_loader(dataset, options);
    options.thread = LOADER_THREAD_ALWAYS;
    Loader *ahead = open_loader(dataset, options);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        int32_t a[COUNT], b[COUNT];
        CHECK_INT(read_epoch(alone, a), COUNT);
        CHECK_INT(read_epoch(ahead, b), COUNT);
        CHECK(memcmp(a, b, sizeof a) == 0);
    }
    loader_free(alone);
    loader_free(ahead);
    dataset_release(dataset);
}

// Images whose pixels tell the sample, the row, the column and the channel.
static Dataset *pictures(int64_t count) {
    enum { SIDE = 8, CHANNELS = 3, SIZE = SIDE * SIDE * CHANNELS };
    float *x = malloc((size_t)count * SIZE * sizeof *x);
    for (int64_t i = 0; i < count * SIZE; i++)
        x[i] = (float)(i + 1);
    int64_t shape[] = {count, SIDE, SIDE, CHANNELS};
    DatasetTensor tx = {FORMAT_FP32, 4, shape, x};
    Dataset *dataset = dataset_from_tensors(&tx, NULL, 0, &error);
    CHECK_DONE(dataset != NULL);
    if (!dataset)
        exit(1);
    free(x);
    return dataset;
}

static const Transform every_change = {.flip = 0.5,
                                       .crop = 2,
                                       .noise = 0.25,
                                       .has_mean = true,
                                       .channels = 3,
                                       .mean = {1, 2, 3},
                                       .deviation = {4, 5, 6}};

static void threads_change_neither_order_nor_values(void) {
    enum { COUNT = 103, EPOCHS = 3, SIZE = 8 * 8 * 3 };
    Dataset *dataset = pictures(COUNT);
    Loader *loaders[3];
    static const int threads[] = {1, 4, 13};
    for (int i = 0; i < 3; i++)
        loaders[i] = open_loader(dataset, (LoaderOptions){.batch = 5,
                                                          .shuffle = true,
                                                          .seed = 9,
                                                          .epochs = -1,
                                                          .thread = LOADER_THREAD_NEVER,
                                                          .threads = threads[i],
                                                          .transform = every_change});
    for (int k = 0; k < EPOCHS * 21; k++) {
        LoaderBatch one, other;
        bool end;
        CHECK_DONE(loader_next(loaders[0], &one, &end, &error));
        for (int i = 1; i < 3; i++) {
            CHECK_DONE(loader_next(loaders[i], &other, &end, &error));
            CHECK_INT(other.count, one.count);
            CHECK(other.at.epoch == one.at.epoch && other.at.position == one.at.position);
            CHECK(memcmp(one.x.data, other.x.data, (size_t)one.count * SIZE * sizeof(float)) == 0);
        }
    }
    for (int i = 0; i < 3; i++)
        loader_free(loaders[i]);
    dataset_release(dataset);
}

static void several_threads_jump_and_end_at_any_moment(void) {
    enum { COUNT = 40, SIZE = 8 * 8 * 3 };
    Dataset *dataset = pictures(COUNT);
    LoaderOptions options = {.batch = 3, .shuffle = true, .epochs = -1, .transform = every_change};
    for (int round = 0; round < 40; round++) {
        options.thread = LOADER_THREAD_NEVER;
        options.threads = 1;
        Loader *plain = open_loader(dataset, options);
        options.threads = 4;
        Loader *many = open_loader(dataset, options);
        LoaderBatch one, other;
        bool end;
        for (int k = 0; k < round; k++) {
            if (k % 7 == 3) {
                const LoaderState to = {(uint64_t)round, k % 14};
                CHECK_DONE(loader_set_state(plain, to, &error));
                CHECK_DONE(loader_set_state(many, to, &error));
            }
            CHECK_DONE(loader_next(plain, &one, &end, &error));
            CHECK_DONE(loader_next(many, &other, &end, &error));
            CHECK(other.at.epoch == one.at.epoch && other.at.position == one.at.position);
            CHECK(memcmp(one.x.data, other.x.data, (size_t)one.count * SIZE * sizeof(float)) == 0);
        }
        loader_free(plain);
        loader_free(many);
    }
    dataset_release(dataset);
}

// Sample `sample` of an epoch, whole, as a loader of some batch size gives it.
static void sample_of(Dataset *dataset, int64_t batch, const Transform *transform, uint64_t epoch,
                      int64_t sample, float out[192]) {
    Loader *loader =
        open_loader(dataset, (LoaderOptions){.batch = batch, .seed = 4, .transform = *transform});
    LoaderBatch got;
    bool end;
    CHECK_DONE(loader_set_state(loader, (LoaderState){epoch, sample / batch}, &error));
    CHECK_DONE(loader_next(loader, &got, &end, &error));
    memcpy(out, (const float *)got.x.data + sample % batch * 192, 192 * sizeof *out);
    loader_free(loader);
}

static void a_sample_is_changed_alike_in_every_batch_and_anew_in_every_epoch(void) {
    Dataset *dataset = pictures(20);
    float one[192], other[192];
    int same = 0;
    for (int64_t i = 0; i < 20; i++) {
        sample_of(dataset, 1, &every_change, 2, i, one);
        sample_of(dataset, 7, &every_change, 2, i, other);
        CHECK(memcmp(one, other, sizeof one) == 0);
        sample_of(dataset, 7, &every_change, 3, i, other);
        same += memcmp(one, other, sizeof one) == 0;
    }
    CHECK_INT(same, 0);
    dataset_release(dataset);
}

static void images_are_moved_turned_and_brought_to_a_mean(void) {
    enum { COUNT = 400 };
    Dataset *dataset = pictures(COUNT);
    float got[192];
    int turned = 0, moved[5][5] = {0};
    for (int64_t i = 0; i < COUNT; i++) {
        sample_of(dataset, 1, &(Transform){.flip = 0.25, .crop = 2}, 0, i, got);
        // The pixel in the middle tells where it came from, and its neighbour which way round.
        int64_t at = (int64_t)got[(4 * 8 + 4) * 3] - 1 - i * 192,
                next = (int64_t)got[(4 * 8 + 5) * 3];
        bool flipped = next - 1 - i * 192 < at;
        int64_t row = at / 24, column = at % 24 / 3;
        turned += flipped;
        int64_t down = row - 4, right = column - (flipped ? 3 : 4);
        CHECK(down >= -2 && down <= 2 && right >= -2 && right <= 2);
        if (down >= -2 && down <= 2 && right >= -2 && right <= 2)
            moved[down + 2][right + 2]++;
        for (int k = 0; k < 192; k++) { // all others with it, and zeros where there is none
            int64_t h = k / 24 + down, w = k % 24 / 3;
            w = (flipped ? 7 - w : w) + right;
            bool inside = h >= 0 && h < 8 && w >= 0 && w < 8;
            CHECK(got[k] == (inside ? (float)(i * 192 + (h * 8 + w) * 3 + k % 3 + 1) : 0));
        }
    }
    CHECK_NEAR(turned, 100, 40);
    for (int i = 0; i < 25; i++)
        CHECK(moved[i / 5][i % 5] > 2);
    const Transform mean = {.has_mean = true, .channels = 1, .mean = {10}, .deviation = {4}};
    sample_of(dataset, 1, &mean, 0, 0, got);
    CHECK(got[0] == -2.25f && got[13] == 1);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < COUNT; i++) {
        sample_of(dataset, 1, &(Transform){.noise = 3}, 0, i, got);
        for (int k = 0; k < 192; k++) {
            double noise = (double)got[k] - (double)(i * 192 + k + 1);
            sum += noise;
            squares += noise * noise;
        }
    }
    CHECK_NEAR(sum / (COUNT * 192), 0, 0.06);
    CHECK_NEAR(squares / (COUNT * 192), 9, 0.3);
    dataset_release(dataset);
}

static void changes_that_cannot_be_are_refused(void) {
    static const struct {
        Transform transform;
        const char *why;
    } cases[] = {
        {{.flip = 1.5}, "flip is 1.5"},
        {{.flip = 0.5}, "are of images"},
        {{.noise = -1}, "noise is -1"},
        {{.has_mean = true, .channels = 2, .deviation = {1, 1}}, "are of 2 channels"},
        {{.has_mean = true, .channels = 1}, "one above 0"},
    };
    Dataset *dataset = numbered(5);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const LoaderOptions options = {.batch = 1, .transform = cases[i].transform};
        Loader *loader = loader_new(dataset, &options, &error);
        CHECK_MESSAGE(loader == NULL && strstr(error.text, cases[i].why), "%s", error.text);
        loader_free(loader);
    }
    dataset_release(dataset);
}

static void seeds_and_epochs_give_the_orders_that_are_on_record(void) {
    // A change here breaks the resuming of every checkpoint written before it.
    static const uint32_t expected[] = {7, 3, 0, 2, 5, 4, 6, 1};
    uint32_t order[8], other[8];
    order_shuffle(order, 8, 1234, 5);
    for (int i = 0; i < 8; i++)
        CHECK_INT(order[i], expected[i]);
    order_shuffle(other, 8, 1234, 6);
    CHECK(memcmp(order, other, sizeof order) != 0);
    // Every permutation of three is as likely: 6 x 1000, deviation 29.
    int counts[27] = {0};
    for (uint64_t epoch = 0; epoch < 6000; epoch++) {
        order_shuffle(order, 3, 7, epoch);
        counts[order[0] * 9 + order[1] * 3 + order[2]]++;
    }
    static const int permutations[] = {5, 7, 11, 15, 19, 21};
    for (int i = 0; i < 6; i++)
        CHECK_NEAR(counts[permutations[i]], 1000, 150);
}

static void resuming_gives_the_same_batches(void) {
    enum { COUNT = 200, BATCHES = 25 };
    Dataset *dataset = numbered(COUNT);
    for (int thread = LOADER_THREAD_NEVER; thread <= LOADER_THREAD_ALWAYS; thread++) {
        LoaderOptions options = {
            .batch = 8, .shuffle = true, .seed = 3, .thread = (LoaderThread)thread, .epochs = -1};
        Loader *straight = open_loader(dataset, options);
        int32_t want[2 * COUNT];
        LoaderState states[2 * BATCHES];
        LoaderBatch batch;
        bool end;
        for (int i = 0; i < 2 * BATCHES; i++) {
            states[i] = loader_state(straight);
            CHECK_DONE(loader_next(straight, &batch, &end, &error));
            memcpy(want + 8 * i, batch.y.data, 8 * sizeof *want);
        }
        Loader *resumed = open_loader(dataset, options);
        for (int i = 0; i < 2 * BATCHES; i += 7) {
            CHECK_DONE(loader_set_state(resumed, states[i], &error));
            loader_begin(resumed); // the loop's head: must not leave the epoch
            for (int k = i; k < 2 * BATCHES && k < i + 9; k++) {
                CHECK_DONE(loader_next(resumed, &batch, &end, &error));
                CHECK(memcmp(want + 8 * k, batch.y.data, 8 * sizeof *want) == 0);
            }
        }
        loader_free(straight);
        loader_free(resumed);
    }
    dataset_release(dataset);
}

static void leaving_an_epoch_begins_the_next(void) {
    Dataset *dataset = numbered(90);
    for (int thread = LOADER_THREAD_NEVER; thread <= LOADER_THREAD_ALWAYS; thread++) {
        LoaderOptions options = {.batch = 9, .thread = (LoaderThread)thread};
        Loader *loader = open_loader(dataset, options);
        LoaderBatch batch;
        bool end;
        for (uint64_t epoch = 0; epoch < 20; epoch++) {
            loader_begin(loader);
            for (uint64_t i = 0; i <= epoch % 4; i++) {
                CHECK_DONE(loader_next(loader, &batch, &end, &error));
                CHECK(batch.at.epoch == epoch && batch.at.position == (int64_t)i);
                CHECK_INT(((const int32_t *)batch.y.data)[0], 9 * (int)i);
            }
        }
        loader_free(loader);
    }
    dataset_release(dataset);
}

static void a_loader_can_be_ended_at_any_moment(void) {
    Dataset *dataset = numbered(64);
    for (int batches = 0; batches < 40; batches++) {
        Loader *loader = open_loader(dataset, (LoaderOptions){.batch = 4,
                                                              .shuffle = true,
                                                              .epochs = -1,
                                                              .thread = LOADER_THREAD_ALWAYS});
        LoaderBatch batch;
        bool end;
        for (int i = 0; i < batches; i++)
            CHECK_DONE(loader_next(loader, &batch, &end, &error));
        if (batches % 3 == 1)
            CHECK_DONE(loader_set_state(loader, (LoaderState){9, 2}, &error));
        loader_free(loader);
    }
    dataset_release(dataset);
}

static void bytes_become_fractions_and_a_batch_stays_until_the_next(void) {
    enum { COUNT = 40, SIZE = 2048 };
    static uint8_t bytes[COUNT * SIZE];
    for (int i = 0; i < COUNT * SIZE; i++)
        bytes[i] = (uint8_t)(i * 7);
    uint8_t *pixels = malloc(sizeof bytes), *classes = calloc(COUNT, 1);
    memcpy(pixels, bytes, sizeof bytes);
    IdxArray images = {3, {COUNT, 32, 64}, COUNT * SIZE, pixels};
    IdxArray labels = {1, {COUNT}, COUNT, classes};
    Dataset *dataset = dataset_from_bytes(&images, "images", &labels, "labels", 10, &error);
    CHECK_DONE(dataset != NULL);
    Loader *loader = open_loader(dataset, (LoaderOptions){.batch = 16, .epochs = -1}); // 128 KiB
    LoaderBatch batch;
    bool end;
    for (int i = 0; i < 7; i++) {
        CHECK_DONE(loader_next(loader, &batch, &end, &error));
        CHECK_INT(batch.x.ndim, 4);
        CHECK_INT(batch.x.shape[3], 1);
        CHECK_INT((uintptr_t)batch.x.data % 64, 0);
        const float *x = batch.x.data;
        int wrong = 0;
        for (int64_t k = 0; k < batch.count * SIZE; k++)
            wrong += x[k] != (float)bytes[batch.at.position * 16 * SIZE + k] * (1.0f / 255);
        CHECK_INT(wrong, 0);
    }
    CHECK((float)255 * (1.0f / 255) == 1.0f);
    loader_free(loader);
    dataset_release(dataset);
}

int main(void) {
    RUN_TEST(an_epoch_gives_each_sample_once);
    RUN_TEST(batch_limit_and_drop_last_count_as_said);
    RUN_TEST(ends_come_after_as_many_epochs_as_asked);
    RUN_TEST(a_thread_changes_nothing_but_the_time);
    RUN_TEST(threads_change_neither_order_nor_values);
    RUN_TEST(several_threads_jump_and_end_at_any_moment);
    RUN_TEST(a_sample_is_changed_alike_in_every_batch_and_anew_in_every_epoch);
    RUN_TEST(images_are_moved_turned_and_brought_to_a_mean);
    RUN_TEST(changes_that_cannot_be_are_refused);
    RUN_TEST(seeds_and_epochs_give_the_orders_that_are_on_record);
    RUN_TEST(resuming_gives_the_same_batches);
    RUN_TEST(leaving_an_epoch_begins_the_next);
    RUN_TEST(a_loader_can_be_ended_at_any_moment);
    RUN_TEST(bytes_become_fractions_and_a_batch_stays_until_the_next);
    return test_end();
}
