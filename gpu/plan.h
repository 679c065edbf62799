// gpu/plan.h: the tables of plans on the card.
//
// A table has a record a tensor, and says of every piece whose it is (PieceTable, arguments.h). Of
// a plan that lasts it stays on the card and is written anew where an item has changed; of one for
// a single call it lies in the workspace, beside the call's scratch.
#pragma once

#include "gpu/kernels/arguments.h"
#include "kernel/kernel.h"

// Fills records[i], which is zeroed, of items[i], but for what lies in its `pieces`; those before
// it are filled. How many elements the item has.
typedef int64_t (*GpuFillRecord)(const void *items, int i, void *records);

typedef struct GpuPlanSource {
    const void *items;
    int count;
    size_t record_size;
    GpuFillRecord record;
    size_t scratch_of_tensor, scratch_of_piece; // bytes, each a multiple of 8
} GpuPlanSource;

typedef struct GpuPlan {
    PieceTable table;
    void *of_tensors, *of_pieces; // scratch of this call, aligned to 64 bytes
} GpuPlan;

// The table of a plan as the card has it now, and scratch.
bool gpu_plan_of(Device *device, PlanTable *kept, const GpuPlanSource *source, GpuPlan *plan,
                 Error *error) MUST_CHECK;

void gpu_plan_drop(Device *device, PlanTable *table);
