// tests/emulator/device.h: what the driver's handles point to, for the files of the emulated
// driver.
//
// Cards, streams and events live as long as the program, so that a handle of one that was destroyed
// is known for what it is. All of it is used with the driver's lock held (calls.h).
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/emulator/threads.h"

enum { MOST_CARDS = 8 };

// A card, and its one context.
struct CUctx_st {
    unsigned index;
    unsigned references; // of the primary context
    CUresult failure;    // of a kernel: from then on every call fails so
    unsigned streams, events, modules;
};
typedef struct CUctx_st Card;

extern Card emulator_cards[MOST_CARDS];

typedef struct Operation Operation;

struct CUstream_st {
    Card *card;
    bool alive, blocking;
    bool busy; // its first operation is being done
    Operation *first, **end;
    uint64_t added, done; // numbers of the operations last added and last done
    struct CUstream_st *next;
};
typedef struct CUstream_st Stream;

struct CUevent_st {
    Card *card;
    bool alive, timed;
    Stream *stream;  // that it was recorded in last, NULL: never
    uint64_t number; // of that record
    double time;     // when it was done, in milliseconds
    struct CUevent_st *next;
};
typedef struct CUevent_st Event;

struct CUfunc_st {
    const EmulatorKernel *kernel;
    struct CUmod_st *module;
    unsigned dynamic_shared; // that it was allowed
};
typedef struct CUfunc_st Function;

struct CUmod_st {
    Card *card;
    unsigned count;
    Function functions[];
};
typedef struct CUmod_st Module;

// What an image of kernels is here.
typedef struct EmulatorImage {
    char magic[8]; // "EMULATED"
    const char *file;
} EmulatorImage;
