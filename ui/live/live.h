// ui/live/live.h: what the files of the live screen share, and nobody else sees.
//
// A run is shown as it is now or as it was at a step: keys change the view, data.c reads what
// the view needs from the history (bounded by the width of the panels), and the panels draw that
// snapshot without asking anybody. The cursor is one for all panels. Main thread.
#pragma once

#include "base/recent.h"
#include "compare/factor_shares.h"
#include "compare/pace.h"
#include "compare/what_if.h"
#include "number/format.h"
#include "store/events.h"
#include "store/layers.h"
#include "store/record.h"
#include "store/series.h"
#include "ui/cells/plot.h"
#include "ui/cells/words.h"
#include "ui/live/map.h"
#include "ui/live/pace.h"
#include "ui/live/profile.h"
#include "ui/screen.h"

enum {
    LIVE_MOST_ORDERS = 512, // the policy of a scan may set 256 layers at once
    LIVE_MOST_CHANGES = 32,
    LIVE_MOST_EVENTS = 1024,  // read at once
    LIVE_MOST_LAYERS = 4096,  // shown
    LIVE_LABEL_COLUMNS = 8,   // of the axes beside curves
    LIVE_MOST_HYPOTHESIS = 40 // scale x 2^n
};

#define LIVE_FOLLOWS INT64_MIN // in place of a step: the last one there is

typedef struct LiveView { // what is looked at; keys change it
    int64_t run;
    int64_t cursor;     // the step that is shown
    int64_t span;       // steps in the window of the curves; 0: all
    int64_t window_end; // the last of them
    int64_t cross;      // the step of the cross-hair
    bool has_cross;
    char series[SERIES_NAME_SIZE]; // "": the first
    double smoothing;
    bool log_axis;
    int layer;            // selected
    bool layer_is_chosen; // by the user; before that, the first that has gradients
    int hypothesis;       // n of scale x 2^n
    bool heat;            // the histogram's panel shows the exponents over time
    int format_top;       // rows of the page of formats scrolled away
    int event_top;        // rows of events scrolled away
    int64_t event_wanted; // the id of one whose row is to be on top; 0: none
    bool frozen;
} LiveView;

typedef struct LiveLine { // a series in the window
    PlotPoint *raw, *smooth;
    int count;
    bool has_value; // at the cross-hair, else at the cursor
    double value;   // as it was logged: may be NaN
} LiveLine;

typedef struct LiveOther { // a run beside this one
    bool is_there;
    int64_t id, step;
    char precision[32]; // fit to be shown
    double samples_per_s, steps_per_s, wall_s;
    int64_t memory_peak, activations;
    RecordMemory held; // in steps; RECORD_UNKNOWN where nobody counted
} LiveOther;

typedef enum LiveRowClass { ROW_SCALE, ROW_SAVED, ROW_DRAWN, ROW_OTHER, ROW_CLASSES } LiveRowClass;

typedef struct LiveRow { // of the list of events: one, or several that are alike
    LiveRowClass class;
    int first, last;  // of the events
    int count, skips; // of them
    int chain;        // rows of one were not parted by an order
    bool is_spread;   // over more than a burst
    int64_t place;    // by which rows are ordered, and
    int rank;         // among those of one place
} LiveRow;

typedef struct LiveData { // what was read
    bool is_known;
    bool is_gone; // the run was removed: nothing is known of it any more
    RunRecord record;
    RunRecord now; // of the run as it is, while the picture of `record` is frozen
    bool is_ahead; // `now` was read
    SeriesInfo *series;
    int series_count;
    char shown[SERIES_NAME_SIZE]; // the series in `line`; "": none
    int64_t first, last;          // steps that were logged
    int64_t left, right;          // of the window
    int64_t step;                 // of the cursor
    LiveLine line, ghost_line, scale_line;
    double scale;        // after the step of the cursor; NaN: unknown
    double used_scale;   // that its gradients were computed at; 1 where none are scaled
    LiveOther ghost;     // drawn behind: what this was forked from, or the best to compare it with
    LiveOther full;      // the fp32 run to compare it with; none where this one is in fp32 itself
    PaceRatio speed;     // against it, by the times of steps; NaN: they cannot tell
    bool is_full;        // it is
    int64_t broken_full; // where there is none: one that did not go through; 0: nor that,
    RunStatus broken_status;
    bool has_unlike_full; // but perhaps one of other parameters, or on another device
    LayerSample *layers;  // at the cursor, one a layer of the record; width 0: none
    int layer_count;
    LayerFactors *factors; // that layers in scaled formats multiplied, counted last before it
    int factor_count;
    FactorShares *own; // of these the worst role of each layer, as many as layers; or NULL
    LayerSample *heat; // of the selected layer, over the window
    int heat_count;
    Event *events; // in order, up to the cursor
    int event_count;
    LiveRow *rows; // as they are listed, from the top
    int row_count;
    int64_t formats_since; // the layers of the record compute in their formats after this step
    int64_t event_last;    // id of the last one in the history that was seen
    bool events_are_all;   // none was left out at the start
} LiveData;

typedef struct LiveOrder { // sent, not yet answered
    int64_t id;
    int layer;        // that it sets; -1: none or several
    char target[16];  // what it sets it to
    char what[160];   // in words, fit to be shown
    const char *when; // it is answered
} LiveOrder;

typedef struct LiveChange { // of formats, to be taken back
    int layer;              // -1: all of them
    int count;              // of layers
    char (*before)[16];     // what each was set to
    char scale[64];         // the rule of the loss scale that it came with; "": it was let be
} LiveChange;

typedef struct LiveExponents { // powers of two
    int first, last;
} LiveExponents;

typedef struct LiveAxis {  // of the histogram, held so that eyes can follow
    bool is_known;         // false: it begins anew with what is wanted next
    int layer, hypothesis; // what it is of
    Format format;
    LiveExponents now, before; // what was wanted in this spell, and in the one before
    double seconds;            // of this spell
} LiveAxis;

typedef struct Live {
    LiveView view;
    LiveData data;
    LiveOrder orders[LIVE_MOST_ORDERS];
    int order_count;
    char asked_of_all[16]; // the format that the question about all layers named
    LiveChange changes[LIVE_MOST_CHANGES];
    int change_count;
    LiveAxis axis;
    LiveMap map;
    LiveProfile profile;
    PanelId focus_before; // a page was opened
    Replay replay;
    int64_t replayed_ms;             // the clock when it went on last
    bool moved;                      // the view changed since the last look
    double others_age;               // seconds since the other runs were looked for
    double watched;                  // seconds that this screen was looked at
    Recent recent;                   // of the run's steps, on the clock of `watched`
    double late_rate;                // steps a second; 0: unknown
    double unread;                   // seconds since the record was read
    double measured_age;             // seconds since times and updates of layers were read
    char complaint[ERROR_TEXT_SIZE]; // said last, so that it is said once
} Live;

// ---- data.c -------------------------------------------------------------------------------------

// Looks at the history; true: what is shown changed.
bool live_data_look(Ui *ui, Live *live, double seconds);
void live_data_clear(LiveData *data);
void live_forget_run(Live *live); // live.c: what was read of it, and what was asked
// The run as it was read last: a frozen picture shows it as it was before, but orders, and what
// keys are called, go by this.
const RunRecord *live_run_now(const Live *live);
// flight_page.c: the first number that was not finite.
void live_show_flight(Ui *ui, const Live *live);
// others.c: the ghost and the fp32 run.
bool live_find_others(Ui *ui, LiveData *data, bool *changed, Error *error) MUST_CHECK;
bool live_has_parameters_of(const RunRecord *run, const RunRecord *other);
// events.c: those before and at the cursor, as many as are kept; and whether there are new
// ones.
bool live_read_events(Ui *ui, Live *live, Error *error) MUST_CHECK;
bool live_look_at_events(Ui *ui, Live *live, bool *changed, Error *error) MUST_CHECK;
// The newest event up to the cursor, counted from 0; NULL: none.
const Event *live_event(const Live *live, int from_newest);

double live_skipped_at(const Event *event); // the scale of a skip; NaN: its text does not say

typedef struct LiveLimit { // of the loss scale, as it was seen
    double scale;          // infinite: none
    int64_t step;          // that overflowed there
} LiveLimit;

// The least scale at which a step overflowed and that was not held for a while since.
LiveLimit live_seen_limit(const Live *live);

// ---- fold.c -------------------------------------------------------------------------------------

// Makes the rows of the events; false: no memory.
bool live_fold_events(LiveData *data);
// From the top; NULL: there are not so many.
const LiveRow *live_row(const Live *live, int at);
bool live_row_has(const Live *live, const LiveRow *row, int at); // the event is one of its
// Fit to be shown; `brief` where there is little room.
void live_say_row(const Live *live, const LiveRow *row, bool brief, char *out, size_t size);

// ---- shares.c -----------------------------------------------------------------------------------

// Nothing is left of its gradients: they were zero, or became so.
bool live_is_gone(const LayerSample *sample);
// Those that suit all layers that have such, and how many have.
WhatIfScales live_scales_of_all(const Live *live, int *count);
// The format that the layer's gradients are rounded to, at the cursor.
Format live_layer_format(const Live *live, int layer);
// The layer that loses the largest share to its format; -1: none has samples with anything left.
int live_worst_layer(const Live *live, double *flushed);

// ---- factors.c ----------------------------------------------------------------------------------

// Those counted last up to the cursor, and of each layer its worst role.
bool live_read_factors(Ui *ui, Live *live, Error *error) MUST_CHECK;
// What became of what a layer in a scaled format multiplies, at the cursor: of its worst role.
FactorShares live_factors(const Live *live, int layer);
// As it was counted, but at the scales of the layer's own format where that has such.
WhatIfShares live_shares(const Live *live, int layer);
// The format that it computes in at the cursor, which may be narrower than what its gradients are
// rounded to. Of a step before formats were changed the history knows the latter alone.
Format live_own_format(const Live *live, int layer);
// Whether what it computes may overflow or vanish where fp32 would not.
bool live_is_narrow(Format format);

// ---- advice.c -----------------------------------------------------------------------------------

// What is wrong with the gradients at the cursor, and what would help; returns the row after.
int live_say_layers(const Live *live, Area area, int row);
// Some are not finite, or nothing is left of them in a layer.
bool live_is_troubled(const Live *live);
// "2^4 to 2^21 suit", or briefly "2^4–2^21".
void live_say_scales(const WhatIfScales *scales, bool brief, char *out, size_t size);

// ---- words.c ------------------------------------------------------------------------------------

void live_clean(char *out, size_t size, const char *text); // from outside
// Why nothing is known of a run: none is open, or it was removed.
const char *live_say_no_run(const Live *live);
Ink live_ink(const char *precision); // the format's, BRIGHT where the name is of none
// "running", or "stale" where the worker is silent.
const char *live_status(const RunRecord *record);
bool live_is_over(const RunRecord *record);
int live_layers_shown(const RunRecord *record); // the first of them, LIVE_MOST_LAYERS at most
// " among steps 96 to 103" of a sample of more than one step; "" of one.
void live_say_steps(char *out, size_t size, const LayerSample *sample);
// The layer that a skip is blamed on, and whether the loss itself was not finite.
bool live_overflowed_forward(const Event *skip);
void live_culprit(const RunRecord *record, const Event *event, char *out, size_t size);
// Fit to be shown, without its step; a skip where there is little room `brief`.
void live_say_event(const Live *live, const Event *event, bool brief, char *out, size_t size);

// ---- panels -------------------------------------------------------------------------------------

void live_draw_header(const Live *live, Area area);
void live_draw_loss(const Live *live, Area area, bool focused);
void live_draw_scale(const Live *live, Area area, bool focused);
void live_draw_layers(const Live *live, Area area, bool focused);
// A share, ending before a column: none at all is told from next to none.
void live_draw_share(Area area, int end, int row, double share, Ink ink);
void live_draw_histogram(const Live *live, Area area, bool focused);
void live_draw_heat(const Live *live, Area area, bool focused);
void live_draw_events(const Live *live, Area area, bool focused);
void live_show_row(Ui *ui, const Live *live, const LiveRow *row); // on a page
// The exponents that the histogram has to show at the cursor; false: it has none to show.
bool live_wanted_exponents(const Live *live, LiveExponents *wanted);
// axis.c: those that it shows, `seconds` after the last look: more at once where more are
// wanted, less when that was too many for a good while. What a hand changes is not held.
void live_hold_axis(Live *live, double seconds);
LiveExponents live_held_exponents(const Live *live, LiveExponents wanted);
// Writes the window's steps below curves that begin at the column `left`, where there is room; the
// area above them.
Area live_label_steps(const Live *live, Area inside, int left);
void live_draw_machine(const Live *live, Area area, bool focused);

// What lies under a cell of a panel (border included); -1: nothing.
int live_layer_under(const Live *live, int width, int height, int row);
int64_t live_step_under(const Live *live, int width, int column);
// "next growth in N clean steps": N, or -1 where it cannot be known.
int64_t live_next_growth(const Live *live);

// ---- the map of layers over time: map_data.c, map.c, map_keys.c
// ----------------------------------

typedef struct MapPlace { // what of a panel of a size is for what
    int name_columns;     // from the left, beside margins; then formats
    int first, columns;   // of the cells
    int rows;
    int foot; // rows of words below the cells and the steps
} MapPlace;

MapPlace live_map_place(const Live *live, int width, int height);
// Reads what its page needs, where that is open.
bool live_map_read(Ui *ui, Live *live, Error *error) MUST_CHECK;
bool live_map_is_resized(const Ui *ui, const Live *live); // since it was read
void live_map_clear(LiveMap *map);                        // the order is kept
MapCell live_map_cell(const LayerSample *sample);
MapCell live_map_cell_here(const Live *live, int layer); // at the cursor
double live_map_damage(MapCell cell);
// Folds and sorts what was read, into so many rows where nothing was folded by hand.
void live_map_arrange(LiveMap *map, int room);
int live_map_row(const Live *live);                        // of the selected layer; -1: none
int live_map_top(const Live *live, const MapPlace *place); // the first row that is shown
void live_draw_map(const Live *live, Area area, bool focused);
bool live_map_request(Ui *ui, Live *live, Request request); // true: taken
bool live_map_label(const Live *live, Request request, const char **label);
void live_map_click(Ui *ui, Live *live, const Panel *panel, int column, int row,
                    MouseAction action);

// ---- what_if.c: all formats, of the selected layer at the cursor --------------------------------

void live_draw_what_if(const Live *live, Area area, bool focused);
bool live_what_if_request(Ui *ui, Live *live, Request request); // true: taken
bool live_what_if_label(const Live *live, Request request, const char **label);

// ---- profile_data.c, profile.c: where the time of steps goes ------------------------------------

// Reads what its page needs, where that is open; else gives it back.
bool live_profile_read(Ui *ui, Live *live, Error *error) MUST_CHECK;
void live_profile_clear(LiveProfile *profile); // what is measured goes on
// Sums its parts up into lines, as `by` says.
bool live_profile_group(LiveProfile *profile, Error *error) MUST_CHECK;
// Trains as the run was trained, in a process of its own, every step profiled; or says why not.
void live_profile_measure(Ui *ui, Live *live);
bool live_profile_is_measured(Live *live); // true: that ended since the last call
void live_draw_profile(const Live *live, Area area, bool focused);
bool live_profile_request(Ui *ui, Live *live, Request request); // true: taken
bool live_profile_label(const Live *live, Request request, const char **label);

// ---- pages.c: panels that have the screen for themselves, and are opened by keys ---------------

// The page that is open; PANEL_NONE: none.
PanelId live_page(const Ui *ui);
// True: the request was the page's, or opened or closed one.
bool live_page_request(Ui *ui, Live *live, Request request);
void live_page_close(Ui *ui, Live *live);
// As Screen.label; true: it is decided.
bool live_page_label(const Ui *ui, const Live *live, Request request, const char **label);

// ---- orders.c -----------------------------------------------------------------------------------

// Asks for the answers to what was sent; true: there was one.
bool live_poll_orders(Ui *ui, Live *live);
typedef struct LiveFormat {
    const char *layer, *format;
} LiveFormat;

// Several layers of the run that is shown, as one change, which undo takes back. One that scales no
// loss gets the dynamic scale beside layers in fp16.
void live_set_formats(Ui *ui, const LiveFormat *formats, int count);
// True: the request was one for the run's worker.
bool live_order(Ui *ui, Live *live, Request request);
void live_forget_orders(Live *live);
// What the layer is being set to, "" when nothing waits.
const char *live_pending(const Live *live, int layer);

// ---- view.c -------------------------------------------------------------------------------------

// True: the request moved what is looked at.
bool live_move(Ui *ui, Live *live, Request request);
void live_scrub_tenth(Ui *ui, Live *live, int by);
// LIVE_FOLLOWS and steps from the last one on: follows the run.
void live_put_cursor(Ui *ui, Live *live, int64_t step);
// The same by hand: a replay ends there.
void live_go_to_step(Ui *ui, Live *live, int64_t step);
void live_select_layer(Ui *ui, Live *live, int layer);
void live_click(Ui *ui, PanelId panel, int column, int row, MouseAction action);

// The step that the live screen went back to; 0: it follows its run, or another is in front.
int64_t live_scrubbed_step(const Ui *ui);

// ---- replay.c -----------------------------------------------------------------------------------

// True: the request was one for the replay.
bool live_replay(Ui *ui, Live *live, Request request);
// Moves the cursor on where a replay plays.
void live_replay_on(Ui *ui, Live *live);
