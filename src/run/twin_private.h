// run/twin_private.h: how two trainings in lock step are held against each other. Seen by run/
// only.
//
// A board has a slot a layer (what its last operation on the way forward gave, in the step), and
// two a parameter: the true gradient just before an update, and the weight once the step has ended.
// A slot holds all elements of a small tensor, and of a large one pieces of it from beginning to
// end, the same on both sides. Beside them lies what a side says of the step: its loss, and whether
// it skipped. There is one board a side of the weights at the begin, and as many of steps as are
// not judged yet: the run judges every step, in order, once both boards of it are there.
//
// To wait for each other costs more than a step of a small model. So where steps are short a side
// may be up to TWIN_LEAD of them ahead before it sleeps; where one takes longer than TWIN_SHORT it
// waits at its end, and nobody sees late what was found. Counters that both see say how far a side
// is, and who sleeps is woken through the socket, by which an end is seen too.
//
// The distance of two samples is |a - b| over the larger of |a| and |b|, 2-norms: 0 is the same, 1
// is one that lacks what the other has. What is judged is |a - b| over the largest size that it
// ever had in the training, as terms that cancel out keep their rounding; or the distance, where
// nothing is left on one side. It is judged by what it was made of in that step, in the order in
// which a step makes it; `u` is the rounding unit of the coarsest format on either side:
//
//   activations of a layer   TWIN_GROWTH * (the largest distance before it in the step, or of its
//                            weights at the step's begin) + TWIN_ROUNDINGS * u
//   gradients of a layer     TWIN_GROWTH * (the largest of all activations and weights, and of the
//                            gradients of layers nearer the loss) + TWIN_ROUNDINGS * u, and no less
//                            than TWIN_ROUNDINGS * u of the largest gradient of all layers
//   weights of a layer       what they were, TWIN_MOVES times what the smaller of both updates
//   usually
//                            moves them, and of the larger as much as the gradients are apart
//
// So a difference that came in with the inputs, or that grew from step to step as trainings do, is
// laid at nobody's door: a layer is named where its distance is far beyond that of what it was
// given. Where both sides compute alike, in the same formats, nothing explains a difference, and
// one bit is one. What a run's rounding cannot be told from, in formats of few bits, nobody is told
// of.
#pragma once

#include <stdatomic.h>

#include "ops/engine.h"
#include "run/run_private.h"
#include "run/twin.h"

enum {
    TWIN_LAYERS = 512,     // slots of activations; layers past them are left out
    TWIN_PARAMETERS = 768, // with two slots each
    TWIN_SLOTS = TWIN_LAYERS + 2 * TWIN_PARAMETERS,
    TWIN_SMALL = 256,          // elements of a tensor that is sampled whole
    TWIN_SHARE = 32,           // of a larger one, so many times fewer than it has, but no fewer
    TWIN_SAMPLE = 1024,        // than that, and no more than these,
    TWIN_PIECE = 64,           // in pieces of so many
    TWIN_RING = 32,            // boards of steps of a side,
    TWIN_LEAD = TWIN_RING - 2, // of which one is written, and one is of the step before
    TWIN_SERIES_LAYERS = 48,
    TWIN_SERIES = 1 + TWIN_SERIES_LAYERS * APART_KINDS,
};

// Chosen on the experiments that ship, in fp16 and bf16 beside fp32: what trains well stays below,
// and a doubled number is far above.
static const double TWIN_GROWTH = 16, TWIN_ROUNDINGS = 8, TWIN_MOVES = 4;
static const double TWIN_SHORT = 1e-3; // seconds

typedef struct TwinSlot { // of a board
    uint64_t name;        // a hash of what it is of; 0: nothing was put here yet
    uint64_t bits;        // a hash of all its elements; 0: not taken this time
    int64_t step;         // that it is of
    int64_t count;        // elements that there are
    int layer;            // of the policy
    int order;            // of a layer's output: which of the training it was
    int samples;
    float unit;  // of what it was rounded to
    float moved; // of a weight: how far its sample has since the step before; NaN: unknown
} TwinSlot;

typedef struct TwinEnd { // of a step, as one side says
    bool has_skipped;
    bool has_loss;
    int64_t loss_step;
    double loss;
    double unit;      // of the precision's format
    uint64_t formats; // a hash of what decides the formats: the same on both sides, or not
    char culprit[RUN_NAME_SIZE]; // the layer to blame for the skip
} TwinEnd;

typedef struct TwinBoard {
    TwinEnd end;
    TwinSlot slots[TWIN_SLOTS];
    float values[TWIN_SLOTS][TWIN_SAMPLE];
} TwinBoard;

typedef struct TwinMark { // how far a side is
    _Alignas(64)
        atomic_llong reached; // steps: of the twin, that are on its boards; of the run, judged
    atomic_llong awaits;      // of the other's, while this side sleeps; 0: it does not
    atomic_bool has_left;
    unsigned char places[TWIN_RING]; // of each step, by its remainder: the board that it is on
} TwinMark;

typedef struct TwinShared { // by both processes
    TwinMark marks[TWIN_SIDES];
    TwinBoard boards[TWIN_SIDES][1 + TWIN_RING]; // the first of the begin
} TwinShared;

typedef enum TwinWord {
    TWIN_CONFIGURED,
    TWIN_RECORDED,
    TWIN_LAYERED,
    TWIN_WOKEN, // the other is farther, or about to sleep itself
    TWIN_LEFT
} TwinWord;

typedef struct TwinMessage {
    TwinWord word;
    int64_t step, run;
    char precision[32];
    TwinEnd end;
    RunStatus status; // of TWIN_LEFT,
    ErrorCode code;   // and why
    char text[ERROR_TEXT_SIZE];
} TwinMessage;

typedef struct TwinLayer { // the run's side: what is known of a layer
    ApartLayer apart;
    double weights, weights_before; // their distance, and at the end of the step before
    int64_t gradients_step;         // when those were judged last
    double weights_given;           // and when the layer was gone through last
    double moves;                // by how much the smaller update usually moves them, of their size
    double largest[APART_KINDS]; // size that was seen
} TwinLayer;

typedef struct TwinSums { // over samples, those of large tensors weighted as they stand for more
    double apart, own, other;
    double moved_own, moved_other; // squares; NaN: unknown
    int order;                     // the least of slots
    bool is_there, differs;
    bool own_breaks, other_breaks; // something is not finite that is so on the other side,
    bool own_broken, other_broken; // or whatever that is there
    bool is_part;                  // of what there is
} TwinSums;

typedef struct TwinKnown { // of a slot: the tensor whose name was mixed last
    const char *name;
    int64_t count;
    uint64_t mixed;
} TwinKnown;

typedef struct TwinFormats { // that were mixed last, and what they were made of
    uint64_t mixed, changes;
    Recipe recipe;
    char rule[64];
} TwinFormats;

struct TwinLink {
    TwinShared *shared;
    int ends[TWIN_SIDES];
    TwinSide side;
    EngineWatch watch;
    Run *run;               // whose side this is, once it is configured
    bool ends_open;         // this side has not left yet
    bool is_met;            // the other was there when this side was configured
    bool is_gone;           // it has left,
    bool has_told_gone;     // and what follows of that was done
    TwinMessage last, left; // of the other
    _Atomic double looked;  // whether it is left, at this clock_seconds
    int64_t step;           // that is made now, from 1
    int64_t skipped;        // steps of this side, by the end of the step before
    int parameter_count, order;
    bool is_full;  // there were more parameters than slots
    double met_at; // clock_seconds, when the step that is made now began
    TwinFormats formats;
    TwinKnown *known;              // [TWIN_SLOTS]
    int64_t placed[1 + TWIN_RING]; // the step that is on each of this side's boards
    // The run's side.
    int64_t judged; // steps; while one is, with it
    TwinReport report;
    TwinLayer *layers; // [TWIN_LAYERS], by the policy's numbers; 0: outside of all
    TwinSums *sums;    // three times [TWIN_LAYERS]: of one step
    double unit;       // of the coarsest format of both, as far as it was seen
    int coarser;       // > 0: this side's precision; < 0: the twin's
    int64_t told_loss; // the last step whose loss was compared; -1: none
    bool is_unlike;    // they have not the same layers: nothing of those is compared
    bool has_series[TWIN_SERIES];
};

static inline TwinBoard *twin_board(const TwinLink *link, TwinSide side, int64_t step) {
    const TwinMark *mark = &link->shared->marks[side];
    return &link->shared->boards[side][step > 0 ? mark->places[step % TWIN_RING] : 0];
}
static inline int twin_gradient_slot(int parameter) {
    return TWIN_LAYERS + 2 * parameter;
}
static inline int twin_weight_slot(int parameter) {
    return TWIN_LAYERS + 2 * parameter + 1;
}

// ---- twin_link.c: the socket, and the counters --------------------------------------------------

void twin_send(TwinLink *link, const TwinMessage *message);
// The next message of the other, waited for as the header says; at most `seconds` (infinite: as
// long as it lives). False: none came.
bool twin_receive(TwinLink *link, TwinMessage *message, double seconds);
// Says how far this side is, and wakes the other where it waits for that.
void twin_reach(TwinLink *link, int64_t step);
// How far the other is.
int64_t twin_reached(const TwinLink *link);
// Sleeps until the other has reached the step, is about to sleep too, or more than `known` of it
// were reached; at most `seconds`. False: it does not come any more, or not in time.
bool twin_sleep(TwinLink *link, int64_t step, int64_t known, double seconds);
// This side has left, or the other has, as a look at the counters tells; how it did, the socket.
void twin_leave(TwinLink *link);
bool twin_has_left(const TwinLink *link);

// Of the twin: the run beside it is no more, whatever is still to be received of it. Any thread.
bool twin_is_left(TwinLink *link);

// ---- twin_take.c: what a side leaves on its boards ----------------------------------------------

double twin_unit(Format format);        // half of the distance from 1 to the next number
void twin_watch(TwinLink *link);        // from now on
void twin_begin_board(TwinLink *link);  // for the step that is made now
void twin_take_weights(TwinLink *link); // as they are at the end of the step
// Of the run: what the twin has left of the step lies in another processor's cache. Calls for it
// while there is other work, as it would be waited for later.
void twin_call_for(const TwinLink *link, int64_t step);
bool twin_looks_whole(const Run *run, int64_t step); // at all bits of the weights, in this step

// ---- twin_judge.c: the run's side ---------------------------------------------------------------

// Both boards of the step after those that are judged are there: measures, tells, keeps.
void twin_judge_step(TwinLink *link);
// The losses of a step, which come when they come.
void twin_judge_loss(TwinLink *link, const TwinEnd *own, const TwinEnd *other);
// The layers of the report, as they are now.
void twin_list_layers(TwinLink *link);
// What is known of the pair, as facts of the run. NULL, and the twin's side, are fine.
void twin_keep_facts(TwinLink *link);

// ---- twin.c: told by run/ -----------------------------------------------------------------------

// The precision is settled. False: the other was refused, and so is this.
bool twin_configured(RunState *state, Error *error) MUST_CHECK;
void twin_before_record(RunState *state);
// The run has its number. False: the twin's run came to nothing, and so does this.
bool twin_recorded(RunState *state, Error *error) MUST_CHECK;
// The layers are known, and there were none missing that options name. False: as above.
bool twin_layers_known(RunState *state, Error *error) MUST_CHECK;
void twin_step_ended(RunState *state);
void twin_finished(RunState *state); // with its status
