// precision/policy.h: which format, for this operation, in this layer, now. Nothing else decides
// it.
//
// A policy is a preset (what autocast does with each class of operation), the layers of the models
// with their overrides, and the rules that set overrides by pattern. Layers are numbered as they
// are registered; layer 0 is "no layer". Changes from outside are queued and applied at a step
// boundary, in order. One thread uses a policy.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "kernel/kernel.h"
#include "precision/keep.h"
#include "precision/preset.h"
#include "precision/recipe.h"

typedef struct AutocastRegion { // what mp.autocast set for the code that runs now
    bool enabled;
    bool refused;  // by mp.autocast(false, ..), not enabled for lack of any
    bool given;    // a format was given to it: it beats the preset's
    Format format; // when given
    bool unscaled; // products take no scaled factors and no whole numbers, as attention
} AutocastRegion;

typedef struct PolicyLayer {
    char *name;                   // "G.up1.conv"; that of another may be the same
    int parent;                   // 0: none
    LayerPrecision own, in_force; // set on the layer; and as inherited from the layers above it
    // What its operations were computed in when they were last recorded, products before others;
    // unknown before that, and again when a layer was set.
    Format computed;
    bool knows_computed, has_products;
    bool holds;  // others lie below it
    bool passes; // what it is given was looked at, or computed in as it is
    // The operation that this was said of, and where it stood: for policy_foresee. They hold on
    // where a layer was set meanwhile.
    bool knows_op;
    OpId op;
    AutocastRegion region;
} PolicyLayer;

typedef struct Policy Policy;

Policy *policy_new(const Preset *preset, Error *error) MUST_CHECK;
void policy_free(Policy *policy);
const Preset *policy_preset(const Policy *policy);
const Recipe *policy_recipe(const Policy *policy);
// Before anything is computed, or between two steps; how far scales look back stays as it was.
void policy_set_recipe(Policy *policy, const Recipe *recipe);
// Before anything is computed, or between two steps, before a layer is set.
void policy_set_keep(Policy *policy, const Keep *keep);
// The format that a parameter made in `own` is to be kept in: low where there are no masters.
Format policy_storage(const Policy *policy, Format own);

// Registers a layer and applies the rules so far to it; its number, or -1.
int policy_add_layer(Policy *policy, const char *name, int parent, Error *error) MUST_CHECK;
int policy_layer_count(const Policy *policy); // layer 0 included
const PolicyLayer *policy_layer(const Policy *policy, int layer);
// The first whose name is the first `length` bytes of this one; 0: none is.
int policy_layer_named(const Policy *policy, const char *name, size_t length);

// A rule: every layer whose name matches `pattern` ('*' and '?'; a name matches what lies below it
// through inheritance) is set; it holds for layers registered later too; the last match wins.
// Returns how many layers matched now through *matched (may be NULL).
bool policy_set(Policy *policy, const char *pattern, LayerPrecision precision, int *matched,
                Error *error) MUST_CHECK;
// One layer alone, as it was set before; no rule.
void policy_set_layer(Policy *policy, int layer, LayerPrecision precision);
// Whether a layer has such a name now; otherwise the hint is the one that was probably meant, or
// those that there are: "; did you mean head?", "; there are fc1, fc2".
enum { POLICY_HINT_SIZE = 160 };
bool policy_names(const Policy *policy, const char *pattern, char hint[POLICY_HINT_SIZE]);
// The same as policy_set, at the next step boundary. policy_apply_queued says how many changes it
// applied.
bool policy_queue(Policy *policy, const char *pattern, LayerPrecision precision,
                  Error *error) MUST_CHECK;
int policy_apply_queued(Policy *policy);
// Grows whenever a layer's precision is set, or a layer added: what was decided before is to be
// asked for again.
uint64_t policy_changes(const Policy *policy);

// ---- the question -------------------------------------------------------------------------------

typedef struct OpFormats {
    bool cast_inputs; // LOW operations, and all in a layer of other 16 bits than what comes in:
                      // bring floating inputs to `inputs` first, but no plain numbers
    Format inputs;
    Format compute; // what products multiply in: `inputs`, TF32 of fp32, or scaled factors; of a
                    // norm, what its weights are rounded to
    Format output;  // of the outputs that precision decides
} OpFormats;

// `widest` is the widest floating format among the inputs, `first` that of the first input.
// Outside autocast operations run in the widest format they are given.
bool policy_decide(const Policy *policy, int layer, AutocastRegion region, OpId op, Format first,
                   Format widest, OpFormats *formats, Error *error) MUST_CHECK;

// The format that an operation takes weights and state in which --keep-fp32 would keep in fp32:
// that, or the layer's where it is not kept.
Format policy_state_format(const Policy *policy, int layer, AutocastRegion region, OpId op);

// An operation was computed in this layer, as policy_decide had said.
void policy_note_computed(Policy *policy, int layer, AutocastRegion region, OpId op,
                          const OpFormats *formats);
// A tensor was looked at in this layer in another shape, and nothing computed.
void policy_note_view(Policy *policy, int layer);
// Whether any operation of a layer was, within autocast.
bool policy_knows_autocast(const Policy *policy);
// What would be noted of a layer whose operations have been noted, were the preset this one and all
// else as it is. Of one that multiplies nothing, and holds nothing that does, what it is given.
Format policy_foresee(const Policy *policy, const Preset *preset, int layer);
// As policy_decide, were the preset this one.
bool policy_decide_under(const Policy *policy, const Preset *preset, int layer,
                         AutocastRegion region, OpId op, Format first, OpFormats *formats);
// policy_storage of that preset.
Format preset_storage(const Preset *preset, Format own);
// The format that LOW operations of this layer run in inside autocast.
Format policy_low_format(const Policy *policy, int layer, AutocastRegion region);
