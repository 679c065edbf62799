#include "ops/gather.h"

static bool counts_begin(Device *device, Parameter *parameter, Error *error) {
    const GradStats none = {0};
    if (!parameter->gathered)
        parameter->gathered = tensor_new_bytes(device, sizeof none, MEMORY_OPTIMIZER, error);
    if (!parameter->gathered)
        return false;
    device_write(device, parameter->gathered->view.data, &none, sizeof none);
    parameter->gathered_count = 0;
    return true;
}

static bool round_both(Engine *engine, Parameter *parameter, const Tensor *sum, bool is_rounded,
                       const Tensor *gradient, Error *error) {
    Device *device = engine->device;
    if (!engine->unread)
        engine->unread = tensor_new_bytes(device, sizeof(StepFlags), MEMORY_OPTIMIZER, error);
    if (!engine->unread || (!is_rounded && !counts_begin(device, parameter, error)))
        return false;
    ScanItem items[2];
    int count = 0;
    const Tensor *both[2] = {gradient, is_rounded ? NULL : sum};
    for (int i = 0; i < 2 && both[i]; i++)
        items[count++] = (ScanItem){
            .gradient = both[i]->view,
            .round_to = parameter->round_to,
            .stats = parameter->gathered ? parameter->gathered->view.data : NULL,
            .adds = true,
        };
    // One at a time: they count in the same place.
    bool done = true;
    for (int i = 0; done && i < count; i++)
        done = device->backend->multi->scan(device, &items[i], 1, NULL, engine->unread->view.data,
                                            error);
    parameter->gathered_count += count;
    return done;
}

static bool is_alone(const Tensor *tensor) {
    return tensor->references == 1 && tensor->storage->references == 1;
}

bool engine_gather(void *context, Tensor *leaf, Tensor **sum, bool is_rounded, Tensor *gradient,
                   Error *error) {
    Engine *engine = context;
    Parameter *parameter = parameter_of(leaf);
    bool is_full = (*sum)->view.format == FORMAT_FP32 && gradient->view.format == FORMAT_FP32;
    if (!is_alone(*sum) || !view_is_dense(&(*sum)->view)) { // a script has it
        Tensor *own = op_cast(engine, *sum, (*sum)->view.format, error);
        if (!own)
            return false;
        tensor_release(*sum);
        *sum = own;
    }
    bool rounds =
        parameter && is_full && parameter->round_to != FORMAT_FP32 && !parameter->full_gradients;
    if (rounds && !round_both(engine, parameter, *sum, is_rounded, gradient, error))
        return false;
    if (parameter && !rounds)
        parameter->gathered_count = 0;
    return grad_add_in_place(*sum, gradient, error);
}
