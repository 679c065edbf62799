// The pass over the gradients: which there are, what it made of them, and scales that come apart.
#include "precision/gradients.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grad/tape.h"
#include "kernel/allocator.h"
#include "precision/scaler_private.h"

// ---- of one parameter ---------------------------------------------------------------------------

void parameter_text(const Tensor *tensor, int i, char *text, size_t size) {
    const Parameter *record = parameter_of(tensor);
    if (record)
        snprintf(text, size, "%s", record->name);
    else
        snprintf(text, size, "parameter %d", i + 1);
}

Tensor *gradient_prepare(Tensor *parameter, const char *what, Error *error) {
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
    if (!tensor_check_readable(gradient, error))
        return NULL;
    Tensor *dense = tensor_copy_as(gradient, FORMAT_FP32, MEMORY_GRADIENTS, error);
    if (!dense)
        return NULL;
    tensor_release(gradient);
    parameter->grad = dense;
    return dense;
}

static Format rounding_of(const Tensor *parameter) {
    const Parameter *record = parameter_of(parameter);
    return record ? record->round_to : parameter->view.format;
}

// ---- made and freed -----------------------------------------------------------------------------

Gradients *gradients_new(Scalers *scalers, int size, bool full, Error *error) {
    Gradients *gradients = calloc(1, sizeof *gradients);
    size_t room = (size_t)(size ? size : 1);
    if (gradients) {
        gradients->references = 1;
        gradients->scalers = scalers;
        gradients->size = size;
        gradients->full = full;
        gradients->parameters = calloc(room, sizeof *gradients->parameters);
        gradients->slots = calloc(room, sizeof *gradients->slots);
        gradients->plan.items = calloc(room, sizeof *gradients->plan.items);
        gradients->item_slot = malloc(room * sizeof *gradients->item_slot);
    }
    if (!gradients || !gradients->parameters || !gradients->slots || !gradients->plan.items ||
        !gradients->item_slot) {
        gradients_free(gradients);
        error_fail(error, ERROR_MEMORY, "no memory for an optimizer of %d parameters", size);
        return NULL;
    }
    for (int i = 0; i < size; i++)
        gradients->item_slot[i] = -1;
    return gradients;
}

void gradients_add(Gradients *gradients, Tensor *parameter) {
    gradients->parameters[gradients->count++] = tensor_hold(parameter);
    parameter->optimizers++;
}

bool gradients_take_memory(Gradients *gradients, Error *error) {
    enum { LINE = 64 };
    _Static_assert(sizeof(StepFlags) <= LINE, "a line each");
    Device *device = gradients->scalers->device;
    size_t bytes = 3 * LINE + (size_t)gradients->count * sizeof(GradStats);
    char *memory = allocator_take(device->allocator, bytes, MEMORY_OPTIMIZER, error);
    if (!memory)
        return false;
    gradients->flags = gradients->single = (StepFlags *)(void *)memory;
    gradients->joined = (StepFlags *)(void *)(memory + LINE);
    gradients->measured = (StepFlags *)(void *)(memory + 2 * LINE);
    gradients->stats = (GradStats *)(void *)(memory + 3 * LINE);
    StepFlags flags = {.clip = 1};
    device_write(device, gradients->flags, &flags, sizeof flags);
    return true;
}

void gradients_hold(Gradients *gradients) {
    gradients->references++;
}

void gradients_free(Gradients *gradients) {
    if (!gradients || --gradients->references > 0)
        return;
    scalers_forget(gradients);
    for (int i = 0; i < gradients->count; i++) {
        gradients->parameters[i]->optimizers--;
        tensor_release(gradients->parameters[i]);
    }
    plan_drop(gradients->scalers->device, &gradients->plan.table);
    if (gradients->single)
        allocator_give(gradients->scalers->device->allocator, gradients->single);
    free(gradients->parameters);
    free(gradients->slots);
    free(gradients->plan.items);
    free(gradients->item_slot);
    free(gradients);
}

// ---- gathered -----------------------------------------------------------------------------------

bool gradients_are_any(const Gradients *gradients) {
    for (int i = 0; i < gradients->count; i++)
        if (gradients->parameters[i]->grad)
            return true;
    return false;
}

void gradients_drop(Gradients *gradients) {
    for (int i = 0; i < gradients->count; i++)
        tensor_drop_grad(gradients->parameters[i]);
    gradients->scanned = false;
}

static void item_build(Gradients *gradients, int item, int i) {
    gradients->slots[i].has_had_gradient = true;
    gradients->plan.items[item] =
        (ScanItem){.gradient = gradients->parameters[i]->grad->view, .stats = &gradients->stats[i]};
    gradients->item_slot[item] = i;
    plan_changed(&gradients->plan.table);
}

static bool gather(Gradients *gradients, Error *error) {
    int items = 0;
    gradients->arrivals = gradients->writes = 0;
    for (int i = 0; i < gradients->count; i++) {
        Tensor *tensor = gradients->parameters[i], *gradient = tensor->grad;
        if (!gradient)
            continue;
        if (gradient->view.format != FORMAT_FP32 || !view_is_dense(&gradient->view)) {
            char name[64];
            parameter_text(tensor, i, name, sizeof name);
            gradient = gradient_prepare(tensor, name, error);
            if (!gradient)
                return false;
        }
        if (!tensor_check_readable(gradient, error))
            return false;
        if (gradients->item_slot[items] != i)
            item_build(gradients, items, i);
        View *view = &gradients->plan.items[items].gradient;
        if (view->data != gradient->view.data)
            plan_changed(&gradients->plan.table);
        view->data = gradient->view.data;
        gradients->arrivals += tensor->arrivals;
        gradients->writes += tensor_version(gradient);
        items++;
    }
    if (items != gradients->plan.count)
        plan_changed(&gradients->plan.table);
    gradients->plan.count = items;
    if (items == 0)
        return error_fail(error, ERROR_USAGE,
                          "%s: no gradient was recorded: call :backward() on the loss first",
                          gradients->text);
    return true;
}

// ---- the scan -----------------------------------------------------------------------------------

// What each is rounded to on the way: those that came in parts are rounded already.
static void set_rounding(Gradients *gradients) {
    for (int k = 0; k < gradients->plan.count; k++) {
        int i = gradients->item_slot[k];
        const Tensor *tensor = gradients->parameters[i];
        const Parameter *counted = tensor->is_rounded ? parameter_of(tensor) : NULL;
        bool is_done = gradients->full || tensor->is_rounded;
        Format round_to = is_done ? FORMAT_FP32 : rounding_of(tensor);
        gradients->slots[i].was_gathered = counted && counted->gathered_count > 0;
        if (gradients->plan.items[k].round_to == round_to)
            continue;
        gradients->plan.items[k].round_to = round_to;
        plan_changed(&gradients->plan.table);
    }
}

static bool scan(Gradients *gradients, const ScaleState *scale, StepFlags *flags, Error *error) {
    Device *device = gradients->scalers->device;
    set_rounding(gradients);
    if (!device->backend->multi->scan(device, &gradients->plan, scale, flags, error))
        return false;
    for (int k = 0; k < gradients->plan.count; k++) {
        Tensor *tensor = gradients->parameters[gradients->item_slot[k]];
        tensor->carries = GRAD_TRUE;
        tensor->is_rounded = true;
    }
    gradients->flags = flags;
    gradients->scanned = true;
    gradients->scanned_count = gradients->plan.count;
    gradients->scanned_arrivals = gradients->arrivals;
    gradients->scanned_writes = gradients->writes;
    return true;
}

bool gradients_scan(Gradients *gradients, const ScaleState *scale, Error *error) {
    return gather(gradients, error) && scan(gradients, scale, gradients->single, error);
}

// ---- scales that gradients carry ----------------------------------------------------------------

static bool is_scale(uint64_t number) {
    return number != GRAD_TRUE && number != GRAD_OF_ANY;
}

const GradPart *gradients_scaled_part(const Gradients *gradients, GradPart *own, int *at) {
    for (int i = 0; i < gradients->count; i++) {
        const Tensor *tensor = gradients->parameters[i];
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

bool gradients_carry_only(const Gradients *gradients, uint64_t number) {
    for (int i = 0; i < gradients->count; i++) {
        const Tensor *tensor = gradients->parameters[i];
        if (tensor->apart)
            return false;
        if (tensor->grad && tensor->carries != number && tensor->carries != GRAD_OF_ANY)
            return false;
    }
    return true;
}

// The item of what carries a scale; made true by it.
static ScanItem item_of(const Gradients *gradients, const Tensor *tensor, const Tensor *gradient,
                        bool is_rounded) {
    bool is_done = gradients->full || is_rounded;
    return (ScanItem){.gradient = gradient->view,
                      .round_to = is_done ? FORMAT_FP32 : rounding_of(tensor)};
}

bool gradients_scan_scale(Gradients *gradients, uint64_t number, const ScaleState *scale,
                          StepFlags *flags, Error *error) {
    Device *device = gradients->scalers->device;
    ScanPlan plan = {.items = calloc(2 * (size_t)gradients->count, sizeof *plan.items)};
    if (!plan.items)
        return error_fail(error, ERROR_MEMORY, "no memory to divide gradients by their scale");
    bool done = true;
    for (int i = 0; done && i < gradients->count; i++) {
        Tensor *tensor = gradients->parameters[i];
        char name[64];
        parameter_text(tensor, i, name, sizeof name);
        bool is_own = tensor->grad && (tensor->carries == number || tensor->carries == GRAD_OF_ANY);
        if (is_own && (done = gradient_prepare(tensor, name, error) != NULL)) {
            plan.items[plan.count++] = item_of(gradients, tensor, tensor->grad, tensor->is_rounded);
            tensor->carries = GRAD_TRUE;
            tensor->is_rounded = true;
        }
        for (GradPart *part = tensor->apart; part; part = part->next)
            if (part->carries == number) { // one a scale
                plan.items[plan.count++] = item_of(gradients, tensor, part->grad, part->is_rounded);
                part->carries = GRAD_TRUE;
                part->is_rounded = true;
                break;
            }
    }
    done = done && device->backend->multi->scan(device, &plan, scale, flags, error);
    free(plan.items);
    return done;
}

static bool join(Gradients *gradients, int i, Error *error) {
    Tensor *tensor = gradients->parameters[i];
    char name[64];
    parameter_text(tensor, i, name, sizeof name);
    if (!tensor->apart)
        return true;
    if (!gradient_prepare(tensor, name, error))
        return false;
    // What no scale was on is rounded as the others were.
    if (!tensor->is_rounded) {
        ScanItem item = item_of(gradients, tensor, tensor->grad, false);
        ScanPlan plan = {.items = &item, .count = 1};
        Device *device = gradients->scalers->device;
        if (!device->backend->multi->scan(device, &plan, NULL, gradients->joined, error))
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

bool gradients_scan_joined(Gradients *gradients, Error *error) {
    for (int i = 0; i < gradients->count; i++)
        if (!join(gradients, i, error))
            return false;
    return gather(gradients, error) && scan(gradients, NULL, gradients->joined, error);
}

bool gradients_measure(Gradients *gradients, const StepFlags **measured, Error *error) {
    Device *device = gradients->scalers->device;
    *measured = NULL;
    if (gradients->writes == gradients->scanned_writes)
        return true;
    ScanPlan plan = {.items = calloc((size_t)gradients->plan.count, sizeof *plan.items),
                     .count = gradients->plan.count};
    if (!plan.items)
        return error_fail(error, ERROR_MEMORY, "no memory to measure the gradients");
    for (int i = 0; i < plan.count; i++)
        plan.items[i] =
            (ScanItem){.gradient = gradients->plan.items[i].gradient, .round_to = FORMAT_FP32};
    bool done = device->backend->multi->scan(device, &plan, NULL, gradients->measured, error);
    free(plan.items);
    *measured = gradients->measured;
    return done;
}

// ---- before and after a step --------------------------------------------------------------------

bool gradients_prepare_step(Gradients *gradients, Error *error) {
    if (!gather(gradients, error))
        return false;
    if (!gradients->scanned &&
        !(scalers_allow_step(gradients, error) && gradients_scan_joined(gradients, error)))
        return false;
    if (gradients->scanned_count != gradients->plan.count)
        return error_fail(error, ERROR_USAGE,
                          "%s: %d gradients were unscaled and %d are there now; call :backward() "
                          "before unscale, and zero_grad after step",
                          gradients->text, gradients->scanned_count, gradients->plan.count);
    if (gradients->scanned_arrivals != gradients->arrivals)
        return error_fail(error, ERROR_USAGE,
                          "%s: gradients were added after unscale, and those are still scaled; "
                          "call :backward() for every micro-batch first, unscale once, then step",
                          gradients->text);
    return true;
}

void gradients_note_step(Gradients *gradients) {
    gradients->scanned = false;
    scalers_note_step(gradients);
}
