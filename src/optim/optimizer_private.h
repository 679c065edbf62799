// optim/optimizer_private.h: what the files of src/optim share: the inside of an optimizer, and the
// scalers that know it. Private to the room.
#pragma once

#include "optim/optimizer.h"
#include "optim/scaler.h"

typedef struct OptimizerSlot { // one parameter
    Tensor *moment[2];         // NULL where the rule has none
    int group;
    bool has_had_gradient; // in any step
    bool was_gathered;     // of several walks, when it was scanned last
} OptimizerSlot;

typedef struct GroupSettings {
    double lr_factor; // times the base rate
    double weight_decay;
    int count; // of parameters
} GroupSettings;

// The items handed to the device are built when a parameter first has a gradient and kept: from
// then on a step only looks whether the addresses in them still hold.
struct Optimizer {
    int references; // the owner's, and one of each scaler between unscale and update
    Engine *engine;
    OptimizerOptions options;
    UpdateRule rule;
    Tensor **parameters; // [count], references held
    OptimizerSlot *slots;
    int count;
    GroupSettings *groups; // [group_count]
    int group_count;
    ScanItem *scans;     // [count], of which item_count are of this step
    UpdateItem *updates; // the same
    int *item_slot;      // whose item i is; -1: not built yet
    int item_count;
    uint64_t random_blocks; // that one update takes; 0: nothing is rounded stochastically
    // Device memory, one block.
    StepFlags *flags;  // of the last scan: one of these
    StepFlags *single; // of all gradients in one pass, which a scaler may ask for later,
    StepFlags *joined; // and of their sum, where several scales came together
    Progress *progress;
    GradStats *stats;                    // [count]
    double *moved;                       // [2 * count]
    uint64_t *steps;                     // [count], each parameter's own
    StepFlags *measured;                 // of gradients that changed since the scan
    bool measuring;                      // the next update fills `moved`
    bool scanned;                        // since the last step or zero_grad,
    int scanned_count;                   // so many gradients,
    uint64_t scanned_arrivals, arrivals; // into which so much had come; that much has now
    uint64_t scanned_writes, writes;     // and which were written so often
};

// "Adam over 12 parameters", for messages.
typedef struct OptimizerText {
    char text[64];
} OptimizerText;
OptimizerText optimizer_text(const Optimizer *optimizer);
// "fc1.weight"; "parameter 3" for a tensor without a name, the third of its list.
void parameter_text(const Tensor *tensor, int i, char *text, size_t size);

bool optimizer_has_gradient(const Optimizer *optimizer);
// The share of the base rate that a group takes, as it was kept; what is none is left out.
void optimizer_set_factor(Optimizer *optimizer, int group, double factor);
void optimizer_hold(Optimizer *optimizer); // given back by optimizer_free

// ---- scales that gradients carry ----------------------------------------------------------------

// A gradient of the optimizer that carries a scale, other than one put in place by hand; NULL:
// none. `at`: whose it is.
const GradPart *optimizer_scaled_part(const Optimizer *optimizer, GradPart *own, int *at);
// Whether all gradients carry this scale, or were put in place by hand; or none and number is 0.
bool optimizer_carries_only(const Optimizer *optimizer, uint64_t number);
// Rounds, checks and divides those that carry this scale; counts into *flags, in device memory.
bool optimizer_scan_scale(Optimizer *optimizer, uint64_t number, const ScaleState *scale,
                          StepFlags *flags, Error *error) MUST_CHECK;
// All are true: adds up what came apart, and scans the sum.
bool optimizer_scan_joined(Optimizer *optimizer, Error *error) MUST_CHECK;

// A gradient that the device can work on in place: fp32 and dense (it is made so where strides are
// in the way). NULL on failure; `what` is whose gradient it is.
Tensor *gradient_prepare(Engine *engine, Tensor *parameter, const char *what,
                         Error *error) MUST_CHECK;
// The format that a parameter's gradients are rounded to.
Format gradient_rounding(const Tensor *parameter);

// Writes the state alone: windows of accumulation stay as they are.
void scaler_restore(Scaler *scaler, const ScaleState *state);

// Every scaler of the engine drops what it knows of an optimizer that is about to go.
void scalers_forget(Engine *engine, const Optimizer *optimizer);
// Refuses to clip gradients that still carry a loss scale. Waits only to word its refusal.
bool scalers_allow_clip(Engine *engine, Tensor *const *parameters, int count, double limit,
                        const char *called, Error *error) MUST_CHECK;
// An optimizer has stepped: what was unscaled for it is applied.
void scalers_note_step(const Optimizer *optimizer);
// As scalers_allow_clip, of a step that no scaler makes.
bool scalers_allow_step(const Optimizer *optimizer, Error *error) MUST_CHECK;
