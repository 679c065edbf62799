// grad/tape_private.h: what recording (tape.c), the walk back (backward.c) and its ends
// (leaves.c) share. Nobody else's.
#pragma once

#include "grad/tape.h"

typedef struct Reached { // a leaf that a gradient came to
    Tensor *leaf;        // held
    Tensor *before;      // what it had from earlier walks
} Reached;

// One walk back. A gradient of somebody's own may walk another graph back inside of it.
typedef struct Walk {
    int depth;             // 1: the outermost; 0: none is in progress
    uint64_t began, scale; // the tape's `arrivals` before it; the loss scale that it came by
    Reached *reached;
    int reached_count, reached_size;
    GradNode *dropping; // the node being visited, which may drop what it has; NULL: it may not
    GradNode **heap;    // nodes whose gradients have begun to arrive, the youngest first
    int heap_count, heap_size;
} Walk;

struct Tape {
    void *context;
    TapeHooks hooks;
    bool enabled;
    uint64_t next_number;
    uint64_t arrivals; // gradients that came to leaves
    Walk walk;         // in progress; between two, the memory of the next
};

// A node without contents but for its number, with room for its inputs; nobody holds it yet. Its
// memory counts against the device's: a graph that grows without end meets that limit.
GradNode *grad_node_new(Tape *tape, Device *device, int input_count, Error *error);
// Lets go of what its rule needed; the node stays a link of the graph.
void grad_node_drop_saved(GradNode *node);

GradShape grad_shape_of(const Tensor *tensor);
// Where the gradient of `input` goes: an edge that holds the node or the leaf.
GradEdge grad_edge_to(Tensor *input);
// Makes `output` the node's: it holds it from now on.
void grad_output_link(Tensor *output, GradNode *node, int index);

// ---- leaves.c

// *slot += gradient. Takes over the reference to `gradient`.
bool grad_accumulate(Tape *tape, Tensor **slot, Tensor *gradient, bool recorded, Error *error);
// The same, of the gradient of a leaf.
bool leaf_accumulate(Tape *tape, Tensor *leaf, Tensor *gradient, bool recorded, Error *error);
// Who looks at a leaf's gradients looks at what this walk brought.
bool leaf_look(Tape *tape, Tensor *leaf, Tensor **gradient, bool recorded, Error *error);
// The walk is over: what it brought to leaves joins what they had. One that is not `done` leaves
// what was there before it; always false then.
bool leaves_settle(Tape *tape, bool done, bool recorded, Error *error);

// ---- hooks.c

// Has the hooks on this output of a node (of a leaf: 0) look at a gradient, which they may replace;
// NULL on failure, perhaps.
bool hooks_look(Tape *tape, GradHook **hooks, int output, Tensor **gradient, Error *error);
void hooks_release(GradHook *hooks);
// Those of a leaf, or where they are to be; NULL: it has none.
GradHook **hooks_of_leaf(Tensor *leaf);
