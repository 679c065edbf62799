// The one pass over the gradients on a card, and gradients held to a limit: what
// gpu/kernels/scan.cu is told.
#include "gpu/multi.h"

#include "gpu/launch.h"
#include "gpu/plan.h"
#include "number/inline.h"

static int64_t record_of(const void *items, int i, void *records) {
    const ScanItem *item = (const ScanItem *)items + i;
    float normal = (float)format_table[item->round_to].smallest_normal;
    ((ScanRecord *)records)[i] = (ScanRecord){.gradient = gpu_span(&item->gradient),
                                              .stats = item->stats,
                                              .round_to = item->round_to,
                                              .smallest_normal = number_bits_of_fp32(normal),
                                              .adds = item->adds,
                                              .wide = gpu_lies_wide(&item->gradient)};
    return view_count(&item->gradient);
}

static GpuPlanSource source_of(const ScanPlan *plan, size_t scratch_of_piece) {
    return (GpuPlanSource){.items = plan->items,
                           .count = plan->count,
                           .record_size = sizeof(ScanRecord),
                           .record = record_of,
                           .scratch_of_piece = scratch_of_piece};
}

bool gpu_multi_scan(Device *device, ScanPlan *plan, const ScaleState *scale, StepFlags *flags,
                    Error *error) {
    GpuPlan made;
    GpuPlanSource source = source_of(plan, sizeof(ScanSums));
    if (!gpu_plan_of(device, &plan->table, &source, &made, error))
        return false;
    ScanArguments arguments = {made.table, scale, flags, made.of_pieces};
    // A block of each tensor, and one of all of them.
    GpuGrid ends = {.x = (int64_t)plan->count + 1}, pieces = {.x = made.table.pieces};
    return gpu_launch_scan_begin(device, ends, &arguments, error) &&
           gpu_launch_scan(device, pieces, &arguments, error) &&
           gpu_launch_scan_end(device, ends, &arguments, error);
}

bool gpu_multi_clip_value(Device *device, ScanPlan *plan, float limit, Error *error) {
    GpuPlan made;
    GpuPlanSource source = source_of(plan, 0);
    if (!gpu_plan_of(device, &plan->table, &source, &made, error))
        return false;
    ClipValueArguments arguments = {made.table, limit};
    return gpu_launch_clip_value(device, (GpuGrid){.x = made.table.pieces}, &arguments, error);
}

bool gpu_multi_multiply(Device *device, ScanPlan *plan, const float *factor, Error *error) {
    GpuPlan made;
    GpuPlanSource source = source_of(plan, 0);
    if (!gpu_plan_of(device, &plan->table, &source, &made, error))
        return false;
    MultiplyArguments arguments = {made.table, factor};
    return gpu_launch_multiply(device, (GpuGrid){.x = made.table.pieces}, &arguments, error);
}
