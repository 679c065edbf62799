// grad/saved.h: what graphs hold, for checkpoints: a graph that was recorded before one may be
// walked after it.
#pragma once

#include "grad/tape.h"

typedef struct SavedTensor {
    uint64_t node; // its number, the same whenever the same script records the same
    int index;     // among what the node saved
    Tensor *tensor;
} SavedTensor;

// What the nodes that lead to these tensors have saved and not dropped; tensors without a graph are
// fine. The caller frees the list.
bool graph_list_saved(Tensor *const *roots, int root_count, SavedTensor **list, int *count,
                      Error *error) MUST_CHECK;
