// tests/emulator/threads.h: how a launch runs here: blocks in turn, the threads of one as fibres.
//
// A thread runs until it waits for others, at a barrier or with its warp; threads that never wait
// follow each other on one stack. Which goes first is the setting `order`. What a kernel does that
// a card forbids, or that would never end, ends the launch with a reason. One launch at a time,
// from any thread of the host; the calls of kernels come from the threads of the block.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(hidden) // reached without a detour, as often as it is

typedef struct EmulatorSize {
    unsigned x, y, z;
} EmulatorSize;

typedef struct EmulatorKernel {
    const char *file;                    // whose image has it
    const char *name;                    // in that image
    void (*call)(const void *arguments); // one thread of it
    size_t bytes;                        // of its arguments
    unsigned threads;                    // most of a block
} EmulatorKernel;

// The kernels of this build, ended by a row without a name: those of gpu/kernels/kernels.def
// (kernels.c), or in a test those that it plants.
extern const EmulatorKernel emulator_kernels[];

typedef struct EmulatorLaunch {
    const EmulatorKernel *kernel;
    const void *arguments;
    EmulatorSize grid, block;
    size_t dynamic_shared;
} EmulatorLaunch;

// As cuda.h numbers them; a launch that fails leaves nothing more to be had of its card.
typedef enum EmulatorFailure {
    EMULATOR_FINE = 0,
    EMULATOR_ILLEGAL_ADDRESS = 700,
    EMULATOR_NEVER_ENDS = 702,
    EMULATOR_MISALIGNED = 716,
    EMULATOR_WRONG_LAUNCH = 719
} EmulatorFailure;

// Runs all blocks. Where it fails, `why` says which kernel, block, thread and line did what.
EmulatorFailure emulator_run(const EmulatorLaunch *launch, char *why, size_t why_size);

// ---- for what kernels are written in (emulator.h) -----------------------------------------------

typedef struct EmulatorThread EmulatorThread;

// First members of a thread, so that emulator.h needs to know no more of it.
struct EmulatorThread {
    EmulatorSize index;
    unsigned number, lane, warp;
};

extern EmulatorThread *emulator_thread; // that runs; NULL outside of kernels
extern EmulatorSize emulator_block_index, emulator_block_size, emulator_grid_size;

// Where in the source of a kernel something is.
typedef struct EmulatorPlace {
    const char *file;
    int line;
} EmulatorPlace;

// Waits for all threads of the block at the same place; how many of them gave a predicate that
// holds.
unsigned emulator_barrier(EmulatorPlace place, bool predicate);

typedef enum EmulatorMeeting {
    MEETING_SYNC,
    MEETING_SHUFFLE,      // from lane `argument`
    MEETING_SHUFFLE_XOR,  // from one's own lane ^ argument
    MEETING_SHUFFLE_UP,   // from one's own lane - argument
    MEETING_SHUFFLE_DOWN, // from one's own lane + argument
    MEETING_BALLOT,       // in and out: unsigned
    MEETING_ADD,          // and all below: of unsigned
    MEETING_MIN,
    MEETING_MAX,
    MEETING_AND,
    MEETING_OR,
    MEETING_XOR,
    MEETING_MIN_SIGNED,
    MEETING_MAX_SIGNED,
    MEETING_MULTIPLY_BF16, // and all below of a whole warp: in: a[4] and b[2]; in and out: sums[4]
    MEETING_MULTIPLY_FP16,
    MEETING_MULTIPLY_TF32,
    MEETING_LOAD_TILES, // in: the address of a row; out: parts of four tiles
    MEETING_LOAD_TILES_TURNED
} EmulatorMeeting;

// Waits for the lanes in `mask`; `in` and `out` are this lane's, of 4 or 8 bytes in shuffles, which
// go through parts of the warp of `width` lanes.
void emulator_meet(EmulatorPlace place, EmulatorMeeting what, unsigned mask, const void *in,
                   void *out, size_t bytes, int argument, int width);

// The block's shared array that belongs to the place of a key: of that exact size, poisoned when
// the first thread asks; and the block's dynamic one.
void *emulator_shared(EmulatorPlace place, const void *key, size_t bytes, size_t alignment);
void *emulator_shared_dynamic(void);

// Ends the launch; the thread that calls never goes on.
__attribute__((noreturn, format(printf, 3, 4))) void
emulator_fail(EmulatorPlace place, EmulatorFailure failure, const char *format, ...);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
