#include "checkpoint/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "number/convert.h"
#include "number/inline.h"

// The format that a type is taken in; FORMAT_COUNT: it is not.
static Format format_of(SafeType type) {
    Format format = safe_type_format(type);
    if (format == FORMAT_FP64)
        return FORMAT_FP32;
    return format != FORMAT_COUNT && format_table[format].stores ? format : FORMAT_COUNT;
}

static void narrow_in_place(char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        double wide;
        memcpy(&wide, bytes + i * sizeof wide, sizeof wide);
        float narrow = number_fp64_to_fp32(wide);
        memcpy(bytes + i * sizeof narrow, &narrow, sizeof narrow);
    }
}

Tensor *weights_read(Device *device, SafeFile *file, const SafeEntry *entry, Error *error) {
    Format format = format_of(entry->type);
    if (format == FORMAT_COUNT || entry->ndim > VIEW_MAX_DIMS) {
        error_fail(error, ERROR_FAILED, "%.80s: %s of %d dimensions cannot be a tensor here",
                   entry->name, safe_type_name(entry->type), entry->ndim);
        return NULL;
    }
    size_t size = (size_t)(entry->end - entry->begin);
    char *bytes = malloc(size ? size : 1);
    Tensor *tensor = NULL;
    if (!bytes)
        error_fail(error, ERROR_MEMORY, "%.80s: no memory for its %zu bytes", entry->name, size);
    else if (safe_read(file, entry, bytes, error)) {
        if (entry->type == SAFE_F64)
            narrow_in_place(bytes, size / sizeof(double));
        tensor =
            tensor_from_host(device, format, entry->ndim, entry->shape, bytes, MEMORY_DATA, error);
    }
    free(bytes);
    return tensor;
}

// ---- a model's entries --------------------------------------------------------------------------

const char *weights_model_name(const char *entry, bool *is_weight) {
    static const char weight[] = "weight/", buffer[] = "buffer/";
    *is_weight = strncmp(entry, weight, sizeof weight - 1) == 0;
    if (*is_weight)
        return entry + sizeof weight - 1;
    return strncmp(entry, buffer, sizeof buffer - 1) == 0 ? entry + sizeof buffer - 1 : NULL;
}

bool weights_takers_are_known(const SafeHeader *header) {
    return safe_header_note(header, WEIGHTS_NOTE_TAKERS) != NULL;
}

const char *weights_taker(const SafeHeader *header, const char *name) {
    static const char before[] = WEIGHTS_NOTE_TAKER;
    for (int i = 0; i < header->note_count; i++)
        if (strncmp(header->notes[i].key, before, sizeof before - 1) == 0 &&
            strcmp(header->notes[i].key + sizeof before - 1, name) == 0)
            return header->notes[i].value;
    return NULL;
}

static bool are_finite(Format format, const char *bytes, size_t count) {
    enum { BLOCK = 1024 };
    float values[BLOCK];
    bool finite = true;
    for (size_t at = 0; at < count && finite; at += BLOCK) {
        const size_t size = count - at < BLOCK ? count - at : BLOCK;
        convert_to_fp32(format, bytes + at * format_table[format].bytes, values, size);
        for (size_t i = 0; i < size; i++)
            finite = finite && isfinite(values[i]);
    }
    return finite;
}

// What is of no format that a model has its state in is passed over.
static bool look_at(SafeFile *file, const SafeEntry *entry, bool *finite, Error *error) {
    const Format format = safe_type_format(entry->type);
    const size_t size = (size_t)(entry->end - entry->begin);
    *finite = true;
    if (format == FORMAT_COUNT || format == FORMAT_FP64 || !format_table[format].stores)
        return true;
    char *bytes = malloc(size ? size : 1);
    bool done = bytes ? safe_read(file, entry, bytes, error)
                      : error_fail(error, ERROR_MEMORY, "%.80s: no memory for its %zu bytes",
                                   entry->name, size);
    if (done)
        *finite = are_finite(format, bytes, size / format_table[format].bytes);
    free(bytes);
    return done;
}

bool weights_first_not_finite(SafeFile *file, const char **name, Error *error) {
    const SafeHeader *header = safe_header(file);
    *name = NULL;
    for (int i = 0; i < header->count && !*name; i++) {
        const SafeEntry *entry = &header->entries[i];
        bool is_weight, finite;
        const char *own = weights_model_name(entry->name, &is_weight);
        if (!own)
            continue;
        if (!look_at(file, entry, &finite, error))
            return false;
        *name = finite ? NULL : own;
    }
    return true;
}
