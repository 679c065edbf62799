// ops/capture_private.h: the inside of a capture, which watching (capture.c) and computing again
// (capture_again.c) share. Nobody else's.
#pragma once

#include "ops/capture.h"

typedef struct CapturedCall {
    KernelCall call;
    OpAttr attr;
    int drawn;         // the call that drew what it draws, itself or an earlier one; -1: nothing
    bool is_looked_at; // the lookout looks at what it gives,
    bool is_back;      // as the work of a walk back,
    bool keeps;        // and counts the largest number for the layer's figures
} CapturedCall;

typedef struct CapturedShown { // the last output of a layer, for who watches the engine
    View view;
    int calls; // before it
    int layer;
} CapturedShown;

typedef struct CapturedAct {
    CaptureAct act;
    int calls;                // before it
    int first_leaf, end_leaf; // of a walk: those that it came to,
    uint64_t arrivals;        // and how many gradients came
} CapturedAct;

typedef struct CapturedLeaf {
    Tensor *leaf, *gradient; // held
    uint64_t order;          // the how manieth gradient of its walk it was
    uint64_t scale;          // the loss scale that it carries
    bool is_emptied;         // the step itself drops what an earlier one left there
} CapturedLeaf;

typedef struct CapturedMemory {
    void *memory;
    uint64_t number; // of its taking
    bool is_outside; // it was there before the step
    const Block *pin;
} CapturedMemory;

typedef struct CapturedInput {
    View view;
    const Storage *storage; // while it is watched
} CapturedInput;

typedef struct InputUse { // where a call reads an input
    int call, at, input;
    ptrdiff_t offset;
} InputUse;

typedef struct CapturedParameter {
    Tensor *tensor; // held
    void *data;
    Format round_to;
    bool requires_grad;
} CapturedParameter;

// How much was drawn of either stream of random numbers.
typedef struct CapturedDraws {
    uint64_t position, chances;
} CapturedDraws;

// What is in force around it.
typedef struct CapturePlace {
    AutocastRegion autocast;
    int layer;
    bool records, looks;
    bool shows; // what it computes to who watches the engine
    uint64_t policy;
} CapturePlace;

#define CAPTURE_ADDS                                                                           \
    "it adds gradients to those that are there: have it call zero_grad for all that it walks " \
    "back to"

#define CAPTURE_LIST(type, name) \
    type *name;                  \
    int name##_count, name##_room

struct Capture {
    DeviceTap tap;
    MemoryHolder holder;
    Engine *engine;
    CaptureGiven given;
    CapturePlace place;
    bool is_watching, is_ready, is_computing;
    bool is_spoilt;   // this step is not to be captured, though the next may be
    bool is_large;    // it works on too much memory, as the next would
    bool is_final;    // a final act was noted
    bool has_buffers; // running statistics
    int acting;       // depth of acts under way
    int walked;       // leaves of the walks so far
    char why[CAPTURE_WHY_SIZE];
    uint64_t takings;             // before the step
    TapeCounts counts;            // before it; then how many more
    uint64_t mixed, mixed_before; // all that was told, of this step and the one before; 0: none
    CAPTURE_LIST(CapturedCall, calls);
    CAPTURE_LIST(CapturedShown, shown);
    CAPTURE_LIST(CapturedAct, acts);
    CAPTURE_LIST(CapturedLeaf, leaves);
    CAPTURE_LIST(const Tensor *, emptied); // while it is watched: of leaves, their gradients
    CAPTURE_LIST(CapturedMemory, memory);
    CAPTURE_LIST(InputUse, uses);
    CAPTURE_LIST(CapturedParameter, parameters);
    CapturedInput inputs[CAPTURE_MOST_INPUTS];
    int input_count;
    CapturedDraws draws; // before it was computed again
};

CapturePlace capture_place(const Engine *engine);

// ---- capture_memory.c

// Room for one more in a list; false: there is none, and the step is no more than watched.
bool capture_grow(Capture *capture, void **items, int count, int *room, size_t size);
#define GROW(capture, name)                                                   \
    capture_grow(capture, (void **)&(capture)->name, (capture)->name##_count, \
                 &(capture)->name##_room, sizeof *(capture)->name)

// All that tells one step from another goes into one number.
void capture_mix(Capture *capture, const void *data, size_t size);
// What operand `at` of a call, or an act, lies on.
void capture_note_address(Capture *capture, const void *address, int at, bool is_output);
void capture_note_view(Capture *capture, const View *view, int at, bool is_output);
// Whether an address lies in weights or other state, which a step may read unasked.
bool capture_is_state(const Capture *capture, const void *address);
// The input that an address lies in; -1: none.
int capture_input_at(const Capture *capture, const void *address);
// All that it works on stays where it is from now on; false: some of it is not the step's any more,
// or it is too much.
bool capture_pin_memory(Capture *capture);

// ---- capture_told.c

// All that the call to come is told beside its operands; gives CapturedCall.drawn.
int capture_note_told(Capture *capture, OpId op, const OpAttr *attr);
// Tells a call that draws where it draws from now, as the script would have.
void capture_draw_again(Capture *capture, CapturedCall *call);
