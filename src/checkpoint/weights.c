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

static bool is_finite(const char *bytes, Format format, size_t count) {
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

bool weights_first_not_finite(SafeFile *file, const char **name, Error *error) {
    static const char *const prefixes[] = {"weight/", "buffer/"};
    const SafeHeader *header = safe_header(file);
    *name = NULL;
    for (int i = 0; i < header->count && !*name; i++) {
        const SafeEntry *entry = &header->entries[i];
        const Format format = safe_type_format(entry->type);
        const size_t size = (size_t)(entry->end - entry->begin);
        const size_t prefix = strlen(prefixes[0]);
        if ((strncmp(entry->name, prefixes[0], prefix) != 0 &&
             strncmp(entry->name, prefixes[1], prefix) != 0) ||
            format == FORMAT_COUNT || format == FORMAT_FP64 || !format_table[format].stores)
            continue;
        char *bytes = malloc(size ? size : 1);
        if (!bytes)
            return error_fail(error, ERROR_MEMORY, "%.80s: no memory for its %zu bytes",
                              entry->name, size);
        const bool done = safe_read(file, entry, bytes, error);
        if (done && !is_finite(bytes, format, size / format_table[format].bytes))
            *name = entry->name + prefix;
        free(bytes);
        if (!done)
            return false;
    }
    return true;
}
