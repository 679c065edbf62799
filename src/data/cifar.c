#include "data/cifar.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "data/file.h"

enum { PATH_SIZE = 4096, PIXELS = CIFAR_SIDE * CIFAR_SIDE };

static const uint64_t max_file_bytes = (uint64_t)1 << 30;

enum { MOST_FILES = 5 };

// The two sets: how many bytes of labels a record begins with, which of them is meant, and files.
typedef struct Cifar {
    const char *name;
    int classes, label, labels; // the label's place; bytes of labels
    const char *train[MOST_FILES], *test[MOST_FILES];
} Cifar;

static const Cifar sets[] = {
    [CIFAR_10] = {"CIFAR-10",
                  10,
                  0,
                  1,
                  {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                   "data_batch_5.bin"},
                  {"test_batch.bin"}},
    [CIFAR_100] = {"CIFAR-100", 100, 1, 2, {"train.bin"}, {"test.bin"}},
    [CIFAR_100_COARSE] = {"CIFAR-100", 20, 0, 2, {"train.bin"}, {"test.bin"}},
};

// Planes of red, green and blue into pixels of three.
static void interleave(uint8_t *out, const uint8_t *planes) {
    for (int i = 0; i < PIXELS; i++)
        for (int c = 0; c < CIFAR_CHANNELS; c++)
            out[i * CIFAR_CHANNELS + c] = planes[c * PIXELS + i];
}

static bool grow(IdxArray *array, int64_t more, Error *error) {
    uint8_t *data = realloc(array->data, (size_t)(array->count + more));
    if (!data)
        return error_fail(error, ERROR_MEMORY, "no memory for %" PRId64 " bytes of images",
                          array->count + more);
    array->data = data;
    return true;
}

// Appends the records of one file.
static bool append_file(const Cifar *set, const char *path, IdxArray *images, IdxArray *labels,
                        Error *error) {
    const int size_of_record = set->labels + CIFAR_CHANNELS * PIXELS;
    uint8_t *bytes = NULL;
    size_t size = 0;
    bool done = false;
    if (!file_read(path, max_file_bytes, &bytes, &size, error))
        return error_prefix(error, "%s", set->name);
    if (size == 0 || size % (size_t)size_of_record != 0) {
        error_fail(error, ERROR_FAILED,
                   FILE_PATH ": has %zu bytes, which is not a multiple of %s's record of %d: "
                             "cut at byte %zu, or not the binary version",
                   path, size, set->name, size_of_record,
                   size / (size_t)size_of_record * (size_t)size_of_record);
        goto done;
    }
    int64_t records = (int64_t)size / size_of_record;
    if (!grow(images, records * CIFAR_CHANNELS * PIXELS, error) || !grow(labels, records, error))
        goto done;
    for (int64_t i = 0; i < records; i++) {
        const uint8_t *record = bytes + i * size_of_record;
        if (record[set->label] >= set->classes) {
            error_fail(error, ERROR_FAILED,
                       FILE_PATH ": label %d in record %" PRId64 " (byte %" PRId64
                                 ") is outside the %d classes; %s's binary version is expected",
                       path, record[set->label], i, i * size_of_record + set->label, set->classes,
                       set->name);
            goto done;
        }
        labels->data[labels->count++] = record[set->label];
        interleave(images->data + images->count, record + set->labels);
        images->count += CIFAR_CHANNELS * PIXELS;
    }
    done = true;
done:
    free(bytes);
    return done;
}

Dataset *dataset_from_cifar(CifarSet which, const char *folder, bool train, Error *error) {
    const Cifar *set = &sets[which];
    IdxArray images = {0}, labels = {0};
    const char *const *files = train ? set->train : set->test;
    for (int i = 0; i < MOST_FILES && files[i]; i++) {
        char path[PATH_SIZE];
        int length = snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        if (length < 0 || length >= PATH_SIZE) {
            error_fail(error, ERROR_USAGE, "%s: the path of its folder is too long", set->name);
            goto failed;
        }
        if (!append_file(set, path, &images, &labels, error))
            goto failed;
    }
    images.ndim = 4;
    images.shape[0] = labels.count;
    images.shape[1] = images.shape[2] = CIFAR_SIDE;
    images.shape[3] = CIFAR_CHANNELS;
    labels.ndim = 1;
    labels.shape[0] = labels.count;
    return dataset_from_bytes(&images, folder, &labels, folder, set->classes, error);

failed:
    idx_clear(&images);
    idx_clear(&labels);
    return NULL;
}
