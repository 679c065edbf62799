// cli/train/eval.h: what `mpbench eval` has found, what it concludes, and how it says it.
//
// The command fills one Evaluated a format; eval_rounds.c times them in turn, eval_gain.c draws
// conclusions, and eval_print and eval_write_json tell them. Main thread.
#pragma once

#include "base/rounds.h"
#include "cli/cli.h"
#include "run/evaluation.h"

enum { EVAL_MOST_FORMATS = 32, EVAL_NAME_SIZE = 32, EVAL_VERDICT_SIZE = 640 };

typedef struct Evaluated { // in one format
    char precision[EVAL_NAME_SIZE];
    bool is_own; // what the run was trained in
    Evaluation found;
    const EvaluationCaller *caller; // of its model, while that waits to be timed
    int sitting;                    // those of one were timed in turn
} Evaluated;

typedef struct Evaluations {
    const RunRecord *run;
    int64_t step;        // of the checkpoint; RECORD_UNKNOWN: weights of a file
    const char *weights; // that file; NULL: a checkpoint
    char device[32], device_name[128];
    int threads;
    double others; // processors that other programs kept busy while it was timed; NaN: unknown
    Evaluated formats[EVAL_MOST_FORMATS];
    int count;
    bool sets_layers; // anew, by --layer, in each of them
} Evaluations;

// Times formats whose models wait: in rounds that go through all in turn, forwards and backwards,
// so that what else the machine is busy with hits them alike. `tell` learns how many calls there
// were. A request to stop ends it with the rounds that are whole.
bool eval_time(Evaluated *const *formats, int count,
               void (*tell)(void *context, const char *what, int64_t done, int64_t of),
               void *context, Error *error) MUST_CHECK;

// What fp32 came to; NULL where it is not among them.
const Evaluated *eval_baseline(const Evaluations *all);
// What is looked at before all else: what the script says, else one of accuracy, else the loss,
// else the first; NULL: none.
const RecordMetric *eval_leading(const Evaluation *found);
double eval_seconds(const EvaluationTime *time); // the median of rounds; NaN: not measured
double eval_throughput(const Evaluation *found); // samples a second; NaN likewise

// What a format is over fp32; NaN where one of both is not known.
typedef struct EvalGain {
    RoundsGain speed; // of a batch
    double lighter;   // memory for weights (the column `in memory`), a share of fp32's
    double lost;      // of the leading metric, in its own unit; negative: gained
    bool has_metric;  // one of accuracy, in points; else what is lost is a share of it
    bool is_good;     // it lost no more than one would give for it
} EvalGain;
EvalGain eval_gain(const Evaluations *all, const Evaluated *format);
// The one that is worth it; NULL: none is, as far as can be told.
const Evaluated *eval_best(const Evaluations *all);
// In a sentence.
void eval_verdict(const Evaluations *all, char *text, size_t size);

bool eval_print(const Cli *cli, const Evaluations *all, Error *error) MUST_CHECK;
void eval_write_json(const Evaluations *all);
