#include "data/dataset.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/file.h"
#include "data/widen.h"
#include "kernel/random.h"

static const double two_pi = 6.283185307179586;

Format field_format(const Field *field) {
    return field->kind == FIELD_INTS || field->kind == FIELD_WINDOWS ? FORMAT_INT32 : FORMAT_FP32;
}

int64_t field_bytes(const Field *field) {
    return field->kind == FIELD_NONE ? 0 : field->size * 4; // both formats have 4
}

static size_t field_memory(const Field *field, int64_t count) {
    size_t element = field->kind == FIELD_BYTES ? 1 : 4;
    return field->data ? (size_t)count * (size_t)field->size * element : 0;
}

size_t dataset_memory(const Dataset *dataset) {
    size_t text = dataset->text ? (size_t)dataset->text->count * sizeof *dataset->text->ids : 0;
    return field_memory(&dataset->x, dataset->count) + field_memory(&dataset->y, dataset->count) +
           text;
}

static Dataset *dataset_new(Error *error) {
    Dataset *dataset = calloc(1, sizeof *dataset);
    if (!dataset) {
        error_fail(error, ERROR_MEMORY, "no memory for a dataset");
        return NULL;
    }
    dataset->references = 1;
    dataset->scale = 1.0f / 255;
    return dataset;
}

Dataset *dataset_hold(Dataset *dataset) {
    __atomic_add_fetch(&dataset->references, 1, __ATOMIC_RELAXED);
    return dataset;
}

void dataset_release(Dataset *dataset) {
    if (!dataset || __atomic_sub_fetch(&dataset->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    free(dataset->x.data);
    free(dataset->y.data);
    dataset_free_names(dataset->names, dataset->classes);
    text_release(dataset->text);
    free(dataset);
}

void dataset_take_names(Dataset *dataset, char **names) {
    dataset->names = names;
}

void dataset_free_names(char **names, int32_t count) {
    for (int32_t i = 0; names && i < count; i++)
        free(names[i]);
    free(names);
}

static bool check_labels(const int32_t *labels, int64_t count, int32_t classes, const char *name,
                         Error *error) {
    for (int64_t i = 0; i < count; i++)
        if (labels[i] < 0 || labels[i] >= classes)
            return error_fail(error, ERROR_FAILED,
                              FILE_PATH ": label %" PRId32 " at index %" PRId64
                                        " is outside the %" PRId32 " classes (0 to %" PRId32
                                        "); correct the labels or the number of classes",
                              name, labels[i], i + 1, classes, classes - 1);
    return true;
}

static bool check_finite(const float *values, int64_t count, int64_t size, const char *name,
                         Error *error) {
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return error_fail(error, ERROR_FAILED,
                              "%s: element %" PRId64 " of sample %" PRId64 " is %s (index %" PRId64
                              "); clean the data before training on it",
                              name, i % size + 1, i / size + 1,
                              isnan(values[i]) ? "nan"
                              : values[i] > 0  ? "inf"
                                               : "-inf",
                              i + 1);
    return true;
}

// ---- Arrays of the caller -----------------------------------------------------------------------

static bool copy_tensor(Field *field, const DatasetTensor *tensor, const char *name, Error *error) {
    if (tensor->format != FORMAT_FP32 && tensor->format != FORMAT_INT32)
        return error_fail(error, ERROR_USAGE, "%s: is %s; data is taken as fp32 or int32", name,
                          format_name(tensor->format));
    if (tensor->ndim < 1 || tensor->ndim > VIEW_MAX_DIMS)
        return error_fail(error, ERROR_USAGE,
                          "%s: has %d dimensions; 1 to %d are possible, the first counts samples",
                          name, tensor->ndim, VIEW_MAX_DIMS);
    field->kind = tensor->format == FORMAT_FP32 ? FIELD_FLOATS : FIELD_INTS;
    field->ndim = tensor->ndim - 1;
    field->size = 1;
    int64_t count = tensor->shape[0];
    bool fits = count > 0;
    for (int i = 0; i < field->ndim; i++) {
        field->shape[i] = tensor->shape[i + 1];
        fits = fits && field->shape[i] > 0 &&
               !__builtin_mul_overflow(field->size, field->shape[i], &field->size);
    }
    int64_t bytes = 0;
    fits = fits && !__builtin_mul_overflow(count, field->size, &count) &&
           !__builtin_mul_overflow(count, (int64_t)4, &bytes);
    if (!fits)
        return error_fail(error, ERROR_USAGE, "%s: has no elements, or more than memory can hold",
                          name);
    if (field->kind == FIELD_FLOATS && !check_finite(tensor->data, count, field->size, name, error))
        return false;
    field->data = malloc((size_t)bytes);
    if (!field->data)
        return error_fail(error, ERROR_MEMORY, "%s: no memory for a copy of %" PRId64 " bytes",
                          name, bytes);
    memcpy(field->data, tensor->data, (size_t)bytes);
    return true;
}

Dataset *dataset_from_tensors(const DatasetTensor *x, const DatasetTensor *y, int32_t classes,
                              Error *error) {
    Dataset *dataset = dataset_new(error);
    if (!dataset || !copy_tensor(&dataset->x, x, "x", error))
        goto failed;
    dataset->count = dataset->starts = x->shape[0];
    if (!y)
        return dataset;
    if (!copy_tensor(&dataset->y, y, "y", error))
        goto failed;
    if (y->shape[0] != dataset->count) {
        error_fail(error, ERROR_USAGE,
                   "x has %" PRId64 " samples and y has %" PRId64 "; they must be equal",
                   dataset->count, y->shape[0]);
        goto failed;
    }
    if (classes > 0 && dataset->y.kind != FIELD_INTS) {
        error_fail(error, ERROR_USAGE, "y: classes are int32, these are %s",
                   format_name(y->format));
        goto failed;
    }
    if (classes > 0 &&
        !check_labels(dataset->y.data, dataset->count * dataset->y.size, classes, "y", error))
        goto failed;
    dataset->classes = classes;
    return dataset;

failed:
    dataset_release(dataset);
    return NULL;
}

// ---- Images -------------------------------------------------------------------------------------

Dataset *dataset_from_images(IdxArray *images, int32_t *labels, int32_t classes, Error *error) {
    Dataset *dataset = dataset_new(error);
    if (!dataset)
        return NULL;
    dataset->count = dataset->starts = images->shape[0];
    Field *x = &dataset->x;
    *x = (Field){.kind = FIELD_BYTES, .size = images->count / images->shape[0]};
    for (int i = 1; i < images->ndim; i++)
        x->shape[x->ndim++] = images->shape[i];
    if (images->ndim == 3) // h, w: one channel
        x->shape[x->ndim++] = 1;
    x->data = images->data;
    images->data = NULL;
    dataset->y = (Field){.kind = FIELD_INTS, .size = 1, .data = labels};
    dataset->classes = classes;
    return dataset;
}

Dataset *dataset_from_bytes(IdxArray *images, const char *images_name, IdxArray *labels,
                            const char *labels_name, int32_t classes, Error *error) {
    Dataset *dataset = NULL;
    int32_t *classes_of = NULL;
    if (images->shape[0] != labels->shape[0]) {
        error_fail(error, ERROR_FAILED,
                   FILE_PATH ": has %" PRId64 " images but %.120s has %" PRId64
                             " labels; are they of the same set?",
                   images_name, images->shape[0], labels_name, labels->shape[0]);
        goto done;
    }
    classes_of = malloc((size_t)labels->count * sizeof *classes_of);
    if (!classes_of) {
        error_fail(error, ERROR_MEMORY, "no memory for %" PRId64 " labels", labels->count);
        goto done;
    }
    for (int64_t i = 0; i < labels->count; i++)
        classes_of[i] = labels->data[i];
    if (classes == 0 || check_labels(classes_of, labels->count, classes, labels_name, error))
        dataset = dataset_from_images(images, classes_of, classes, error);
done:
    if (!dataset)
        free(classes_of);
    idx_clear(images);
    idx_clear(labels);
    return dataset;
}

Dataset *dataset_from_idx(const char *images, const char *labels, int32_t classes, Error *error) {
    IdxArray pixels = {0}, numbers = {0};
    if (!idx_read(labels, 1, 1, &numbers, error) || !idx_read(images, 2, 4, &pixels, error)) {
        idx_clear(&numbers);
        return NULL;
    }
    return dataset_from_bytes(&pixels, images, &numbers, labels, classes, error);
}

// ---- Text ---------------------------------------------------------------------------------------

Dataset *dataset_from_text(Text *text, int64_t begin, int64_t end, int64_t context,
                           const char *name, Error *error) {
    assert(begin >= 0 && begin <= end && end <= text->count);
    if (context < 1 || context >= end - begin) {
        error_fail(error, context < 1 ? ERROR_USAGE : ERROR_FAILED,
                   FILE_PATH ": a context of %" PRId64 " needs a text of %" PRId64
                             " characters or more, this has %" PRId64
                             "; take a longer text or a context from 1 on that fits",
                   name, context, context < INT64_MAX ? context + 1 : context, end - begin);
        return NULL;
    }
    Dataset *dataset = dataset_new(error);
    if (!dataset)
        return NULL;
    dataset->text = text_hold(text);
    dataset->first = begin;
    dataset->starts = end - begin - context;
    dataset->count = (end - begin - 1) / context;
    dataset->classes = text->vocabulary;
    dataset->x = (Field){.kind = FIELD_WINDOWS, .ndim = 1, .shape = {context}, .size = context};
    dataset->y = dataset->x;
    return dataset;
}

// ---- Synthetic ----------------------------------------------------------------------------------

// A standard normal number as a function of (seed, position), by Box and Muller.
static double normal_at(uint64_t seed, uint64_t position) {
    RandomBlock block = random_block(seed, position);
    double above_zero = ((double)block.word[0] + 1) * 0x1p-32;
    double turn = (double)block.word[1] * 0x1p-32;
    return sqrt(-2 * log(above_zero)) * cos(two_pi * turn);
}

Dataset *dataset_synthetic(int64_t first, int64_t count, int ndim, const int64_t *shape,
                           int32_t classes, double separation, uint64_t seed, Error *error) {
    enum { MOST_ELEMENTS = 1 << 30 };
    int64_t size = 1, total = 0, end, last;
    bool fits = ndim >= 0 && ndim <= FIELD_MAX_DIMS && count > 0 && classes > 0 && first >= 0;
    for (int i = 0; fits && i < ndim; i++)
        fits = shape[i] > 0 && !__builtin_mul_overflow(size, shape[i], &size);
    // Samples are numbered through, and so are their elements.
    fits = fits && !__builtin_add_overflow(first, count, &end) &&
           !__builtin_mul_overflow(end, size, &last);
    if (!fits || __builtin_mul_overflow(size, count, &total) || total > MOST_ELEMENTS ||
        !isfinite(separation)) {
        error_fail(error, ERROR_USAGE,
                   "synthetic data needs at least one sample and one class, positive dimensions "
                   "and at most %d elements in all",
                   MOST_ELEMENTS);
        return NULL;
    }
    Dataset *dataset = dataset_new(error);
    if (!dataset)
        return NULL;
    float *x = dataset->x.data = malloc((size_t)total * sizeof *x);
    int32_t *y = dataset->y.data = malloc((size_t)count * sizeof *y);
    if (!x || !y) {
        error_fail(error, ERROR_MEMORY, "no memory for %" PRId64 " synthetic samples", count);
        dataset_release(dataset);
        return NULL;
    }
    // Two streams of numbers: the centres' and the noise's.
    uint64_t centres = seed ^ UINT64_C(0x63656E7472657321), noise = seed;
    for (int64_t i = 0; i < count; i++) {
        int64_t sample = first + i;
        y[i] = (int32_t)(sample % classes);
        for (int64_t k = 0; k < size; k++) {
            double centre = normal_at(centres, (uint64_t)(y[i] * size + k));
            double value = separation * centre + normal_at(noise, (uint64_t)(sample * size + k));
            x[i * size + k] = (float)value;
        }
    }
    dataset->count = dataset->starts = count;
    dataset->classes = classes;
    dataset->x.kind = FIELD_FLOATS;
    dataset->x.ndim = ndim;
    dataset->x.size = size;
    for (int i = 0; i < ndim; i++)
        dataset->x.shape[i] = shape[i];
    dataset->y.kind = FIELD_INTS;
    dataset->y.size = 1;
    return dataset;
}

// ---- Batches ------------------------------------------------------------------------------------

static void fill_field(const Dataset *dataset, const Field *field, const int64_t *indices,
                       int64_t count, int64_t later, void *out) {
    const WidenTable *widen = widen_table();
    int64_t size = field->size;
    for (int64_t i = 0; i < count; i++) {
        switch (field->kind) {
        case FIELD_NONE: break;
        case FIELD_BYTES:
            widen->bytes((float *)out + i * size, (const uint8_t *)field->data + indices[i] * size,
                         (size_t)size, dataset->scale, dataset->shift);
            break;
        case FIELD_FLOATS:
        case FIELD_INTS:
            memcpy((char *)out + i * size * 4, (const char *)field->data + indices[i] * size * 4,
                   (size_t)size * 4);
            break;
        case FIELD_WINDOWS:
            widen->tokens((int32_t *)out + i * size,
                          dataset->text->ids + dataset->first + indices[i] + later, (size_t)size);
            break;
        }
    }
}

void dataset_fill(const Dataset *dataset, const int64_t *indices, int64_t count, void *x, void *y) {
    fill_field(dataset, &dataset->x, indices, count, 0, x);
    fill_field(dataset, &dataset->y, indices, count, 1, y); // the next tokens
}
