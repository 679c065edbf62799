// cli/claims/claims.h: sentences that people repeat about precision, tested here.
//
// claims.def has them, with the trainings that test each. `mpbench claims` runs what is missing (as
// `mpbench matrix` does, in processes of their own), computes each figure from the runs that the
// history then has, and says whether it bears the sentence out. Main thread.
#pragma once

#include "cli/cli.h"
#include "cli/print/terminal.h"
#include "compare/compare.h"

typedef enum ClaimTrial {
#define TRIAL(id, command, base) CLAIM_TRIAL_##id,
#include "cli/claims/claims.def"
    CLAIM_TRIALS
} ClaimTrial;

typedef struct ClaimTraining {
    const char *name;    // "MASTERS_FP16"
    const char *command; // what `mpbench matrix` is given
    const char *base;    // the side that others are held against; "": none
} ClaimTraining;

typedef enum ClaimFigure {
    CLAIM_SPEED,
    CLAIM_ACTIVATIONS,
    CLAIM_MEMORY,
    CLAIM_DELTA,
    CLAIM_METRICS,
    CLAIM_VALUE
} ClaimFigure;

typedef enum ClaimScope { CLAIM_ANYWHERE, CLAIM_MACHINE } ClaimScope;

typedef struct Claim {
    const char *name, *sentence, *published, *source;
    ClaimTrial trial;
    ClaimScope scope;
    ClaimFigure figure;
    const char *side, *metric, *unit;
    double low, high;
    const char *here;
} Claim;

typedef enum ClaimVerdict {
    CLAIM_CONFIRMED,    // all of the interval lies in the band
    CLAIM_NOT_HERE,     // all of it lies outside, on this machine
    CLAIM_CONTRADICTED, // all of it lies outside, as it would on any
    CLAIM_OPEN,         // the seeds scatter too much to tell, or the machine was busy
    CLAIM_UNTESTED      // its runs did not finish
} ClaimVerdict;

typedef struct ClaimFound {
    double value, interval; // in the claim's unit; NaN: unknown
    int seeds;
    double busy; // processors that other programs had, where that spoils the figure; 0: they do not
    ClaimVerdict verdict;
} ClaimFound;

extern const Claim claim_table[]; // ended by a NULL name
extern const ClaimTraining claim_trainings[CLAIM_TRIALS];
const char *claim_verdict_name(ClaimVerdict verdict); // "confirmed"

// judge.c: from the runs of its trial, compared; NULL: there are none.
ClaimFound claim_judge(const Claim *claim, const Comparison *comparison);

// train.c: what of a trial is missing is trained. True also where some of it was not to be had:
// `lacks` then says so. cli->status is set where a signal ended it.
enum { CLAIM_TAG_SIZE = 32 };
void claim_tag(ClaimTrial trial, char tag[CLAIM_TAG_SIZE]); // of its runs: "claims-masters-fp16"
typedef struct ClaimLacks {
    int failed; // trials of which some run did not finish
    int status; // of the last trial that was refused as a whole; 0: none
    const char *refused;
} ClaimLacks;
bool claim_train(Cli *cli, ClaimTrial trial, ClaimLacks *lacks, Error *error) MUST_CHECK;

// print.c: one claim, as text, as a row of a Markdown table, as JSON.
void claim_print(const Terminal *terminal, const Claim *claim, const ClaimFound *found);
void claim_print_markdown_head(void);
void claim_print_markdown(const Claim *claim, const ClaimFound *found);
void claim_write(JsonWriter *json, const Claim *claim, const ClaimFound *found);
