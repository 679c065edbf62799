// optim/scaler.h: the loss scale: what multiplies the loss, how it moves, and the order in which
// it may be used.
//
// The scale and what it moves by live in device memory; scaler_scale, _unscale, _step and _update
// never wait for the device. scaler_get and scaler_applied do. Each optimizer that a scaler serves
// goes through READY -> UNSCALED -> STEPPED -> (update) READY; what is called out of turn is an
// error that says what was called, when the earlier call was, and what to call instead. A scaler
// is freed before its engine; what it serves may go earlier or later.
#pragma once

#include "ops/engine.h"
#include "optim/optimizer.h"

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

Scaler *scaler_new(Engine *engine, const ScaleRule *rule, Error *error) MUST_CHECK;
void scaler_free(Scaler *scaler);
const ScaleRule *scaler_rule(const Scaler *scaler);

// loss * scale: a new reference, recorded.
Tensor *scaler_scale(Scaler *scaler, Tensor *loss, Error *error) MUST_CHECK;
// Rounds the optimizer's gradients to their layers' formats, counts, checks, unscales (the one
// pass).
bool scaler_unscale(Scaler *scaler, Optimizer *optimizer, Error *error) MUST_CHECK;
// Unscales unless that was done, then steps unless something was not finite.
bool scaler_step(Scaler *scaler, Optimizer *optimizer, Error *error) MUST_CHECK;
// Ends the iteration: moves the scale. given > 0: to this value (a scaler that users write).
// Refused when nothing was checked in this iteration, unless a value is given.
bool scaler_update(Scaler *scaler, double given, Error *error) MUST_CHECK;

// These wait.
double scaler_get(Scaler *scaler);
bool scaler_applied(Scaler *scaler, const Optimizer *optimizer, bool *applied,
                    Error *error) MUST_CHECK;
ScaleState scaler_state(Scaler *scaler);
void scaler_load(Scaler *scaler, const ScaleState *state);
// Sets the scale from outside, at a step boundary; and the rule by which it moves, from its start.
bool scaler_set(Scaler *scaler, double scale, Error *error) MUST_CHECK;
bool scaler_set_rule(Scaler *scaler, const ScaleRule *rule, Error *error) MUST_CHECK;
