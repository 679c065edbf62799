// Shared memory: an arena that each block finds poisoned. Static arrays are found again by the
// address of a static variable of the kernel's, so that one in a template or a function that is
// called twice is the same one.
#include <stdlib.h>
#include <string.h>

#include "tests/emulator/block.h"
#include "tests/emulator/memory.h"
#include "tests/emulator/races.h"
#include "tests/emulator/sanitizer.h"

enum {
    MOST_STATIC = 48 << 10,  // bytes a block, as on every card
    MOST_DYNAMIC = 48 << 10, // nor does the house ask for more
    GAP = 64,                // between arrays: touched by none
    MOST_ARRAYS = 64
};
enum {
    DYNAMIC_ALIGNMENT = 16, // of uint4, as card.h declares it
    STATIC_ROOM = MOST_STATIC + MOST_ARRAYS * (GAP + 32),
    DYNAMIC_ROOM = DYNAMIC_ALIGNMENT + MOST_DYNAMIC + GAP
};

static struct {
    const void *key;
    unsigned char *at;
} arrays[MOST_ARRAYS];
static unsigned array_count;
static size_t static_bytes, used;
static _Alignas(128) unsigned char static_rooms[RACE_ARENAS][STATIC_ROOM];
static _Alignas(128) unsigned char dynamic_rooms[RACE_ARENAS][DYNAMIC_ROOM];
static unsigned char *static_room, *dynamic_room; // of the block that runs

static void poison(unsigned char *at, size_t bytes) {
    races_ignore(1);
    memset(at, EMULATOR_POISON, bytes);
    races_ignore(0);
}

void emulator_shared_begin(size_t dynamic, unsigned arena) {
    static_room = static_rooms[arena];
    dynamic_room = dynamic_rooms[arena] + DYNAMIC_ALIGNMENT;
    ASAN_POISON_MEMORY_REGION(static_room, used);
    array_count = 0;
    static_bytes = used = 0;
    if (!dynamic)
        return;
    ASAN_POISON_MEMORY_REGION(dynamic_rooms[arena], sizeof dynamic_rooms[0]);
    ASAN_UNPOISON_MEMORY_REGION(dynamic_room, dynamic);
    poison(dynamic_room, dynamic);
}

void emulator_shared_end(void) {
    ASAN_UNPOISON_MEMORY_REGION(static_rooms, sizeof static_rooms);
    ASAN_UNPOISON_MEMORY_REGION(dynamic_rooms, sizeof dynamic_rooms);
    used = 0;
}

void *emulator_shared(EmulatorPlace place, const void *key, size_t bytes, size_t alignment) {
    for (unsigned i = 0; i < array_count; i++)
        if (arrays[i].key == key)
            return arrays[i].at;
    static_bytes += bytes;
    if (static_bytes > MOST_STATIC)
        emulator_fail(place, EMULATOR_WRONG_LAUNCH,
                      "%zu bytes of shared arrays in a block, which has room for %d", static_bytes,
                      MOST_STATIC);
    if (array_count == MOST_ARRAYS)
        emulator_fail(place, EMULATOR_WRONG_LAUNCH, "more than %d shared arrays", MOST_ARRAYS);
    // At an odd multiple: what needs more than was declared is seen.
    size_t at = ((used + GAP) / (2 * alignment) * 2 + 1) * alignment;
    if (at < used + GAP)
        at += 2 * alignment;
    ASAN_POISON_MEMORY_REGION(static_room + used, at - used);
    used = at + bytes;
    ASAN_UNPOISON_MEMORY_REGION(static_room + at, bytes);
    poison(static_room + at, bytes);
    arrays[array_count].key = key;
    arrays[array_count++].at = static_room + at;
    return static_room + at;
}

void *emulator_shared_dynamic(void) {
    return dynamic_room;
}
