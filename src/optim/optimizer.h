// optim/optimizer.h: update rules over fp32 masters, fused over all tensors.
//
// An optimizer owns its parameters' gradients (precision/gradients.h), which hold references to
// them, their moments and its step count (on the device); it is freed before its engine.
// Nothing here waits for the device but what says so. Tensors without a gradient are left out of a
// step; a step with none at all is an error.
#pragma once

#include "kernel/multi.h"
#include "ops/engine.h"
#include "precision/gradients.h"

typedef struct OptimizerOptions {
    OptimizerKind kind;
    Schedule schedule; // schedule.rate is the base rate
    double momentum;
    bool nesterov;
    double beta1, beta2, epsilon;
    double weight_decay;
    bool bias_correction;
    double max_grad_norm; // of all gradients, true ones, at the time of the step; 0 for none
    bool full_gradients;  // grads = fp32: no rounding to the layer's format before unscaling
    bool stochastic;      // round low parameters stochastically
} OptimizerOptions;

// constant linear_warmup cosine step
bool schedule_kind_parse(const char *text, ScheduleKind *kind, Error *error) MUST_CHECK;
// What each kind starts from; lr is the caller's.
OptimizerOptions optimizer_defaults(OptimizerKind kind);
const char *optimizer_kind_name(OptimizerKind kind);

typedef struct OptimizerGroup { // parameters with settings of their own
    Tensor *const *parameters;
    int count;
    double lr_factor; // times the base rate
    double weight_decay;
} OptimizerGroup;

typedef struct Optimizer Optimizer;

// Refuses what cannot work, by name: rates and decays that are negative or not finite, an epsilon
// that rounds to 0 in the format of the state, a parameter twice, a tensor that is no leaf.
Optimizer *optimizer_new(Engine *engine, const OptimizerOptions *options,
                         const OptimizerGroup *groups, int group_count, Error *error) MUST_CHECK;
void optimizer_free(Optimizer *optimizer);

// What it steps by, as scalers know it: borrowed.
Gradients *optimizer_gradients(const Optimizer *optimizer);
void optimizer_zero_grad(Optimizer *optimizer); // drops the gradients

// Updates unless the scan found a value that is not finite; scans first (at scale 1) when no scan
// came since the gradients did. Takes running statistics of skipped steps back.
bool optimizer_step(Optimizer *optimizer, Error *error) MUST_CHECK;
bool optimizer_unscale(Optimizer *optimizer, Scaler *scaler, Error *error) MUST_CHECK;
// Unscales by this scaler unless that was done, then steps.
bool optimizer_step_scaled(Optimizer *optimizer, Scaler *scaler, Error *error) MUST_CHECK;

// Of the gradients of these tensors, which need not belong to an optimizer: the norm before, a
// tensor of no dimension; clipped to `limit`. Refused while a gradient still
// carries a loss scale. Infinite, and nothing clipped, where one is not finite.
Tensor *optimizer_clip_norm(Engine *engine, Tensor *const *parameters, int count, double limit,
                            Error *error) MUST_CHECK;
bool optimizer_clip_value(Engine *engine, Tensor *const *parameters, int count, double limit,
                          Error *error) MUST_CHECK;

double optimizer_rate(const Optimizer *optimizer); // the base rate
// The groups' own rates move along, each its share of the base.
bool optimizer_set_rate(Optimizer *optimizer, double rate, Error *error) MUST_CHECK;
int optimizer_group_count(const Optimizer *optimizer);
// A group as it is now; its parameters are left out.
OptimizerGroup optimizer_group(const Optimizer *optimizer, int group);
// The base rate of one group alone.
bool optimizer_set_group_rate(Optimizer *optimizer, int group, double rate,
                              Error *error) MUST_CHECK;
bool optimizer_has_schedule(const Optimizer *optimizer); // its rates move by themselves
// What the schedule gives the update that follows `applied` others, for a group; -1: of the base.
double optimizer_rate_after(const Optimizer *optimizer, int group, uint64_t applied);
// Another way for the rate to move; its base rate stays what it was.
bool optimizer_set_schedule(Optimizer *optimizer, const Schedule *schedule,
                            Error *error) MUST_CHECK;
int optimizer_parameter_count(const Optimizer *optimizer);
Tensor *optimizer_parameter(const Optimizer *optimizer, int i); // borrowed
bool optimizer_is_stochastic(const Optimizer *optimizer);       // it rounds low parameters so
bool optimizer_is_adaptive(const Optimizer *optimizer); // updates are as large at any gradient
bool optimizer_holds_norm(const Optimizer *optimizer);  // to max_grad_norm, as it steps
// The moments of parameter i, 0 and 1, borrowed; NULL where the rule has none.
Tensor *optimizer_moment(const Optimizer *optimizer, int i, int which);
// Takes up the count of an earlier run: the schedule and the bias correction of all parameters go
// on from there.
void optimizer_set_progress(Optimizer *optimizer, uint64_t applied, uint64_t skipped);

// In device memory, for the scaler.
const StepFlags *optimizer_flags(const Optimizer *optimizer);

// The next update also measures how far it moves each parameter.
bool optimizer_measure(Optimizer *optimizer, Error *error) MUST_CHECK;

// ---- in the report of a step --------------------------------------------------------------------

typedef struct OptimizerReport {
    bool found_inf;      // of the last scan, as the rest
    double norm;         // of the unscaled gradients
    double sum, largest; // of |g|
    uint64_t count;
    uint64_t applied, skipped; // steps so far
} OptimizerReport;

typedef struct ParameterMove {
    double change_squared, before_squared; // of one parameter in one update; NaN: not measured
} ParameterMove;

typedef struct OptimizerNote { // what the host knew when the step was reported
    GradientsNote gradients;
    bool measured;
    double rate;     // the base rate
    uint64_t scaler; // the number of the one that it was last stepped by; 0: none
    int progress, moved;
} OptimizerNote; // all zero: empty

bool optimizer_add_report(const Optimizer *optimizer, Reports *reports, OptimizerNote *note,
                          Error *error) MUST_CHECK;
void optimizer_note_clear(OptimizerNote *note);
// Of a report that was taken. Statistics of gradients are in note->gradients.
OptimizerReport optimizer_reported(const OptimizerNote *note, const Reports *reports, int place);
// One a parameter in order; NULL: the last update was not measured.
const ParameterMove *optimizer_reported_moves(const OptimizerNote *note, const Reports *reports,
                                              int place);

// ---- these wait ---------------------------------------------------------------------------------

OptimizerReport optimizer_report(Optimizer *optimizer);
uint64_t optimizer_applied(Optimizer *optimizer);

// ---- averages of weights ------------------------------------------------------------------------

typedef struct WeightAverage WeightAverage;

WeightAverage *weight_average_new(Engine *engine, Tensor *const *parameters, int count,
                                  double decay, Error *error) MUST_CHECK;
void weight_average_free(WeightAverage *average);
// After a step; flags as in optimizer_flags: a skipped step leaves the average alone. May be NULL.
bool weight_average_update(WeightAverage *average, const StepFlags *flags, Error *error) MUST_CHECK;
// Exchanges weights and averages; call it again to put them back.
bool weight_average_swap(WeightAverage *average, Error *error) MUST_CHECK;
