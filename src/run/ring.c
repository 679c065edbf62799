#include "run/ring.h"

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

enum { LINE = 64, ALIGNMENT = 8 };

typedef struct Header {
    uint32_t size;  // of the record
    uint32_t whole; // with this header and what fills it up to the next one
} Header;

static const uint32_t filler = UINT32_MAX; // as a size: nothing here, go on at the start

// Positions only grow; the place of one is its remainder by the size. Each side keeps what it has
// last seen of the other's, so that the line they share moves seldom.
struct Ring {
    unsigned char *bytes;
    size_t size;
    alignas(LINE) size_t reserved; // the writer's
    size_t seen_released;
    alignas(LINE) atomic_size_t published;
    alignas(LINE) size_t taken; // the reader's
    size_t seen_published;
    alignas(LINE) atomic_size_t released;
};

Ring *ring_new(size_t bytes, Error *error) {
    size_t size = 1024;
    while (size < bytes)
        size *= 2;
    Ring *ring = aligned_alloc(LINE, sizeof *ring);
    unsigned char *memory = aligned_alloc(LINE, size);
    if (!ring || !memory) {
        free(ring);
        free(memory);
        error_fail(error, ERROR_MEMORY, "no memory for a ring of %zu bytes", size);
        return NULL;
    }
    *ring = (Ring){.bytes = memory, .size = size};
    return ring;
}

void ring_free(Ring *ring) {
    if (!ring)
        return;
    free(ring->bytes);
    free(ring);
}

size_t ring_largest(const Ring *ring) {
    return ring->size / 2 - sizeof(Header);
}

static Header *header_at(const Ring *ring, size_t position) {
    return (Header *)(void *)(ring->bytes + (position & (ring->size - 1)));
}

// ---- writing ------------------------------------------------------------------------------------

static bool has_room(Ring *ring, size_t whole) {
    if (ring->reserved + whole - ring->seen_released <= ring->size)
        return true;
    ring->seen_released = atomic_load_explicit(&ring->released, memory_order_acquire);
    return ring->reserved + whole - ring->seen_released <= ring->size;
}

void *ring_reserve(Ring *ring, size_t size) {
    assert(size <= ring_largest(ring));
    size_t whole = (sizeof(Header) + size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    size_t to_end = ring->size - (ring->reserved & (ring->size - 1));
    size_t skipped = whole > to_end ? to_end : 0; // a record is never split
    if (!has_room(ring, skipped + whole))
        return NULL;
    if (skipped > 0)
        *header_at(ring, ring->reserved) = (Header){filler, (uint32_t)skipped};
    ring->reserved += skipped;
    Header *header = header_at(ring, ring->reserved);
    *header = (Header){(uint32_t)size, (uint32_t)whole};
    ring->reserved += whole;
    return header + 1;
}

void ring_publish(Ring *ring) {
    atomic_store_explicit(&ring->published, ring->reserved, memory_order_release);
}

// ---- reading ------------------------------------------------------------------------------------

const void *ring_peek(Ring *ring, size_t *size) {
    for (;;) {
        if (ring->taken == ring->seen_published) {
            ring->seen_published = atomic_load_explicit(&ring->published, memory_order_acquire);
            if (ring->taken == ring->seen_published)
                return NULL;
        }
        const Header *header = header_at(ring, ring->taken);
        if (header->size != filler) {
            *size = header->size;
            return header + 1;
        }
        ring->taken += header->whole;
    }
}

void ring_release(Ring *ring) {
    ring->taken += header_at(ring, ring->taken)->whole;
    atomic_store_explicit(&ring->released, ring->taken, memory_order_release);
}
