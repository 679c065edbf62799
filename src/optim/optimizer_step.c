// One step: gradients applied; and what can be read of it afterwards.
#include <math.h>

#include "optim/optimizer_private.h"

const StepFlags *optimizer_flags(const Optimizer *optimizer) {
    return optimizer->gradients->flags;
}

bool optimizer_has_had_gradient(const Optimizer *optimizer, int i) {
    return optimizer->gradients->slots[i].has_had_gradient;
}

void optimizer_zero_grad(Optimizer *optimizer) {
    gradients_drop(optimizer->gradients);
}

// ---- the items ----------------------------------------------------------------------------------

static void item_build(Optimizer *optimizer, int item, int i) {
    const Gradients *gradients = optimizer->gradients;
    const OptimizerSlot *slot = &optimizer->slots[i];
    UpdateItem *update = &optimizer->updates[item];
    *update = (UpdateItem){.parameter = gradients->parameters[i]->view,
                           .gradient = gradients->items[item].gradient,
                           .steps = &optimizer->steps[i],
                           .weight_decay = (float)optimizer->groups[slot->group].weight_decay};
    for (int m = 0; m < 2; m++)
        if (slot->moment[m])
            update->moment[m] = slot->moment[m]->view;
    optimizer->update_slot[item] = i;
}

// Of an item that was built before, only these can have changed since.
static void item_refresh(Optimizer *optimizer, int item, int i) {
    UpdateItem *update = &optimizer->updates[item];
    const Tensor *tensor = optimizer->gradients->parameters[i];
    const Parameter *record = parameter_of(tensor);
    const Tensor *low = record ? record->low : NULL;
    update->parameter.data = tensor->view.data;
    update->lr_factor = optimizer->groups[optimizer->slots[i].group].lr_factor;
    update->gradient.data = optimizer->gradients->items[item].gradient.data;
    if (!low)
        update->low.data = NULL;
    else if (update->low.data != low->view.data || update->low.format != low->view.format)
        update->low = low->view;
    update->moved = optimizer->measuring ? &optimizer->moved[2 * i] : NULL;
}

// One for each gradient that was gathered.
static void prepare_updates(Optimizer *optimizer) {
    const Gradients *gradients = optimizer->gradients;
    for (int item = 0; item < gradients->item_count; item++) {
        int i = gradients->item_slot[item];
        if (optimizer->update_slot[item] != i)
            item_build(optimizer, item, i);
        item_refresh(optimizer, item, i);
    }
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
    if (!gradients_prepare_step(gradients, error) || !measure_norm(optimizer, error))
        return false;
    prepare_updates(optimizer);
    if (optimizer->random_blocks > 0)
        optimizer->rule.random =
            engine_random(engine, (int64_t)(optimizer->random_blocks * 4)); // four numbers a block
    if (!device->backend->multi->update(device, &optimizer->rule, optimizer->updates,
                                        gradients->item_count, gradients->flags,
                                        optimizer->progress, error))
        return false;
    optimizer->measuring = false;
    gradients_note_step(gradients);
    for (int k = 0; k < gradients->item_count; k++) {
        Tensor *tensor = gradients->parameters[gradients->item_slot[k]];
        const Parameter *record = parameter_of(tensor);
        tensor_written(tensor);
        if (record && record->low)
            tensor_written(record->low);
    }
    return engine_settle_buffers(engine, gradients->parameters, gradients->count, gradients->flags,
                                 error);
}

bool optimizer_step_scaled(Optimizer *optimizer, Scaler *scaler, Error *error) {
    if (!scaler_prepare_step(scaler, optimizer->gradients, error))
        return false;
    if (!optimizer_step(optimizer, error)) {
        error_prefix(error, "step");
        return false;
    }
    return true;
}

// ---- these wait ---------------------------------------------------------------------------------

OptimizerReport optimizer_report(Optimizer *optimizer) {
    Device *device = optimizer->engine->device;
    StepFlags flags;
    Progress progress;
    device_read(device, &flags, optimizer->gradients->flags, sizeof flags);
    device_read(device, &progress, optimizer->progress, sizeof progress);
    return (OptimizerReport){.scanned = optimizer->gradients->scanned,
                             .found_inf = flags.found_inf != 0,
                             .norm = sqrt(flags.norm_squared),
                             .sum = flags.sum,
                             .largest = (double)flags.largest,
                             .count = flags.count,
                             .applied = progress.applied,
                             .skipped = progress.skipped};
}

double optimizer_norm(Optimizer *optimizer) {
    double squared;
    device_read(optimizer->engine->device, &squared, &optimizer->gradients->flags->norm_squared,
                sizeof squared);
    return sqrt(squared);
}

uint64_t optimizer_applied(Optimizer *optimizer) {
    Progress progress;
    device_read(optimizer->engine->device, &progress, optimizer->progress, sizeof progress);
    return progress.applied;
}

void optimizer_read_stats(Optimizer *optimizer, GradStats *stats) {
    gradients_read_stats(optimizer->gradients, stats);
}

void optimizer_measure(Optimizer *optimizer) {
    const double unknown = (double)NAN;
    for (int i = 0; i < 2 * optimizer->gradients->count; i++)
        device_write(optimizer->engine->device, &optimizer->moved[i], &unknown, sizeof unknown);
    optimizer->measuring = true;
}

void optimizer_read_moves(Optimizer *optimizer, ParameterMove *moves) {
    _Static_assert(sizeof *moves == 2 * sizeof *optimizer->moved, "read as they lie");
    device_read(optimizer->engine->device, moves, optimizer->moved,
                (size_t)optimizer->gradients->count * sizeof *moves);
}
