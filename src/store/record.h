// store/record.h: all that is said of one run: what the history keeps of it, what `run --json` and
// `show --json` print, what the lists and the screen show. run/ fills one while it trains.
//
// A RunRecord owns its lists; record_clear gives them back and leaves an empty record, as {0} is.
// A reading that can be unknown is NaN there (`double`) or RECORD_UNKNOWN (`int64_t`): it prints as
// null or a dash, never as 0. Any thread, one at a time.
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/json.h"

typedef enum RunStatus {
    RUN_RUNNING,
    RUN_PAUSED,
    RUN_FINISHED,
    RUN_STOPPED,
    RUN_FAILED,
    RUN_DEAD,
    RUN_STATUSES
} RunStatus;

extern const char *const run_status_names[RUN_STATUSES + 1]; // ended by NULL
const char *run_status_name(RunStatus status);
bool run_status_parse(const char *name, RunStatus *status); // false: no such word
// Whether a run that is so may make another step.
static inline bool run_status_goes_on(RunStatus status) {
    return status == RUN_RUNNING || status == RUN_PAUSED;
}

#define RECORD_UNKNOWN INT64_MIN

enum {
    RECORD_NAME_SIZE = 64,
    RECORD_TEXT_SIZE = 256,
    RECORD_DIAGNOSIS_SIZE = 1024,
    RECORD_PRECISION_SIZE = 64
};

typedef struct RecordParameter { // of the experiment, after --set
    char name[RECORD_NAME_SIZE];
    enum { RECORD_NUMBER, RECORD_INTEGER, RECORD_BOOLEAN, RECORD_TEXT } kind;
    double number;
    int64_t integer; // also of booleans
    char text[RECORD_TEXT_SIZE];
} RecordParameter;

typedef struct RecordLayer {
    char name[RECORD_NAME_SIZE];
    int parent;         // index of the layer that holds it; -1: none
    char precision[16]; // the format it computes in now: "fp16"
    char set[16];       // what it was set to: "auto", "fp32"
} RecordLayer;

typedef struct RecordMetric {
    char name[RECORD_NAME_SIZE];
    double value;
} RecordMetric;

typedef struct RecordDiagnosis {
    char kind[RECORD_NAME_SIZE]; // "scale_floor", "loss_not_finite", ...
    char layer[RECORD_NAME_SIZE];
    int64_t step;
    char text[RECORD_DIAGNOSIS_SIZE]; // cause, numbers, what to do; never cut
} RecordDiagnosis;

// An option as it was typed, in order, so that a resume or a fork can ask for the same:
// {"precision", "fp16"}, {"layer", "head=fp32"}, {"set", "lr=1e-3"}.
typedef struct RecordOption {
    char name[RECORD_NAME_SIZE];
    char value[RECORD_TEXT_SIZE];
} RecordOption;

// Whether it is one that somebody types: not the one that a matrix gives its runs.
bool record_option_is_typed(const RecordOption *option);

// The step from which on the loss had left its course, of a run that says so ("diverged"); its note
// is of the step in which that was noticed.
#define RECORD_FACT_DIVERGED "diverged.since"
// And what the loss was before it.
#define RECORD_FACT_COURSE "diverged.from"

// What surrounded the run: {"library.sqlite", "3.40.1"}, {"host", ".."}, {"threads", "2"}.
typedef struct RecordFact {
    char name[RECORD_NAME_SIZE];
    char value[RECORD_TEXT_SIZE];
} RecordFact;

// A fact that changes while the run goes on: how many processors other programs kept busy, of how
// many: "0.42 of 16".
#define RECORD_FACT_OTHERS "load.others"
// The formats that layers may be set to, where the device has more than all have: "fp32 tf32 bf16".
#define RECORD_FACT_FORMATS "formats"

// What the device chose by measuring (`ways` of kernel/kernel.h); a resume asks for the same.
#define RECORD_FACT_WAYS "ways"

// The checksum of the file of --weights, which who trains its past again must have.
#define RECORD_FACT_WEIGHTS "weights.hash"

// What is not usual of how factors of products in scaled formats are rounded: "scales=floor".
#define RECORD_FACT_RECIPE "recipe"
// What no layer of its first step heeded of --recipe, as a sentence.
#define RECORD_FACT_UNHEEDED "recipe.unheeded"

// The most bytes at once of the steps after the second, which makes what later ones find made:
// record_memory_in_steps reads it.
#define RECORD_FACT_MEMORY "memory.steps"

// What the script says of its results: which way one gets better ("better.gap" is "lower" or
// "higher"), and which of them leads.
#define RECORD_FACT_BETTER "better."
#define RECORD_FACT_LEADS  "results.leads"

typedef struct RecordMemory { // most bytes at once; RECORD_UNKNOWN where it is
    int64_t peak, weights, masters, activations, gradients, optimizer, workspace;
} RecordMemory;

typedef struct TwinReport TwinReport; // store/twin.h

typedef struct RunRecord {
    int64_t id; // 0: not in a history
    char name[RECORD_NAME_SIZE], experiment[RECORD_NAME_SIZE];
    char tag[RECORD_NAME_SIZE], note[RECORD_TEXT_SIZE];
    RunStatus status;
    bool stale;                        // of a run in progress: its worker lives but is silent
    char precision[32];                // the preset in force
    char label[RECORD_PRECISION_SIZE]; // record_precision_brief, in lists, which lack what it is
                                       // made of; "": nothing differs from the preset
    char leads[RECORD_NAME_SIZE];      // RECORD_FACT_LEADS, in lists, which lack facts; "": none
    char scale_rule[64];               // "dynamic", "1024"
    char device[32], device_name[128]; // "cpu", "Intel ..."
    int threads;
    int64_t seed;
    int64_t step, applied, skipped;          // steps ended, and of those, by what became of them
    int64_t total_steps, epoch, epochs;      // 0: unknown
    int64_t samples;                         // 0: unknown
    double loss_first, loss_last, loss_best; // NaN kept as a value; see has_loss
    bool has_loss;
    double scale_last, scale_min, scale_max;
    double steps_per_s, samples_per_s; // NaN: unknown
    double wall_s;
    double cast_share; // of the time of steps, spent casting; NaN: unknown
    double energy_j;   // NaN: unknown
    RecordMemory memory;
    int64_t created_ms;          // wall clock, since 1970
    int64_t ended_ms;            // 0: not yet
    int64_t parent, parent_step; // of a fork: from which run, at which step; 0: none, and of a run
                                 // that was removed
    int64_t matrix;              // the matrix that it belongs to; 0: none
    char script_path[512], script_hash[65];
    char error[512]; // "" : none

    TwinReport *twin; // of a run that was trained beside another, where somebody asked; or NULL
    RecordParameter *parameters;
    RecordLayer *layers;
    RecordMetric *metrics;
    RecordDiagnosis *diagnoses;
    RecordOption *options;
    RecordFact *facts;
    int parameter_count, layer_count, metric_count, diagnosis_count, option_count, fact_count;
} RunRecord;

void record_clear(RunRecord *record);

// By its name alone, where a script does not say: whether people look at a result before all
// others, one of accuracy; whether it gets better by falling, as a loss, an error, a distance.
bool record_metric_leads(const char *name);
bool record_metric_falls(const char *name);
// As the script says; else by the name.
bool record_result_leads(const RunRecord *record, const char *name);
bool record_result_falls(const RunRecord *record, const char *name);

// The lists are set whole: copies `count` elements.
bool record_set_parameters(RunRecord *record, const RecordParameter *list, int count,
                           Error *error) MUST_CHECK;
bool record_set_layers(RunRecord *record, const RecordLayer *list, int count,
                       Error *error) MUST_CHECK;
bool record_set_metrics(RunRecord *record, const RecordMetric *list, int count,
                        Error *error) MUST_CHECK;
bool record_set_diagnoses(RunRecord *record, const RecordDiagnosis *list, int count,
                          Error *error) MUST_CHECK;
bool record_set_options(RunRecord *record, const RecordOption *list, int count,
                        Error *error) MUST_CHECK;
bool record_set_facts(RunRecord *record, const RecordFact *list, int count,
                      Error *error) MUST_CHECK;

const char *record_fact(const RunRecord *record, const char *name);   // NULL: none
double record_fact_number(const RunRecord *record, const char *name); // NaN: none
// Of "0.42 of 16" the 0.42, and the 16; NaN both: it is none.
double record_fact_part(const RunRecord *record, const char *name, double *whole);
// The fact of RECORD_FACT_MEMORY; false: it is not known.
bool record_memory_in_steps(const RunRecord *record, RecordMemory *memory);
void record_memory_text(const RecordMemory *memory, char text[RECORD_TEXT_SIZE]);
// What the run computes in: its precision, and where every layer is set to another format that too:
// "fp8, all layers fp32".
void record_precision(const RunRecord *record, char text[RECORD_PRECISION_SIZE]);
// Whether it keeps other things in fp32 than usually are (--keep-fp32).
bool record_keeps_other(const RunRecord *record);
// For who has one word: where some layers are set to another format their number too, and what
// stays in fp32 where that is not what usually does: "fp32 +2 layers", "fp16 keep=none". Of a
// record of a list its label.
void record_precision_brief(const RunRecord *record, char text[RECORD_PRECISION_SIZE]);
const RecordMetric *record_metric(const RunRecord *record, const char *name); // NULL: none
// The first that leads, else the first; NULL: there is none.
const RecordMetric *record_leading_metric(const RunRecord *record);

// What `run --json` and `show --json` print, which other programs read; `with_layers` false: as
// `ls --json` has it.
void record_write_json(const RunRecord *record, bool with_layers, JsonWriter *json);
void record_write_memory(JsonWriter *json, const char *key, const RecordMemory *memory);
