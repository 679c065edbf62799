// What an optimizer is made of: parameters, moments, the memory on the device; and its settings.
#include "optim/optimizer.h"

#include <stdio.h>
#include <stdlib.h>

#include "kernel/allocator.h"
#include "kernel/random.h"
#include "optim/optimizer_private.h"

// ---- made and freed -----------------------------------------------------------------------------

static Tensor *zeros_like(const Tensor *tensor, Error *error) {
    Device *device = tensor_device(tensor);
    Tensor *zeros = tensor_new(device, tensor->view.format, tensor->view.ndim, tensor->view.shape,
                               MEMORY_OPTIMIZER, error);
    if (!zeros)
        return NULL;
    OpAttr attr = {.out_format = tensor->view.format, .has_out_format = true};
    KernelCall call = {.op = OP_fill, .output_count = 1, .attr = &attr};
    call.output[0] = zeros->view;
    if (!device_run(device, &call, error)) {
        tensor_release(zeros);
        return NULL;
    }
    return zeros;
}

static UpdateRule rule_of(const OptimizerOptions *options) {
    return (UpdateRule){
        .kind = options->kind,
        .schedule = options->schedule, // its rate apart, see optimizer->rates
        .momentum = (float)options->momentum,
        .nesterov = options->nesterov,
        .beta1 = (float)options->beta1,
        .beta2 = (float)options->beta2,
        .epsilon = (float)options->epsilon,
        .bias_correction = options->bias_correction,
        .max_grad_norm = (float)options->max_grad_norm,
        .stochastic = options->stochastic,
    };
}

static bool take_host_memory(Optimizer *optimizer, int count, int group_count, Error *error) {
    size_t size = (size_t)(count ? count : 1);
    optimizer->groups = calloc((size_t)group_count, sizeof *optimizer->groups);
    optimizer->slots = calloc(size, sizeof *optimizer->slots);
    optimizer->plan.items = calloc(size, sizeof *optimizer->plan.items);
    optimizer->update_slot = malloc(size * sizeof *optimizer->update_slot);
    if (!optimizer->groups || !optimizer->slots || !optimizer->plan.items ||
        !optimizer->update_slot)
        return error_fail(error, ERROR_MEMORY, "no memory for an optimizer of %d parameters",
                          count);
    for (int i = 0; i < count; i++)
        optimizer->update_slot[i] = -1;
    optimizer->gradients =
        gradients_new(&optimizer->engine->scalers, count, optimizer->options.full_gradients, error);
    return optimizer->gradients != NULL;
}

static bool take_device_memory(Optimizer *optimizer, Error *error) {
    enum { LINE = 64 };
    _Static_assert(sizeof(Progress) <= LINE, "a line");
    Device *device = optimizer->engine->device;
    size_t count = (size_t)optimizer->gradients->count;
    size_t moved = 2 * count * sizeof(double);
    size_t steps = count * sizeof(uint64_t);
    size_t rates = (1 + (size_t)optimizer->group_count) * sizeof(double);
    size_t bytes = LINE + moved + steps + rates;
    char *memory = allocator_take(device->allocator, bytes, MEMORY_OPTIMIZER, error);
    if (!memory)
        return false;
    optimizer->progress = (Progress *)(void *)memory;
    optimizer->moved = (double *)(void *)(memory + LINE);
    optimizer->steps = (uint64_t *)(void *)(memory + LINE + moved);
    optimizer->rates = (double *)(void *)(memory + LINE + moved + steps);
    optimizer->rule.rates = optimizer->rates;
    optimizer->rates_changed = true;
    optimizer_set_progress(optimizer, 0, 0);
    return gradients_take_memory(optimizer->gradients, error);
}

static bool add_group(Optimizer *optimizer, const OptimizerGroup *group, Error *error) {
    const OptimizerOptions *options = &optimizer->options;
    int moments = optimizer_moment_count(options);
    int number = optimizer->group_count++;
    optimizer->groups[number] = (GroupSettings){
        .lr_factor = group->lr_factor, .weight_decay = group->weight_decay, .count = group->count};
    for (int k = 0; k < group->count; k++) {
        int i = optimizer->gradients->count;
        OptimizerSlot *slot = &optimizer->slots[i];
        Tensor *tensor = group->parameters[k];
        gradients_add(optimizer->gradients, tensor);
        if (!optimizer_check_parameter(optimizer, i, error))
            return false;
        slot->group = number;
        Parameter *record = parameter_of(tensor);
        if (record)
            record->full_gradients = options->full_gradients;
        for (int m = 0; m < moments; m++) {
            slot->moment[m] = zeros_like(tensor, error);
            if (!slot->moment[m])
                return false;
        }
        if (options->stochastic && tensor->view.format != FORMAT_FP32)
            optimizer->random_blocks += random_blocks(tensor_count(tensor));
    }
    return true;
}

static void describe(Optimizer *optimizer) {
    Gradients *gradients = optimizer->gradients;
    snprintf(gradients->text, sizeof gradients->text, "%s over %d parameter%s",
             optimizer_kind_name(optimizer->options.kind), gradients->count,
             gradients->count == 1 ? "" : "s");
}

Optimizer *optimizer_new(Engine *engine, const OptimizerOptions *options,
                         const OptimizerGroup *groups, int group_count, Error *error) {
    const char *of = optimizer_kind_name(options->kind);
    int count = 0;
    if (!optimizer_check_options(options, error))
        return NULL;
    for (int i = 0; i < group_count; i++) {
        if (!optimizer_check_group(of, &groups[i], i + 1, options->schedule.rate, error))
            return NULL;
        count += groups[i].count;
    }
    if (count == 0) {
        error_fail(
            error, ERROR_USAGE,
            "%s: no parameters; pass model:parameters(), of a model that has some: a class's "
            "layers are what its init puts into self",
            of);
        return NULL;
    }
    Optimizer *optimizer = calloc(1, sizeof *optimizer);
    if (!optimizer) {
        error_fail(error, ERROR_MEMORY, "no memory for an optimizer");
        return NULL;
    }
    optimizer->engine = engine;
    optimizer->options = *options;
    optimizer->rule = rule_of(options);
    bool done = take_host_memory(optimizer, count, group_count, error);
    for (int i = 0; done && i < group_count; i++)
        done = add_group(optimizer, &groups[i], error);
    if (done && take_device_memory(optimizer, error)) {
        describe(optimizer);
        return optimizer;
    }
    optimizer_free(optimizer);
    return NULL;
}

void optimizer_free(Optimizer *optimizer) {
    if (!optimizer)
        return;
    for (int i = 0; optimizer->gradients && i < optimizer->gradients->count; i++) {
        tensor_release(optimizer->slots[i].moment[0]);
        tensor_release(optimizer->slots[i].moment[1]);
    }
    gradients_free(optimizer->gradients);
    plan_drop(optimizer->engine->device, &optimizer->plan.table);
    if (optimizer->progress)
        allocator_give(optimizer->engine->device->allocator, optimizer->progress);
    free(optimizer->groups);
    free(optimizer->slots);
    free(optimizer->plan.items);
    free(optimizer->update_slot);
    free(optimizer);
}

// ---- read and set -------------------------------------------------------------------------------

Gradients *optimizer_gradients(const Optimizer *optimizer) {
    return optimizer->gradients;
}

double optimizer_rate(const Optimizer *optimizer) {
    return optimizer->options.schedule.rate;
}

bool optimizer_set_schedule(Optimizer *optimizer, const Schedule *schedule, Error *error) {
    Schedule next = *schedule;
    next.rate = optimizer->options.schedule.rate;
    if (!optimizer_check_schedule(optimizer_kind_name(optimizer->options.kind), &next, error))
        return false;
    optimizer->options.schedule = optimizer->rule.schedule = next;
    return true;
}

bool optimizer_set_rate(Optimizer *optimizer, double rate, Error *error) {
    if (!optimizer_check_rate(optimizer_kind_name(optimizer->options.kind), rate, error))
        return false;
    optimizer->options.schedule.rate = rate;
    optimizer->rates_changed = true;
    return true;
}

int optimizer_group_count(const Optimizer *optimizer) {
    return optimizer->group_count;
}

OptimizerGroup optimizer_group(const Optimizer *optimizer, int group) {
    const GroupSettings *settings = &optimizer->groups[group];
    return (OptimizerGroup){.count = settings->count,
                            .lr_factor = settings->lr_factor,
                            .weight_decay = settings->weight_decay};
}

// Rates are shares of the base. Where that is 0, which all rates are then, this one becomes it.
bool optimizer_set_group_rate(Optimizer *optimizer, int group, double rate, Error *error) {
    double base = optimizer_rate(optimizer);
    if (!optimizer_check_rate(optimizer_kind_name(optimizer->options.kind), rate, error))
        return false;
    if (base == 0 && rate > 0) {
        for (int i = 0; i < optimizer->group_count; i++)
            optimizer->groups[i].lr_factor = 0;
        optimizer->options.schedule.rate = base = rate;
    }
    optimizer->rates_changed = true;
    optimizer->groups[group].lr_factor = rate > 0 ? rate / base : 0;
    return true;
}

void optimizer_set_factor(Optimizer *optimizer, int group, double factor) {
    if (!optimizer_is_amount(factor))
        return;
    optimizer->groups[group].lr_factor = factor;
    optimizer->rates_changed = true;
}

bool optimizer_has_schedule(const Optimizer *optimizer) {
    return optimizer->options.schedule.kind != SCHEDULE_CONSTANT;
}

double optimizer_rate_after(const Optimizer *optimizer, int group, uint64_t applied) {
    double factor = group < 0 ? 1 : optimizer->groups[group].lr_factor;
    return schedule_rate(&optimizer->options.schedule, optimizer_rate(optimizer) * factor, applied);
}

int optimizer_parameter_count(const Optimizer *optimizer) {
    return optimizer->gradients->count;
}

Tensor *optimizer_parameter(const Optimizer *optimizer, int i) {
    return optimizer->gradients->parameters[i];
}

bool optimizer_is_adaptive(const Optimizer *optimizer) {
    return optimizer->options.kind != OPTIMIZER_SGD;
}

bool optimizer_holds_norm(const Optimizer *optimizer) {
    return optimizer->options.max_grad_norm > 0;
}

bool optimizer_is_stochastic(const Optimizer *optimizer) {
    return optimizer->options.stochastic;
}

Tensor *optimizer_moment(const Optimizer *optimizer, int i, int which) {
    return optimizer->slots[i].moment[which];
}

void optimizer_set_progress(Optimizer *optimizer, uint64_t applied, uint64_t skipped) {
    Progress progress = {.applied = applied, .skipped = skipped};
    device_write(optimizer->engine->device, optimizer->progress, &progress, sizeof progress);
    for (int i = 0; i < optimizer->gradients->count; i++)
        device_write(optimizer->engine->device, &optimizer->steps[i], &applied, sizeof applied);
}
