// run/checkpoint.h: the state of a run as a file, and back.
//
// A checkpoint is a plain safetensors file: weights under "weight/NAME", running statistics under
// "buffer/NAME", beside them what exact resuming needs: moments, counts, scales, averages, tensors
// that the script holds, the journal of what it read; positions and counters are notes. Lua itself
// cannot be saved: a resumed run replays its script without computing (kernel/replay.h), and where
// the checkpoint was taken all of this is put in its place. Names and shapes are compared before
// anything is written; where they differ nothing is. The thread that drives the run.
#pragma once

#include "data/safetensors.h"
#include "run/inventory.h"
#include "run/run.h"

// 2: each parameter counts its own updates; steps end where a note says. What 1 lacks is taken as
// it was then.
enum { CHECKPOINT_FORMAT = 2 };

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
} CheckpointExtra;

// Reads what the run has logged so far, then writes.
bool checkpoint_save(Run *run, Inventory *inventory, const CheckpointExtra *extra, const char *path,
                     CheckpointFile *file, Error *error) MUST_CHECK;

// Whether weights, buffers or averages are others now than in this file.
bool checkpoint_differs(Run *run, const Inventory *inventory, const char *path, bool *differs,
                        Error *error) MUST_CHECK;

// ---- and back -----------------------------------------------------------------------------------

typedef struct RestoreOwn { // what a fork was asked for itself: that is not taken from the file
    bool settings, layers, scale;
} RestoreOwn;

typedef struct Checkpoint Checkpoint;

// Opens one for resuming: refused, with the way out, where it lacks what that takes. `hash`, which
// may be NULL, is what the file's checksum must be; `own` is NULL where all is to be as it was.
Checkpoint *checkpoint_open(const char *path, const char *hash, const RestoreOwn *own,
                            Error *error);
void checkpoint_close(Checkpoint *checkpoint); // NULL is fine
int64_t checkpoint_step(const Checkpoint *checkpoint);
bool checkpoint_is_at_end(const Checkpoint *checkpoint);
// As the field of CheckpointExtra.
bool checkpoint_leader_ends(const Checkpoint *checkpoint);
const char *checkpoint_note(const Checkpoint *checkpoint, const char *key); // NULL: none
bool checkpoint_read_journal(Checkpoint *checkpoint, Journal *journal, Error *error) MUST_CHECK;
// The replay has come to where the checkpoint was taken and the device computes again.
bool checkpoint_restore(Checkpoint *checkpoint, Run *run, Inventory *inventory,
                        const CheckpointExtra *extra, Error *error) MUST_CHECK;
// Whether a fork sets parameters of its own.
bool checkpoint_has_own_settings(const Checkpoint *checkpoint);
// The counters alone: of a run that ends while it still replays.
void checkpoint_restore_counters(const Checkpoint *checkpoint, Run *run);

// ---- in the history -----------------------------------------------------------------------------

// Where those of a recorded run lie.
bool checkpoint_folder(Run *run, char *folder, size_t size, Error *error) MUST_CHECK;
// Adds the row of a file in that folder, and takes older periodic ones away.
bool checkpoint_record(Run *run, const CheckpointFile *file, Error *error) MUST_CHECK;

// ---- weights alone ------------------------------------------------------------------------------

// The loss scale that stood beside the weights; 0: the file is of none.
double checkpoint_scale_of_weights(const SafeFile *file);
// Fills the named tensors from number `first` on with those of the same name, in any floating type.
// Refused, with nothing loaded, where a weight is missing or has another shape; buffers may miss.
bool checkpoint_load_weights(SafeFile *file, Inventory *inventory, int first,
                             Error *error) MUST_CHECK;
