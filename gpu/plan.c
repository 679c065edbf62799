#include "gpu/plan.h"

#include <stdlib.h>
#include <string.h>

#include "kernel/allocator.h"

enum { LINE = 64 };

// What is made of a plan. Only what differs from what the card has is written to it.
typedef struct Made {
    char *host;   // the table as the card has it
    void *memory; // of the card
    size_t bytes; // of both
    u32 pieces;
} Made;

static size_t line(size_t bytes) {
    return (bytes + LINE - 1) / LINE * LINE;
}

// ---- a table on the host ------------------------------------------------------------------------

static u32 pieces_in(int64_t elements) {
    return (u32)((elements + PIECE_ELEMENTS - 1) / PIECE_ELEMENTS);
}

// The records; how many pieces they have together.
static u32 fill_records(const GpuPlanSource *source, char *records) {
    u32 pieces = 0;
    memset(records, 0, line((size_t)source->count * source->record_size));
    for (int i = 0; i < source->count; i++) {
        char *record = records + (size_t)i * source->record_size;
        int64_t count = source->record(source->items, i, records);
        Pieces own = {count, pieces, pieces_in(count)};
        memcpy(record, &own, sizeof own);
        pieces += own.number;
    }
    return pieces;
}

static void fill_tensors(const GpuPlanSource *source, const char *records, u32 *tensor_of) {
    for (int i = 0; i < source->count; i++) {
        Pieces own;
        memcpy(&own, records + (size_t)i * source->record_size, sizeof own);
        for (u32 piece = 0; piece < own.number; piece++)
            tensor_of[own.first + piece] = (u32)i;
    }
}

// The caller frees it.
static char *fill_table(const GpuPlanSource *source, size_t *bytes, u32 *pieces, Error *error) {
    size_t records = line((size_t)source->count * source->record_size);
    char *table = malloc(records ? records : 1);
    if (table) {
        *pieces = fill_records(source, table);
        *bytes = records + line(*pieces * sizeof(u32));
        char *grown = realloc(table, *bytes ? *bytes : 1);
        if (!grown)
            free(table);
        table = grown;
    }
    if (!table) {
        error_fail(error, ERROR_MEMORY, "no memory for a plan of %d tensors", source->count);
        return NULL;
    }
    memset(table + records, 0, *bytes - records);
    fill_tensors(source, table, (u32 *)(void *)(table + records));
    return table;
}

// ---- a table that stays -------------------------------------------------------------------------

void gpu_plan_drop(Device *device, PlanTable *table) {
    Made *made = table->made;
    table->made = NULL;
    if (!made)
        return;
    if (made->memory)
        allocator_give(device->allocator, made->memory);
    free(made->host);
    free(made);
}

// From the first byte to the last that differ.
static void write_difference(Device *device, Made *made, const char *table) {
    size_t first = 0, end = made->bytes;
    while (first < end && made->host[first] == table[first])
        first++;
    while (end > first && made->host[end - 1] == table[end - 1])
        end--;
    device->backend->write(device, (char *)made->memory + first, table + first, end - first);
}

static bool make(Device *device, PlanTable *kept, const GpuPlanSource *source, Error *error) {
    Made *made = kept->made;
    size_t bytes = 0;
    u32 pieces = 0;
    char *table = fill_table(source, &bytes, &pieces, error);
    if (!table)
        return false;
    if (made && made->bytes == bytes) {
        write_difference(device, made, table);
        free(made->host);
        made->host = table;
    } else {
        gpu_plan_drop(device, kept);
        made = calloc(1, sizeof *made);
        if (!made) {
            free(table);
            return error_fail(error, ERROR_MEMORY, "no memory for a plan");
        }
        *made = (Made){.host = table, .bytes = bytes};
        kept->made = made;
        made->memory = allocator_take(device->allocator, bytes, MEMORY_WORKSPACE, error);
        if (!made->memory) {
            gpu_plan_drop(device, kept);
            return false;
        }
        device->backend->write(device, made->memory, table, bytes);
    }
    made->pieces = pieces;
    kept->made_of = kept->version;
    return true;
}

// ---- both ---------------------------------------------------------------------------------------

static PieceTable table_at(const void *memory, const GpuPlanSource *source, u32 pieces) {
    size_t records = line((size_t)source->count * source->record_size);
    return (PieceTable){.records = memory,
                        .tensor_of = (const void *)((const char *)memory + records),
                        .tensors = (u32)source->count,
                        .pieces = pieces};
}

static size_t scratch_of(const GpuPlanSource *source, u32 pieces) {
    return line((size_t)source->count * source->scratch_of_tensor) +
           line(pieces * source->scratch_of_piece);
}

static void set_scratch(GpuPlan *plan, const GpuPlanSource *source, char *scratch) {
    plan->of_tensors = scratch;
    plan->of_pieces = scratch + line((size_t)source->count * source->scratch_of_tensor);
}

static bool plan_of_one_call(Device *device, const GpuPlanSource *source, GpuPlan *plan,
                             Error *error) {
    size_t bytes = 0;
    u32 pieces = 0;
    char *table = fill_table(source, &bytes, &pieces, error);
    if (!table)
        return false;
    char *memory = device_workspace(device, bytes + scratch_of(source, pieces), error);
    if (memory) {
        device->backend->write(device, memory, table, bytes);
        plan->table = table_at(memory, source, pieces);
        set_scratch(plan, source, memory + bytes);
    }
    free(table);
    return memory != NULL;
}

bool gpu_plan_of(Device *device, PlanTable *kept, const GpuPlanSource *source, GpuPlan *plan,
                 Error *error) {
    if (kept->version == 0)
        return plan_of_one_call(device, source, plan, error);
    if ((!kept->made || kept->made_of != kept->version) && !make(device, kept, source, error))
        return false;
    const Made *made = kept->made;
    char *scratch = device_workspace(device, scratch_of(source, made->pieces), error);
    if (!scratch)
        return false;
    plan->table = table_at(made->memory, source, made->pieces);
    set_scratch(plan, source, scratch);
    return true;
}
