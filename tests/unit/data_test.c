// What the readers of data promise when all is well.
#include "data/cifar.h"
#include "data/fashion.h"
#include "data/loader.h"
#include "tests/data_files.h"
#include "tests/unit/data_fixture.h"

enum { CIFAR10_RECORD = 1 + CIFAR_CHANNELS * CIFAR_SIDE * CIFAR_SIDE };

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
    static uint8_t records[2 * CIFAR10_RECORD];
    for (int r = 0; r < 2; r++) {
        records[r * CIFAR10_RECORD] = (uint8_t)(7 + r);
        for (int c = 0; c < 3; c++)
            for (int i = 0; i < 1024; i++)
                records[r * CIFAR10_RECORD + 1 + c * 1024 + i] = (uint8_t)(c * 80 + i % 32 + r);
    }
    write_file("test_batch.bin", records, sizeof records);
    for (int i = 1; i <= 5; i++) {
        char name[32];
        snprintf(name, sizeof name, "data_batch_%d.bin", i);
        write_file(name, records, sizeof records / (i == 5 ? 2 : 1));
    }
    Dataset *test = dataset_from_cifar(CIFAR_10, folder, false, &error);
    Dataset *train = dataset_from_cifar(CIFAR_10, folder, true, &error);
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

// ---- Synthetic sets -----------------------------------------------------------------------------

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
    RUN_TEST(synthetic_samples_past_all_counts_are_refused);
    RUN_TEST(synthetic_sets_are_the_same_each_time_and_continue);
    return test_end();
}
