#define _GNU_SOURCE // MAP_ANONYMOUS, MAP_NORESERVE, madvise
#include "tests/emulator/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/emulator/sanitizer.h"
#include "tests/emulator/settings.h"

enum { RED_ZONE = 256, ALIGNMENT = 256, PAGE = 4096, CLOSED_FROM = 64 << 10 };
static const size_t GROWTH = (size_t)4 << 20;

// Addresses of device memory: from `heap` to `fresh` they were used at some time, to `grown` they
// can be.
static unsigned char *heap, *fresh, *grown, *heap_end;
static int open_count;

// All that lives, by address.
static EmulatorMemory *blocks;
static size_t block_count, block_room;
static unsigned numbers;

// The two bytes that red zones consist of: NaN of fp16 and bf16, and twice also of fp32.
static const uint16_t RED = 0xFFF5;

static size_t round_up(size_t bytes, size_t to) {
    return (bytes + to - 1) / to * to;
}
// What a block takes of the range, red zone included.
static size_t whole(size_t bytes) {
    return round_up(bytes + RED_ZONE, ALIGNMENT);
}

// ---- protection ---------------------------------------------------------------------------------

static void set_protection(int protection) {
    if (emulator_settings.protect && grown > heap)
        mprotect(heap, (size_t)(grown - heap), protection);
}
void emulator_memory_open(void) {
    if (open_count++ == 0)
        set_protection(PROT_READ | PROT_WRITE);
}
void emulator_memory_close(void) {
    if (--open_count == 0)
        set_protection(PROT_NONE);
}

// ---- the list -----------------------------------------------------------------------------------

// The number of the first block that ends behind `at`.
static size_t place_of(const void *at) {
    size_t low = 0, high = block_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (blocks[middle].at + blocks[middle].bytes > (const unsigned char *)at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

const EmulatorMemory *emulator_memory_of(const void *at, size_t bytes) {
    size_t place = place_of(at);
    if (place == block_count || blocks[place].at > (const unsigned char *)at)
        return NULL;
    size_t before = (size_t)((const unsigned char *)at - blocks[place].at);
    return bytes <= blocks[place].bytes - before ? &blocks[place] : NULL;
}

static bool list_add(EmulatorMemory memory) {
    if (block_count == block_room) {
        size_t room = block_room ? 2 * block_room : 1024;
        EmulatorMemory *larger = realloc(blocks, room * sizeof *blocks);
        if (!larger)
            return false;
        blocks = larger;
        block_room = room;
    }
    size_t place = place_of(memory.at);
    memmove(&blocks[place + 1], &blocks[place], (block_count - place) * sizeof *blocks);
    blocks[place] = memory;
    block_count++;
    return true;
}

size_t emulator_memory_used(unsigned card) {
    size_t used = 0;
    for (size_t i = 0; i < block_count; i++)
        if (!blocks[i].pinned && blocks[i].card == card)
            used += blocks[i].bytes;
    return used;
}

void emulator_memory_count(uint64_t *count, uint64_t *bytes, uint64_t *pinned) {
    *count = *bytes = *pinned = 0;
    for (size_t i = 0; i < block_count; i++) {
        *pinned += blocks[i].pinned;
        *count += !blocks[i].pinned;
        *bytes += blocks[i].pinned ? 0 : blocks[i].bytes;
    }
}

bool emulator_memory_is_device(const void *at) {
    return heap && (const unsigned char *)at >= heap && (const unsigned char *)at < heap_end;
}

// ---- the range ----------------------------------------------------------------------------------

static bool reserve_range(void) {
    size_t bytes = emulator_settings.addresses, least = 2 * (size_t)emulator_settings.memory;
    bytes = round_up(bytes < least ? least : bytes, GROWTH);
    unsigned char *range =
        mmap(NULL, bytes + GROWTH, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED)
        return false;
    range = (unsigned char *)round_up((uintptr_t)range, GROWTH);
    if (emulator_settings.protect) // at each call, page by page: of large ones there are few
        madvise(range, bytes, MADV_HUGEPAGE);
    heap = fresh = grown = range;
    heap_end = heap + bytes;
    return true;
}

// Between two blocks that live, once no address is fresh any more.
static unsigned char *find_gap(size_t bytes) {
    unsigned char *from = heap;
    for (size_t i = 0; i <= block_count; i++) {
        if (i < block_count && !emulator_memory_is_device(blocks[i].at))
            continue;
        unsigned char *to = i < block_count ? blocks[i].at : heap_end;
        if ((size_t)(to - from) >= bytes)
            return from;
        if (i < block_count)
            from = to + whole(blocks[i].bytes);
    }
    return NULL;
}

static unsigned char *take_addresses(size_t bytes) {
    if (!heap && !reserve_range())
        return NULL;
    unsigned char *at = fresh;
    if (bytes > (size_t)(heap_end - fresh)) {
        at = find_gap(bytes);
        if (!at)
            return NULL;
        uintptr_t page = (uintptr_t)at / PAGE * PAGE;
        mprotect((void *)page, (size_t)((uintptr_t)at + bytes - page), PROT_READ | PROT_WRITE);
        grown = at + bytes > grown ? at + bytes : grown;
        return at;
    }
    fresh = at + bytes;
    if (fresh > grown) {
        size_t more = round_up((size_t)(fresh - grown), GROWTH);
        if (mprotect(grown, more, PROT_READ | PROT_WRITE) != 0)
            return NULL;
        grown += more;
    }
    return at;
}

// Addresses that are not to be used again; whoever does, finds NaN or nothing.
static void retire_addresses(unsigned char *at, size_t bytes) {
    uintptr_t first = round_up((uintptr_t)at, PAGE);
    uintptr_t last = ((uintptr_t)at + bytes) / PAGE * PAGE;
    ASAN_UNPOISON_MEMORY_REGION(at, bytes);
    if (bytes < CLOSED_FROM || emulator_settings.protect) {
        memset(at, EMULATOR_POISON, bytes);
    } else {
        memset(at, EMULATOR_POISON, first - (uintptr_t)at);
        memset((void *)last, EMULATOR_POISON, (uintptr_t)at + bytes - last);
        madvise((void *)first, last - first, MADV_DONTNEED);
        mprotect((void *)first, last - first, PROT_NONE);
    }
    ASAN_POISON_MEMORY_REGION(at, bytes);
}

// ---- red zones ----------------------------------------------------------------------------------

static void paint(unsigned char *red) {
    for (size_t i = 0; i < RED_ZONE; i += sizeof RED)
        memcpy(red + i, &RED, sizeof RED);
}

bool emulator_memory_check_one(const EmulatorMemory *memory, char *why, size_t why_size) {
    static unsigned char expected[RED_ZONE];
    if (EMULATOR_ASAN || memory->pinned)
        return true; // it sees each access
    if (!expected[0])
        paint(expected);
    unsigned char *red = memory->at + memory->bytes;
    size_t first = 0;
    emulator_memory_open();
    bool intact = memcmp(red, expected, RED_ZONE) == 0;
    if (!intact) {
        while (red[first] == expected[first])
            first++;
        paint(red); // it is said once
    }
    emulator_memory_close();
    if (intact)
        return true;
    snprintf(why, why_size,
             "a write past the end: byte %zu of a block of %zu bytes, the %u. that was allocated",
             memory->bytes + first, memory->bytes, memory->number);
    return false;
}

bool emulator_memory_check_all(char *why, size_t why_size) {
    bool whole_ones = true;
    emulator_memory_open();
    for (size_t i = 0; i < block_count && whole_ones; i++)
        whole_ones = emulator_memory_check_one(&blocks[i], why, why_size);
    emulator_memory_close();
    return whole_ones;
}

bool emulator_memory_check_named(const void *arguments, size_t bytes, char *why, size_t why_size) {
    for (size_t i = 0; i + sizeof(void *) <= bytes; i += sizeof(void *)) {
        const void *address;
        memcpy(&address, (const char *)arguments + i, sizeof address);
        if (!emulator_memory_is_device(address))
            continue;
        const EmulatorMemory *memory = emulator_memory_of(address, 0);
        if (memory && !emulator_memory_check_one(memory, why, why_size))
            return false;
    }
    return true;
}

// ---- taking and giving --------------------------------------------------------------------------

static void *new_on_device(unsigned card, size_t bytes) {
    if (bytes > emulator_settings.memory ||
        emulator_memory_used(card) > emulator_settings.memory - bytes)
        return NULL;
    emulator_memory_open();
    unsigned char *at = take_addresses(whole(bytes));
    if (at) {
        ASAN_UNPOISON_MEMORY_REGION(at, whole(bytes));
        memset(at, EMULATOR_POISON, bytes);
        paint(at + bytes);
        ASAN_POISON_MEMORY_REGION(at + bytes, whole(bytes) - bytes);
    }
    emulator_memory_close();
    return at;
}

void *emulator_memory_new(unsigned card, size_t bytes, bool pinned) {
    void *at = pinned ? aligned_alloc(PAGE, round_up(bytes, PAGE)) : new_on_device(card, bytes);
    if (!at)
        return NULL;
    if (pinned)
        memset(at, EMULATOR_POISON, bytes);
    if (!list_add((EmulatorMemory){at, bytes, card, pinned, ++numbers}))
        return NULL;
    return at;
}

uint64_t emulator_memory_taken(void) {
    return numbers;
}

void emulator_memory_free(const EmulatorMemory *memory) {
    if (memory->pinned) {
        free(memory->at);
    } else {
        emulator_memory_open();
        retire_addresses(memory->at, whole(memory->bytes));
        emulator_memory_close();
    }
    size_t place = (size_t)(memory - blocks);
    block_count--;
    memmove(&blocks[place], &blocks[place + 1], (block_count - place) * sizeof *blocks);
}
