// What runs over all tensors of a model at once, on a card: the table, and what needs little
// telling.
#include "gpu/multi.h"

#include <string.h>

#include "gpu/backend.h"
#include "gpu/launch.h"
#include "gpu/operands.h"
#include "gpu/plan.h"

Span gpu_span(const View *view) {
    return (Span){view->data, view->format};
}

bool gpu_lies_wide(const View *view) {
    Operand operand = gpu_dense(view);
    return !view->data || gpu_goes_wide(&operand);
}

// ---- what a step decides by ---------------------------------------------------------------------

static bool clip_norm(Device *device, double limit, StepFlags *flags, Error *error) {
    ClipNormArguments arguments = {limit, flags};
    return gpu_launch_clip_norm(device, (GpuGrid){.x = 1}, &arguments, error);
}

static bool scale_update(Device *device, const ScaleRule *rule, ScaleState *state,
                         const StepFlags *const *flags, int count, Error *error) {
    ScaleUpdateArguments arguments = {.rule = *rule, .state = state, .count = (u32)count};
    size_t bytes = (size_t)count * sizeof(StepFlags *);
    if (count <= SCALE_FLAGS) {
        memcpy(arguments.few, flags, bytes);
    } else {
        void *many = device_workspace(device, bytes, error);
        if (!many)
            return false;
        device->backend->write(device, many, flags, bytes);
        arguments.many = many;
    }
    return gpu_launch_scale_update(device, (GpuGrid){.x = 1}, &arguments, error);
}

// ---- pairs --------------------------------------------------------------------------------------

static int64_t pair_of(const void *items, int i, void *records) {
    const ViewPair *item = (const ViewPair *)items + i;
    ((PairRecord *)records)[i] =
        (PairRecord){.target = gpu_span(&item->target),
                     .source = gpu_span(&item->source),
                     .wide = gpu_lies_wide(&item->target) && gpu_lies_wide(&item->source)};
    return view_count(&item->target);
}

static bool plan_of_pairs(Device *device, PairPlan *plan, GpuPlan *made, Error *error) {
    GpuPlanSource source = {.items = plan->items,
                            .count = plan->count,
                            .record_size = sizeof(PairRecord),
                            .record = pair_of};
    return gpu_plan_of(device, &plan->table, &source, made, error);
}

static bool restore(Device *device, PairPlan *plan, const StepFlags *flags, Error *error) {
    GpuPlan made;
    if (!plan_of_pairs(device, plan, &made, error))
        return false;
    PairArguments arguments = {.table = made.table, .flags = flags};
    return gpu_launch_restore(device, (GpuGrid){.x = made.table.pieces}, &arguments, error);
}

static bool average(Device *device, PairPlan *plan, double decay, const StepFlags *flags,
                    Error *error) {
    GpuPlan made;
    if (!plan_of_pairs(device, plan, &made, error))
        return false;
    PairArguments arguments = {made.table, flags, (float)decay, (float)(1 - decay)};
    return gpu_launch_average(device, (GpuGrid){.x = made.table.pieces}, &arguments, error);
}

const MultiKernels gpu_multi = {
    .scan = gpu_multi_scan,
    .clip_norm = clip_norm,
    .clip_value = gpu_multi_clip_value,
    .multiply = gpu_multi_multiply,
    .update = gpu_multi_update,
    .scale_update = scale_update,
    .restore = restore,
    .average = average,
    .look_begin = gpu_look_begin,
    .look = gpu_look,
    .drop = gpu_plan_drop,
};
