#include "ops/shape.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ops/shape_check.h"

const ShapeRule shape_rules[OP_COUNT] = {
#define OP(name, inputs, outputs, class, family, ...) [OP_##name] = shape_##family,
#include "kernel/ops.def"
};

// Attributes past this are mistakes, and products of two of them cannot overflow.
static const int64_t largest_attribute = INT32_MAX;

ShapeText shape_text(int ndim, const int64_t *shape) {
    ShapeText result = {"["};
    size_t used = 1;
    for (int i = 0; i < ndim; i++) {
        int wrote = snprintf(result.text + used, sizeof result.text - used, "%s%" PRId64,
                             i ? "," : "", shape[i]);
        used += (size_t)wrote;
    }
    snprintf(result.text + used, sizeof result.text - used, "]");
    return result;
}

ShapeText shape_text_of(const View *view) {
    return shape_text(view->ndim, view->shape);
}

bool shape_has(const KernelCall *call, int index) {
    return index < call->input_count && call->input[index].data != NULL;
}

static bool present(const KernelCall *call, int index, const char *name, Error *error) {
    if (shape_has(call, index))
        return true;
    return shape_fail(error, "%s is missing", name);
}

bool shape_floating(const KernelCall *call, int index, const char *name, Error *error) {
    if (!present(call, index, name, error))
        return false;
    Format format = call->input[index].format;
    if (format_is_floating(format))
        return true;
    return shape_fail(error, "%s is %s, a floating format is wanted: convert it with :to", name,
                      format_name(format));
}

bool shape_numbers(const KernelCall *call, int index, const char *name, Error *error) {
    return present(call, index, name, error);
}

Format shape_promoted(const KernelCall *call, int first, int count) {
    Format promoted = FORMAT_UINT8;
    for (int i = first; i < first + count; i++) {
        if (format_is_floating(call->input[i].format))
            return FORMAT_COUNT;
        if (call->input[i].format != FORMAT_UINT8)
            promoted = FORMAT_INT32;
    }
    return promoted;
}

static bool wants_format(const KernelCall *call, int index, const char *name, Format format,
                         Error *error) {
    if (!present(call, index, name, error))
        return false;
    if (call->input[index].format == format)
        return true;
    return shape_fail(error, "%s is %s, %s is wanted: convert it with :to", name,
                      format_name(call->input[index].format), format_name(format));
}

bool shape_integers(const KernelCall *call, int index, const char *name, Error *error) {
    return wants_format(call, index, name, FORMAT_INT32, error);
}

bool shape_mask(const KernelCall *call, int index, const char *name, Error *error) {
    return wants_format(call, index, name, FORMAT_UINT8, error);
}

bool shape_all_floating(const KernelCall *call, int count, const char *const *names, Error *error) {
    for (int i = 0; i < count; i++)
        if (!shape_floating(call, i, names[i], error))
            return false;
    return true;
}

bool shape_wants_dims(const View *view, int ndim, const char *name, const char *form,
                      Error *error) {
    if (view->ndim == ndim)
        return true;
    return shape_fail(error, "%s has shape %s, %d dimensions %s are wanted", name,
                      shape_text_of(view).text, ndim, form);
}

bool shape_wants_same(const View *view, const char *name, const View *other, const char *other_name,
                      Error *error) {
    if (view->ndim == other->ndim &&
        memcmp(view->shape, other->shape, (size_t)view->ndim * sizeof view->shape[0]) == 0)
        return true;
    return shape_fail(error, "%s has shape %s, %s has %s: they must be equal", name,
                      shape_text_of(view).text, other_name, shape_text_of(other).text);
}

bool shape_wants_vector(const View *view, const char *name, int64_t size, const char *of,
                        Error *error) {
    if (view->ndim == 1 && view->shape[0] == size)
        return true;
    return shape_fail(error, "%s has shape %s, [%" PRId64 "] is wanted: one for each %s", name,
                      shape_text_of(view).text, size, of);
}

bool shape_wants_at_least(int64_t value, int64_t least, const char *name, Error *error) {
    if (value >= least && value <= largest_attribute)
        return true;
    return shape_fail(error, "%s is %" PRId64 ", at %s %" PRId64 " is wanted", name, value,
                      value < least ? "least" : "most", value < least ? least : largest_attribute);
}

bool shape_wants_rows(const View *view, const char *name, Error *error) {
    if (view->ndim < 1)
        return shape_fail(error, "%s is a single number, at least one dimension is wanted", name);
    if (view->shape[view->ndim - 1] < 1)
        return shape_fail(error, "%s has shape %s: its last dimension is empty", name,
                          shape_text_of(view).text);
    return true;
}

bool shape_output(View *output, Format format, int ndim, const int64_t *shape, Error *error) {
    if (ndim < 0 || ndim > VIEW_MAX_DIMS)
        return shape_fail(error, "a tensor has 0 to %d dimensions, not %d", VIEW_MAX_DIMS, ndim);
    for (int i = 0; i < ndim; i++)
        if (shape[i] < 0)
            return shape_fail(error, "a dimension is negative: %s", shape_text(ndim, shape).text);
    if (!view_shape_fits(ndim, shape))
        return shape_fail(error, "a tensor of shape %s is too large for any memory",
                          shape_text(ndim, shape).text);
    *output = view_dense(output->data, format, ndim, shape);
    return true;
}

bool shape_output_like(View *output, Format format, const View *view, Error *error) {
    return shape_output(output, format, view->ndim, view->shape, error);
}

bool shape_output_rows(View *output, Format format, const View *view, Error *error) {
    return shape_output(output, format, view->ndim - 1, view->shape, error);
}

bool shape_output_number(View *output, Format format, Error *error) {
    return shape_output(output, format, 0, NULL, error);
}

bool shape_output_broadcast(View *output, Format format, const KernelCall *call, Error *error) {
    int ndim = 0;
    for (int i = 0; i < call->input_count; i++)
        ndim = call->input[i].ndim > ndim ? call->input[i].ndim : ndim;
    int64_t shape[VIEW_MAX_DIMS];
    for (int d = 0; d < ndim; d++) {
        shape[d] = 1;
        const View *from = NULL;
        for (int i = 0; i < call->input_count; i++) {
            const View *view = &call->input[i];
            int own = d - (ndim - view->ndim);
            if (own < 0 || view->shape[own] == 1)
                continue;
            if (from && view->shape[own] != shape[d])
                return shape_fail(error,
                                  "shapes %s and %s do not broadcast: %" PRId64 " meets %" PRId64
                                  ", equal sizes or 1 are wanted",
                                  shape_text_of(from).text, shape_text_of(view).text, shape[d],
                                  view->shape[own]);
            from = view;
            shape[d] = view->shape[own];
        }
    }
    return shape_output(output, format, ndim, shape, error);
}

bool shape_windows(const Window *window, int64_t *count, Error *error) {
    char name[64];
    const struct {
        const char *name;
        int64_t value, least;
    } parts[] = {{"kernel", window->kernel, 1},
                 {"stride", window->stride, 1},
                 {"padding", window->padding, 0},
                 {"dilation", window->dilation, 1},
                 {"input", window->size, 0}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        snprintf(name, sizeof name, "%s %s", parts[i].name, window->name);
        if (!shape_wants_at_least(parts[i].value, parts[i].least, name, error))
            return false;
    }
    int64_t reach = window->dilation * (window->kernel - 1) + 1;
    int64_t padded = window->size + 2 * window->padding;
    if (padded < reach)
        return shape_fail(error,
                          "input %s %" PRId64 " with padding %" PRId64
                          " is smaller than the kernel, which spans %" PRId64,
                          window->name, window->size, window->padding, reach);
    *count = (padded - reach) / window->stride + 1;
    return true;
}
