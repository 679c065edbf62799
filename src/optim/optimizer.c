// What an optimizer is made of: options and their checks, moments, the memory on the device.
#include "optim/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "kernel/allocator.h"
#include "kernel/random.h"
#include "optim/optimizer_private.h"

static const struct {
    const char *name;
    int moments;
    bool has_epsilon;
} kind_table[OPTIMIZER_COUNT] = {
    [OPTIMIZER_SGD] = {"SGD", 0, false}, // one with momentum
    [OPTIMIZER_ADAM] = {"Adam", 2, true},
    [OPTIMIZER_ADAMW] = {"AdamW", 2, true},
    [OPTIMIZER_LAMB] = {"LAMB", 2, true},
};

const char *optimizer_kind_name(OptimizerKind kind) {
    return kind_table[kind].name;
}

OptimizerOptions optimizer_defaults(OptimizerKind kind) {
    OptimizerOptions options = {.kind = kind,
                                .schedule = {.kind = SCHEDULE_CONSTANT, .every = 1, .factor = 1},
                                .beta1 = 0.9,
                                .beta2 = 0.999,
                                .epsilon = 1e-8,
                                .bias_correction = true};
    if (kind == OPTIMIZER_ADAMW || kind == OPTIMIZER_LAMB)
        options.weight_decay = 0.01;
    if (kind == OPTIMIZER_LAMB) {
        options.epsilon = 1e-6;
        options.max_grad_norm = 1;
    }
    return options;
}

// ---- checks -------------------------------------------------------------------------------------

static bool refuse(Error *error, const char *of, const char *name, double value,
                   const char *wanted) {
    return error_fail(error, ERROR_USAGE, "%s: %s is %g: %s wanted", of, name, value, wanted);
}

static bool is_amount(double value) {
    return value >= 0 && isfinite(value);
}

#define SCHEDULE_NAMES "constant linear_warmup cosine step"

bool schedule_kind_parse(const char *text, ScheduleKind *kind, Error *error) {
    static const char *const names[SCHEDULE_KINDS] = {
        [SCHEDULE_CONSTANT] = "constant",
        [SCHEDULE_LINEAR_WARMUP] = "linear_warmup",
        [SCHEDULE_COSINE] = "cosine",
        [SCHEDULE_STEP] = "step",
    };
    for (int i = 0; i < SCHEDULE_KINDS; i++)
        if (strcmp(text, names[i]) == 0) {
            *kind = (ScheduleKind)i;
            return true;
        }
    const char *near = nearest_name(text, names, SCHEDULE_KINDS);
    return error_fail(error, ERROR_USAGE, "schedule %.60s: not known%s%s%s" SCHEDULE_NAMES, text,
                      near ? "; did you mean " : "", near ? near : "",
                      near ? "? One of " : "; one of ");
}

static bool check_steps(const char *of, const Schedule *schedule, Error *error) {
    if (!(schedule->every > 0) || !isfinite(schedule->every))
        return refuse(error, of, "schedule.every", schedule->every, "a positive number");
    if (!is_amount(schedule->factor))
        return refuse(error, of, "schedule.factor", schedule->factor,
                      "a finite number of at least 0");
    return true;
}

static bool check_rise_and_fall(const char *of, const Schedule *schedule, Error *error) {
    if (!is_amount(schedule->warmup))
        return refuse(error, of, "schedule.warmup", schedule->warmup,
                      "a number of steps, at least 0,");
    if (!(schedule->total >= schedule->warmup) || !(schedule->total > 0) ||
        !isfinite(schedule->total))
        return refuse(error, of, "schedule.total", schedule->total,
                      "a positive number of steps, no fewer than schedule.warmup,");
    if (!is_amount(schedule->floor))
        return refuse(error, of, "schedule.floor", schedule->floor,
                      "a finite number of at least 0");
    if (!(schedule->start >= 0 && schedule->start <= 1))
        return refuse(error, of, "schedule.start", schedule->start, "a number from 0 to 1");
    return true;
}

static bool check_schedule(const char *of, const Schedule *schedule, Error *error) {
    if (!is_amount(schedule->rate))
        return refuse(error, of, "lr", schedule->rate, "a finite number of at least 0");
    switch (schedule->kind) {
    case SCHEDULE_CONSTANT: return true;
    case SCHEDULE_STEP: return check_steps(of, schedule, error);
    case SCHEDULE_LINEAR_WARMUP:
    case SCHEDULE_COSINE: return check_rise_and_fall(of, schedule, error);
    }
    return error_fail(error, ERROR_USAGE, "%s: schedule.kind is number %d: one of " SCHEDULE_NAMES,
                      of, (int)schedule->kind);
}

static bool check_options(const OptimizerOptions *options, Error *error) {
    const char *of = optimizer_kind_name(options->kind);
    const struct {
        const char *name;
        double value;
    } betas[] = {{"beta1", options->beta1}, {"beta2", options->beta2}};
    if (!check_schedule(of, &options->schedule, error))
        return false;
    if (!is_amount(options->weight_decay))
        return refuse(error, of, "weight_decay", options->weight_decay,
                      "a finite number of at least 0");
    if (!(options->momentum >= 0 && options->momentum <= 1))
        return refuse(error, of, "momentum", options->momentum, "a number from 0 to 1");
    if (options->nesterov && options->momentum == 0)
        return error_fail(error, ERROR_USAGE,
                          "%s: nesterov looks ahead along the momentum: set momentum too", of);
    if (!is_amount(options->max_grad_norm))
        return refuse(error, of, "max_grad_norm", options->max_grad_norm,
                      "a finite number, 0 for none,");
    if (!kind_table[options->kind].has_epsilon)
        return true;
    for (size_t i = 0; i < sizeof betas / sizeof *betas; i++)
        if (!(betas[i].value >= 0 && betas[i].value < 1))
            return refuse(error, of, betas[i].name, betas[i].value, "a number from 0 to below 1");
    if (!is_amount(options->epsilon))
        return refuse(error, of, "eps", options->epsilon, "a positive number");
    return true;
}

static void describe(Optimizer *optimizer) {
    Gradients *gradients = optimizer->gradients;
    snprintf(gradients->text, sizeof gradients->text, "%s over %d parameter%s",
             optimizer_kind_name(optimizer->options.kind), gradients->count,
             gradients->count == 1 ? "" : "s");
}

static bool check_parameter(const Optimizer *optimizer, int i, Error *error) {
    const OptimizerOptions *options = &optimizer->options;
    const Tensor *tensor = optimizer->gradients->parameters[i];
    const char *of = optimizer_kind_name(options->kind);
    Format format = tensor->view.format;
    char name[64];
    parameter_text(tensor, i, name, sizeof name);
    if (tensor->origin)
        return error_fail(error, ERROR_USAGE,
                          "%s: %s was computed from other tensors and keeps no gradient; pass a "
                          "leaf, or detach it",
                          of, name);
    char list[FORMAT_LIST_SIZE];
    if (!format_trains(format))
        return error_fail(error, ERROR_USAGE, "%s: %s is %s: parameters are %s", of, name,
                          format_name(format), format_list(list, format_trains, ", ", " or "));
    if (!view_is_dense(&tensor->view))
        return error_fail(error, ERROR_USAGE,
                          "%s: %s is a view with gaps; pass the tensor that it looks at, or a "
                          "clone",
                          of, name);
    for (int k = 0; k < i; k++)
        if (optimizer->gradients->parameters[k] == tensor)
            return error_fail(error, ERROR_USAGE, "%s: %s was given twice; list it once", of, name);
    if (!kind_table[options->kind].has_epsilon)
        return true;
    if (format_round(format, options->epsilon, OVERFLOW_TO_SPECIAL) == 0)
        return error_fail(error, ERROR_USAGE,
                          "%s: eps %g rounds to 0 in %s, the format of the state of %s, which "
                          "would divide by 0; take eps = %s%s",
                          of, options->epsilon, format_name(format), name,
                          format == FORMAT_FP16 ? "1e-4" : "1e-8",
                          format == FORMAT_FP32 ? "" : ", or keep fp32 masters");
    return true;
}

static bool check_group(const char *of, const OptimizerGroup *group, int number, double base,
                        Error *error) {
    char name[40];
    if (!is_amount(group->lr_factor)) {
        snprintf(name, sizeof name, "the lr of group %d", number);
        return refuse(error, of, name, group->lr_factor * base, "a finite number of at least 0");
    }
    if (!is_amount(group->weight_decay)) {
        snprintf(name, sizeof name, "the weight_decay of group %d", number);
        return refuse(error, of, name, group->weight_decay, "a finite number of at least 0");
    }
    return true;
}

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
    int moments = kind_table[options->kind].moments;
    if (options->kind == OPTIMIZER_SGD && options->momentum > 0)
        moments = 1;
    int number = optimizer->group_count++;
    optimizer->groups[number] = (GroupSettings){
        .lr_factor = group->lr_factor, .weight_decay = group->weight_decay, .count = group->count};
    for (int k = 0; k < group->count; k++) {
        int i = optimizer->gradients->count;
        OptimizerSlot *slot = &optimizer->slots[i];
        Tensor *tensor = group->parameters[k];
        gradients_add(optimizer->gradients, tensor);
        if (!check_parameter(optimizer, i, error))
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

Optimizer *optimizer_new(Engine *engine, const OptimizerOptions *options,
                         const OptimizerGroup *groups, int group_count, Error *error) {
    const char *of = optimizer_kind_name(options->kind);
    int count = 0;
    if (!check_options(options, error))
        return NULL;
    for (int i = 0; i < group_count; i++) {
        if (!check_group(of, &groups[i], i + 1, options->schedule.rate, error))
            return NULL;
        count += groups[i].count;
    }
    if (count == 0) {
        error_fail(error, ERROR_USAGE,
                   "%s: no parameters; pass model:parameters(), of a model that has some", of);
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
    if (!check_schedule(optimizer_kind_name(optimizer->options.kind), &next, error))
        return false;
    optimizer->options.schedule = optimizer->rule.schedule = next;
    return true;
}

bool optimizer_set_rate(Optimizer *optimizer, double rate, Error *error) {
    if (!is_amount(rate))
        return refuse(error, optimizer_kind_name(optimizer->options.kind), "lr", rate,
                      "a finite number of at least 0");
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
    if (!is_amount(rate))
        return refuse(error, optimizer_kind_name(optimizer->options.kind), "lr", rate,
                      "a finite number of at least 0");
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
    if (!is_amount(factor))
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
