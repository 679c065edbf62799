// cli/claims/claims.h: sentences that people repeat about precision, tested here.
//
// claims.def has them, with the trainings that test each. `mpbench claims` runs what is missing (as
// `mpbench matrix` does, in processes of their own), computes each figure from the runs that the
// history then has, and says whether it bears the sentence out. Main thread.
#pragma once

#include "cli/cli.h"
#include "compare/compare.h"

typedef enum ClaimTrial {
#define TRIAL(id, command) CLAIM_TRIAL_##id,
#include "cli/claims/claims.def"
    CLAIM_TRIALS
} ClaimTrial;

typedef enum ClaimFigure {
    CLAIM_SPEED,
    CLAIM_ACTIVATIONS,
    CLAIM_DELTA,
    CLAIM_METRICS,
    CLAIM_VALUE
} ClaimFigure;

typedef struct Claim {
    const char *name, *sentence, *published, *source;
    ClaimTrial trial;
    ClaimFigure figure;
    const char *side, *metric, *unit;
    double low, high;
    const char *here;
} Claim;

typedef enum ClaimVerdict {
    CLAIM_CONFIRMED,    // all of the interval lies in the band
    CLAIM_CONTRADICTED, // all of the interval lies outside
    CLAIM_OPEN,         // the seeds scatter too much to tell
    CLAIM_UNTESTED      // its runs did not finish
} ClaimVerdict;

typedef struct ClaimFound {
    double value, interval; // in the claim's unit; NaN: unknown
    int seeds;
    ClaimVerdict verdict;
} ClaimFound;

extern const Claim claim_table[]; // ended by a NULL name
extern const char *const claim_commands[CLAIM_TRIALS];
const char *claim_verdict_name(ClaimVerdict verdict); // "confirmed"

// From the runs of its trial, compared.
ClaimFound claim_judge(const Claim *claim, const Comparison *comparison);
