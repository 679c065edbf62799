// One step: gradients gathered, scanned and applied; and what can be read of it afterwards.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "optim/optimizer_private.h"

Tensor *gradient_prepare(Engine *engine, Tensor *parameter, const char *what, Error *error) {
    Tensor *gradient = parameter->grad;
    if (gradient->view.format != FORMAT_FP32) {
        error_fail(error, ERROR_USAGE,
                   "the gradient of %s is %s, which cannot hold true gradients; keep the parameter "
                   "in fp32, or make it a layer's",
                   what, format_name(gradient->view.format));
        return NULL;
    }
    if (view_is_dense(&gradient->view))
        return gradient;
    bool recording = tape_set_enabled(engine->tape, false);
    Tensor *dense = op_cast(engine, gradient, FORMAT_FP32, error);
    tape_set_enabled(engine->tape, recording);
    if (!dense)
        return NULL;
    tensor_release(gradient);
    parameter->grad = dense;
    return dense;
}

Format gradient_rounding(const Tensor *parameter) {
    const Parameter *record = parameter_of(parameter);
    return record ? record->round_to : parameter->view.format;
}

bool optimizer_has_gradient(const Optimizer *optimizer) {
    for (int i = 0; i < optimizer->count; i++)
        if (optimizer->parameters[i]->grad)
            return true;
    return false;
}

void optimizer_zero_grad(Optimizer *optimizer) {
    for (int i = 0; i < optimizer->count; i++)
        tensor_drop_grad(optimizer->parameters[i]);
    optimizer->scanned = false;
}

// ---- the items ----------------------------------------------------------------------------------

static void item_build(Optimizer *optimizer, int item, int i) {
    OptimizerSlot *slot = &optimizer->slots[i];
    slot->has_had_gradient = true;
    UpdateItem *update = &optimizer->updates[item];
    *update = (UpdateItem){.parameter = optimizer->parameters[i]->view,
                           .gradient = optimizer->parameters[i]->grad->view,
                           .steps = &optimizer->steps[i],
                           .weight_decay = (float)optimizer->groups[slot->group].weight_decay};
    for (int m = 0; m < 2; m++)
        if (slot->moment[m])
            update->moment[m] = slot->moment[m]->view;
    optimizer->scans[item] =
        (ScanItem){.gradient = update->gradient, .stats = &optimizer->stats[i]};
    optimizer->item_slot[item] = i;
}

// Of an item that was built before, only these can have changed since.
static void item_refresh(Optimizer *optimizer, int item, int i, const Tensor *gradient) {
    UpdateItem *update = &optimizer->updates[item];
    const Tensor *tensor = optimizer->parameters[i];
    const Parameter *record = parameter_of(tensor);
    const Tensor *low = record ? record->low : NULL;
    update->parameter.data = tensor->view.data;
    update->lr_factor = optimizer->groups[optimizer->slots[i].group].lr_factor;
    update->gradient.data = optimizer->scans[item].gradient.data = gradient->view.data;
    if (!low)
        update->low.data = NULL;
    else if (update->low.data != low->view.data || update->low.format != low->view.format)
        update->low = low->view;
    update->moved = optimizer->measuring ? &optimizer->moved[2 * i] : NULL;
    bool is_done = optimizer->options.full_gradients || tensor->is_rounded;
    optimizer->scans[item].round_to = is_done ? FORMAT_FP32 : gradient_rounding(tensor);
    const Parameter *counted = tensor->is_rounded ? record : NULL;
    optimizer->slots[i].was_gathered = counted && counted->gathered_count > 0;
}

static bool gather(Optimizer *optimizer, Error *error) {
    int items = 0;
    optimizer->arrivals = optimizer->writes = 0;
    for (int i = 0; i < optimizer->count; i++) {
        Tensor *tensor = optimizer->parameters[i], *gradient = tensor->grad;
        if (!gradient)
            continue;
        if (gradient->view.format != FORMAT_FP32 || !view_is_dense(&gradient->view)) {
            char name[64];
            parameter_text(tensor, i, name, sizeof name);
            gradient = gradient_prepare(optimizer->engine, tensor, name, error);
            if (!gradient)
                return false;
        }
        if (tensor_is_hollow(gradient))
            return tensor_refuse_hollow(gradient, error);
        if (optimizer->item_slot[items] != i)
            item_build(optimizer, items, i);
        item_refresh(optimizer, items, i, gradient);
        optimizer->arrivals += tensor->arrivals;
        optimizer->writes += tensor_version(gradient);
        items++;
    }
    optimizer->item_count = items;
    if (items == 0)
        return error_fail(error, ERROR_USAGE,
                          "%s: no gradient was recorded: call :backward() on the loss first",
                          optimizer_text(optimizer).text);
    return true;
}

// ---- the scan -----------------------------------------------------------------------------------

static bool scan(Optimizer *optimizer, const ScaleState *scale, StepFlags *flags, Error *error) {
    Device *device = optimizer->engine->device;
    if (!device->backend->multi->scan(device, optimizer->scans, optimizer->item_count, scale, flags,
                                      error))
        return false;
    for (int k = 0; k < optimizer->item_count; k++) {
        Tensor *tensor = optimizer->parameters[optimizer->item_slot[k]];
        tensor->carries = GRAD_TRUE;
        tensor->is_rounded = true;
    }
    optimizer->flags = flags;
    optimizer->scanned = true;
    optimizer->scanned_count = optimizer->item_count;
    optimizer->scanned_arrivals = optimizer->arrivals;
    optimizer->scanned_writes = optimizer->writes;
    return true;
}

bool optimizer_scan(Optimizer *optimizer, const ScaleState *scale, Error *error) {
    return gather(optimizer, error) && scan(optimizer, scale, optimizer->single, error);
}

// ---- scales that gradients carry ----------------------------------------------------------------

static bool is_scale(uint64_t number) {
    return number != GRAD_TRUE && number != GRAD_OF_ANY;
}

const GradPart *optimizer_scaled_part(const Optimizer *optimizer, GradPart *own, int *at) {
    for (int i = 0; i < optimizer->count; i++) {
        const Tensor *tensor = optimizer->parameters[i];
        *at = i;
        *own = (GradPart){.grad = tensor->grad, .carries = tensor->carries};
        if (tensor->grad && is_scale(tensor->carries))
            return own;
        for (const GradPart *part = tensor->apart; part; part = part->next)
            if (is_scale(part->carries))
                return part;
    }
    return NULL;
}

bool optimizer_carries_only(const Optimizer *optimizer, uint64_t number) {
    for (int i = 0; i < optimizer->count; i++) {
        const Tensor *tensor = optimizer->parameters[i];
        if (tensor->apart)
            return false;
        if (tensor->grad && tensor->carries != number && tensor->carries != GRAD_OF_ANY)
            return false;
    }
    return true;
}

// The item of what carries a scale; made true by it.
static ScanItem item_of(const Optimizer *optimizer, const Tensor *tensor, const Tensor *gradient,
                        bool is_rounded) {
    bool is_done = optimizer->options.full_gradients || is_rounded;
    return (ScanItem){.gradient = gradient->view,
                      .round_to = is_done ? FORMAT_FP32 : gradient_rounding(tensor)};
}

bool optimizer_scan_scale(Optimizer *optimizer, uint64_t number, const ScaleState *scale,
                          StepFlags *flags, Error *error) {
    Device *device = optimizer->engine->device;
    ScanItem *items = calloc(2 * (size_t)optimizer->count, sizeof *items);
    if (!items)
        return error_fail(error, ERROR_MEMORY, "no memory to divide gradients by their scale");
    int count = 0;
    bool done = true;
    for (int i = 0; done && i < optimizer->count; i++) {
        Tensor *tensor = optimizer->parameters[i];
        char name[64];
        parameter_text(tensor, i, name, sizeof name);
        bool is_own = tensor->grad && (tensor->carries == number || tensor->carries == GRAD_OF_ANY);
        if (is_own && (done = gradient_prepare(optimizer->engine, tensor, name, error) != NULL)) {
            items[count++] = item_of(optimizer, tensor, tensor->grad, tensor->is_rounded);
            tensor->carries = GRAD_TRUE;
            tensor->is_rounded = true;
        }
        for (GradPart *part = tensor->apart; part; part = part->next)
            if (part->carries == number) { // one a scale
                items[count++] = item_of(optimizer, tensor, part->grad, part->is_rounded);
                part->carries = GRAD_TRUE;
                part->is_rounded = true;
                break;
            }
    }
    done = done && device->backend->multi->scan(device, items, count, scale, flags, error);
    free(items);
    return done;
}

static bool join(Optimizer *optimizer, int i, Error *error) {
    Tensor *tensor = optimizer->parameters[i];
    char name[64];
    parameter_text(tensor, i, name, sizeof name);
    if (!tensor->apart)
        return true;
    if (!gradient_prepare(optimizer->engine, tensor, name, error))
        return false;
    // What no scale was on is rounded as the others were.
    if (!tensor->is_rounded) {
        ScanItem item = item_of(optimizer, tensor, tensor->grad, false);
        Device *device = optimizer->engine->device;
        if (!device->backend->multi->scan(device, &item, 1, NULL, optimizer->joined, error))
            return false;
        tensor->is_rounded = true;
    }
    for (GradPart *part = tensor->apart; part; part = tensor->apart) {
        if (!grad_add_in_place(tensor->grad, part->grad, error))
            return false;
        tensor->apart = part->next;
        tensor_release(part->grad);
        free(part);
    }
    return true;
}

bool optimizer_scan_joined(Optimizer *optimizer, Error *error) {
    for (int i = 0; i < optimizer->count; i++)
        if (!join(optimizer, i, error))
            return false;
    return gather(optimizer, error) && scan(optimizer, NULL, optimizer->joined, error);
}

// ---- the step -----------------------------------------------------------------------------------

// max_grad_norm goes by the gradients as they are now: clipped meanwhile, perhaps. Whether they
// were finite stays what the scan found.
static bool measure_norm(Optimizer *optimizer, Error *error) {
    const Device *device = optimizer->engine->device;
    optimizer->rule.measured = NULL;
    if (!(optimizer->rule.max_grad_norm > 0) || optimizer->writes == optimizer->scanned_writes)
        return true;
    ScanItem *items = calloc((size_t)optimizer->item_count, sizeof *items);
    if (!items)
        return error_fail(error, ERROR_MEMORY, "no memory to measure the gradients");
    for (int i = 0; i < optimizer->item_count; i++)
        items[i] = (ScanItem){.gradient = optimizer->scans[i].gradient, .round_to = FORMAT_FP32};
    bool done = device->backend->multi->scan(
        optimizer->engine->device, items, optimizer->item_count, NULL, optimizer->measured, error);
    free(items);
    optimizer->rule.measured = optimizer->measured;
    return done;
}

bool optimizer_step(Optimizer *optimizer, Error *error) {
    Engine *engine = optimizer->engine;
    Device *device = engine->device;
    if (!gather(optimizer, error))
        return false;
    if (!optimizer->scanned &&
        !(scalers_allow_step(optimizer, error) && optimizer_scan_joined(optimizer, error)))
        return false;
    if (optimizer->scanned_count != optimizer->item_count)
        return error_fail(error, ERROR_USAGE,
                          "%s: %d gradients were unscaled and %d are there now; call :backward() "
                          "before unscale, and zero_grad after step",
                          optimizer_text(optimizer).text, optimizer->scanned_count,
                          optimizer->item_count);
    if (optimizer->scanned_arrivals != optimizer->arrivals)
        return error_fail(error, ERROR_USAGE,
                          "%s: gradients were added after unscale, and those are still scaled; "
                          "call :backward() for every micro-batch first, unscale once, then step",
                          optimizer_text(optimizer).text);
    if (!measure_norm(optimizer, error))
        return false;
    if (optimizer->random_blocks > 0)
        optimizer->rule.random =
            engine_random(engine, (int64_t)(optimizer->random_blocks * 4)); // four numbers a block
    if (!device->backend->multi->update(device, &optimizer->rule, optimizer->updates,
                                        optimizer->item_count, optimizer->flags,
                                        optimizer->progress, error))
        return false;
    optimizer->scanned = optimizer->measuring = false;
    scalers_note_step(optimizer);
    for (int k = 0; k < optimizer->item_count; k++) {
        Tensor *tensor = optimizer->parameters[optimizer->item_slot[k]];
        const Parameter *record = parameter_of(tensor);
        tensor_written(tensor);
        if (record && record->low)
            tensor_written(record->low);
    }
    return engine_settle_buffers(engine, optimizer->parameters, optimizer->count, optimizer->flags,
                                 error);
}

// ---- these wait ---------------------------------------------------------------------------------

OptimizerReport optimizer_report(Optimizer *optimizer) {
    Device *device = optimizer->engine->device;
    StepFlags flags;
    Progress progress;
    device_read(device, &flags, optimizer->flags, sizeof flags);
    device_read(device, &progress, optimizer->progress, sizeof progress);
    return (OptimizerReport){.scanned = optimizer->scanned,
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
    device_read(optimizer->engine->device, &squared, &optimizer->flags->norm_squared,
                sizeof squared);
    return sqrt(squared);
}

uint64_t optimizer_applied(Optimizer *optimizer) {
    Progress progress;
    device_read(optimizer->engine->device, &progress, optimizer->progress, sizeof progress);
    return progress.applied;
}

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

// A sum of parts that were rounded one by one: what the rounding did is the mean of what it did to
// them; what overflowed in any is infinite in the sum.
static void add_gathered(const Optimizer *optimizer, int i, GradStats *stats) {
    const Parameter *record = parameter_of(optimizer->parameters[i]);
    GradStats parts;
    if (!record || !record->gathered || record->gathered_count == 0)
        return;
    uint64_t count = (uint64_t)record->gathered_count;
    device_read(optimizer->engine->device, &parts, record->gathered->view.data, sizeof parts);
    stats->flushed = smaller((parts.flushed + count / 2) / count, stats->count);
    stats->subnormal = smaller((parts.subnormal + count / 2) / count, stats->count);
    stats->zeros -= smaller(stats->zeros, stats->flushed); // those that are 0 for it
    stats->overflowed = smaller(parts.overflowed, stats->infinities + stats->nans);
    uint64_t infinities = smaller(stats->infinities, stats->overflowed);
    stats->infinities -= infinities;
    stats->nans -= stats->overflowed - infinities;
}

void optimizer_read_stats(Optimizer *optimizer, GradStats *stats) {
    if (optimizer->item_count < optimizer->count)
        memset(stats, 0, (size_t)optimizer->count * sizeof *stats);
    for (int k = 0; k < optimizer->item_count; k++) { // neighbours in one go
        int first = optimizer->item_slot[k], count = 1;
        while (k + 1 < optimizer->item_count && optimizer->item_slot[k + 1] == first + count) {
            count++;
            k++;
        }
        device_read(optimizer->engine->device, &stats[first], &optimizer->stats[first],
                    (size_t)count * sizeof *stats);
    }
    for (int i = 0; i < optimizer->count; i++)
        if (optimizer->slots[i].was_gathered && stats[i].count > 0)
            add_gathered(optimizer, i, &stats[i]);
}

void optimizer_measure(Optimizer *optimizer) {
    const double unknown = (double)NAN;
    for (int i = 0; i < 2 * optimizer->count; i++)
        device_write(optimizer->engine->device, &optimizer->moved[i], &unknown, sizeof unknown);
    optimizer->measuring = true;
}

void optimizer_read_moves(Optimizer *optimizer, ParameterMove *moves) {
    _Static_assert(sizeof *moves == 2 * sizeof *optimizer->moved, "read as they lie");
    device_read(optimizer->engine->device, moves, optimizer->moved,
                (size_t)optimizer->count * sizeof *moves);
}
