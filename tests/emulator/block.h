// tests/emulator/block.h: the block that runs, for the files of the emulator that run it.
//
// There is one at a time. threads.c decides who runs; warp.c and shared.c are the two other things
// that threads have in common.
#pragma once

#include <stdint.h>

#include "tests/emulator/fibre.h"
#include "tests/emulator/threads.h"

enum { MOST_THREADS = 1024, WARP = 32, MOST_WARPS = MOST_THREADS / WARP };

typedef enum ThreadState { NOT_STARTED, RUNS, READY, AT_BARRIER, IN_MEETING, ENDED } ThreadState;

// What a thread of the block is; `seen` must come first, since kernels know of that alone.
typedef struct BlockThread {
    EmulatorThread seen;
    ThreadState state;
    Fibre *fibre;
    EmulatorPlace place; // where it waits
    // Of its meeting. What these point to is on its own stack, which stays as it is meanwhile.
    const void *in;
    void *out;
    int argument;
} BlockThread;

typedef struct Block {
    unsigned count; // of threads
    BlockThread thread[MOST_THREADS];
    unsigned order[MOST_THREADS]; // in which they start
    const EmulatorLaunch *launch;
} Block;

extern Block emulator_block;

static inline BlockThread *running_thread(void) {
    return (BlockThread *)emulator_thread;
}

// Lets others run until the thread, whose `state` says what it waits for, is woken.
void emulator_wait(BlockThread *thread);
// Wakes threads; of those that are woken one by one the last runs first.
void emulator_wake(BlockThread *thread);

// What a whole warp does with tiles.
void emulator_tiles(EmulatorMeeting what, BlockThread *warp);

// At the begin of each block, which has one of the arenas (races.h).
void emulator_warps_begin(unsigned threads, unsigned arena);
void emulator_shared_begin(size_t dynamic, unsigned arena);
// After the last block.
void emulator_shared_end(void);

// From now on an address that nobody may touch ends a kernel, not the program (access.c).
void emulator_watch_addresses(void);
