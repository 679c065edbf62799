#include "kernel/allocator.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Size classes: four to each power of two, so that at most a quarter of a block is unused.
enum { SMALLEST_LOG2 = 8, STEPS = 4, CLASSES = (48 - SMALLEST_LOG2) * STEPS };

// A block's record lies in host memory, since the block itself may be on another device; the
// records are found again by address through a hash table with open addressing.
struct Block {
    struct Block *next; // on a free list
    void *memory;
    size_t bytes; // of its class
    int class;
    bool is_free;
    int pins; // so many keep it from the free lists
    uint64_t number;
    MemoryPurpose purpose;
};

struct Allocator {
    Device *device;
    Block *free_list[CLASSES];
    Block **table; // in use and cached, by address
    size_t table_size, table_used;
    MemoryUse use;
    uint64_t takings;
    size_t limit, host;
    MemoryHolder *holders;
    size_t own;        // that the device took for itself
    bool takes_anew;   // of the system alone
    int steps;         // that have ended, up to two
    int kept[CLASSES]; // blocks of what comes and goes that the first kept
    void *workspace;
    size_t workspace_bytes;
};

static int class_of(size_t bytes, size_t *rounded) {
    size_t smallest = (size_t)1 << SMALLEST_LOG2;
    if (bytes <= smallest) {
        *rounded = smallest;
        return 0;
    }
    int log2 = 63 - __builtin_clzll((unsigned long long)(bytes - 1));
    size_t base = (size_t)1 << log2, step = base / STEPS;
    size_t part = (bytes - base + step - 1) / step; // 1..STEPS
    *rounded = base + part * step;
    return (log2 - SMALLEST_LOG2) * STEPS + (int)part;
}

size_t allocator_rounded(size_t bytes) {
    size_t rounded;
    class_of(bytes, &rounded);
    return rounded;
}

static size_t slot_of(const Allocator *allocator, const void *memory) {
    uint64_t key = (uint64_t)(uintptr_t)memory >> 6;
    return (size_t)(key * 0x9E3779B97F4A7C15u >> 20) & (allocator->table_size - 1);
}

static Block *block_find(const Allocator *allocator, const void *memory) {
    for (size_t i = slot_of(allocator, memory);; i = (i + 1) & (allocator->table_size - 1)) {
        assert(allocator->table[i] && "memory that this allocator did not give");
        if (allocator->table[i]->memory == memory)
            return allocator->table[i];
    }
}

static void table_put(Allocator *allocator, Block *block) {
    size_t i = slot_of(allocator, block->memory);
    while (allocator->table[i])
        i = (i + 1) & (allocator->table_size - 1);
    allocator->table[i] = block;
}

static bool table_grow(Allocator *allocator) {
    size_t old_size = allocator->table_size, new_size = old_size ? old_size * 2 : 256;
    Block **old = allocator->table, **table = calloc(new_size, sizeof *table);
    if (!table)
        return false;
    allocator->table = table;
    allocator->table_size = new_size;
    for (size_t i = 0; i < old_size; i++)
        if (old[i])
            table_put(allocator, old[i]);
    free(old);
    return true;
}

Allocator *allocator_new(Device *device) {
    Allocator *allocator = calloc(1, sizeof *allocator);
    if (!allocator)
        return NULL;
    allocator->device = device;
    if (!table_grow(allocator)) {
        free(allocator);
        return NULL;
    }
    return allocator;
}

// Makes the allocator forget all that is cached. The table is filled anew in place, since there may
// be no memory for another.
static Block *take_cached(Allocator *allocator) {
    Block *cached = NULL, *in_use = NULL, **end = &cached;
    for (int class = 0; class < CLASSES; class ++) {
        *end = allocator->free_list[class];
        while (*end)
            end = &(*end)->next;
        allocator->free_list[class] = NULL;
    }
    for (size_t i = 0; i < allocator->table_size; i++) {
        Block *block = allocator->table[i];
        allocator->table[i] = NULL;
        if (block && !(block->is_free && block->pins == 0)) {
            block->next = in_use;
            in_use = block;
        }
    }
    allocator->table_used = 0;
    for (; in_use; in_use = in_use->next) {
        table_put(allocator, in_use);
        allocator->table_used++;
    }
    return cached;
}

// A device may do what it held back before it gives back memory, and take and give other memory for
// that: all that is cached is forgotten before any of it is freed, and what came meanwhile is too.
void allocator_trim(Allocator *allocator) {
    const Backend *backend = allocator->device->backend;
    for (Block *cached; (cached = take_cached(allocator));)
        for (Block *next; cached; cached = next) {
            next = cached->next;
            backend->memory_free(allocator->device, cached->memory, cached->bytes);
            allocator->use.reserved -= cached->bytes;
            free(cached);
        }
}

void allocator_free(Allocator *allocator) {
    if (!allocator)
        return;
    if (allocator->workspace)
        allocator_give(allocator, allocator->workspace);
    assert(allocator->use.total_now == allocator->own && "memory of the device is still in use");
    allocator_trim(allocator);
    free(allocator->table);
    free(allocator);
}

// Memory of the device's own is limited by the device.
static bool has_room(const Allocator *allocator, size_t bytes, bool on_host) {
    if (!allocator->limit)
        return true;
    bool own = allocator->device->memory > 0;
    return (own && !on_host) ||
           (own ? 0 : allocator->use.reserved) + allocator->host + bytes <= allocator->limit;
}

static bool fail_full(const Allocator *allocator, size_t bytes, bool on_host, Error *error) {
    const Device *device = allocator->device;
    size_t used = (device->memory && on_host ? 0 : allocator->use.total_now) +
                  (device->memory && !on_host ? 0 : allocator->host);
    char who[64], all[32] = "";
    if (device->memory && on_host)
        snprintf(who, sizeof who, "the host");
    else
        snprintf(who, sizeof who, "device %s", device->label);
    if (device->memory && !on_host)
        snprintf(all, sizeof all, " of its %zu", (size_t)device->memory >> 20);
    else if (allocator->limit)
        snprintf(all, sizeof all, " of %zu", allocator->limit >> 20);
    return error_fail(error, ERROR_MEMORY,
                      "%s is out of memory: %zu MiB asked, %zu MiB%s in use; a smaller batch or a "
                      "lower precision needs less",
                      who, bytes >> 20, used >> 20, all);
}

static Block *block_new(Allocator *allocator, int class, size_t bytes) {
    if (!has_room(allocator, bytes, false))
        return NULL;
    if (allocator->table_used * 2 >= allocator->table_size && !table_grow(allocator))
        return NULL;
    Block *block = calloc(1, sizeof *block);
    if (!block)
        return NULL;
    block->memory = allocator->device->backend->memory_new(allocator->device, bytes);
    if (!block->memory) {
        free(block);
        return NULL;
    }
    block->bytes = bytes;
    block->class = class;
    allocator->use.reserved += bytes;
    allocator->use.system_calls++;
    table_put(allocator, block);
    allocator->table_used++;
    return block;
}

static void raise(size_t *peak, size_t now) {
    if (now > *peak)
        *peak = now;
}

static void account_purpose(MemoryUse *use, size_t bytes, MemoryPurpose purpose) {
    use->now[purpose] += bytes;
    raise(&use->peak[purpose], use->now[purpose]);
    raise(&use->lap_peak[purpose], use->now[purpose]);
}

static void account(MemoryUse *use, size_t bytes, MemoryPurpose purpose) {
    account_purpose(use, bytes, purpose);
    use->total_now += bytes;
    raise(&use->total_peak, use->total_now);
    raise(&use->lap_total_peak, use->total_now);
}

void allocator_account_own(Allocator *allocator, size_t was, size_t bytes, MemoryPurpose purpose) {
    MemoryUse *use = &allocator->use;
    use->now[purpose] -= was;
    use->total_now -= was;
    use->reserved += bytes - was; // unsigned: right where it shrinks too
    use->system_calls++;
    account(use, bytes, purpose);
    allocator->own += bytes - was;
}

void allocator_take_anew(Allocator *allocator, bool anew) {
    allocator->takes_anew = anew;
}

void allocator_note_asked(Allocator *allocator) {
    allocator->use.system_calls++;
}

// Whether anybody had memory to do without, which is the system's again.
static bool ask_holders(Allocator *allocator) {
    bool any = false;
    for (MemoryHolder *holder = allocator->holders; holder; holder = holder->next)
        any = holder->let_go(holder) || any;
    if (any)
        allocator_trim(allocator);
    return any;
}

static Block *block_pressed(Allocator *allocator, int class, size_t bytes) {
    allocator_trim(allocator);
    Block *block = block_new(allocator, class, bytes);
    return !block && ask_holders(allocator) ? block_new(allocator, class, bytes) : block;
}

void *allocator_take(Allocator *allocator, size_t bytes, MemoryPurpose purpose, Error *error) {
    size_t rounded;
    if (bytes >> 47) {
        error_fail(error, ERROR_MEMORY, "%zu bytes of memory cannot be had", bytes);
        return NULL;
    }
    int class = class_of(bytes, &rounded);
    Block *block = allocator->takes_anew ? NULL : allocator->free_list[class];
    if (block) {
        allocator->free_list[class] = block->next;
    } else {
        block = block_new(allocator, class, rounded);
        if (!block && !allocator->takes_anew)
            block = block_pressed(allocator, class, rounded);
        if (!block) {
            if (device_works(allocator->device, error))
                fail_full(allocator, rounded, false, error);
            return NULL; // one that has failed gives none, however much is left
        }
    }
    block->is_free = false;
    block->number = ++allocator->takings;
    block->purpose = purpose;
    account(&allocator->use, block->bytes, purpose);
    return block->memory;
}

// For a device that captures steps by address, so that equal steps are given equal memory; for
// others the one that is warm comes first.
static void cache(Allocator *allocator, Block *block) {
    Block **place = &allocator->free_list[block->class];
    if (device_captures(allocator->device))
        while (*place && (uintptr_t)(*place)->memory < (uintptr_t)block->memory)
            place = &(*place)->next;
    block->next = *place;
    block->is_free = true;
    *place = block;
}

static void let_go(Allocator *allocator, Block *block) {
    allocator->use.now[block->purpose] -= block->bytes;
    allocator->use.total_now -= block->bytes;
    cache(allocator, block);
}

void allocator_give(Allocator *allocator, void *memory) {
    if (!memory)
        return;
    Block *block = block_find(allocator, memory);
    if (block->pins > 0)
        block->is_free = true;
    else
        let_go(allocator, block);
}

// ---- memory that is to stay where it is ---------------------------------------------------------

uint64_t allocator_takings(const Allocator *allocator) {
    return allocator->takings;
}

bool allocator_locate(const Allocator *allocator, const void *address, MemoryPlace *place) {
    for (size_t i = 0; i < allocator->table_size; i++) {
        const Block *block = allocator->table[i];
        const size_t offset = block ? (uintptr_t)address - (uintptr_t)block->memory : 0;
        if (!block || offset >= block->bytes) // unsigned: what lies before it is far behind
            continue;
        *place = (MemoryPlace){block->memory, block->bytes, block->number, block->purpose,
                               !block->is_free};
        return true;
    }
    return false;
}

const Block *allocator_pin(Allocator *allocator, void *memory) {
    Block *block = block_find(allocator, memory);
    if (block->is_free && block->pins == 0) {
        Block **place = &allocator->free_list[block->class];
        while (*place != block)
            place = &(*place)->next;
        *place = block->next;
        account(&allocator->use, block->bytes, block->purpose);
    }
    block->pins++;
    return block;
}

void allocator_unpin(Allocator *allocator, const Block *pinned) {
    Block *block = block_find(allocator, pinned->memory);
    if (--block->pins == 0 && block->is_free)
        let_go(allocator, block);
}

bool allocator_in_use(const Block *pinned) {
    return !pinned->is_free;
}

void allocator_add_holder(Allocator *allocator, MemoryHolder *holder) {
    holder->next = allocator->holders;
    allocator->holders = holder;
}

void allocator_remove_holder(Allocator *allocator, MemoryHolder *holder) {
    for (MemoryHolder **place = &allocator->holders; *place; place = &(*place)->next)
        if (*place == holder) {
            *place = holder->next;
            return;
        }
}

static bool comes_and_goes(const Block *block) {
    return !block->is_free &&
           (block->purpose == MEMORY_DATA || block->purpose == MEMORY_ACTIVATIONS);
}

void allocator_note_step(Allocator *allocator) {
    enum { SETTLED = 2 };
    int kept[CLASSES] = {0};
    size_t bytes[CLASSES] = {0};
    if (allocator->steps == SETTLED)
        return;
    for (size_t i = 0; i < allocator->table_size; i++) {
        const Block *block = allocator->table[i];
        if (block && comes_and_goes(block)) {
            kept[block->class]++;
            bytes[block->class] = block->bytes;
        }
    }
    allocator->steps++;
    for (int class = 0; class < CLASSES && allocator->steps == SETTLED; class ++)
        for (int i = allocator->kept[class]; i < kept[class]; i++) {
            Block *block = block_new(allocator, class, bytes[class]);
            if (block) // else a later step asks
                cache(allocator, block);
        }
    memcpy(allocator->kept, kept, sizeof kept);
}

void allocator_assign(Allocator *allocator, void *memory, MemoryPurpose purpose) {
    Block *block = block_find(allocator, memory);
    MemoryUse *use = &allocator->use;
    use->now[block->purpose] -= block->bytes;
    block->purpose = purpose;
    account_purpose(use, block->bytes, purpose);
}

static void lower(size_t *peak, size_t bytes, size_t now) {
    *peak = *peak > now + bytes ? *peak - bytes : now;
}

void allocator_reassign(Allocator *allocator, void *memory, MemoryPurpose purpose) {
    const Block *block = block_find(allocator, memory);
    MemoryUse *use = &allocator->use;
    const MemoryPurpose was = block->purpose;
    allocator_assign(allocator, memory, purpose);
    if (was == purpose)
        return;
    lower(&use->peak[was], block->bytes, use->now[was]);
    lower(&use->lap_peak[was], block->bytes, use->now[was]);
}

MemoryPurpose allocator_purpose(const Allocator *allocator, const void *memory) {
    return block_find(allocator, memory)->purpose;
}

MemoryUse allocator_use(const Allocator *allocator) {
    return allocator->use;
}

void allocator_forget_peaks(Allocator *allocator) {
    MemoryUse *use = &allocator->use;
    memcpy(use->peak, use->now, sizeof use->peak);
    use->total_peak = use->total_now;
}

void allocator_begin_lap(Allocator *allocator) {
    MemoryUse *use = &allocator->use;
    memcpy(use->lap_peak, use->now, sizeof use->lap_peak);
    use->lap_total_peak = use->total_now;
}

void allocator_raise_peaks(Allocator *allocator, const MemoryUse *before) {
    MemoryUse *use = &allocator->use;
    for (int i = 0; i < MEMORY_PURPOSES; i++)
        raise(&use->peak[i], before->peak[i]);
    raise(&use->total_peak, before->total_peak);
}

bool allocator_add_host(Allocator *allocator, size_t bytes, Error *error) {
    if (!has_room(allocator, bytes, true)) {
        allocator_trim(allocator);
        if (!has_room(allocator, bytes, true) &&
            !(ask_holders(allocator) && has_room(allocator, bytes, true)))
            return fail_full(allocator, bytes, true, error);
    }
    allocator->host += bytes;
    return true;
}

void allocator_remove_host(Allocator *allocator, size_t bytes) {
    assert(bytes <= allocator->host);
    allocator->host -= bytes;
}

void allocator_set_limit(Allocator *allocator, size_t bytes) {
    allocator->limit = bytes;
}

void allocator_drop_workspace(Allocator *allocator) {
    allocator_give(allocator, allocator->workspace);
    allocator->workspace = NULL;
    allocator->workspace_bytes = 0;
}

void *device_workspace(Device *device, size_t bytes, Error *error) {
    Allocator *allocator = device->allocator;
    if (allocator->workspace && bytes <= allocator->workspace_bytes)
        return allocator->workspace;
    allocator_drop_workspace(allocator);
    allocator->workspace = allocator_take(allocator, bytes, MEMORY_WORKSPACE, error);
    if (allocator->workspace)
        allocator->workspace_bytes = bytes;
    return allocator->workspace;
}
