// checkpoint/checkpoint.h: a training as a file, and back.
//
// What goes in. A checkpoint is a plain safetensors file: weights under "weight/NAME", running
// statistics under "buffer/NAME", beside them what exact resuming needs: moments, counts, scales,
// averages, whatever else the script holds that was made after its first step
// (checkpoint/replay.h), the journal of what it has read (checkpoint/journal.h). Positions, and all
// that the run counts, are notes.
//
// How it comes back. Lua itself cannot be saved, so the script is run again from its start. Its
// first step is computed; then the device replays (checkpoint/replay.h), which does nothing, and
// what the script reads comes from the journal. Where the checkpoint was taken the replay ends and
// all of it is put in its place: names, shapes and positions are compared before anything is
// written; where they differ nothing is.
//
// Who calls. The binding, which enters what the script makes into the inventory
// (checkpoint/inventory.h) and asks and answers the journal; and the run, which adds its notes and
// the rows of the history (run/run_checkpoint.h). Who is not a run, as one who loads weights, can
// call alone. The thread that drives the device.
#pragma once

#include "checkpoint/inventory.h"
#include "data/safetensors.h"
#include "ops/engine.h"

// 2: each parameter counts its own updates; steps end where a note says. What 1 lacks is taken as
// it was then.
enum { CHECKPOINT_FORMAT = 2 };

// ---- taking one ---------------------------------------------------------------------------------

typedef struct CheckpointFile { // one that is safe on the disk
    int64_t step;
    const char *why; // as CheckpointRow (store/checkpoints.h) has it
    char path[1024];
    char hash[HASH_HEX_SIZE];
    uint64_t bytes;
} CheckpointFile;

// Where the checkpoint of a step lies in a folder; makes the folder. `is_final`: that of the end of
// a script, beside that of its last step.
bool checkpoint_path(const char *folder, int64_t step, bool is_final, char *path, size_t size,
                     Error *error) MUST_CHECK;

// What only the binding knows.
typedef struct CheckpointExtra {
    const char *script_hash;
    uint64_t lua_random[4];
    bool at_end;      // taken when the script was over, not before a step
    bool leader_ends; // steps end with the first scaler's update though others follow: format 1
    int waypoint;     // how many waypoints (lua/bind/bind.h) the script had passed since the step
} CheckpointExtra;

typedef struct CheckpointNotes CheckpointNotes;

typedef struct CheckpointTraining { // what is saved, or filled
    Engine *engine;
    Inventory *inventory;
    const CheckpointExtra *extra;
    int64_t step;
    // Adds what the run knows beside it; when one is taken.
    void (*note)(const void *context, CheckpointNotes *notes);
    const void *context;
    const char *settings; // with which a fork differs from its parent, "--set width=16"; else NULL
} CheckpointTraining;

void checkpoint_put_note(CheckpointNotes *notes, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool checkpoint_save(const CheckpointTraining *training, const char *path, CheckpointFile *file,
                     Error *error) MUST_CHECK;

// Whether weights, buffers or averages are others now than in this file. The engine and the
// inventory are all that it asks of the training.
bool checkpoint_differs(const CheckpointTraining *training, const char *path, bool *differs,
                        Error *error) MUST_CHECK;

// ---- and back -----------------------------------------------------------------------------------

typedef struct RestoreOwn { // what a fork was asked for itself: that is not taken from the file
    bool settings, precision, layers, scale, recipe;
    // Whether one of its own `layers` names this one, whose precision is then not taken.
    bool (*names_layer)(const void *context, const char *layer);
    const void *context;
} RestoreOwn;

typedef struct Checkpoint Checkpoint;

// Opens one for resuming: refused, with the way out, where it lacks what that takes. `hash`, which
// may be NULL, is what the file's checksum must be; `own` is NULL where all is to be as it was.
Checkpoint *checkpoint_open(const char *path, const char *hash, const RestoreOwn *own,
                            Error *error);
void checkpoint_close(Checkpoint *checkpoint); // NULL is fine
const RestoreOwn *checkpoint_own(const Checkpoint *checkpoint);
int64_t checkpoint_step(const Checkpoint *checkpoint);
bool checkpoint_is_at_end(const Checkpoint *checkpoint);
// As the field of CheckpointExtra.
bool checkpoint_leader_ends(const Checkpoint *checkpoint);
// As the field of CheckpointExtra; -1: a file of before it was kept, or it is to be as one.
int checkpoint_waypoint(const Checkpoint *checkpoint);
void checkpoint_forget_waypoint(Checkpoint *checkpoint);
// Whether loaders and streams of chance stand where they stood when it was taken.
bool checkpoint_is_here(const Checkpoint *checkpoint, const CheckpointTraining *training);
bool checkpoint_read_journal(Checkpoint *checkpoint, Journal *journal, Error *error) MUST_CHECK;
// The replay has come to where the checkpoint was taken and the device computes again.
bool checkpoint_restore(Checkpoint *checkpoint, const CheckpointTraining *training,
                        Error *error) MUST_CHECK;

// Its notes. One by its key; NULL: there is none. A count: 0 where there is none; opening has
// checked it. Numbers, of which up to `count` are read: how many there were.
const char *checkpoint_note(const Checkpoint *checkpoint, const char *key);
int64_t checkpoint_note_count(const Checkpoint *checkpoint, const char *key);
int checkpoint_note_numbers(const char *note, double *numbers, int count);
// The next whose key begins so, from *at on, which begins at 0: what follows in its key; NULL: no
// more.
const char *checkpoint_next_note(const Checkpoint *checkpoint, const char *prefix, int *at,
                                 const char **note);

// ---- weights alone ------------------------------------------------------------------------------

// The loss scale that stood beside the weights; 0: the file is of none.
double checkpoint_scale_of_weights(const SafeFile *file);
// Fills the named tensors from number `first` on with those of the same name, in any floating type.
// Refused, with nothing loaded, where a weight is missing or has another shape; buffers may miss.
bool checkpoint_load_weights(SafeFile *file, Inventory *inventory, int first,
                             Error *error) MUST_CHECK;
