// The loss scale's state machine. The numbers are the device's; here is only who may do what when.
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "optim/scaler_private.h"
#include "optim/state.h"

static ScaleState *state_of(const Scaler *scaler) {
    return scaler->memory->view.data;
}

// What the gradients are divided by; NULL: nothing.
static const ScaleState *divisor_of(const Scaler *scaler) {
    return scaler->rule.kind == SCALE_NONE ? NULL : state_of(scaler);
}

// ---- made and freed -----------------------------------------------------------------------------

static bool take_memory(Scaler *scaler, Error *error) {
    Device *device = scaler->engine->device;
    scaler->memory = tensor_new_bytes(device, sizeof(ScaleState), MEMORY_OPTIMIZER, error);
    if (!scaler->memory)
        return false;
    ScaleState initial = scale_state_initial(&scaler->rule);
    device_write(device, state_of(scaler), &initial, sizeof initial);
    View view = view_dense(&state_of(scaler)->scale, FORMAT_FP32, 0, NULL);
    scaler->scale = tensor_view(scaler->memory, &view, error);
    return scaler->scale != NULL;
}

Scaler *scaler_new(Engine *engine, const ScaleRule *rule, Error *error) {
    if (!scale_rule_check(rule, error))
        return NULL;
    Scaler *scaler = calloc(1, sizeof *scaler);
    if (!scaler) {
        error_fail(error, ERROR_MEMORY, "no memory for a scaler");
        return NULL;
    }
    scaler->engine = engine;
    scaler->rule = *rule;
    scaler->number = ++engine->scales;
    scaler->iteration = 1;
    scaler->next = engine->scalers;
    engine->scalers = scaler;
    if (take_memory(scaler, error))
        return scaler;
    scaler_free(scaler);
    return NULL;
}

void scaler_free(Scaler *scaler) {
    if (!scaler)
        return;
    Scaler **link = &scaler->engine->scalers;
    while (*link != scaler)
        link = &(*link)->next;
    *link = scaler->next;
    for (int i = 0; i < scaler->served_count; i++) {
        scaler_served_clear(&scaler->served[i]);
        if (scaler->served[i].stage != STAGE_READY)
            optimizer_free(scaler->served[i].optimizer);
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

// ---- the iteration ------------------------------------------------------------------------------

Tensor *scaler_scale(Scaler *scaler, Tensor *loss, Error *error) {
    scaler_windows_open(scaler);
    scaler->scaled_at = scaler->iteration;
    if (scaler->rule.kind == SCALE_NONE)
        return tensor_hold(loss);
    // Whatever region it is called in: a scaled loss seldom fits into fp16.
    Format format = loss->view.format == FORMAT_FP64 ? FORMAT_FP64 : FORMAT_FP32;
    OpAttr attr = {.out_format = format, .has_out_format = true};
    Tensor *scaled = op_two(scaler->engine, OP_mul, loss, scaler->scale, &attr, error);
    if (scaled)
        tape_mark_scale(scaled, scaler->number);
    return scaled;
}

static bool out_of_turn(const char *called, const Served *served, Error *error) {
    OptimizerText who = optimizer_text(served->optimizer);
    unsigned long long at = (unsigned long long)served->called_at;
    if (served->stage == STAGE_UNSCALED)
        return error_fail(error, ERROR_USAGE,
                          "unscale: called twice for %s, before in step %llu; its gradients are "
                          "true already: accumulate first, unscale once, then call step and update",
                          who.text, at);
    if (strcmp(called, "unscale") == 0)
        return error_fail(error, ERROR_USAGE,
                          "unscale: called after step for %s, stepped in step %llu; unscale comes "
                          "before step: call update to begin the next iteration",
                          who.text, at);
    return error_fail(error, ERROR_USAGE,
                      "step: called twice for %s, before in step %llu, without update in between; "
                      "call update once after every optimizer's step",
                      who.text, at);
}

static bool never_scaled(const Scaler *scaler, const char *called, const Optimizer *optimizer,
                         Error *error) {
    OptimizerText who = optimizer_text(optimizer);
    unsigned long long now = (unsigned long long)scaler->iteration;
    if (scaler->scaled_at == 0)
        return error_fail(error, ERROR_USAGE,
                          "%s: called for %s in step %llu before any scale(); call "
                          "scaler:scale(loss):backward() first",
                          called, who.text, now);
    return error_fail(
        error, ERROR_USAGE,
        "%s: called for %s in step %llu, but scale() was last called in step %llu and "
        "what it scaled is done with; call scaler:scale(loss):backward() first",
        called, who.text, now, (unsigned long long)scaler->scaled_at);
}

static bool has_parameter(const Optimizer *optimizer, const Tensor *parameter) {
    for (int i = 0; i < optimizer->count; i++)
        if (optimizer->parameters[i] == parameter)
            return true;
    return false;
}

// Another optimizer that has unscaled this parameter's gradient in this iteration; NULL: none.
static const Optimizer *other_owner(const Optimizer *optimizer, const Tensor *parameter) {
    for (const Scaler *scaler = optimizer->engine->scalers; scaler; scaler = scaler->next)
        for (int i = 0; i < scaler->served_count; i++) {
            const Served *served = &scaler->served[i];
            if (served->optimizer != optimizer && served->stage != STAGE_READY &&
                has_parameter(served->optimizer, parameter))
                return served->optimizer;
        }
    return NULL;
}

static bool check_owner(const Optimizer *optimizer, const char *called, Error *error) {
    for (int i = 0; i < optimizer->count; i++) {
        const Tensor *parameter = optimizer->parameters[i];
        const Optimizer *other =
            parameter->optimizers > 1 && parameter->grad ? other_owner(optimizer, parameter) : NULL;
        if (!other)
            continue;
        char name[64];
        parameter_text(parameter, i, name, sizeof name);
        return error_fail(error, ERROR_USAGE,
                          "%s: %s is in two optimizers, %s and %s, and was unscaled for the first "
                          "already; give it to one of them, or call update in between",
                          called, name, optimizer_text(other).text, optimizer_text(optimizer).text);
    }
    return true;
}

static StepFlags *own_flags(Served *served, Error *error) {
    Device *device = served->optimizer->engine->device;
    if (!served->own_flags)
        served->own_flags = tensor_new_bytes(device, sizeof(StepFlags), MEMORY_OPTIMIZER, error);
    return served->own_flags ? served->own_flags->view.data : NULL;
}

// In one pass where all gradients carry this scale. Else those that do are made true and checked
// for this scaler alone, and when all are they are added up.
static bool unscale_gradients(Scaler *scaler, Served *served, Error *error) {
    Optimizer *optimizer = served->optimizer;
    uint64_t number = scaler->rule.kind == SCALE_NONE ? GRAD_TRUE : scaler->number;
    if (optimizer_carries_only(optimizer, number)) {
        bool done = optimizer_scan(optimizer, divisor_of(scaler), error);
        served->flags = optimizer->flags;
        return done;
    }
    StepFlags *flags = own_flags(served, error);
    GradPart own;
    int at;
    if (!flags || !optimizer_scan_scale(optimizer, number, divisor_of(scaler), flags, error))
        return false;
    served->flags = flags;
    return optimizer_scaled_part(optimizer, &own, &at) || optimizer_scan_joined(optimizer, error);
}

// The one pass, in the name of `called`.
static Served *unscale(Scaler *scaler, Optimizer *optimizer, const char *called, Error *error) {
    Served *served = scaler_served_get(scaler, optimizer, error);
    if (!served)
        return NULL;
    if (served->stage != STAGE_READY) {
        out_of_turn(called, served, error);
        return NULL;
    }
    if (!served->window.open) {
        never_scaled(scaler, called, optimizer, error);
        return NULL;
    }
    if (!scaler_window_check(scaler, served, called, error))
        return NULL;
    if (!check_owner(optimizer, called, error))
        return NULL;
    if (!unscale_gradients(scaler, served, error)) {
        error_prefix(error, "%s", called);
        return NULL;
    }
    served->stage = STAGE_UNSCALED;
    served->called_at = scaler->iteration;
    served->window.open = false;
    optimizer_hold(optimizer);
    return served;
}

bool scaler_unscale(Scaler *scaler, Optimizer *optimizer, Error *error) {
    return unscale(scaler, optimizer, "unscale", error) != NULL;
}

static bool came_late(const Optimizer *optimizer, Error *error) {
    return error_fail(error, ERROR_USAGE,
                      "step: gradients of %s were added after unscale, and those are still scaled; "
                      "call :backward() for every micro-batch first, unscale once, then step",
                      optimizer_text(optimizer).text);
}

// Gradients of other scalers' losses, which this step applies too.
static bool unscale_others(Scaler *scaler, Optimizer *optimizer, Error *error) {
    GradPart own;
    int at;
    for (const GradPart *part; (part = optimizer_scaled_part(optimizer, &own, &at));) {
        Scaler *other = scaler->engine->scalers;
        while (other && other->number != part->carries)
            other = other->next;
        const Served *served = other ? scaler_served_find(other, optimizer) : NULL;
        if (served && served->stage == STAGE_STEPPED)
            return out_of_turn("step", served, error);
        if (served && served->stage == STAGE_UNSCALED)
            return optimizer->scanned || came_late(optimizer, error); // else the step refuses it
        if (!other) {
            char name[64];
            parameter_text(optimizer->parameters[at], at, name, sizeof name);
            return error_fail(
                error, ERROR_USAGE,
                "step: the gradient of %s carries the scale of a scaler that is gone; "
                "keep it until the step",
                name);
        }
        if (!unscale(other, optimizer, "step", error))
            return false;
    }
    return true;
}

bool scaler_step(Scaler *scaler, Optimizer *optimizer, Error *error) {
    Served *served = scaler_served_find(scaler, optimizer);
    if (!served || served->stage != STAGE_UNSCALED) {
        served = unscale(scaler, optimizer, "step", error);
        if (!served)
            return false;
    }
    if (!unscale_others(scaler, optimizer, error))
        return false;
    if (!optimizer_step(optimizer, error)) {
        error_prefix(error, "step");
        return false;
    }
    return true;
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

static void write_scale(const Scaler *scaler, double scale) {
    float value = (float)scale;
    device_write(scaler->engine->device, &state_of(scaler)->scale, &value, sizeof value);
}

// What was checked in this iteration goes back to the start.
static void serve_again(Scaler *scaler, int checked) {
    for (int i = scaler->served_count - 1; checked > 0 && i >= 0; i--) {
        Served *served = &scaler->served[i];
        if (served->stage == STAGE_READY)
            continue;
        served->stage = STAGE_READY;
        checked--;
        optimizer_free(served->optimizer); // forgets it, if nobody else has it
    }
    scaler->window.open = false;
    scaler->iteration++;
}

bool scaler_update(Scaler *scaler, double given, Error *error) {
    Device *device = scaler->engine->device;
    int checked = 0;
    for (int i = 0; i < scaler->served_count; i++)
        if (scaler->served[i].stage != STAGE_READY)
            scaler->flags[checked++] = scaler->served[i].flags;
    if (given != 0 && !check_given(scaler, "update", given, error))
        return false;
    if (given == 0 && checked == 0)
        return error_fail(error, ERROR_USAGE,
                          "update: nothing was checked in step %llu; call step(optimizer), after "
                          "scale(loss):backward(), before update",
                          (unsigned long long)scaler->iteration);
    if (!scaler_windows_save(scaler, checked > 0, error))
        return false;
    bool moves = given == 0 || (scaler->rule.kind == SCALE_GIVEN && checked > 0);
    if (moves && !device->backend->multi->scale_update(device, &scaler->rule, state_of(scaler),
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
    device_write(scaler->engine->device, state_of(scaler), &state, sizeof state);
    return true;
}

void scaler_load(Scaler *scaler, const ScaleState *state) {
    Error unwanted; // a window that is open now belongs to what is thrown away
    if (!scaler_windows_save(scaler, false, &unwanted))
        scaler->version++;
    device_write(scaler->engine->device, state_of(scaler), state, sizeof *state);
}

// ---- for checkpoints ----------------------------------------------------------------------------

void scaler_restore(Scaler *scaler, const ScaleState *state) {
    device_write(scaler->engine->device, state_of(scaler), state, sizeof *state);
}

bool scaler_kept_scale(const Scaler *scaler, int i, Tensor **kept) {
    int served = scaler->served_count;
    if (i > served) { // what update goes by
        i -= served + 1;
        if (i < served)
            *kept = scaler->served[i].stage != STAGE_READY && scaler->served[i].own_flags &&
                            scaler->served[i].flags == scaler->served[i].own_flags->view.data
                        ? scaler->served[i].own_flags
                        : NULL;
        return i < served;
    }
    const Window *window = i == 0 ? &scaler->window : &scaler->served[i - 1].window;
    *kept = i == 0 ? scaler->window_scale : scaler->served[i - 1].window_scale;
    if (!window->saved)
        *kept = NULL;
    return true;
}

// ---- these wait ---------------------------------------------------------------------------------

ScaleState scaler_state(Scaler *scaler) {
    ScaleState state;
    device_read(scaler->engine->device, &state, state_of(scaler), sizeof state);
    return state;
}

double scaler_get(Scaler *scaler) {
    return (double)scaler_state(scaler).scale;
}

bool scaler_applied(Scaler *scaler, const Optimizer *optimizer, bool *applied, Error *error) {
    const Served *served = scaler_served_find(scaler, optimizer);
    if (!served || !served->stepped)
        return error_fail(error, ERROR_USAGE,
                          "applied: %s was not stepped by this scaler yet; call step first",
                          optimizer_text(optimizer).text);
    if (served->stage == STAGE_UNSCALED)
        return error_fail(error, ERROR_USAGE,
                          "applied: called for %s between unscale and step of step %llu; ask after "
                          "step",
                          optimizer_text(optimizer).text, (unsigned long long)served->called_at);
    StepFlags flags;
    device_read(scaler->engine->device, &flags, optimizer_flags(optimizer), sizeof flags);
    *applied = flags.found_inf == 0;
    return true;
}
