// ui/scan/scan.h: what the files of the scan screen share, and nobody else sees: layers by formats,
// as one scan of the history has them, and what is done with what it found.
//
// scan.c reads the scan, again while a process measures it, and takes the keys; the panels draw
// that record without asking anybody; apply.c gives its policy to a run or to the form, and
// script.c trains by it what the form does not know. Main thread.
#pragma once

#include "compare/scan.h"
#include "ui/screen.h"

typedef struct ScanView {
    ScanEntry *entries; // of the history, the newest first
    int entry_count;
    ScanRecord *scan; // id 0: none
    char problem[ERROR_TEXT_SIZE];
    int order[SCAN_MOST_UNITS]; // units as they are listed
    bool in_model_order;        // else the one that suffers most first
    int unit, format;           // of the cursor
    int top, height;            // rows scrolled away; shown, as drawn
    char sought[64];            // in names, last
    int unit_before;            // the cursor's, when another was looked for
    bool wants_cell;            // what was asked about is the cell, not the policy
    double since_read;          // seconds
} ScanView;

ScanView *scan_view_of(const Ui *ui);
int scan_row_of(const ScanView *view); // of the cursor; 0 where there is none
// The scan as it was named, fit to be shown.
void scan_say_subject(const ScanRecord *scan, char *out, size_t size);

typedef struct ScanGrade { // of a cell, in a letter and a colour
    char letter;
    Ink ink;
} ScanGrade;

// words.c
ScanGrade scan_grade(const ScanRecord *scan, const ScanCell *cell);
extern const char scan_grades_told[]; // what the letters say
void scan_draw_cell(const ScanView *view, Area area, bool focused);
void scan_draw_verdict(const ScanView *view, Area area, bool focused);
// table.c
void scan_draw_table(ScanView *view, Area area, bool focused);

// apply.c: asks, and gives the policy, or the cell under the cursor, to the run of it that goes on;
// where none does, to the form that starts one.
void scan_apply(Ui *ui, bool cell);
void scan_ask_start(Ui *ui); // a new scan
// The format that is given to a unit: its own of the policy, or of the cell that was asked about
// alone; "": none.
const char *scan_format_given(const ScanView *view, int unit);
// script.c: the same of a script that is none of the experiments here, as a run at once.
void scan_ask_script(Ui *ui);
