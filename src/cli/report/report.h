// cli/report/report.h: what the files of `mpbench report` share: one page about one run or several,
// that needs nothing beside it. report.c has the order of its sections; each writes to `out`, and
// is left out where there is nothing to say.
#pragma once

#include <stdio.h>

#include "compare/compare.h"
#include "store/store.h"

typedef struct Report {
    FILE *out;
    Store *store;
    const Comparison *comparison;
    int dashes[COMPARE_MOST_RUNS]; // of runs in one colour the how-manieth each is
    char labels[COMPARE_MOST_RUNS][COMPARE_LABEL_SIZE];
} Report;

// report_outcome.c: of all runs together.
void report_outcome(const Report *report); // the sentences
void report_results(const Report *report); // the table, and what differs
void report_memory(const Report *report);

// report_curves.c
bool report_curves(const Report *report, Error *error) MUST_CHECK;

// report_run.c: of one of them.
bool report_run(const Report *report, int run, Error *error) MUST_CHECK;

// A reading as text, "" where it is unknown.
const char *report_number(char *text, double value, int digits);
