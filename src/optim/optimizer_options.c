// What an optimizer may be asked for: the kinds, what each starts from, and what is refused.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
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

int optimizer_moment_count(const OptimizerOptions *options) {
    if (options->kind == OPTIMIZER_SGD && options->momentum > 0)
        return 1;
    return kind_table[options->kind].moments;
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

bool optimizer_is_amount(double value) {
    return value >= 0 && isfinite(value);
}

bool optimizer_check_rate(const char *of, double rate, Error *error) {
    return optimizer_is_amount(rate) ||
           refuse(error, of, "lr", rate, "a finite number of at least 0");
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
    if (!optimizer_is_amount(schedule->factor))
        return refuse(error, of, "schedule.factor", schedule->factor,
                      "a finite number of at least 0");
    return true;
}

static bool check_rise_and_fall(const char *of, const Schedule *schedule, Error *error) {
    if (!optimizer_is_amount(schedule->warmup))
        return refuse(error, of, "schedule.warmup", schedule->warmup,
                      "a number of steps, at least 0,");
    if (!(schedule->total >= schedule->warmup) || !(schedule->total > 0) ||
        !isfinite(schedule->total))
        return error_fail(error, ERROR_USAGE,
                          "%s: schedule.total is %g: a positive number of steps, no fewer than the "
                          "%g of schedule.warmup, wanted",
                          of, schedule->total, schedule->warmup);
    if (!optimizer_is_amount(schedule->floor))
        return refuse(error, of, "schedule.floor", schedule->floor,
                      "a finite number of at least 0");
    if (!(schedule->start >= 0 && schedule->start <= 1))
        return refuse(error, of, "schedule.start", schedule->start, "a number from 0 to 1");
    return true;
}

bool optimizer_check_schedule(const char *of, const Schedule *schedule, Error *error) {
    if (!optimizer_check_rate(of, schedule->rate, error))
        return false;
    switch (schedule->kind) {
    case SCHEDULE_CONSTANT: return true;
    case SCHEDULE_STEP: return check_steps(of, schedule, error);
    case SCHEDULE_LINEAR_WARMUP:
    case SCHEDULE_COSINE: return check_rise_and_fall(of, schedule, error);
    }
    return error_fail(error, ERROR_USAGE, "%s: schedule.kind is number %d: one of " SCHEDULE_NAMES,
                      of, (int)schedule->kind);
}

bool optimizer_check_options(const OptimizerOptions *options, Error *error) {
    const char *of = optimizer_kind_name(options->kind);
    const struct {
        const char *name;
        double value;
    } betas[] = {{"beta1", options->beta1}, {"beta2", options->beta2}};
    if (!optimizer_check_schedule(of, &options->schedule, error))
        return false;
    if (!optimizer_is_amount(options->weight_decay))
        return refuse(error, of, "weight_decay", options->weight_decay,
                      "a finite number of at least 0");
    if (!(options->momentum >= 0 && options->momentum <= 1))
        return refuse(error, of, "momentum", options->momentum, "a number from 0 to 1");
    if (options->nesterov && options->momentum == 0)
        return error_fail(error, ERROR_USAGE,
                          "%s: nesterov looks ahead along the momentum: set momentum too", of);
    if (!optimizer_is_amount(options->max_grad_norm))
        return refuse(error, of, "max_grad_norm", options->max_grad_norm,
                      "a finite number, 0 for none,");
    if (!kind_table[options->kind].has_epsilon)
        return true;
    for (size_t i = 0; i < sizeof betas / sizeof *betas; i++)
        if (!(betas[i].value >= 0 && betas[i].value < 1))
            return refuse(error, of, betas[i].name, betas[i].value, "a number from 0 to below 1");
    if (!optimizer_is_amount(options->epsilon))
        return refuse(error, of, "eps", options->epsilon, "a positive number");
    return true;
}

bool optimizer_check_parameter(const Optimizer *optimizer, int i, Error *error) {
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

bool optimizer_check_group(const char *of, const OptimizerGroup *group, int number, double base,
                           Error *error) {
    char name[40];
    if (!optimizer_is_amount(group->lr_factor)) {
        snprintf(name, sizeof name, "the lr of group %d", number);
        return refuse(error, of, name, group->lr_factor * base, "a finite number of at least 0");
    }
    if (!optimizer_is_amount(group->weight_decay)) {
        snprintf(name, sizeof name, "the weight_decay of group %d", number);
        return refuse(error, of, name, group->weight_decay, "a finite number of at least 0");
    }
    return true;
}
