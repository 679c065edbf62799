// The loss scale's state machine. The numbers are the device's; here is only who may do what when.
#include "optim/scaler.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/shortest.h"
#include "kernel/allocator.h"
#include "optim/optimizer_private.h"
#include "optim/state.h"

typedef enum Stage { STAGE_READY, STAGE_UNSCALED, STAGE_STEPPED } Stage;

// When the gradients that are being gathered began to be: the version of the scale that they carry.
typedef struct Window {
    bool open;
    uint64_t version;
    bool saved; // the scale of that version was kept when it changed
} Window;

typedef struct Served { // one optimizer
    Optimizer *optimizer;
    Stage stage;
    bool stepped;       // ever
    uint64_t called_at; // the iteration of the last unscale or step
    Window window;
    Tensor *window_scale; // of no dimension; where the scale is kept
} Served;

struct Scaler {
    Scaler *next; // of the same engine
    Engine *engine;
    ScaleRule rule;
    Tensor *memory;       // holds the ScaleState
    Tensor *scale;        // of no dimension, over its scale
    uint64_t iteration;   // from 1
    uint64_t version;     // of the scale: how often it may have moved
    uint64_t scaled_at;   // the iteration of the last scale(), 0: none
    Window window;        // of optimizers that are not known yet
    Tensor *window_scale; // as in Served
    Served *served;
    const StepFlags **flags; // for scale_update
    int served_count, served_size;
};

static ScaleState *state_of(const Scaler *scaler) {
    return scaler->memory->view.data;
}

// What the gradients are divided by; NULL: nothing.
static const ScaleState *divisor_of(const Scaler *scaler) {
    return scaler->rule.kind == SCALE_NONE ? NULL : state_of(scaler);
}

// ---- made and freed -----------------------------------------------------------------------------

static bool take_memory(Scaler *scaler, Error *error) {
    const int64_t words[1] = {(int64_t)((sizeof(ScaleState) + 3) / 4)};
    Device *device = scaler->engine->device;
    scaler->memory = tensor_new(device, FORMAT_FP32, 1, words, MEMORY_OPTIMIZER, error);
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
    scaler->iteration = 1;
    scaler->next = engine->scalers;
    engine->scalers = scaler;
    if (take_memory(scaler, error))
        return scaler;
    scaler_free(scaler);
    return NULL;
}

static void served_clear(Served *served) {
    tensor_release(served->window_scale);
    served->window_scale = NULL;
}

void scaler_free(Scaler *scaler) {
    if (!scaler)
        return;
    Scaler **link = &scaler->engine->scalers;
    while (*link != scaler)
        link = &(*link)->next;
    *link = scaler->next;
    for (int i = 0; i < scaler->served_count; i++) {
        served_clear(&scaler->served[i]);
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

void scalers_forget(Engine *engine, const Optimizer *optimizer) {
    for (Scaler *scaler = engine->scalers; scaler; scaler = scaler->next)
        for (int i = 0; i < scaler->served_count; i++) {
            if (scaler->served[i].optimizer != optimizer)
                continue;
            served_clear(&scaler->served[i]);
            scaler->served[i--] = scaler->served[--scaler->served_count];
        }
}

const ScaleRule *scaler_rule(const Scaler *scaler) {
    return &scaler->rule;
}

// ---- the optimizers it serves -------------------------------------------------------------------

static Served *served_find(const Scaler *scaler, const Optimizer *optimizer) {
    for (int i = 0; i < scaler->served_count; i++)
        if (scaler->served[i].optimizer == optimizer)
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

// ---- accumulation windows -----------------------------------------------------------------------

static Window window_now(const Scaler *scaler) {
    return (Window){.open = true, .version = scaler->version};
}

// scale() was called: a window opens for each optimizer whose gradients begin here.
static void windows_open(Scaler *scaler) {
    if (!scaler->window.open)
        scaler->window = window_now(scaler);
    for (int i = 0; i < scaler->served_count; i++) {
        Served *served = &scaler->served[i];
        if (served->stage == STAGE_READY &&
            (!served->window.open || !optimizer_has_gradient(served->optimizer)))
            served->window = window_now(scaler);
    }
}

static bool window_save(const Scaler *scaler, Window *window, Tensor *kept, Error *error) {
    if (!window->open || window->saved)
        return true;
    window->saved = true;
    return tensor_copy_into(kept, scaler->scale, error);
}

// The scale is about to move: windows with gradients in them keep what it was. Windows without
// have nothing to keep it for; nothing of this happens in an ordinary loop. `ends`: so does the
// iteration, and with it what optimizers that are not known yet can step by.
static bool windows_save(Scaler *scaler, bool ends, Error *error) {
    Device *device = scaler->engine->device;
    if (!ends && scaler->window.open && !scaler->window_scale) {
        scaler->window_scale = tensor_new(device, FORMAT_FP32, 0, NULL, MEMORY_OPTIMIZER, error);
        if (!scaler->window_scale)
            return false;
    }
    if (!ends && !window_save(scaler, &scaler->window, scaler->window_scale, error))
        return false;
    for (int i = 0; i < scaler->served_count; i++) {
        Served *served = &scaler->served[i];
        if (served->stage == STAGE_READY && optimizer_has_gradient(served->optimizer) &&
            !window_save(scaler, &served->window, served->window_scale, error))
            return false;
    }
    scaler->version++;
    return true;
}

static Served *served_get(Scaler *scaler, Optimizer *optimizer, Error *error) {
    Served *served = served_find(scaler, optimizer);
    if (served)
        return served;
    if (scaler->served_count == scaler->served_size && !served_grow(scaler, error))
        return NULL;
    Tensor *window_scale =
        tensor_new(scaler->engine->device, FORMAT_FP32, 0, NULL, MEMORY_OPTIMIZER, error);
    if (!window_scale)
        return NULL;
    if (scaler->window.saved && !tensor_copy_into(window_scale, scaler->window_scale, error)) {
        tensor_release(window_scale);
        return NULL;
    }
    served = &scaler->served[scaler->served_count++];
    *served =
        (Served){.optimizer = optimizer, .window = scaler->window, .window_scale = window_scale};
    return served;
}

// Whether all gradients of this optimizer carry the scale in force. Waits only where the scale may
// have moved since the first of them.
static bool window_check(Scaler *scaler, const Served *served, const char *called, Error *error) {
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
                      optimizer_text(served->optimizer).text);
}

// ---- the iteration ------------------------------------------------------------------------------

Tensor *scaler_scale(Scaler *scaler, Tensor *loss, Error *error) {
    windows_open(scaler);
    scaler->scaled_at = scaler->iteration;
    if (scaler->rule.kind == SCALE_NONE)
        return tensor_hold(loss);
    // Whatever region it is called in: a scaled loss seldom fits into fp16.
    Format format = loss->view.format == FORMAT_FP64 ? FORMAT_FP64 : FORMAT_FP32;
    OpAttr attr = {.out_format = format, .has_out_format = true};
    return op_two(scaler->engine, OP_mul, loss, scaler->scale, &attr, error);
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

// The one pass, in the name of `called`.
static Served *unscale(Scaler *scaler, Optimizer *optimizer, const char *called, Error *error) {
    Served *served = served_get(scaler, optimizer, error);
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
    if (!window_check(scaler, served, called, error))
        return NULL;
    if (!optimizer_scan(optimizer, divisor_of(scaler), error)) {
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

bool scaler_step(Scaler *scaler, Optimizer *optimizer, Error *error) {
    Served *served = served_find(scaler, optimizer);
    if (!served || served->stage != STAGE_UNSCALED) {
        served = unscale(scaler, optimizer, "step", error);
        if (!served)
            return false;
    }
    if (!optimizer_step(optimizer, error)) {
        error_prefix(error, "step");
        return false;
    }
    served->stage = STAGE_STEPPED;
    served->stepped = true;
    served->called_at = scaler->iteration;
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
            scaler->flags[checked++] = optimizer_flags(scaler->served[i].optimizer);
    if (given != 0 && !check_given(scaler, "update", given, error))
        return false;
    if (given == 0 && checked == 0)
        return error_fail(error, ERROR_USAGE,
                          "update: nothing was checked in step %llu; call step(optimizer), after "
                          "scale(loss):backward(), before update",
                          (unsigned long long)scaler->iteration);
    if (!windows_save(scaler, checked > 0, error))
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
    if (!check_given(scaler, "scale", scale, error) || !windows_save(scaler, false, error))
        return false;
    write_scale(scaler, scale);
    return true;
}

bool scaler_set_rule(Scaler *scaler, const ScaleRule *rule, Error *error) {
    if (!scale_rule_check(rule, error) || !windows_save(scaler, false, error))
        return false;
    ScaleState state = scale_state_initial(rule);
    scaler->rule = *rule;
    device_write(scaler->engine->device, state_of(scaler), &state, sizeof state);
    return true;
}

void scaler_load(Scaler *scaler, const ScaleState *state) {
    Error unwanted; // a window that is open now belongs to what is thrown away
    if (!windows_save(scaler, false, &unwanted))
        scaler->version++;
    device_write(scaler->engine->device, state_of(scaler), state, sizeof *state);
}

// ---- for checkpoints ----------------------------------------------------------------------------

void scaler_restore(Scaler *scaler, const ScaleState *state) {
    device_write(scaler->engine->device, state_of(scaler), state, sizeof *state);
}

bool scaler_kept_scale(const Scaler *scaler, int i, Tensor **kept) {
    if (i > scaler->served_count)
        return false;
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
    const Served *served = served_find(scaler, optimizer);
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

// ---- clipping -----------------------------------------------------------------------------------

typedef struct Owner { // the last that was found: lists are mostly in one order
    const Served *served;
    int at; // of its optimizer's parameters
} Owner;

static bool owner_is(Owner *owner, const Served *served, const Tensor *parameter) {
    const Optimizer *optimizer = served->optimizer;
    int at = owner->served == served ? owner->at : optimizer->count - 1;
    for (int k = 0; k < optimizer->count; k++) {
        at = at + 1 < optimizer->count ? at + 1 : 0;
        if (optimizer->parameters[at] == parameter) {
            *owner = (Owner){served, at};
            return true;
        }
    }
    return false;
}

static bool owner_find(const Scaler *scaler, const Tensor *parameter, Owner *owner) {
    for (int i = 0; i < scaler->served_count; i++)
        if (owner_is(owner, &scaler->served[i], parameter))
            return true;
    return false;
}

// Whether a gradient carries the scale of this scaler: from scale() to unscale. One whose optimizer
// no scaler has met yet is taken to carry that of every loss that was scaled in this iteration.
static bool still_scaled(const Scaler *scaler, const Tensor *parameter, Owner *owner) {
    if (owner_find(scaler, parameter, owner))
        return owner->served->stage == STAGE_READY && owner->served->window.open;
    if (!scaler->window.open)
        return false;
    for (const Scaler *other = scaler->engine->scalers; other; other = other->next)
        if (other != scaler && owner_find(other, parameter, owner))
            return false;
    return true;
}

bool scalers_allow_clip(Engine *engine, Tensor *const *parameters, int count, double limit,
                        const char *called, Error *error) {
    if (engine->device->replay) // it passed when it was called first, and no scale is known now
        return true;
    for (Scaler *scaler = engine->scalers; scaler; scaler = scaler->next) {
        Owner owner = {0};
        int i = 0;
        while (i < count && !(parameters[i]->grad && still_scaled(scaler, parameters[i], &owner)))
            i++;
        double scale = i < count ? scaler_get(scaler) : 1;
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
