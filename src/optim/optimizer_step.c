// One step: gradients applied.
#include <math.h>

#include "optim/optimizer_private.h"

const StepFlags *optimizer_flags(const Optimizer *optimizer) {
    return optimizer->gradients->flags;
}

void optimizer_zero_grad(Optimizer *optimizer) {
    gradients_drop(optimizer->gradients);
}

// ---- the items ----------------------------------------------------------------------------------

static void item_build(Optimizer *optimizer, int item, int i) {
    const Gradients *gradients = optimizer->gradients;
    const OptimizerSlot *slot = &optimizer->slots[i];
    UpdateItem *update = &optimizer->plan.items[item];
    *update = (UpdateItem){.parameter = gradients->parameters[i]->view,
                           .gradient = gradients->plan.items[item].gradient,
                           .moved = &optimizer->moved[2 * i],
                           .steps = &optimizer->steps[i],
                           .group = slot->group,
                           .weight_decay = (float)optimizer->groups[slot->group].weight_decay};
    for (int m = 0; m < 2; m++)
        if (slot->moment[m])
            update->moment[m] = slot->moment[m]->view;
    optimizer->update_slot[item] = i;
    plan_changed(&optimizer->plan.table);
}

// Whether it lies elsewhere now.
static bool follow(View *view, void *data) {
    bool has_moved = view->data != data;
    view->data = data;
    return has_moved;
}

static bool follow_low(View *view, const Tensor *low) {
    if (!low)
        return follow(view, NULL);
    if (view->data == low->view.data && view->format == low->view.format)
        return false;
    *view = low->view;
    return true;
}

// Of an item that was built before, only these can have changed since.
static void item_refresh(Optimizer *optimizer, int item, int i) {
    UpdateItem *update = &optimizer->plan.items[item];
    const Tensor *tensor = optimizer->gradients->parameters[i];
    const Parameter *record = parameter_of(tensor);
    bool has_moved = follow(&update->parameter, tensor->view.data);
    has_moved |= follow(&update->gradient, optimizer->gradients->plan.items[item].gradient.data);
    has_moved |= follow_low(&update->low, record ? record->low : NULL);
    if (has_moved)
        plan_changed(&optimizer->plan.table);
}

// One for each gradient that was gathered.
static void prepare_updates(Optimizer *optimizer) {
    const Gradients *gradients = optimizer->gradients;
    for (int item = 0; item < gradients->plan.count; item++) {
        int i = gradients->item_slot[item];
        if (optimizer->update_slot[item] != i)
            item_build(optimizer, item, i);
        item_refresh(optimizer, item, i);
    }
    if (optimizer->plan.count != gradients->plan.count)
        plan_changed(&optimizer->plan.table);
    optimizer->plan.count = gradients->plan.count;
}

// The base rate and each group's share of it, where the update finds them.
static void write_rates(Optimizer *optimizer) {
    Device *device = optimizer->engine->device;
    if (!optimizer->rates_changed || device_is_idle(device))
        return;
    double base = optimizer_rate(optimizer);
    device_write(device, &optimizer->rates[0], &base, sizeof base);
    for (int i = 0; i < optimizer->group_count; i++)
        device_write(device, &optimizer->rates[1 + i], &optimizer->groups[i].lr_factor,
                     sizeof base);
    optimizer->rates_changed = false;
}

// ---- the step -----------------------------------------------------------------------------------

// max_grad_norm goes by the gradients as they are now: clipped meanwhile, perhaps.
static bool measure_norm(Optimizer *optimizer, Error *error) {
    UpdateRule *rule = &optimizer->rule;
    rule->measured = NULL;
    return !(rule->max_grad_norm > 0) ||
           gradients_measure(optimizer->gradients, &rule->measured, error);
}

bool optimizer_step(Optimizer *optimizer, Error *error) {
    Engine *engine = optimizer->engine;
    Device *device = engine->device;
    Gradients *gradients = optimizer->gradients;
    ProfileStart began = profile_begin_work(engine);
    bool is_scanned = gradients_prepare_step(gradients, error) && measure_norm(optimizer, error);
    profile_end_work(engine, WORK_SCAN, began);
    if (!is_scanned)
        return false;
    if (engine->watch)
        engine->watch->gradients(engine->watch, gradients);
    prepare_updates(optimizer);
    write_rates(optimizer);
    if (optimizer->random_blocks > 0) { // of four numbers
        RandomAttr random = engine_random(engine, (int64_t)(optimizer->random_blocks * 4));
        optimizer->rule.random = engine_random_of_step(engine, random);
    }
    began = profile_begin_work(engine);
    bool done = device->backend->multi->update(device, &optimizer->rule, &optimizer->plan,
                                               gradients->flags, optimizer->progress, error);
    profile_end_work(engine, WORK_UPDATE, began);
    if (!done)
        return false;
    optimizer->measured = optimizer->rule.measures;
    optimizer->rule.measures = false;
    gradients_note_step(gradients);
    for (int k = 0; k < gradients->plan.count; k++) {
        Tensor *tensor = gradients->parameters[gradients->item_slot[k]];
        const Parameter *record = parameter_of(tensor);
        tensor_written(tensor);
        if (record && record->low)
            tensor_written(record->low);
    }
    return engine_settle_buffers(engine, gradients->parameters, gradients->count, gradients->flags,
                                 error);
}

bool optimizer_unscale(Optimizer *optimizer, Scaler *scaler, Error *error) {
    ProfileStart began = profile_begin_work(optimizer->engine);
    bool done = scaler_unscale(scaler, optimizer->gradients, error);
    profile_end_work(optimizer->engine, WORK_SCAN, began);
    optimizer->scaler = scaler_number(scaler);
    return done;
}

bool optimizer_step_scaled(Optimizer *optimizer, Scaler *scaler, Error *error) {
    ProfileStart began = profile_begin_work(optimizer->engine);
    bool done = scaler_prepare_step(scaler, optimizer->gradients, error);
    profile_end_work(optimizer->engine, WORK_SCAN, began);
    optimizer->scaler = scaler_number(scaler);
    if (!done)
        return false;
    if (!optimizer_step(optimizer, error)) {
        error_prefix(error, "step");
        return false;
    }
    return true;
}

bool optimizer_measure(Optimizer *optimizer, Error *error) {
    const int64_t shape[1] = {2 * (int64_t)optimizer->gradients->count};
    OpAttr attr = {.out_format = FORMAT_FP64, .has_out_format = true};
    attr.create.a = (double)NAN; // of those that do not move it stays unknown
    KernelCall call = {.op = OP_fill, .output_count = 1, .attr = &attr};
    call.output[0] = view_dense(optimizer->moved, FORMAT_FP64, 1, shape);
    optimizer->rule.measures = true;
    return device_run(optimizer->engine->device, &call, error);
}
