// What the readers of data and the loader promise when all is well.
#include "data/cifar.h"
#include "data/fashion.h"
#include "data/loader.h"
#include "data/order.h"
#include "tests/data_files.h"
#include "tests/test.h"

static Error error;

#define CHECK_DONE(call)                                   \
    do {                                                   \
        error.text[0] = 0;                                 \
        bool done_ = (call);                               \
        CHECK_MESSAGE(done_, "%s: %s", #call, error.text); \
    } while (0)

// ---- Sets on the disk ---------------------------------------------------------------------------

static int64_t sum_of(const uint8_t *bytes, int64_t count) {
    int64_t sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += bytes[i];
    return sum;
}

static void check_fashion(bool train, int64_t count, const int *labels, int64_t sum,
                          int64_t sum_of_last) {
    Dataset *dataset = dataset_from_fashion(train, &error);
    CHECK_DONE(dataset != NULL);
    if (!dataset)
        return;
    CHECK_INT(dataset->count, count);
    CHECK_INT(dataset->classes, 10);
    CHECK_INT(dataset->x.ndim, 3);
    CHECK_INT(dataset->x.shape[0], 28);
    CHECK_INT(dataset->x.shape[1], 28);
    CHECK_INT(dataset->x.shape[2], 1);
    for (int i = 0; i < 10; i++)
        CHECK_INT(((int32_t *)dataset->y.data)[i], labels[i]);
    CHECK_INT(sum_of(dataset->x.data, count * 784), sum);
    CHECK_INT(sum_of((uint8_t *)dataset->x.data + (count - 1) * 784, 784), sum_of_last);
    dataset_release(dataset);
}

// The expected numbers were computed from the package's files by another program.
static void fashion_mnist_is_read_whole(void) {
    static const int train[] = {9, 0, 0, 3, 0, 2, 7, 2, 5, 5};
    static const int test[] = {9, 2, 1, 1, 6, 1, 4, 6, 5, 7};
    check_fashion(true, 60000, train, 3431114169, 16684);
    check_fashion(false, 10000, test, 573469082, 24390);
}

static void gzip_and_plain_read_the_same(void) {
    static uint8_t plain[4096], packed[8192];
    static const uint32_t shape[] = {5, 20, 30};
    size_t size = idx_bytes(plain, 3, shape, 3000);
    size_t packed_size = gzip_bytes(packed, sizeof packed, plain, size, 9);
    // Names that lie: only the content decides.
    const char *plain_path = write_file("images.gz", plain, size);
    const char *packed_path = write_file("images", packed, packed_size);
    IdxArray a, b;
    CHECK_DONE(idx_read(plain_path, 3, 3, &a, &error));
    CHECK_DONE(idx_read(packed_path, 3, 3, &b, &error));
    CHECK_INT(a.count, 3000);
    CHECK_INT(b.count, 3000);
    CHECK_INT(b.shape[2], 30);
    CHECK(a.data && b.data && memcmp(a.data, b.data, 3000) == 0);
    CHECK(a.data && a.data[2999] == (uint8_t)2999);
    idx_clear(&a);
    idx_clear(&b);
    // Two gzip files one after the other are one.
    size_t half = gzip_bytes(packed, sizeof packed, plain, 1000, 9);
    half += gzip_bytes(packed + half, sizeof packed - half, plain + 1000, size - 1000, 9);
    CHECK_DONE(idx_parse(packed, half, "two", 3, 3, &b, &error));
    CHECK(b.data && b.data[2999] == (uint8_t)2999);
    idx_clear(&b);
}

static void cifar_planes_become_pixels(void) {
    static uint8_t records[2 * CIFAR_RECORD];
    for (int r = 0; r < 2; r++) {
        records[r * CIFAR_RECORD] = (uint8_t)(7 + r);
        for (int c = 0; c < 3; c++)
            for (int i = 0; i < 1024; i++)
                records[r * CIFAR_RECORD + 1 + c * 1024 + i] = (uint8_t)(c * 80 + i % 32 + r);
    }
    write_file("test_batch.bin", records, sizeof records);
    for (int i = 1; i <= 5; i++) {
        char name[32];
        snprintf(name, sizeof name, "data_batch_%d.bin", i);
        write_file(name, records, sizeof records / (i == 5 ? 2 : 1));
    }
    Dataset *test = dataset_from_cifar10(folder, false, &error);
    Dataset *train = dataset_from_cifar10(folder, true, &error);
    CHECK_DONE(test != NULL && train != NULL);
    if (test && train) {
        CHECK_INT(test->count, 2);
        CHECK_INT(train->count, 9);
        CHECK_INT(test->x.shape[2], 3);
        CHECK_INT(((int32_t *)test->y.data)[1], 8);
        const uint8_t *second = (uint8_t *)test->x.data + 3072;
        CHECK_INT(second[3 * (4 * 32 + 9) + 0], 9 + 1); // row 4, column 9: red, green, blue
        CHECK_INT(second[3 * (4 * 32 + 9) + 1], 80 + 9 + 1);
        CHECK_INT(second[3 * (4 * 32 + 9) + 2], 160 + 9 + 1);
    }
    dataset_release(test);
    dataset_release(train);
}

// ---- Text ---------------------------------------------------------------------------------------

static Text *text_of(const char *content) {
    TextPart part = {"test", (const uint8_t *)content, strlen(content)};
    Text *text = text_parse(&part, 1, &error);
    CHECK_DONE(text != NULL);
    if (!text)
        exit(1);
    return text;
}

static void text_vocabulary_is_in_order_of_code_points(void) {
    Text *text = text_of("\xEF\xBB\xBF"
                         "b\r\na\xE2\x82\xAC"
                         "a");
    CHECK_INT(text->vocabulary, 4); // LF a b EURO
    CHECK_INT(text->points[0], '\n');
    CHECK_INT(text->points[1], 'a');
    CHECK_INT(text->points[2], 'b');
    CHECK_INT(text->points[3], 0x20AC);
    static const int ids[] = {2, 0, 1, 3, 1};
    CHECK_INT(text->count, 5);
    for (int i = 0; i < 5; i++)
        CHECK_INT(text->ids[i], ids[i]);
    int32_t encoded[8];
    int64_t count;
    CHECK_DONE(text_encode(text, "a\xE2\x82\xAC", 4, encoded, &count, &error));
    CHECK_INT(count, 2);
    CHECK_INT(encoded[1], 3);
    char out[8];
    CHECK_INT(text_decode(text, encoded, 2, out, sizeof out), 4);
    CHECK_TEXT(out, "a\xE2\x82\xAC");
    CHECK_INT(text_decode(text, encoded, 2, out, 4), 4); // no half characters
    CHECK_TEXT(out, "a");
    CHECK_INT(text_split(text, 0.2), 4);
    CHECK_INT(text_split(text, 0), 5);
    text_release(text);
}

static void default_text_is_there_and_of_some_size(void) {
    int count;
    const char *const *paths = text_default_paths(&count);
    Text *text = text_read(paths, count, &error);
    CHECK_DONE(text != NULL);
    if (!text)
        return;
    CHECK_MESSAGE(text->count > 100000, "%lld characters", (long long)text->count);
    CHECK_MESSAGE(text->vocabulary > 60 && text->vocabulary < 300, "%d in the vocabulary",
                  text->vocabulary);
    text_release(text);
}

static void windows_of_a_text_are_followed_by_their_next_tokens(void) {
    Text *text = text_of("abcdefghijklmnopqrstuvwxyz");
    Dataset *dataset = dataset_from_text(text, 2, 26, 5, "test", &error);
    CHECK_DONE(dataset != NULL);
    CHECK_INT(dataset->count, 4);
    Loader *loader = loader_new(dataset, &(LoaderOptions){.batch = 3}, &error);
    CHECK_DONE(loader != NULL);
    LoaderBatch batch;
    bool end;
    CHECK_DONE(loader_next(loader, &batch, &end, &error));
    CHECK(batch.x.format == FORMAT_INT32 && batch.y.format == FORMAT_INT32);
    CHECK_INT(batch.x.ndim, 2);
    CHECK_INT(batch.x.shape[0], 3);
    CHECK_INT(batch.x.shape[1], 5);
    for (int i = 0; i < 15; i++) {
        CHECK_INT(((const int32_t *)batch.x.data)[i], 2 + i); // c d e f g, h i j k l, ...
        CHECK_INT(((const int32_t *)batch.y.data)[i], 3 + i);
    }
    loader_free(loader);

    // Drawn: every batch is full, every window lies inside [2, 26), every start occurs.
    loader =
        loader_new(dataset, &(LoaderOptions){.batch = 3, .shuffle = true, .epochs = -1}, &error);
    CHECK_INT(loader_len(loader), 2);
    int seen[26] = {0};
    for (int i = 0; i < 200; i++) {
        CHECK_DONE(loader_next(loader, &batch, &end, &error));
        CHECK_INT(batch.count, 3);
        for (int k = 0; k < 3; k++) {
            const int32_t *x = (const int32_t *)batch.x.data + 5 * k;
            const int32_t *y = (const int32_t *)batch.y.data + 5 * k;
            CHECK(x[0] >= 2 && y[4] < 26 && x[4] == x[0] + 4 && y[4] == x[0] + 5);
            seen[x[0]]++;
        }
    }
    for (int i = 2; i <= 20; i++)
        CHECK_MESSAGE(seen[i] > 0, "no window began at %d", i);
    loader_free(loader);
    dataset_release(dataset);
    text_release(text);
}

// ---- The loader ---------------------------------------------------------------------------------

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

static void synthetic_samples_past_all_counts_are_refused(void) {
    const int64_t shape[2] = {2, 3}, wrong[] = {INT64_MAX - 1, INT64_MAX - 100, INT64_MAX / 6};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(!dataset_synthetic(wrong[i], 100, 2, shape, 4, 3.0, 11, &error));
        CHECK_CONTAINS(error.text, "synthetic data needs");
    }
}

static void synthetic_sets_are_the_same_each_time_and_continue(void) {
    static const int64_t shape[] = {3, 2};
    Dataset *all = dataset_synthetic(0, 100, 2, shape, 4, 3.0, 11, &error);
    Dataset *tail = dataset_synthetic(60, 40, 2, shape, 4, 3.0, 11, &error);
    Dataset *other = dataset_synthetic(0, 100, 2, shape, 4, 3.0, 12, &error);
    CHECK_DONE(all && tail && other);
    if (!all || !tail || !other)
        return;
    CHECK(memcmp((float *)all->x.data + 60 * 6, tail->x.data, 40 * 6 * sizeof(float)) == 0);
    CHECK(memcmp((int32_t *)all->y.data + 60, tail->y.data, 40 * sizeof(int32_t)) == 0);
    CHECK(memcmp(all->x.data, other->x.data, 600 * sizeof(float)) != 0);
    // Around the centre of its class each coordinate has deviation 1.
    double sum[4][6] = {{0}}, squares = 0;
    const float *x = all->x.data;
    for (int i = 0; i < 100; i++)
        for (int k = 0; k < 6; k++)
            sum[i % 4][k] += x[i * 6 + k] / 25.0;
    for (int i = 0; i < 100; i++)
        for (int k = 0; k < 6; k++)
            squares += (x[i * 6 + k] - sum[i % 4][k]) * (x[i * 6 + k] - sum[i % 4][k]);
    CHECK_NEAR(squares / (600 - 24), 1, 0.2);
    dataset_release(all);
    dataset_release(tail);
    dataset_release(other);
}

int main(void) {
    folder_make();
    RUN_TEST(fashion_mnist_is_read_whole);
    RUN_TEST(gzip_and_plain_read_the_same);
    RUN_TEST(cifar_planes_become_pixels);
    RUN_TEST(text_vocabulary_is_in_order_of_code_points);
    RUN_TEST(default_text_is_there_and_of_some_size);
    RUN_TEST(windows_of_a_text_are_followed_by_their_next_tokens);
    RUN_TEST(an_epoch_gives_each_sample_once);
    RUN_TEST(batch_limit_and_drop_last_count_as_said);
    RUN_TEST(ends_come_after_as_many_epochs_as_asked);
    RUN_TEST(a_thread_changes_nothing_but_the_time);
    RUN_TEST(seeds_and_epochs_give_the_orders_that_are_on_record);
    RUN_TEST(resuming_gives_the_same_batches);
    RUN_TEST(leaving_an_epoch_begins_the_next);
    RUN_TEST(a_loader_can_be_ended_at_any_moment);
    RUN_TEST(bytes_become_fractions_and_a_batch_stays_until_the_next);
    RUN_TEST(synthetic_samples_past_all_counts_are_refused);
    RUN_TEST(synthetic_sets_are_the_same_each_time_and_continue);
    return test_end();
}
