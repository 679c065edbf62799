// run/recorder.h: what a run leaves in the history while it trains.
//
// The run's thread hands over points, statistics of gradients and events through a ring, without
// locks, system calls or memory, and never waits for the disk. A thread of the recorder's own puts
// them into the store, a commit every 200 ms, tells that the run lives, and brings orders. Where
// the disk is full training waits at a step boundary until there is room; where the history cannot
// be written any more it says so and training goes on unrecorded; where another process has taken
// the run over, it ends.
//
// All functions are the run's thread's. A Recorder outlives its run's training and belongs to the
// caller of recorder_new. Where somebody wants the run to end while another process keeps the
// history locked, what waits for it is given up after a minute.
#pragma once

#include "run/run.h"
#include "store/store.h"

// Opens the history: `database` as store_path takes it.
Recorder *recorder_new(const char *database, Error *error);
// Ends the thread without a word, where recorder_end was not called. NULL is fine.
void recorder_free(Recorder *recorder);

// The run is configured: makes its row, sets run->id and run->name, and begins to record. Where
// run->options->resumes it only takes the run, and beats: nothing of it changes until
// recorder_go_on.
bool recorder_begin(Recorder *recorder, Run *run, Error *error) MUST_CHECK;
// A run is restored, and its training goes on: a resume supersedes what comes after its checkpoint
// here, and not where it is refused or killed before.
bool recorder_go_on(Recorder *recorder, Run *run, Error *error) MUST_CHECK;
// Whether either has come to pass.
bool recorder_has_begun(const Recorder *recorder);
// The run is finished: its last state is written; one that was refused what it was asked for before
// its first step, and recorded nothing, is removed instead and has no id any more. False where
// something of it is not in the history.
bool recorder_end(Recorder *recorder, Run *run, Error *error) MUST_CHECK;

// Runs `work` on the recorder's thread with its store, and waits until it is done: for rows of
// checkpoints, which come after all that the run has left so far. Called again where a lock was
// held too long. Fails where nothing is recorded any more.
bool recorder_call(Recorder *recorder, bool (*work)(Store *store, void *context, Error *error),
                   void *context, Error *error) MUST_CHECK;
// The segment that is being written; the root of its checkpoints is the store's.
int recorder_segment(const Recorder *recorder);
const char *recorder_file(const Recorder *recorder); // of the history
