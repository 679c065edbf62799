#include "data/cifar.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "data/file.h"

enum { PATH_SIZE = 4096, PIXELS = CIFAR_SIDE * CIFAR_SIDE };

static const uint64_t max_file_bytes = (uint64_t)1 << 30;

static const char *const train_files[] = {"data_batch_1.bin", "data_batch_2.bin",
                                          "data_batch_3.bin", "data_batch_4.bin",
                                          "data_batch_5.bin"};
static const char *const test_files[] = {"test_batch.bin"};

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
static bool append_file(const char *path, IdxArray *images, IdxArray *labels, Error *error) {
    uint8_t *bytes = NULL;
    size_t size = 0;
    bool done = false;
    if (!file_read(path, max_file_bytes, &bytes, &size, error))
        return error_prefix(error, "CIFAR-10");
    if (size == 0 || size % CIFAR_RECORD != 0) {
        error_fail(error, ERROR_FAILED,
                   FILE_PATH ": has %zu bytes, which is not a multiple of CIFAR-10's record of %d: "
                             "cut at byte %zu, or not the binary version",
                   path, size, CIFAR_RECORD, size / CIFAR_RECORD * CIFAR_RECORD);
        goto done;
    }
    int64_t records = (int64_t)(size / CIFAR_RECORD);
    if (!grow(images, records * (CIFAR_RECORD - 1), error) || !grow(labels, records, error))
        goto done;
    for (int64_t i = 0; i < records; i++) {
        const uint8_t *record = bytes + i * CIFAR_RECORD;
        if (record[0] >= CIFAR_CLASSES) {
            error_fail(error, ERROR_FAILED,
                       FILE_PATH ": label %d in record %" PRId64 " (byte %" PRId64
                                 ") is outside the %d classes; CIFAR-10's binary version is "
                                 "expected",
                       path, record[0], i, i * CIFAR_RECORD, CIFAR_CLASSES);
            goto done;
        }
        labels->data[labels->count++] = record[0];
        interleave(images->data + images->count, record + 1);
        images->count += CIFAR_RECORD - 1;
    }
    done = true;
done:
    free(bytes);
    return done;
}

Dataset *dataset_from_cifar10(const char *folder, bool train, Error *error) {
    IdxArray images = {0}, labels = {0};
    const char *const *files = train ? train_files : test_files;
    size_t count = train ? sizeof train_files / sizeof train_files[0] : 1;
    for (size_t i = 0; i < count; i++) {
        char path[PATH_SIZE];
        int length = snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        if (length < 0 || length >= PATH_SIZE) {
            error_fail(error, ERROR_USAGE, "CIFAR-10: the path of its folder is too long");
            goto failed;
        }
        if (!append_file(path, &images, &labels, error))
            goto failed;
    }
    images.ndim = 4;
    images.shape[0] = labels.count;
    images.shape[1] = images.shape[2] = CIFAR_SIDE;
    images.shape[3] = CIFAR_CHANNELS;
    labels.ndim = 1;
    labels.shape[0] = labels.count;
    return dataset_from_bytes(&images, folder, &labels, folder, CIFAR_CLASSES, error);

failed:
    idx_clear(&images);
    idx_clear(&labels);
    return NULL;
}
