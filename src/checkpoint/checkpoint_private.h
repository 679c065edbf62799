// checkpoint/checkpoint_private.h: what the files of the room share: the pieces that a checkpoint
// is made of, an open one, and the checks before it is put in place. Private to the room.
#pragma once

#include "checkpoint/checkpoint.h"

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
    bool is_optional; // older checkpoints lack it
    bool is_setting;  // a fork with settings of its own keeps its own
} Piece;

typedef struct PieceList {
    Piece *pieces;
    int count, room;
    bool saves; // pieces of memory are those to save, else those to fill
    Error *error;
} PieceList;

// All pieces of the training as it is now. The same script at the same place gives the same ones.
bool pieces_collect(PieceList *list, const Engine *engine, const Inventory *inventory, bool saves,
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

// ---- an open one --------------------------------------------------------------------------------

struct Checkpoint {
    SafeFile *file;
    RestoreOwn own;
    bool exact; // all is to be as it was
    int64_t step;
    bool at_end;
    bool seeks_place; // by positions, whatever waypoint it names
};

// What the error says when the file will not do for resuming.
#define WAY_OUT "resume with --weights-only to start the script afresh with its weights"

// ---- checks (check.c) ---------------------------------------------------------------------------

bool check_file_hash(SafeFile *file, const char *path, const char *hash, Error *error) MUST_CHECK;
// That it has what resuming takes; fills step and at_end.
bool check_contents(Checkpoint *checkpoint, const char *path, Error *error) MUST_CHECK;
// `settings` as in CheckpointTraining.
bool check_model(const Checkpoint *checkpoint, const PieceList *list, const char *settings,
                 Error *error) MUST_CHECK;
bool check_state(const Checkpoint *checkpoint, const PieceList *list, Error *error) MUST_CHECK;
// That the replay has come to the same place in every stream.
bool check_positions(const Checkpoint *checkpoint, const CheckpointTraining *training,
                     Error *error) MUST_CHECK;
// The entry of a named tensor: as checkpoints call it, or by its bare name as others do.
const SafeEntry *check_entry_of(const SafeHeader *header, const NamedTensor *named,
                                const char *name);
// Of the named tensors from `first` on.
bool check_weights(const SafeHeader *header, const Inventory *inventory, int first,
                   Error *error) MUST_CHECK;
