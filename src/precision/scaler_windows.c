// Which gradients carry which scale: the optimizers that a scaler serves, the windows in which
// their gradients are gathered, and the refusal to clip what is not unscaled yet.
#include <stdlib.h>

#include "base/shortest.h"
#include "precision/scaler_private.h"

// ---- whose gradients it serves ------------------------------------------------------------------

void scaler_served_clear(Served *served) {
    tensor_release(served->window_scale);
    tensor_release(served->own_flags);
    served->window_scale = served->own_flags = NULL;
}

void scalers_forget(const Gradients *gradients) {
    for (Scaler *scaler = gradients->scalers->first; scaler; scaler = scaler->next)
        for (int i = 0; i < scaler->served_count; i++) {
            if (scaler->served[i].gradients != gradients)
                continue;
            scaler_served_clear(&scaler->served[i]);
            scaler->served[i--] = scaler->served[--scaler->served_count];
        }
}

// By whomever it was called, a step has applied what all of them unscaled.
void scalers_note_step(const Gradients *gradients) {
    for (Scaler *scaler = gradients->scalers->first; scaler; scaler = scaler->next) {
        Served *served = scaler_served_find(scaler, gradients);
        if (!served || served->stage != STAGE_UNSCALED)
            continue;
        served->stage = STAGE_STEPPED;
        served->stepped = true;
        served->called_at = scaler->iteration;
    }
}

Served *scaler_served_find(const Scaler *scaler, const Gradients *gradients) {
    for (int i = 0; i < scaler->served_count; i++)
        if (scaler->served[i].gradients == gradients)
            return &scaler->served[i];
    return NULL;
}

static bool served_grow(Scaler *scaler, Error *error) {
    int size = scaler->served_size ? scaler->served_size * 2 : 4;
    Served *served = realloc(scaler->served, (size_t)size * sizeof *served);
    if (served)
        scaler->served = served;
    const StepFlags **flags = realloc(scaler->flags, (size_t)size * sizeof *flags);
    if (flags)
        scaler->flags = flags;
    if (!served || !flags)
        return error_fail(error, ERROR_MEMORY, "no memory for one more optimizer of a scaler");
    scaler->served_size = size;
    return true;
}

Served *scaler_served_get(Scaler *scaler, Gradients *gradients, Error *error) {
    Served *served = scaler_served_find(scaler, gradients);
    if (served)
        return served;
    if (scaler->served_count == scaler->served_size && !served_grow(scaler, error))
        return NULL;
    Tensor *window_scale =
        tensor_new(scaler->scalers->device, FORMAT_FP32, 0, NULL, MEMORY_OPTIMIZER, error);
    if (!window_scale)
        return NULL;
    if (scaler->window.saved && !tensor_copy_into(window_scale, scaler->window_scale, error)) {
        tensor_release(window_scale);
        return NULL;
    }
    served = &scaler->served[scaler->served_count++];
    *served =
        (Served){.gradients = gradients, .window = scaler->window, .window_scale = window_scale};
    return served;
}

// ---- accumulation windows -----------------------------------------------------------------------

static Window window_now(const Scaler *scaler) {
    return (Window){.open = true, .version = scaler->version};
}

void scaler_windows_open(Scaler *scaler) {
    if (!scaler->window.open)
        scaler->window = window_now(scaler);
    for (int i = 0; i < scaler->served_count; i++) {
        Served *served = &scaler->served[i];
        if (served->stage == STAGE_READY &&
            (!served->window.open || !gradients_are_any(served->gradients)))
            served->window = window_now(scaler);
    }
}

static bool window_save(const Scaler *scaler, Window *window, Tensor *kept, Error *error) {
    if (!window->open || window->saved)
        return true;
    window->saved = true;
    return tensor_copy_into(kept, scaler->scale, error);
}

bool scaler_windows_save(Scaler *scaler, bool ends, Error *error) {
    Device *device = scaler->scalers->device;
    if (!ends && scaler->window.open && !scaler->window_scale) {
        scaler->window_scale = tensor_new(device, FORMAT_FP32, 0, NULL, MEMORY_OPTIMIZER, error);
        if (!scaler->window_scale)
            return false;
    }
    if (!ends && !window_save(scaler, &scaler->window, scaler->window_scale, error))
        return false;
    for (int i = 0; i < scaler->served_count; i++) {
        Served *served = &scaler->served[i];
        if (served->stage == STAGE_READY && gradients_are_any(served->gradients) &&
            !window_save(scaler, &served->window, served->window_scale, error))
            return false;
    }
    scaler->version++;
    return true;
}

bool scaler_window_check(Scaler *scaler, const Served *served, const char *called, Error *error) {
    double before;
    if (served->window.version == scaler->version || !served->window.saved)
        return true;
    if (!tensor_item(served->window_scale, &before, error))
        return false;
    double now = scaler_get(scaler);
    if (before == now)
        return true;
    return error_fail(error, ERROR_USAGE,
                      "%s: the scale changed from %s to %s while the gradients of %s were being "
                      "accumulated; call update only after the step that ends the window",
                      called, shortest_of_float(before).text, shortest_of_float(now).text,
                      served->gradients->text);
}

// ---- gradients that still carry a scale ---------------------------------------------------------

// The scale, which it may wait for; 1 also of one that nobody knows any more. `*one` is the number
// of a scale that was 1 when it was looked at: there are many gradients and few scales.
static double scale_of(const Scalers *scalers, uint64_t number, uint64_t *one) {
    if (number == *one)
        return 1;
    for (Scaler *scaler = scalers->first; scaler; scaler = scaler->next) {
        if (scaler->number != number)
            continue;
        double scale = scaler_get(scaler);
        if (scale == 1)
            *one = number;
        return scale;
    }
    return 1;
}

// The first scale other than 1 that a parameter's gradient carries; 1: none.
static double carried_scale(const Scalers *scalers, const Tensor *parameter, uint64_t *one) {
    double scale = parameter->grad ? scale_of(scalers, parameter->carries, one) : 1;
    for (const GradPart *part = parameter->apart; part && scale == 1; part = part->next)
        scale = scale_of(scalers, part->carries, one);
    return scale;
}

bool scalers_allow_clip(const Scalers *scalers, Tensor *const *parameters, int count, double limit,
                        const char *called, Error *error) {
    if (device_is_idle(scalers->device)) // it passed when there was a scale to read
        return true;
    uint64_t one = GRAD_TRUE;
    for (int i = 0; i < count; i++) {
        double scale = carried_scale(scalers, parameters[i], &one);
        if (scale == 1)
            continue;
        char name[64];
        parameter_text(parameters[i], i, name, sizeof name);
        return error_fail(error, ERROR_USAGE,
                          "%s: the gradient of %s is not unscaled yet: threshold %g applied at "
                          "scale %s is really %g; call scaler:unscale(optimizer) first",
                          called, name, limit, shortest_of_float(scale).text, limit / scale);
    }
    return true;
}

bool scalers_allow_step(const Gradients *gradients, Error *error) {
    const Scalers *scalers = gradients->scalers;
    uint64_t one = GRAD_TRUE;
    for (int i = 0; i < gradients->count && !device_is_idle(scalers->device); i++) {
        double scale = carried_scale(scalers, gradients->parameters[i], &one);
        if (scale == 1)
            continue;
        char name[64];
        parameter_text(gradients->parameters[i], i, name, sizeof name);
        return error_fail(error, ERROR_USAGE,
                          "step: the gradient of %s is not unscaled yet: it is %s times the true "
                          "one; call scaler:step(optimizer), which divides it, in place of "
                          "optimizer:step()",
                          name, shortest_of_float(scale).text);
    }
    return true;
}
