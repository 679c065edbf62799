// precision/scaler.h: the loss scale: what multiplies the loss, how it moves, and the order in
// which it may be used.
//
// The scale and what it moves by live in device memory; scaler_begin, _unscale, _prepare_step and
// _update never wait for the device. scaler_get and scaler_applied do. The room above multiplies
// the loss (engine_scale_loss in ops/engine.h) and steps (optimizer_step_scaled in
// optim/optimizer.h); the scaler knows an optimizer by its gradients alone. Those of each go
// through READY -> UNSCALED -> STEPPED -> (update) READY; what is called out of turn is an error
// that says what was called, when the earlier call was, and what to call instead. A scaler is freed
// before its engine; what it serves may go earlier or later.
#pragma once

#include "kernel/multi.h"
#include "kernel/report.h"
#include "precision/parameter.h"

typedef struct ScalePreset {
    const char *name; // dynamic none logmax adaptive torch apex keras deepspeed megatron fairseq
    ScaleRule rule;
    const char *text;
} ScalePreset;

extern const ScalePreset scale_preset_table[]; // ended by a NULL name
// A preset's name or a number ("1024", "2^10": static).
bool scale_rule_parse(const char *text, ScaleRule *rule, Error *error) MUST_CHECK;
// Checks a rule put together by hand: positive, finite, growth > 1 > backoff, ...
bool scale_rule_check(const ScaleRule *rule, Error *error) MUST_CHECK;
const char *scale_kind_name(ScaleKind kind);

typedef struct Scaler Scaler;
typedef struct Gradients Gradients; // precision/gradients.h

typedef struct Scalers { // of one engine, which keeps this
    Device *device;
    Scaler *first;     // of those alive
    uint64_t numbered; // how many there were: each has a number, as gradients carry it
} Scalers;

Scaler *scaler_new(Scalers *scalers, const ScaleRule *rule, Error *error) MUST_CHECK;
void scaler_free(Scaler *scaler);
const ScaleRule *scaler_rule(const Scaler *scaler);

// A loss is about to be scaled. What it is to be multiplied by, of no dimension, borrowed; NULL:
// this scaler leaves it as it is. The product is then marked with scaler_number.
Tensor *scaler_begin(Scaler *scaler);
uint64_t scaler_number(const Scaler *scaler);
Scaler *scalers_find(const Scalers *scalers, uint64_t number); // NULL: it is gone, or never was
// Rounds the gradients to their layers' formats, counts, checks, unscales (the one pass).
bool scaler_unscale(Scaler *scaler, Gradients *gradients, Error *error) MUST_CHECK;
// Whether it has unscaled these in this iteration, and they were not stepped on since.
bool scaler_has_unscaled(const Scaler *scaler, const Gradients *gradients);
// Before a step: unscales unless that was done, and by their own scalers what carries the scales of
// others.
bool scaler_prepare_step(Scaler *scaler, Gradients *gradients, Error *error) MUST_CHECK;
// Ends the iteration: moves the scale. given > 0: to this value (a scaler that users write).
// Refused when nothing was checked in this iteration, unless a value is given.
bool scaler_update(Scaler *scaler, double given, Error *error) MUST_CHECK;

// Adds the ScaleState to the report of a step.
bool scaler_add_report(const Scaler *scaler, Reports *reports, int *piece, Error *error) MUST_CHECK;

// These wait; scaler_get only where the rule moves the scale by itself.
double scaler_get(Scaler *scaler);
bool scaler_applied(Scaler *scaler, const Gradients *gradients, bool *applied,
                    Error *error) MUST_CHECK;
ScaleState scaler_state(Scaler *scaler);
void scaler_load(Scaler *scaler, const ScaleState *state);
// Sets the scale from outside, at a step boundary; and the rule by which it moves, from its start.
bool scaler_set(Scaler *scaler, double scale, Error *error) MUST_CHECK;
bool scaler_set_rule(Scaler *scaler, const ScaleRule *rule, Error *error) MUST_CHECK;

// Refuses to clip gradients that still carry a loss scale. Waits only to word its refusal.
bool scalers_allow_clip(const Scalers *scalers, Tensor *const *parameters, int count, double limit,
                        const char *called, Error *error) MUST_CHECK;

// ---- for checkpoints alone ----------------------------------------------------------------------

enum { SCALER_NUMBERS = 8 };

// What is in device memory: scale, good, hysteresis_left, skips_at_floor, mean, variance,
// mean_weight, variance_weight. Reading waits. Setting leaves windows of accumulation as they are:
// a replay of the script makes those again.
void scaler_get_numbers(Scaler *scaler, double numbers[SCALER_NUMBERS]);
void scaler_set_numbers(Scaler *scaler, const double numbers[SCALER_NUMBERS]);
// Scales that open windows of accumulation keep, and what an update that is still to come goes by:
// the i-th, NULL for one that keeps none. False past the last.
bool scaler_kept_scale(const Scaler *scaler, int i, Tensor **kept);
