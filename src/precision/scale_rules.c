// The presets of loss scales, and what a rule must satisfy.
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "number/expression.h"
#include "precision/scaler.h"

#define NO_CEILING ((double)FLT_MAX)

// Each row: kind, init, growth, backoff, floor, ceiling, interval, hysteresis.
const ScalePreset scale_preset_table[] = {
    {"dynamic",
     {SCALE_DYNAMIC, 65536, 2, 0.5, 1, 0x1p24, 2000, 1},
     "doubles after 2000 clean steps, halves at an overflow"},
    {"none", {SCALE_NONE, 1, 2, 0.5, 1, 1, 1, 1}, "the loss is not scaled"},
    {"logmax",
     {SCALE_LOGMAX, 65536, 2, 0.5, 1, 0x1p24, 1, 1},
     "follows the logarithm of the largest gradient, its mean and deviation"},
    {"adaptive",
     {SCALE_ADAPTIVE, 1024, 1.1, 0.5, 1, 65536, 1, 1},
     "grows by a tenth while the mean gradient is under 1e-7"},
    {"torch",
     {SCALE_DYNAMIC, 65536, 2, 0.5, 0, NO_CEILING, 2000, 1},
     "PyTorch's GradScaler: no floor, no ceiling"},
    {"apex",
     {SCALE_DYNAMIC, 65536, 2, 0.5, 0, 0x1p24, 2000, 1},
     "NVIDIA Apex: no floor, ceiling 2^24"},
    {"keras",
     {SCALE_DYNAMIC, 32768, 2, 0.5, 1, NO_CEILING, 2000, 1},
     "Keras's LossScaleOptimizer: from 2^15"},
    {"deepspeed",
     {SCALE_DYNAMIC, 65536, 2, 0.5, 1, NO_CEILING, 1000, 2},
     "DeepSpeed: backs off at the second overflow"},
    {"megatron",
     {SCALE_DYNAMIC, 0x1p32, 2, 0.5, 1, NO_CEILING, 1000, 2},
     "Megatron-LM: from 2^32, backs off at the second overflow"},
    {"fairseq",
     {SCALE_DYNAMIC, 128, 2, 0.5, 1e-4, NO_CEILING, 16384, 1},
     "fairseq on one worker: from 128, floor 1e-4"},
    {NULL, {SCALE_NONE, 1, 2, 0.5, 1, 1, 1, 1}, NULL},
};

const char *scale_kind_name(ScaleKind kind) {
    static const char *const names[] = {"none", "static", "dynamic", "logmax", "adaptive", "given"};
    return names[kind];
}

static bool take_number(const char *text, double value, ScaleRule *rule, Error *error) {
    if (!(value > 0) || value > (double)FLT_MAX)
        return error_fail(error, ERROR_USAGE,
                          "%s: a positive, finite number wanted, or a preset's name "
                          "such as \"dynamic\"",
                          text);
    *rule = (ScaleRule){.kind = SCALE_STATIC,
                        .init = value,
                        .growth = 2,
                        .backoff = 0.5,
                        .floor = value,
                        .ceiling = value,
                        .interval = 1,
                        .hysteresis = 1};
    return scale_rule_check(rule, error);
}

static bool refuse_name(const char *text, Error *error) {
    char list[192] = "";
    Nearest nearest;
    nearest_begin(&nearest, text);
    for (const ScalePreset *preset = scale_preset_table; preset->name; preset++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, " %s", preset->name);
        nearest_offer(&nearest, preset->name);
    }
    const char *near = nearest.best;
    return error_fail(error, ERROR_USAGE, "%.60s: not known; %s%s%sone of%s, or a number", text,
                      near ? "did you mean " : "", near ? near : "", near ? "? It is " : "", list);
}

bool scale_rule_parse(const char *text, ScaleRule *rule, Error *error) {
    for (const ScalePreset *preset = scale_preset_table; preset->name; preset++)
        if (strcmp(preset->name, text) == 0) {
            *rule = preset->rule;
            return true;
        }
    // A number is written as everywhere: 32768, 2^15, (1+1)^15.
    double value;
    Error unread;
    if (expression_evaluate(text, FORMAT_FP64, OVERFLOW_TO_SPECIAL, &value, NULL, &unread))
        return take_number(text, value, rule, error);
    if (text[0] == 0 || !strchr("0123456789.+-(", text[0]))
        return refuse_name(text, error);
    return error_fail(error, ERROR_USAGE, "%.60s: %s: a positive, finite number wanted", text,
                      unread.text);
}

static bool out_of_range(Error *error, const char *name, double value, const char *wanted) {
    return error_fail(error, ERROR_USAGE, "scaler: %s is %g: %s wanted", name, value, wanted);
}

// What a scale is bounded by: positive and exact enough to be one in fp32.
static bool is_scale(double value) {
    return value >= (double)FLT_TRUE_MIN && value <= (double)FLT_MAX;
}

static bool check_movement(const ScaleRule *rule, Error *error) {
    if (!(rule->growth > 1) || !isfinite(rule->growth))
        return out_of_range(error, "growth", rule->growth, "a finite number over 1");
    if (!(rule->backoff > 0 && rule->backoff < 1))
        return out_of_range(error, "backoff", rule->backoff, "a number between 0 and 1");
    if (!(rule->floor >= 0) || !isfinite(rule->floor))
        return out_of_range(error, "floor", rule->floor, "0 or a positive number");
    if (!is_scale(rule->ceiling))
        return out_of_range(error, "ceiling", rule->ceiling, "a positive number that fp32 holds");
    if (rule->interval < 1)
        return out_of_range(error, "interval", (double)rule->interval, "at least 1 step");
    if (rule->hysteresis < 1)
        return out_of_range(error, "hysteresis", (double)rule->hysteresis, "at least 1 overflow");
    if (rule->init < rule->floor || rule->init > rule->ceiling)
        return error_fail(error, ERROR_USAGE,
                          "scaler: init is %g: from the floor %g to the ceiling %g wanted",
                          rule->init, rule->floor, rule->ceiling);
    return true;
}

bool scale_rule_check(const ScaleRule *rule, Error *error) {
    if (rule->kind == SCALE_NONE)
        return true;
    if (!is_scale(rule->init))
        return out_of_range(error, "init", rule->init, "a positive number that fp32 holds");
    if (rule->kind == SCALE_STATIC || rule->kind == SCALE_GIVEN)
        return true;
    return check_movement(rule, error);
}
