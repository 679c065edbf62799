// checkpoint/inventory.h: what a checkpoint is made of, as far as the script makes it.
//
// The binding enters what the script makes, in order: named tensors of models, optimizers, scalers,
// averages, loaders. Numbers are given by that order and never again, so that a replay of the
// script gives the same ones; what is collected leaves its place empty. Named tensors are held, the
// others are borrowed until they are removed. The thread that drives the run.
#pragma once

#include "checkpoint/journal.h"
#include "tensor/tensor.h"

typedef enum MemberKind {
    MEMBER_OPTIMIZER,
    MEMBER_SCALER,
    MEMBER_AVERAGE,
    MEMBER_LOADER,
    MEMBER_KINDS
} MemberKind;

typedef struct MemberList {
    void **members; // NULL where one has gone
    int count, room;
} MemberList;

typedef struct NamedTensor {
    char *name;
    Tensor *tensor;
    bool is_buffer; // a field of a module that nothing trains
} NamedTensor;

typedef struct LiveTensor { // one that the script still holds
    uint64_t number;        // of its handle, counted since the start of the script
    Tensor *tensor;
} LiveTensor;

typedef struct Inventory {
    NamedTensor *named;
    int named_count, named_room;
    MemberList lists[MEMBER_KINDS];
    Journal journal;
    // Filled for the time of saving or restoring.
    LiveTensor *live;
    int live_count;
} Inventory;

void inventory_clear(Inventory *inventory);
bool inventory_add(Inventory *inventory, MemberKind kind, void *member, Error *error) MUST_CHECK;
void inventory_remove(Inventory *inventory, MemberKind kind, const void *member);
// Names a tensor, or names it anew. A name that another has gets "#2", "#3", .. behind it.
bool inventory_name(Inventory *inventory, const char *name, Tensor *tensor, bool is_buffer,
                    Error *error) MUST_CHECK;
const NamedTensor *inventory_find(const Inventory *inventory, const Tensor *tensor); // NULL: none
