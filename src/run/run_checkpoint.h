// run/run_checkpoint.h: a run's part in its checkpoints (checkpoint/checkpoint.h): what it has
// counted, as notes, and their rows in the history. The thread that drives the run.
#pragma once

#include "checkpoint/checkpoint.h"
#include "run/run.h"

// Reads what the run has logged so far, then writes.
bool run_save(Run *run, Inventory *inventory, const CheckpointExtra *extra, const char *path,
              CheckpointFile *file, Error *error) MUST_CHECK;
// See checkpoint_restore.
bool run_restore(Run *run, Checkpoint *checkpoint, Inventory *inventory,
                 const CheckpointExtra *extra, Error *error) MUST_CHECK;
// The counters alone: of a run that ends while it still replays.
void run_restore_counters(Run *run, const Checkpoint *checkpoint);

// Where those of a recorded run lie.
bool run_checkpoint_folder(Run *run, char *folder, size_t size, Error *error) MUST_CHECK;
// Adds the row of a file in that folder, and takes older periodic ones away.
bool run_record_checkpoint(Run *run, const CheckpointFile *file, Error *error) MUST_CHECK;
