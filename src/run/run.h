// run/run.h: the life of one training: what was asked for, what is in force, what came of it.
//
// A Run owns the device, the engine and the counters, knows the scaler and the optimizers in use
// (which belong to the script), and is told by the binding when a step ends. At that boundary it
// counts, applies queued changes of precision, looks for reasons to stop, and calls the observer.
// It keeps a summary of every series; whole series are the history's business (store/), which
// observes. One thread drives it; only run_request_stop and run_note_break may be called from
// elsewhere, signal handlers included.
#pragma once

#include <stdatomic.h>
#include <stdio.h>

#include "ops/engine.h"
#include "optim/optimizer.h"
#include "run/diagnosis.h"
#include "store/commands.h"
#include "store/events.h"
#include "store/record.h"

typedef struct RunLayerRule {
    const char *pattern;
    LayerPrecision precision;
    const char *file; // of --layers, that has it; NULL: it was typed, or the script has it
} RunLayerRule;

typedef struct RunSetting { // --set KEY=VALUE, checked against the experiment's parameters
    const char *key, *value;
} RunSetting;

typedef struct TwinLink TwinLink; // run/twin.h

typedef struct RunAncestor { // of a fork: the run that its steps up to this one are of
    int64_t run, until;
} RunAncestor;

enum { RUN_MAX_ANCESTORS = 16, RUN_CHANGE_SIZE = 96 };

// What is known of where a fork comes from, before it begins. Of a fork that is resumed the
// ancestors alone.
typedef struct RunPast {
    RunAncestor ancestors[RUN_MAX_ANCESTORS]; // the parent first, then its parent
    int count;
    char change[RUN_CHANGE_SIZE]; // what the fork has otherwise: "--set lr=0.2"; "": nothing
    int64_t parent_step;          // that the parent had come to
    int64_t parent_diverged;      // the step at which it had said so, or that its loss was not
                                  // finite; 0: it had not
} RunPast;

typedef struct RunOptions { // borrowed; must outlive the run
    const char *precision;  // NULL: what the experiment says, else "auto"
    const RunLayerRule *layers;
    int layer_count;
    const RunLayerRule *fork_layers; // of the fork that begins where this one ends: checked, too,
    int fork_layer_count;            // before anything is trained
    const char *loss_scale;          // NULL: what the precision asks for
    const char *recipe;              // of scaled formats; NULL: the usual one
    const char *keep_fp32;           // precision/keep.h; NULL: as the precision has it
    const char *device;              // "auto", "cpu", "ref", ...
    int threads;                     // 0: all processors
    const char *ways; // by which the device computes (kernel/kernel.h); NULL: its own choice
    bool evaluates;   // a trained model is looked at, in formats of evaluation alone too
    bool no_capture;  // steps are not captured, on a device that would
    bool profiles;    // every step is timed, part by part: for run_profile
    const RunSetting *settings;
    int setting_count;
    uint64_t seed;
    int64_t steps, epochs;         // 0: the experiment's own
    const char *name, *tag, *note; // may be NULL
    int64_t matrix;                // that it belongs to; 0: none
    const RecordOption *typed;     // as they were typed, in order
    int typed_count;
    int64_t resumes; // the run of the history that goes on, after step `from`; 0: a new one
    int64_t parent;  // the run that this one is a fork of, at step `from`; 0: none
    int64_t from;
    const RunPast *past;      // NULL: no fork, or nothing is known of it
    const RunCommand *orders; // what was set the first time that it came by here: obeyed again,
    int order_count;          // each after its step
    TwinLink *twin;           // to another training in lock step; NULL: none
    const RecordFact *facts;  // of the run that goes on: those of its twin stay, and what steps
    int fact_count;           // held at most
    const RecordMemory *held; // of the run that goes on: the most at once; NULL: nothing is known
} RunOptions;

enum {
    RUN_NAME_SIZE = RECORD_NAME_SIZE,
    RUN_MAX_SERIES = 64,
    RUN_MAX_METRICS = 64,
    RUN_MAX_DIAGNOSES = 64,
    RUN_MAX_FACTS = 80, // the script's own of its results among them: RECORD_MOST_BETTER and one
};

typedef struct RunSeries { // a logged quantity, summed up
    char name[RUN_NAME_SIZE];
    uint64_t count;
    double first, last, best; // best: the lowest finite
} RunSeries;

enum { RUN_MAX_PARAMETERS = 64, RUN_MAX_OPTIMIZERS = 16 };

typedef struct Run Run;
typedef struct Recorder Recorder; // run/recorder.h

typedef struct RunObserver { // NULL functions are not called
    void *context;
    void (*step)(void *context, const Run *run);                    // a step has ended
    void (*event)(void *context, const Run *run, const char *text); // one line, not sanitised
    void (*replay)(void *context, const Run *run, int64_t target);  // of a resume: a step, untold
} RunObserver;

// Keeps a checkpoint at a step boundary, on the run's thread; `answer` gets a line about it. NULL
// function: this run keeps none.
typedef struct RunCheckpointer {
    void *context;
    bool (*keep)(void *context, Run *run, const char *why, char *answer, size_t size, Error *error);
} RunCheckpointer;

typedef struct RunScript {
    char path[512], hash[65];
    const char *text; // borrowed, until run_configure has returned
    size_t length;
} RunScript;

struct Run {
    const RunOptions *options;
    RunObserver observer;
    RunStatus status;
    char name[RUN_NAME_SIZE], experiment[RUN_NAME_SIZE];
    char precision[32];      // the preset in force
    char precision_why[160]; // where `auto` chose it
    Device *device;
    Engine *engine;
    ScaleRule scale_rule; // what run:scaler() makes
    Scaler *scaler;       // borrowed: what marks the steps, the first of run:scaler(), else the
                          // first one updated; NULL: none yet
    Optimizer *optimizers[RUN_MAX_OPTIMIZERS]; // borrowed, in the order they were made
    int optimizer_count;
    int64_t step, applied, skipped; // steps ended, and of those, by what became of them
    int64_t forked_at;              // what came up to here its parent did; 0: not a fork
    int64_t step_limit;             // 0: none
    int64_t total_steps;     // what the whole run will take, for the remaining time; 0: unknown
    int64_t epoch, epochs;   // 0: does not count epochs
    uint64_t samples;        // of loaders, that were trained on; run_samples has others too
    uint64_t samples_a_step; // of a loop whose data no loader counts; 0: unknown
    double started, ended;   // stops_clock; `started` goes on by what does not count (run_wall)
    double training_seconds; // in steps, evaluation left out
    double scale_last, scale_min, scale_max;
    int skips_in_a_row;
    char culprit[RUN_NAME_SIZE]; // the parameter that caused the last skip
    RunSeries series[RUN_MAX_SERIES];
    int series_count;
    RecordMetric metrics[RUN_MAX_METRICS];
    int metric_count;
    RecordParameter parameters[RUN_MAX_PARAMETERS];
    int parameter_count;
    RecordDiagnosis diagnoses[RUN_MAX_DIAGNOSES];
    int diagnosis_count;
    RecordFact facts[RUN_MAX_FACTS];
    int fact_count;
    RunScript script;
    Error error;           // of a run that failed
    Recorder *recorder;    // borrowed; NULL: no history is kept
    int64_t id;            // in the history; 0: none yet
    bool can_go_on;        // a checkpoint was kept from which it can be resumed
    char stop_reason[256]; // "": nobody asked for the end but signals and limits
    atomic_int stop_asked; // by an order; any thread
    const char *waits_for; // "paused", "disk full", "history locked"; NULL: it trains
    bool is_silent;        // steps are gone through again: nothing is told or recorded
    RunCheckpointer checkpointer;
};

// Opens the device, with an engine in fp32 until the experiment is known.
Run *run_new(const RunOptions *options, Error *error);
void run_free(Run *run);

// The script that the experiment was read from; before run_configure.
void run_set_script(Run *run, const char *path, const char *hash, const char *text, size_t length);
// The experiment is known: settles its name, the precision (the options' before the experiment's
// default), the rules for layers (the experiment's before the options', so that the last match is
// the options'), the scale rule. Before any layer is registered.
bool run_configure(Run *run, const char *experiment, const char *default_precision,
                   const RunLayerRule *rules, int rule_count, Error *error) MUST_CHECK;

// ---- told by the binding ------------------------------------------------------------------------

// Optimizers in use, from the first step to before they are freed; of more than there is room for
// the later ones are not watched.
void run_add_optimizer(Run *run, Optimizer *optimizer);
void run_remove_optimizer(Run *run, const Optimizer *optimizer);

// All layers are known: fails where --layer names none of them. Before the first step, which calls
// it, too; later calls do nothing.
bool run_check_layers(Run *run, Error *error) MUST_CHECK;
// The same of one --layer, for who has no run.
bool run_check_rule(const Policy *policy, const RunLayerRule *rule, Error *error) MUST_CHECK;
bool run_add_parameter(Run *run, const RecordParameter *parameter, Error *error) MUST_CHECK;
// The loops that train say when an evaluation begins and ends: its time is not the steps'. Resuming
// before the first step starts the clock afresh.
bool run_pause_clock(Run *run); // whether it ran
void run_resume_clock(Run *run);
double run_clock(const Run *run); // seconds spent in steps up to now
// Seconds from the start to the end, or to now. What it was paused for, waited long for the history
// or stood still by Ctrl-Z is left out, as is what lay between a stop and its resume.
double run_wall(const Run *run);
// What went since run_clock said `since`, after the last step ended, turned out to be no step's.
void run_leave_out(Run *run, double since);
// A step has ended. *stop is set when it was the last one, or when somebody asked for the end.
// Fails where going on is pointless: 20 skips in a row with the scale at its floor.
bool run_step_ended(Run *run, bool *stop, Error *error) MUST_CHECK;
// Orders to pause and to go on, heeded where a step takes long: only if run_wants_attention. May
// wait long. The others are for the end of the step.
bool run_wants_attention(const Run *run);
void run_attend_within(Run *run);
// A point of a series. The tensor is held and read once it cannot make anybody wait.
bool run_log(Run *run, const char *name, Tensor *value, Error *error) MUST_CHECK;
bool run_log_number(Run *run, const char *name, double value, Error *error) MUST_CHECK;
bool run_result(Run *run, const char *name, double value, Error *error) MUST_CHECK;
// Keeps a picture, [height, width, channels], or several as a grid, with 1 or 3 channels of values
// between 0 and 1: as a PNG file in the run's folder, named by the step. Waits for the device. A
// run without a history keeps none.
bool run_picture(Run *run, const char *name, const Tensor *tensor, int64_t columns,
                 Error *error) MUST_CHECK;
// What surrounds the run: {"library.lua", "5.4.4"}. Of one name the last holds.
void run_add_fact(Run *run, const char *name, const char *value);
// The weights that it begins with are those of a checkpoint whose loss scale was this.
void run_begin_with_weights(Run *run, double scale);
// Looks at data in memory, so many numbers of so many samples, for what is not finite.
void run_check_data(Run *run, const char *what, const float *values, int64_t count,
                    int64_t samples);
// A message of the script.
void run_event(Run *run, const char *text);
// Any event, in words; `value` as Event (store/events.h) has it, else NaN.
void run_tell(Run *run, EventKind kind, const char *layer, double value, const char *text);
// Notes a diagnosis once a kind and layer.
void run_diagnose(Run *run, DiagnosisKind kind, const char *layer, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
// Reads what is still pending and settles the status. `error` is what ended it, or NULL.
void run_finish(Run *run, const Error *error);

// What was set after this step the first time (RunOptions.orders); at its end, and where a run that
// goes on begins.
void run_obey_again(Run *run);

// ---- read by commands ---------------------------------------------------------------------------

const RunSeries *run_series(const Run *run, const char *name); // NULL: never logged
bool run_is_own_series(const char *name);                      // that the run records by itself
// Over the time spent in steps, of a fork in its own; the first step, which makes what the others
// find made, is left out. 0: too early to say.
double run_steps_per_second(const Run *run);
// What it was trained on: as many as its loaders gave out for that, else as many as its script says
// that a step takes. 0: unknown.
uint64_t run_samples(const Run *run);
// Where the time of the steps went that were profiled, in all of them together but for those in
// which something else had the processor: rare ones of over three times the median of the steps
// before; `parts` belongs to the run. False: there was none, or nobody asked (RunOptions.profiles).
typedef struct RunProfile {
    int64_t steps;
    double seconds;     // that they took
    int64_t late_steps; // left out
    double late_seconds;
    const ProfileParts *parts;
} RunProfile;
bool run_profile(const Run *run, RunProfile *profile);
RecordMemory run_memory(const Run *run); // the most at once, so far
// A run that goes on has held what it held before: options->held. Once peaks are its own.
void run_raise_memory(Run *run);
// All that is to be said of it now. Clears `record` first; its lists are the caller's to clear.
bool run_describe(const Run *run, RunRecord *record, Error *error) MUST_CHECK;

// Ends the run at the next boundary, with status stopped; `reason` is for people, who are not told
// of an empty one. The run's thread.
void run_stop(Run *run, const char *reason);
bool run_is_to_stop(const Run *run); // by an order or a signal; any thread
// Async-signal-safe; any thread. The step in progress is finished.
void run_request_stop(int signal_number);
int run_stop_requested(void); // the signal, or 0; run_request_stop(0) takes a request back
// The process was stopped from outside (Ctrl-Z) and goes on: nobody knows for how long, so the step
// in progress counts and has no time. Async-signal-safe; any thread.
void run_note_break(void);
