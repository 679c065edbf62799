// lua/experiment.h: from the file of an experiment to a trained model: the door to lua/ for the
// command line.
//
// It makes a machine, opens the module `mp` in it, runs the script and what it returns, and ends
// the run. Called from the thread that drives the run's device.
#pragma once

#include "run/evaluation.h"
#include "run/run.h"
#include "run/run_checkpoint.h"
#include "run/scan.h"
#include "store/parameter.h"

typedef struct LuaKeeping { // of checkpoints
    const char *folder;     // NULL: none are kept
    int64_t every;          // steps between two; 0: only when asked, when stopped and at the end
    // One is safe on the disk. On the run's thread; may be NULL.
    void (*kept)(void *context, const Run *run, const CheckpointFile *file);
    // One could not be kept, as an event of the run tells too; likewise.
    void (*lost)(void *context, const Error *error);
    void *context;
} LuaKeeping;

typedef struct LuaRunOptions {
    bool trust;          // the whole library: io, os, debug, package
    size_t memory_limit; // of the script, in bytes; 0: the machine's own
    bool traceback;      // append Lua's traceback to an error of the script, through `print`
    // A line of `print`, as the script wrote it: not sanitised. NULL: dropped.
    void (*print)(void *context, const char *text, size_t length);
    // A library call in the script does not return. The run is finished, as failed; this is called
    // on another thread and must end the process. NULL: a line on standard error, and the end.
    void (*stuck)(void *context, const Error *error);
    // The run was asked to stop, and an operation goes on. It is finished, as stopped; this is
    // called on another thread and must end the process. NULL: such operations are waited for.
    void (*left)(void *context);
    void *context; // of all
    LuaKeeping keeping;
    Checkpoint *resume; // borrowed: goes on from there, by the same script; NULL: from the start
    SafeFile *weights;  // borrowed: what the models that the run gets to know begin with; or NULL
    // Borrowed: the script's model is evaluated with those weights, and not trained; or NULL. The
    // run's options say so too.
    Evaluation *evaluation;
    Scan *scan; // borrowed: its layers are tried in formats, and no run is recorded; or NULL
} LuaRunOptions;

// Trains, or evaluates. However it ends, the run is finished (run_finish) before it returns. True:
// the run did what it was asked for, --steps and a request to stop included.
bool lua_run_experiment(Run *run, const char *path, const LuaRunOptions *options,
                        Error *error) MUST_CHECK;

enum { LUA_INFO_PARAMETERS = 64 };

typedef struct LuaExperimentInfo {
    char name[RUN_NAME_SIZE];
    char about[256];
    struct {
        RecordParameter usual;
        char value[PARAMETER_CHOICE_SIZE];    // as Lua writes it
        char choices[PARAMETER_CHOICES_SIZE]; // with blanks between them; "": any text
    } parameters[LUA_INFO_PARAMETERS];        // with their defaults
    int parameter_count;
} LuaExperimentInfo;

// Reads what an experiment says of itself, without training. A script may do what it likes on its
// top level, and take for ever: cli/describe.h calls this where that does no harm.
bool lua_describe_experiment(const char *path, LuaExperimentInfo *info, Error *error) MUST_CHECK;

const char *lua_library(void); // the version of Lua
