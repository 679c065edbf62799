#include "tensor/tensor.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static Storage *storage_new(Device *device, size_t bytes, MemoryPurpose purpose, Error *error) {
    Storage *storage = malloc(sizeof *storage);
    if (!storage) {
        error_fail(error, ERROR_MEMORY, "no memory for a tensor");
        return NULL;
    }
    void *data = allocator_take(device->allocator, bytes, purpose, error);
    if (!data) {
        free(storage);
        return NULL;
    }
    *storage = (Storage){.references = 1,
                         .device = device,
                         .data = data,
                         .bytes = bytes,
                         .marks = device->marks.written};
    return storage;
}

static void storage_release(Storage *storage) {
    if (--storage->references > 0)
        return;
    allocator_give(storage->device->allocator, storage->data);
    free(storage);
}

static Tensor *header_new(Device *device, Error *error) {
    if (!allocator_add_host(device->allocator, TENSOR_HOST_BYTES, error))
        return NULL;
    Tensor *tensor = malloc(sizeof *tensor); // calloc would not ask the thread's own cache
    if (!tensor) {
        allocator_remove_host(device->allocator, TENSOR_HOST_BYTES);
        error_fail(error, ERROR_MEMORY, "no memory for a tensor");
    }
    return tensor;
}

static void header_free(Device *device, Tensor *tensor) {
    allocator_remove_host(device->allocator, TENSOR_HOST_BYTES);
    free(tensor);
}

Tensor *tensor_new(Device *device, Format format, int ndim, const int64_t *shape,
                   MemoryPurpose purpose, Error *error) {
    assert(ndim >= 0 && ndim <= VIEW_MAX_DIMS);
    if (!view_shape_fits(ndim, shape)) {
        error_fail(error, ERROR_MEMORY, "a tensor of this shape is larger than any memory");
        return NULL;
    }
    View view = view_dense(NULL, format, ndim, shape);
    size_t bytes = (size_t)view_count(&view) * format_table[format].bytes;
    Tensor *tensor = header_new(device, error);
    if (!tensor)
        return NULL;
    Storage *storage = storage_new(device, bytes, purpose, error);
    if (!storage) {
        header_free(device, tensor);
        return NULL;
    }
    view.data = storage->data;
    *tensor = (Tensor){.references = 1, .view = view, .storage = storage};
    return tensor;
}

Tensor *tensor_new_bytes(Device *device, size_t bytes, MemoryPurpose purpose, Error *error) {
    const int64_t numbers[1] = {(int64_t)((bytes + sizeof(float) - 1) / sizeof(float))};
    return tensor_new(device, FORMAT_FP32, 1, numbers, purpose, error);
}

Tensor *tensor_view(Tensor *base, const View *view, Error *error) {
    Tensor *tensor = header_new(tensor_device(base), error);
    if (!tensor)
        return NULL;
    *tensor = (Tensor){.references = 1, .view = *view, .storage = base->storage};
    tensor->storage->references++;
    return tensor;
}

Tensor *tensor_from_host(Device *device, Format format, int ndim, const int64_t *shape,
                         const void *host, MemoryPurpose purpose, Error *error) {
    Tensor *tensor = tensor_new(device, format, ndim, shape, purpose, error);
    if (tensor)
        device_write(device, tensor->view.data, host,
                     (size_t)tensor_count(tensor) * format_table[format].bytes);
    return tensor;
}

bool tensor_copy_into(Tensor *target, const Tensor *source, Error *error) {
    OpAttr attr = {.out_format = target->view.format, .has_out_format = true};
    KernelCall call; // large: only what is read is filled
    call.op = OP_cast;
    call.layer = 0;
    call.input_count = call.output_count = 1;
    call.attr = &attr;
    call.input[0] = source->view;
    call.output[0] = target->view;
    tensor_written(target);
    target->storage->fault = 0;
    return device_run(tensor_device(target), &call, error);
}

Tensor *tensor_copy_as(const Tensor *tensor, Format format, MemoryPurpose purpose, Error *error) {
    Tensor *copy = tensor_new(tensor_device(tensor), format, tensor->view.ndim, tensor->view.shape,
                              purpose, error);
    if (copy && !tensor_copy_into(copy, tensor, error)) {
        tensor_release(copy);
        return NULL;
    }
    return copy;
}

bool tensor_refuse_unreadable(const Tensor *tensor, Error *error) {
    char text[96];
    tensor_describe(tensor, text, sizeof text);
    return error_fail(error, ERROR_FAILED, "%s: %s", text, tensor_device(tensor)->marks.why);
}

bool tensor_read(const Tensor *tensor, void *host, Error *error) {
    if (!tensor_check_readable(tensor, error))
        return false;
    Device *device = tensor_device(tensor);
    size_t bytes = (size_t)tensor_count(tensor) * format_table[tensor->view.format].bytes;
    if (view_is_dense(&tensor->view)) {
        device_read(device, host, tensor->view.data, bytes);
        return device_check(device, error);
    }
    Tensor *copy = tensor_copy_as(tensor, tensor->view.format, MEMORY_WORKSPACE, error);
    if (!copy)
        return false;
    device_read(device, host, copy->view.data, bytes);
    tensor_release(copy);
    return device_check(device, error);
}

bool tensor_item(const Tensor *tensor, double *value, Error *error) {
    if (tensor_count(tensor) != 1) {
        char text[96];
        tensor_describe(tensor, text, sizeof text);
        return error_fail(
            error, ERROR_USAGE,
            "item: one element wanted, the tensor is %s; use :table() or reduce it first", text);
    }
    if (!tensor_check_readable(tensor, error))
        return false;
    double raw; // the largest of elements
    Format format = tensor->view.format;
    device_read(tensor_device(tensor), &raw, tensor->view.data, format_table[format].bytes);
    *value = format_load(format, &raw);
    return device_check(tensor_device(tensor), error);
}

void tensor_drop_grad(Tensor *tensor) {
    for (GradPart *part = tensor->apart, *next; part; part = next) {
        next = part->next;
        tensor_release(part->grad);
        free(part);
    }
    tensor_release(tensor->grad);
    tensor->grad = NULL;
    tensor->apart = NULL;
    tensor->carries = GRAD_TRUE;
    tensor->is_rounded = false;
}

Tensor *tensor_hold(Tensor *tensor) {
    if (tensor)
        tensor->references++;
    return tensor;
}

void tensor_release(Tensor *tensor) {
    if (!tensor || --tensor->references > 0)
        return;
    TensorOrigin *origin = tensor->origin;
    if (tensor->parameter)
        tensor->parameter->release(tensor->parameter);
    if (tensor->hooks)
        tensor->hooks->release(tensor->hooks);
    tensor_drop_grad(tensor); // one level deep: a gradient of a gradient is not kept here
    Device *device = tensor_device(tensor);
    storage_release(tensor->storage);
    header_free(device, tensor);
    if (origin && --origin->references == 0)
        origin->release(origin);
}

void tensor_adopt(Tensor *tensor, const Tensor *other) {
    assert(tensor->view.format == other->view.format);
    Storage *old = tensor->storage;
    Allocator *allocator = old->device->allocator;
    allocator_assign(allocator, other->storage->data, allocator_purpose(allocator, old->data));
    tensor->adopted += old->written + 1;
    tensor->storage = other->storage;
    tensor->storage->references++;
    tensor->view = other->view;
    storage_release(old);
}

void shape_describe(const View *view, char *text, size_t size) {
    int used = snprintf(text, size, "[");
    for (int i = 0; i < view->ndim && used >= 0 && (size_t)used < size; i++)
        used += snprintf(text + used, size - (size_t)used, "%s%lld", i ? ", " : "",
                         (long long)view->shape[i]);
    if (used >= 0 && (size_t)used < size)
        snprintf(text + used, size - (size_t)used, "]");
}

void tensor_describe(const Tensor *tensor, char *text, size_t size) {
    shape_describe(&tensor->view, text, size);
    size_t used = strlen(text);
    if (used < size)
        snprintf(text + used, size - used, " %s", format_name(tensor->view.format));
}
