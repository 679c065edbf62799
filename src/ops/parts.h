// ops/parts.h: where the time of profiled steps goes: sums by layer, by operation, and by whether
// it is on the way forward or back.
//
// An EngineProfile (ops/engine.h) adds to one while steps are profiled; its owner reads it. Each
// part has its own time: what runs within it (the cast of an input) is a part for itself, so that
// parts add up to the time of the steps but for what lies between them. The thread that drives the
// engine calls.
#pragma once

#include "kernel/kernel.h"

typedef enum ProfileWay { PROFILE_FORWARD, PROFILE_BACKWARD, PROFILE_WAYS } ProfileWay;

// What takes time and is no operation of kernel/ops.def is numbered behind those.
typedef enum ProfileWork {
    WORK_COPY = OP_COUNT, // of a tensor, in its format: a cast that casts nothing
    WORK_BATCH,           // the next samples are waited for, and brought to the device
    WORK_SCAN,            // gradients are unscaled, checked and counted
    WORK_CLIP,
    WORK_UPDATE, // of the weights
    WORK_AVERAGE,
    PROFILE_WORKS
} ProfileWork;

typedef struct ProfilePart {
    int64_t calls;
    double seconds;         // its own
    double multiplications; // of a product; 0: nobody counts them
    double bytes;           // of what it reads and gives
    int64_t columns;        // of a product: how wide the narrowest is that it gave
    Format from, to;        // what the last of them computed with, and gave
} ProfilePart;

typedef struct ProfileParts {
    int layers;        // 0: outside of all
    ProfilePart *each; // [layers][PROFILE_WAYS][PROFILE_WORKS], mostly empty
    int *touched;      // those that are not, in the order in which they came to be; as many
    int touched_count;
} ProfileParts;

// Room for so many layers, what is there kept; false: there is no memory.
bool parts_make_room(ProfileParts *parts, int layers);
void parts_clear(ProfileParts *parts);
// One call more of a part.
ProfilePart *parts_touch(ProfileParts *parts, int layer, ProfileWay way, int work);
// Adds a step's to a sum, which has room for as many layers, and empties it; or only empties it.
void parts_add(ProfileParts *sum, ProfileParts *step);
void parts_forget(ProfileParts *step);

// What a part is of.
typedef struct ProfilePlace {
    int layer, work; // work: an OpId or a ProfileWork
    ProfileWay way;
} ProfilePlace;
ProfilePlace parts_place(int index);

// "linear", "update of weights"; and whether it is a step's as a whole, and so of no direction.
const char *parts_work_name(int work);
static inline bool parts_is_of_step(int work) {
    return work >= (int)WORK_BATCH;
}
