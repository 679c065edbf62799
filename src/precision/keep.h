// precision/keep.h: which kinds of operations stay in fp32 in a low run, where somebody says so:
// --keep-fp32. Without that a preset says it (precision/policy.h).
//
// Kept is computed as the class table has it: its weights in fp32, its result in fp32 or as what
// came in. Not kept takes weights and inputs rounded to the layer's format and gives its result in
// it, as a model does that was cast as a whole; sums inside of an operation are in fp32
// nevertheless, as cards have them. Pure.
#pragma once

#include "base/error.h"
#include "kernel/kernel.h"

typedef enum KeepKind {
    KEEP_BATCH_NORM,
    KEEP_LAYER_NORM, // group and instance norms too
    KEEP_EMBEDDING,
    KEEP_SOFTMAX, // from here on no layers of their own
    KEEP_LOSSES,
    KEEP_FUNCTIONS, // what else is computed in fp32: exp, log, sums, ..
    KEEP_KINDS,     // products and what runs in the format that it is given
} KeepKind;

typedef struct Keep {
    bool is_given; // else the preset decides, and the rest says nothing
    bool kept[KEEP_KINDS];
} Keep;

// "none", "all", or kinds with ',' or '+' between. NULL: not given.
bool keep_parse(const char *text, Keep *keep, Error *error) MUST_CHECK;
KeepKind keep_kind(OpId op);
const char *keep_kind_name(KeepKind kind); // "batch_norm"
// Whether these are layers with weights: norms and embeddings.
bool keep_is_layer(KeepKind kind);
extern const char keep_names[]; // all that it takes, with blanks between, for help
