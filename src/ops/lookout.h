// ops/lookout.h: looks at all that operations give, both ways, for numbers that are not finite.
//
// Every output is looked at, in every step: the largest magnitude is kept a layer, and where an
// output is not finite it is known whether its inputs were. The first operation that gives such of
// finite inputs is an *origin*; what is computed from its output carries its number
// (Storage.fault), so that a loss or a gradient tells where it went wrong. Infinities that a script
// asks for (a mask) are no origin.
//
// A device that can be asked without waiting (MultiKernels.largest) is asked at once. One that runs
// on its own looks by itself (MultiKernels.look) and tells with the report of the step: until then
// the host has notes of what was looked at (LookNotes), what is computed carries the number of its
// look, and origins are found when the report is there. Where neither is to be had, as in a replay,
// a lookout is never on. The engine's thread.
#pragma once

#include "kernel/kernel.h"
#include "kernel/report.h"
#include "tensor/tensor.h"

typedef struct Engine Engine;

typedef enum FaultCause {
    FAULT_OVERFLOWED, // finite inputs, and it would be finite in fp32
    FAULT_MADE,       // finite inputs: a division by 0, a logarithm of 0, the end of fp32
    FAULT_WEIGHT,     // a parameter was not finite already
    FAULT_GIVEN,      // something else that no operation has made: data
    FAULT_SUMMED      // gradients from several sides, each finite
} FaultCause;

enum { LOOKOUT_ORIGINS = 64, LOOKOUT_NAME_SIZE = 64, LOOKOUT_PLACE_SIZE = 96 };

typedef struct FaultOrigin {
    uint32_t number; // from 1 on; 0: none
    FaultCause cause;
    OpId op;
    int layer;                        // 0: outside of all
    bool is_backward;                 // on the walk back,
    OpId walked;                      // of this operation; OP_COUNT: of none of ops.def
    bool divides;                     // op: by 0, perhaps; or it takes the logarithm of it
    bool scales;                      // a loss by its scale
    View view;                        // of what is not finite; its data is not to be read
    int64_t nans, infs;               // of its elements; -1: not counted
    bool is_nan;                      // of some of them: that is no overflow
    bool has_asked;                   // op was given infinities that the script asks for
    int64_t first;                    // of these, in row-major order
    char weight[LOOKOUT_NAME_SIZE];   // of FAULT_WEIGHT, and of an overflow of its low copy
    const char *buffer;               // the running statistic that keeps it; NULL: none does
    bool is_buffer;                   // it is that statistic itself
    char function[LOOKOUT_NAME_SIZE]; // mp.custom that it happened within; ""
    char place[LOOKOUT_PLACE_SIZE];   // line of the script, on the way forward; ""
} FaultOrigin;

// Of a step: where the first loss that is not finite and is walked back comes from, the first
// origin on a walk back, that of the first running statistic, and the first overflow on the way
// forward, which may end as a 0 where it is divided by; 0: none.
typedef struct StepFaults {
    uint32_t of_loss, of_walk, of_buffer, of_overflow;
} StepFaults;

// ---- a device that runs on its own --------------------------------------------------------------

enum {
    LOOKOUT_CHUNK = 256, // looks whose memory is taken at once
    LOOKOUT_CHUNKS = 64  // what a step gives beyond these is not looked at
};

typedef struct LookNote { // what a kernel gave, or was given that no look was taken of before
    View view;            // its data is not to be read
    OpId op, walked;      // of the kernel; see FaultOrigin
    int layer;
    bool is_output, asks_for; // infinities, which a script means
    bool is_backward, scales;
    bool keeps;     // its largest magnitude is its layer's
    bool is_loss;   // that is walked back
    bool is_weight; // a parameter, or the copy of one in its format:
    int master;     // then the look at the parameter itself; -1: it is that
    int first_input, input_count;
    const char *buffer;               // the running statistic that becomes it; NULL: none
    uint32_t made;                    // of that: looks before the batch was reckoned in
    uint32_t weight, function, place; // see FaultOrigin; where in `text` they begin
    uint32_t origin;                  // 0: it is finite, or not known yet
} LookNote;

typedef struct LookNotes { // of one step
    uint32_t first;        // the number of the first look
    LookNote *looks;
    int count, room;
    uint32_t *inputs; // of all: the numbers of their looks, 0: nothing to look at
    int input_count, input_room;
    char *text;
    size_t text_size, text_room;
    int pieces[LOOKOUT_CHUNKS]; // of the report
} LookNotes;                    // all zero: empty

typedef struct Lookout {
    bool is_open, is_on; // it can be put on; it is, but while a run evaluates
    uint32_t made;       // origins so far
    FaultOrigin origins[LOOKOUT_ORIGINS];
    StepFaults step;           // of the step under way, or of the one that lookout_settle has read
    float *forward, *backward; // [layers]: largest magnitudes that operations gave,
    float *weights;            // and of their weights, where lookout_settle has read them
    int layers;
    LookNotes notes;                // of the step under way
    uint32_t looked;                // looks so far
    Tensor *chunks[LOOKOUT_CHUNKS]; // device memory: LookFound
    OpId walked;                    // whose turn it is on the walk back
    bool scales;                    // a loss is being scaled: no activation of anything
    const char *function;           // mp.custom under way; NULL: none
    // The line of the script that is being run, "" where it is not known.
    void (*place)(void *context, char text[LOOKOUT_PLACE_SIZE]);
    void *place_context;
} Lookout;

void lookout_clear(Lookout *lookout);
// Whether what is found comes with the report of the step.
bool lookout_is_late(const Engine *engine);
// Puts it on, where the device can be asked.
void lookout_open(Engine *engine);
// Looks at what a kernel gave; `inputs` as they came, `used` as it got them.
void lookout_outputs(Engine *engine, const KernelCall *call, Tensor *const *inputs,
                     Tensor *const *used, Tensor *const *outputs);
// Looks at what a kernel gave that gave finite numbers before; false: one is not finite, and where
// that comes from is not known. `keeps`: it is its layer's.
bool lookout_again(Engine *engine, const KernelCall *call, bool keeps);
// A loss that is about to be walked back.
void lookout_loss(Engine *engine, Tensor *loss);
// What lookout_buffer is to be told before a batch is reckoned in.
uint32_t lookout_mark(const Engine *engine);
// A running statistic is about to become this; `name` stays.
void lookout_buffer(Engine *engine, const Tensor *value, const char *name, uint32_t mark);
// Of a tensor that was found not to be finite: where that came from; NULL: nobody knows any more.
const FaultOrigin *lookout_origin(const Lookout *lookout, uint32_t number);
// The step has ended, and what was found of it is read.
void lookout_end_step(Lookout *lookout);

// Of a device that runs on its own: what was looked at in the step that has ended goes into its
// report, and beside it into `notes`, which are used again.
bool lookout_report(Engine *engine, Reports *reports, LookNotes *notes, Error *error) MUST_CHECK;
// That report is there: finds the origins, and what Lookout has of a step.
void lookout_settle(Engine *engine, const Reports *reports, int place, LookNotes *notes);
// The origin of a storage's fault, noted in that step; 0: none.
uint32_t lookout_number(const Engine *engine, const LookNotes *notes, uint32_t fault);
void lookout_notes_clear(LookNotes *notes);
