// ops/capture.h: a step of a script as what it had computed: watched while the script runs it, and
// computed again without the script, on the same memory.
//
// For devices whose calls have done their work when they return; those that run on their own
// capture steps themselves (gpu/capture.h). While a Capture watches it is told of every kernel.
// What the host does beside that (a walk back has come to its leaves, an optimizer steps) whoever
// does it notes as an *act*: kernels that run within an act are the act's, which does all of it
// again. A step that two watched ones found alike, call for call, is *ready*.
//
// The memory that its kernels work on stays where it is, accounted as it was. Blocks that the step
// took and gave back are used as often as in the step itself; what it needed at once is held
// between two steps, beside what others need that are called, and so no step that needs much is
// captured (capture_is_large). What lies outside of the step must be weights, state, or the step's
// inputs, which may lie elsewhere in every step. Whoever finds that a step cannot be had again
// refuses it.
//
// Nothing that is computed again differs: where a number that the lookout looks at is not finite,
// or anything that was decided may be decided otherwise now, the step is given up, taken back, and
// left to the script. The engine's thread.
#pragma once

#include "ops/engine.h"

enum { CAPTURE_MOST_INPUTS = 16, CAPTURE_WHY_SIZE = 128 };

typedef struct CaptureAct CaptureAct;
// Does it again. `context` is that of capture_act's caller.
typedef bool (*CaptureDoes)(Capture *capture, const CaptureAct *act, void *context, Error *error);
struct CaptureAct {
    CaptureDoes does;
    void *on, *with; // which hold as long as the script's function does, or are the engine's
    Tensor *tensor;  // held
    void (*release)(void *on); // NULL: `on` is somebody else's,
    uint64_t told;             // and where it is not, what tells it from others
    bool is_final;             // it cannot be taken back: no kernel comes behind it
    bool is_buffer;            // it changes running statistics
};

// NULL: this device's steps are not for this, or there is no memory.
Capture *capture_new(Engine *engine);
Engine *capture_engine(const Capture *capture);
void capture_free(Capture *capture); // NULL is fine

// ---- watching -----------------------------------------------------------------------------------

// What the step is given; `is_state` says which memory from outside it may read beside weights.
typedef struct CaptureGiven {
    Tensor *const *inputs;
    int count;
    bool (*is_state)(void *context, const void *memory);
    void *context;
} CaptureGiven;

// A step begins. What was captured before is let go of; only that it was alike is remembered.
void capture_begin(Capture *capture, const CaptureGiven *given);
// It ended, well or not. True: it is ready.
bool capture_end(Capture *capture, bool is_well);
// What was captured is let go of, and what was watched forgotten.
void capture_forget(Capture *capture);
// It is another step that is to be watched.
void capture_renew(Capture *capture);
// Before and after the host does such a thing; nothing where no capture watches.
void capture_begin_act(Engine *engine, const CaptureAct *act);
void capture_end_act(Engine *engine);
// The same before an act that is noted when it is done, since it gives a tensor: then it is ended,
// and begun and ended as others are.
void capture_pause(Engine *engine);
// This step can never be had again. The first word stays; nothing where no capture watches.
void capture_refuse(Engine *engine, const char *why);
// The same of what was watched, whatever is under way; a failed act may be.
void capture_note_why(Capture *capture, const char *why);
// Whether a tensor lies in memory that the step took.
bool capture_made(const Capture *capture, const Tensor *tensor);
// Not this one, though perhaps the next.
void capture_refuse_now(Engine *engine);
// Why, "" where it can: then it was another step each time, or is still watched.
const char *capture_refusal(const Capture *capture);
// It works on so much memory that calling it costs next to nothing beside: it is let be.
bool capture_is_large(const Capture *capture);
// A watched operation was given this parameter; its outputs were looked at (ops/lookout.h).
void capture_note_parameter(Capture *capture, Tensor *parameter);
void capture_note_look(Capture *capture);
// Who watches the engine is shown this, of the engine's layer; nothing where no capture watches.
void capture_note_shown(Engine *engine, const View *output);
// The step drops this leaf's gradient: what an earlier step left there is nothing to it.
void capture_note_emptied(Capture *capture, const Tensor *leaf);
// Gradients that a walk has brought, as the tape tells.
void capture_note_leaf(Capture *capture, Tensor *leaf, bool is_first);
void capture_note_walk(Capture *capture, TapeCounts before);

// ---- computing again ----------------------------------------------------------------------------

typedef enum CaptureFit {
    CAPTURE_FITS,
    CAPTURE_OTHER, // this step is another one; the next may be this again
    CAPTURE_STALE  // it is not what the script would have computed any more
} CaptureFit;

CaptureFit capture_fits(const Capture *capture, Tensor *const *inputs, int count);
// Puts the inputs in place.
void capture_start(Capture *capture, Tensor *const *inputs);
// Whether a leaf's gradient lies where the next step writes its own: who keeps it needs a copy.
bool capture_has_gradient(const Capture *capture, const Tensor *leaf);
int capture_act_count(const Capture *capture);
// Computes what comes before act i, of which there is one more: the end. False: it was given up.
bool capture_compute(Capture *capture, int i);
bool capture_computes(const Capture *capture, int i); // whether there is anything
const CaptureAct *capture_act(const Capture *capture, int i);
// All is done.
void capture_finish(Capture *capture);
// An error has ended it in its midst: what was computed stays as it is.
void capture_leave(Capture *capture);
// What was computed is taken back, as if it had not been; before a final act alone.
bool capture_take_back(Capture *capture, Error *error) MUST_CHECK;
