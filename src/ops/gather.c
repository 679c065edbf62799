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
    int count = 0;
    const Tensor *both[2] = {gradient, is_rounded ? NULL : sum};
    bool done = true; // one at a time: they count in the same place
    for (; done && count < 2 && both[count]; count++) {
        ScanItem item = {
            .gradient = both[count]->view,
            .round_to = parameter->round_to,
            .stats = parameter->gathered ? parameter->gathered->view.data : NULL,
            .adds = true,
        };
        ScanPlan plan = {.items = &item, .count = 1};
        ProfileStart began = profile_begin_work(engine);
        done = device->backend->multi->scan(device, &plan, NULL, engine->unread->view.data, error);
        profile_end_work(engine, WORK_SCAN, began);
    }
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
