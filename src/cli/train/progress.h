// cli/train/progress.h: what a run shows on standard error while it trains.
//
// On a terminal one line is redrawn, at most ten times a second; elsewhere a line comes every five
// seconds. Events and what the script prints go above it, whole lines, sanitised. A terminal that
// does not take output is not waited for: lines are left out, and how many is said once it does.
// A ProgressView is the caller's, from progress_begin to progress_end; the thread of the run calls.
#pragma once

#include "base/recent.h"
#include "cli/print/terminal.h"
#include "run/run.h"

typedef struct ProgressView {
    Terminal terminal;
    bool quiet;       // nothing but what the script prints
    bool has_line;    // a live line stands on the terminal
    double next_draw; // clock_seconds
    Recent recent;
    int out;    // standard error, opened so that no write waits; -1: it is written as it is
    char *rest; // of a line that was taken in part; or NULL
    size_t rest_length;
    long long left_out; // lines, not told of yet
} ProgressView;

void progress_begin(ProgressView *progress, ColorChoice color, bool quiet);
RunObserver progress_observer(ProgressView *progress);
// Of what no run tells: so many batches of `of`, which may be 0. This and the next have the forms
// that evaluations, scans (run/scan.h) and scripts ask for: `progress` is a ProgressView.
void progress_tell(void *progress, const char *what, int64_t done, int64_t of);
// A line of the script's `print`; has the form that lua/experiment.h asks for.
void progress_print(void *progress, const char *text, size_t length);
// Whether standard error would take a little now. Async-signal-safe.
bool progress_takes_output(void);
void progress_end(ProgressView *progress); // takes the live line away
