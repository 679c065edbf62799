// cpu/multi.h: how work over all tensors of a model is cut up. Private to this folder.
#pragma once

#include "kernel/multi.h"

enum { PIECE_ELEMENTS = 16384 };

// Pieces are numbered through all tensors; none has parts of two.
typedef struct Pieces {
    int64_t *first; // [items + 1]: of each tensor
    int items;
    int64_t count, elements;
} Pieces;

static inline size_t pieces_bytes_of(int items) {
    return ((size_t)items + 1) * sizeof(int64_t);
}

Pieces pieces_of(void *memory, int items);
// Tensors are added in their order.
void pieces_add(Pieces *pieces, int item, int64_t elements);
int pieces_item(const Pieces *pieces, int64_t piece);

bool cpu_update(Device *device, const UpdateRule *rule, UpdatePlan *plan, const StepFlags *flags,
                Progress *progress, Error *error);
