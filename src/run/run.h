// run/run.h: the life of one training: what was asked for, what is in force, what came of it.
//
// A Run owns the device, the engine and the counters, knows the scaler and the optimizers in use
// (which belong to the script), and is told by the binding when a step ends. At that boundary it
// counts, applies queued changes of precision, looks for reasons to stop, and calls the observer.
// It keeps a summary of every series; whole series are the history's business (store/), which
// observes. One thread drives it; only run_request_stop may be called from elsewhere, signal
// handlers included.
#pragma once

#include <stdio.h>

#include "base/json.h"
#include "ops/engine.h"
#include "optim/scaler.h"
#include "store/record.h"

typedef struct RunLayerRule {
    const char *pattern;
    LayerPrecision precision;
} RunLayerRule;

typedef struct RunSetting { // --set KEY=VALUE, checked against the experiment's parameters
    const char *key, *value;
} RunSetting;

typedef struct RunOptions { // borrowed; must outlive the run
    const char *precision;  // NULL: what the experiment says, else "auto"
    const RunLayerRule *layers;
    int layer_count;
    const char *loss_scale; // NULL: what the precision asks for
    const char *device;     // "auto", "cpu", "ref", ...
    int threads;            // 0: all processors
    const RunSetting *settings;
    int setting_count;
    uint64_t seed;
    int64_t steps, epochs;         // 0: the experiment's own
    const char *name, *tag, *note; // may be NULL
    int64_t matrix;                // that it belongs to; 0: none
} RunOptions;

enum { RUN_NAME_SIZE = 64, RUN_MAX_SERIES = 64, RUN_MAX_METRICS = 64, RUN_MAX_DIAGNOSES = 64 };

typedef struct RunSeries { // a logged quantity, summed up
    char name[RUN_NAME_SIZE];
    uint64_t count;
    double first, last, best; // best: the lowest finite
} RunSeries;

typedef struct RunMetric {
    char name[RUN_NAME_SIZE];
    double value;
} RunMetric;

typedef struct RunDiagnosis {
    char kind[RUN_NAME_SIZE]; // "scale_floor", "loss_not_finite", ...
    char layer[RUN_NAME_SIZE];
    int64_t step;
    char text[256]; // cause, numbers, what to do
} RunDiagnosis;

typedef struct RunParameter { // of the experiment, after --set
    char name[RUN_NAME_SIZE];
    enum { RUN_NUMBER, RUN_INTEGER, RUN_BOOLEAN, RUN_TEXT } kind;
    double number;
    int64_t integer; // also of booleans
    char text[256];
} RunParameter;

enum { RUN_MAX_PARAMETERS = 64, RUN_MAX_OPTIMIZERS = 16 };

typedef struct Run Run;

typedef struct RunObserver { // NULL functions are not called
    void *context;
    void (*step)(void *context, const Run *run);                    // a step has ended
    void (*event)(void *context, const Run *run, const char *text); // one line, not sanitised
} RunObserver;

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
    int64_t step_limit;             // 0: none
    int64_t total_steps;     // what the whole run will take, for the remaining time; 0: unknown
    int64_t epoch, epochs;   // 0: does not count epochs
    uint64_t samples;        // 0: unknown
    double started, ended;   // clock_seconds
    double training_seconds; // in steps, evaluation left out
    double scale_last, scale_min, scale_max;
    int skips_in_a_row;
    char culprit[RUN_NAME_SIZE]; // the parameter that caused the last skip
    RunSeries series[RUN_MAX_SERIES];
    int series_count;
    RunMetric metrics[RUN_MAX_METRICS];
    int metric_count;
    RunParameter parameters[RUN_MAX_PARAMETERS];
    int parameter_count;
    RunDiagnosis diagnoses[RUN_MAX_DIAGNOSES];
    int diagnosis_count;
    Error error; // of a run that failed
};

// Opens the device, with an engine in fp32 until the experiment is known.
Run *run_new(const RunOptions *options, Error *error);
void run_free(Run *run);

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

bool run_add_parameter(Run *run, const RunParameter *parameter, Error *error) MUST_CHECK;
// The loops that train say when an evaluation begins and ends: its time is not the steps'. Resuming
// before the first step starts the clock afresh.
void run_pause_clock(Run *run);
void run_resume_clock(Run *run);
// A step has ended. *stop is set when it was the last one, or when somebody asked for the end.
// Fails where going on is pointless: 20 skips in a row with the scale at its floor.
bool run_step_ended(Run *run, bool *stop, Error *error) MUST_CHECK;
// A point of a series. The tensor is held and read once it cannot make anybody wait.
bool run_log(Run *run, const char *name, Tensor *value, Error *error) MUST_CHECK;
bool run_log_number(Run *run, const char *name, double value, Error *error) MUST_CHECK;
bool run_result(Run *run, const char *name, double value, Error *error) MUST_CHECK;
void run_event(Run *run, const char *text);
// Notes a diagnosis once a kind and layer.
void run_diagnose(Run *run, const char *kind, const char *layer, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
// Reads what is still pending and settles the status. `error` is what ended it, or NULL.
void run_finish(Run *run, const Error *error);

// ---- read by commands ---------------------------------------------------------------------------

const RunSeries *run_series(const Run *run, const char *name); // NULL: never logged
// Over the time spent in steps; the first step, which makes what the others find made, is left out.
// 0: too early to say.
double run_steps_per_second(const Run *run);
// The object of cli.md. `id` 0: null.
void run_write_json(const Run *run, int64_t id, JsonWriter *json);

// Async-signal-safe; any thread. The step in progress is finished.
void run_request_stop(int signal_number);
int run_stop_requested(void); // the signal, or 0; run_request_stop(0) takes a request back
