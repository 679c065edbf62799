// grad/tape.h: what was computed from what, and the walk back.
//
// Each recorded operation is a node; a tensor that it made holds the node, the node holds edges to
// the nodes and leaves of its inputs and the tensors its rule will need. A graph so lives as long
// as somebody holds its result, and is freed without recursion, however deep. The walk back visits
// nodes in falling order of their number, so that each has all its gradients when its turn comes;
// it frees what a node saved when the node is done, or its rule sooner, unless told to keep it.
//
// The tape knows no operation: a rule and its context come from the room above. It is used from the
// thread that drives the device.
//
// What a node saved is shared, not copied: a walk that comes after it was overwritten is refused.
#pragma once

#include "tensor/tensor.h"

typedef struct GradNode GradNode;
typedef struct Tape Tape;

// Computes the gradients of a node's inputs from those of its outputs. output_grad[i] is NULL where
// no gradient arrived; it has the format of the output. Only inputs with node->wants bit set are
// asked for; the rule leaves NULL or a new reference in input_grad[i]. For a leaf that is a
// parameter, and is not in fp64, the gradient is wanted in fp32 (grad_leaf_wants_full). What the
// rule drops (tape_drop_saved) is NULL behind that.
typedef bool (*GradRule)(void *context, const GradNode *node, Tensor *const *output_grad,
                         Tensor **input_grad, Error *error);

enum { GRAD_MAX_SAVED = 6 };

// What a rule has beside what the tape knows of, let go of with what the node saved. The first
// member of its owner's.
typedef struct GradOwn GradOwn;
struct GradOwn {
    void (*release)(GradOwn *own);
};

// Somebody who looks at a gradient before it is used, and may put another in its place: the first
// member of its owner's. The tape releases it with what it hangs on, or once it says that it is
// gone.
typedef struct GradHook GradHook;
struct GradHook {
    GradHook *next; // the tape's
    uint8_t output; // the tape's: of the node
    bool is_gone;
    // *gradient is held by the caller; a replacement takes its place, and its reference.
    bool (*look)(GradHook *hook, Tensor **gradient, Error *error);
    void (*release)(GradHook *hook);
};

typedef struct GradEdge {
    GradNode *node; // where the input came from, or
    Tensor *leaf;   // the leaf itself; both NULL: no gradient wanted
    uint8_t output; // of node
} GradEdge;

typedef struct GradShape { // of an input or output, all that a rule may ask without saving it
    Format format;
    int ndim;
    int64_t shape[VIEW_MAX_DIMS];
} GradShape;

struct GradNode {
    TensorOrigin origin;
    Tape *tape;
    Device *device; // which accounts for the node's own memory
    size_t bytes;
    uint64_t number;
    GradRule rule;
    OpId op; // OP_COUNT for what is no operation of ops.def: views
    OpAttr attr;
    int layer; // in force when it was recorded; what went wrong names it
    int input_count, output_count, saved_count;
    uint32_t wants;    // bit i: input i needs a gradient
    GradEdge *edges;   // [input_count]
    GradShape *inputs; // [input_count]
    GradShape output[OP_MAX_OUTPUTS];
    Tensor *saved[GRAD_MAX_SAVED];       // in the order of the record
    int8_t saved_output[GRAD_MAX_SAVED]; // which output that is, -1: none
    int8_t saved_input[GRAD_MAX_SAVED];  // which input it was used in place of, -1: itself
    int8_t
        saved_again[GRAD_MAX_SAVED]; // which input it is, made again when its turn comes, -1: kept
    uint64_t saved_version[GRAD_MAX_SAVED];
    GradOwn *own;                    // NULL: nothing
    GradHook *hooks;                 // on its outputs
    Tensor *arrived[OP_MAX_OUTPUTS]; // during the walk back
    uint64_t scale; // that it multiplies a loss by, as gradients carry it; 0: it scales none
    int walk;       // the depth of the walk that gradients arrive by; 0: of none
    bool spent;
    bool visited;   // by a walk that lists what graphs hold
    GradNode *next; // on lists of the tape
};

// What the tape needs of the room above: arithmetic that is itself on the record, for gradients
// that must be added or brought to a format, and word of whose turn it is.
typedef struct TapeHooks {
    Tensor *(*add)(void *context, Tensor *x, Tensor *y, Error *error);
    Tensor *(*cast)(void *context, Tensor *x, Format format, Error *error);
    // A node of this layer, that was recorded of this operation, is about to be visited.
    void (*enter)(void *context, int layer, OpId op);
    // The one output of a node, as it was, from what the node saved; on the record where that is
    // on.
    Tensor *(*make_again)(void *context, const GradNode *node, Error *error);
    // Adds what a walk brought to what earlier ones did, as separate gradients: each rounded to the
    // leaf's format, unless *sum was. Takes over neither; *sum may be replaced.
    bool (*gather)(void *context, Tensor *leaf, Tensor **sum, bool is_rounded, Tensor *gradient,
                   Error *error);
    // A walk has brought this leaf its gradient, which is the first that it has, or joins others.
    // NULL: nobody asks.
    void (*settled)(void *context, Tensor *leaf, bool is_first);
} TapeHooks;

Tape *tape_new(void *context, const TapeHooks *hooks); // the context is handed to every rule too
void tape_free(Tape *tape);                            // graphs may outlive it

// Recording is on from the start; the previous state is returned, to be put back.
bool tape_set_enabled(Tape *tape, bool enabled);
bool tape_is_enabled(const Tape *tape);

// Whether a gradient can flow into this tensor.
static inline bool tensor_wants_grad(const Tensor *tensor) {
    return tensor && (tensor->requires_grad || tensor->origin);
}

typedef struct TapeRecord {
    GradRule rule;
    OpId op;
    const OpAttr *attr; // may be NULL
    int layer;
    int input_count, output_count, saved_count;
    Tensor *const *inputs; // gradients flow to these; NULL for absent ones
    Tensor *const *used;   // what the kernel was given in their place (format); may equal inputs
    Tensor **outputs;      // get the node as their origin
    Tensor *const *saved;  // inputs as used, or outputs; NULL for absent ones
    uint32_t again; // bit k: saved[k] is an input that its node can make again, and is not kept
    GradOwn *own;   // taken over where a node is made
} TapeRecord;

// Links outputs to inputs, when recording is on and any input wants a gradient. Integer outputs
// get no origin.
bool tape_record(Tape *tape, const TapeRecord *record, Error *error) MUST_CHECK;

typedef struct BackwardOptions {
    bool keep_graph;   // it can be walked again
    bool create_graph; // the walk itself is recorded, for second derivatives; implies keep_graph
    // When set, gradients go to results[i] (new references, or NULL) instead of the leaves' grad.
    Tensor *const *inputs;
    Tensor **results;
    int input_count;
} BackwardOptions;

// The rule under way no longer needs this gradient of an output, or this saved tensor: its memory
// may be had for what the rule makes next. Pointers to it are dead, and of what was saved the node
// is spent, even if the rule fails. Does nothing where the graph is kept.
void tape_drop_arrived(Tape *tape, int output);
void tape_drop_saved(Tape *tape, int saved);

// What is computed from `scaled` is a loss times this scale: gradients of a walk that comes by
// carry it. Nothing where no gradient is wanted.
void tape_mark_scale(Tensor *scaled, uint64_t scale);

// Has this looked at the whole gradient of a tensor in each walk that brings one: of a leaf before
// it joins what is there, of others before it goes on. Takes the hook over; refused where the
// tensor asks for no gradient.
bool tape_add_hook(Tensor *tensor, GradHook *hook, Error *error) MUST_CHECK;

// From `root` with gradient `seed` (NULL: 1, and root must have one element) to the leaves, whose
// `grad` grows by it. A rule or a hook may walk another graph back meanwhile, to given inputs.
bool tape_backward(Tape *tape, Tensor *root, Tensor *seed, const BackwardOptions *options,
                   Error *error) MUST_CHECK;

// How many nodes there were, and how many gradients have come to leaves.
typedef struct TapeCounts {
    uint64_t nodes, arrivals;
} TapeCounts;

TapeCounts tape_counts(const Tape *tape);
// A walk that was gone once (grad/ knows nothing of how) brings its gradient again to a leaf that
// has none: the `order`-th that came, carrying this scale. tape_pass then counts on.
void tape_bring(Tape *tape, Tensor *leaf, Tensor *gradient, uint64_t order, uint64_t scale);
void tape_pass(Tape *tape, TapeCounts more);

// Whether no walk can begin at it: it was computed from no leaf, or was walked back already.
static inline bool tape_is_spent(const Tensor *tensor) {
    return !tensor->origin || ((const GradNode *)tensor->origin)->spent;
}

// A copy of what such a tensor was in a step that is computed again comes from where that did.
void tape_share_origin(Tensor *copy, const Tensor *of);

// sum += part, in its own memory, which nobody else reads and is dense; off the record.
bool grad_add_in_place(Tensor *sum, const Tensor *part, Error *error) MUST_CHECK;

// Makes the gradient of a leaf a copy of this one, in its format; NULL: none. It is taken for what
// the leaf's gradient is then: still scaled before a scaler has unscaled it, true afterwards.
bool tape_set_gradient(Tape *tape, Tensor *leaf, const Tensor *gradient, Error *error) MUST_CHECK;

// True when the gradient of input i goes straight to a parameter, which keeps it in fp32.
static inline bool grad_leaf_wants_full(const GradNode *node, int i) {
    const Tensor *leaf = node->edges[i].leaf;
    return leaf && leaf->parameter && leaf->view.format != FORMAT_FP64;
}
