// run/ring.h: records of any size from one thread to another, without locks.
//
// One thread reserves room, writes and publishes; one other peeks and releases. Neither ever waits:
// a full ring says so, and what to do about it is the writer's. Records are aligned to 8 bytes and
// never split. A Ring takes its memory once.
#pragma once

#include <stddef.h>

#include "base/error.h"

typedef struct Ring Ring;

// `bytes` is rounded up to a power of two. No record may be larger than half of it.
Ring *ring_new(size_t bytes, Error *error);
void ring_free(Ring *ring); // NULL is fine

// ---- the one that writes ------------------------------------------------------------------------

// Room for a record, unseen by the reader until ring_publish; NULL: none now.
void *ring_reserve(Ring *ring, size_t size);
// Lets the reader see all that was reserved since the last call.
void ring_publish(Ring *ring);
size_t ring_largest(const Ring *ring); // record

// ---- the one that reads -------------------------------------------------------------------------

// The oldest record, NULL: none. It stays until ring_release, which gives its room back.
const void *ring_peek(Ring *ring, size_t *size);
void ring_release(Ring *ring);
