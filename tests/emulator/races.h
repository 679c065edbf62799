// tests/emulator/races.h: what ThreadSanitizer is told of a launch; nothing in other builds.
//
// With EMULATOR_RACES (and kernels built with -fsanitize=thread, the emulator itself without) each
// thread of a block is a logical thread of the sanitizer's. It is ordered after what the host did
// before the launch and before what it does after; within a block by barriers and __syncwarp alone,
// and blocks of a launch not at all. So two accesses that a card may do in either order are a race,
// whatever order they had here.
#pragma once

#ifndef EMULATOR_RACES
#define EMULATOR_RACES 0
#endif

// Blocks that follow each other have logical threads, stacks and shared memory of their own: as
// many sets of the first two as RACE_SETS, and of the last as RACE_ARENAS, before they come round.
enum { RACE_SETS = EMULATOR_RACES ? 2 : 1, RACE_ARENAS = EMULATOR_RACES ? 64 : 1 };

#if EMULATOR_RACES
// The host, before the first block that has `threads` threads.
void races_begin(unsigned threads);
// The one that runs from now on: a thread of a set, or the host.
void races_run_thread(unsigned set, unsigned thread);
void races_run_host(void);
// What was done before a release is ordered before what is done after an acquire of the same key.
void races_release(const void *key);
void races_acquire(const void *key);
// What the emulator itself writes for a block is no access of a thread.
void races_ignore(int ignore);
#else
static inline void races_begin(unsigned threads) {
    (void)threads;
}
static inline void races_run_thread(unsigned set, unsigned thread) {
    (void)set, (void)thread;
}
static inline void races_run_host(void) {}
static inline void races_release(const void *key) {
    (void)key;
}
static inline void races_acquire(const void *key) {
    (void)key;
}
static inline void races_ignore(int ignore) {
    (void)ignore;
}
#endif
