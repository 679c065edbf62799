// lua/bind/bind.h: the C half of the module `mp`: what its files share.
//
// A Session ties a machine (lua/vm.h) to a run (run/run.h). Every C function of the module has it
// as its first upvalue. Errors of the engine become Lua errors that begin with the place in the
// user's script, not in ours. Arguments are checked by name: "linear: argument 2 (weight): a tensor
// was expected, this is a string".
#pragma once

#include <lauxlib.h>
#include <lua.h>

#include "lua/experiment.h"
#include "lua/vm.h"
#include "run/evaluation.h"
#include "run/run.h"
#include "run/run_checkpoint.h"
#include "run/scan.h"
#include "run/step_end.h"

enum {
    BIND_MOST_TENSORS = 64, // that are pushed in one go
    // What an optimizer, a scaler, an average or a loader takes beside Lua's memory and the
    // device's, about: it counts against the script's (lua_vm_charge).
    BIND_OBJECT_BYTES = 4096,
};

typedef struct Session {
    LuaVm *vm;
    Run *run;
    Engine *engine;
    bool trust;                   // scripts may name any file
    const void *tensor_metatable; // compared by address: faster than by name
    int depth;                    // of the modules whose forward is being run
    lua_State *walker;            // that a walk back is in progress for; NULL: none is
    bool has_thrown;              // what it called has raised something, which is kept
    struct KeptValues *kept;      // what graphs have of Lua (callback.h)
    size_t handle_bytes;          // of what has got its handles since the last collection
    size_t made_bytes;            // the same, since all that was garbage was freed
    size_t step_bytes;            // the same, since the step began
    size_t most_bytes;            // of the device, in use since then where it was looked at
    size_t kept_bytes;            // of the device, in use after the step that kept the least
    size_t data_bytes;            // of the data sets that loaders hold
    size_t settled_bytes;         // of the device, in use when all that was garbage had been freed
    size_t settled_data_bytes;    // of data_bytes, then
    size_t settled_lua_bytes;     // of Lua's own memory, then
    bool evaluates;               // the module whose forward runs is not in training
    uint64_t learnt;              // gradients found, and steps that ended, so far
    uint64_t looked;              // times so far that something was computed only to be looked at
    uint64_t fresh_samples;       // that loaders gave out since `learnt` grew
    double learnt_at;             // run_clock when it grew
    uint64_t evaluations;  // times since then that a model was called that is not in training
    uint64_t judged;       // times so far that batches turned out to be none to train on
    int64_t looked_before; // the last step that began so, told by the count with it; 0: none did
    // What a checkpoint is made of, and when one is taken (checkpoint.c).
    Inventory inventory;
    LuaKeeping keeping;
    struct TensorHandle *handles; // all that Lua holds, the youngest first
    uint64_t handle_count;        // made so far
    Checkpoint *resume;           // borrowed: the script is replayed up to there; NULL: it is not
    SafeFile *weights;            // borrowed: for models that the run gets to know; or NULL
    int loaded_count;             // of the named tensors, those that were looked up in it
    bool at_boundary;             // before the next engine work there is something to do:
    const char *checkpoint_why;   // a checkpoint to be taken; NULL: none
    bool has_worked;              // the engine has, since the last step ended
    int waypoints;                // passed since then: see bind_pass_waypoint
    double step_clock, step_at;   // run_clock and clock_seconds then
    _Atomic(double) step_seconds; // that the last step took; read by the watchdog
    bool stops;                   // the run to be ended, or its last step was made
    int64_t kept_step;            // of the last checkpoint
    char kept_path[1100];         // "": none was kept
    StepEnd step_end;
    struct HandedSteps *steps; // lua/bind/step.h
    bool has_no_steps;         // they are not captured here
    double kept_at;            // clock_seconds of it; of the first step before there is one
    Error refusal; // the last whose code the end is told by: of what was typed on the command line,
                   // of the history, or for lack of memory; may be caught
    bool finished; // the run has ended: what it owned is no more
    Evaluation *evaluation;            // borrowed: the script is evaluated; NULL: it trains
    Scan *scan;                        // borrowed: its layers are tried in formats; NULL: it trains
    double model_began, model_seconds; // while it is: of the outermost module; in all so far
} Session;

// Something was learnt: of what loaders have given out.
static inline void bind_learn(Session *session) {
    session->learnt++;
    session->run->samples += session->fresh_samples;
    session->fresh_samples = 0;
    session->learnt_at = run_clock(session->run);
    session->evaluations = 0;
}
// Training goes on: what was computed since something was learnt, by a model that is not in
// training, was an evaluation. Neither its batches nor its time are those of steps.
void bind_leave_evaluation_out(Session *session);
// The same where it may be a part of the step instead: a teacher, which looks at a batch that is
// learnt from, or in every step.
void bind_training_begins(Session *session);

static inline Session *session_of(lua_State *L) {
    return lua_touserdata(L, lua_upvalueindex(1));
}

typedef struct BindFunction {
    const char *name;
    lua_CFunction function;
    const char *takes; // what scripts may hand it, see signature.c; NULL: only our own Lua calls it
} BindFunction;

// Adds functions to the table on top of the stack, up to one without a name. Their first upvalue is
// the session. `prefix` is how the manual calls what they belong to: "F.", or "t:" for methods.
void bind_functions(lua_State *L, Session *session, const char *prefix,
                    const BindFunction *functions);
// Pushes one of them, held to what it takes (signature.c); its second upvalue is `which`.
void bind_push_held(lua_State *L, Session *session, const char *prefix, const BindFunction *bound,
                    int which);
extern const BindFunction bind_signature_functions[];
extern const BindFunction bind_line_functions[]; // line.c
// Makes the metatable `name` on top of the stack: methods in __index, protected from scripts.
void bind_metatable(lua_State *L, Session *session, const char *name, const char *prefix,
                    const BindFunction *methods, const BindFunction *metamethods);

// Raises an error at the place of the script's line that led here.
int bind_error(lua_State *L, const char *format, ...) __attribute__((format(printf, 2, 3)));
// A parameter of an experiment from its name and value on the stack; raises what it cannot be.
void bind_parameter(lua_State *L, int at_name, int at_value, RecordParameter *parameter);
int bind_raise(lua_State *L, const Error *error);
int bind_argument_error(lua_State *L, const char *function, int argument, const char *name,
                        const char *expected);

// What a message calls the value: itself where it is a number or a string, "a tensor", or Lua's
// name of its type. May leave a value on the stack: an error follows.
const char *bind_what_is(lua_State *L, int index);
// Whether calling it could work: a function, or anything that has a __call of its own.
bool bind_is_callable(lua_State *L, int index);

// ---- the way into the engine --------------------------------------------------------------------

// Whatever computes, reads a file or waits for the device is called through one of these: the
// watchdog stands aside meanwhile. `call` is evaluated between entering and leaving, so that it
// must neither run Lua nor raise an error.

// A call that gives a new tensor, or NULL and an error: pushes it, or raises the error. The only
// way for a result to reach a script.
#define BIND_TENSOR(L, call, error) (bind_enter(L), bind_give_tensor(L, call, error))
// A call that gives true, or false and an error, which it raises. 0: nothing was pushed.
#define BIND_DONE(L, call, error) (bind_enter(L), bind_ended(L, call, error))
// The same for what only reads: it belongs to the step before, see checkpoint.c.
#define BIND_READ(L, call, error) (lua_vm_enter_engine(L), bind_ended(L, call, error))
// Any other statement.
#define BIND_ENTERED(L, statement) \
    do {                           \
        bind_enter(L);             \
        statement;                 \
        lua_vm_leave_engine(L);    \
    } while (0)

// What comes before engine work, at a boundary between two steps: a checkpoint, the end of a
// replay, the end of the run. May raise an error.
void bind_boundary(lua_State *L);
// The same before the script leaves it without engine work: an evaluation begins, which is a
// waypoint, or a loop over data, which moves its loader.
void bind_leave_boundary(lua_State *L);
// Heeds an order to pause where no step has ended for a while.
void bind_attend(void *session);
double bind_step_seconds(void *session); // that the last one took; any thread
static inline void bind_enter(lua_State *L) {
    Session *session = session_of(L);
    if (session->at_boundary)
        bind_boundary(L);
    bind_attend(session);
    lua_vm_check(L); // a script that only calls the engine is interrupted here
    session->has_worked = true;
    lua_vm_enter_engine(L);
}

// Before a step of training: raises the end of a run whose last step was made. What a script
// computes after it without training, an evaluation, is let be.
void bind_train(lua_State *L);
// The run's last step was made, and nobody asked for its end.
bool bind_reached_limit(Session *session);

// What the first two expand to; never called by themselves.
int bind_give_tensor(lua_State *L, Tensor *tensor, const Error *error);
int bind_ended(lua_State *L, bool done, const Error *error);

// Where in the model the script is, and going there: the machine asks where one coroutine gives way
// to another. The context is the session.
uint64_t bind_place(void *context);
void bind_move(void *context, uint64_t place);

// ---- checkpoints and replay ---------------------------------------------------------------------

// Whether the script is replayed: nothing that it says is told.
bool bind_is_replaying(const Session *session);
// What the script reads of the device: recalled while it is replayed (true: `values` is filled),
// remembered otherwise.
bool bind_recall(lua_State *L, JournalKind kind, void *values, size_t size);
void bind_remember(lua_State *L, JournalKind kind, const void *values, size_t size);
// Takes a checkpoint at the next boundary: a RunCheckpointer's function, of a Session.
bool bind_want_checkpoint(void *context, Run *run, const char *why, char *answer, size_t size,
                          Error *error);
// A place between two steps, after engine work of the first's, where a checkpoint may be due: an
// evaluation begins. They are counted, so that a replay finds the place again.
void bind_pass_waypoint(Session *session);
// At such a place: where the last checkpoint is old, one is due.
void bind_keep_before_evaluation(Session *session);
// The tensors that Lua holds, the oldest first; the caller frees the array.
bool bind_list_live(const Session *session, LiveTensor **live, int *count, Error *error) MUST_CHECK;
// The script has ended, well or not: what is due at the last boundary.
bool bind_end_script(Session *session, bool done, Error *error) MUST_CHECK;

// ---- tensors ------------------------------------------------------------------------------------

// New handles, which take over the references, also where there is no memory for a handle; nil for
// NULL. At most BIND_MOST_TENSORS.
void bind_push_tensors(lua_State *L, Tensor *const *tensors, int count);
// Frees what of the tensors of a step nothing refers to any more.
void bind_collect(lua_State *L, Session *session);
void bind_collect_step(lua_State *L, Session *session); // the same, when the step is over
// All that nothing refers to; what comes next is collected as if no step had been before. Gives the
// bytes of the device that are in use then.
size_t bind_collect_all(lua_State *L, Session *session);
// A handle that stands for so many bytes was made.
void bind_report_pressure(lua_State *L, Session *session, size_t bytes);
// Of a tensor's handle, counted since the start of the script; and how many from one on are held.
uint64_t bind_handle_number(lua_State *L, int index);
int bind_count_handles(const Session *session, uint64_t first);
Tensor *bind_test_tensor(lua_State *L, int index); // NULL when it is none
Tensor *bind_tensor(lua_State *L, const char *function, int argument, const char *name);
Tensor *bind_optional_tensor(lua_State *L, const char *function, int argument, const char *name);
// What tensors are asked without computing (reading.c); ended by NULL names.
extern const BindFunction bind_reading_methods[], bind_reading_events[];
// What gradients are asked by (gradient.c); ended by a NULL name.
extern const BindFunction bind_gradient_methods[];
// The functions of `mp` that make them out of nothing or of tables (tensor_create.c), and the
// methods that view them otherwise (tensor_views.c); ended by NULL names.
extern const BindFunction bind_creations[], bind_view_methods[];
// t[i] and t.name (tensor_views.c): a lua_CFunction, given the session and the table of methods.
int bind_tensor_index(lua_State *L);
// A dimension, counted from 1 or from the end with -1, as an index from 0.
int bind_dimension(lua_State *L, const char *function, int argument, int ndim);
// Several of them, from the arguments from `first` on or from one table; at most VIEW_MAX_DIMS.
int bind_dimensions(lua_State *L, const char *function, int first, int ndim, int *dimensions);
// The length of the list at `index`; raises for what is no table, and for anything in it but
// elements 1 to the length.
lua_Integer bind_list(lua_State *L, const char *function, int index);
// Sizes from the arguments from `first` on, or from one table; returns ndim.
int bind_sizes(lua_State *L, const char *function, int first, int64_t *shape);
Format bind_format(lua_State *L, const char *function, int argument);

// What a protected block puts back when it ends, by an error too: what is in force, and whether the
// tape records (module.c).
typedef struct BindState {
    AutocastRegion region;
    bool recording, evaluates, walking_back;
    int layer;
} BindState;

BindState bind_state(const Session *session);
void bind_restore(Session *session, const BindState *state);

// ---- tables of options --------------------------------------------------------------------------

// Fields of the table at `index` (nil: an empty one), with defaults, types and bounds checked; each
// raises an error that names function and field. They are read raw: a __index of the script's would
// run in the middle of a call, and what it makes nothing keeps.
double bind_field_number(lua_State *L, const char *function, int index, const char *field,
                         double missing);
int64_t bind_field_integer(lua_State *L, const char *function, int index, const char *field,
                           int64_t missing);
bool bind_field_boolean(lua_State *L, const char *function, int index, const char *field,
                        bool missing);
// Leaves the string, or nil, on the stack, which keeps what is returned; NULL when missing.
const char *bind_field_text(lua_State *L, const char *function, int index, const char *field);
// Fails: there is no option of that name, but one near to it, or these.
int bind_refuse_option(lua_State *L, const char *function, const char *name,
                       const char *const *known, size_t count);
// Refuses fields that are not among `known`, ended by NULL.
void bind_known_fields(lua_State *L, const char *function, int index, const char *const *known);

double bind_number(lua_State *L, const char *function, int argument, const char *name);
int64_t bind_integer(lua_State *L, const char *function, int argument, const char *name);
bool bind_optional_boolean(lua_State *L, const char *function, int argument, const char *name,
                           bool missing);

// Where the file lies that a script named, pushed; raises an error where the script may not have it
// read (path.c says which). The path is kept by the caller.
const char *bind_path(lua_State *L, const char *function, const char *path);
// The field itself, raw, pushed; gives its type. What is no table has none.
int bind_push_field(lua_State *L, int index, const char *field);

// ---- the run ------------------------------------------------------------------------------------

// The field of the registry with all that mp.experiment made: the function that trains, by table.
#define bind_experiments "mp.experiments"

// A step of the run has ended: counts, applies what was queued, and raises the end of the run.
int bind_end_step(lua_State *L);
// Before the first update: raises where --layer, or the experiment's `precision`, names no layer.
void bind_check_layers(lua_State *L);
// What the Lua half needs so that `run.step` is a number and `run:step(f)` a call (calls.c).
extern const BindFunction bind_step_functions[];
// A new scaler by this rule; and the scaler at an index, NULL when it is none.
int bind_push_scaler(lua_State *L, const ScaleRule *rule);
Scaler *bind_scaler_at(lua_State *L, int index);
// The tensors of the list at `index` in a userdata on top of the stack, which keeps them: the list
// itself may be one of weak values.
Tensor **bind_push_tensor_list(lua_State *L, const char *function, int index, int *count);
// Of an optimizer's arguments, the table of options at 2, and the list of parameters or of groups
// at 1: what the groups point to stays on the stack. At most BIND_MOST_GROUPS; returns how many.
enum { BIND_MOST_GROUPS = 64 };
void bind_optimizer_options(lua_State *L, OptimizerOptions *options);
int bind_optimizer_groups(lua_State *L, OptimizerOptions *options, OptimizerGroup *groups);
Schedule bind_schedule(lua_State *L, const char *function, int at, double rate);
// Of our type, or inside of an instance of a class made by mp.class; NULL: neither.
void *bind_object(lua_State *L, int index, const char *type);
// The optimizer among a function's arguments; anything else raises an error.
Optimizer *bind_optimizer_at(lua_State *L, int index, const char *function);

// ---- the parts of the module; each adds to the table `mp` on top of the stack -------------------

void bind_open_tensor(lua_State *L, Session *session);
void bind_open_ops(lua_State *L, Session *session);
void bind_open_module(lua_State *L, Session *session);
void bind_open_gradient(lua_State *L, Session *session);
void bind_open_custom(lua_State *L, Session *session);
void bind_open_optim(lua_State *L, Session *session);
void bind_open_scaler(lua_State *L, Session *session);  // called by bind_open_optim
void bind_open_average(lua_State *L, Session *session); // the same, with the table on top
void bind_open_data(lua_State *L, Session *session);
void bind_open_run(lua_State *L, Session *session);
void bind_open_measure(lua_State *L, Session *session);
void bind_open_weights(lua_State *L, Session *session);
void bind_open_calls(lua_State *L, Session *session);  // adds nothing to the table
extern const BindFunction bind_declare_functions[];    // declare.c
extern const BindFunction bind_evaluation_functions[]; // evaluation.c
extern const BindFunction bind_scan_functions[];       // scan.c
// The outermost module of an evaluation is called, and comes back.
void bind_model_begins(Session *session);
void bind_model_ends(Session *session);
// Not of the module: replaces functions of `os`. A lua_CFunction, given the session.
int bind_open_clock(lua_State *L);
