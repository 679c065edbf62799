// The optimizers' updates on a card: what gpu/kernels/update.cu is told.
#include "gpu/multi.h"

#include "gpu/launch.h"
#include "gpu/plan.h"
#include "kernel/random.h"

static int64_t record_of(const void *items, int i, void *records) {
    const UpdateItem *item = (const UpdateItem *)items + i;
    UpdateRecord *table = records;
    bool wide = gpu_lies_wide(&item->parameter) && gpu_lies_wide(&item->gradient) &&
                gpu_lies_wide(&item->moment[0]) && gpu_lies_wide(&item->moment[1]) &&
                gpu_lies_wide(&item->low);
    table[i] = (UpdateRecord){.parameter = gpu_span(&item->parameter),
                              .gradient = gpu_span(&item->gradient),
                              .moment = {gpu_span(&item->moment[0]), gpu_span(&item->moment[1])},
                              .low = gpu_span(&item->low),
                              .moved = item->moved,
                              .steps = item->steps,
                              .group = item->group,
                              .weight_decay = item->weight_decay,
                              .wide = wide};
    // Each tensor begins a new block of random numbers behind those of the one before.
    if (i > 0)
        table[i].block = table[i - 1].block + random_blocks(table[i - 1].pieces.count);
    return view_count(&item->parameter);
}

// By the kinds of optimizers; LAMB's is the second of its two passes.
static bool launch_rule(Device *device, GpuGrid grid, const UpdateArguments *arguments,
                        Error *error) {
    switch (arguments->rule.kind) {
    case OPTIMIZER_SGD: return gpu_launch_update_sgd(device, grid, arguments, error);
    case OPTIMIZER_ADAM: return gpu_launch_update_adam(device, grid, arguments, error);
    case OPTIMIZER_ADAMW: return gpu_launch_update_adamw(device, grid, arguments, error);
    case OPTIMIZER_LAMB:
    case OPTIMIZER_COUNT: break;
    }
    GpuGrid tensors = {.x = arguments->table.tensors};
    return gpu_launch_update_lamb_moments(device, grid, arguments, error) &&
           gpu_launch_update_lamb_ratio(device, tensors, arguments, error) &&
           gpu_launch_update_lamb(device, grid, arguments, error);
}

bool gpu_multi_update(Device *device, const UpdateRule *rule, UpdatePlan *plan,
                      const StepFlags *flags, Progress *progress, Error *error) {
    enum { NUMBERS = (sizeof(UpdateNumbers) + 7) / 8 * 8, SUMS = 2 * sizeof(Squares) };
    GpuPlan made;
    GpuPlanSource source = {.items = plan->items,
                            .count = plan->count,
                            .record_size = sizeof(UpdateRecord),
                            .record = record_of,
                            .scratch_of_tensor = NUMBERS,
                            .scratch_of_piece = SUMS};
    if (!gpu_plan_of(device, &plan->table, &source, &made, error))
        return false;
    bool unmeasured = rule->max_grad_norm > 0 && !rule->measured && !flags;
    UpdateArguments arguments = {.table = made.table,
                                 .rule = *rule,
                                 .rest1 = (float)(1 - (double)rule->beta1),
                                 .rest2 = (float)(1 - (double)rule->beta2),
                                 .flags = flags,
                                 .progress = progress,
                                 .numbers = made.of_tensors,
                                 .squares = made.of_pieces};
    arguments.moved = rule->measures ? arguments.squares + made.table.pieces : NULL;
    GpuGrid pieces = {.x = made.table.pieces}, tensors = {.x = plan->count};
    return (!unmeasured || gpu_launch_update_norm(device, pieces, &arguments, error)) &&
           gpu_launch_update_begin(device, (GpuGrid){.x = 1}, &arguments, error) &&
           launch_rule(device, pieces, &arguments, error) &&
           (!rule->measures || gpu_launch_update_moved(device, tensors, &arguments, error));
}
