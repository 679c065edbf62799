// ui/compare/compare.h: what the files of the compare screen share, and nobody else sees: runs on
// shared axes, what came of them, and only what differs.
//
// compare.c reads the comparison from the history and takes the keys; the panels draw that snapshot
// without asking anybody. Main thread.
#pragma once

#include "base/error.h"
#include "compare/compare.h"
#include "ui/cells/plot.h"
#include "ui/screen.h"

enum {
    COMPARE_MOST_CURVES = UI_MOST_COMPARED,
    COMPARE_SMOOTHINGS = 4,
    COMPARE_FITTED_SIZE = 2 * COMPARE_LABEL_SIZE // a label that has passed the sanitiser
};

typedef struct CompareCurves { // of all runs that are shown, or of their groups, ready to be drawn
    PlotPoint *points[COMPARE_MOST_CURVES];
    PlotPoint *extremes[COMPARE_MOST_CURVES]; // of the runs behind a mean; NULL: it is none
    PlotPoint *logged[COMPARE_MOST_CURVES];   // not smoothed, as many: of these are values told
    PlotLine lines[COMPARE_MOST_CURVES];
    // A label may be cut, but for its tail: how many seeds. Seeds stand where there is room.
    char labels[COMPARE_MOST_CURVES][COMPARE_FITTED_SIZE];
    char tails[COMPARE_MOST_CURVES][32], seeds[COMPARE_MOST_CURVES][32];
    char letters[COMPARE_MOST_CURVES];
    int groups[COMPARE_MOST_CURVES];  // that the label is of; -1: it is of one run
    double last[COMPARE_MOST_CURVES]; // of a run, the very last
    bool has_last[COMPARE_MOST_CURVES];
    int count;
    bool has_bands;
    bool has_pairs; // bands of differences are of runs of one seed, pair by pair
    double last_x;
} CompareCurves;

typedef struct CompareTarget {
    char name[RECORD_NAME_SIZE]; // a series; "": there is no target
    double value;
    CompareToward toward;
} CompareTarget;

typedef struct CompareOverlay CompareOverlay; // overlay.h

typedef struct CompareView {
    Comparison *comparison; // NULL: none yet
    char problem[ERROR_TEXT_SIZE];
    CompareCurves curves;
    int64_t taken[COMPARE_MOST_CURVES]; // the runs that all below is chosen of
    int taken_count;
    int64_t baseline;                    // a run; 0: the first in fp32, else the first
    int64_t hidden[COMPARE_MOST_CURVES]; // runs
    int hidden_count;
    int cursor, first_group; // a group, and the first in sight
    CompareAxis axis;
    char series[RECORD_NAME_SIZE]; // that was asked for; "": the usual one
    CompareTarget target;
    CompareOverlay *overlay;
    int smoothing;
    bool log_axis, has_cross, wants_reading;
    bool each_seed;        // a curve each, not the mean of their group
    bool shows_difference; // from the baseline
    double cross;          // on the axis, from 0 to 1 of the window
    double from, span;     // the window, in shares of the axis
    int scroll;            // of the sentences below the outcomes
    int first_difference;
    int memory_top;       // the first line of that page
    PanelId focus_before; // a page was opened
    double since_read;
    int removed; // runs of those that were taken, which the history has no more
} CompareView;

// compare.c: whether one of the runs goes on.
bool compare_is_live(const CompareView *view);

// groups.c: what of the runs is looked at. All but the first two want a comparison.
void compare_take_runs(CompareView *view, const int64_t *runs, int count);
void compare_order_runs(const CompareView *view, int64_t runs[COMPARE_MOST_CURVES]);
bool compare_is_hidden(const CompareView *view, int run);
bool compare_is_group_hidden(const CompareView *view, int group);
// Of two experiments, ratios and differences tell nothing.
bool compare_is_of_baseline(const Comparison *comparison, const CompareSide *side);
void compare_turn_hidden(CompareView *view);   // of the group under the cursor
void compare_pick_baseline(CompareView *view); // that group, from the next reading on
void compare_move_cursor(CompareView *view, int by);

// make.c: from the comparison, as the view says; anew when what it says changes.
void compare_make_curves(CompareView *view);
void compare_clear_curves(CompareCurves *curves);
double compare_smoothing(const CompareView *view);
void compare_window(const CompareView *view, double *left, double *right); // of the axis
// That of its format: groups of one format are told apart by their letters.
Ink compare_ink(const Comparison *comparison, int run);
// At the end of its curves, in the legend and beside what came of it.
char compare_letter(int group);

// labels.c: of each group, in so many columns.
typedef struct CompareLabels {
    char text[COMPARE_MOST_CURVES][COMPARE_FITTED_SIZE];
} CompareLabels;

void compare_fit_labels(const Comparison *comparison, int room, CompareLabels *labels);

// curves.c
void compare_draw_curves(const CompareView *view, Area area, bool focused);
// At a column of the panel, which is so wide, border included.
void compare_put_cross(CompareView *view, int width, int column);

// outcomes.c: these keep what is scrolled within what there is.
void compare_draw_outcomes(CompareView *view, Area area, bool focused);
void compare_draw_differences(CompareView *view, Area area, bool focused);
void compare_click_group(CompareView *view, int row); // of the outcomes' panel

// target.c
void compare_ask_target(Ui *ui);

// pages.c. A request: true, it was meant for a page. A label: true, a page is open and says it.
bool compare_draw_page(CompareView *view, PanelId panel, Area area, bool focused);
bool compare_page_request(Ui *ui, CompareView *view, Request request);
bool compare_page_label(const Ui *ui, const CompareView *view, Request request, const char **label);

// memory.c
void compare_draw_memory(CompareView *view, Area area, bool focused);
bool compare_memory_request(CompareView *view, Request request);

// overlay.c, overlay_draw.c
bool compare_overlay_open(CompareView *view, Error *error);
void compare_overlay_close(CompareView *view);
void compare_overlay_renew(CompareView *view, bool from_cursor);
bool compare_look_overlay(Ui *ui, CompareView *view); // true: what it shows was read
void compare_draw_overlay(CompareView *view, Area area, bool focused);
bool compare_overlay_request(CompareView *view, Request request);
const char *compare_overlay_label(const CompareView *view, Request request); // NULL: not there
