// ops/lookout.h: looks at all that operations give, both ways, for numbers that are not finite.
//
// Where the device can be asked without waiting (MultiKernels.largest) every output is looked at,
// in every step: the largest magnitude is kept a layer, and where an output is not finite it is
// known whether its inputs were. The first operation that gives such of finite inputs is an
// *origin*; what is computed from its output carries its number (Storage.fault), so that a loss or
// a gradient tells where it went wrong. Infinities that a script asks for (a mask) are no origin.
// Elsewhere a lookout is never on. The engine's thread.
#pragma once

#include "kernel/kernel.h"
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

typedef struct Lookout {
    bool is_open, is_on; // it can be put on; it is, but while a run evaluates
    uint32_t made;       // origins so far
    FaultOrigin origins[LOOKOUT_ORIGINS];
    // Of the step under way: where the first loss that is not finite and is walked back comes from,
    // the first origin on a walk back, that of the first running statistic, and the first overflow
    // on the way forward, which may end as a 0 where it is divided by; 0: none.
    uint32_t of_loss, of_walk, of_buffer, of_overflow;
    float *forward, *backward; // [layers]: largest magnitudes that operations gave
    int layers;
    OpId walked;          // whose turn it is on the walk back
    bool scales;          // a loss is being scaled: no activation of anything
    const char *function; // mp.custom under way; NULL: none
    // The line of the script that is being run, "" where it is not known.
    void (*place)(void *context, char text[LOOKOUT_PLACE_SIZE]);
    void *place_context;
} Lookout;

void lookout_clear(Lookout *lookout);
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
// A running statistic is about to become this; `name` stays. `made`: origins that there were before
// the batch was reckoned in.
void lookout_buffer(Engine *engine, const Tensor *value, const char *name, uint32_t made);
// Of a tensor that was found not to be finite: where that came from; NULL: nobody knows any more.
const FaultOrigin *lookout_origin(const Lookout *lookout, uint32_t number);
// The step has ended, and what was found of it is read.
void lookout_end_step(Lookout *lookout);
