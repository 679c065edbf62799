// cli/train/eval.h: what `mpbench eval` has found, and how it says it.
//
// The command fills one Evaluated a format; eval_print and eval_write_json read them. Main thread.
#pragma once

#include "cli/cli.h"
#include "run/evaluation.h"

enum { EVAL_MOST_FORMATS = 32, EVAL_NAME_SIZE = 32 };

typedef struct Evaluated { // in one format
    char precision[EVAL_NAME_SIZE];
    bool is_own; // what the run was trained in
    Evaluation found;
} Evaluated;

typedef struct Evaluations {
    const RunRecord *run;
    int64_t step;        // of the checkpoint; RECORD_UNKNOWN: weights of a file
    const char *weights; // that file; NULL: a checkpoint
    char device[32], device_name[128];
    int threads;
    Evaluated formats[EVAL_MOST_FORMATS];
    int count;
} Evaluations;

// What fp32 came to; NULL where it is not among them.
const Evaluated *eval_baseline(const Evaluations *all);
bool eval_print(const Cli *cli, const Evaluations *all, Error *error) MUST_CHECK;
void eval_write_json(const Evaluations *all);

// What a format is over fp32; NaN where one of both is not known.
typedef struct EvalGain {
    double faster;   // a batch, so many times as fast
    double lighter;  // weights in memory, a share of fp32's
    double lost;     // of the leading metric, in its own unit; negative: gained
    bool has_metric; // one of accuracy: more is better; else the loss was looked at
    bool is_good;    // it lost no more than one would give for it
} EvalGain;
EvalGain eval_gain(const Evaluations *all, const Evaluated *format);
// The one that is worth it; NULL: none is.
const Evaluated *eval_best(const Evaluations *all);
// In a sentence.
void eval_verdict(const Evaluations *all, char *text, size_t size);
