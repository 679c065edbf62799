// Clipping of gradients in place, by their common norm or one by one.
#include <math.h>
#include <stdlib.h>

#include "optim/optimizer.h"

static bool check_limit(double limit, const char *called, Error *error) {
    if (limit > 0 && isfinite(limit))
        return true;
    return error_fail(error, ERROR_USAGE, "%s: the limit is %g: a positive, finite number wanted",
                      called, limit);
}

static bool plan_grow(ScanPlan *plan, int *room, int count, const char *called, Error *error) {
    if (count <= *room)
        return true;
    ScanItem *items = realloc(plan->items, (size_t)count * sizeof *items);
    if (!items)
        return error_fail(error, ERROR_MEMORY, "%s: no memory", called);
    plan->items = items;
    *room = count;
    return true;
}

// The gradients that there are, as items of a scan that changes nothing. The engine keeps the plan:
// scripts clip the same ones in every step. NULL on failure.
static ScanPlan *plan_gradients(Engine *engine, Tensor *const *parameters, int count,
                                const char *called, Error *error) {
    ScanPlan *plan = &engine->clip;
    int found = 0;
    if (!plan_grow(plan, &engine->clip_room, count, called, error))
        return NULL;
    for (int i = 0; i < count; i++) {
        if (!parameters[i]->grad)
            continue;
        char name[64];
        parameter_text(parameters[i], i, name, sizeof name);
        Tensor *gradient = gradient_prepare(parameters[i], name, error);
        if (!gradient) {
            error_prefix(error, "%s", called);
            return NULL;
        }
        tensor_written(gradient); // an optimizer that has measured it does so again
        ScanItem *item = &plan->items[found];
        if (found >= plan->count || item->gradient.data != gradient->view.data ||
            view_count(&item->gradient) != view_count(&gradient->view)) {
            *item = (ScanItem){.gradient = gradient->view, .round_to = FORMAT_FP32};
            plan_changed(&plan->table);
        }
        found++;
    }
    if (found != plan->count)
        plan_changed(&plan->table);
    plan->count = found;
    if (found > 0)
        return plan;
    error_fail(error, ERROR_USAGE,
               "%s: no gradient was recorded: call :backward() on the loss first", called);
    return NULL;
}

// A tensor of no dimension over one fp32 of the flags that `base` holds.
static Tensor *number_in(Tensor *base, size_t offset, Error *error) {
    View view = view_dense((char *)base->view.data + offset, FORMAT_FP32, 0, NULL);
    return tensor_view(base, &view, error);
}

Tensor *optimizer_clip_norm(Engine *engine, Tensor *const *parameters, int count, double limit,
                            Error *error) {
    const char *called = "clip_norm";
    const MultiKernels *multi = engine->device->backend->multi;
    if (!check_limit(limit, called, error) ||
        !scalers_allow_clip(&engine->scalers, parameters, count, limit, called, error))
        return NULL;
    ScanPlan *plan = plan_gradients(engine, parameters, count, called, error);
    if (!plan)
        return NULL;
    Tensor *norm = NULL;
    Tensor *base = tensor_new_bytes(engine->device, sizeof(StepFlags), MEMORY_WORKSPACE, error);
    bool done = base != NULL;
    if (done) {
        StepFlags *flags = base->view.data;
        ProfileStart began = profile_begin_work(engine);
        done = multi->scan(engine->device, plan, NULL, flags, error) &&
               multi->clip_norm(engine->device, limit, flags, error) &&
               multi->multiply(engine->device, plan, &flags->clip, error);
        profile_end_work(engine, WORK_CLIP, began);
    }
    if (done)
        norm = number_in(base, offsetof(StepFlags, norm), error);
    tensor_release(base);
    return norm;
}

bool optimizer_clip_value(Engine *engine, Tensor *const *parameters, int count, double limit,
                          Error *error) {
    const char *called = "clip_value";
    if (!check_limit(limit, called, error) ||
        !scalers_allow_clip(&engine->scalers, parameters, count, limit, called, error))
        return false;
    ScanPlan *plan = plan_gradients(engine, parameters, count, called, error);
    ProfileStart began = profile_begin_work(engine);
    bool done = plan && engine->device->backend->multi->clip_value(engine->device, plan,
                                                                   (float)limit, error);
    profile_end_work(engine, WORK_CLIP, began);
    return done;
}
