// data/dataset.h: samples to learn from, held in memory as compactly as they came.
//
// A Dataset is a row of samples, each with an input x and, mostly, a target y. Whatever the source,
// it ends as one of four kinds of field, so that the loader knows four and no file format. All that
// came from outside was checked when the dataset was made: a batch cannot fail.
//
// A Dataset never changes once made, is reference counted, and may be read, held and released from
// any thread. The functions that make one return one reference, or NULL with the error filled.
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "data/idx.h"
#include "data/text.h"
#include "kernel/view.h"

typedef enum FieldKind {
    FIELD_NONE,    // no targets
    FIELD_BYTES,   // uint8, given out as fp32: byte * scale + shift
    FIELD_FLOATS,  // fp32
    FIELD_INTS,    // int32: classes
    FIELD_WINDOWS, // `size` tokens of a text, given out as int32
} FieldKind;

enum { FIELD_MAX_DIMS = VIEW_MAX_DIMS - 1 }; // a batch has one more

typedef struct Field {
    FieldKind kind;
    int ndim; // of one sample; 0: a single number
    int64_t shape[FIELD_MAX_DIMS];
    int64_t size; // elements of one sample
    void *data;   // owned; NULL for windows
} Field;

typedef struct Dataset {
    int references; // atomic
    int64_t count;  // samples; of a text: windows that do not overlap
    Field x, y;
    float scale, shift; // of FIELD_BYTES: 1/255 and 0 unless changed before the first batch
    int32_t classes;    // 0: y is not a class, or any
    char **names;       // of the classes, [classes]; owned; NULL: they have none
    Text *text;         // of FIELD_WINDOWS
    int64_t first;      // the token with which the first window begins
    int64_t starts;     // how many tokens a window can begin with
} Dataset;

// The caller's arrays, copied. x: fp32 or int32; y: the same, or no data at all. Dimension 0 counts
// samples. With classes > 0, y must be int32 below it.
typedef struct DatasetTensor {
    Format format;
    int ndim;
    const int64_t *shape;
    const void *data;
} DatasetTensor;
Dataset *dataset_from_tensors(const DatasetTensor *x, const DatasetTensor *y, int32_t classes,
                              Error *error) MUST_CHECK;

// Images and labels from IDX files. Images of 3 dimensions get a channel: [n,h,w,1].
Dataset *dataset_from_idx(const char *images, const char *labels, int32_t classes,
                          Error *error) MUST_CHECK;

// The same from arrays, whose memory is taken over even when it fails. The names begin errors.
Dataset *dataset_from_bytes(IdxArray *images, const char *images_name, IdxArray *labels,
                            const char *labels_name, int32_t classes, Error *error) MUST_CHECK;

// The same with labels below `classes`, from malloc; both are taken over if it succeeds.
Dataset *dataset_from_images(IdxArray *images, int32_t *labels, int32_t classes,
                             Error *error) MUST_CHECK;

// Gives classes names, from malloc each and together. NULL is fine for what frees them.
void dataset_take_names(Dataset *dataset, char **names);
void dataset_free_names(char **names, int32_t count);

// Windows of context + 1 tokens out of text[begin, end): x is the first `context` of them, y each
// one's successor. `name` begins the error that the text is too short.
Dataset *dataset_from_text(Text *text, int64_t begin, int64_t end, int64_t context,
                           const char *name, Error *error) MUST_CHECK;

// Points around one centre a class, in fp32. Each coordinate of a centre is normal with deviation
// `separation`, each sample is its centre plus standard normal noise; classes take turns. The
// centres depend on `seed` alone and sample i on seed and `first + i`, so that a test set is the
// same call with another `first`.
Dataset *dataset_synthetic(int64_t first, int64_t count, int ndim, const int64_t *shape,
                           int32_t classes, double separation, uint64_t seed,
                           Error *error) MUST_CHECK;

size_t dataset_memory(const Dataset *dataset); // bytes that it holds
Dataset *dataset_hold(Dataset *dataset);       // one more reference
void dataset_release(Dataset *dataset);        // one less; NULL is fine

// What a field is given out as, and the bytes of one sample of it.
Format field_format(const Field *field);
int64_t field_bytes(const Field *field);

// Writes `count` samples one after the other. indices[i] is a sample's number; of a text, the
// number of its first token among `starts`. y may be NULL when the dataset has none.
void dataset_fill(const Dataset *dataset, const int64_t *indices, int64_t count, void *x, void *y);
