// ops/lookout_private.h: what looking at once (lookout.c) and looking late (lookout_late.c) share.
// Nobody else's.
#pragma once

#include "ops/engine.h"

// In place of an origin's number: infinities that a script asks for.
#define LOOKOUT_ASKED_FOR UINT32_MAX

// Whether fp16 is not to blame: these give no number in any format.
bool lookout_divides(OpId op);
// A script that makes or chooses infinities means them: -1e9 in a mask.
bool lookout_asks_for(const KernelCall *call);

typedef struct BrokenInputs {
    bool any, has_nan, has_asked;
    uint32_t number; // the oldest origin of one; 0: none
    int at;          // an input without; -1: none
} BrokenInputs;

// Input i, whose largest magnitude is no finite number, and which carries that of an origin.
void lookout_add_input(const Lookout *lookout, BrokenInputs *found, int i, double value,
                       uint32_t number);
// Whether what came of inputs without an origin, of that largest magnitude, is what a script asks
// for.
bool lookout_is_asked_for(const BrokenInputs *broken, bool asks_for, double value);

typedef enum LookoutKind { LOOKOUT_FORWARD, LOOKOUT_BACKWARD, LOOKOUT_WEIGHTS } LookoutKind;
// The largest magnitude, of a layer.
void lookout_keep(Lookout *lookout, LookoutKind kind, int layer, double value);
// Gives it a number, which is returned, and what follows from the rest.
uint32_t lookout_add_origin(Lookout *lookout, const FaultOrigin *origin);
// A running statistic has kept what came of that origin, or is that itself.
void lookout_keep_buffer(Lookout *lookout, uint32_t number, const char *name, bool is_buffer);

// ---- lookout_late.c: what lookout.h has of the same names

void lookout_note_outputs(Engine *engine, const KernelCall *call, Tensor *const *inputs,
                          Tensor *const *used, Tensor *const *outputs);
void lookout_note_loss(Engine *engine, Tensor *loss);
void lookout_note_buffer(Engine *engine, const Tensor *value, const char *name, uint32_t mark);
