// The loss scale's state machine. The numbers are the device's; here is only who may do what when.
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "precision/scaler_private.h"

ScaleState *scaler_state_memory(const Scaler *scaler) {
    return scaler->memory->view.data;
}

// What the gradients are divided by; NULL: nothing.
static const ScaleState *divisor_of(const Scaler *scaler) {
    return scaler->rule.kind == SCALE_NONE ? NULL : scaler_state_memory(scaler);
}

// ---- made and freed -----------------------------------------------------------------------------

void scaler_write_state(Scaler *scaler, const ScaleState *state) {
    scaler->written = state->scale;
    device_write(scaler->scalers->device, scaler_state_memory(scaler), state, sizeof *state);
}

static bool take_memory(Scaler *scaler, Error *error) {
    Device *device = scaler->scalers->device;
    scaler->memory = tensor_new_bytes(device, sizeof(ScaleState), MEMORY_OPTIMIZER, error);
    if (!scaler->memory)
        return false;
    ScaleState initial = scale_state_initial(&scaler->rule);
    scaler_write_state(scaler, &initial);
    View view = view_dense(&scaler_state_memory(scaler)->scale, FORMAT_FP32, 0, NULL);
    scaler->scale = tensor_view(scaler->memory, &view, error);
    return scaler->scale != NULL;
}

Scaler *scaler_new(Scalers *scalers, const ScaleRule *rule, Error *error) {
    if (!scale_rule_check(rule, error))
        return NULL;
    Scaler *scaler = calloc(1, sizeof *scaler);
    if (!scaler) {
        error_fail(error, ERROR_MEMORY, "no memory for a scaler");
        return NULL;
    }
    scaler->scalers = scalers;
    scaler->rule = *rule;
    scaler->number = ++scalers->numbered;
    scaler->iteration = 1;
    scaler->next = scalers->first;
    scalers->first = scaler;
    if (take_memory(scaler, error))
        return scaler;
    scaler_free(scaler);
    return NULL;
}

void scaler_free(Scaler *scaler) {
    if (!scaler)
        return;
    Scaler **link = &scaler->scalers->first;
    while (*link != scaler)
        link = &(*link)->next;
    *link = scaler->next;
    for (int i = 0; i < scaler->served_count; i++) {
        scaler_served_clear(&scaler->served[i]);
        if (scaler->served[i].stage != STAGE_READY)
            gradients_free(scaler->served[i].gradients);
    }
    tensor_release(scaler->window_scale);
    tensor_release(scaler->scale);
    tensor_release(scaler->memory);
    free(scaler->served);
    free(scaler->flags);
    free(scaler);
}

const ScaleRule *scaler_rule(const Scaler *scaler) {
    return &scaler->rule;
}

uint64_t scaler_number(const Scaler *scaler) {
    return scaler->number;
}

Scaler *scalers_find(const Scalers *scalers, uint64_t number) {
    Scaler *scaler = scalers->first;
    while (scaler && scaler->number != number)
        scaler = scaler->next;
    return scaler;
}

// ---- the iteration ------------------------------------------------------------------------------

Tensor *scaler_begin(Scaler *scaler) {
    scaler_windows_open(scaler);
    scaler->scaled_at = scaler->iteration;
    return scaler->rule.kind == SCALE_NONE ? NULL : scaler->scale;
}

static bool out_of_turn(const char *called, const Served *served, Error *error) {
    const char *who = served->gradients->text;
    unsigned long long at = (unsigned long long)served->called_at;
    if (served->stage == STAGE_UNSCALED)
        return error_fail(error, ERROR_USAGE,
                          "unscale: called twice for %s, before in step %llu; its gradients are "
                          "true already: accumulate first, unscale once, then call step and update",
                          who, at);
    if (strcmp(called, "unscale") == 0)
        return error_fail(error, ERROR_USAGE,
                          "unscale: called after step for %s, stepped in step %llu; unscale comes "
                          "before step: call update to begin the next iteration",
                          who, at);
    return error_fail(error, ERROR_USAGE,
                      "step: called twice for %s, before in step %llu, without update in between; "
                      "call update once after every optimizer's step",
                      who, at);
}

static bool never_scaled(const Scaler *scaler, const char *called, const Gradients *gradients,
                         Error *error) {
    const char *who = gradients->text;
    unsigned long long now = (unsigned long long)scaler->iteration;
    if (scaler->scaled_at == 0)
        return error_fail(error, ERROR_USAGE,
                          "%s: called for %s in step %llu before any scale(); call "
                          "scaler:scale(loss):backward() first",
                          called, who, now);
    return error_fail(
        error, ERROR_USAGE,
        "%s: called for %s in step %llu, but scale() was last called in step %llu and "
        "what it scaled is done with; call scaler:scale(loss):backward() first",
        called, who, now, (unsigned long long)scaler->scaled_at);
}

static bool has_parameter(const Gradients *gradients, const Tensor *parameter) {
    for (int i = 0; i < gradients->count; i++)
        if (gradients->parameters[i] == parameter)
            return true;
    return false;
}

// Those of another optimizer that have this one's gradient, and were unscaled in this iteration;
// NULL: none.
static const Gradients *other_owner(const Gradients *gradients, const Tensor *parameter) {
    for (const Scaler *scaler = gradients->scalers->first; scaler; scaler = scaler->next)
        for (int i = 0; i < scaler->served_count; i++) {
            const Served *served = &scaler->served[i];
            if (served->gradients != gradients && served->stage != STAGE_READY &&
                has_parameter(served->gradients, parameter))
                return served->gradients;
        }
    return NULL;
}

static bool check_owner(const Gradients *gradients, const char *called, Error *error) {
    for (int i = 0; i < gradients->count; i++) {
        const Tensor *parameter = gradients->parameters[i];
        const Gradients *other =
            parameter->optimizers > 1 && parameter->grad ? other_owner(gradients, parameter) : NULL;
        if (!other)
            continue;
        char name[64];
        parameter_text(parameter, i, name, sizeof name);
        return error_fail(error, ERROR_USAGE,
                          "%s: %s is in two optimizers, %s and %s, and was unscaled for the first "
                          "already; give it to one of them, or call update in between",
                          called, name, other->text, gradients->text);
    }
    return true;
}

static StepFlags *own_flags(Served *served, Error *error) {
    Device *device = served->gradients->scalers->device;
    if (!served->own_flags)
        served->own_flags = tensor_new_bytes(device, sizeof(StepFlags), MEMORY_OPTIMIZER, error);
    return served->own_flags ? served->own_flags->view.data : NULL;
}

// In one pass where all gradients carry this scale. Else those that do are made true and checked
// for this scaler alone, and when all are they are added up.
static bool unscale_gradients(Scaler *scaler, Served *served, Error *error) {
    Gradients *gradients = served->gradients;
    uint64_t number = scaler->rule.kind == SCALE_NONE ? GRAD_TRUE : scaler->number;
    if (gradients_carry_only(gradients, number)) {
        bool done = gradients_scan(gradients, divisor_of(scaler), error);
        served->flags = gradients->flags;
        return done;
    }
    StepFlags *flags = own_flags(served, error);
    GradPart own;
    int at;
    if (!flags || !gradients_scan_scale(gradients, number, divisor_of(scaler), flags, error))
        return false;
    served->flags = flags;
    return gradients_scaled_part(gradients, &own, &at) || gradients_scan_joined(gradients, error);
}

// The one pass, in the name of `called`.
static bool unscale(Scaler *scaler, Gradients *gradients, const char *called, Error *error) {
    Served *served = scaler_served_get(scaler, gradients, error);
    if (!served)
        return false;
    if (served->stage != STAGE_READY)
        return out_of_turn(called, served, error);
    if (!served->window.open)
        return never_scaled(scaler, called, gradients, error);
    if (!scaler_window_check(scaler, served, called, error) ||
        !check_owner(gradients, called, error))
        return false;
    if (!unscale_gradients(scaler, served, error)) {
        error_prefix(error, "%s", called);
        return false;
    }
    served->stage = STAGE_UNSCALED;
    served->called_at = scaler->iteration;
    served->window.open = false;
    gradients_hold(gradients);
    return true;
}

bool scaler_unscale(Scaler *scaler, Gradients *gradients, Error *error) {
    return unscale(scaler, gradients, "unscale", error);
}

static bool came_late(const Gradients *gradients, Error *error) {
    return error_fail(error, ERROR_USAGE,
                      "step: gradients of %s were added after unscale, and those are still scaled; "
                      "call :backward() for every micro-batch first, unscale once, then step",
                      gradients->text);
}

// Gradients of other scalers' losses, which this step applies too.
static bool unscale_others(Scaler *scaler, Gradients *gradients, Error *error) {
    GradPart own;
    int at;
    for (const GradPart *part; (part = gradients_scaled_part(gradients, &own, &at));) {
        Scaler *other = scalers_find(scaler->scalers, part->carries);
        const Served *served = other ? scaler_served_find(other, gradients) : NULL;
        if (served && served->stage == STAGE_STEPPED)
            return out_of_turn("step", served, error);
        if (served && served->stage == STAGE_UNSCALED)
            return gradients->scanned || came_late(gradients, error); // else the step refuses it
        if (!other) {
            char name[64];
            parameter_text(gradients->parameters[at], at, name, sizeof name);
            return error_fail(
                error, ERROR_USAGE,
                "step: the gradient of %s carries the scale of a scaler that is gone; "
                "keep it until the step",
                name);
        }
        if (!unscale(other, gradients, "step", error))
            return false;
    }
    return true;
}

bool scaler_has_unscaled(const Scaler *scaler, const Gradients *gradients) {
    const Served *served = scaler_served_find(scaler, gradients);
    return served && served->stage == STAGE_UNSCALED;
}

bool scaler_prepare_step(Scaler *scaler, Gradients *gradients, Error *error) {
    return (scaler_has_unscaled(scaler, gradients) || unscale(scaler, gradients, "step", error)) &&
           unscale_others(scaler, gradients, error);
}

static bool check_given(const Scaler *scaler, const char *called, double scale, Error *error) {
    if (!(scale >= (double)FLT_TRUE_MIN && scale <= (double)FLT_MAX))
        return error_fail(error, ERROR_USAGE,
                          "%s: the scale is %g: a positive number that fp32 holds wanted", called,
                          scale);
    if (scaler->rule.kind == SCALE_NONE)
        return error_fail(error, ERROR_USAGE,
                          "%s: this scaler leaves the loss as it is; for a scale of %g start with "
                          "a scaler of that number, or a dynamic one",
                          called, scale);
    return true;
}

static void write_scale(Scaler *scaler, double scale) {
    scaler->written = (float)scale;
    device_write(scaler->scalers->device, &scaler_state_memory(scaler)->scale, &scaler->written,
                 sizeof scaler->written);
}

// What was checked in this iteration goes back to the start.
static void serve_again(Scaler *scaler, int checked) {
    for (int i = scaler->served_count - 1; checked > 0 && i >= 0; i--) {
        Served *served = &scaler->served[i];
        if (served->stage == STAGE_READY)
            continue;
        served->stage = STAGE_READY;
        checked--;
        gradients_free(served->gradients); // forgets it, if nobody else has it
    }
    scaler->window.open = false;
    scaler->iteration++;
}

bool scaler_update(Scaler *scaler, double given, Error *error) {
    Device *device = scaler->scalers->device;
    int checked = 0;
    for (int i = 0; i < scaler->served_count; i++)
        if (scaler->served[i].stage != STAGE_READY)
            scaler->flags[checked++] = scaler->served[i].flags;
    if (given != 0 && !check_given(scaler, "update", given, error))
        return false;
    if (given == 0 && checked == 0)
        return error_fail(error, ERROR_USAGE,
                          "update: nothing was checked in step %llu; call step(gradients), after "
                          "scale(loss):backward(), before update",
                          (unsigned long long)scaler->iteration);
    if (!scaler_windows_save(scaler, checked > 0, error))
        return false;
    bool moves = given == 0 || (scaler->rule.kind == SCALE_GIVEN && checked > 0);
    if (moves &&
        !device->backend->multi->scale_update(device, &scaler->rule, scaler_state_memory(scaler),
                                              scaler->flags, checked, error))
        return false;
    if (given != 0)
        write_scale(scaler, given);
    if (checked > 0)
        serve_again(scaler, checked);
    return true;
}

bool scaler_set(Scaler *scaler, double scale, Error *error) {
    if (!check_given(scaler, "scale", scale, error) || !scaler_windows_save(scaler, false, error))
        return false;
    write_scale(scaler, scale);
    return true;
}

bool scaler_set_rule(Scaler *scaler, const ScaleRule *rule, Error *error) {
    if (!scale_rule_check(rule, error) || !scaler_windows_save(scaler, false, error))
        return false;
    ScaleState state = scale_state_initial(rule);
    scaler->rule = *rule;
    scaler_write_state(scaler, &state);
    return true;
}

void scaler_load(Scaler *scaler, const ScaleState *state) {
    Error unwanted; // a window that is open now belongs to what is thrown away
    if (!scaler_windows_save(scaler, false, &unwanted))
        scaler->version++;
    scaler_write_state(scaler, state);
}

bool scaler_add_report(const Scaler *scaler, Reports *reports, int *piece, Error *error) {
    return reports_add(reports, scaler_state_memory(scaler), sizeof(ScaleState), piece, error);
}

// ---- these wait ---------------------------------------------------------------------------------

ScaleState scaler_state(Scaler *scaler) {
    ScaleState state;
    device_read(scaler->scalers->device, &state, scaler_state_memory(scaler), sizeof state);
    return state;
}

// Whether only the host moves the scale.
static bool stands(const Scaler *scaler) {
    ScaleKind kind = scaler->rule.kind;
    return kind == SCALE_NONE || kind == SCALE_STATIC || kind == SCALE_GIVEN;
}

double scaler_get(Scaler *scaler) {
    return (double)(stands(scaler) ? scaler->written : scaler_state(scaler).scale);
}

bool scaler_applied(Scaler *scaler, const Gradients *gradients, bool *applied, Error *error) {
    const Served *served = scaler_served_find(scaler, gradients);
    if (!served || !served->stepped)
        return error_fail(error, ERROR_USAGE,
                          "applied: %s was not stepped by this scaler yet; call step first",
                          gradients->text);
    if (served->stage == STAGE_UNSCALED)
        return error_fail(error, ERROR_USAGE,
                          "applied: called for %s between unscale and step of step %llu; ask after "
                          "step",
                          gradients->text, (unsigned long long)served->called_at);
    StepFlags flags;
    device_read(scaler->scalers->device, &flags, gradients->flags, sizeof flags);
    *applied = flags.found_inf == 0;
    return true;
}
