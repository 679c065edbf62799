// precision/parameter.h: what a trained weight has beside its value: its name and layer, the low
// copy that products read, the format its gradients are rounded to.
//
// The value is the fp32 master. The low copy is an alias of it in another format, never a node of
// the graph: gradients of operations that read the copy go to the master directly, so that a copy
// made while gradients were off cannot cut anything. It is made when a product first asks for it,
// rewritten by the optimizer in the pass that updates the master, and dropped when the value is
// changed in any other way.
#pragma once

#include "precision/calibration.h"
#include "precision/policy.h"
#include "tensor/tensor.h"

typedef struct Parameter {
    TensorCompanion companion;
    char *name;        // "fc1.weight"
    int layer;         // of the policy
    bool norm_or_bias; // what does not decay, see decay_groups in docs/lua.md
    bool in_norm;      // weight of a norm that was computed with it rounded to a scaled format
    Tensor *low;       // NULL until asked for
    // Of one that is evaluated in int8, NULL until asked for: the rows in whole numbers and what a
    // step of each is worth; what the numbers were that it multiplied; and what a step of those is
    // worth, 0 until then.
    Tensor *whole, *steps;
    Calibration *calibration;
    float step;
    Format round_to; // what the last recorded use computed in: its gradients are rounded to it
    bool is_factor;  // of a product, not only looked up or added
    // What it was in where the policy was asked what to keep it in (policy_storage); FORMAT_COUNT:
    // it was not, and it stays in what it is.
    Format asked_in;
    // The operation that took it last in a format that the policy decides, a product before others,
    // and where: what the copy would be under another policy. OP_COUNT: none has yet.
    OpId taker;
    int taken_in; // layer
    AutocastRegion taken_region;
    bool full_gradients; // they are not: its optimizer asks for that
    // Of gradients that several walks brought: device memory, a GradStats of what the rounding of
    // each did; NULL: none were.
    Tensor *gathered;
    int gathered_count; // how many
    int watched;        // whoever watches the engine numbers it by this, from 1; 0: not yet
} Parameter;

// Makes a leaf tensor a parameter, which is trained, or gives one another name and layer; it owns
// the record from then on.
bool parameter_attach(Tensor *tensor, const char *name, int layer, bool norm_or_bias,
                      Error *error) MUST_CHECK;
// NULL for a tensor that is none.
static inline Parameter *parameter_of(const Tensor *tensor) {
    return (Parameter *)tensor->parameter;
}

// The value in `format`: the tensor itself or its low copy. Borrowed.
Tensor *parameter_in_format(Tensor *tensor, Format format, Error *error) MUST_CHECK;
// Keeps the value itself in `format` from now on, without a master.
bool parameter_store_in(Tensor *tensor, Format format, Error *error) MUST_CHECK;
// New contents for a leaf, a parameter or not: weights set by hand. Refused where the shapes
// differ, and for what was computed from other tensors. Graphs that saved the old contents are
// refused when they are walked.
bool parameter_write(Tensor *tensor, const Tensor *source, Error *error) MUST_CHECK;
// The value in int8, [rows][all else], made when it is first asked for: *whole and *steps are
// borrowed. Refused where not all of it is finite.
bool parameter_in_int8(Tensor *tensor, Tensor **whole, Tensor **steps, Error *error) MUST_CHECK;
// The value was written by something that did not rewrite the copy.
void parameter_touch(Tensor *tensor);
