#include "precision/parameter.h"

#include <stdlib.h>
#include <string.h>

static void parameter_release(TensorCompanion *companion) {
    Parameter *parameter = (Parameter *)companion;
    tensor_release(parameter->low);
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
    if (tensor->parameter)
        tensor->parameter->release(tensor->parameter);
    parameter->companion.release = parameter_release;
    parameter->name = copy;
    parameter->layer = layer;
    parameter->norm_or_bias = norm_or_bias;
    parameter->round_to = tensor->view.format;
    tensor->parameter = &parameter->companion;
    tensor->requires_grad = true;
    return true;
}

void parameter_touch(Tensor *tensor) {
    Parameter *parameter = parameter_of(tensor);
    if (!parameter)
        return;
    tensor_release(parameter->low);
    parameter->low = NULL;
}

Tensor *parameter_in_format(Tensor *tensor, Format format, Error *error) {
    Parameter *parameter = parameter_of(tensor);
    if (tensor->view.format == format)
        return tensor;
    if (parameter->low && parameter->low->view.format == format)
        return parameter->low;
    parameter_touch(tensor);
    Device *device = tensor_device(tensor);
    size_t value_bytes = format_table[tensor->view.format].bytes;
    size_t copy_bytes = format_table[format].bytes;
    Tensor *low = tensor_new(device, format, tensor->view.ndim, tensor->view.shape,
                             copy_bytes > value_bytes ? MEMORY_MASTERS : MEMORY_WEIGHTS, error);
    if (!low)
        return NULL;
    OpAttr attr = {.out_format = format, .has_out_format = true};
    KernelCall call;
    call.op = OP_cast;
    call.input_count = call.output_count = 1;
    call.attr = &attr;
    call.input[0] = tensor->view;
    call.output[0] = low->view;
    if (!device_run(device, &call, error)) {
        tensor_release(low);
        return NULL;
    }
    // The weights that the model computes with are the copies, unless it keeps no masters.
    if (copy_bytes < value_bytes)
        allocator_assign(device->allocator, tensor->storage->data, MEMORY_MASTERS);
    parameter->low = low;
    return low;
}
