// ops/engine.h: one place where operations are run: formats decided, shapes checked, kernels
// called, the tape written.
//
// An Engine is a device, a tape, a policy and what is in force right now (autocast, layer, random
// stream). op_apply is the only way from a tensor to a tensor; everything else here is a short form
// of it. Inputs are borrowed, outputs are new references. One thread uses an engine.
#pragma once

#include "grad/tape.h"
#include "kernel/multi.h"
#include "ops/delayed.h"
#include "ops/lookout.h"
#include "ops/parts.h"
#include "precision/parameter.h"
#include "precision/policy.h"
#include "precision/scaler.h"

typedef struct BufferChange { // a running statistic that may have to be taken back
    Tensor *buffer;
    Tensor *owner;      // the weight of its norm; may be NULL
    Tensor *before_own; // what it was at the last step of the optimizer that trains the owner,
    Tensor *before_any; // and at the last step of any; NULL: it has not changed since
} BufferChange;

// Weights are of the order of 1: one beyond this was carried away, and no format mends what
// follows.
enum { FORWARD_BEYOND_TRAINED = 100 };

// Where values on the way forward cease to be finite: the first operation that gives one.
typedef enum ForwardCause {
    FORWARD_SOUND,
    FORWARD_OVERFLOWED, // its inputs are finite, and so would its output be in a wider format than
                        // fp16
    FORWARD_GREW,       // the same, of a weight that is beyond what a trained one is
    FORWARD_MADE,       // its inputs are finite: a division by 0, a logarithm of 0, the end of fp32
    FORWARD_WEIGHT,     // a parameter is not finite already
    FORWARD_GIVEN       // something else that it was given is not
} ForwardCause;

typedef struct ForwardFault {
    ForwardCause cause;
    OpId op;
    int layer;             // 0: outside of all
    bool divides;          // op: by 0, perhaps; or it takes the logarithm of it
    bool is_nan;           // of its output: that is no overflow
    Format format;         // of its output
    char weight[64];       // FORWARD_WEIGHT, FORWARD_GREW: which,
    double weight_largest; // and the largest magnitude in it
} ForwardFault;

typedef struct ProfileLook { // what two numbers that the device found are of
    int layer;
    bool is_statistic; // the first is a sum of running means; else the least and largest |output|
} ProfileLook;

typedef struct ProfileSpan { // of the device's own clock, between stamps 2 i and 2 i + 1
    int layer;               // -1: it counts for none, being part of another or past the arrays
    bool is_cast, is_look;
    int part, outer; // of the parts, -1: none; the span that it lies within, -1: none
} ProfileSpan;

// What a kernel is called with, as parts count it.
typedef struct ProfileNote {
    Format from;
    double multiplications, bytes;
} ProfileNote;

// The multiplications of products on the way forward whose layers multiply in a low format. Small
// are products of fewer than `least`, which the owner sets.
typedef struct ProfileProducts {
    double least, all, small;
    double largest; // of one that is small,
    int layer;      // and whose it is; 0: outside of all
} ProfileProducts;

// What operations take, by layer: filled while an engine points to it. The arrays are the owner's;
// layers past them are not counted. Work within a layer's operations is the layer's, casts
// included, of which the rounding of factors to scaled elements is one. What is found of values
// stays on the device until the owner reads it, and so do times where the device has a clock:
// profile_settle brings them.
typedef struct EngineProfile {
    int layers;
    double *seconds;      // [layers]; layer 0: outside of all
    double cast_seconds;  // of these, in casts
    double whole_seconds; // from profile_open to profile_close without looks, by the device's clock
    ProfileSpan *spans;   // of which there are so many, and have room so many; where it has one
    int span_count, span_room;
    Tensor *found;      // fp32, two a look; NULL: nothing is looked at
    ProfileLook *looks; // of which there are so many, and have room so many
    int look_count, look_room;
    bool looks_at_outputs;     // on the way forward, where those are fp16; statistics always
    double look_seconds;       // spent looking
    int64_t operations;        // that were counted, those within others left out
    int64_t casts, cast_bytes; // how many; read and written by them
    ProfileProducts products;
    ProfileParts *parts; // the owner's; NULL: they are not told apart
    ProfileNote noted;   // of the kernel called last,
    double inner;        // and the seconds of what ran within the operation under way,
    int span;            // whose span this is; -1: it has none
    bool seeks;          // a fault
    ForwardFault fault;  // that was found: seeking waits for the device
    int depth;           // of operations within operations
} EngineProfile;

typedef struct FactorTable FactorTable;
typedef struct Capture Capture; // ops/capture.h

// Times operations from here on, into a profile whose arrays and room are set; and no more. The
// first that was opened stays.
void profile_open(Engine *engine, EngineProfile *profile);
void profile_close(Engine *engine);
// Adds what the device's clock told, when the device has passed profile_close.
void profile_settle(const Engine *engine, EngineProfile *profile);

typedef struct ProfileStart { // when something began,
    double seconds;           // by clock_seconds;
    int span, outer;          // of the device's clock, and what it lies within; -1: none
    double inner;             // what had run within that by then
} ProfileStart;

// Round work that is no operation; next to nothing where the engine has no profile with parts.
ProfileStart profile_begin_work(Engine *engine);
void profile_end_work(Engine *engine, ProfileWork work, ProfileStart began);

// Who looks at what is computed as it comes to be, and takes no part in it. Nobody is asked while
// an engine points to none.
typedef struct EngineWatch EngineWatch;
struct EngineWatch {
    // An operation has given this on a way forward that is recorded, in the engine's layer; of a
    // captured step that is computed again, only what comes last of each layer.
    void (*output)(EngineWatch *watch, const Engine *engine, const View *output);
    // These true gradients are what an update is about to go by.
    void (*gradients)(EngineWatch *watch, const Gradients *gradients);
};

// A position in a stream of random numbers, which lies on the device too: kernels count from there,
// and are told the same in every step.
typedef struct RandomBase {
    Tensor *tensor; // NULL: nothing was counted from it yet
    uint64_t began; // what is written there
} RandomBase;

struct Engine {
    Device *device;
    Tape *tape;
    Policy *policy;
    AutocastRegion autocast;
    int layer; // in force; 0: none
    uint64_t seed, random_position;
    bool walking_back;
    bool makes_again; // within it: an activation that was not kept
    bool calibrates;  // of layers in int8 it is noted what they multiply, and they compute in fp32
    bool by_largest;  // what they multiply is scaled by the largest of it
    bool has_norms;   // whose weights were rounded to a scaled format, as a recipe may ask
    EngineProfile *profile; // NULL: operations are not timed
    FactorTable *factors;   // the asker's (ops/factors.h); NULL: nothing is counted
    EngineWatch *watch;     // NULL: nobody looks
    Capture *capture;       // of the step under way; NULL: it is not watched
    Lookout lookout;
    BufferChange *changes; // since the last settled step
    int change_count, change_size;
    Scalers scalers; // alive on this engine
    Delayed delayed; // scales of layers in fp8
    uint64_t ended;  // steps; and what the one under way has left to chance so far
    uint64_t chances;
    Tensor *unread; // device memory: flags of scans that nobody asks for; NULL: none yet
    ScanPlan clip;  // of the gradients that were clipped last: optim/'s
    int clip_room;
    PairPlan undo; // of the statistics that the last settled step may have taken back
    int undo_room;
    RandomBase drawn_base, chance_base;
};

Engine *engine_new(Device *device, const Preset *preset, uint64_t seed, Error *error) MUST_CHECK;
void engine_free(Engine *engine);

// Restarts the stream of random numbers.
void engine_seed(Engine *engine, uint64_t seed);
// Reserves the positions that `count` elements use, for an operation's RandomAttr.
RandomAttr engine_random(Engine *engine, int64_t count);
// The same positions as kernels are told of them: counted from where the step began, so that they
// are told the same in every step.
RandomAttr engine_random_of_step(Engine *engine, RandomAttr random);
// Whether an operation draws from the script's stream.
bool engine_draws(OpId op);
// Where it is told of what it draws, or is rounded by; NULL: it draws nothing.
RandomAttr *engine_stream_of(OpId op, OpAttr *attr);
// Where the chances lie by which `count` elements are rounded: numbers by step and place in it,
// apart from the script's, so that a replay, which walks nothing back, comes to the same.
RandomAttr engine_chances(Engine *engine, int64_t count);
// A step has ended: random numbers are counted from here on, and delayed scales follow it.
bool engine_end_step(Engine *engine, Error *error) MUST_CHECK;

// Runs an operation. inputs[i] may be NULL where the operation allows it. `attr` may be NULL: all
// zero. attr->out_format, when has_out_format is set, beats the policy for floating outputs. All
// outputs are NULL where it fails.
bool op_apply(Engine *engine, OpId op, Tensor *const *inputs, int input_count, const OpAttr *attr,
              Tensor **outputs, Error *error) MUST_CHECK;

// Tells what the device found late as op_apply would have told it, with the layer or the operation;
// `context` is the engine. For Device.explain.
bool op_explain(void *context, const DeviceStatus *status, Error *error);

// The first output of an operation of one, two or three inputs; further outputs are released.
// NULL on failure.
Tensor *op_one(Engine *engine, OpId op, Tensor *x, const OpAttr *attr, Error *error) MUST_CHECK;
Tensor *op_two(Engine *engine, OpId op, Tensor *x, Tensor *y, const OpAttr *attr,
               Error *error) MUST_CHECK;
Tensor *op_three(Engine *engine, OpId op, Tensor *x, Tensor *y, Tensor *z, const OpAttr *attr,
                 Error *error) MUST_CHECK;

// A tensor of one value, and a copy in another format (or dense, in the same): recorded.
Tensor *op_fill(Engine *engine, Format format, int ndim, const int64_t *shape, double value,
                Error *error) MUST_CHECK;
Tensor *op_cast(Engine *engine, Tensor *x, Format format, Error *error) MUST_CHECK;
// loss * scale: a new reference, recorded; gradients that come by it carry the scale.
Tensor *engine_scale_loss(Engine *engine, Scaler *scaler, Tensor *loss, Error *error) MUST_CHECK;
// Random creation: OP_uniform, OP_normal, OP_randint with CreateAttr's a and b.
Tensor *op_random(Engine *engine, OpId op, int ndim, const int64_t *shape, double a, double b,
                  Error *error) MUST_CHECK;

// From `root` back, outside any autocast region. See tape.h.
bool engine_backward(Engine *engine, Tensor *root, Tensor *seed, const BackwardOptions *options,
                     Error *error) MUST_CHECK;

// ---- running statistics -------------------------------------------------------------------------

// Replaces the contents of `buffer` by `value`, in place, remembering the old until the step is
// settled.
bool engine_change_buffer(Engine *engine, Tensor *buffer, Tensor *value, Tensor *owner,
                          Error *error) MUST_CHECK;
// A step of the optimizer over these parameters has been decided by `flags`. Where it was skipped,
// every buffer that changed since the last step of any optimizer is taken back, and those that it
// owns to what they were at its own last step. Then its buffers are settled, and those whose owner
// no optimizer trains; the others wait for the step of theirs.
bool engine_settle_buffers(Engine *engine, Tensor *const *parameters, int count,
                           const StepFlags *flags, Error *error) MUST_CHECK;
// What has changed since the last settled step is put back now, as if it had not: of a step that
// began with nothing left to settle.
bool engine_undo_buffers(Engine *engine, Error *error) MUST_CHECK;
