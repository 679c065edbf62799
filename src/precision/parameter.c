#include "precision/parameter.h"

#include <stdlib.h>
#include <string.h>

#include "number/int8.h"

static void parameter_release(TensorCompanion *companion) {
    Parameter *parameter = (Parameter *)companion;
    tensor_release(parameter->low);
    tensor_release(parameter->gathered);
    tensor_release(parameter->whole);
    tensor_release(parameter->steps);
    calibration_free(parameter->calibration);
    free(parameter->name);
    free(parameter);
}

bool parameter_attach(Tensor *tensor, const char *name, int layer, bool norm_or_bias,
                      Error *error) {
    Parameter *parameter = calloc(1, sizeof *parameter);
    char *copy = strdup(name);
    if (!parameter || !copy) {
        free(parameter);
        free(copy);
        return error_fail(error, ERROR_MEMORY, "no memory for the parameter %s", name);
    }
    const Parameter *before = parameter_of(tensor);
    if (before)
        parameter->full_gradients = before->full_gradients;
    else
        tensor->requires_grad = true; // one that is named anew may have been frozen meanwhile
    if (before)
        tensor->parameter->release(tensor->parameter);
    parameter->companion.release = parameter_release;
    parameter->name = copy;
    parameter->layer = layer;
    parameter->norm_or_bias = norm_or_bias;
    parameter->round_to = tensor->view.format;
    parameter->taker = OP_COUNT;
    parameter->asked_in = FORMAT_COUNT;
    tensor->parameter = &parameter->companion;
    return true;
}

void parameter_touch(Tensor *tensor) {
    Parameter *parameter = parameter_of(tensor);
    if (!parameter)
        return;
    tensor_release(parameter->low);
    tensor_release(parameter->whole);
    tensor_release(parameter->steps);
    parameter->low = parameter->whole = parameter->steps = NULL;
}

Tensor *parameter_in_format(Tensor *tensor, Format format, Error *error) {
    Parameter *parameter = parameter_of(tensor);
    if (tensor->view.format == format)
        return tensor;
    if (parameter->low && parameter->low->view.format == format)
        return parameter->low;
    parameter_touch(tensor);
    size_t value_bytes = format_table[tensor->view.format].bytes;
    size_t copy_bytes = format_table[format].bytes;
    MemoryPurpose purpose = copy_bytes > value_bytes ? MEMORY_MASTERS : MEMORY_WEIGHTS;
    Tensor *low = tensor_copy_as(tensor, format, purpose, error);
    if (!low)
        return NULL;
    // The weights that the model computes with are the copies, unless it keeps no masters.
    if (copy_bytes < value_bytes)
        allocator_reassign(tensor_device(tensor)->allocator, tensor->storage->data, MEMORY_MASTERS);
    parameter->low = low;
    return low;
}

// On the host: it is done once, and to what `export` writes too.
static bool make_whole(Tensor *tensor, const float *values, int8_t *numbers, float *steps,
                       Error *error) {
    Parameter *parameter = parameter_of(tensor);
    Device *device = tensor_device(tensor);
    const int64_t rows = tensor->view.shape[0], count = tensor_count(tensor);
    const int64_t shape[] = {rows, rows ? count / rows : 0};
    if (!int8_from_rows(values, rows, shape[1], numbers, steps))
        return error_fail(error, ERROR_FAILED,
                          "%s: not all of it is finite, which int8 cannot hold: evaluate it in "
                          "fp32, --layer LAYER=fp32",
                          parameter->name);
    parameter->whole =
        tensor_from_host(device, FORMAT_INT8, 2, shape, numbers, MEMORY_WEIGHTS, error);
    if (parameter->whole)
        parameter->steps =
            tensor_from_host(device, FORMAT_FP32, 1, shape, steps, MEMORY_WEIGHTS, error);
    return parameter->steps != NULL;
}

bool parameter_in_int8(Tensor *tensor, Tensor **whole, Tensor **steps, Error *error) {
    Parameter *parameter = parameter_of(tensor);
    if (!parameter->steps) {
        parameter_touch(tensor);
        const size_t count = (size_t)tensor_count(tensor), rows = (size_t)tensor->view.shape[0];
        float *values = malloc((count + rows) * sizeof *values + count + 1);
        if (!values)
            return error_fail(error, ERROR_MEMORY, "no memory for %s in int8", parameter->name);
        bool done =
            tensor_read(tensor, values, error) &&
            make_whole(tensor, values, (int8_t *)(values + count + rows), values + count, error);
        free(values);
        if (!done)
            return false;
        allocator_reassign(tensor_device(tensor)->allocator, tensor->storage->data, MEMORY_MASTERS);
    }
    *whole = parameter->whole;
    *steps = parameter->steps;
    return true;
}

bool parameter_store_in(Tensor *tensor, Format format, Error *error) {
    Tensor *low = tensor_copy_as(tensor, format, MEMORY_WEIGHTS, error);
    if (!low)
        return false;
    tensor->view.format = format;
    tensor_adopt(tensor, low);
    parameter_touch(tensor);
    allocator_assign(tensor_device(tensor)->allocator, tensor->storage->data, MEMORY_WEIGHTS);
    tensor_release(low);
    return true;
}

static bool is_same_shape(const View *a, const View *b) {
    return a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

static bool check_target(const Tensor *tensor, const Tensor *source, Error *error) {
    char target[96], from[96];
    tensor_describe(tensor, target, sizeof target);
    tensor_describe(source, from, sizeof from);
    if (!is_same_shape(&tensor->view, &source->view))
        return error_fail(error, ERROR_USAGE, "copy: %s cannot be copied onto %s", from, target);
    if (tensor->origin)
        return error_fail(error, ERROR_USAGE,
                          "copy: %s was computed from other tensors, whose gradients would not be "
                          "those of its new contents; copy onto a leaf",
                          target);
    if (!view_is_dense(&tensor->view))
        return error_fail(error, ERROR_USAGE,
                          "copy: %s is a view with gaps; copy onto the tensor that it looks at",
                          target);
    return true;
}

bool parameter_write(Tensor *tensor, const Tensor *source, Error *error) {
    if (!check_target(tensor, source, error))
        return false;
    Tensor *apart = NULL; // of a source that would be overwritten while it is read
    if (source->storage == tensor->storage) {
        apart = tensor_copy_as(source, source->view.format, MEMORY_WORKSPACE, error);
        if (!apart)
            return false;
        source = apart;
    }
    bool done = tensor_copy_into(tensor, source, error);
    parameter_touch(tensor);
    tensor_release(apart);
    return done;
}
