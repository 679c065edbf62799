// gpu/proof.h: whether the first results of a library's algorithm are believed: they are held
// against those of our own kernels, for which the host waits.
//
// Nothing passes unseen: what is finite on one side alone refutes, and results that are all zero,
// or all not finite, prove nothing, so that the next ones are looked at too. From the thread that
// drives the device.
#pragma once

#include "gpu/kernels/arguments.h"
#include "kernel/kernel.h"

typedef enum Proof {
    PROOF_GIVEN,
    PROOF_OPEN,    // nothing speaks against them, nothing for them
    PROOF_REFUTED, // they are others
    PROOF_FAILED   // the card failed meanwhile: error
} Proof;

// What was computed, which says how far from our own it may come out.
typedef enum ProofKind {
    PROOF_OF_PRODUCT, // one sum, rounded once
    PROOF_OF_GRAPH,   // what is between its sums is rounded too
    PROOF_OF_TF32,    // factors are rounded by a rule of the library's own
    PROOF_KINDS
} ProofKind;

// So many results are looked at where all before proved nothing; then it is believed.
enum { PROOF_MOST = 4 };

// Compares rows of a result, whose stride is `row`, with those expected, which are dense and of the
// same format. `distance` is memory of the device for what is found.
Proof gpu_prove(Device *device, ProofKind kind, const ProofArguments *results,
                Error *error) MUST_CHECK;
