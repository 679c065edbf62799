// cli/train/past.h: a run of the history that is gone on with, forked or evaluated: its script, its
// checkpoints and the options that it was started with.
//
// A Past is the caller's and zeroed first; past_clear gives back what it has. The main thread.
#pragma once

#include "cli/experiments.h"
#include "cli/history/checkpoint_files.h"
#include "cli/history/history.h"
#include "data/safetensors.h"

typedef struct Past {
    RunRecord record;
    CheckpointRow *rows;
    int row_count;
    const CheckpointRow *row;        // where to begin; NULL: at the start
    char file[CHECKPOINT_FILE_SIZE]; // of it
    char root[STORE_PATH_SIZE];      // of all checkpoints
    char script[EXPERIMENT_PATH_SIZE];
    RunCommand *orders; // what was set after `row`
    int order_count;
    RunPast past;      // the runs that it was forked from
    RecordOption *own; // options typed now
    int own_count;
    RunLayerRule *own_layers; // and what of them sets layers
    int own_layer_count;
} Past;

void past_clear(Past *past);
// Keeps the options that were typed now, before those of the run are set.
bool past_keep_own(Cli *cli, Past *past, Error *error) MUST_CHECK;
// The run that was named, its script, and the checkpoint to begin at. `in_place`: it goes on
// itself, and must not be in progress.
bool past_read(const Cli *cli, Past *past, bool in_place, Error *error) MUST_CHECK;
// The last checkpoint at or before the step that can be gone on from, or else its weights; NULL:
// there is none.
const CheckpointRow *past_last_row(const Past *past, int64_t at, bool weights_only);
// The weights of the checkpoint to begin at, as they were written: a file of another checksum is
// refused. The caller's to safe_close; NULL on failure.
SafeFile *past_open_weights(const Past *past, Error *error) MUST_CHECK;
// Whether the script is the one that the run began with, as far as that is known.
bool past_script_is_same(const Past *past);
// Tells where it is another.
void past_warn_of_changes(const Past *past);
// The run's options, then those typed now. `with_own` false: only the run's.
bool past_set_options(Cli *cli, const Past *past, bool in_place, bool with_own,
                      Error *error) MUST_CHECK;
// What a fork of it at this step is to know of where it comes from.
RunPast past_of_fork(const Past *past, int64_t step);
bool past_has_own(const Past *past, const char *name); // an option of this name was typed now
