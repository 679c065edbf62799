// kernel/allocator.h: one caching allocator a device, which accounts by purpose.
//
// Blocks are rounded to size classes and kept on free lists when given back, so that after the
// first step of a training nothing is asked of the system. On a device that captures steps the
// same takings and givings from the same state give the same addresses. It belongs to its device
// and is used from the thread that drives it.
#pragma once

#include "kernel/kernel.h"

typedef struct MemoryUse {
    size_t now[MEMORY_PURPOSES], peak[MEMORY_PURPOSES];
    size_t total_now, total_peak; // in use; the peak of the sum, not the sum of the peaks
    size_t lap_peak[MEMORY_PURPOSES], lap_total_peak; // the same, since allocator_begin_lap
    size_t reserved;                                  // from the system, the cached blocks included
    uint64_t system_calls;                            // how often the system was asked
} MemoryUse;

Allocator *allocator_new(Device *device);
void allocator_free(Allocator *allocator); // frees the cache; asserts that nothing is in use

// 64-byte aligned; contents undefined. bytes 0 gives a valid pointer.
void *allocator_take(Allocator *allocator, size_t bytes, MemoryPurpose purpose,
                     Error *error) MUST_CHECK;
void allocator_give(Allocator *allocator, void *memory);
// What a request for so many bytes takes.
size_t allocator_rounded(size_t bytes);
// Accounts memory under another purpose from now on.
void allocator_assign(Allocator *allocator, void *memory, MemoryPurpose purpose);
// The same, as if it had been so since it was taken: former peaks lack it. For memory that was
// there at that peak: a weight that turns out to be a master.
void allocator_reassign(Allocator *allocator, void *memory, MemoryPurpose purpose);
MemoryPurpose allocator_purpose(const Allocator *allocator, const void *memory);

// ---- memory that is to stay where it is ---------------------------------------------------------

// Takings are numbered, so that memory at an address is told from what lay there before.
uint64_t allocator_takings(const Allocator *allocator); // so far

typedef struct MemoryPlace { // where something lies
    void *memory;            // as it was taken
    size_t bytes;            // that it takes
    uint64_t number;         // of the taking
    MemoryPurpose purpose;
    bool in_use;
} MemoryPlace;

// What memory an address lies in; false: in none of this allocator's. It looks at all there is.
bool allocator_locate(const Allocator *allocator, const void *address, MemoryPlace *place);

// Given back it is kept for who has pinned it, accounted as it was, until it is unpinned; nobody
// else is given it meanwhile. `pinned` is for allocator_in_use.
typedef struct Block Block;
const Block *allocator_pin(Allocator *allocator, void *memory);
void allocator_unpin(Allocator *allocator, const Block *pinned);
bool allocator_in_use(const Block *pinned); // by whom it was taken

// Who holds memory that it can do without is asked to let go of it before a request fails; the
// first member of its owner's. False: it had none to let go of. It takes none meanwhile.
typedef struct MemoryHolder MemoryHolder;
struct MemoryHolder {
    bool (*let_go)(MemoryHolder *holder);
    MemoryHolder *next; // the allocator's
};
void allocator_add_holder(Allocator *allocator, MemoryHolder *holder);
void allocator_remove_holder(Allocator *allocator, MemoryHolder *holder); // or one never added

MemoryUse allocator_use(const Allocator *allocator);
// The peaks are those of what comes from now on.
void allocator_forget_peaks(Allocator *allocator);
// What a lap holds at most is known beside that: of steps, say, without what began them.
void allocator_begin_lap(Allocator *allocator);
// No lower than they were, as allocator_use gave them before they were forgotten.
void allocator_raise_peaks(Allocator *allocator, const MemoryUse *before);
// Memory that the device took of the system for itself, to keep: of so many bytes, in place of as
// many as it was. It is accounted here, and not asked for back.
void allocator_account_own(Allocator *allocator, size_t was, size_t bytes, MemoryPurpose purpose);
// While it is so all memory comes of the system, and none is given back to it: what is free may
// still be read by work that waits to be given to the device.
void allocator_take_anew(Allocator *allocator, bool anew);
// The system was asked for memory that is not accounted: of the host, for what the device tells.
void allocator_note_asked(Allocator *allocator);
// A step has ended, and what it left was collected. What the second one of a process keeps beyond
// the first (a batch that is let go of a step later), the third will beyond the second: that is
// taken of the system now, so that from then on nothing is.
void allocator_note_step(Allocator *allocator);
// Gives cached blocks back to the system.
void allocator_trim(Allocator *allocator);
// Gives back the scratch of kernels, which grows with what they are asked for; between two of them.
void allocator_drop_workspace(Allocator *allocator);
// A limit on what may be reserved of the host's memory, 0: none. Past it, allocator_take fails with
// advice. Memory of a device's own ends where the device says so.
void allocator_set_limit(Allocator *allocator, size_t bytes);
// Memory of the host that somebody takes for what lies on the device or is on its way there,
// tensors themselves and data sets: it counts against the limit too, and is no use of the device's.
bool allocator_add_host(Allocator *allocator, size_t bytes, Error *error) MUST_CHECK;
void allocator_remove_host(Allocator *allocator, size_t bytes);
