#include "checkpoint/weights.h"

#include <stdlib.h>
#include <string.h>

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
