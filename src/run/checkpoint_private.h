// run/checkpoint_private.h: what the files of checkpoints share: the pieces that one is made of.
#pragma once

#include "data/safetensors.h"
#include "run/inventory.h"
#include "run/run.h"

typedef enum PieceRole {
    PIECE_WEIGHT, // of the model: missing or unlike, it is another model
    PIECE_STATE,  // of optimizers, scalers, averages: without it no exact resuming
    PIECE_MEMORY, // what else is held, as bare memory
} PieceRole;

typedef struct Piece { // has one of tensor, storage, numbers
    char *name;
    PieceRole role;
    SafeType type;
    int ndim;
    int64_t shape[VIEW_MAX_DIMS];
    Tensor *tensor; // dense
    Storage *storage;
    double *numbers; // the piece's own
    void *owner;     // whose the numbers are
    void (*put)(void *owner, const double *numbers);
} Piece;

typedef struct PieceList {
    Piece *pieces;
    int count, room;
    bool saves; // pieces of memory are those to save, else those to fill
    Error *error;
} PieceList;

// All pieces of the run as it is now. The same script at the same place gives the same ones.
bool pieces_collect(PieceList *list, Run *run, const Inventory *inventory, bool saves,
                    Error *error) MUST_CHECK;
void pieces_clear(PieceList *list);
size_t piece_bytes(const Piece *piece);
// Takes the contents to `out`; puts them in place from an entry of a file. `scratch` holds the
// larger of both sizes.
bool piece_get(const Piece *piece, void *out, Error *error) MUST_CHECK;
bool piece_put(const Piece *piece, SafeFile *file, const SafeEntry *entry, Error *error) MUST_CHECK;
// Whether the entry has the piece's shape, and a type that can become its own.
bool piece_fits(const Piece *piece, const SafeEntry *entry);

// "weight/NAME" and "buffer/NAME" of a named tensor; the caller frees it.
char *piece_name_of(const NamedTensor *named);
// A piece over a tensor, not in any list; `name` is taken over.
Piece piece_of_tensor(char *name, PieceRole role, Tensor *tensor);

// A scale rule in one line, to compare.
void checkpoint_rule_text(const ScaleRule *rule, char *text, size_t size);
