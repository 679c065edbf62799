// run/plan.h: what a run would be: which layer computes in which format, and what its weights,
// their gradients and the optimizer take, as it is set and under every preset that the device
// trains in.
//
// It is read off a run that has ended a step: of how it is set all is as it was computed; of other
// presets the policy says what it would decide of the same operations, and memory is added up from
// the list of trained parameters, in the sizes that the allocator gives. What a step takes beside
// that, activations above all, is measured of the run as it is, and of no other. The run's thread.
#pragma once

#include "run/run.h"

typedef struct PlanMemory { // bytes, computed
    // What products read: copies in low formats, or the values themselves; the fp32 values beside
    // such copies; what else lies with them (buffers, frozen weights) is in `weights`.
    int64_t weights, masters;
    int64_t gradients; // of the trained parameters, in fp32
    int64_t optimizer; // moments, and what the scaler keeps
} PlanMemory;

typedef struct PlanLayer {
    char name[RECORD_NAME_SIZE];
    int parent;         // -1: none
    int64_t parameters; // numbers that are trained, its own alone
    bool has_products;  // it multiplies
    LayerPrecision own; // as it is set
    Format *formats;    // [preset_count]; of the plan
    Format computed;    // as the run is set
} PlanLayer;

typedef struct PlanPreset {
    const char *name;
    PlanMemory memory;
} PlanPreset;

typedef struct Plan {
    PlanLayer *layers;
    int layer_count;
    PlanPreset *presets; // those that the device trains in
    int preset_count;
    PlanMemory memory;     // as the run is set
    RecordMemory measured; // the most at once, so far
    int64_t parameters;    // numbers that are trained, all of them
} Plan;

// Of what has been computed so far. The plan is cleared with plan_clear; {0} is fine there.
bool plan_read(const Run *run, Plan *plan, Error *error) MUST_CHECK;
void plan_clear(Plan *plan);
