// precision/gradients.h: the gradients that one optimizer steps by: gathered from its parameters,
// rounded, counted, checked and made true in one pass over all of them, and what that pass found.
//
// An optimizer owns one and reads its fields; only the functions here write them. A scaler holds it
// too, between unscale and update, so it outlives an optimizer that goes meanwhile. Nothing here
// waits for the device: what the pass found comes by a report.
#pragma once

#include "precision/scaler.h"

typedef struct GradientSlot { // one parameter
    bool has_had_gradient;    // in any step
    bool was_gathered;        // of several walks, when it was scanned last
} GradientSlot;

// The plan handed to the device is built when a parameter first has a gradient and kept: from then
// on a step only looks whether the addresses in it still hold.
struct Gradients {
    int references; // the owner's, and one of each scaler between unscale and update
    Scalers *scalers;
    char text[64];       // of what they are, for messages: "Adam over 12 parameters"
    bool full;           // they are not rounded to the layer's format before they are unscaled
    Tensor **parameters; // [count], references held
    GradientSlot *slots; // [count]
    int count, size;
    ScanPlan plan;  // with room for [count] items; its count is of this step
    int *item_slot; // whose item i is; -1: not built yet
    // Device memory, one block.
    StepFlags *flags;    // of the last scan: one of these
    StepFlags *single;   // of all gradients in one pass, which a scaler may ask for later,
    StepFlags *joined;   // and of their sum, where several scales came together
    StepFlags *measured; // of gradients that changed since the scan
    GradStats *stats;    // [count]
    bool scanned;        // since the last step or zero_grad,
    int scanned_count;   // so many gradients,
    uint64_t scanned_arrivals, arrivals; // into which so much had come; that much has now
    uint64_t scanned_writes, writes;     // and which were written so often
};

// For `size` parameters, which are added one by one; then the device's memory is taken.
Gradients *gradients_new(Scalers *scalers, int size, bool full, Error *error) MUST_CHECK;
void gradients_add(Gradients *gradients, Tensor *parameter);
bool gradients_take_memory(Gradients *gradients, Error *error) MUST_CHECK;
void gradients_hold(Gradients *gradients); // given back by gradients_free
void gradients_free(Gradients *gradients);

bool gradients_are_any(const Gradients *gradients);
void gradients_drop(Gradients *gradients);

// The one pass: rounds, counts, checks, unscales by `scale` (NULL: 1).
bool gradients_scan(Gradients *gradients, const ScaleState *scale, Error *error) MUST_CHECK;
// Rounds, checks and divides those that carry this scale; counts into *flags, in device memory.
bool gradients_scan_scale(Gradients *gradients, uint64_t number, const ScaleState *scale,
                          StepFlags *flags, Error *error) MUST_CHECK;
// All are true: adds up what came apart, and scans the sum.
bool gradients_scan_joined(Gradients *gradients, Error *error) MUST_CHECK;

// The items of all that there are; scanned (at scale 1) when no scan came since the gradients did.
// Refuses what carries a scale still, or came after the scan.
bool gradients_prepare_step(Gradients *gradients, Error *error) MUST_CHECK;
// They were applied: what was unscaled is done with.
void gradients_note_step(Gradients *gradients);
// What the norm is now, where a gathered gradient was written since the scan, into `measured`,
// which is returned in *measured; else NULL. Whether they were finite stays what the scan found.
bool gradients_measure(Gradients *gradients, const StepFlags **measured, Error *error) MUST_CHECK;

// A gradient that carries a scale, other than one put in place by hand; NULL: none. `at`: whose it
// is.
const GradPart *gradients_scaled_part(const Gradients *gradients, GradPart *own, int *at);
// Whether all carry this scale, or were put in place by hand; or none and number is 0.
bool gradients_carry_only(const Gradients *gradients, uint64_t number);

// ---- in the report of a step --------------------------------------------------------------------

typedef struct GradientNote { // what the host knew of one when the step was reported
    bool is_there;            // in the last scan
    bool has_had_gradient;
    Format round_to;
    uint64_t arrived;
    uint32_t fault;         // of its storage: where what is not finite in it came from
    int parts, parts_piece; // of several walks: how many, and what was counted of them
} GradientNote;

typedef struct GradientsNote {
    GradientNote *each; // a parameter in order
    int room;
    int piece; // of the report
    size_t flags_at, stats_at;
} GradientsNote; // all zero: empty

// Adds what the last scan found; `note` goes beside the report and is used again.
bool gradients_report(const Gradients *gradients, Reports *reports, GradientsNote *note,
                      Error *error) MUST_CHECK;
void gradients_note_clear(GradientsNote *note);
// Of a report that was taken: the flags, and the statistics of parameter i, in `room` where they
// have to be put together; NULL: it had no gradient.
const StepFlags *gradients_reported_flags(const GradientsNote *note, const Reports *reports,
                                          int place);
const GradStats *gradients_reported_stats(const GradientsNote *note, const Reports *reports,
                                          int place, int i, GradStats *room);

// ---- of one parameter ---------------------------------------------------------------------------

// "fc1.weight"; "parameter 3" for a tensor without a name, the third of its list.
void parameter_text(const Tensor *tensor, int i, char *text, size_t size);
// A gradient that the device can work on in place: fp32 and dense (it is made so where strides are
// in the way). NULL on failure; `what` is whose gradient it is.
Tensor *gradient_prepare(Tensor *parameter, const char *what, Error *error) MUST_CHECK;
