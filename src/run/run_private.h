// run/run_private.h: what the files of run/ share and nobody else sees.
#pragma once

#include "base/load.h"
#include "base/phrase.h"
#include "base/utf8.h"
#include "ops/factors.h"
#include "run/energy.h"
#include "run/run.h"
#include "run/temperature.h"
#include "run/vitals.h"
#include "store/commands.h"
#include "store/flight.h"
#include "store/skips.h"

enum {
    RUN_MAX_PENDING = 256,
    RUN_SKIPS_AT_FLOOR = 20,
    RUN_MOST_LOOKS = 2048,
    RUN_MOST_SPANS = 4096
};

typedef struct PendingPoint { // logged, and goes into the next report
    int series;
    int64_t step;   // steps that had ended when it was logged
    Tensor *tensor; // NULL: it is a number already
    double number;
} PendingPoint;

typedef struct NotedPoint { // of a report
    int series;
    int64_t step;
    bool is_number;
    double number;
    Format format; // else it lies in this piece
    int piece;
} NotedPoint;

typedef struct NotedScale { // of an optimizer that another scaler steps than marks the steps
    uint64_t scaler;        // its number; 0: it is that one, or there is none
    ScaleRule rule;
    int piece; // the ScaleState
} NotedScale;

// What the host notes beside the report of a step, or of points alone.
typedef struct StepNote {
    bool is_step;
    int64_t step;
    NotedPoint points[RUN_MAX_PENDING];
    int point_count;
    double seconds; // that it took, on the clock of the steps; NaN: unknown
    OptimizerNote optimizers[RUN_MAX_OPTIMIZERS];
    NotedScale scales[RUN_MAX_OPTIMIZERS];
    int optimizer_count;
    const Scaler *scaler; // that marks the steps; NULL: none. It may be gone
    ScaleRule rule;       // of it, then
    int scale, found;     // pieces: the ScaleState, and what the sample found
    bool has_sample;      // the step was sampled
    bool has_factors;     // or what it multiplied was counted
    StepFaults faults;    // that the lookout of the engine found in it,
    LookNotes looks;      // and what it needs until then, of a device that runs on its own
} StepNote;

typedef struct StepReport StepReport;
struct StepReport { // that is there, and is looked at
    const StepNote *note;
    const Reports *reports;
    int place;
};

enum { RUN_RECENT_STEPS = 31, RUN_LAP_STEPS = 2 };

typedef struct RunSampler { // run_sample.c
    EngineProfile profile;
    int layers;
    double *seconds;      // [layers]
    float *largest;       // [layers]
    ParameterMove *moved; // [layers]
    Tensor *found;        // see EngineProfile
    ProfileLook looks[RUN_MOST_LOOKS];
    ProfileSpan *spans;                 // [RUN_MOST_SPANS]; see EngineProfile
    bool under_way;                     // the sample is in a report that was not looked at yet
    double next, next_look;             // clock_seconds
    double began, seconds_of_host;      // run_clock; what the sampled step took by it
    double total_seconds, cast_seconds; // of all sampled steps
    double op_seconds, layer_seconds;   // in operations; in those of layers
    int64_t count, operations;          // how many samples; operations in them
    int64_t casts, cast_bytes;          // in them
    ProfileProducts products;           // of the last
    ProfileParts step, parts;           // of the step, and of all, where every step is sampled
    ProfileParts late;                  // of steps that took far longer than is usual,
    int64_t late_count;                 // as many,
    double late_seconds;                // and what they took
    bool late_is_usual;                 // there are so many that they are part of all
    double recent[RUN_RECENT_STEPS];    // seconds of steps, where every one is sampled
    int recent_count;                   // so many were put there, one over the other
    int looks_for_fault;                // looks taken because the loss was not finite
    bool seeks;                         // the next is one
} RunSampler;

typedef struct FactorSampler { // run_factors.c
    FactorTable table;
    int room;       // layers that its counts have room for
    double next;    // clock_seconds
    bool under_way; // the counts are of a step that was not looked at yet
} FactorSampler;

typedef struct Usual { // the mean of logarithms so far, in which what came last counts most
    double mean;
    int64_t count;
} Usual;

typedef struct GradientGrowth { // of one parameter
    Usual usual;                // the size of its gradients
    int64_t grew_at;            // since then they are far beyond that; -1: they are not
    double times;               // so many times as large, then
} GradientGrowth;

enum {
    RUN_LOSSES_BEYOND = 20, // in a row are told
    RUN_BEFORE_LOSS = 100   // steps: so much earlier gradients may have grown
};

typedef struct Divergence {
    double usual;                 // what the loss was,
    double times;                 // and so many times that, or more, it has been
    const GradientGrowth *growth; // the first gradients to grow; NULL: not known
    const Tensor *grown;          // whose
} Divergence;

typedef struct WatchedOptimizer { // what its counters said at the last boundary
    const Optimizer *optimizer;
    uint64_t applied, skipped;
    double scale_before; // of the scaler that stepped it, in that step
    double rate;         // its base rate, once it is known,
    double largest_rate; // and the largest that it was
    bool knows_rate, has_skipped;
    int moves_in_a_row;          // boundaries at which the rate was another one
    int64_t moved_on_skip;       // a skipped step that did not keep it from moving; 0: none
    double moved_from, moved_to; // then
    GradientGrowth *growth;      // [growth_count]; NULL: none was looked at yet
    int growth_count;
} WatchedOptimizer;

typedef struct SkipWatch { // of the last steps
    uint64_t skipped;      // a bit each, the newest lowest
    int count;             // of bits that are known
    int low_steps;         // in a row, applied at a scale of 1 or less
    int optimizers;        // the most that one step had
} SkipWatch;

typedef struct SkippedStep { // told of a step later, when its loss is known too
    int64_t step;            // 0: none waits
    int in_a_row;
    int optimizer;             // that the parameter to blame is of, and what its scaler's scale was
    double scale, scale_after; // in the step, and is after it
    bool has_scale;
    Format format;                      // that its gradients are rounded to
    char culprit[RUN_NAME_SIZE];        // the parameter to blame; "": unknown
    char layer[EVENT_LAYER_SIZE];       // that it is in
    char layers[SKIP_LAYERS_TEXT_SIZE]; // all that were touched, in words (store/skips.h)
} SkippedStep;

enum { KEPT_ACTIVATION, KEPT_GRADIENT, KEPT_WEIGHT, KEPT_NEAR, KEPT_SCALE, KEPT_VALUES };

typedef struct SeenScale { // of a scaler that does not mark the steps, at the last report of it
    uint64_t scaler;
    double scale;
} SeenScale;

// The last steps, each a row of what is kept of a layer; the newest is step count - 1.
typedef struct FlightRing {
    int layers;    // that rows have room for
    float *values; // [FLIGHT_STEPS][layers][KEPT_VALUES]
    int64_t step[FLIGHT_STEPS];
    double scale[FLIGHT_STEPS];
    int overflowed[FLIGHT_STEPS]; // the layer that did first, on the way forward; -1: none
    int64_t overflowed_from;      // the first step of this process that one did; 0: none yet
    int64_t count;                // steps so far
    int optimizer, parameter;     // whose weights are looked at next
    bool is_told;                 // the first that was not finite is,
    int64_t told_step;            // of this step: where,
    char told[3 * FLIGHT_NAME_SIZE];
    char remedy[FLIGHT_TEXT_SIZE]; // and what mends it
    int told_layer;                // of the operation, on the way forward, that it came of;
    OpId told_op;                  // OP_COUNT: it came of none
} FlightRing;

typedef struct ZeroLayer { // run_diagnose_zeros.c
    int64_t seen_at;       // the last step in which it had gradients
    int steps;             // that were applied, of those
    bool is_alive;         // one of them was not 0
} ZeroLayer;

typedef struct ZeroLayers {
    ZeroLayer *layers; // by the policy's number; or NULL
    int count;
} ZeroLayers;

typedef struct RunState { // a Run is the first member of one
    Run run;
    PendingPoint pending[RUN_MAX_PENDING];
    int pending_count;
    Reports *reports; // NULL: none was asked for yet
    StepNote *notes;  // one a place of these
    Error fault;      // of a step that makes going on pointless
    WatchedOptimizer watched[RUN_MAX_OPTIMIZERS];
    const Scaler *watched_scaler;
    SeenScale seen_scales[RUN_MAX_OPTIMIZERS]; // each where its number has it
    SkippedStep waiting;
    SkipWatch skips;
    FlightRing flight;
    int obeyed_again;                   // of the options' orders
    int64_t last_point[RUN_MAX_SERIES]; // of each series: its step
    int64_t loss_step, bad_loss_step;   // last points of the loss: any, and one that was not finite
    Usual usual_loss;
    double loss_first, loss_finite; // of those finite and above 0 the first and the last; 0: none
    double loss_before_it;          // and what was usual before the last
    bool loss_began_anew;  // after one that was not above 0, or not finite: it has no first ones
    bool loss_is_beyond;   // far beyond that,
    int64_t loss_since;    // from this step on: in a fork it may be one of its parent's;
    int losses_beyond;     // so many of its own in a row
    double loss_before;    // the last but one, and of those in a row that were each above the one
    double loss_grew_from; // before them: what they began from,
    int losses_grown;      // how many,
    int64_t loss_grew_at;  // and the step of the first
    double clock_from;     // when the clock last began to run
    bool clock_runs;
    int waits;                 // that it is in, one within the other: by an order, for the history
    double waits_since;        // stops_clock, of the outermost
    bool is_to_wait;           // by an order
    double step_clock;         // what it said at the end of the step before
    double first_step_seconds; // on the clock: it made primitives and filled caches
    int breaks_seen;           // of the process
    int stops_of_energy;       // at the last look at it
    bool step_has_break;       // since the end of the step before, while the clock ran
    bool reached_limit;
    bool knows_layers; // those that --layer names were looked for
    RunSampler sampler;
    FactorSampler factors;
    int steps_here; // ended by this process, as far as the allocator's lap hangs on them
    Energy energy;
    Vitals vitals;                    // of the device
    double watch_from, watch_seconds; // run_clock at the first recorded step; spent on recording
    double next_watch;                // clock_seconds
    ZeroLayers zeros;
    double next_energy, next_norms; // clock_seconds
    Temperature temperature;
    double next_temperature; // clock_seconds
    double most_degrees;
    Load load;                        // at the last look; `at` 0: there was none
    double load_seconds, own, others; // over which it was looked at; processor seconds then
    int64_t created_ms, ended_ms;     // wall clock, since 1970
    char scale_rule_name[64];
    double scale_of_weights; // of the checkpoint that they come from; 0: none
} RunState;

static inline RunState *run_state(Run *run) {
    return (RunState *)run;
}

int64_t run_wall_ms(void);
double run_clock_at(const RunState *state, double now); // what run_clock says then
// Leaves out what went since the last step ended if the process was stopped in between; whether a
// step is in progress of which some was left out so.
bool run_leave_out_break(RunState *state, double now);
// By an order, or for the history: neither time nor energy that go meanwhile are the run's. Nests.
void run_begin_wait(RunState *state);
void run_end_wait(RunState *state);
// Facts that are the same for every run here.
void run_look_around(Run *run);
// Those that may change: how the scale grows, and what recording costs.
void run_look_again(Run *run);
// Only into the history, not to the observer.
void run_record_event(Run *run, EventKind kind, const char *layer, double value, const char *text);
void run_record_event_at(Run *run, int64_t step, EventKind kind, const char *layer, double value,
                         const char *text);

// ---- reports ------------------------------------------------------------------------------------

// Room for the reports of steps, once. Before a step counts: one that cannot be told of is none.
bool run_make_reports(RunState *state, Error *error) MUST_CHECK;

// A step has ended, at `now` of clock_seconds: asks for its report, and looks at those that are
// there. False where one of them says that going on is pointless: then that step is the last.
bool run_report_step(RunState *state, double now, Error *error) MUST_CHECK;
// Points that were logged go ahead of the end of their step.
void run_report_points(RunState *state);
// Waits for all reports, and looks at them: before what is to know all steps so far.
void run_settle(RunState *state);
// Whether a point that is known now has to queue behind others.
bool run_awaits_points(const RunState *state);
void run_free_reports(RunState *state);
// The step of a report, as of its end.
bool run_look_at_step(RunState *state, const StepReport *report, Error *error) MUST_CHECK;

// Of the i-th optimizer; of one of its parameters (NULL: it had no gradient; `room` may hold it);
// of the scaler (NULL: there was none).
OptimizerReport run_reported(const StepReport *report, int i);
const GradStats *run_reported_stats(const StepReport *report, int i, int parameter,
                                    GradStats *room);
const ScaleState *run_reported_scale(const StepReport *report);

typedef struct StepScale {   // that an optimizer was stepped at
    const ScaleRule *rule;   // of its scaler; NULL: it has none
    const ScaleState *state; // after the step; NULL: it has none
    double before;           // what the scale was in the step; 1: it has none
    bool is_other;           // than the one that marks the steps, which --loss-scale sets
} StepScale;

StepScale run_scale_of(const RunState *state, const StepReport *report, int i);
SeenScale *run_seen_scale(RunState *state, uint64_t scaler); // of another one, perhaps

// ---- at a boundary ------------------------------------------------------------------------------

// Does what the recorder's thread asks for; waits here while the run is paused.
void run_attend(Run *run);
void run_obey(Run *run, RunCommand *command);
// Those that wait when the run has ended.
void run_refuse_orders(Run *run);
// A record of the run, for the recorder's thread.
bool run_publish_record(Run *run, Error *error);
// Changes of precision that were queued.
void run_apply_changes(Run *run);
void run_include_scale(Run *run, double scale);
// The step that ends was sampled: what was found goes into its report, and is looked at there;
// `applied`: by which optimizers, a bit each.
bool run_end_sample(RunState *state);
bool run_add_sample(RunState *state, int *piece, Error *error) MUST_CHECK;
void run_look_at_sample(RunState *state, const StepReport *report, unsigned applied);
// Begins a sample now and then.
void run_begin_sample(RunState *state, double now);
void run_drop_sample(RunState *state);
// The loss is not finite: the next step is sampled, to see where that begins.
void run_sample_soon(RunState *state);
void run_sample_energy(Run *run);         // now and then, and once the run has ended
void run_look_at_energy(RunState *state); // now
// The joules that are the run's: the device's, where that is no processor.
double run_joules(const RunState *state); // NaN: unknown
void run_set_joules(RunState *state, double joules);
double run_cast_share(const Run *run);   // NaN: unknown
double run_layers_share(const Run *run); // of the time of sampled steps; NaN: unknown
void run_free_sampler(RunState *state);
// run_factors.c: what becomes of factors in scaled formats. True: the step that begins is counted,
// and is to be timed for nothing else.
bool run_begin_factors(RunState *state, double now);
// The step that ends was counted; what was found is told when it is reported.
bool run_end_factors(RunState *state, double now);
void run_look_at_factors(RunState *state, int64_t step);
void run_drop_factors(RunState *state);
void run_free_factors(RunState *state);

// ---- points -------------------------------------------------------------------------------------

// The series of the recorder's own, which no script may write into.
typedef enum OwnSeries { OWN_SCALE, OWN_GRADIENT_NORM, OWN_STEP_SECONDS, OWN_SERIES } OwnSeries;
extern const char *const run_own_series[OWN_SERIES];

void run_add_point(RunState *state, int series, double value, int64_t step);
void run_drop_pending(RunState *state);

// ---- skipped steps ------------------------------------------------------------------------------

// The step was skipped by these optimizers, a bit each. False where going on is pointless.
bool run_count_skip(RunState *state, const StepReport *report, unsigned skipped,
                    Error *error) MUST_CHECK;
// Looks back from the step, skipped or applied: too many skipped among others, a scale that does
// not come up again.
void run_check_skips(RunState *state, const StepReport *report, bool was_skipped, bool was_applied);
// Tells the observer of the skipped step that waits.
void run_tell_skip(RunState *state);

// ---- the flight recorder ------------------------------------------------------------------------

// A step ends: keeps what it was like.
bool run_note_flight(RunState *state, StepNote *note, Error *error) MUST_CHECK;
// Its report is there: what a device that runs on its own found.
void run_settle_flight(RunState *state, StepNote *note, int place);
// It is reported: tells of the first number that is not finite and should be. A step that was
// skipped has been counted.
void run_fly(RunState *state, const StepReport *report, double scale_before, bool was_skipped);
// Where an operation that divides by nothing makes a nan, for a sentence.
extern const char run_what_makes_nan[];
typedef struct LargestWeight { // that the optimizers have, of those that are finite
    double value;              // 0: none is known
    char name[RUN_NAME_SIZE];  // in words
} LargestWeight;

enum { RUN_ANY_LAYER = -1 };
LargestWeight run_largest_weight(const RunState *state, int of); // a layer, or any
enum { GROWN_SIZE = RUN_NAME_SIZE + 64 };
// Where updates have carried the weights away, in words: what has grown, and to what, of the layer
// that overflows (0: it is in none) if that has; false: they have not.
bool run_say_grown(const RunState *state, int layer, char *text, size_t size);
// The same as the remedy. What led there is in `flight`.
bool run_mend_grown(const RunState *state, int layer, Flight *flight);
// The same where gradients are past the format's end at a loss scale of 1 or less, so that an
// update by them would be no step but a leap.
bool run_mend_large(const RunState *state, double scale, Flight *flight);
void run_free_flight(RunState *state);
// Where what was kept of a step lies; -1: nowhere any more.
int64_t run_flight_at(const FlightRing *ring, int64_t step);
// What is told: of `origin` (NULL: a gradient that was rounded, of `parameter`). `was_skipped`:
// what running statistics had kept of the step was taken back.
void run_tell_flight(RunState *state, const FaultOrigin *origin, const Tensor *parameter,
                     const StepScale *scale, bool was_skipped);
// An overflow on the way forward of which something finite was made: the loss is finite, and no
// gradient comes back through it, or where the step was skipped nan.
void run_tell_vanished(RunState *state, const FaultOrigin *origin, bool was_skipped);

// ---- what is diagnosed, once a kind and layer ---------------------------------------------------

bool run_is_low(Format format);
const char *run_layer_of(const Run *run, const Tensor *parameter); // "": none
const char *run_name_of(const Tensor *parameter);

void run_announce(Run *run);           // what it chose by itself, once nothing typed can be refused
void run_check_setup(RunState *state); // after the first step
void run_check_autocast(Run *run);     // now and then: is anything computed in what was asked for?
// Those that vanish, or never came.
void run_check_gradients(RunState *state, const StepReport *report);
bool run_scale_moves(const ScaleRule *rule); // by itself; NULL: there is none
// Layers of which none that came was anything but 0, for some steps.
void run_check_zeros(RunState *state, const StepReport *report, unsigned applied);
void run_free_zeros(RunState *state);
// Whether gradients are far beyond their usual size, at every step; and the loss, which is told.
void run_watch_gradients(RunState *state, const StepReport *report);
void run_forget_gradients(WatchedOptimizer *watched);
void run_watch_loss(RunState *state, double value, int64_t step);
// The run ends: what its last losses were on the way to, as far as they tell.
void run_end_loss(RunState *state);
void run_tell_diverged(RunState *state, const Divergence *divergence);
// That it grew until the run ended.
void run_tell_growing(RunState *state, const Divergence *divergence);
// Whether what was amiss in this step was so in the state that the run was forked from.
bool run_is_inherited(const Run *run, int64_t step);
// Whose that state was, and from where before it to fork instead.
void run_add_inherited(Phrase *text, const Run *run);
void run_check_loss(RunState *state, const char *series, double value, int64_t step);
// The learning rate of optimizer i, which has skipped the step or not.
void run_check_rate(RunState *state, int i, double rate, bool has_skipped);
// At the end: was anything trained that no step counted? Of a run that nobody stopped also whether
// all that was to be trained was.
void run_check_steps(RunState *state, bool is_whole);

// Of a sampled step.
void run_check_activations(RunState *state, int layer, double largest);
void run_check_fault(RunState *state, const ForwardFault *fault); // on the way forward
void run_check_statistics(RunState *state, int layer);
void run_check_buffer(RunState *state, const FaultOrigin *origin); // at any step
void run_check_casts(RunState *state);
void run_check_kernels(RunState *state);
void run_check_norms(RunState *state);
// What a product of a step needs on a device, in multiplications, to be more than its beginning and
// its end; 0: sizes alone do not tell.
double run_least_product(const Device *device);
void run_check_moves(RunState *state, const StepReport *report, int i, const ParameterMove *moves);
