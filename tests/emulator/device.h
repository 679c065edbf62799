// tests/emulator/device.h: what the driver's handles point to, for the files of the emulated
// driver.
//
// Cards, streams, events and graphs live as long as the program, so that a handle of one that was
// destroyed is known for what it is. All of it is used with the driver's lock held (calls.h).
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
    unsigned streams, events, modules, graphs;
};
typedef struct CUctx_st Card;

extern Card emulator_cards[MOST_CARDS];

typedef struct Operation Operation;
typedef struct CUgraph_st Graph;

struct CUstream_st {
    Card *card;
    bool alive, blocking;
    bool busy; // its first operation is being done
    Operation *first, **end;
    uint64_t added, done; // numbers of the operations last added and last done
    Graph *captures;      // into which its operations go meanwhile; NULL: it does them
    struct CUstream_st *next;
};
typedef struct CUstream_st Stream;

struct CUevent_st {
    Card *card;
    bool alive, timed;
    Stream *stream;  // that it was recorded in last, NULL: never
    uint64_t number; // of that record
    double time;     // when it was done, in milliseconds
    Graph *captured; // of which the last record is a part, and says nothing of work that is done
    struct CUevent_st *next;
};
typedef struct CUevent_st Event;

// What a stream captured, in its order; also what was made of it to be launched.
struct CUgraph_st {
    Card *card;
    bool alive;
    bool is_invalid; // something was done meanwhile that may not be
    CUstreamCaptureMode mode;
    const void *by; // the thread that captures, as its own memory tells it apart
    Operation *first, **end;
    struct CUgraph_st *next;
};
struct CUgraphExec_st {
    Graph graph;
};

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
