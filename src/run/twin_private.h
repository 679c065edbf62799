// run/twin_private.h: how two trainings in lock step are held against each other. Seen by run/
// only.
//
// A board has a slot a layer (what its last operation on the way forward gave, in the step), and
// two a parameter: the true gradient just before an update, and the weight once the step has ended.
// A slot holds all elements of a small tensor, and of a large one pieces of it from beginning to
// end, the same on both sides. There are two boards a side, and one of the weights at the begin:
// while the run still reads those of a step, the twin already writes the other one for the next.
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

#include "ops/engine.h"
#include "run/run_private.h"
#include "run/twin.h"

enum {
    TWIN_LAYERS = 512,     // slots of activations; layers past them are left out
    TWIN_PARAMETERS = 768, // with two slots each
    TWIN_SLOTS = TWIN_LAYERS + 2 * TWIN_PARAMETERS,
    TWIN_SAMPLE = 1024, // elements of a slot,
    TWIN_PIECE = 64,    // in pieces of so many, where there are more
    TWIN_BOARDS = 3,    // of a side
    TWIN_SERIES_LAYERS = 48,
    TWIN_SERIES = 1 + TWIN_SERIES_LAYERS * APART_KINDS,
};

// Chosen on the experiments that ship, in fp16 and bf16 beside fp32: what trains well stays below,
// and a doubled number is far above.
static const double TWIN_GROWTH = 16, TWIN_ROUNDINGS = 8, TWIN_MOVES = 4;

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

typedef struct TwinBoard {
    TwinSlot slots[TWIN_SLOTS];
    float values[TWIN_SLOTS][TWIN_SAMPLE];
} TwinBoard;

typedef enum TwinWord {
    TWIN_CONFIGURED,
    TWIN_RECORDED,
    TWIN_LAYERED,
    TWIN_STEP,
    TWIN_LEFT
} TwinWord;

typedef struct TwinMessage {
    TwinWord word;
    int64_t step, run;
    bool has_skipped; // this step
    bool has_loss;
    int64_t loss_step;
    double loss;
    double unit;      // of the precision's format
    uint64_t formats; // a hash of what decides the formats: the same on both sides, or not
    char precision[32];
    char culprit[RUN_NAME_SIZE]; // the layer to blame for the skip
    RunStatus status;            // of TWIN_LEFT,
    ErrorCode code;              // and why
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
    bool is_there, differs, own_breaks, other_breaks;
} TwinSums;

struct TwinLink {
    TwinBoard *boards; // [TWIN_SIDES][TWIN_BOARDS]: shared
    int ends[TWIN_SIDES];
    TwinSide side;
    EngineWatch watch;
    Run *run;               // whose side this is, once it is configured
    bool ends_open;         // this side has not left yet
    bool is_met;            // the other was there when this side was configured
    bool is_gone;           // it has left,
    bool has_told_gone;     // and what follows of that was done
    TwinMessage last, left; // of the other
    int64_t step;           // that is made now, from 1
    int64_t skipped;        // steps of this side, by the end of the step before
    int parameter_count, order;
    bool is_full; // there were more parameters than slots
    // The run's side.
    TwinReport report;
    TwinLayer *layers; // [TWIN_LAYERS], by the policy's numbers; 0: outside of all
    TwinSums *sums;    // three times [TWIN_LAYERS]: of one step
    double unit;       // of the coarsest format of both, as far as it was seen
    int coarser;       // > 0: this side's precision; < 0: the twin's
    double met_at;     // clock_seconds
    int64_t told_loss; // the last step whose loss was compared; -1: none
    bool is_unlike;    // they have not the same layers: nothing of those is compared
    bool has_series[TWIN_SERIES];
};

static inline TwinBoard *twin_board(const TwinLink *link, TwinSide side, int64_t step) {
    return &link->boards[TWIN_BOARDS * (int)side + (step > 0 ? 1 + (int)(step & 1) : 0)];
}
static inline int twin_gradient_slot(int parameter) {
    return TWIN_LAYERS + 2 * parameter;
}
static inline int twin_weight_slot(int parameter) {
    return TWIN_LAYERS + 2 * parameter + 1;
}

// ---- twin_link.c: the socket --------------------------------------------------------------------

void twin_send(TwinLink *link, const TwinMessage *message);
// The next message of the other, waited for as the header says; at most `seconds` (infinite: as
// long as it lives). False: none came.
bool twin_receive(TwinLink *link, TwinMessage *message, double seconds);

// Of the twin: the run beside it is no more, whatever is still to be received of it. Any thread.
bool twin_is_left(const TwinLink *link);

// ---- twin_take.c: what a side leaves on its boards ----------------------------------------------

double twin_unit(Format format);        // half of the distance from 1 to the next number
void twin_watch(TwinLink *link);        // from now on
void twin_take_weights(TwinLink *link); // as they are at the end of the step
bool twin_looks_whole(const Run *run, int64_t step); // at all bits of the weights, in this step

// ---- twin_judge.c: the run's side ---------------------------------------------------------------

// Both boards of the step are there: measures, tells, keeps.
void twin_judge_step(TwinLink *link, const TwinMessage *own, const TwinMessage *other);
// The losses of a step, which come when they come.
void twin_judge_loss(TwinLink *link, const TwinMessage *own, const TwinMessage *other);
// The layers of the report, as they are now.
void twin_list_layers(TwinLink *link);
// What is known of the pair, as facts of the run.
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
