// Bad data, row by row of the list of faults: each is refused in one line with cause and remedy.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "data/cifar.h"
#include "data/fashion.h"
#include "data/file.h"
#include "data/loader.h"
#include "tests/data_files.h"
#include "tests/test.h"

enum { CIFAR10_RECORD = 1 + CIFAR_CHANNELS * CIFAR_SIDE * CIFAR_SIDE };

static Error error;

// The last error has these parts, is one line, and is forgotten.
#define CHECK_REFUSED(call, ...)                                                        \
    do {                                                                                \
        error = (Error){0};                                                             \
        bool refused_ = !(call);                                                        \
        CHECK_MESSAGE(refused_, "%s was accepted", #call);                              \
        CHECK_MESSAGE(error.code != ERROR_NONE, "%s gave no code", #call);              \
        const char *const parts_[] = {__VA_ARGS__};                                     \
        for (size_t i_ = 0; i_ < sizeof parts_ / sizeof parts_[0]; i_++)                \
            CHECK_CONTAINS(error.text, parts_[i_]);                                     \
        CHECK_MESSAGE(!strchr(error.text, '\n'), "%s: more than one line", error.text); \
    } while (0)

static bool read_bytes(const char *path) {
    uint8_t *bytes = NULL;
    size_t size = 0;
    bool done = file_read(path, 1 << 20, &bytes, &size, &error);
    free(bytes);
    return done;
}

static bool read_idx(const char *path, int ndim) {
    IdxArray array;
    bool done = idx_read(path, ndim, ndim, &array, &error);
    idx_clear(&array);
    return done;
}

static bool parse_idx(const uint8_t *bytes, size_t size, int ndim) {
    IdxArray array;
    bool done = idx_parse(bytes, size, "file", ndim, ndim, &array, &error);
    idx_clear(&array);
    return done;
}

static bool parse_text(const char *bytes, size_t size) {
    TextPart part = {"file", (const uint8_t *)bytes, size};
    Text *text = text_parse(&part, 1, &error);
    text_release(text);
    return text != NULL;
}

static bool made(Dataset *dataset) {
    dataset_release(dataset);
    return dataset != NULL;
}

// ---- 14 -----------------------------------------------------------------------------------------

static void row_14_what_is_no_regular_file_is_named_without_waiting(void) {
    alarm((unsigned)(20 * test_patience())); // a wait would otherwise last for ever
    CHECK_REFUSED(read_bytes(path_of("nothing")), path_of("nothing"), "No such file", "errno 2",
                  "check the path");
    CHECK_REFUSED(read_bytes(folder), folder, "is a directory", "regular file");
    const char *fifo = path_of("fifo");
    CHECK_INT(mkfifo(fifo, 0600), 0);
    CHECK_REFUSED(read_bytes(fifo), fifo, "is a FIFO");
    CHECK_REFUSED(read_idx(fifo, 3), fifo, "is a FIFO");
    CHECK_REFUSED(made(dataset_from_cifar(CIFAR_10, fifo, false, &error)), "Not a directory");
    CHECK_REFUSED(read_bytes("/dev/null"), "/dev/null", "is a character device");
    const char *link = path_of("link");
    CHECK_INT(symlink(link, link), 0);
    CHECK_REFUSED(read_bytes(link), link, "errno 40");
    Text *text = text_read((const char *[]){fifo}, 1, &error);
    CHECK(text == NULL);
    CHECK_CONTAINS(error.text, "is a FIFO");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path_of("socket"));
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_INT(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    CHECK_REFUSED(read_bytes(address.sun_path), "is a socket");
    close(listener);
    alarm(0);
}

static void row_14_an_unreadable_file_is_named(void) {
    const char *path = write_file("secret", "x", 1);
    CHECK_INT(chmod(path, 0), 0);
    CHECK_INT(chmod(folder, 0755), 0);
    uid_t before = geteuid();
    if (before == 0) // root may read everything
        CHECK_INT(seteuid(65534), 0);
    CHECK_REFUSED(read_bytes(path), path, "Permission denied", "errno 13", "permissions");
    CHECK_INT(seteuid(before), 0);
}

static void row_14_missing_fashion_mnist_names_the_package(void) {
    setenv("MPBENCH_FASHION_MNIST", folder, 1);
    CHECK_REFUSED(made(dataset_from_fashion(true, &error)), folder, "train-images-idx3-ubyte",
                  "dataset-fashion-mnist", "MPBENCH_FASHION_MNIST");
    unsetenv("MPBENCH_FASHION_MNIST");
}

// ---- 15 to 17 -----------------------------------------------------------------------------------

static uint8_t good[1024];
static size_t good_size;

static void make_good(void) {
    static const uint32_t shape[] = {4, 5, 6};
    good_size = idx_bytes(good, 3, shape, 120);
}

static void row_15_cuts_are_named_by_their_offset(void) {
    make_good();
    CHECK_REFUSED(parse_idx(good, 0, 3), "file: is empty");
    CHECK_REFUSED(parse_idx(good, 3, 3), "header is cut at byte 3");
    CHECK_REFUSED(parse_idx(good, 13, 3), "header is cut at byte 13 of 16");
    CHECK_REFUSED(parse_idx(good, 100, 3), "cut at byte 100", "promises 120 bytes");
    good[good_size] = 0;
    CHECK_REFUSED(parse_idx(good, good_size + 1, 3), "ends at byte 136", "goes on to 137");
    CHECK(parse_idx(good, good_size, 3));
    for (size_t size = 0; size < good_size; size++) // and at any other place
        CHECK_REFUSED(parse_idx(good, size, 3), "file: ");
    CHECK_REFUSED(read_idx(write_file("empty", "", 0), 3), path_of("empty"), "is empty");
}

static void row_16_each_kind_of_bad_header_is_named(void) {
    static const struct {
        uint8_t magic[4];
        const char *why;
    } cases[] = {
        {{0x89, 'P', 'N', 'G'}, "not an IDX file: its magic is 89 50 4e 47"},
        {{0, 0, 7, 3}, "not an IDX file"},
        {{3, 8, 0, 0}, "header is little-endian"},
        {{0, 0, 0x0D, 3}, "type 32-bit float"},
        {{0, 0, 0x09, 3}, "type signed byte"},
        {{0, 0, 8, 1}, "has 1 dimensions where 3 are expected"},
        {{0, 0, 8, 0}, "has 0 dimensions"},
        {{0, 0, 8, 255}, "has 255 dimensions"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make_good();
        memcpy(good, cases[i].magic, 4);
        CHECK_REFUSED(parse_idx(good, good_size, 3), cases[i].why);
    }
    make_good();
    static const uint8_t swapped[12] = {4, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0};
    memcpy(good + 4, swapped, sizeof swapped);
    static const char *const why[] = {"dimensions are little-endian", "swapped 4"};
    CHECK_REFUSED(parse_idx(good, good_size, 3), why[0], why[1]);
    static uint8_t packed[2048];
    size_t size = gzip_bytes(packed, sizeof packed, good, good_size, 9);
    CHECK_REFUSED(parse_idx(packed, size, 3), why[0], why[1]);
    make_good();
    good[11] = 0;
    CHECK_REFUSED(parse_idx(good, good_size, 3), "dimension 2, at byte 8, is 0");
}

static void row_16_damaged_gzip_is_named(void) {
    static uint8_t packed[2048];
    make_good();
    size_t size = gzip_bytes(packed, sizeof packed, good, good_size, 9);
    CHECK(parse_idx(packed, size, 3));
    CHECK_REFUSED(parse_idx(packed, size - 5, 3), "gzip data is cut at byte", "fetch");
    CHECK_REFUSED(parse_idx(packed, 12, 3), "gzip data is cut at byte 12");
    packed[size - 6] ^= 1; // the checksum
    CHECK_REFUSED(parse_idx(packed, size, 3), "gzip data is damaged", "incorrect data check");
    packed[size - 6] ^= 1;
    packed[2] = 9;
    CHECK_REFUSED(parse_idx(packed, size, 3), "gzip data is damaged", "compression method");
    packed[2] = 8;
    memset(packed + size, 'x', 4);
    CHECK_REFUSED(parse_idx(packed, size + 4, 3), "4 bytes that are not gzip follow at byte");
    good[good_size] = 0;
    size = gzip_bytes(packed, sizeof packed, good, good_size + 1, 9);
    CHECK_REFUSED(parse_idx(packed, size, 3), "ends at byte 136", "goes on");
    size = gzip_bytes(packed, sizeof packed, good, good_size - 1, 9);
    CHECK_REFUSED(parse_idx(packed, size, 3), "ends at byte 135 of 136");
}

static void row_17_huge_dimensions_are_refused_before_memory_is_asked_for(void) {
    static const uint32_t overflowing[] = {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF};
    static const uint32_t negative[] = {0x80000000, 0x80000000, 2};
    static const uint32_t large[] = {60000, 10000, 10000};
    uint8_t packed[512];
    size_t size = idx_bytes(good, 3, overflowing, 100);
    CHECK_REFUSED(parse_idx(good, size, 3), "overflows");
    CHECK_REFUSED(parse_idx(packed, gzip_bytes(packed, sizeof packed, good, size, 9), 3),
                  "overflows");
    size = idx_bytes(good, 3, negative, 100);
    CHECK_REFUSED(parse_idx(good, size, 3), "overflows");
    size = idx_bytes(good, 3, large, 100);
    CHECK_REFUSED(parse_idx(good, size, 3), "cut at byte 116", "promises 6000000000000");
    CHECK_REFUSED(parse_idx(packed, gzip_bytes(packed, sizeof packed, good, size, 9), 3),
                  "promises 6000000000000 bytes", "cannot hold");
}

// ---- 18, 19, 61 ---------------------------------------------------------------------------------

static bool pair_up(uint32_t images, uint32_t labels, int hostile_index) {
    const uint32_t image_shape[] = {images, 2, 2}, label_shape[] = {labels};
    uint8_t bytes[512];
    size_t size = idx_bytes(bytes, 3, image_shape, images * 4);
    const char *image_path = write_file("images", bytes, size);
    size = idx_bytes(bytes, 1, label_shape, labels);
    for (uint32_t i = 0; i < labels; i++)
        bytes[8 + i] = (uint8_t)(i % 10);
    if (hostile_index >= 0)
        bytes[8 + hostile_index] = 10;
    return made(dataset_from_idx(image_path, write_file("labels", bytes, size), 10, &error));
}

static void row_18_images_and_labels_must_agree(void) {
    CHECK(pair_up(20, 20, -1));
    CHECK_REFUSED(pair_up(20, 19, -1), "20 images", "19 labels", path_of("images"));
    CHECK_REFUSED(pair_up(20, 20, 17), path_of("labels"), "label 10 at index 18", "10 classes");
}

static void row_19_cifar_is_cut_into_records(void) {
    static uint8_t bytes[2 * CIFAR10_RECORD];
    write_file("test_batch.bin", bytes, sizeof bytes - 1);
    CHECK_REFUSED(made(dataset_from_cifar(CIFAR_10, folder, false, &error)),
                  path_of("test_batch.bin"), "6145 bytes", "multiple", "3073");
    write_file("test_batch.bin", bytes, 0);
    CHECK_REFUSED(made(dataset_from_cifar(CIFAR_10, folder, false, &error)), "0 bytes", "3073");
    bytes[CIFAR10_RECORD] = 11;
    write_file("test_batch.bin", bytes, sizeof bytes);
    CHECK_REFUSED(made(dataset_from_cifar(CIFAR_10, folder, false, &error)), "label 11 in record 1",
                  "byte 3073");
    CHECK_REFUSED(made(dataset_from_cifar(CIFAR_10, folder, true, &error)), "data_batch_1.bin",
                  "No such file");
}

static void row_18_and_61_tensors_are_checked(void) {
    float x[6] = {0, 1, 2, 3, 4, 5};
    int32_t y[3] = {0, 1, 2};
    const int64_t x_shape[] = {3, 2}, y_shape[] = {3}, two[] = {2}, none[] = {0, 2};
    const int64_t huge[] = {INT64_MAX / 2, 8};
    DatasetTensor tx = {FORMAT_FP32, 2, x_shape, x}, ty = {FORMAT_INT32, 1, y_shape, y};
    CHECK(made(dataset_from_tensors(&tx, &ty, 3, &error)));
    CHECK(made(dataset_from_tensors(&tx, NULL, 0, &error)));
    CHECK_REFUSED(made(dataset_from_tensors(&tx, &ty, 2, &error)), "y: label 2 at index 3");
    ty.shape = two;
    CHECK_REFUSED(made(dataset_from_tensors(&tx, &ty, 3, &error)), "3 samples", "has 2");
    ty.shape = y_shape;
    static const struct {
        float value;
        const char *name;
    } cases[] = {{NAN, "is nan"}, {INFINITY, "is inf"}, {-INFINITY, "is -inf"}};
    for (int i = 0; i < 3; i++) {
        x[5] = cases[i].value;
        CHECK_REFUSED(made(dataset_from_tensors(&tx, &ty, 3, &error)), "x: element 2 of sample 3",
                      cases[i].name, "index 6");
    }
    x[5] = 0;
    tx.shape = none;
    CHECK_REFUSED(made(dataset_from_tensors(&tx, NULL, 0, &error)), "x: has no elements");
    tx.shape = huge;
    CHECK_REFUSED(made(dataset_from_tensors(&tx, NULL, 0, &error)), "x: ", "more than memory");
    tx.shape = x_shape;
    tx.format = FORMAT_BF16;
    CHECK_REFUSED(made(dataset_from_tensors(&tx, NULL, 0, &error)), "x: is bf16", "fp32");
    y[1] = -1;
    tx.format = FORMAT_FP32;
    CHECK_REFUSED(made(dataset_from_tensors(&tx, &ty, 3, &error)), "label -1 at index 2");
}

// ---- 20 -----------------------------------------------------------------------------------------

static void row_20_what_is_no_text_is_named(void) {
    CHECK_REFUSED(parse_text("", 0), "file: is empty");
    CHECK_REFUSED(parse_text("ab\0c", 4), "NUL byte at offset 2");
    CHECK_REFUSED(parse_text("\xEF\xBB\xBF", 3), "no characters");
    CHECK_REFUSED(parse_text("\xFF\xFE"
                             "a\0",
                             4),
                  "UTF-16", "iconv");
    static const char *const bad[] = {
        "ab\xC3(",            // no continuation
        "ab\xC0\x80",         // too long a form
        "ab\xED\xA0\x80",     // a surrogate
        "ab\xF4\x90\x80\x80", // beyond U+10FFFF
        "ab\xE2\x82",         // cut
        "ab\x80",             // a continuation alone
        "ab\xFF",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_REFUSED(parse_text(bad[i], strlen(bad[i])), "not UTF-8 at offset 2", "iconv");
    CHECK(parse_text("a\r\nb\r", 5));

    const char *missing[] = {write_file("fine", "abc", 3), path_of("nothing")};
    Text *text = text_read(missing, 2, &error);
    CHECK(text == NULL);
    CHECK_CONTAINS(error.text, path_of("nothing"));
}

static void row_20_a_text_over_the_limit_is_refused_unread(void) {
    const char *path = write_file("large", "", 0);
    CHECK_INT(truncate(path, (off_t)1 << 30), 0); // a line of 1 GiB, that takes no room on the disk
    Text *text = text_read(&path, 1, &error);
    CHECK(text == NULL);
    CHECK_CONTAINS(error.text, "has 1073741824 bytes");
    CHECK_CONTAINS(error.text, "at most 268435456");
}

static void row_20_too_many_characters_are_refused(void) {
    size_t size = 0;
    char *bytes = malloc(4 * 70000);
    for (uint32_t point = 0x20000; point < 0x20000 + 70000; point++) {
        bytes[size++] = (char)(0xF0 | point >> 18);
        bytes[size++] = (char)(0x80 | (point >> 12 & 63));
        bytes[size++] = (char)(0x80 | (point >> 6 & 63));
        bytes[size++] = (char)(0x80 | (point & 63));
    }
    CHECK_REFUSED(parse_text(bytes, size), "70000 distinct characters", "65536");
    CHECK(parse_text(bytes, 4 * 65536));
    free(bytes);
}

static void row_20_a_text_shorter_than_its_context_is_refused(void) {
    TextPart part = {"file", (const uint8_t *)"0123456789", 10};
    Text *text = text_parse(&part, 1, &error);
    CHECK_REFUSED(made(dataset_from_text(text, 0, 10, 10, "file", &error)), "context of 10",
                  "11 characters", "has 10");
    CHECK(made(dataset_from_text(text, 0, 10, 9, "file", &error)));
    CHECK_REFUSED(made(dataset_from_text(text, 0, 10, 0, "file", &error)), "context of 0");
    CHECK_REFUSED(made(dataset_from_text(text, 0, 10, INT64_MAX, "file", &error)), "has 10");
    int32_t ids[4];
    int64_t count;
    CHECK_REFUSED(text_encode(text, "1\xE2\x82\xAC", 4, ids, &count, &error), "U+20AC", "offset 1");
    text_release(text);
}

// ---- 21 -----------------------------------------------------------------------------------------

static void row_21_a_file_that_shrinks_is_an_error(void) {
    static uint8_t bytes[10000], out[10000];
    const char *path = write_file("shrinking", bytes, sizeof bytes);
    int file = -1;
    uint64_t size = 0;
    CHECK(file_open(path, &file, &size, &error));
    CHECK_INT(size, sizeof bytes);
    CHECK_INT(truncate(path, 777), 0); // between looking and reading
    CHECK_REFUSED(file_take(file, path, out, (size_t)size, &error), path,
                  "ends at byte 777 of 10000", "cut while being read");
    close(file);
}

// ---- The loader's options -----------------------------------------------------------------------

static bool open_loader(Dataset *dataset, LoaderOptions options) {
    Loader *loader = loader_new(dataset, &options, &error);
    loader_free(loader);
    return loader != NULL;
}

static void bad_options_of_a_loader_are_named(void) {
    static const int64_t shape[] = {4};
    Dataset *dataset = dataset_synthetic(0, 50, 1, shape, 2, 1, 1, &error);
    CHECK(open_loader(dataset, (LoaderOptions){.batch = INT64_MAX}));
    CHECK_REFUSED(open_loader(dataset, (LoaderOptions){.batch = 0}), "batch: is 0");
    CHECK_REFUSED(open_loader(dataset, (LoaderOptions){.batch = -5}), "batch: is -5");
    CHECK_REFUSED(open_loader(dataset, (LoaderOptions){.batch = 1, .limit = -1}), "limit: is -1");
    CHECK_REFUSED(open_loader(dataset, (LoaderOptions){.batch = 1, .epochs = -2}), "epochs: is -2");
    CHECK_REFUSED(open_loader(dataset, (LoaderOptions){.batch = 51, .drop_last = true}),
                  "batch: 51", "50 samples", "drop_last");
    Loader *loader = loader_new(dataset, &(LoaderOptions){.batch = 10}, &error);
    CHECK_REFUSED(loader_set_state(loader, (LoaderState){0, 6}, &error), "batch 6", "epoch of 5",
                  "checkpoint");
    CHECK_REFUSED(loader_set_state(loader, (LoaderState){0, -1}, &error), "batch -1");
    CHECK(loader_set_state(loader, (LoaderState){0, 5}, &error));
    loader_free(loader);
    dataset_release(dataset);

    TextPart part = {"file", (const uint8_t *)"0123456789", 10};
    Text *text = text_parse(&part, 1, &error);
    Dataset *windows = dataset_from_text(text, 0, 10, 3, "file", &error);
    CHECK_REFUSED(open_loader(windows, (LoaderOptions){.batch = INT64_MAX, .shuffle = true}),
                  "no memory for a batch");
    CHECK_REFUSED(open_loader(windows, (LoaderOptions){.batch = INT64_MAX / 64, .shuffle = true}),
                  "no memory for a batch", "smaller batch");
    dataset_release(windows);
    text_release(text);
    CHECK_REFUSED(made(dataset_synthetic(0, 0, 1, shape, 2, 1, 1, &error)), "at least one");
}

int main(void) {
    folder_make();
    RUN_TEST(row_14_what_is_no_regular_file_is_named_without_waiting);
    RUN_TEST(row_14_an_unreadable_file_is_named);
    RUN_TEST(row_14_missing_fashion_mnist_names_the_package);
    RUN_TEST(row_15_cuts_are_named_by_their_offset);
    RUN_TEST(row_16_each_kind_of_bad_header_is_named);
    RUN_TEST(row_16_damaged_gzip_is_named);
    RUN_TEST(row_17_huge_dimensions_are_refused_before_memory_is_asked_for);
    RUN_TEST(row_18_images_and_labels_must_agree);
    RUN_TEST(row_18_and_61_tensors_are_checked);
    RUN_TEST(row_19_cifar_is_cut_into_records);
    RUN_TEST(row_20_what_is_no_text_is_named);
    RUN_TEST(row_20_a_text_over_the_limit_is_refused_unread);
    RUN_TEST(row_20_too_many_characters_are_refused);
    RUN_TEST(row_20_a_text_shorter_than_its_context_is_refused);
    RUN_TEST(row_21_a_file_that_shrinks_is_an_error);
    RUN_TEST(bad_options_of_a_loader_are_named);
    return test_end();
}
