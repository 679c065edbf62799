// cli/history/show.h: what the files of `mpbench show` share.
#pragma once

#include "base/text_stream.h"
#include "cli/cli.h"
#include "cli/print/terminal.h"
#include "store/store.h"

typedef struct ShowPage {
    Terminal terminal;
    bool has_utf8;
    double grams_per_kwh, watts;      // NaN: unknown; 0: not stated
    const char *strong, *dim, *plain; // escapes, or ""
    FILE *line;                       // the one that is put together, in memory
    TextStream *text;                 // behind it
} ShowPage;

// A line is put together in `line`: a row begins with its label, and goes out in lines that fit;
// those after the first begin at `hang`.
void show_begin_row(const ShowPage *page, const char *label);
void show_end_row(const ShowPage *page);
void show_end_line(const ShowPage *page, int hang);
// A whole row; none where the text is empty.
void show_row(const ShowPage *page, const char *label, const char *text);
void show_title(const ShowPage *page, const char *title);
// What the run is; and what came of it, and what it took.
void show_head(const ShowPage *page, const RunRecord *run);
void show_results(const ShowPage *page, const RunRecord *run);
// What formats would do to the gradients of layers, in place of the page.
bool show_what_if(const Cli *cli, const ShowPage *page, Store *store, const RunRecord *run,
                  Error *error) MUST_CHECK;
// The page of the flight recorder, in place of the page.
bool show_first_nan(const Cli *cli, const ShowPage *page, Store *store, const RunRecord *run,
                    Error *error) MUST_CHECK;
// The text of its script, in place of the page.
bool show_script(const Cli *cli, Store *store, const RunRecord *run, Error *error) MUST_CHECK;
// The curves of what was logged.
bool show_curves(const ShowPage *page, Store *store, const RunRecord *run, Error *error) MUST_CHECK;
// The table of layers, as they were at the end.
bool show_layers(const ShowPage *page, Store *store, const RunRecord *run, Error *error) MUST_CHECK;
